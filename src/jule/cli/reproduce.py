"""`jule reproduce`: run the paper's experiments, and render their results as tables."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.numbers import whole
from jule.cli.output import say

if TYPE_CHECKING:
    from jule.paper.experiment import Experiment, Request

RESULTS = Path("results")


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="An experiment, or all, or tables.", show_default=False
        ),
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(
            help="Names separated by commas. Default: those shown by --list.", show_default=False
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=whole(1),
            metavar="INTEGER",
            help="Number of runs, with seeds 0, 1, ... Default: as published.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="default, or paper: train as the authors did.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods of the experiment, separated by commas. Default: all.",
            show_default=False,
        ),
    ] = None,
    results: Annotated[Path, typer.Option(help="Where results are written and read.")] = RESULTS,
    runs: Annotated[Path, typer.Option(help="Where unfinished runs are kept.")] = Path("runs"),
    list_: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
) -> None:
    """Run the paper's experiments and show the results beside the paper's numbers.

    `all` runs every experiment whose data is there; `tables` only renders existing results.
    Results that exist with the same settings are not measured again, unless --results is new.
    Interrupted runs are resumed.
    In a checkout, the tables are written to README.md and docs/.
    Otherwise, or with --results, they are printed.
    --list shows what has been measured, and how many numbers match or beat the paper's.

    Examples:

      jule reproduce --list

      jule reproduce raw-gdl --datasets usps,mnist-test

      jule reproduce joint --datasets usps --preset paper --seeds 1
    """
    from jule.paper.driver import run_experiment
    from jule.paper.experiment import Request
    from jule.paper.registry import EXPERIMENTS, find_experiment

    request = Request(_names("--datasets", datasets), seeds, preset, _names("--methods", methods))
    if list_ or name is None:
        _list_experiments(results)
        return
    if name in ("all", "tables"):
        _check_no_options(name, request)
    if name == "tables":
        if not results.is_dir():
            raise ValueError(f"there is no folder {results}: nothing can be rendered")
        _render(list(EXPERIMENTS.values()), results, into_pages=results == RESULTS)
        return
    experiments = list(EXPERIMENTS.values()) if name == "all" else [find_experiment(name)]
    for experiment in experiments:
        missing = _missing_data(experiment) if name == "all" else []
        if missing:
            say(f"{experiment.name} is left out: {', '.join(missing)} not found in $JULE_DATA")
            continue
        for each in experiment.requests() if name == "all" else (request,):
            stored = run_experiment(experiment, each, results=results, runs=runs, say=say)
            if stored and name != "all":
                say(
                    f"{stored} of these results were read from {results}; "
                    "--results FOLDER, with another folder, measures them anew"
                )
    _render(experiments, results, into_pages=results == RESULTS)


def _names(option: str, text: str | None) -> tuple[str, ...] | None:
    """Return the names, separated by commas, that an option was given; None without it."""
    if text is None:
        return None
    names = tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    if not names:
        raise ValueError(f"{option} names nothing: leave it out, or give names separated by commas")
    return names


def _check_no_options(name: str, request: Request) -> None:
    if request.options():
        raise ValueError(
            f"--{request.options()[0]} applies to a single experiment, not to {name!r}"
        )


def _missing_data(experiment: Experiment) -> list[str]:
    from jule.images.datasets import has_dataset

    return [name for name in experiment.datasets if not has_dataset(name)]


def _list_experiments(results: Path) -> None:
    """Print, per experiment, what it reproduces, how far it has got and how long it takes.

    In the columns of a table, these would be a word wide on a terminal of 80 characters.
    """
    from jule.paper.registry import EXPERIMENTS

    if results.exists() and not results.is_dir():
        raise ValueError(f"{results} is a file: give the folder of the results")
    if not results.is_dir():
        say(f"no folder {results}: run this in a checkout, or name it with --results")
    indent = max(map(len, EXPERIMENTS)) + 2
    width = max(20, shutil.get_terminal_size().columns - indent)
    for experiment in EXPERIMENTS.values():
        paragraphs = [
            experiment.title,
            *_state(experiment, results),
            f"on {', '.join(experiment.datasets)}",
        ]
        if missing := _missing_data(experiment):
            paragraphs.append(f"missing: {', '.join(missing)}")
        wrap = textwrap.TextWrapper(width, break_on_hyphens=False).wrap  # names stay whole
        lines = [line for paragraph in paragraphs for line in wrap(paragraph)]
        say(f"{experiment.name:{indent}}{lines[0]}")
        for line in lines[1:]:
            say(" " * indent + line)


def _state(experiment: Experiment, results: Path) -> list[str]:
    """Return how much of an experiment is measured, and how it compares with the paper."""
    from jule.paper.driver import count_records
    from jule.paper.overview import count_reached

    try:
        measured, cells = count_records(experiment, results)
        reached, numbers = count_reached(experiment.comparisons(results))
    except (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError) as error:
        return [f"a result cannot be read ({error})"]
    state = [f"{measured} of {cells} measured; all of them take {experiment.expected}"]
    if numbers:
        state.append(f"{reached} of {numbers} numbers match or beat the paper's")
    return state


def _write_files(experiments: list[Experiment], results: Path) -> list[Path]:
    """Write the files that experiments render beside their records; return those that changed.

    Figures that cannot be drawn are left out, with a line that says why.
    """
    from jule.files import write_atomic
    from jule.paper.records import naming_results

    changed = []
    for experiment in experiments:
        for name, render in experiment.files(results).items():
            path = results / name
            try:
                with naming_results(experiment.name):
                    text = render if isinstance(render, str) else render()
            except ImportError as error:
                say(f"left out {path}: {error}")
                continue
            content = f"{text}\n".encode()
            if not path.exists() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(path, content, private=False)
                changed.append(path)
    return changed


def _render(experiments: list[Experiment], results: Path, *, into_pages: bool) -> None:
    """Write all tables into the pages of a checkout, or print those of the experiments."""
    from jule.paper.records import naming_results
    from jule.paper.registry import experiment_tables
    from jule.paper.tables import RESULTS as MARKER
    from jule.paper.tables import fill_pages, has_tables

    here = Path()
    if into_pages and has_tables(here, MARKER):
        changed = fill_pages(here, MARKER, experiment_tables(), results)
        changed += _write_files(experiments, results)
        for page in changed:
            say(f"wrote {page}")
        if not changed:
            say("all tables are up to date")
        return
    for experiment in experiments:
        with naming_results(experiment.name):
            tables = experiment.render(results)
        for name, table in tables.items():
            for line in ("", name, "", *table.split("\n")):
                say(line)
    for path in _write_files(experiments, results):
        say(f"wrote {path}")
