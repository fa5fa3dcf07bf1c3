"""Run an experiment: measure the cells that have no current record, and report all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from jule.files import remove_tree
from jule.paper.experiment import Cell, Context, Experiment, Request
from jule.paper.records import REMEDY, Record, read_record, write_record
from jule.progress import progress_bars


def run_experiment(
    experiment: Experiment,
    request: Request,
    *,
    results: Path,
    runs: Path,
    say: Callable[[str], None],
) -> int:
    """Measure the requested cells of an experiment, and write a record for each.

    Cells that have a record with the same settings are not measured again; interrupted ones are
    resumed where the experiment can do so.

    Parameters
    ----------
    experiment
        The experiment.
    request
        The cells to measure.
    results
        Where records are written and read.
    runs
        Where unfinished work is kept.
    say
        Called with every line about a cell, which show its scores beside the paper's.

    Returns
    -------
    stored
        Number of cells that had a current record already.
    """
    _check_writable(results)
    stored = 0
    for cell in experiment.cells(experiment.check(request)):
        record = _current_record(experiment, cell, results)
        stored += record is not None
        if record is None:
            folder = runs / cell.path.removesuffix(".json").replace("/", "-")
            with progress_bars(cell.title) as show:
                measured = experiment.measure(cell, Context(folder, runs, show))
            about = {"experiment": experiment.name, "command": cell.command(experiment.name)}
            record = write_record(results / cell.path, about | measured)
            remove_tree(folder)
        try:
            summary = experiment.summary(record)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"{results / cell.path} is damaged ({what}). {REMEDY}") from error
        for line in summary.splitlines():
            say(line)
    return stored


def _check_writable(results: Path) -> None:
    """Raise if no results can be written, before anything is measured in vain."""
    if results.exists() and not results.is_dir():
        raise ValueError(f"{results} is a file: give a folder for the results")
    existing = next(each for each in (results, *results.absolute().parents) if each.exists())
    if not os.access(existing, os.W_OK):
        raise ValueError(f"{existing} cannot be written to: give another folder with --results")


def _current_record(experiment: Experiment, cell: Cell, results: Path) -> Record | None:
    path = results / cell.path
    if not path.exists():
        return None
    record = read_record(path)
    try:
        return record if experiment.is_current(cell, record) else None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} has settings that are not understood ({error}). {REMEDY}"
        ) from error


def count_records(experiment: Experiment, results: Path) -> tuple[int, int]:
    """Return how many cells of an experiment have a current record, and how many there are.

    Examples
    --------
    >>> from jule.paper.registry import find_experiment
    >>> count_records(find_experiment("raw-gdl"), Path("nowhere"))
    (0, 7)
    """
    requests = experiment.requests()
    cells = {cell.path: cell for request in requests for cell in experiment.cells(request)}
    current = (_current_record(experiment, cell, results) for cell in cells.values())
    return sum(record is not None for record in current), len(cells)
