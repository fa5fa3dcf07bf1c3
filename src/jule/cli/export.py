"""`jule export`: a run's clusters as folders, its network as ONNX, its labels as Parquet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jule.cli.errors import friendly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jule.folders import Picture, Sorted
    from jule.runs import Finished, Run

NAMES = "cluster_names.json"
MOST_LINES = 10


@friendly
def export(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    to: Annotated[
        Path | None, typer.Option(help="Sort the pictures into this folder, one folder a cluster.")
    ] = None,
    how: Annotated[str, typer.Option(help="link: to the originals; or copy.")] = "link",
    onnx: Annotated[Path | None, typer.Option(help="Write the network to this file.")] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="Write path, cluster, confidence and rank to this file.")
    ] = None,
) -> None:
    """Take a run's results elsewhere: sorted pictures, an ONNX network, a Parquet table.

    Nothing that is already in the folder of sorted pictures is changed; run again, it only adds
    what is missing.

    Example: jule export pictures-run --to sorted --how copy --onnx net.onnx
    """
    from jule.runs import Run, read_results

    if to is None and onnx is None and parquet is None:
        raise ValueError(
            "say what to export: --to, --onnx or --parquet, such as "
            "`jule export pictures-run --to sorted`"
        )
    for file in (onnx, parquet):
        _refuse_no_folder(file)
    folder = Run(run)
    finished = read_results(folder, device="cpu")
    pictures = [] if to is None else pictures_of(folder, finished)
    if parquet is not None:
        _export_parquet(finished, parquet)
    if onnx is not None:
        _export_onnx(folder, finished, onnx)
    if to is not None:
        _export_pictures(folder, pictures, to, how)


def _refuse_no_folder(file: Path | None) -> None:
    if file is not None and not file.parent.is_dir():
        raise FileNotFoundError(f"{file.parent} is not a folder: make it first")
    if file is not None and file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: give the name of a file")


def _export_parquet(finished: Finished, path: Path) -> None:
    from jule.parquet import write_parquet
    from jule.runs import ranks_in_clusters

    result = finished.result
    write_parquet(
        path,
        {
            "path": finished.names,
            "cluster": result.labels,
            "confidence": result.confidence,
            "rank": ranks_in_clusters(result.labels, result.confidence),
        },
    )
    typer.echo(f"{len(finished.names):,} rows are in {path}")


def _export_onnx(run: Run, finished: Finished, path: Path) -> None:
    from jule.onnx_export import write_onnx

    shape = tuple(run.about()["data"]["shape"][1:])
    write_onnx(finished.embedder, path, shape)
    size = " x ".join(str(side) for side in shape)
    typer.echo(f"the network is in {path}: `images` of {size} in, `embedding` out")


def _export_pictures(run: Run, pictures: Sequence[Picture], to: Path, how: str) -> None:
    from jule.cli.progress import progress_bars
    from jule.folders import sort_into_folders

    source = Path(run.about()["source"])
    with progress_bars(run.folder.name) as show:
        found = sort_into_folders(
            pictures,
            to,
            how,  # type: ignore[arg-type]
            lambda share: show("sorting", share),
            source_folder=source if source.is_dir() else None,
        )
    _tell(found, to, len({picture.folder for picture in pictures}))
    if found.conflicts or found.missing:
        raise typer.Exit(1)


def _tell(found: Sorted, to: Path, n_folders: int) -> None:
    """Say how many pictures lie where, and name those that do not."""
    lie = found.made + found.already_there
    before = f" ({found.already_there:,} were there before)" if found.already_there else ""
    typer.echo(f"{lie:,} pictures lie in {n_folders:,} folders in {to}{before}")
    _list(f"{len(found.conflicts):,} left alone, because another file is there", found.conflicts)
    _list(f"{len(found.missing):,} could not be read", found.missing)


def _list(what: str, names: Sequence[str]) -> None:
    if not names:
        return
    typer.secho(f"jule: {what}:", err=True, fg="red")
    for name in names[:MOST_LINES]:
        typer.echo(f"  {printable(name)}", err=True)
    if len(names) > MOST_LINES:
        typer.echo(f"  ... and {len(names) - MOST_LINES:,} more", err=True)


def printable(text: str) -> str:
    r"""Spell out what a terminal would obey instead of show.

    Examples
    --------
    >>> printable("a\nb\x1b[2J.jpg")
    'a\\nb\\x1b[2J.jpg'
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def pictures_of(run: Run, finished: Finished) -> list[Picture]:
    """Find every picture of a run again, with the folder that its cluster gets.

    Examples
    --------
    >>> pictures_of(run, read_results(run))  # doctest: +SKIP
    """
    from jule.folders import Picture

    source = run.about()["source"]
    if not source:
        raise ValueError(f"{run.folder} does not say where its pictures are: they cannot be sorted")
    labels = finished.result.labels.tolist()
    folders = folder_names(run, max(labels) + 1)
    if Path(source).is_dir():
        return [
            Picture(name, folders[label], place=_inside(Path(source), name))
            for name, label in zip(finished.names, labels, strict=True)
        ]
    return [
        Picture(_as_png(name), folders[label], content=partial(png_of, image))
        for name, label, image in zip(
            finished.names, labels, _images_again(run, source), strict=True
        )
    ]


def _as_png(name: str) -> str:
    # Whatever the array calls it, what is written is a PNG file.
    return name if name.lower().endswith(".png") else f"{name}.png"


def _inside(folder: Path, name: str) -> Path:
    """Give the file of a name in a folder; a name that leads out of it was not found in it."""
    if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
        raise ValueError(f"{printable(name)!r} does not lie in {folder}: labels.csv was changed")
    return folder / name


def _images_again(run: Run, source: str) -> NDArray:
    """Read the array that a run was made with, its values from 0 to 255."""
    import numpy as np

    from jule.images import fingerprint, read_samples

    samples = read_samples(source).samples
    if fingerprint(samples) != run.about()["data"]:
        raise ValueError(f"{source} is not what {run.folder} was made with any more")
    if samples.ndim == 2:
        raise ValueError(f"{source} holds vectors, not pictures: there is nothing to sort")
    if samples.dtype == np.uint8:
        return samples
    low, high = float(samples.min()), float(samples.max())
    scaled = (samples - low) * (255 / (high - low or 1))
    return scaled.round().astype(np.uint8)


def png_of(image: NDArray) -> bytes:
    """Give a picture (h, w[, c]) of uint8 as the bytes of a PNG file.

    Examples
    --------
    >>> import numpy as np
    >>> png_of(np.zeros((2, 2), np.uint8))[1:4]
    b'PNG'
    """
    import io

    from PIL import Image

    channels = 1 if image.ndim == 2 else image.shape[2]
    if channels not in (1, 3, 4):
        raise ValueError(f"a picture of {channels} channels cannot be a PNG file")
    content = io.BytesIO()
    Image.fromarray(image.reshape(image.shape[:2]) if channels == 1 else image).save(content, "PNG")
    return content.getvalue()


def folder_names(run: Run, n_clusters: int) -> list[str]:
    """Name the folder of every cluster, after cluster_names.json where the run has one.

    Examples
    --------
    >>> from jule.runs import Run
    >>> folder_names(Run(Path("nowhere")), 2)
    ['cluster-00', 'cluster-01']
    """
    from jule.folders import safe_text

    names = _cluster_names(run.path(NAMES))
    digits = max(2, len(str(n_clusters - 1)))
    return [
        f"cluster-{number:0{digits}d}"
        + (f" {safe_text(names[str(number)])}" if names.get(str(number), "").strip() else "")
        for number in range(n_clusters)
    ]


def _cluster_names(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    try:
        names: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ValueError(f'{path} must hold names by cluster, such as {{"3": "cats"}}')
    return names
