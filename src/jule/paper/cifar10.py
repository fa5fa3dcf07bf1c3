"""Table 8: CIFAR-10 classified by codes of its patches, raw or as joint learning represents them.

The pipeline is that of Coates, Ng and Lee: patches of 6 x 6 pixels, contrast-normalised and
whitened, 1,600 codes by K-means, activations of all codes summed over the four quadrants of an
image, and a linear SVM. The paper replaces the whitened patches by the convolutional layers of a
network that JULE learned on 40,000 of them. True classes are used by the SVM only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.files import make_folder, remove_tree, write_json
from jule.images import Dataset, load_dataset
from jule.joint.config import Config, preset
from jule.locks import NAME as LOCK
from jule.locks import hold
from jule.paper.experiment import Cell, Comparison, Context, Experiment, Renderer, Request
from jule.paper.numbers import paper_methods, paper_score
from jule.paper.records import Record, read_leftover, read_record
from jule.paper.tables import markdown, mean_and_spread
from jule.paper.usage import Usage
from jule.progress import Progress
from jule.text import match_name

if TYPE_CHECKING:
    from jule.paper.patches import Rows
    from jule.paper.svm import Moments

SEEDS = 3
SEEDS_OF_CONTROLS = 1
CANDIDATES = (3.0, 10.0, 30.0, 100.0, 300.0)  # of C; Coates, Ng and Lee use 100
VARIANCE = 0.9  # the share that is kept of a layer; all of it takes twice as long

# The methods, and the columns of the table that they fill. The last two are controls: codes learned
# on as many patches as Coates, Ng and Lee use (400,000), and the layers of an untrained network.
KMEANS, JULE, MORE, UNTRAINED = "K-means", "JULE", "K-means of more patches", "untrained"
CONTROLS = (MORE, UNTRAINED)
TIMES = 10  # as many patches
COLUMNS = {
    KMEANS: (KMEANS,),
    JULE: ("conv1", "conv2", "conv1&2"),
    MORE: ("K-means, ten times the patches",),
    UNTRAINED: ("conv1, untrained", "conv2, untrained", "conv1&2, untrained"),
}
SLUGS = {
    KMEANS: "kmeans",
    JULE: "jule",
    MORE: "kmeans-more",
    UNTRAINED: "untrained",
}


@dataclass(frozen=True)
class Setting:
    """Sizes of the experiment on a data set; the last `n_test` images are the test set."""

    n_test: int
    sizes: tuple[int, ...]  # of the training sets: the first images
    n_patches: int
    n_codes: int
    n_clusters: int  # K of joint learning; the paper does not say


SETTINGS = {
    "cifar10": Setting(10_000, (5000, 10_000, 25_000, 50_000), 40_000, 1600, 100),
    "digits": Setting(597, (300, 1200), 1500, 30, 10),
}


class Cifar10(Experiment):
    """Accuracy of a linear SVM on codes of whitened patches and of what was learned on them."""

    name = "cifar10"
    title = "Image classification by codes of patches (Table 8)"
    expected = "3 h"
    datasets = ("cifar10",)
    options = ("datasets", "seeds", "methods")

    def cells(self, request: Request) -> list[Cell]:
        names = {name: name for name in COLUMNS}
        methods = [match_name(one, names, "method") for one in request.methods or names]
        sets = request.datasets or self.datasets
        for name in sets:
            if name not in SETTINGS:
                raise ValueError(f"{self.name} runs on {', '.join(SETTINGS)}, not on {name!r}")
        return [
            Cell(f"{self.name}/{SLUGS[method]}/{name}-{seed}.json", name, seed=seed, method=method)
            for name in sets
            for method in methods
            for seed in range(request.seeds or (SEEDS_OF_CONTROLS if method in CONTROLS else SEEDS))
        ]

    def is_current(self, cell: Cell, record: Record) -> bool:
        settings = dict(record["settings"])
        if "joint" in settings:
            settings["joint"] = Config.from_json(settings["joint"]).to_json()
        columns = COLUMNS[cell.method or KMEANS]
        return bool(settings == _plain(settings_of(cell))) and set(record["rows"]) == set(columns)

    def measure(self, cell: Cell, context: Context) -> Record:
        data = load_dataset(cell.dataset)
        with hold(make_folder(context.folder)):
            settings = settings_of(cell)
            _keep_only_work_for(settings, context.folder)
            return self._measure(cell, data, settings, context)

    def _measure(
        self, cell: Cell, data: Dataset, settings: dict[str, Any], context: Context
    ) -> Record:
        from jule.paper.patch_pipeline import PatchPipeline

        folder = context.folder
        usage = Usage(folder / "usage.json", context.progress)
        sizes, n_test = settings["sizes"], settings["n_test"]
        pipeline = PatchPipeline(
            data.images[: len(data) - n_test],
            n_patches=settings["n_patches"],
            seed=settings["seed"],
            folder=folder,
            progress=usage.report,
        )
        about: Record = {}
        if "joint" in settings:
            usage.begin("joint learning")
            config = Config.from_json(settings["joint"])
            about["history"] = pipeline.learn_network(
                config, is_trained=settings["trained"], variance=settings["variance"]
            )
        usage.begin("codes")
        about["dimensions"] = pipeline.learn_codes(settings["n_codes"])
        usage.begin("features")
        used = np.r_[: sizes[-1], len(data) - n_test : len(data)]
        features, labels = pipeline.features(data.images[used]), data.labels[used]
        usage.begin("svm")
        rows = _classify(
            features, labels, settings, COLUMNS[cell.method or KMEANS], folder, usage.report
        )
        usage.end()
        return {
            "dataset": cell.dataset,
            "method": cell.method,
            "seed": cell.seed,
            "threads": _threads(),
            "settings": settings,
            **about,
            "rows": rows,
            "seconds of the stages": usage.seconds,
            "seconds": sum(usage.seconds.values()),
            "peak memory of the stages in MiB": usage.peaks,
        }

    def summary(self, record: Record) -> str:
        lines = []
        for column, sizes in record["rows"].items():
            shown = [
                f"{size} {found['accuracy']:.4f}{_papers(column, size, record['dataset'])}"
                for size, found in sizes.items()
            ]
            lines.append(
                f"{record['dataset']} seed {record['seed']} {column:8s} {'  '.join(shown)}"
            )
        return "\n".join(lines)

    def tables(self) -> Mapping[str, Renderer]:
        return {self.name: self._table}

    def comparisons(self, results: Path) -> list[Comparison]:
        return [
            Comparison(f"{column}, {size:,} images", float(np.mean(values)), papers)
            for column, sizes in self._found(results).items()
            if column in paper_methods("cifar10")
            for size, values in sizes.items()
            if (papers := paper_score(column, str(size), "cifar10").ac) is not None
        ]

    def _found(self, results: Path) -> dict[str, dict[int, list[float]]]:
        """Return the accuracies by column and number of training images, one per seed."""
        found: dict[str, dict[int, list[float]]] = {}
        for path in sorted((results / self.name).glob("*/cifar10-[0-9]*.json")):
            for column, sizes in read_record(path)["rows"].items():
                for size, row in sizes.items():
                    values = found.setdefault(column, {}).setdefault(int(size), [])
                    values.append(row["accuracy"])
        return found

    def _table(self, results: Path) -> str:
        """Render the accuracies by the number of training images, the paper's in brackets."""
        found = self._found(results)
        columns = [column for each in COLUMNS.values() for column in each if column in found]
        rows = []
        for size in sorted({size for sizes in found.values() for size in sizes}):
            cells = [found[column].get(size, []) for column in columns]
            shown = [
                mean_and_spread(values) + _papers(column, str(size), "cifar10")
                for column, values in zip(columns, cells, strict=True)
            ]
            rows.append([f"{size:,}", *shown, f"{max(map(len, cells))}"])
        return markdown(["training images", *columns, "seeds"], rows)


def settings_of(cell: Cell) -> dict[str, Any]:
    """Return everything that determines the result of a cell.

    Examples
    --------
    >>> settings_of(Cell("", "cifar10", seed=2, method="K-means"))["sizes"]
    (5000, 10000, 25000, 50000)
    """
    setting, seed = SETTINGS[cell.dataset], cell.seed or 0
    if cell.method == MORE:
        setting = replace(setting, n_patches=TIMES * setting.n_patches)
    settings = asdict(setting) | {"seed": seed, "candidates": CANDIDATES}
    if cell.method in (JULE, UNTRAINED):
        joint = config_for_patches(setting.n_clusters, seed).to_json()
        settings |= {"joint": joint, "variance": VARIANCE, "trained": cell.method == JULE}
    return settings


def config_for_patches(n_clusters: int, seed: int) -> Config:
    """Return the settings of joint learning on whitened patches.

    Patches keep their size and their contrast, which the pipeline has set already, and are not
    warped: that would undo the whitening.

    Examples
    --------
    >>> config_for_patches(100, seed=0).min_side is None
    True
    """
    return preset(
        n_clusters=n_clusters,
        seed=seed,
        rounds=1,
        min_side=None,
        max_side=None,
        normalize=False,
        augment=False,
    )


def _keep_only_work_for(settings: Record, folder: Path) -> None:
    """Remove what other settings have left in a folder for unfinished work."""
    about = folder / "settings.json"
    if read_leftover(about) != _plain(settings):
        for left in folder.iterdir():
            if left.name != LOCK:
                remove_tree(left)
        write_json(about, settings)


def _plain(settings: Record) -> Record:
    """Return settings as they are read from a file."""
    plain: Record = json.loads(json.dumps(settings))
    return plain


def _classify(
    features: Rows,
    labels: NDArray,
    settings: Record,
    columns: tuple[str, ...],
    folder: Path,
    progress: Progress,
) -> dict[str, dict[str, Record]]:
    """Train and test the SVM for every column of the table and size of the training set.

    The features of the first column come first, then those of the second one; the third column is
    both together. The training sets begin with the same images, so their second moments add up.
    What was found is saved in the folder.
    """
    from jule.paper.svm import Moments

    sizes, width = settings["sizes"], features.shape[1]
    parts = [slice(0, width)]
    if len(columns) > 1:
        parts = [slice(0, width // 2), slice(width // 2, width), slice(0, width)]
    saved = folder / "rows.json"
    found = read_leftover(saved)
    rows: dict[str, dict[str, Record]] = {column: found.get(column, {}) for column in columns}
    moments = Moments(features[: sizes[0]].mean(axis=0))
    for begin, size in pairwise((0, *sizes)):
        progress(f"moments of {size:,} images", 0.0)
        moments.add(features[begin:size])
        for column, part in zip(columns, parts, strict=True):
            if str(size) in rows[column]:
                continue
            stage = f"SVM on {size:,} images, {column}"
            progress(stage, 0.0)
            rows[column][str(size)] = _train_and_test(
                (features[:size, part], labels[:size]),
                (features[sizes[-1] :, part], labels[sizes[-1] :]),
                settings["candidates"],
                moments.of(part),
                partial(progress, stage),
            )
            write_json(saved, rows)
    return rows


def _train_and_test(
    given: tuple[Rows, NDArray],
    tested: tuple[Rows, NDArray],
    candidates: tuple[float, ...],
    moments: Moments,
    progress: Callable[[float], None],
) -> Record:
    from jule.paper.svm import choose_c, train_svm

    start = time.perf_counter()
    c, scores = choose_c(*given, candidates, moments=moments, progress=progress)
    trained = train_svm(*given, c, moments=moments)
    return {
        "accuracy": trained.accuracy(*tested),
        "C": c,
        "held-out accuracies": {f"{each:g}": score for each, score in scores.items()},
        "iterations": trained.iterations,
        "seconds": time.perf_counter() - start,
    }


def _threads() -> int:
    from jule.jit import get_num_threads

    return get_num_threads()


def _papers(column: str, size: str, dataset: str) -> str:
    if dataset != "cifar10" or column not in paper_methods("cifar10"):
        return ""
    return f" ({paper_score(column, size, 'cifar10').ac:.3f})"
