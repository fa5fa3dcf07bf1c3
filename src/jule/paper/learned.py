"""Joint learning with default settings, in run folders that several experiments share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jule.images import Dataset
from jule.joint.config import Config
from jule.paper.experiment import Cell, Context
from jule.paper.joint import config_for, learn

if TYPE_CHECKING:
    from jule.backward import Embedder
    from jule.runs.results import RunResults


@dataclass(frozen=True, eq=False)
class LearnedRun:
    """A finished run of joint learning: its folder and its results."""

    folder: Path
    results: RunResults

    def network(self) -> Embedder:
        """Load the trained network."""
        from jule.runs.folder import RunFolder
        from jule.runs.results import read_network

        return read_network(RunFolder(self.folder))


def learned_config(dataset: str, seed: int, n_clusters: int) -> Config:
    """Return the settings with which a data set is learned for other experiments.

    Examples
    --------
    >>> learned_config("usps", 1, 10).seed
    1
    """
    return config_for(Cell("", dataset, "default", seed), n_clusters)


def learned_run(data: Dataset, seed: int, context: Context) -> LearnedRun:
    """Run joint learning, or read the run if an experiment has left it in the folder of runs."""
    config = learned_config(data.name, seed, data.n_clusters)
    folder = context.runs / f"learned-{data.name}-{seed}"
    return LearnedRun(folder, learn(data, config, folder, context.progress))
