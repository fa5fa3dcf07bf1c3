"""All experiments by name."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from jule.paper.approximation import Approximation
from jule.paper.cifar10 import Cifar10
from jule.paper.clustering import Table3, Table4, Table10, Table11
from jule.paper.embedding import Embedding
from jule.paper.experiment import Experiment, Renderer
from jule.paper.faces import Faces
from jule.paper.features import Features
from jule.paper.joint import Joint
from jule.paper.overview import overview
from jule.paper.raw_gdl import RawGDL
from jule.paper.records import naming_results
from jule.paper.reliability import Reliability
from jule.paper.robustness import Robustness
from jule.paper.stages import Stages
from jule.paper.transfer import TransferCoil, TransferDigits
from jule.text import match_name

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        RawGDL(),
        Joint(),
        Table3(),
        Table10(),
        Table4(),
        Table11(),
        TransferCoil(),
        TransferDigits(),
        Reliability(),
        Stages(),
        Faces(),
        Cifar10(),
        Approximation(),
        Robustness(),
        Features(),
        Embedding(),
    )
}


def find_experiment(name: str) -> Experiment:
    """Return an experiment by name; raise for an unknown name and suggest similar ones.

    Examples
    --------
    >>> find_experiment("raw_gdl").title
    'AC-GDL on image intensities (Tables 3 and 10)'
    """
    return EXPERIMENTS[match_name(name, {each: each for each in EXPERIMENTS}, "experiment")]


def experiment_tables() -> dict[str, Renderer]:
    """Return the renderers of all experiments' tables.

    Examples
    --------
    >>> "joint default" in experiment_tables()
    True
    """
    tables = {
        name: partial(_render, experiment.name, table)
        for experiment in EXPERIMENTS.values()
        for name, table in experiment.tables().items()
    }
    return {"overview": partial(overview, EXPERIMENTS.values()), **tables}


def _render(name: str, table: Renderer, results: Path) -> str:
    with naming_results(name):
        return table(results)
