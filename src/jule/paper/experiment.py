"""Base class of the paper's experiments: cells to measure, and tables to render from records.

To add an experiment, derive from `Experiment` in a new module and list it in `jule.paper.registry`.
The driver (`jule.paper.driver`) and ``jule reproduce`` need nothing else.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NamedTuple

from jule.images.datasets import dataset_names
from jule.paper.numbers import DISPLAY
from jule.paper.records import Record
from jule.progress import Progress
from jule.text import match_name

Renderer = Callable[[Path], str]  # from the results folder to Markdown
Content = str | Callable[[], str]  # of a file; figures are functions that draw them


@dataclass(frozen=True)
class Request:
    """The part of an experiment to measure; None stands for the experiment's default.

    Examples
    --------
    >>> Request(datasets=("usps",), seeds=1).options()
    ['datasets', 'seeds']
    """

    datasets: tuple[str, ...] | None = None
    seeds: int | None = None
    preset: str | None = None
    methods: tuple[str, ...] | None = None

    def options(self) -> list[str]:
        """Return the names of the options that were given."""
        return [name for name, value in vars(self).items() if value is not None]


@dataclass(frozen=True)
class Cell:
    """One unit of work, which has one record.

    Attributes
    ----------
    path
        Path of its record, relative to the results folder.
    dataset
        Name of the data set.
    preset
        The settings to start from, if the experiment has several.
    seed
        Random seed; None if nothing is random.
    method
        Name of the method, if the experiment compares several.
    source
        Name of the data set that the network is learned on, if that is a different one.

    Examples
    --------
    >>> Cell("joint/paper/usps-1.json", "usps", "paper", 1).title
    'usps, paper, seed 1'
    """

    path: str
    dataset: str
    preset: str | None = None
    seed: int | None = None
    method: str | None = None
    source: str | None = None

    @property
    def title(self) -> str:
        """A short description of the cell."""
        seed = None if self.seed is None else f"seed {self.seed}"
        sets = self.dataset if self.source is None else f"{self.source} to {self.dataset}"
        parts = (sets, self.preset, self.method, seed)
        return ", ".join(part for part in parts if part is not None)

    def command(self, experiment: str) -> str:
        """Return a command that measures this cell.

        Examples
        --------
        >>> Cell("raw-gdl/usps.json", "usps").command("raw-gdl")
        'jule reproduce raw-gdl --datasets usps'
        """
        sets = self.dataset if self.source is None else f"{self.source},{self.dataset}"
        command = f"jule reproduce {experiment} --datasets {sets}"
        command += "" if self.preset is None else f" --preset {self.preset}"
        command += "" if self.method is None else f" --methods {shlex.quote(self.method)}"
        return command + ("" if self.seed is None else f" --seeds {self.seed + 1}")


@dataclass(frozen=True)
class Context:
    """Folder and progress callback for measuring a cell.

    Attributes
    ----------
    folder
        The cell's folder for unfinished work, so that it can be resumed. It may not exist yet, and
        is removed once the record is written.
    runs
        The folder for work that several cells share, and which is kept.
    progress
        Called with the name of a stage and the fraction of it that is done.
    """

    folder: Path
    runs: Path
    progress: Progress


class Comparison(NamedTuple):
    """A number of the paper, and ours: the mean over the seeds.

    Examples
    --------
    >>> round(Comparison("USPS, RC", 0.967, 0.913).gain, 3)
    0.054
    >>> round(Comparison("1-NN error, 2-d", 0.02, 0.05, is_error=True).gain, 3)
    0.03
    """

    what: str
    ours: float
    papers: float
    is_error: bool = False  # less is better

    @property
    def gain(self) -> float:
        """By how much ours is better; negative if it is worse."""
        return self.papers - self.ours if self.is_error else self.ours - self.papers


class Experiment(ABC):
    """An experiment of the paper.

    Attributes
    ----------
    name
        Name for ``jule reproduce``, and of its folder under results/.
    title
        The part of the paper that it reproduces.
    datasets
        The data sets that are measured by default.
    options
        The fields of `Request` that it understands.
    published
        The requests whose results are published.
    expected
        How long it takes on two cores.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    datasets: ClassVar[tuple[str, ...]]
    options: ClassVar[tuple[str, ...]] = ("datasets",)
    published: ClassVar[tuple[Request, ...]] = (Request(),)
    expected: ClassVar[str]

    def requests(self) -> tuple[Request, ...]:
        """Return what ``jule reproduce all`` measures: the default, and what is published."""
        return tuple(dict.fromkeys((*self.published, Request())))

    @abstractmethod
    def cells(self, request: Request) -> list[Cell]:
        """Return the cells of a checked request, in the order in which to measure them."""

    @abstractmethod
    def is_current(self, cell: Cell, record: Record) -> bool:
        """Return whether a record was measured with the settings of the cell."""

    @abstractmethod
    def measure(self, cell: Cell, context: Context) -> Record:
        """Measure one cell and return its record; the driver writes it."""

    @abstractmethod
    def summary(self, record: Record) -> str:
        """Return one line or several that show a record beside the paper's numbers."""

    @abstractmethod
    def tables(self) -> Mapping[str, Renderer]:
        """Return the renderers of the Markdown tables, by table name."""

    def comparisons(self, results: Path) -> list[Comparison]:
        """Return the numbers that the paper has as well, of what was measured."""
        del results  # figures have no numbers
        return []

    def files(self, results: Path) -> Mapping[str, Content]:
        """Return further files that are rendered from the records, by their path in results.

        Figures are functions that return SVG text (see `jule.paper.figures`). They are left out if
        calling them raises ImportError.
        """
        del results  # most experiments have none
        return {}

    def render(self, results: Path) -> dict[str, str]:
        """Return all tables of the experiment as Markdown."""
        return {name: table(results) for name, table in self.tables().items()}

    def check(self, request: Request) -> Request:
        """Return the request with canonical data set names; raise for unknown options."""
        for option in request.options():
            if option not in self.options:
                known = ", ".join(f"--{name}" for name in self.options)
                raise ValueError(f"{self.name} has no option --{option}; it has {known}")
        if request.datasets is None:
            return request
        sets = {name: DISPLAY.get(name, name) for name in (*self.datasets, *dataset_names())}
        chosen = tuple(match_name(name, sets, "data set") for name in request.datasets)
        return replace(request, datasets=chosen)
