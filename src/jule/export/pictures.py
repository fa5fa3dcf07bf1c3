"""Sort the pictures of a run, or new ones, into one folder per cluster."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from jule.corrections.apply import SHELF
from jule.export.folders import Exported, Picture, sort_into_folders
from jule.export.names import safe_text
from jule.export.xmp import xmp_bytes
from jule.images import ImageSource, Samples, read_images
from jule.images.decoding.decode import open_picture
from jule.runs.folder import RunFolder
from jule.runs.predict import Prediction
from jule.runs.reading import find_again, open_run_source
from jule.runs.results import RunResults


def export_pictures(
    run: RunFolder,
    results: RunResults,
    to: Path,
    *,
    k: int | None = None,
    how: str | None = None,
    source: str | None = None,
    xmp: bool = False,
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
    xmp
        Whether to write the name of its cluster into a sidecar file beside each picture. Pictures
        are then copied: no file is ever written beside the originals.
    progress
        Called with the fraction that is done.
    """
    if xmp and how == "link":
        raise ValueError("sidecar files are written beside copies: use how='copy' (--how copy)")
    opened = open_run_source(run, source)
    places: list[int | str] = list(range(len(results.names)))  # an array is read as a whole
    if opened.array() is None:
        places = find_again(opened, results.names, results.indices.tolist())
    elif not is_same_array(run, opened):
        raise ValueError(
            f"{opened.where} has changed since {run.home} was made: pass the original "
            "(source=..., --source)"
        )
    labels, names = results.recut(k)
    how = "copy" if xmp else how
    folders = folder_names(np.unique(labels).tolist(), names)
    return _export(
        opened, places, results.names, labels.tolist(), folders, names, to, how, progress, xmp
    )


def is_same_array(run: RunFolder, source: ImageSource) -> bool:
    """Return whether a source that is an array has the samples of a run."""
    about = run.about()
    spec = None if about["image_spec"] is None else run.image_spec()  # of images that were resized
    return bool(read_images(source, spec).fingerprint == about["data"])


def export_new_pictures(
    source: ImageSource,
    data: Samples,
    prediction: Prediction,
    numbers: Sequence[int],
    to: Path,
    *,
    how: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Exported:
    """Sort new pictures into one folder per cluster, as predicted.

    `numbers` are those of all clusters of the run, so that folders are called as in its own export.
    """
    return _export(
        source,
        data.indices.tolist(),
        prediction.names,
        prediction.labels.tolist(),
        folder_names(numbers, prediction.cluster_names),
        prediction.cluster_names,
        to,
        how,
        progress,
    )


def _export(
    source: ImageSource,
    places: Sequence[int | str],
    names: Sequence[str],
    labels: Sequence[int],
    folders: Mapping[int, str],
    cluster_names: Mapping[int, str],
    to: Path,
    how: str | None,
    progress: Callable[[float], None] | None,
    xmp: bool = False,
) -> Exported:
    array = source.array()
    if array is not None and array.ndim == 2:
        raise ValueError(f"{source.where} holds vectors, not pictures: there is nothing to sort")
    pictures = [
        _picture(source, place, name, folders[label])
        for place, name, label in zip(places, names, labels, strict=True)
    ]
    if how is None:
        how = "copy" if any(picture.content is not None for picture in pictures) else "link"
    where = Path(source.where)
    folder = where if where.is_dir() else None
    exported = sort_into_folders(
        pictures,
        to,
        how,  # type: ignore[arg-type]
        progress,
        source_folder=folder,
    )
    if not xmp:
        return exported
    keywords = [cluster_names.get(label) or folders[label] for label in labels]
    sidecars = [
        Picture(f"{one.name}.xmp", one.folder, content=partial(xmp_bytes, keyword))
        for one, keyword in zip(pictures, keywords, strict=True)
        if not one.missing
    ]
    written = sort_into_folders(sidecars, to, "copy", source_folder=folder)
    return replace(exported, conflicts=(*exported.conflicts, *written.conflicts))


def folder_names(numbers: Sequence[int], cluster_names: Mapping[int, str]) -> dict[int, str]:
    """Return the name of the folder of every cluster, by its number; the shelf has no number.

    Examples
    --------
    >>> folder_names([0, 7, -1], {7: "cats", -1: "unsure"})
    {0: 'cluster-00', 7: 'cluster-07 cats', -1: 'unsure'}
    """
    digits = max(2, len(str(max(numbers))))
    folders = {}
    for number in numbers:
        name = cluster_names.get(number, "")
        title = "" if number == SHELF else f"cluster-{number:0{digits}d}"
        folders[number] = f"{title} {safe_text(name) if name.strip() else ''}".strip()
    return folders


def _picture(source: ImageSource, place: int | str, name: str, folder: str) -> Picture:
    if isinstance(place, str):
        return Picture(name, folder, missing=place)
    path = source.path(place)
    if path is not None:
        return Picture(name, folder, place=path)
    if source.array() is not None:  # pixels of an array become PNG files
        name = name if name.lower().endswith(".png") else f"{name}.png"
    return Picture(name, folder, content=partial(_file_content, source, place), suffix=".png")


def _file_content(source: ImageSource, number: int) -> bytes:
    """Return the bytes of a picture's file, or of a PNG file with its pixels."""
    picture = source.picture(number)
    if isinstance(picture, bytes):
        return picture
    content = io.BytesIO()
    open_picture(picture).save(content, "PNG")
    return content.getvalue()
