"""The samples of `jule compare`: pixels of a source, or the representation of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jule.cli.output import counted, status, warn
from jule.cli.reading import (
    EncoderScaling,
    agreed_source,
    open_not_empty,
    print_skipped,
    requested_spec,
    warn_of_small_pictures,
)
from jule.progress import progress_bars, reading_bar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jule.comparison.process import Outcome
    from jule.forward import Digraph
    from jule.runs.folder import RunFolder
    from jule.runs.results import RunResults


@dataclass(frozen=True, eq=False)
class Input:
    """The samples on which the methods are compared.

    Attributes
    ----------
    description
        Description of the samples, which is printed.
    vectors
        (n, d) samples.
    n_clusters
        Number of clusters.
    names, indices
        Name of each sample, and its position in the source.
    labels
        True classes; None if they are not known.
    graph
        The graph W of the samples, if there is one already.
    own
        The outcome of the run itself, if the samples are its representation.
    """

    description: str
    vectors: NDArray[np.floating]
    n_clusters: int
    names: Sequence[str]
    indices: NDArray[np.int64]
    labels: NDArray | None
    graph: Digraph | None = None
    own: tuple[Outcome, ...] = ()


def from_pixels(
    source: str,
    n_clusters: int,
    size: str | None,
    aspect: str,
    colour: str,
    strict: bool,
    folder_classes: bool,
    cache: str | None,
    features: str,
    scaling: EncoderScaling,
) -> Input:
    """Read a source, encode it if asked to, and divide each sample by its L2 norm."""
    opened = open_not_empty(source, folder_classes=folder_classes)
    _check_count(source, len(opened), n_clusters)
    from jule.features.registry import PIXELS
    from jule.images import read_images
    from jule.runs.encoding import ENCODING, as_encoder, encode, encoder_spec

    encoder = None
    if features != PIXELS:
        with status("loading"):
            encoder = as_encoder(features, scaling.preprocessing())
    if encoder is None:
        spec = requested_spec(opened, size, aspect, colour)
    else:
        spec = encoder_spec(encoder, opened, aspect)
        warn_of_small_pictures(encoder, opened)
    with reading_bar(source) as show:
        data = read_images(
            opened, spec, strict=strict, cache=Path(cache) if cache else None, progress=show
        )
    print_skipped(data)
    _check_count(source, len(data), n_clusters)
    with status("loading"):
        import numpy as np

        from jule.forward import prepare
        from jule.forward.prepare import check_not_identical

    _check_classes(source, data.labels)
    check_not_identical(data.samples.reshape(len(data), -1))
    with progress_bars(source) as show_stage:
        encoded = encode(
            encoder,
            data.samples,
            cache=Path(cache) if cache else None,
            progress=partial(show_stage, ENCODING),
        )
    vectors = prepare(encoded)
    if np.ptp(vectors, axis=0).max() <= 8 * np.finfo(vectors.dtype).eps:
        raise ValueError(
            f"the samples of {source} differ only in brightness, which the division by their L2 "
            "norms removes: there is nothing to compare"
        )
    kind = "image" if data.samples.ndim > 2 else "vector"
    resized = "" if data.spec is None else f" resized to {data.spec}"
    described = "" if encoder is None else f", described by {encoder.about}"
    return Input(
        f"{counted(len(data), kind)}{resized}{described}, each divided by its L2 norm",
        vectors,
        n_clusters,
        data.names,
        data.indices,
        data.labels,
    )


def _check_classes(source: str, labels: NDArray | None) -> None:
    if labels is not None and labels.dtype.kind == "f" and (labels != labels).any():
        raise ValueError(
            f"{source} has samples without a true class (NaN): give each a class, or leave the "
            "classes out"
        )


def _check_count(source: str | Path, n_samples: int, n_clusters: int) -> None:
    if n_samples < 2:
        raise ValueError(f"{source} has a single sample: clustering needs at least 2")
    if n_clusters > n_samples:
        raise ValueError(
            f"{source} has {counted(n_samples, 'sample')}: {n_clusters:,} clusters cannot be made "
            "of them, so ask for fewer (-k)"
        )


def from_run(run: Path, source: str | None, n_clusters: int | None) -> Input:
    """Read the representation of a finished run, and the true classes from its source."""
    from jule.comparison.process import Outcome
    from jule.runs.folder import RunFolder
    from jule.runs.results import read_results

    folder = RunFolder(run)
    results = read_results(folder)
    k = results.n_clusters if n_clusters is None else n_clusters
    _check_count(run, len(results.names), k)
    labels, _ = results.recut(k)
    return Input(
        f"{counted(len(results.names), 'sample')} as represented by {run}",
        results.result.embedding,
        k,
        results.names,
        results.indices,
        _true_classes(folder, results, source),
        results.result.graph,
        (Outcome("JULE", (labels,), (results.seconds,)),),
    )


def _true_classes(run: RunFolder, results: RunResults, source: str | None) -> NDArray | None:
    """Return the true classes of the samples of a run, if its source has them.

    Without a source, they are read from the one that the run has recorded. If that cannot be read
    any more, the methods are compared without them.
    """
    if source is None and results.scores is None:
        return None
    from jule.runs.reading import open_run_source

    try:
        opened = open_run_source(run, agreed_source(run, source))
    except (ValueError, OSError, ImportError) as error:
        if source is not None:
            raise
        warn(
            f"the true classes are not used, because the source of the run cannot be read: {error}"
        )
        return None
    indices = results.indices
    if indices.max() >= len(opened) or [opened.names[i] for i in indices] != results.names:
        raise ValueError(
            f"{opened.where} is not what {run.home} was made from: give the source of the run"
        )
    return None if opened.labels is None else opened.labels[indices]
