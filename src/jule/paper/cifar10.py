"""Table 8: CIFAR-10 classified by codes of its patches, raw or as joint learning represents them.

The pipeline is that of Coates, Ng and Lee: patches of 6 x 6 pixels, contrast-normalised and
whitened, 1,600 codes by K-means, activations of all codes summed over the four quadrants of an
image, and a linear SVM. The paper replaces the whitened patches by the convolutional layers of a
network that JULE learned on 40,000 of them. True classes are used by the SVM only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.files import array_bytes, make_folder, remove_tree, write_atomic, write_json
from jule.images import Dataset, fingerprint, load_dataset
from jule.joint.config import Config, preset
from jule.paper.experiment import Cell, Context, Experiment, Renderer, Request
from jule.paper.numbers import paper_score
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown
from jule.text import match_name

if TYPE_CHECKING:
    from jule.paper.patches import Describe, Rows, Whitening

SEEDS = 3
SEEDS_OF_ALL_SIZES = 1  # the other seeds leave out the largest training sets, which take longest
IMAGES_PER_FILE = 1000  # features are saved in such parts, so that an interrupted run loses little
CANDIDATES = (3.0, 10.0, 30.0, 100.0, 300.0)  # of C; Coates, Ng and Lee use 100

KMEANS, TWICE, JULE = "K-means", "K-means, twice the codes", "JULE"
COLUMNS = {KMEANS: (KMEANS,), TWICE: (TWICE,), JULE: ("conv1", "conv2", "conv1&2")}
SLUGS = {KMEANS: "kmeans", TWICE: "kmeans-twice", JULE: "jule"}


@dataclass(frozen=True)
class Setting:
    """Sizes of the experiment on a data set; the last `n_test` images are the test set."""

    n_test: int
    sizes: tuple[int, ...]  # of the training sets: the first images
    few: int  # the number of sizes that all seeds measure
    n_patches: int
    n_codes: int
    n_clusters: int  # K of joint learning; the paper does not say


SETTINGS = {
    "cifar10": Setting(10_000, (5000, 10_000, 25_000, 50_000), 2, 40_000, 1600, 100),
    "digits": Setting(597, (300, 1200), 1, 1500, 30, 10),
}


class Cifar10(Experiment):
    """Accuracy of a linear SVM on codes of whitened patches and of what was learned on them."""

    name = "cifar10"
    title = "Image classification by codes of patches (Table 8)"
    expected = "1 h"
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
            for seed in range(SEEDS if request.seeds is None else request.seeds)
            for method in methods
        ]

    def is_current(self, cell: Cell, record: Record) -> bool:
        return bool(record["settings"] == _plain(settings_of(cell)))

    def measure(self, cell: Cell, context: Context) -> Record:
        start, clock = time.perf_counter(), _Clock()
        settings = settings_of(cell)
        folder = _folder_for(settings, context.folder)
        data = load_dataset(cell.dataset)
        sizes, n_test = settings["sizes"], settings["n_test"]
        pipeline = _Pipeline(cell, data, settings, folder, context)
        about: dict[str, Any] = pipeline.learn(clock)
        images = np.concatenate([data.images[: sizes[-1]], data.images[-n_test:]])
        features = pipeline.features(images)
        clock.ends("features")
        labels = np.concatenate([data.labels[: sizes[-1]], data.labels[-n_test:]])
        rows = _classify(features, labels, settings, COLUMNS[cell.method or KMEANS], context)
        clock.ends("svm")
        return {
            "dataset": cell.dataset,
            "method": cell.method,
            "seed": cell.seed,
            "threads": _threads(),
            "settings": settings,
            **about,
            "rows": rows,
            "seconds of the stages": clock.seconds,
            "seconds since started or resumed": time.perf_counter() - start,
            "peak memory in MiB": _peak_memory(),
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

    def _table(self, results: Path) -> str:
        """Render the accuracies by the number of training images, the paper's in brackets."""
        found: dict[str, dict[int, list[float]]] = {}
        for path in sorted((results / self.name).glob("*/cifar10-[0-9]*.json")):
            for column, sizes in read_record(path)["rows"].items():
                for size, row in sizes.items():
                    values = found.setdefault(column, {}).setdefault(int(size), [])
                    values.append(row["accuracy"])
        columns = [column for each in COLUMNS.values() for column in each if column in found]
        rows = []
        for size in sorted({size for sizes in found.values() for size in sizes}):
            cells = [found[column].get(size, []) for column in columns]
            shown = [
                _mean_and_spread(values) + _papers(column, str(size), "cifar10")
                for column, values in zip(columns, cells, strict=True)
            ]
            rows.append([f"{size:,}", *shown, f"{max(map(len, cells))}"])
        return markdown(["training images", *columns, "seeds"], rows)


def settings_of(cell: Cell) -> dict[str, Any]:
    """Return everything that determines the result of a cell.

    Examples
    --------
    >>> settings_of(Cell("", "cifar10", seed=2, method="K-means"))["sizes"]
    (5000, 10000)
    """
    setting, seed = SETTINGS[cell.dataset], cell.seed or 0
    if seed >= SEEDS_OF_ALL_SIZES:
        setting = replace(setting, sizes=setting.sizes[: setting.few])
    settings = asdict(setting) | {"seed": seed, "candidates": CANDIDATES}
    if cell.method == TWICE:
        settings |= {"n_codes": 2 * setting.n_codes, "sizes": setting.sizes[: setting.few]}
    if cell.method == JULE:
        settings["joint"] = config_for_patches(setting.n_clusters, seed).to_json()
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


class _Pipeline:
    """From patches to codes to features; the parts that take long are saved in a folder."""

    def __init__(
        self, cell: Cell, data: Dataset, settings: Record, folder: Path, context: Context
    ) -> None:
        from jule.paper.patches import fit_whitening, normalize_contrast, random_patches

        self._settings, self._folder, self._progress = settings, folder, context.progress
        self._learns = cell.method == JULE
        self._seed: int = settings["seed"]
        training = data.images[: len(data) - settings["n_test"]]
        self._patches = normalize_contrast(
            random_patches(training, settings["n_patches"], self._seed)
        )
        self._whitening: Whitening = fit_whitening(self._patches)
        self._describe: Describe = lambda patches: [self._whitening(patches)]
        self._codebooks: list[Rows] = []

    def learn(self, clock: _Clock) -> Record:
        """Learn the representation, if any, and the codes; return what to record of it."""
        from jule.paper.codes import learn_codes

        about: Record = {}
        if self._learns:
            about["history"] = self._learn_representation()
            clock.ends("joint learning")
        vectors = self._describe(self._patches)
        for number, each in enumerate(vectors):
            self._progress("codes", number / len(vectors))
            self._codebooks.append(learn_codes(each, self._settings["n_codes"], self._seed))
        clock.ends("codes")
        return about

    def _learn_representation(self) -> list[dict[str, Any]]:
        """Run joint learning on the patches, or resume it; return its history."""
        import torch

        from jule.backward.embedder import get_weights, set_weights
        from jule.joint import init_network, joint_learning
        from jule.joint.state import load_state, save_state
        from jule.paper.patches import SIDE, ConvolutionalLayers, PatchNet

        config = Config.from_json(self._settings["joint"])
        patches = self._whitening(self._patches).reshape(len(self._patches), SIDE, SIDE, -1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            network = init_network(patches, config, PatchNet(patches.shape[-1]))
        identity = {"config": config.to_json(), "data": fingerprint(patches)}
        states = make_folder(self._folder / "states")
        state = load_state(states, identity, network=get_weights(network))
        for after in joint_learning(patches, network, config, state=state, progress=self._progress):
            state = after
            save_state(states, state, identity)
        assert state is not None  # a run has at least one period
        set_weights(network, state.network)
        self._describe = ConvolutionalLayers(self._whitening, network)
        return [asdict(period) for period in state.history]

    def features(self, images: NDArray) -> Rows:
        """Return the features of images; parts that were saved are read."""
        from jule.paper.codes import QUADRANTS, encode

        width = QUADRANTS * sum(map(len, self._codebooks))
        features = np.empty((len(images), width), np.float32)
        for start in range(0, len(images), IMAGES_PER_FILE):
            part = images[start : start + IMAGES_PER_FILE]
            path = self._folder / f"features-{start:06d}.npy"
            if not path.exists():
                coded = encode(part, self._describe, self._codebooks)
                write_atomic(path, array_bytes(coded))
            features[start : start + len(part)] = np.load(path, allow_pickle=False)
            self._progress("features", min(1.0, (start + IMAGES_PER_FILE) / len(images)))
        return features


def _folder_for(settings: Record, folder: Path) -> Path:
    """Return the folder for unfinished work, without what other settings have left in it."""
    about = folder / "settings.json"
    if not about.exists() or read_record(about) != _plain(settings):
        remove_tree(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_folder(folder)
        write_json(about, settings)
    return folder


def _plain(settings: Record) -> Record:
    """Return settings as they are read from a file."""
    plain: Record = json.loads(json.dumps(settings))
    return plain


def _classify(
    features: Rows, labels: NDArray, settings: Record, columns: tuple[str, ...], context: Context
) -> dict[str, dict[str, Record]]:
    """Train and test the SVM for every column of the table and size of the training set.

    The features of the first column come first, then those of the second one; the third column is
    both together. The training sets begin with the same images, so their second moments add up.
    """
    from jule.paper.svm import Moments, choose_c, train_svm

    sizes, width = settings["sizes"], features.shape[1]
    parts = [slice(0, width)]
    if len(columns) > 1:
        parts = [slice(0, width // 2), slice(width // 2, width), slice(0, width)]
    tested, expected = features[sizes[-1] :], labels[sizes[-1] :]
    rows: dict[str, dict[str, Record]] = {column: {} for column in columns}
    moments = Moments(features[: sizes[0]].mean(axis=0))
    for begin, size in pairwise((0, *sizes)):
        moments.add(features[begin:size])
        for number, (column, part) in enumerate(zip(columns, parts, strict=True)):
            context.progress(f"SVM on {size:,} images", number / len(columns))
            start = time.perf_counter()
            given = features[:size, part], labels[:size]
            its = moments.of(part)
            c, scores = choose_c(*given, settings["candidates"], moments=its)
            trained = train_svm(*given, c, moments=its)
            rows[column][str(size)] = {
                "accuracy": trained.accuracy(tested[:, part], expected),
                "C": c,
                "held-out accuracies": {f"{each:g}": score for each, score in scores.items()},
                "iterations": trained.iterations,
                "seconds": time.perf_counter() - start,
            }
    return rows


def _threads() -> int:
    from jule.forward.jit import get_num_threads

    return get_num_threads()


def _peak_memory() -> int | None:
    """Return the largest memory that this process has had, in MiB; None where it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used // (2**20 if sys.platform == "darwin" else 2**10)


def _papers(column: str, size: str, dataset: str) -> str:
    if dataset != "cifar10" or column == TWICE:
        return ""
    return f" ({paper_score(column, size, 'cifar10').ac:.3f})"


def _mean_and_spread(values: list[float]) -> str:
    if not values:
        return "-"
    spread = f" ± {np.std(values):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


class _Clock:
    """Measures the seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def ends(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self._last
        self._last = now
