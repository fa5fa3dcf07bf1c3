"""Tables 5 and 6: a network learned on one data set, whose layers cluster another one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.evaluation import scores
from jule.forward import prepare
from jule.images import Dataset, load_dataset
from jule.joint.clustering import cut_tree, initial_clusters, merge_tree, represent
from jule.joint.config import Config
from jule.paper.experiment import Cell, Comparison, Context, Experiment, Renderer, Request
from jule.paper.joint import SEEDS, Joint
from jule.paper.learned import learned_config, learned_run
from jule.paper.numbers import DISPLAY, paper_score
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown, mean_and_spread

if TYPE_CHECKING:
    from jule.backward import Embedder

DATA = "data"
LAYERS = (DATA, "top", "top-1", "top-2")  # the paper's: the input, and layers from the top down


class Transfer(Experiment):
    """A table of transfer: a network learned on each data set clusters each of the others."""

    options = ("datasets", "seeds")

    def cells(self, request: Request) -> list[Cell]:
        names = request.datasets or self.datasets
        if len(names) < 2:
            raise ValueError(
                f"{self.name} needs two data sets or more: it learns on each of them and clusters "
                "the others"
            )
        return [
            Cell(f"{self.name}/{source}-to-{target}-{seed}.json", target, seed=seed, source=source)
            for source, target in permutations(names, 2)
            for seed in range(SEEDS if request.seeds is None else request.seeds)
        ]

    def is_current(self, cell: Cell, record: Record) -> bool:
        source = cell.source or ""
        config = Config.from_json(record["joint"]["settings"])
        return config == learned_config(source, cell.seed or 0, record["joint"]["clusters"])

    def measure(self, cell: Cell, context: Context) -> Record:
        source, target = _load(cell.source or ""), _load(cell.dataset)
        run = learned_run(source, cell.seed or 0, context)
        network = run.network()
        images = match_channels(target.images, len(network.mean))
        config = replace(run.results.config, n_clusters=target.n_clusters)
        layers: dict[str, Any] = {}
        for done, layer in enumerate(layers_of(network, images)):
            context.progress(f"clustering by {layer}", done / len(LAYERS))
            start = time.perf_counter()
            vectors = prepare(layer_output(network, images, layer), "l2")
            labels = cluster(vectors, config)
            layers[layer] = {
                "features": vectors.shape[1],
                "scores": scores(target.labels, labels),
                "seconds": time.perf_counter() - start,
            }
        return {
            "source": cell.source,
            "dataset": cell.dataset,
            "samples": len(target),
            "clusters": target.n_clusters,
            "seed": cell.seed,
            "nmi": "geometric",
            "preparation of every layer": "l2",
            "size of the network's images": network.size,
            "layers": layers,
            "joint": {
                "settings": run.results.config.to_json(),
                "clusters": source.n_clusters,
                "scores": scores(source.labels, run.results.result.labels_rc),
            },
        }

    def summary(self, record: Record) -> str:
        pair = record["source"], record["dataset"]
        parts = [
            f"{layer} {found['scores']['nmi']:.3f} (paper {_papers(*pair, layer) or '-'})"
            for layer, found in record["layers"].items()
        ]
        return f"{' to '.join(pair):22s} seed {record['seed']}  NMI  " + "  ".join(parts)

    def tables(self) -> Mapping[str, Renderer]:
        return {self.name: self._table}

    def comparisons(self, results: Path) -> list[Comparison]:
        found = []
        for source, target in permutations(self.datasets, 2):
            records = self._records(results, source, target)
            for layer in LAYERS:
                values, papers = _values(records, layer), _papers(source, target, layer)
                if values and papers is not None:
                    what = f"{DISPLAY[source]} → {DISPLAY[target]}, {layer}"
                    found.append(Comparison(what, float(np.mean(values)), papers))
        return found

    def _records(self, results: Path, source: str, target: str) -> list[Record]:
        paths = sorted((results / self.name).glob(f"{source}-to-{target}-[0-9]*.json"))
        return [read_record(path) for path in paths]

    def _table(self, results: Path) -> str:
        rows = []
        for source, target in permutations(self.datasets, 2):
            records = self._records(results, source, target)
            if not records:
                continue
            name = f"{DISPLAY.get(source, source)} → {DISPLAY.get(target, target)}"
            cells = [_cell(records, source, target, layer) for layer in LAYERS]
            rows.append([name, *cells, _learned_on(results, target), str(len(records))])
        return markdown(["NMI", *LAYERS, "learned on the target, RC", "seeds"], rows)


class TransferCoil(Transfer):
    """Between the two sets of objects."""

    name = "transfer-coil"
    title = "COIL-20 and COIL-100, clustered by each other's network (Table 5)"
    datasets = ("coil20", "coil100")
    expected = "5 min after table4"


class TransferDigits(Transfer):
    """Between two sets of handwritten digits."""

    name = "transfer-digits"
    title = "MNIST-test and USPS, clustered by each other's network (Table 6)"
    datasets = ("mnist-test", "usps")
    expected = "10 min after table4"


def match_channels(images: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """Repeat the channel of grey images, or average those of RGB images.

    Examples
    --------
    >>> match_channels(np.zeros((5, 8, 8), np.uint8), 3).shape
    (5, 8, 8, 3)
    >>> match_channels(np.array([[[[10, 20, 40]]]], np.uint8), 1).tolist()
    [[[23]]]
    """
    has = 1 if images.ndim == 3 else images.shape[3]
    if has == channels:
        return images
    if has == 1:
        return np.repeat(images.reshape(*images.shape[:3], 1), channels, axis=3)
    if channels == 1:
        # Image by image: a whole set of large images in float64 may not fit into the memory.
        return np.stack([np.rint(image.mean(axis=2)).astype(np.uint8) for image in images])
    raise ValueError(f"images with {has} channels cannot be given to a network for {channels}")


def layers_of(network: Embedder, images: NDArray[np.uint8]) -> list[str]:
    """Return those of the paper's layers that a network has."""
    from jule.backward.embedder import as_images, tap_names

    outputs = network.eval().body.layers(network.scaled(as_images(images[:1])))  # type: ignore[operator]
    return [layer for layer in LAYERS if layer in (DATA, *tap_names(len(outputs)))]


def layer_output(network: Embedder, images: NDArray[np.uint8], layer: str) -> NDArray[np.float32]:
    """Return what a layer makes of images; ``"data"`` is their pixels at the network's size."""
    from jule.backward import embed
    from jule.backward.embedder import as_images, resize

    if layer != DATA:
        return embed(network, images, tap=layer)
    assert network.size is not None  # a network for images
    blocks = np.array_split(images, -(-len(images) // 500))
    return np.concatenate([resize(as_images(block), network.size).numpy() for block in blocks])


def cluster(vectors: NDArray[np.floating], config: Config) -> NDArray[np.int32]:
    """Cluster vectors as joint learning clusters its final representation (RC).

    Examples
    --------
    >>> line = np.array([[0.0], [1.0], [8.0], [9.5]])
    >>> cluster(line, Config(n_clusters=2, n_neighbors=2)).tolist()
    [0, 0, 1, 1]
    """
    found = represent(vectors, config)
    tree = merge_tree(found, initial_clusters(found, config), config)
    return cut_tree(tree, config.n_clusters or 1, config)


@lru_cache(maxsize=2)
def _load(dataset: str) -> Dataset:
    """Read a data set. Two are cached: cells take turns in learning on one of them."""
    return load_dataset(dataset)


def _papers(source: str, target: str, layer: str) -> float | None:
    return paper_score(layer, f"{source}-to-{target}", "transfer").nmi


def _values(records: list[Record], layer: str) -> list[float]:
    """Return the NMI of a layer by seed; small networks do not have all layers."""
    found = [record["layers"].get(layer) for record in records]
    return [one["scores"]["nmi"] for one in found if one is not None]


def _cell(records: list[Record], source: str, target: str, layer: str) -> str:
    """Return our mean and spread over the seeds, and the paper's number in brackets."""
    values = _values(records, layer)
    papers = _papers(source, target, layer)
    if not values:
        return "-"
    spread = "" if layer == DATA else f" ± {np.std(values):.3f}"
    return f"{np.mean(values):.3f}{spread} ({'-' if papers is None else f'{papers:.3f}'})"


def _learned_on(results: Path, dataset: str) -> str:
    """Return the NMI of RC where the network was learned on the data set itself."""
    paths = sorted((results / Joint.name / "default").glob(f"{dataset}-[0-9]*.json"))
    values = [read_record(path)["scores"]["rc"]["nmi"] for path in paths]
    paper = paper_score("OURS-RC", dataset).nmi
    return f"{mean_and_spread(values)} ({'-' if paper is None else f'{paper:.3f}'})"
