"""Tables 3, 4, 10 and 11: every method on image intensities and on the learned representation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from jule.baselines._factors import rotate_to_fewer
from jule.baselines.modern import MODERN
from jule.evaluation import scores
from jule.forward.prepare import Preparation, prepare
from jule.forward.remembered import RememberedSearches, remember_searches
from jule.images import Dataset, load_dataset
from jule.images.datasets import has_dataset
from jule.joint.config import Config
from jule.memory import NotEnoughMemoryError
from jule.paper.experiment import Cell, Comparison, Context, Experiment, Renderer, Request
from jule.paper.joint import SEEDS, Joint
from jule.paper.learned import learned_config, learned_run
from jule.paper.numbers import DISPLAY, paper_methods, paper_score
from jule.paper.records import Record, read_record
from jule.paper.rows import Features, Row
from jule.paper.tables import latex, markdown
from jule.text import match_name

FOLDER = "clustering"
SUPPLIED = ("frgc", "ytf")  # measured only if the user has the files
LARGE = ("coil100", "mnist")
PAPER = {"preset": "jule-paper"}
NEIGHBORS = {"graph": "neighbors"}
ONLY_PAPER = {"min_cluster_size": 1}  # tiny clusters count, as in the paper

NOT_MEASURED, TOO_SLOW, TOO_LARGE = "-", "time", "memory"  # shown in cells without a score
SEARCHES = RememberedSearches()

ROWS = (
    Row("K-means", "K-means"),
    Row("SC-NJW", "SC-NJW", PAPER),
    Row("SC-NJW (neighbours)", "SC-NJW", NEIGHBORS, is_paper=False),
    # The neighbour that sets the width is not stated: the paper's numbers fit the 7th and the 75th.
    Row("SC-ST", "SC-ST", PAPER, learned={"scale_neighbor": 75}),
    Row("SC-ST (neighbours)", "SC-ST", NEIGHBORS, is_paper=False),
    # The rounding of the original gives the paper's numbers on intensities.
    Row("SC-LS", "SC-LS", raw={"rounding": "random"}),
    Row("N-Cuts", "N-Cuts"),
    Row("N-Cuts (neighbours)", "N-Cuts", NEIGHBORS, is_paper=False),
    Row("AC-Link", "AC-Link", left_out_learned=("mnist",)),
    Row("AC-Zell", "AC-Zell", ONLY_PAPER),
    Row("AC-Zell (absorbing)", "AC-Zell", is_paper=False),
    Row("AC-GDL", "AC-GDL", ONLY_PAPER),
    Row("AC-GDL (absorbing)", "AC-GDL", is_paper=False),
    Row("AC-PIC", "AC-PIC", ONLY_PAPER),
    Row("AC-PIC (absorbing)", "AC-PIC", is_paper=False),
    Row("NMF-LP", "NMF-LP", PAPER),
    Row("NMF-LP (own settings)", "NMF-LP", is_paper=False, left_out=LARGE, only_learned=True),
    Row("NMF-D", "NMF-D"),
    Row("TSC-D", "TSC-D"),
    Row("Ward", "Ward", is_paper=False),
    Row("HDBSCAN", "HDBSCAN", is_paper=False, left_out=("mnist",)),
    Row("UMAP + K-means", "UMAP + K-means", is_paper=False),
    Row("UMAP + HDBSCAN", "UMAP + HDBSCAN", is_paper=False),
)


class ClusteringTable(Experiment):
    """One of the four tables; tables on the same features share their records.

    Attributes
    ----------
    features
        ``"raw"``: image intensities. ``"learned"``: the representation of joint learning.
    score
        The score that the table shows.
    """

    datasets = ("umist", "coil20", "cmu-pie", "usps", "mnist-test", "coil100", "mnist")
    options = ("datasets", "seeds", "methods")
    features: ClassVar[Features]
    score: ClassVar[Literal["nmi", "ac"]]

    def rows(self) -> list[Row]:
        """Return the rows that are measured."""
        known = (*paper_methods(self.features), *MODERN)
        is_raw = self.features == "raw"
        return [row for row in ROWS if row.method in known and not (is_raw and row.only_learned)]

    def cells(self, request: Request) -> list[Cell]:
        names = {row.name: row.name for row in self.rows()}
        chosen = [match_name(one, names, "method") for one in request.methods or names]
        supplied = [name for name in SUPPLIED if has_dataset(name)]
        seeds = SEEDS if request.seeds is None else request.seeds
        return [
            Cell(self._path(row, dataset, seed), dataset, seed=seed, method=row.name)
            for dataset in request.datasets or (*self.datasets, *supplied)
            for row in self.rows()
            if row.name in chosen and not row.leaves_out(self.features, dataset)
            for seed in range(seeds if self._varies(row) else 1)
        ]

    def _varies(self, row: Row) -> bool:
        return self.features == "learned" or row.is_random

    def _path(self, row: Row, dataset: str, seed: int | str) -> str:
        return f"{FOLDER}/{self.features}/{row.slug}/{dataset}-{seed}.json"

    def is_current(self, cell: Cell, record: Record) -> bool:
        settings: dict[str, Any] = record["settings"]
        if settings != _row(cell).settings(self.features, cell.dataset):
            return False
        if self.features == "raw":
            return True
        learned = Config.from_json(record["joint"]["settings"])
        return learned == learned_config(cell.dataset, cell.seed or 0, record["clusters"])

    def measure(self, cell: Cell, context: Context) -> Record:
        row, seed = _row(cell), cell.seed or 0
        data = _load(cell.dataset)
        about: dict[str, Any] = {}
        context.progress(row.name, 0.0)
        if self.features == "raw":
            how = row.preparation(cell.dataset)
            vectors = _intensities(cell.dataset, how, row.is_rotation_invariant)
        else:
            vectors, about["joint"] = _learned(cell.dataset, seed, context)
            if row.is_non_negative:
                vectors = vectors - vectors.min(axis=0)
        start = time.perf_counter()
        try:
            # Seeds and methods are given the same samples, so the cells of a set share a search.
            saved = SEARCHES.seconds_saved
            with warnings.catch_warnings(record=True) as caught, remember_searches(SEARCHES):
                labels = row.make(self.features, data.n_clusters, seed).fit_predict(vectors)
            about["seconds of a shared neighbour search"] = SEARCHES.seconds_saved - saved
            about["seconds"] = time.perf_counter() - start + SEARCHES.seconds_saved - saved
            about["warnings"] = sorted({str(one.message) for one in caught})
            about["found"] = len(np.unique(labels[labels >= 0]))
            about["noise"] = float((labels < 0).mean())
            about["scores"] = scores(data.labels, labels)
        except NotEnoughMemoryError as error:
            about["refused"] = str(error)
        return {
            "row": row.name,
            "features": self.features,
            "dataset": cell.dataset,
            "samples": len(data),
            "clusters": data.n_clusters,
            "seed": seed if self._varies(row) else None,
            "settings": row.settings(self.features, cell.dataset),
            "nmi": "geometric",
            **about,
        }

    def summary(self, record: Record) -> str:
        start = f"{record['dataset']:11s} {record['row']:32s}"
        if "refused" in record:
            return f"{start} {record['refused']}"
        found = record["scores"]
        row = next(row for row in ROWS if row.name == record["row"])
        paper = paper_score(row.method, record["dataset"], self.features) if row.is_paper else "-"
        seed = "-" if record["seed"] is None else record["seed"]
        return (
            f"{start} seed {seed}  NMI {found['nmi']:.3f}  AC {found['ac']:.3f}  (paper {paper})  "
            f"{record['seconds']:.1f} s"
        )

    def tables(self) -> Mapping[str, Renderer]:
        return {self.name: lambda results: markdown(*self._grid(results, "**{}**"))}

    def comparisons(self, results: Path) -> list[Comparison]:
        found = []
        for row, dataset in product(self.rows(), DISPLAY):
            if not row.is_paper:
                continue
            ours = self._ours(results, row, dataset)
            papers = getattr(paper_score(row.method, dataset, self.features), self.score)
            if ours is not None and papers is not None:
                found.append(Comparison(f"{DISPLAY[dataset]}, {row.name}", ours, papers))
        return found

    def files(self, results: Path) -> Mapping[str, str]:
        header, rows = self._grid(results, r"\textbf{{{}}}")
        if len(header) == 1:  # nothing has been measured
            return {}
        return {f"{FOLDER}/{self.name}.tex": latex(header, rows, f"{self.title}.")}

    def _grid(self, results: Path, bold: str) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows: our scores, with the paper's in brackets."""
        sets = [name for name in DISPLAY if self._has_records(results, name)]
        found = {row.name: [self._ours(results, row, name) for name in sets] for row in self.rows()}
        if self.features == "raw":
            for which in ("sf", "rc"):
                found[f"OURS-{which.upper()}"] = [self._joint(results, which, n) for n in sets]
        columns = list(zip(*found.values(), strict=True))
        best = [max((one for one in column if one is not None), default=None) for column in columns]
        rows = []
        for name, values in found.items():
            shown = []
            for value, largest, dataset in zip(values, best, sets, strict=True):
                if value is None:
                    text = self._why_missing(results, name, dataset)
                else:
                    text = f"{value:.3f}"
                    text = bold.format(text) if text == f"{largest:.3f}" else text
                shown.append(text + self._papers(name, dataset))
            rows.append([name, *shown])
        return [self.score.upper(), *(DISPLAY[name] for name in sets)], rows

    def _why_missing(self, results: Path, name: str, dataset: str) -> str:
        """Return what a cell without a score shows."""
        row = next((row for row in self.rows() if row.name == name), None)
        if row is None:
            return NOT_MEASURED
        if row.leaves_out(self.features, dataset):
            return TOO_SLOW
        paths = results.glob(self._path(row, dataset, "[0-9]*"))
        refused = any("refused" in read_record(path) for path in paths)
        return TOO_LARGE if refused else NOT_MEASURED

    def _papers(self, name: str, dataset: str) -> str:
        if name not in paper_methods(self.features):
            return ""
        paper = paper_score(name, dataset, self.features)
        value = getattr(paper, self.score)
        if value is None and self.score == "nmi":
            value = paper.reported_nmi  # of a method that the JULE authors could not run
        return "" if value is None else f" ({value:.3f})"

    def _has_records(self, results: Path, dataset: str) -> bool:
        return any((results / FOLDER / self.features).glob(f"*/{dataset}-[0-9]*.json"))

    def _ours(self, results: Path, row: Row, dataset: str) -> float | None:
        paths = sorted(results.glob(self._path(row, dataset, "[0-9]*")))
        found = [record["scores"] for record in map(read_record, paths) if "scores" in record]
        return float(np.mean([one[self.score] for one in found])) if found else None

    def _joint(self, results: Path, which: str, dataset: str) -> float | None:
        paths = sorted((results / Joint.name / "default").glob(f"{dataset}-[0-9]*.json"))
        found = [read_record(path)["scores"][which][self.score] for path in paths]
        return float(np.mean(found)) if found else None


class Table3(ClusteringTable):
    """NMI on image intensities."""

    name = "table3"
    title = "NMI on image intensities (Table 3)"
    expected = "5 h"
    features, score = "raw", "nmi"


class Table10(ClusteringTable):
    """Accuracy on image intensities."""

    name = "table10"
    title = "Accuracy on image intensities (Table 10)"
    expected = "nothing beyond table3"
    features, score = "raw", "ac"


class Table4(ClusteringTable):
    """NMI on the learned representation."""

    name = "table4"
    title = "NMI on the learned representation (Table 4)"
    expected = "2 h"
    features, score = "learned", "nmi"


class Table11(ClusteringTable):
    """Accuracy on the learned representation."""

    name = "table11"
    title = "Accuracy on the learned representation (Table 11)"
    expected = "nothing beyond table4"
    features, score = "learned", "ac"


def _row(cell: Cell) -> Row:
    return next(row for row in ROWS if row.name == cell.method)


@lru_cache(maxsize=1)
def _load(dataset: str) -> Dataset:
    """Read a data set. One is cached, because the cells of a set are measured in succession."""
    return load_dataset(dataset)


@lru_cache(maxsize=3)
def _intensities(dataset: str, how: Preparation, may_rotate: bool) -> NDArray[np.floating]:
    """Return scaled intensities, rotated to at most n features if the method allows it.

    A rotation changes no distance. Images of COIL-100 have seven times as many values as there are
    images.
    """
    vectors = prepare(_load(dataset).images, how)
    return rotate_to_fewer(vectors) if may_rotate else vectors


def _learned(dataset: str, seed: int, context: Context) -> tuple[NDArray[np.floating], Record]:
    """Return the representation of joint learning, and the scores of its run.

    The run is stored, because all methods use it.
    """
    data = _load(dataset)
    learned = learned_run(data, seed, context).results
    result = learned.result
    found = {"sf": result.labels_sf, "rc": result.labels_rc}
    return result.embedding, {
        "settings": learned.config.to_json(),
        "scores": {name: scores(data.labels, labels) for name, labels in found.items()},
    }
