"""Robustness: NMI for different unrolling rates eta and numbers of neighbours K_s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from jule.evaluation import scores
from jule.forward import agglomerate, default_min_cluster_size, prepare
from jule.forward.remembered import RememberedSearches, remember_searches
from jule.images import Dataset, load_dataset
from jule.images.datasets import has_dataset
from jule.joint.config import Config, preset
from jule.paper.clustering import SUPPLIED
from jule.paper.experiment import Cell, Content, Context, Experiment, Renderer, Request
from jule.paper.figures import Curve, add_legend, draw_curves, svg
from jule.paper.joint import SEEDS, learn
from jule.paper.numbers import DISPLAY
from jule.paper.raw_gdl import Setting, settings
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown, mean_and_spread
from jule.progress import Progress
from jule.text import match_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Parameter = Literal["eta", "K_s"]
# The paper's figures have no values in the text. Small rates take many periods.
VALUES: dict[Parameter, tuple[float, ...]] = {
    "eta": (0.2, 0.4, 0.6, 0.8, 0.9),
    "K_s": (5, 10, 20, 30, 50, 75, 100),
}
TICKS: dict[Parameter, tuple[float, ...]] = {  # of the figure: all values of K_s would overlap
    "eta": VALUES["eta"],
    "K_s": (5, 10, 20, 50, 100),
}
FIELDS: dict[Parameter, str] = {"eta": "eta", "K_s": "n_neighbors"}  # of Config
RAW = "linkage"  # the method without learning
# Seeds per data set that is learned by default; the others take hours.
LEARNED = {"usps": 3, "umist": 3, "cmu-pie": 1, "mnist-test": 1}
METHODS: dict[str, tuple[Parameter, float]] = {
    f"{parameter} {value:g}": (parameter, value)
    for parameter, values in VALUES.items()
    for value in values
}
NAMES = {"paper": "AC-GDL", "local": "first linkage of JULE"}  # of the settings without learning


class Robustness(Experiment):
    """One cell per data set without learning; with learning, one per value and seed."""

    name = "robustness"
    title = "NMI against η and K_s (figures of the appendix)"
    expected = "2 h"
    datasets = ("usps", "coil20", "coil100", "mnist-test", "mnist", "umist", "cmu-pie")
    options = ("datasets", "seeds", "methods")

    def cells(self, request: Request) -> list[Cell]:
        names = {name: name for name in (RAW, *METHODS)}
        chosen = [match_name(one, names, "method") for one in request.methods or names]
        supplied = [name for name in SUPPLIED if has_dataset(name)]
        cells = []
        for dataset in request.datasets or (*self.datasets, *supplied):
            if RAW in chosen:
                cells.append(Cell(f"{self.name}/{RAW}/{dataset}.json", dataset, method=RAW))
            if request.datasets is None and dataset not in LEARNED:
                continue
            cells += [
                Cell(_path(parameter, value, dataset, seed), dataset, seed=seed, method=name)
                for seed in range(request.seeds or LEARNED.get(dataset, SEEDS))
                for name, (parameter, value) in METHODS.items()
                if name in chosen
            ]
        return cells

    def is_current(self, cell: Cell, record: Record) -> bool:
        if cell.method == RAW:
            current: bool = record["settings"] == _raw_settings(cell.dataset)
            return current
        return Config.from_json(record["settings"]) == config_for(cell, record["clusters"])

    def measure(self, cell: Cell, context: Context) -> Record:
        data = load_dataset(cell.dataset)
        about = {
            "dataset": cell.dataset,
            "method": cell.method,
            "samples": len(data),
            "clusters": data.n_clusters,
            "nmi": "geometric",
        }
        measure = _measure_raw if cell.method == RAW else _measure_learned
        return about | measure(cell, data, context)

    def summary(self, record: Record) -> str:
        start = f"{record['dataset']:11s} {record['method']:9s}"
        if record["method"] != RAW:
            found = {which: record["scores"][which]["nmi"] for which in ("sf", "rc")}
            return f"{start} seed {record['seed']}  SF {found['sf']:.3f}  RC {found['rc']:.3f}"
        lines = []
        for name, rows in record["rows"].items():
            shown = "  ".join(f"{k}: {row['nmi']:.3f}" for k, row in rows.items())
            lines.append(f"{start} {NAMES[name]:21s} NMI by K_s  {shown}")
        return "\n".join(lines)

    def tables(self) -> Mapping[str, Renderer]:
        return {
            "robustness eta": partial(self._table, parameter="eta"),
            "robustness neighbours": partial(self._table, parameter="K_s"),
        }

    def files(self, results: Path) -> Mapping[str, Content]:
        if not any((results / self.name).glob("*/*.json")):
            return {}
        return {f"{self.name}/robustness.svg": lambda: svg(partial(_draw, results), 11.0, 4.2)}

    def _table(self, results: Path, parameter: Parameter) -> str:
        rows = []
        for dataset in DISPLAY:
            for name, found in _found(results, parameter, dataset).items():
                shown = [mean_and_spread(found.get(value, [])) for value in VALUES[parameter]]
                rows.append([f"{DISPLAY[dataset]}, {name}", *shown])
        return markdown(["NMI", *(f"{parameter} {value:g}" for value in VALUES[parameter])], rows)


def config_for(cell: Cell, n_clusters: int) -> Config:
    """Return the settings of a cell: one round, as in the paper, and one parameter changed.

    Examples
    --------
    >>> config = config_for(Cell("", "usps", seed=1, method="K_s 50"), 10)
    >>> config.n_neighbors, config.rounds, config.seed
    (50, 1, 1)
    """
    parameter, value = METHODS[cell.method or ""]
    changes: dict[str, Any] = {FIELDS[parameter]: int(value) if parameter == "K_s" else value}
    return preset(rounds=1, n_clusters=n_clusters, seed=cell.seed or 0, **changes)


def _path(parameter: Parameter, value: float, dataset: str, seed: int | str) -> str:
    return f"{Robustness.name}/{parameter}/{dataset}-{value:g}-{seed}.json"


def _raw_settings(dataset: str) -> Record:
    chosen = [asdict(one) for one in settings(dataset) if one.name in NAMES]
    return {"linkage": chosen, "K_s": list(VALUES["K_s"])}


def _measure_raw(cell: Cell, data: Dataset, context: Context) -> Record:
    """Score the linkage of intensities for every K_s."""
    rows: dict[str, dict[str, Any]] = {}
    with remember_searches(RememberedSearches()):
        for setting in settings(cell.dataset):
            if setting.name not in NAMES:
                continue
            vectors = prepare(data.images, setting.preparation)
            # The largest K_s first: its search also has the neighbours for the smaller ones.
            found = {}
            for k in sorted(VALUES["K_s"], reverse=True):
                found[f"{k}"] = _score_linkage(data, vectors, int(k), setting, context.progress)
            rows[setting.name] = {f"{k}": found[f"{k}"] for k in VALUES["K_s"]}
    return {
        "seeds": "none: nothing is random",
        "settings": _raw_settings(cell.dataset),
        "rows": rows,
    }


def _score_linkage(
    data: Dataset, vectors: NDArray[np.floating], k: int, how: Setting, progress: Progress
) -> Record:
    tree = agglomerate(
        vectors, n_neighbors=k, a=how.a, n_near=how.n_near, lam=how.lam, progress=progress
    )
    size = how.min_cluster_size or default_min_cluster_size(len(data), data.n_clusters)
    return dict(scores(data.labels, tree.cut(data.n_clusters, size)))


def _measure_learned(cell: Cell, data: Dataset, context: Context) -> Record:
    config = config_for(cell, data.n_clusters)
    learned = learn(data, config, context.folder, context.progress)
    found = {"sf": learned.result.labels_sf, "rc": learned.result.labels_rc}
    return {
        "seed": cell.seed,
        "settings": learned.config.to_json(),
        "scores": {name: scores(data.labels, labels) for name, labels in found.items()},
        "periods": len(learned.history),
        "images trained on": sum(period.images for period in learned.history),
        "seconds of the periods": sum(sum(p.seconds.values()) for p in learned.history),
    }


def _found(results: Path, parameter: Parameter, dataset: str) -> dict[str, dict[float, list]]:
    """Return NMI by method, value and seed; only methods that were measured."""
    found: dict[str, dict[float, list]] = {}
    path = results / Robustness.name / RAW / f"{dataset}.json"
    if parameter == "K_s" and path.exists():
        for name, rows in read_record(path)["rows"].items():
            found[NAMES[name]] = {float(k): [row["nmi"]] for k, row in rows.items()}
    for value in VALUES[parameter]:
        paths = sorted(results.glob(_path(parameter, value, dataset, "[0-9]*")))
        for record in map(read_record, paths):
            for which in ("sf", "rc"):
                by_value = found.setdefault(which.upper(), {})
                by_value.setdefault(value, []).append(record["scores"][which]["nmi"])
    return found


def _draw(results: Path, figure: Figure) -> None:
    """Draw three panels: eta with learning, K_s with learning, K_s without learning."""
    learned = "with learning (SF dashed)"
    panels: list[tuple[str, Parameter, tuple[str, ...]]] = [
        (f"η, {learned}", "eta", ("RC", "SF")),
        (f"$K_s$, {learned}", "K_s", ("RC", "SF")),
        (f"$K_s$, {NAMES['paper']} on intensities", "K_s", (NAMES["paper"],)),
    ]
    for axes, (title, parameter, which) in zip(figure.subplots(1, 3), panels, strict=True):
        curves = [
            Curve(
                DISPLAY[dataset],
                list(found),
                [float(np.mean(values)) for values in found.values()],
                [float(np.std(values)) for values in found.values()],
                style=position,
                is_dashed=name == "SF",
            )
            for position, dataset in enumerate(DISPLAY)
            for name in which
            if (found := _found(results, parameter, dataset).get(name))
        ]
        label = "η" if parameter == "eta" else "$K_s$"
        is_log = parameter == "K_s"
        draw_curves(axes, curves, title=title, x_label=label, y_label="NMI", is_log_x=is_log)
        axes.set_xticks(TICKS[parameter], [f"{value:g}" for value in TICKS[parameter]])
    add_legend(figure)
