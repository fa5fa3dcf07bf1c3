"""OURS-SF and OURS-RC: joint learning on the paper's data sets, with several seeds each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from jule.evaluation import scores
from jule.images import Dataset, fingerprint, load_dataset
from jule.joint.config import Config, Preset, preset
from jule.paper.experiment import Cell, Comparison, Context, Experiment, Renderer, Request
from jule.paper.numbers import DISPLAY, paper_score
from jule.paper.raw_gdl import FACES
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown, mean_and_spread
from jule.progress import Progress
from jule.text import match_name

if TYPE_CHECKING:
    from jule.runs.folder import RunFolder
    from jule.runs.results import RunResults

SEEDS = 3
PRESETS: tuple[Preset, ...] = get_args(Preset)
ETA_OF_FACES = 0.2  # in the paper preset; the default preset derives the rate from the data


class Joint(Experiment):
    """Joint learning, scored when the process ends (SF) and after clustering again (RC)."""

    name = "joint"
    title = "OURS-SF and OURS-RC (Tables 3 and 10)"
    expected = "3 h"
    datasets = ("mnist-test", "usps", "mnist", "umist", "cmu-pie", "coil20", "coil100")
    options = ("datasets", "seeds", "preset")
    published = (Request(), Request(datasets=("mnist-test", "usps"), preset="paper"))

    def cells(self, request: Request) -> list[Cell]:
        which = match_name(request.preset or "default", {p: p for p in PRESETS}, "preset")
        return [
            Cell(f"{self.name}/{which}/{dataset}-{seed}.json", dataset, which, seed)
            for dataset in request.datasets or self.datasets
            for seed in range(SEEDS if request.seeds is None else request.seeds)
        ]

    def is_current(self, cell: Cell, record: Record) -> bool:
        return Config.from_json(record["settings"]) == config_for(cell, record["clusters"])

    def measure(self, cell: Cell, context: Context) -> Record:
        import torch

        start = time.perf_counter()
        data = load_dataset(cell.dataset)
        config = config_for(cell, data.n_clusters)
        learned = learn(data, config, context.folder, context.progress)
        result = learned.result
        found = {"sf": result.labels_sf, "rc": result.labels_rc, "labels": result.labels}
        return {
            "dataset": cell.dataset,
            "preset": cell.preset,
            "samples": len(data),
            "clusters": data.n_clusters,
            "seed": cell.seed,
            "threads": torch.get_num_threads(),
            "settings": learned.config.to_json(),
            "nmi": "geometric",
            "scores": {name: scores(data.labels, labels) for name, labels in found.items()},
            "chosen": result.chosen,
            "images trained on": sum(period.images for period in learned.history),
            "seconds of the periods": sum(sum(p.seconds.values()) for p in learned.history),
            "seconds since started or resumed": time.perf_counter() - start,
            "history": [asdict(period) for period in learned.history],
        }

    def summary(self, record: Record) -> str:
        parts = []
        for which in ("sf", "rc"):
            found = record["scores"][which]
            paper = paper_score(f"OURS-{which.upper()}", record["dataset"])
            parts.append(f"{which.upper()} {found['nmi']:.3f} / {found['ac']:.3f} (paper {paper})")
        start = f"{record['dataset']:11s} {record['preset']:7s} seed {record['seed']}"
        return "  ".join([start, *parts, f"{record['seconds of the periods']:.0f} s"])

    def tables(self) -> Mapping[str, Renderer]:
        return {
            "joint default": partial(self._scores, which="default"),
            "joint paper": partial(self._scores, which="paper"),
            "presets": self._presets,
            "chosen": self._chosen,
        }

    def comparisons(self, results: Path) -> list[Comparison]:
        found = []
        for name in self.datasets:
            records = self._records(results, "default", name)
            for which, score in product(("sf", "rc"), ("nmi", "ac")) if records else ():
                papers = getattr(paper_score(f"OURS-{which.upper()}", name), score)
                ours = float(np.mean([record["scores"][which][score] for record in records]))
                what = f"{DISPLAY[name]}, {which.upper()}, {score.upper()}"
                found.append(Comparison(what, ours, papers))
        return found

    def _records(self, results: Path, which: Preset, dataset: str) -> list[Record]:
        paths = sorted((results / self.name / which).glob(f"{dataset}-[0-9]*.json"))
        return [read_record(path) for path in paths]

    def _scores(self, results: Path, which: Preset) -> str:
        """Render one preset beside the paper's numbers."""
        rows = []
        for name in self.datasets:
            records = self._records(results, which, name)
            if not records:
                continue
            seconds = np.mean([record["seconds of the periods"] for record in records])
            rows.append(
                [
                    DISPLAY[name],
                    str(paper_score("OURS-SF", name)),
                    _both_scores(records, "sf"),
                    str(paper_score("OURS-RC", name)),
                    _both_scores(records, "rc"),
                    _both_scores(records, "labels"),
                    f"{records[0]['images trained on']:,}",
                    f"{seconds:.0f}",
                    f"{len(records)}",
                ]
            )
        header = ["NMI / AC", "paper's SF", "SF", "paper's RC", "RC", "`labels_`"]
        return markdown([*header, "images trained on", "seconds", "seeds"], rows)

    def _presets(self, results: Path) -> str:
        """Render scores and number of training images of the sets run with both presets."""
        rows = []
        for name in self.datasets:
            ours, papers = (self._records(results, which, name) for which in PRESETS)
            if not ours or not papers:
                continue
            images = [records[0]["images trained on"] for records in (ours, papers)]
            rows.append(
                [
                    DISPLAY[name],
                    _both_scores(ours, "rc"),
                    _both_scores(papers, "rc"),
                    _both_scores(ours, "sf"),
                    _both_scores(papers, "sf"),
                    f"{images[0]:,}",
                    f"{images[1]:,}",
                    f"{images[0] / images[1]:.2f}",
                ]
            )
        header = ["NMI / AC", "RC, default", "RC, paper", "SF, default", "SF, paper"]
        header += ["images, default", "images, paper", "share"]
        return markdown(header, rows)

    def _chosen(self, results: Path) -> str:
        """Render how often the choice between SF and RC, made without labels, was right."""
        right, wrong, same, lost = 0, 0, 0, 0.0
        records = [
            record
            for training, name in product(PRESETS, self.datasets)
            for record in self._records(results, training, name)
        ]
        for record in records:
            values = {which: record["scores"][which]["nmi"] for which in ("sf", "rc")}
            gap = max(values.values()) - record["scores"]["labels"]["nmi"]
            if values["sf"] == values["rc"]:
                same += 1
            elif gap <= 0:
                right += 1
            else:
                wrong += 1
                lost = max(lost, gap)
        rows = [
            ["runs where the better one was chosen", f"{right}"],
            ["runs where the worse one was chosen", f"{wrong}"],
            ["runs where both are equal", f"{same}"],
            ["the most NMI that a wrong choice cost", f"{lost:.3f}"],
        ]
        return markdown(["`labels_`", "measured"], rows)


def config_for(cell: Cell, n_clusters: int) -> Config:
    """Return the settings of a cell: its preset, with eta 0.2 for faces in the paper preset.

    Examples
    --------
    >>> umist, usps = (Cell("", name, "paper", seed=0) for name in ("umist", "usps"))
    >>> config_for(umist, 20).eta, config_for(usps, 10).eta
    (0.2, 0.9)
    """
    changes: dict[str, Any] = {"n_clusters": n_clusters, "seed": cell.seed or 0}
    if cell.preset == "paper" and cell.dataset in FACES:
        changes["eta"] = ETA_OF_FACES
    return preset(cell.preset or "default", **changes)  # type: ignore[arg-type]


def learn(
    data: Dataset, config: Config, folder: Path, progress: Progress | None = None
) -> RunResults:
    """Run joint learning in a folder; resume the same run, or read it if it is finished.

    A finished run whose files are damaged is learned again.
    """
    from jule.runs.execute import execute
    from jule.runs.folder import RunFolder, create_run, unfinished_run
    from jule.runs.manifest import DamagedError
    from jule.runs.results import read_results

    run, about = unfinished_run(folder) or RunFolder(folder), fingerprint(data.images)
    if not _is_same_run(run, config, about):
        run = create_run(folder, config, about, overwrite=True)
    if run.is_finished:
        try:
            return read_results(run)
        except DamagedError:
            run = create_run(folder, config, about, overwrite=True)
    return execute(run, data.images, labels=data.labels, data=about, progress=progress)


def _is_same_run(run: RunFolder, config: Config, about: dict[str, Any]) -> bool:
    try:
        return run.about()["data"] == about and run.config() == config
    except (OSError, ValueError):  # there is no run, or it was written by another version
        return False


def _both_scores(records: list[Record], which: str) -> str:
    """Return the mean and standard deviation of NMI and AC over the seeds."""
    return " / ".join(
        mean_and_spread([record["scores"][which][score] for record in records])
        for score in ("nmi", "ac")
    )
