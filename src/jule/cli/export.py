"""`jule export`: a run's clusters as folders, its network as ONNX, its labels as Parquet."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.errors import friendly

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jule.export.folders import Picture, Sorted
    from jule.images import ImageSource
    from jule.runs import Finished, Run

MOST_LINES = 10


@friendly
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    to: Annotated[
        Path | None, typer.Option(help="Sort the pictures into this folder, one folder a cluster.")
    ] = None,
    how: Annotated[
        str | None,
        typer.Option(help="link to the originals, or copy; left out: link where that is possible."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Where the pictures are now, if they were moved.")
    ] = None,
    onnx: Annotated[Path | None, typer.Option(help="Write the network to this file.")] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="Write path, cluster, confidence and rank to this file.")
    ] = None,
) -> None:
    """Take a run's results elsewhere: sorted pictures, an ONNX network, a Parquet table.

    Nothing that is already in the folder of sorted pictures is changed.
    Run again, it only adds what is missing.

    Examples:

      jule export photos-run --to sorted

      jule export photos-run --to sorted --how copy --onnx net.onnx
    """
    from jule.runs import Run, read_results

    if to is None and onnx is None and parquet is None:
        raise ValueError(
            "say what to export: --to, --onnx or --parquet, such as "
            "`jule export photos-run --to sorted`"
        )
    for file in (onnx, parquet):
        _refuse_no_folder(file)
    folder = Run(run)
    finished = read_results(folder, device="cpu")
    if parquet is not None:
        _export_parquet(finished, parquet)
    if onnx is not None:
        _export_onnx(folder, finished, onnx)
    if to is not None:
        _export_pictures(folder, finished, to, how, source)


def _refuse_no_folder(file: Path | None) -> None:
    if file is not None and not file.parent.is_dir():
        raise FileNotFoundError(f"{file.parent} is not a folder: make it first")
    if file is not None and file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: give the name of a file")


def _export_parquet(finished: Finished, path: Path) -> None:
    from jule.export.parquet import write_parquet
    from jule.sheets import label_rows

    result = finished.result
    write_parquet(path, label_rows(finished.names, result.labels, result.confidence))
    typer.echo(f"{len(finished.names):,} rows are in {path}")


def _export_onnx(run: Run, finished: Finished, path: Path) -> None:
    from jule.export.onnx import write_onnx

    shape = tuple(run.about()["data"]["shape"][1:])
    write_onnx(finished.embedder, path, shape)
    size = " x ".join(str(side) for side in shape)
    typer.echo(f"the network is in {path}: `images` of {size} in, `embedding` out")


def _export_pictures(
    run: Run, finished: Finished, to: Path, how: str | None, moved_to: str | None
) -> None:
    from jule.images import fingerprint, open_source

    where = moved_to or run.about()["source"]
    if not where:
        raise ValueError(f"{run.folder} does not say where its pictures are: they cannot be sorted")
    source = open_source(where)
    array = source.array()
    if array is not None and fingerprint(array) != run.about()["data"]:
        raise ValueError(f"{where} is not what {run.folder} was made with any more")
    place = {name: number for number, name in reversed(list(enumerate(source.names)))}
    numbers = [place.get(name, -1) for name in finished.names]
    labels = finished.result.labels
    n_clusters = int(labels.max()) + 1
    put_into_folders(run, source, numbers, finished.names, labels, n_clusters, to, how)


def put_into_folders(
    run: Run,
    source: ImageSource,
    numbers: Sequence[int] | NDArray[np.int64],
    names: Sequence[str],
    labels: NDArray[np.integer],
    n_clusters: int,
    to: Path,
    how: str | None,
) -> None:
    """Put pictures into a folder a cluster, and say how many lie where.

    `numbers` are their places in the source, -1 for what is not there any more; `how` is link or
    copy, None for the first that is possible.

    Examples
    --------
    >>> put_into_folders(run, source, [0], ["a.jpg"], labels, 3, to, "copy")  # doctest: +SKIP
    """
    from jule.cli.progress import progress_bars
    from jule.export.folders import sort_into_folders

    array = source.array()
    if array is not None and array.ndim == 2:
        raise ValueError(f"{source.where} holds vectors, not pictures: there is nothing to sort")
    folders = folder_names(run, n_clusters)
    pictures = [
        picture_of(source, int(number), name, folders[label])
        for number, name, label in zip(numbers, names, labels.tolist(), strict=True)
    ]
    if how is None:
        how = "copy" if any(picture.place is None for picture in pictures) else "link"
    where = Path(source.where)
    with progress_bars(run.folder.name) as show:
        found = sort_into_folders(
            pictures,
            to,
            how,  # type: ignore[arg-type]
            lambda share: show("sorting", share),
            source_folder=where if where.is_dir() else None,
        )
    _tell(found, to, len({picture.folder for picture in pictures}))
    if found.conflicts or found.missing:
        raise typer.Exit(1)


def picture_of(source: ImageSource, number: int, name: str, folder: str) -> Picture:
    """Say where a picture is to be had, and which folder it belongs in.

    Examples
    --------
    >>> picture_of(source, 0, "a.jpg", "cluster-00").place  # doctest: +SKIP
    """
    from jule.export.folders import Picture

    if number < 0:
        return Picture(name, folder, place=Path(source.where) / "not there any more")
    place = source.place(number)
    if place is not None:
        return Picture(name, folder, place=place)
    if source.array() is not None:  # whatever the array calls it, what is written is a PNG file
        name = name if name.lower().endswith(".png") else f"{name}.png"
    return Picture(name, folder, content=partial(file_of, source, number), suffix=".png")


def file_of(source: ImageSource, number: int) -> bytes:
    """Give a picture's own file, or a PNG file of its pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images import ArraySource
    >>> file_of(ArraySource(np.zeros((1, 2, 2), np.uint8)), 0)[1:4]
    b'PNG'
    """
    from jule.images.decode import open_picture

    picture = source.picture(number)
    if isinstance(picture, bytes):
        return picture
    content = io.BytesIO()
    open_picture(picture).save(content, "PNG")
    return content.getvalue()


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


def folder_names(run: Run, n_clusters: int) -> list[str]:
    """Name the folder of every cluster, after cluster_names.json where the run has one.

    Examples
    --------
    >>> from jule.runs import Run
    >>> folder_names(Run(Path("nowhere")), 2)
    ['cluster-00', 'cluster-01']
    """
    from jule.export.names import safe_text
    from jule.report.source import cluster_names

    names = cluster_names(run)
    digits = max(2, len(str(n_clusters - 1)))
    return [
        f"cluster-{number:0{digits}d}"
        + (f" {safe_text(names[number])}" if names.get(number, "").strip() else "")
        for number in range(n_clusters)
    ]
