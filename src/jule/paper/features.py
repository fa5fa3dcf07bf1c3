"""Hand-crafted features in place of intensities, for three clustering methods."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.evaluation import scores
from jule.forward.prepare import Preparation, prepare
from jule.forward.remembered import RememberedSearches, remember_searches
from jule.images import Dataset, load_dataset
from jule.images.datasets import has_dataset
from jule.paper.clustering import FOLDER, ROWS
from jule.paper.descriptors import grey, hog, lbp
from jule.paper.experiment import Cell, Comparison, Context, Experiment, Renderer, Request
from jule.paper.joint import SEEDS
from jule.paper.numbers import DISPLAY, paper_methods, paper_score
from jule.paper.pyramid import spatial_pyramid
from jule.paper.records import Record, read_record
from jule.paper.rows import Row
from jule.paper.tables import markdown, mean_and_spread
from jule.progress import Progress
from jule.text import match_name

WHOLE = "LBP (whole image)"  # one histogram
BLOCK = "HOG (one block)"  # of 2 x 2 cells
FOUR = "spatial pyramid (four levels)"
DESCRIPTORS = {  # and their folders
    "spatial pyramid": "spatial-pyramid",
    FOUR: "spatial-pyramid-four-levels",
    "HOG": "hog",
    BLOCK: "hog-one-block",
    "LBP": "lbp",
    WHOLE: "lbp-whole-image",
}
NAME_WIDTH = max(map(len, DESCRIPTORS))
LEVELS = {"spatial pyramid": 3, FOUR: 4}
# Forms of the descriptor that each data set has in the paper, which says neither which form it is
# nor what it used for FRGC. The first one, which comes closest to its numbers, is in the overview.
PAPERS = {
    "coil100": (FOUR, "spatial pyramid"),
    "mnist-test": (BLOCK, "HOG"),
    "umist": (WHOLE, "LBP"),
    "frgc": (WHOLE, "LBP"),
}
ONLY_PAPERS = (FOUR, BLOCK, WHOLE)  # measured where the paper has that descriptor
# SC-LS is made for samples of unit length. N-Cuts comes closer to the paper without scaling.
PREPARATION: dict[str, Preparation] = {"SC-LS": "l2", "N-Cuts": "none", "AC-PIC": "l2"}
SEARCHES = RememberedSearches()


class Features(Experiment):
    """Three descriptors on every data set; of the one that the paper has, several forms."""

    name = "features"
    title = "Hand-crafted features (table of the appendix)"
    expected = "1 h"
    datasets = ("umist", "mnist-test", "coil100")
    options = ("datasets", "seeds", "methods")

    def rows(self) -> list[Row]:
        """Return the methods, with the settings that they have in the clustering tables."""
        return [row for row in ROWS if row.name in paper_methods("features")]

    def cells(self, request: Request) -> list[Cell]:
        names = {name: name for name in self._combinations()}
        chosen = [match_name(one, names, "method") for one in request.methods or names]
        supplied = [name for name in ("frgc",) if has_dataset(name)]
        seeds = SEEDS if request.seeds is None else request.seeds
        return [
            Cell(_path(descriptor, row, dataset, seed), dataset, seed=seed, method=name)
            for dataset in request.datasets or (*self.datasets, *supplied)
            for seed in range(seeds)  # the methods of a seed share their descriptors
            for name, (row, descriptor) in self._combinations().items()
            if name in chosen and (seed == 0 or _varies(row, descriptor))
            if request.methods is not None or _is_default(dataset, descriptor)
        ]

    def _combinations(self) -> dict[str, tuple[Row, str]]:
        return {
            f"{row.name} on {descriptor}": (row, descriptor)
            for descriptor in DESCRIPTORS
            for row in self.rows()
        }

    def _settings(self, cell: Cell) -> Record:
        row, descriptor = self._combinations()[cell.method or ""]
        return {
            "method": row.method,
            "parameters": row.parameters_on("raw"),
            "descriptor": descriptor,
            "preparation": PREPARATION[row.method],
        }

    def is_current(self, cell: Cell, record: Record) -> bool:
        current: bool = record["settings"] == self._settings(cell)
        return current

    def measure(self, cell: Cell, context: Context) -> Record:
        row, descriptor = self._combinations()[cell.method or ""]
        data, seed = _load(cell.dataset), cell.seed or 0
        found, seconds = _describe(cell.dataset, descriptor, seed, context.progress)
        vectors = prepare(found, PREPARATION[row.method])
        context.progress(row.name, 0.0)
        start, saved = time.perf_counter(), SEARCHES.seconds_saved
        with remember_searches(SEARCHES):
            labels = row.make("raw", data.n_clusters, seed).fit_predict(vectors)
        return {
            "dataset": cell.dataset,
            "samples": len(data),
            "clusters": data.n_clusters,
            "dimensions": vectors.shape[1],
            "seed": seed if _varies(row, descriptor) else None,
            "settings": self._settings(cell),
            "nmi": "geometric",
            "scikit-image": None if descriptor in LEVELS else version("scikit-image"),
            "seconds of the descriptors": seconds,
            "seconds": time.perf_counter() - start + SEARCHES.seconds_saved - saved,
            "scores": scores(data.labels, labels),
        }

    def summary(self, record: Record) -> str:
        about, dataset = record["settings"], record["dataset"]
        paper = _papers(about["method"], dataset, about["descriptor"])
        seed = "-" if record["seed"] is None else record["seed"]
        descriptor = f"{about['descriptor']:{NAME_WIDTH}}"
        return (
            f"{dataset:11s} {about['method']:6s} on {descriptor} seed {seed}  "
            f"NMI {record['scores']['nmi']:.3f}  (paper {paper})  {record['seconds']:.1f} s"
        )

    def tables(self) -> Mapping[str, Renderer]:
        return {self.name: self._table}

    def comparisons(self, results: Path) -> list[Comparison]:
        found = []
        for dataset, (descriptor, *_) in PAPERS.items():
            for row in self.rows():
                values = _values(results, _path(descriptor, row, dataset, "[0-9]*"))
                papers = paper_score(row.method, dataset, "features").nmi
                if values and papers is not None:
                    what = f"{DISPLAY[dataset]}, {row.name} on {descriptor}"
                    found.append(Comparison(what, float(np.mean(values)), papers))
        return found

    def _table(self, results: Path) -> str:
        """Render NMI on pixels and on every descriptor, each beside the paper's."""
        rows = []
        for dataset in DISPLAY:
            patterns = {
                descriptor: [_path(descriptor, row, dataset, "[0-9]*") for row in self.rows()]
                for descriptor in DESCRIPTORS
            }
            found = {
                descriptor: paths
                for descriptor, paths in patterns.items()
                if any(_has(results, path) for path in paths)
            }
            if not found:
                continue
            raw = [f"{FOLDER}/raw/{row.slug}/{dataset}-[0-9]*.json" for row in self.rows()]
            for kind, paths in {"pixels": raw, **found}.items():
                shown = [f"{DISPLAY[dataset]}, {kind}"]
                for row, path in zip(self.rows(), paths, strict=True):
                    shown += [_mean(results, path), _papers(row.method, dataset, kind)]
                rows.append(shown)
        header = ["NMI"]
        for row in self.rows():
            header += [row.name, "paper"]
        return markdown(header, rows)


def _path(descriptor: str, row: Row, dataset: str, seed: int | str) -> str:
    return f"{Features.name}/{DESCRIPTORS[descriptor]}/{row.slug}/{dataset}-{seed}.json"


def _is_default(dataset: str, descriptor: str) -> bool:
    """Return whether a descriptor is measured by default on a data set."""
    return descriptor in PAPERS.get(dataset, ()) or descriptor not in ONLY_PAPERS


def _varies(row: Row, descriptor: str) -> bool:
    """Return whether the result depends on the seed, which also chooses a vocabulary."""
    return row.is_random or descriptor in LEVELS


def _papers(method: str, dataset: str, kind: str) -> str:
    """Return the paper's NMI on pixels, or on the descriptor that it has for a data set."""
    if kind == "pixels":
        value = paper_score(method, dataset).nmi
    elif kind in PAPERS.get(dataset, ()):
        value = paper_score(method, dataset, "features").nmi
    else:
        value = None
    return "-" if value is None else f"{value:.3f}"


def _has(results: Path, pattern: str) -> bool:
    return any(results.glob(pattern))


def _values(results: Path, pattern: str) -> list[float]:
    """Return the NMI of every seed that was measured."""
    return [read_record(path)["scores"]["nmi"] for path in sorted(results.glob(pattern))]


def _mean(results: Path, pattern: str) -> str:
    """Return the mean NMI over the seeds, with the standard deviation if there are several."""
    return mean_and_spread(_values(results, pattern))


@lru_cache(maxsize=1)
def _load(dataset: str) -> Dataset:
    """Read a data set. One is cached, because the cells of a set are measured in succession."""
    return load_dataset(dataset)


_described: dict[tuple[str, str, int], tuple[NDArray[np.floating], float]] = {}


def _describe(
    dataset: str, descriptor: str, seed: int, progress: Progress
) -> tuple[NDArray[np.floating], float]:
    """Return the descriptors of a data set, and how long they took.

    The latest ones are cached, for the other methods.
    """
    key = dataset, descriptor, seed if descriptor in LEVELS else 0
    if key not in _described:
        start = time.perf_counter()
        images = grey(_load(dataset).images)
        vectors: NDArray[Any]
        if descriptor == "HOG":
            vectors = hog(images, progress=progress)
        elif descriptor == BLOCK:
            vectors = hog(images, cells=2, progress=progress)
        elif descriptor == "LBP":
            vectors = lbp(images, progress=progress)
        elif descriptor == WHOLE:
            vectors = lbp(images, cells=1, progress=progress)
        else:
            scaled = images / np.float32(255)
            levels = LEVELS[descriptor]
            vectors = spatial_pyramid(scaled, n_levels=levels, seed=seed, progress=progress)
        _described.clear()
        _described[key] = vectors, time.perf_counter() - start
    return _described[key]
