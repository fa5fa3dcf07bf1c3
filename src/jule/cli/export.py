"""`jule export`: write clusters as folders, the network as ONNX, the labels as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jule.cli.numbers import check_clusters, whole
from jule.cli.output import counted, fail, say, warn
from jule.cli.reading import MovedEncoder, check_not_own

if TYPE_CHECKING:
    from jule.export.folders import Exported
    from jule.runs.folder import RunFolder
    from jule.runs.tables import Columns

MOST_LINES = 10


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    to: Annotated[
        Path | None, typer.Option(help="Sort the pictures into this folder, one per cluster.")
    ] = None,
    how: Annotated[
        str | None,
        typer.Option(help="link to the originals, or copy. Default: link where possible."),
    ] = None,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--clusters",
            parser=whole(1),
            metavar="INTEGER",
            help="A different number of clusters.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Where the pictures are, if moved or if the run is not yours."),
    ] = None,
    onnx: Annotated[Path | None, typer.Option(help="Write the network to this file.")] = None,
    features: MovedEncoder = None,
    parquet: Annotated[
        Path | None,
        typer.Option(help="Write path, cluster, confidence, rank and name to this file."),
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="The same as CSV, for spreadsheets.")] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write the clusters, with their pictures, to this file.")
    ] = None,
    xmp: Annotated[
        bool,
        typer.Option(
            "--xmp",
            help="With --to: copy the pictures, and write an XMP file with the name of the cluster "
            "beside each copy, for photo managers. Nothing is written beside the originals.",
        ),
    ] = False,
) -> None:
    """Export the results of a run: sorted pictures, tables, keywords, an ONNX network.

    Existing files in the folder of sorted pictures are not changed.
    A second call only adds what is missing.

    Examples:

      jule export photos-run --to sorted

      jule export photos-run --to sorted-7 -k 7

      jule export photos-run --to sorted --how copy --onnx net.onnx

      jule export photos-run --to tagged --xmp

      jule export photos-run --csv labels.csv --json clusters.json
    """
    from jule.files import json_bytes, write_atomic
    from jule.runs.folder import RunFolder
    from jule.runs.results import read_results

    if xmp and to is None:
        raise ValueError("--xmp writes beside copies of the pictures: say where, with --to DIR")
    if all(one is None for one in (to, onnx, parquet, csv, json)):
        raise ValueError(
            "nothing to export: use --to, --csv, --json, --onnx or --parquet, for example "
            "`jule export photos-run --to sorted`"
        )
    for file in (onnx, parquet, csv, json):
        _check_parent(file)
        check_not_own(file, run)
    folder = RunFolder(run)
    results = read_results(folder)
    check_clusters(n_clusters, results.result.tree, run)
    if parquet is not None:
        from jule.export.parquet import write_parquet

        write_parquet(parquet, results.columns(n_clusters))
        say(f"{len(results.names):,} rows: {parquet}")
    if csv is not None:
        from jule.runs.tables import labels_csv

        write_atomic(csv, labels_csv(results.columns(n_clusters)), private=False)
        say(f"{len(results.names):,} rows: {csv}")
    if json is not None:
        listed = clusters_as_json(results.columns(n_clusters))
        write_atomic(json, json_bytes(listed), private=False)
        say(f"{counted(len(listed), 'cluster')}: {json}")
    if onnx is not None:
        _export_onnx(folder, onnx, features)
    if to is not None:
        from jule.cli.reading import agreed_source
        from jule.export.pictures import export_pictures
        from jule.progress import progress_bars

        where = agreed_source(folder, source)
        with progress_bars(run.name) as bars:
            exported = export_pictures(
                folder,
                results,
                to,
                k=n_clusters,
                how=how,
                source=where,
                xmp=xmp,
                progress=lambda done: bars("sorting", done),
            )
        print_exported(exported, to)


def clusters_as_json(columns: Columns) -> list[dict[str, Any]]:
    """Return a table of labels as a list of clusters, each with its pictures.

    Examples
    --------
    >>> clusters_as_json(
    ...     {"path": ["a"], "cluster": [0], "confidence": [1.0], "rank": [1], "name": ["x"],
    ...      "index": [7]}
    ... )
    [{'cluster': 0, 'name': 'x', 'pictures': [{'path': 'a', 'index': 7, 'confidence': 1.0}]}]
    """
    clusters: dict[int, dict[str, Any]] = {}
    heads = ("path", "cluster", "confidence", "name", "index")
    for path, cluster, confidence, name, index in zip(
        *(columns[head] for head in heads), strict=True
    ):
        one = clusters.setdefault(cluster, {"cluster": cluster, "name": name, "pictures": []})
        one["pictures"].append({"path": path, "index": index, "confidence": confidence})
    return [clusters[cluster] for cluster in sorted(clusters)]


def _check_parent(file: Path | None) -> None:
    if file is not None and not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} does not exist: create it first")
    if file is not None and file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: give the name of a file")


def _export_onnx(run: RunFolder, path: Path, features: str | None) -> None:
    from jule.export.onnx import input_shape, write_onnx
    from jule.runs.encoding import encoder_of
    from jule.runs.results import read_network

    shape = run.sample_shape()
    write_onnx(read_network(run, device="cpu"), path, shape, encoder_of(run, features))
    size = " x ".join(str(side) for side in ("n", *input_shape(shape)))
    values = " (values from 0 to 255)" if run.features() else ""
    say(f"{path}: input `images` of {size}{values}, output `embedding`")


def print_exported(exported: Exported, to: Path) -> None:
    """Print how many pictures were sorted; if others were not, list them and exit with code 1."""

    n_sorted = exported.made + exported.already_there
    before = f" ({exported.already_there:,} were there before)" if exported.already_there else ""
    folders = counted(exported.n_folders, "folder")
    say(f"{counted(n_sorted, 'picture')} in {folders} in {to}{before}")
    if exported.n_others:
        others = counted(exported.n_others, "other folder")
        warn(f"{to} also has {others}, perhaps of an earlier export")
    _list(
        f"{len(exported.conflicts):,} not written, because another file has that name",
        exported.conflicts,
    )
    _list(f"{len(exported.missing):,} could not be read", exported.missing)
    if exported.conflicts or exported.missing:
        raise typer.Exit(1)


def _list(title: str, names: Sequence[str]) -> None:
    if not names:
        return
    fail(f"{title}:")
    for name in names[:MOST_LINES]:
        say(f"  {name}", err=True)
    if len(names) > MOST_LINES:
        say(f"  ... and {len(names) - MOST_LINES:,} more", err=True)
