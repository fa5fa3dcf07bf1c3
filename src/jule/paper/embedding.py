"""Low-dimensional embedding: the 1-NN error and trustworthiness T(12) of the appendix's tables."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jule.images import load_dataset
from jule.paper.experiment import Cell, Comparison, Content, Context, Experiment, Renderer, Request
from jule.paper.figures import svg
from jule.paper.neighborhoods import nearest_neighbor_error, trustworthiness
from jule.paper.numbers import paper_embedding
from jule.paper.records import Record, read_record
from jule.paper.reducing import METHODS, Method, Split, find_method
from jule.paper.tables import markdown, mean_and_spread
from jule.text import match_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIMENSIONS = (2, 10, 30)
NEIGHBORS = 12
TRAINING = {"mnist": 60_000}  # the first so many images; of other sets, five sixths
MOST_SHOWN = 2000  # test images in the figure
STEPS = 999  # from one side of a panel to the other
ROWS = 2  # of panels, at most
SCORES = {"error": "1-NN error", "trustworthiness": f"T({NEIGHBORS})"}


@dataclass(frozen=True)
class EmbeddingCell(Cell):
    """A cell of one method and one number of dimensions.

    Examples
    --------
    >>> EmbeddingCell("", "mnist", seed=0, method="PCA", dimensions=10).title
    'mnist, PCA, seed 0, 10-d'
    """

    dimensions: int = 2

    @property
    def title(self) -> str:
        """A short description of the cell."""
        return f"{super().title}, {self.dimensions}-d"


class Embedding(Experiment):
    """Embeddings learned on training images and scored on test images."""

    name = "embedding"
    title = "1-NN error and trustworthiness in 2, 10 and 30 dimensions (appendix)"
    expected = "2 h"
    datasets = ("mnist",)
    options = ("datasets", "seeds", "methods")

    def cells(self, request: Request) -> list[Cell]:
        names = {method.name: method.name for method in METHODS}
        chosen = [match_name(one, names, "method") for one in request.methods or names]
        return [
            EmbeddingCell(
                self._path(method, dataset, dimensions, seed),
                dataset,
                seed=seed,
                method=method.name,
                dimensions=dimensions,
            )
            for dataset in request.datasets or self.datasets
            for method in METHODS
            if method.name in chosen
            for dimensions in DIMENSIONS
            for seed in range(method.n_seeds(request.seeds))
        ]

    def _path(self, method: Method, dataset: str, dimensions: int, seed: int | str) -> str:
        return f"{self.name}/{method.slug}/{dataset}-{dimensions}d-{seed}.json"

    def is_current(self, cell: Cell, record: Record) -> bool:
        return bool(record["settings"] == find_method(cell.method or "").settings)

    def measure(self, cell: Cell, context: Context) -> Record:
        assert isinstance(cell, EmbeddingCell)
        method = find_method(cell.method or "")
        data = split(cell.dataset)
        start = time.perf_counter()
        train, test, about = method.embed(data, cell.dimensions, cell.seed or 0, context)
        seconds = time.perf_counter() - start
        context.progress("scores", 0.0)
        return {
            "method": method.name,
            "dataset": cell.dataset,
            "dimensions": cell.dimensions,
            "training images": len(data.train),
            "test images": len(data.test),
            "seed": cell.seed if method.is_random else None,
            "settings": method.settings,
            **about,
            "seconds": seconds,
            "scores": {
                "error": nearest_neighbor_error(train, data.train_labels, test, data.test_labels),
                "trustworthiness": trustworthiness(data.test, test, NEIGHBORS),
            },
            **({"shown": shown_positions(test, data.test_labels)} if cell.dimensions == 2 else {}),
        }

    def summary(self, record: Record) -> str:
        is_papers = record["dataset"] in self.datasets
        papers = paper_embedding(record["method"], record["dimensions"]) if is_papers else {}
        parts = [
            f"{title} {record['scores'][score]:.3f} (paper {_shown(papers.get(score))})"
            for score, title in SCORES.items()
        ]
        start = f"{record['dataset']:8s} {record['method']:18s} {record['dimensions']:2d}-d"
        return "  ".join([start, *parts, f"{record['seconds']:.0f} s"])

    def tables(self) -> Mapping[str, Renderer]:
        return {f"{self.name} {score}": partial(self._table, score=score) for score in SCORES}

    def comparisons(self, results: Path) -> list[Comparison]:
        found = []
        for method, dimensions, score in product(METHODS, DIMENSIONS, SCORES):
            values = self._values(results, method, dimensions, score)
            papers = paper_embedding(method.name, dimensions).get(score)
            if values and papers is not None:
                what = f"{method.name}, {dimensions}-d, {SCORES[score]}"
                is_error = score == "error"
                found.append(Comparison(what, float(np.mean(values)), papers, is_error))
        return found

    def _table(self, results: Path, score: str) -> str:
        """Render one score of all methods, with the paper's in brackets."""
        rows = []
        for method in METHODS:
            cells = []
            for dimensions in DIMENSIONS:
                values = self._values(results, method, dimensions, score)
                paper = paper_embedding(method.name, dimensions).get(score)
                brackets = "" if paper is None else f" ({paper:.3f})"
                cells.append(mean_and_spread(values) + brackets)
            seeds = len(self._values(results, method, DIMENSIONS[0], score))
            rows.append([method.name, *cells, str(seeds) if method.is_random else "-"])
        header = [SCORES[score], *(f"{dimensions}-d" for dimensions in DIMENSIONS), "seeds"]
        return markdown(header, rows)

    def files(self, results: Path) -> Mapping[str, Content]:
        shown = {}
        for method in METHODS:
            path = results / self._path(method, self.datasets[0], 2, 0)
            if path.exists() and not method.is_control:
                shown[method.name] = read_record(path)["shown"]
        return {f"{self.name}/{self.name}.svg": partial(draw_positions, shown)} if shown else {}

    def _values(self, results: Path, method: Method, dimensions: int, score: str) -> list[float]:
        paths = sorted(results.glob(self._path(method, self.datasets[0], dimensions, "[0-9]*")))
        return [read_record(path)["scores"][score] for path in paths]


def split(dataset: str) -> Split:
    """Return the training and test images of a data set.

    MNIST has its own; of other sets, one sixth is drawn for testing.

    Examples
    --------
    >>> data = split("digits")
    >>> len(data.train), len(data.test)
    (1497, 300)
    """
    data = load_dataset(dataset)
    n = len(data)
    count = TRAINING.get(dataset, n - round(n / 6))
    order = np.arange(n) if dataset in TRAINING else np.random.default_rng(0).permutation(n)
    train, test = order[:count], order[count:]
    return Split(
        dataset,
        data.images[train],
        data.labels[train],
        data.images[test],
        data.labels[test],
    )


def shown_positions(
    positions: NDArray[np.floating], classes: NDArray[np.integer]
) -> dict[str, str]:
    """Return the first positions in two dimensions and their classes as text, for a figure.

    Positions become whole numbers; as one number per line, the record would be far longer.

    Examples
    --------
    >>> shown_positions(np.array([[0.0, 1.0], [0.5, 3.0]]), np.array([7, 8]))
    {'x': '0 250', 'y': '0 999', 'class': '7 8'}
    """
    some = positions[:MOST_SHOWN].astype(np.float64)
    some = some - some.min(axis=0)
    whole = np.rint(some * (STEPS / (some.max() or 1.0))).astype(np.int64)
    columns = {"x": whole[:, 0], "y": whole[:, 1], "class": classes[:MOST_SHOWN]}
    return {name: " ".join(map(str, column.tolist())) for name, column in columns.items()}


def draw_positions(shown: Mapping[str, Mapping[str, str]]) -> str:
    """Return a figure of embeddings in two dimensions side by side, coloured by class, as SVG.

    Parameters
    ----------
    shown
        What `shown_positions` returned, by title.

    Examples
    --------
    >>> "PCA" in draw_positions({"PCA": {"x": "0 9", "y": "0 9", "class": "0 1"}})
    True
    """
    columns_of_panels = math.ceil(len(shown) / ROWS)
    rows = math.ceil(len(shown) / columns_of_panels)

    def draw(figure: Figure) -> None:
        for place, (title, columns) in enumerate(shown.items()):
            x, y, classes = (
                np.array(columns[name].split(), np.int64) for name in ("x", "y", "class")
            )
            axes = figure.add_subplot(rows, columns_of_panels, place + 1)
            points = axes.scatter(x, y, c=classes, cmap="tab10", s=3, linewidths=0, rasterized=True)
            axes.set_title(title, fontsize="medium")
            axes.set_aspect("equal", adjustable="datalim")  # titles stay in line
            axes.set_axis_off()
        key = points.legend_elements(num=np.unique(classes).tolist())
        figure.legend(*key, title="class", loc="outside right center", frameon=False)

    return svg(draw, width=8.0, height=5.4)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
