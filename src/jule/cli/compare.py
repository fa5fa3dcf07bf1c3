"""`jule compare`: several methods on the same samples, as one table."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jule.cli.compare_input import Input, from_pixels, from_run
from jule.cli.compare_table import print_rows
from jule.cli.errors import is_run_folder
from jule.cli.numbers import whole
from jule.cli.output import counted, say, status, warn
from jule.cli.reading import (
    AspectOption,
    CacheOption,
    ColourOption,
    EncoderMean,
    EncoderScaling,
    EncoderSize,
    EncoderStd,
    Size,
    Strict,
    check_reading_options,
)
from jule.features.registry import NAMES, PHOTOS, PIXELS, is_on_disk
from jule.progress import progress_bars

if TYPE_CHECKING:
    from jule.comparison.process import Outcome
    from jule.comparison.scores import Row

ALL = "all"
LABELS, SCORES, AGREEMENT = "labels.csv", "scores.csv", "agreement.png"


def compare(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="Pictures or vectors: anything that jule cluster takes. "
            "With --features RUN it can be left out.",
            show_default=False,
        ),
    ] = None,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--clusters",
            parser=whole(1),
            metavar="INTEGER",
            help="Number of clusters. Default with --features RUN: that of the run.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names separated by commas, or all. "
            "Default: those that take about a minute at most.",
            show_default=False,
        ),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            help="pixels, or an encoder (photos, onnx:FILE, timm:MODEL, "
            "open_clip:MODEL/WEIGHTS), or a finished run: the representation that it learned."
        ),
    ] = PIXELS,
    seeds: Annotated[
        int,
        typer.Option(
            parser=whole(1),
            metavar="INTEGER",
            help="Runs of each random method, with seeds 0, 1, ...",
        ),
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"A folder for {LABELS}, {SCORES} and {AGREEMENT}."),
    ] = None,
    size: Size = None,
    aspect: AspectOption = "crop",
    colour: ColourOption = "auto",
    strict: Strict = False,
    folder_classes: Annotated[
        bool,
        typer.Option(
            "--folder-classes",
            help="Use the folder of each picture as its true class, to score the methods.",
        ),
    ] = False,
    encoder_size: EncoderSize = None,
    encoder_mean: EncoderMean = None,
    encoder_std: EncoderStd = None,
    cache: CacheOption = None,
    overwrite: Annotated[
        bool, typer.Option(help="Replace the files of an earlier comparison.")
    ] = False,
) -> None:
    """Compare clustering methods: scores, seconds and memory in one table.

    The methods get the pixels, each picture divided by its L2 norm, or what --features names.
    They run one after the other, each in a process of its own; if one fails, the others still run.
    Ctrl-C ends the comparison and shows the methods that are done.

    Examples:

      jule compare photos -k 12

      jule compare photos -k 12 --features photos

      jule compare digits.npz -k 10 --methods k-means,ac-gdl,ward --seeds 3

      jule compare --features photos-run --methods all --out comparison
    """
    check_reading_options(size, aspect, colour)
    _check_out(out, overwrite, source)
    scaling = EncoderScaling(encoder_size, encoder_mean, encoder_std)
    scaling.check(features)
    is_encoder = features in (PIXELS, PHOTOS) or is_on_disk(features)
    if is_encoder and not is_run_folder(Path(features)):
        source, k = _check_pixels(source, n_clusters)
        known, asked = _find_methods(methods)
        if features != PIXELS and (size is not None or colour != "auto"):
            raise ValueError("--size and --colour apply to pixels, not to an encoder")
        data = from_pixels(
            source, k, size, aspect, colour, strict, folder_classes, cache, features, scaling
        )
    else:
        given = {
            "--size": size is not None,
            "--aspect": aspect != "crop",
            "--colour": colour != "auto",
            "--strict": strict,
            "--folder-classes": folder_classes,
            "--cache": cache is not None,
        }
        _check_features(features, [option for option, is_given in given.items() if is_given])
        known, asked = _find_methods(methods)
        data = from_run(Path(features), source, n_clusters)
    say(f"{data.description}; {counted(data.n_clusters, 'cluster')}")
    chosen = _choose(known, data) if asked is None else asked
    outcomes, is_stopped = _run(data, known, chosen, seeds)
    rows = _score(data, outcomes)
    if rows:
        print_rows(data, rows, seeds)
    for outcome in outcomes:
        for message in outcome.warnings:
            warn(f"{outcome.method}: {message}")
    if out is not None and any(row.labels is not None for row in rows):
        _write(out, data, rows)
    if is_stopped:
        say(f"jule: stopped; {len(outcomes)} of {len(chosen)} methods were run", err=True)
        raise typer.Exit(130)
    if all(outcome.reason for outcome in outcomes):
        raise ValueError("no method finished: the reasons are below the table")


# ---- what to run


def _check_pixels(source: str | None, n_clusters: int | None) -> tuple[str, int]:
    if source is None:
        raise ValueError("say what to compare the methods on: a SOURCE, or --features RUN")
    if is_run_folder(source):
        raise ValueError(
            f"{source} is a run folder: compare on its features with --features {source}, or give "
            "the folder of its pictures"
        )
    if n_clusters is None:
        raise ValueError("say how many clusters the methods should find (-k)")
    return source, n_clusters


def _check_features(features: str, options: Sequence[str]) -> None:
    if not Path(features).is_dir():
        raise ValueError(
            f"--features must be {NAMES}, or else a run folder, and {features} is neither"
        )
    if options:
        raise ValueError(f"{options[0]} applies to pixels only, not to --features {features}")


def _find_methods(given: str | None) -> tuple[dict[str, type[Any]], list[str] | None]:
    """Return all methods by name, and the names of those that were asked for."""
    with status("loading"):
        from jule.comparison.methods import known_methods
        from jule.text import match_name

    known = known_methods()
    if given is None:
        return known, None
    names = list(filter(None, map(str.strip, given.split(","))))
    if ALL in map(str.lower, names):
        return known, list(known)
    if not names:
        raise ValueError(f"--methods needs names, or all: the known ones are {', '.join(known)}")
    spellings = {name: method.__name__ for name, method in known.items()}
    return known, list(dict.fromkeys(match_name(name, spellings, "method") for name in names))


def _choose(known: Mapping[str, type[Any]], data: Input) -> list[str]:
    """Return the methods that take about a minute at most, and print which were left out."""
    from jule.comparison.methods import choose_quick

    chosen, left_out = choose_quick(known, *data.vectors.shape)
    if left_out:
        say(
            f"left out because they may take minutes: {', '.join(left_out)}; to run them, too: "
            "--methods all"
        )
    return chosen


# ---- run and score


def _run(
    data: Input, known: Mapping[str, type[Any]], chosen: Sequence[str], seeds: int
) -> tuple[list[Outcome], bool]:
    """Run the methods; return the outcomes so far and whether Ctrl-C stopped them."""
    from jule.comparison.process import run_method, stored_vectors

    outcomes: list[Outcome] = []
    try:
        with (
            _sigterm_as_ctrl_c(),
            stored_vectors(data.vectors) as path,
            progress_bars("comparing") as show,
        ):
            for place, name in enumerate(chosen):

                def progress(share: float, place: int = place, name: str = name) -> None:
                    stage = f"{name} ({place + 1} of {len(chosen)})"
                    show(stage, (place + share) / len(chosen))

                progress(0.0)
                outcomes.append(
                    run_method(
                        name,
                        known[name],
                        path,
                        data.n_clusters,
                        seeds=range(seeds),
                        progress=progress,
                    )
                )
    except KeyboardInterrupt:
        return outcomes, True
    return outcomes, False


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Let a request to terminate stop the comparison like Ctrl-C, so that nothing is lost."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _score(data: Input, outcomes: Sequence[Outcome]) -> list[Row]:
    from jule.comparison.scores import make_geometry, score_outcome, sort_rows

    finished = [*outcomes, *data.own]
    if data.labels is not None:
        return sort_rows([score_outcome(one, true=data.labels) for one in finished], "nmi")
    if not any(one.labels for one in finished):
        return [score_outcome(one) for one in finished]
    with status("scoring"):
        geometry = make_geometry(data.vectors, data.graph)
        rows = [score_outcome(one, geometry=geometry) for one in finished]
    return sort_rows(rows, "modularity")


# ---- files


def _check_out(out: Path | None, overwrite: bool, source: str | None) -> None:
    """Raise unless the folder can be made, is empty, or has only files that may be replaced."""
    from jule.files import is_leftover

    if out is None:
        return
    pictures = None if source is None else Path(source)
    if pictures and pictures.is_dir() and out.resolve().is_relative_to(pictures.resolve()):
        raise ValueError(
            f"{out} is inside {source}, among the pictures, and would be read with them next time: "
            "choose another folder"
        )
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise FileExistsError(f"{nearest} is a file: choose another folder for --out")
    if not os.access(nearest, os.W_OK):
        raise PermissionError(f"{nearest} cannot be written to: choose another folder for --out")
    if not out.exists():
        return
    found = {name for name in os.listdir(out) if not is_leftover(name)}
    if found - {LABELS, SCORES, AGREEMENT} or (found and SCORES not in found):
        raise FileExistsError(f"{out} has other files in it: choose another folder")
    if found and not overwrite:
        raise FileExistsError(
            f"{out} has an earlier comparison in it: choose another folder, or replace it "
            "(--overwrite)"
        )


def _write(out: Path, data: Input, rows: Sequence[Row]) -> None:
    from jule.comparison.scores import agreement
    from jule.comparison.tables import labels_table, scores_table
    from jule.files import write_atomic

    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / SCORES, scores_table(rows), private=False)
    write_atomic(out / LABELS, labels_table(data.names, data.indices, rows), private=False)
    found = {row.method: row.labels for row in rows if row.labels is not None}
    shown = found if data.labels is None else {"true classes": data.labels, **found}
    try:
        from jule.report.agreement import agreement_png

        with status("drawing"):
            picture = agreement_png(list(shown), agreement(list(shown.values())))
    except ImportError as error:
        (out / AGREEMENT).unlink(missing_ok=True)  # that of an earlier comparison
        warn(f"no {AGREEMENT}: {error}")
        say(f"results: {out / SCORES}, {out / LABELS}")
        return
    write_atomic(out / AGREEMENT, picture, private=False)
    say(f"results: {out / SCORES}, {out / LABELS}, {out / AGREEMENT}")
