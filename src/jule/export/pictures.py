"""Sort the pictures of a run, or new ones, into one folder per cluster."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from jule.export.folders import Exported, Picture, sort_into_folders
from jule.export.names import safe_text
from jule.images import ImageSource, Samples, fingerprint, open_source
from jule.images.decoding.decode import open_picture
from jule.joint.result import recut, recut_names
from jule.runs.folder import RunFolder
from jule.runs.predict import Prediction
from jule.runs.results import RunResults

GONE = "no longer there"


def export_pictures(
    run: RunFolder,
    results: RunResults,
    to: Path,
    *,
    k: int | None = None,
    how: str | None = None,
    source: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Exported:
    """Sort the pictures of a run into one folder per cluster.

    Parameters
    ----------
    run, results
        The run.
    to
        The folder to sort into. Existing files in it are never changed.
    k
        Number of clusters, if it differs from that of the run.
    how
        ``"link"`` or ``"copy"``; by default links where possible.
    source
        Where the pictures are, if they have been moved since the run.
    progress
        Called with the fraction that is done.
    """
    where = source or run.about()["source"]
    if not where:
        raise ValueError(
            f"{run.folder} does not say where its pictures are: pass their source (--source)"
        )
    opened = open_source(where)
    array = opened.array()
    if array is not None and fingerprint(array) != run.about()["data"]:
        raise ValueError(
            f"{where} has changed since {run.folder} was made: pass the original (--source)"
        )
    index = {name: number for number, name in reversed(list(enumerate(opened.names)))}
    numbers = [index.get(name, -1) for name in results.names]
    k = k or results.result.n_clusters
    labels = recut(results.result, k, results.config)
    names = recut_names(results.result, results.cluster_names, k, results.config)
    return _export(opened, numbers, results.names, labels.tolist(), k, names, to, how, progress)


def export_new_pictures(
    source: ImageSource,
    data: Samples,
    prediction: Prediction,
    n_clusters: int,
    to: Path,
    *,
    how: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Exported:
    """Sort new pictures into one folder per cluster, as predicted."""
    return _export(
        source,
        data.indices.tolist(),
        prediction.names,
        prediction.labels.tolist(),
        n_clusters,
        prediction.cluster_names,
        to,
        how,
        progress,
    )


def _export(
    source: ImageSource,
    numbers: Sequence[int],
    names: Sequence[str],
    labels: Sequence[int],
    n_clusters: int,
    cluster_names: Mapping[int, str],
    to: Path,
    how: str | None,
    progress: Callable[[float], None] | None,
) -> Exported:
    array = source.array()
    if array is not None and array.ndim == 2:
        raise ValueError(f"{source.where} holds vectors, not pictures: there is nothing to sort")
    folders = folder_names(n_clusters, cluster_names)
    pictures = [
        _picture(source, number, name, folders[label])
        for number, name, label in zip(numbers, names, labels, strict=True)
    ]
    if how is None:
        how = "copy" if any(picture.place is None for picture in pictures) else "link"
    where = Path(source.where)
    return sort_into_folders(
        pictures,
        to,
        how,  # type: ignore[arg-type]
        progress,
        source_folder=where if where.is_dir() else None,
    )


def folder_names(n_clusters: int, cluster_names: Mapping[int, str]) -> list[str]:
    """Return the folder name of every cluster.

    Examples
    --------
    >>> folder_names(2, {1: "cats"})
    ['cluster-00', 'cluster-01 cats']
    """
    digits = max(2, len(str(n_clusters - 1)))
    return [
        f"cluster-{number:0{digits}d}"
        + (f" {safe_text(cluster_names[number])}" if cluster_names.get(number, "").strip() else "")
        for number in range(n_clusters)
    ]


def _picture(source: ImageSource, number: int, name: str, folder: str) -> Picture:
    if number < 0:
        return Picture(name, folder, place=Path(source.where) / GONE)
    place = source.path(number)
    if place is not None:
        return Picture(name, folder, place=place)
    if source.array() is not None:  # pixels of an array become PNG files
        name = name if name.lower().endswith(".png") else f"{name}.png"
    return Picture(name, folder, content=partial(_file_content, source, number), suffix=".png")


def _file_content(source: ImageSource, number: int) -> bytes:
    """Return the bytes of a picture's file, or of a PNG file with its pixels."""
    picture = source.picture(number)
    if isinstance(picture, bytes):
        return picture
    content = io.BytesIO()
    open_picture(picture).save(content, "PNG")
    return content.getvalue()
