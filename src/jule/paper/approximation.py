"""Merging with the approximated affinities of the appendix, against exact merging."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.evaluation import scores
from jule.forward import (
    affinity_graph,
    default_min_cluster_size,
    merge_clusters,
    nearest_neighbor_components,
    nearest_neighbors,
    prepare,
)
from jule.forward.agglomerate import grow_tree
from jule.forward.linkage import Update
from jule.images import load_dataset
from jule.images.datasets import has_dataset
from jule.jit import get_num_threads
from jule.paper.clustering import SUPPLIED
from jule.paper.experiment import Cell, Content, Context, Experiment, Renderer, Request
from jule.paper.figures import Curve, add_legend, draw_curves, svg
from jule.paper.numbers import DISPLAY, paper_score
from jule.paper.raw_gdl import settings
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# All updates are timed in turn, and the fastest turn of each counts.
MIN_TURNS, MAX_TURNS = 3, 30
SECONDS = 5.0  # after which no further turn begins
SCORES = ("NMI", "AC")  # in the figure, beside the time
RATIOS = (0.5, 1, 2, 5, 10)  # marked on the axis of the time


@dataclass(frozen=True)
class Variant:
    """One way of updating the affinities of merged clusters."""

    name: str
    update: Update
    alpha: float = 0.0


ALPHAS = (-0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.5)
VARIANTS = (
    Variant("exact", "exact"),
    Variant("ratio", "ratio"),
    *(Variant(f"α = {alpha:g}", "alpha", alpha) for alpha in ALPHAS),
)


class Approximation(Experiment):
    """Graph degree linkage on intensities, as in Table 3; nothing is random."""

    name = "approximation"
    title = "Approximated affinities (figures of the appendix)"
    expected = "3 min"
    datasets = ("coil20", "coil100", "usps", "mnist-test", "mnist", "umist", "cmu-pie")

    def cells(self, request: Request) -> list[Cell]:
        supplied = [name for name in SUPPLIED if has_dataset(name)]
        names = request.datasets or (*self.datasets, *supplied)
        return [Cell(f"{self.name}/{name}.json", name) for name in names]

    def is_current(self, cell: Cell, record: Record) -> bool:
        current: bool = record["settings"] == _settings(cell.dataset)
        return current

    def measure(self, cell: Cell, context: Context) -> Record:
        data = load_dataset(cell.dataset)
        k, how = data.n_clusters, settings(cell.dataset)[0]
        vectors = prepare(data.images, how.preparation)
        start = time.perf_counter()
        search = partial(context.progress, "neighbours")
        neighbors = nearest_neighbors(vectors, how.n_neighbors, progress=search)
        searched = time.perf_counter() - start
        initial = nearest_neighbor_components(neighbors)
        graph = affinity_graph(neighbors, how.a)
        merge = {
            variant.name: partial(
                merge_clusters,
                graph,
                initial,
                n_near=how.n_near,
                update=variant.update,
                alpha=variant.alpha,
            )
            for variant in VARIANTS
        }
        timed = _time_in_turn(merge, partial(context.progress, "merging"))
        rows: dict[str, Any] = {}
        for name, (merges, affinities, seconds) in timed.items():
            missing = int(initial.max()) - len(merges)  # clusters without affinity at the end
            tree = grow_tree(vectors, neighbors, initial, merges, affinities, missing)
            absorbed = tree.cut(k, default_min_cluster_size(len(data), k))
            rows[name] = {
                "seconds of the processor": seconds,
                "scores": scores(data.labels, tree.cut(k, 1)),
                "scores, tiny clusters absorbed": scores(data.labels, absorbed),
            }
        return {
            "dataset": cell.dataset,
            "samples": len(data),
            "clusters": k,
            "first clusters": int(initial.max()) + 1,
            "seeds": "none: nothing is random",
            "settings": _settings(cell.dataset),
            "nmi": "geometric",
            "threads of the neighbour search": get_num_threads(),
            "seconds of the neighbour search": searched,
            "rows": rows,
        }

    def summary(self, record: Record) -> str:
        paper = paper_score("AC-GDL", record["dataset"])
        exact = record["rows"]["exact"]["seconds of the processor"]
        lines = []
        for name, row in record["rows"].items():
            shown = f" (paper {paper})" if name == "exact" else ""
            share = row["seconds of the processor"] / exact
            lines.append(
                f"{record['dataset']:11s} {name:8s} NMI {row['scores']['nmi']:.3f}  "
                f"AC {row['scores']['ac']:.3f}{shown}  time {share:.2f}"
            )
        return "\n".join(lines)

    def tables(self) -> Mapping[str, Renderer]:
        return {
            "approximation nmi": partial(self._scores, which="scores", score="nmi"),
            "approximation ac": partial(self._scores, which="scores", score="ac"),
            "approximation absorbed": partial(
                self._scores, which="scores, tiny clusters absorbed", score="nmi"
            ),
            "approximation time": self._times,
        }

    def files(self, results: Path) -> Mapping[str, Content]:
        records = self._records(results)
        if not records:
            return {}
        return {f"{self.name}/approximation.svg": lambda: svg(partial(_draw, records), 11.0, 4.2)}

    def _records(self, results: Path) -> list[Record]:
        paths = [results / self.name / f"{name}.json" for name in DISPLAY]
        return [read_record(path) for path in paths if path.exists()]

    def _scores(self, results: Path, which: str, score: str) -> str:
        rows = []
        for record in self._records(results):
            paper = getattr(paper_score("AC-GDL", record["dataset"]), score)
            found = [row[which][score] for row in record["rows"].values()]
            shown = [f"{value:.3f}" for value in found]
            rows.append([DISPLAY[record["dataset"]], f"{paper:.3f}", *shown])
        header = [score.upper(), "the paper's AC-GDL", *(variant.name for variant in VARIANTS)]
        return markdown(header, rows)

    def _times(self, results: Path) -> str:
        rows = []
        for record in self._records(results):
            seconds = [row["seconds of the processor"] for row in record["rows"].values()]
            rows.append(
                [
                    DISPLAY[record["dataset"]],
                    f"{seconds[0]:.3f} s",
                    *(f"{one / seconds[0]:.2f}" for one in seconds[1:]),
                ]
            )
        names = [variant.name for variant in VARIANTS]
        return markdown(["time of merging", *names], rows)


def _settings(dataset: str) -> Record:
    """Return everything that identifies a measurement."""
    how = asdict(settings(dataset)[0])
    return {
        "linkage": {name: how[name] for name in ("preparation", "n_neighbors", "a", "n_near")},
        "variants": [asdict(variant) for variant in VARIANTS],
    }


Merged = tuple[NDArray[np.int64], NDArray[np.float64]]


def _time_in_turn(
    calls: Mapping[str, Callable[[], Merged]], progress: Callable[[float], None]
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64], float]]:
    """Call every function in every turn; return what each returned, and its fastest time.

    One more turn comes first, which is not timed: it compiles the kernels and touches the memory.
    """
    found: dict[str, tuple[NDArray[np.int64], NDArray[np.float64], float]] = {}
    begin = time.perf_counter()
    for turn in range(MAX_TURNS + 1):
        if turn > MIN_TURNS and time.perf_counter() - begin > SECONDS:
            break
        for done, (name, call) in enumerate(calls.items()):
            progress(min(turn + done / len(calls), MIN_TURNS) / (MIN_TURNS + 1))
            # Time of the processor, which other programs disturb less; merging has one thread.
            start = time.process_time()
            merges, affinities = call()
            seconds = time.process_time() - start if turn else np.inf
            before = found[name][2] if name in found else np.inf
            found[name] = merges, affinities, min(seconds, before)
    progress(1.0)
    return found


def _draw(records: list[Record], figure: Figure) -> None:
    """Draw NMI, AC and the time beside exact merging, with one curve per data set."""
    places = range(len(VARIANTS))
    labels = (*SCORES, "time of merging / exact")
    for axes, label in zip(figure.subplots(1, len(labels)), labels, strict=True):
        curves = [
            Curve(
                DISPLAY[record["dataset"]],
                places,
                _values(record["rows"], label),
                style=list(DISPLAY).index(record["dataset"]),
            )
            for record in records
        ]
        about = "update: exact, ratio, or constant α"
        draw_curves(axes, curves, title=label, x_label=about, y_label=label)
        axes.set_xticks(places, [one.name.removeprefix("α = ") for one in VARIANTS], rotation=60)
        if label in SCORES:
            axes.set_ylim(bottom=0)
        else:
            axes.set_yscale("log")
            axes.set_yticks(RATIOS, [f"{ratio:g}" for ratio in RATIOS])
            axes.minorticks_off()
    add_legend(figure)


def _values(rows: Record, label: str) -> list[float]:
    """Return what a panel shows, by variant."""
    found = [rows[variant.name] for variant in VARIANTS]
    if label in SCORES:
        return [row["scores"][label.lower()] for row in found]
    exact = rows["exact"]["seconds of the processor"]
    return [row["seconds of the processor"] / exact for row in found]
