"""Reliability (appendix): how many of the nearest neighbours of an image are of its class."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.forward import nearest_neighbors, prepare
from jule.images import load_dataset
from jule.images.datasets import has_dataset
from jule.joint.config import Config
from jule.paper.clustering import SUPPLIED
from jule.paper.experiment import Cell, Content, Context, Experiment, Renderer, Request
from jule.paper.figures import COLOURS, add_legend, svg
from jule.paper.joint import SEEDS
from jule.paper.learned import learned_config, learned_run
from jule.paper.numbers import DISPLAY
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 100  # neighbours, as in the paper's figure
SHOWN = (1, 5, 20, 50, 100)  # in the table


class Reliability(Experiment):
    """Purity of the K nearest neighbours of the raw images, and of the learned vectors."""

    name = "reliability"
    title = "Purity of the K nearest neighbours, raw and learned (appendix)"
    expected = "5 min after table4"
    datasets = ("coil20", "coil100", "usps", "mnist-test", "umist", "cmu-pie")
    options = ("datasets", "seeds")

    def cells(self, request: Request) -> list[Cell]:
        supplied = [name for name in SUPPLIED if has_dataset(name)]
        seeds = SEEDS if request.seeds is None else request.seeds
        cells = []
        for name in request.datasets or (*self.datasets, *supplied):
            cells.append(Cell(f"{self.name}/raw/{name}.json", name))
            cells += [
                Cell(f"{self.name}/learned/{name}-{seed}.json", name, seed=seed)
                for seed in range(seeds)
            ]
        return cells

    def is_current(self, cell: Cell, record: Record) -> bool:
        if cell.seed is None:
            return bool(record["preparation"] == "l2")
        config = Config.from_json(record["joint"])
        return config == learned_config(cell.dataset, cell.seed, record["clusters"])

    def measure(self, cell: Cell, context: Context) -> Record:
        data = load_dataset(cell.dataset)
        about: dict[str, Any]
        if cell.seed is None:
            vectors, about = prepare(data.images, "l2"), {"preparation": "l2"}
        else:
            learned = learned_run(data, cell.seed, context).results
            vectors, about = learned.result.embedding, {"joint": learned.config.to_json()}
        start = time.perf_counter()
        context.progress("neighbours", 0.0)
        found = nearest_neighbors(vectors, min(MOST, len(data) - 1))
        return {
            "dataset": cell.dataset,
            "samples": len(data),
            "clusters": data.n_clusters,
            "seed": cell.seed,
            **about,
            "purity": neighbor_purity(found.indices, data.labels).round(6).tolist(),
            "seconds": time.perf_counter() - start,
        }

    def summary(self, record: Record) -> str:
        which = "raw" if record["seed"] is None else f"learned, seed {record['seed']}"
        purity = record["purity"]
        parts = [f"K={k} {purity[k - 1]:.3f}" for k in SHOWN if k <= len(purity)]
        return f"{record['dataset']:11s} {which:16s} purity  " + "  ".join(parts)

    def tables(self) -> Mapping[str, Renderer]:
        return {self.name: self._table}

    def _table(self, results: Path) -> str:
        rows = []
        for name in DISPLAY:
            raw, learned = self.curves(results, name)
            if raw is None or learned is None:
                continue
            cells = [f"{raw[k - 1]:.3f} / {learned[:, k - 1].mean():.3f}" for k in SHOWN]
            rows.append([DISPLAY[name], *cells, str(len(learned))])
        header = ["raw / learned", *(f"K = {k}" for k in SHOWN), "seeds"]
        return markdown(header, rows)

    def files(self, results: Path) -> Mapping[str, Content]:
        curves = {DISPLAY[name]: self.curves(results, name) for name in DISPLAY}
        whole = {
            name: (raw, learned.mean(axis=0))
            for name, (raw, learned) in curves.items()
            if raw is not None and learned is not None
        }
        return {f"{self.name}/purity.svg": partial(draw_purity, whole)} if whole else {}

    def curves(
        self, results: Path, dataset: str
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """Return the purity at every K of the raw images, and per seed of the learned vectors."""
        raw = results / self.name / "raw" / f"{dataset}.json"
        learned = sorted((results / self.name / "learned").glob(f"{dataset}-[0-9]*.json"))
        return (
            np.array(read_record(raw)["purity"]) if raw.exists() else None,
            np.array([read_record(path)["purity"] for path in learned]) if learned else None,
        )


def neighbor_purity(
    neighbors: NDArray[np.integer], classes: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the mean fraction of the K nearest neighbours of the same class, for every K.

    Parameters
    ----------
    neighbors
        (n, m) the neighbours of every sample, nearest first.
    classes
        (n,) true classes.

    Returns
    -------
    ndarray of shape (m,)
        For K = 1, ..., m.

    Examples
    --------
    >>> neighbor_purity(np.array([[1, 2], [0, 2], [1, 0]]), np.array([0, 0, 1])).round(3).tolist()
    [0.667, 0.333]
    """
    same = classes[neighbors] == classes[:, None]
    within = np.cumsum(same, axis=1) / np.arange(1, neighbors.shape[1] + 1)
    purity: NDArray[np.float64] = within.mean(axis=0)
    return purity


def draw_purity(curves: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]) -> str:
    """Return a figure of the purity at every K, raw and learned side by side, as SVG.

    Examples
    --------
    >>> "USPS" in draw_purity({"USPS": (np.array([0.9, 0.8]), np.array([1.0, 0.9]))})
    True
    """

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        for which, (axes, title) in enumerate(zip(panels, ("raw", "learned"), strict=True)):
            for colour, (name, both) in zip(COLOURS, curves.items(), strict=False):
                purity = both[which]
                axes.plot(range(1, len(purity) + 1), purity, color=colour, label=name)
            axes.set(title=title, xlabel="K", ylim=(0.0, 1.02))
        panels[0].set_ylabel("purity of the K nearest neighbours")
        add_legend(figure)

    return svg(draw, height=3.2)
