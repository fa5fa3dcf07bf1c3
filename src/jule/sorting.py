"""New pictures and a finished run: which cluster they belong to, and what they look like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.backward import embed
from jule.images import ImageSource, Samples, read_images
from jule.joint.finish import cluster_shares
from jule.runs import Finished, Run


def read_for(
    run: Run,
    source: ImageSource,
    *,
    strict: bool = False,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Samples:
    """Read pictures so that a run's network can see them: in the look it was trained with.

    Examples
    --------
    >>> read_for(run, open_source("new-photos"))  # doctest: +SKIP
    """
    look = run.look()
    shape = tuple(run.about()["data"]["shape"][1:])
    if look is None and source.array() is None:
        raise ValueError(
            f"{run.folder} was made with arrays of shape {shape}, not with pictures: give new "
            "samples of the same kind (.npy, .npz)"
        )
    data = read_images(source, look, strict=strict, cache=cache, progress=progress)
    if data.samples.shape[1:] != shape:
        raise ValueError(
            f"{source.where} has samples of shape {data.samples.shape[1:]}, the run was made with "
            f"{shape}"
        )
    return data


def predict_labels(
    finished: Finished, samples: NDArray
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Give the cluster of each new sample, and the share of affinity that this cluster has.

    Examples
    --------
    >>> predict_labels(finished, images)  # doctest: +SKIP
    """
    embedding = embed(finished.embedder, samples)
    shares = cluster_shares(finished.result, finished.config, embedding)
    return shares.argmax(axis=1), shares.max(axis=1)


def most_similar(
    finished: Finished, sample: NDArray, count: int = 10
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Give the samples of a run that lie nearest to a new one, with the cosine, nearest first.

    Examples
    --------
    >>> most_similar(finished, image)  # doctest: +SKIP
    """
    if count < 1:
        raise ValueError(f"at least 1 similar picture must be asked for, got {count}")
    # In float64, so that a picture finds itself at exactly 1 and ties fall by their order.
    vector = embed(finished.embedder, sample[None])[0].astype(np.float64)
    cosines = np.round(finished.result.embedding @ vector, 6)
    nearest = np.argsort(-cosines, kind="stable")[:count]
    return nearest, cosines[nearest]
