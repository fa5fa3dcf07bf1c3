"""Fig. 1 and the last two figures: the clusters of a run at its first, a middle and final stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.evaluation import nmi
from jule.images import load_dataset
from jule.images.datasets import has_dataset
from jule.joint.config import Config
from jule.paper.clustering import SUPPLIED
from jule.paper.experiment import Cell, Content, Context, Experiment, Renderer, Request
from jule.paper.figures import svg
from jule.paper.learned import learned_config, learned_run
from jule.paper.numbers import DISPLAY, initial_clusters
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jule.runs.snapshots import Snapshot

SEED = 0  # of the run that is shown
STEPS = 999  # positions are recorded as whole numbers up to this, which is finer than a pixel
DPI = 90  # of the points, which are many
AZIMUTH, ELEVATION = np.deg2rad(-60.0), np.deg2rad(30.0)  # as matplotlib's 3D axes have by default


class Stages(Experiment):
    """First three principal components of all samples, coloured by cluster, at three stages."""

    name = "stages"
    title = "Clusters at the first, a middle and the final stage (Fig. 1 and the last two)"
    expected = "1 min after table4"
    datasets = ("coil20", "coil100", "usps", "mnist-test", "umist", "cmu-pie")

    def cells(self, request: Request) -> list[Cell]:
        supplied = [name for name in SUPPLIED if has_dataset(name)]
        return [
            Cell(f"{self.name}/{name}.json", name)
            for name in request.datasets or (*self.datasets, *supplied)
        ]

    def is_current(self, cell: Cell, record: Record) -> bool:
        config = Config.from_json(record["joint"])
        return config == learned_config(cell.dataset, SEED, record["clusters"])

    def measure(self, cell: Cell, context: Context) -> Record:
        from jule.report.inputs import read_snapshots
        from jule.report.summary import stages
        from jule.runs.folder import RunFolder

        data = load_dataset(cell.dataset)
        run = learned_run(data, SEED, context)
        shots = stages(read_snapshots(RunFolder(run.folder), len(data)))
        return {
            "dataset": cell.dataset,
            "samples": len(data),
            "clusters": data.n_clusters,
            "seed": SEED,
            "joint": run.results.config.to_json(),
            "shown": len(shots[0].samples),
            "stages": [_stage(shot, data.labels) for shot in shots],
        }

    def summary(self, record: Record) -> str:
        counts = [f"{stage['clusters']:,}" for stage in record["stages"]]
        paper = initial_clusters(record["dataset"])
        first = "-" if paper is None else f"{paper:,}"
        return f"{record['dataset']:11s} {' to '.join(counts)} clusters  (paper from {first})"

    def tables(self) -> Mapping[str, Renderer]:
        return {self.name: self._table}

    def _table(self, results: Path) -> str:
        rows = []
        for name, record in self._records(results).items():
            shown = [
                f"{stage['clusters']:,} ({stage['nmi of the samples shown']:.3f})"
                for stage in record["stages"]
            ]
            paper = initial_clusters(name)
            rows.append([DISPLAY[name], *shown, "-" if paper is None else f"{paper:,}"])
        header = ["clusters (NMI)", "first stage", "middle", "final", "first stage, paper"]
        return markdown(header, rows)

    def files(self, results: Path) -> Mapping[str, Content]:
        return {
            f"{self.name}/{name}.svg": partial(draw_stages, record["stages"])
            for name, record in self._records(results).items()
        }

    def _records(self, results: Path) -> dict[str, Record]:
        paths = {name: results / self.name / f"{name}.json" for name in DISPLAY}
        return {name: read_record(path) for name, path in paths.items() if path.exists()}


def _stage(shot: Snapshot, classes: NDArray[np.int64]) -> dict[str, Any]:
    """Return what is recorded of a snapshot.

    Numbers are recorded as text: with one line per number, the file would be far longer.
    """
    positions = whole_positions(shot.positions)
    return {
        "periods": shot.period,
        "clusters": shot.n_clusters,
        "nmi of the samples shown": nmi(classes[shot.samples], shot.labels),
        **{axis: _text(positions[:, place]) for place, axis in enumerate("xyz")},
        "cluster": _text(shot.labels),
    }


def whole_positions(positions: NDArray[np.floating]) -> NDArray[np.int64]:
    """Scale positions to whole numbers from 0, with the same scale along all axes.

    Examples
    --------
    >>> whole_positions(np.array([[0.0, 1.0, 5.0], [0.5, 3.0, 5.0]])).tolist()
    [[0, 0, 0], [250, 999, 0]]
    """
    low = positions.min(axis=0)
    largest = float((positions - low).max()) or 1.0
    scaled: NDArray[np.int64] = np.rint((positions - low) * (STEPS / largest)).astype(np.int64)
    return scaled


def _text(values: NDArray[np.integer]) -> str:
    return " ".join(map(str, values.tolist()))


def _numbers(text: str) -> NDArray[np.int64]:
    return np.array(text.split(), np.int64)


def project(positions: NDArray[np.integer]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Project positions (n, 3) orthographically, and return the order in which to draw them.

    Points at the same depth keep their order, so that a figure is the same on every machine.
    matplotlib's 3D axes do not guarantee this.

    Returns
    -------
    seen
        (n, 2) horizontal and vertical positions.
    order
        Indices of the samples, farthest first.

    Examples
    --------
    >>> seen, order = project(np.array([[0, 0, 0], [0, -9, 0], [0, 0, 1]]))
    >>> seen.round(2).tolist()
    [[0.0, 0.0], [-4.5, -3.9], [0.0, 0.87]]
    >>> order.tolist()
    [0, 2, 1]
    """
    x, y, z = positions.T.astype(np.float64)
    right = -np.sin(AZIMUTH) * x + np.cos(AZIMUTH) * y
    towards = np.cos(AZIMUTH) * x + np.sin(AZIMUTH) * y
    up = np.cos(ELEVATION) * z - np.sin(ELEVATION) * towards
    nearness = np.sin(ELEVATION) * z + np.cos(ELEVATION) * towards
    order = np.argsort(nearness.round(6), kind="stable")  # the last digits depend on the machine
    return np.stack([right, up], axis=1), order


def draw_stages(stages: Sequence[Mapping[str, Any]]) -> str:
    """Return a figure of the stages of a run side by side, as SVG.

    Examples
    --------
    >>> stage = {"periods": 0, "clusters": 2, "x": "0 9", "y": "0 9", "z": "0 9", "cluster": "0 1"}
    >>> "2 clusters" in draw_stages([stage])
    True
    """
    from jule.report.plots import cluster_colours

    def draw(figure: Figure) -> None:
        for place, stage in enumerate(stages):
            positions = np.stack([_numbers(stage[axis]) for axis in "xyz"], axis=1)
            seen, order = project(positions)
            x, y = seen[order].T
            colours = cluster_colours(_numbers(stage["cluster"]))
            axes = figure.add_subplot(1, len(stages), place + 1)
            axes.scatter(x, y, c=colours[order], s=4, linewidths=0, rasterized=True)
            axes.set_title(_title(stage))
            axes.set_axis_off()
            axes.set_aspect("equal", adjustable="datalim")  # titles stay in line

    return svg(draw, width=3.0 * len(stages), height=3.0, dpi=DPI)


def _title(stage: Mapping[str, Any]) -> str:
    periods = stage["periods"]
    when = "before training" if periods == 0 else f"after period {periods}"
    return f"{stage['clusters']:,} clusters, {when}"
