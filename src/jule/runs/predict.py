"""Predict the clusters of new images, and find the most similar images of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jule.forward.assign import count_votes, neighbor_votes
from jule.forward.init import cluster_means
from jule.images import ImageSource, Samples, read_images
from jule.joint.clustering import count_neighbors
from jule.progress import Progress
from jule.runs.folder import RunFolder
from jule.runs.results import RunResults
from jule.runs.tables import Columns, label_columns, position_columns

if TYPE_CHECKING:
    from jule.backward import Embedder
    from jule.joint.lowdim import Map


@dataclass(frozen=True, eq=False)
class Prediction:
    """The clusters of new samples.

    Attributes
    ----------
    names
        One path or name per sample.
    labels
        (m,) the cluster of each sample, by its number in labels.csv.
    confidence
        (m,) fraction of each sample's affinity that belongs to this cluster, where each neighbour
        counts as much as its own confidence.
    distances
        (m,) squared distance from the centre of the cluster.
    cluster_names
        The names of the clusters that have one.
    indices
        (m,) position of each sample in its source, which identifies it: names may repeat.
    positions
        (m, d) place of each sample on the map of the run; None if it has none.
    """

    names: list[str]
    labels: NDArray[np.int32]
    confidence: NDArray[np.float64]
    distances: NDArray[np.float64]
    cluster_names: dict[int, str]
    indices: NDArray[np.int64]
    positions: NDArray[np.float32] | None = None

    def columns(self) -> Columns:
        """Return the table of labels: path, cluster, confidence, rank, name, index.

        If the run has a map, x and y follow.
        """
        columns = label_columns(
            self.names,
            self.labels,
            self.confidence,
            self.distances,
            self.cluster_names,
            self.indices,
        )
        return columns | ({} if self.positions is None else position_columns(self.positions))


def read_for_run(
    run: RunFolder,
    source: ImageSource,
    *,
    strict: bool = False,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Samples:
    """Read images at the size and colour mode that the network of a run was trained with."""
    spec, shape = run.image_spec(), run.sample_shape()
    if spec is None and source.array() is None:
        raise ValueError(
            f"{run.folder} was made from arrays of shape {shape}, not from pictures: pass new "
            "samples of the same kind (.npy, .npz)"
        )
    data = read_images(source, spec, strict=strict, cache=cache, progress=progress)
    if data.samples.shape[1:] != shape:
        raise ValueError(
            f"{source.where} has samples of shape {data.samples.shape[1:]}, but the run was made "
            f"from samples of shape {shape}"
        )
    return data


def predict_samples(
    results: RunResults,
    embedder: Embedder,
    samples: NDArray,
    names: list[str],
    progress: Progress | None = None,
    *,
    indices: NDArray[np.int64] | None = None,
    learned_map: Map | None = None,
) -> Prediction:
    """Predict the clusters of new samples, read by `read_for_run`.

    Parameters
    ----------
    results, embedder
        The run and its network.
    samples, names
        The samples, and one path or name for each.
    progress
        Called with the name of a stage and the fraction of it that is done.
    indices
        (m,) position of each sample in its source; 0, 1, ... by default.
    learned_map
        The map of the run, if it has one.
    """
    from jule.backward import embed
    from jule.backward.mapper import place

    result = results.result
    show = None if progress is None else lambda share: progress("embedding", share)
    embedding = embed(embedder, samples, progress=show)
    nearest, weights = neighbor_votes(
        embedding,
        result.embedding,
        sigma2=result.sigma2,
        n_neighbors=count_neighbors(len(result.labels), results.config),
    )
    labels = count_votes(nearest, weights, result.labels).argmax(axis=1).astype(np.int32)
    # A vote says no more than the confidence of its voter. One that is alone in its cluster has
    # none of its own; it counts like the others on average.
    is_alone = np.bincount(result.labels)[result.labels] == 1
    others = result.confidence[~is_alone]
    sure = np.where(is_alone, others.mean() if len(others) else 0.0, result.confidence)
    votes = np.where(result.labels[nearest] == labels[:, None], weights, 0.0)
    confidence = np.minimum((votes * sure[nearest]).sum(axis=1), 1.0)
    gap = embedding - cluster_means(result.embedding, result.labels)[labels]
    _, known = results.recut()
    return Prediction(
        names,
        np.array(results.numbers, np.int32)[labels],
        confidence,
        np.einsum("ij,ij->i", gap, gap, dtype=np.float64),
        known,
        np.arange(len(names)) if indices is None else indices,
        None if learned_map is None else place(learned_map.mapper, embedding),
    )


def most_similar(
    results: RunResults, embedder: Embedder, sample: NDArray, count: int = 10
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the samples of a run nearest to a new one and their cosines, nearest first."""
    from jule.backward import embed

    if count < 1:
        raise ValueError(f"count must be 1 or more, got {count}")
    # In float64, so that an image has a cosine of exactly 1 with itself; ties are kept in order.
    vector = embed(embedder, sample[None])[0].astype(np.float64)
    cosines = np.round(results.result.embedding @ vector, 6)
    nearest = np.argsort(-cosines, kind="stable")[:count]
    return nearest, cosines[nearest]
