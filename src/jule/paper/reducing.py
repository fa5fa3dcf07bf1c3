"""The methods that reduce images to few dimensions, with their settings and numbers of seeds."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.backward.settings import MapTraining
from jule.files import array_bytes, json_bytes, make_folder, parse_json, write_atomic
from jule.forward import MergeTree
from jule.images import fingerprint
from jule.joint.clustering import cut_tree, examine_inputs
from jule.joint.config import Config
from jule.paper.experiment import Context

Embedded = tuple[NDArray[np.floating], NDArray[np.floating], dict[str, Any]]
TREE, NEIGHBORS, ABOUT = "tree.npz", "neighbors.npy", "about.json"


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test images with their classes, and a name for files."""

    name: str
    train: NDArray[np.uint8] = field(repr=False)
    train_labels: NDArray[np.int64] = field(repr=False)
    test: NDArray[np.uint8] = field(repr=False)
    test_labels: NDArray[np.int64] = field(repr=False)

    @property
    def n_classes(self) -> int:
        """Number of classes, at which merging stops."""
        return len(np.unique(self.train_labels))

    def intensities(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return training and test images as vectors from 0 to 1."""
        train, test = (x.reshape(len(x), -1) / np.float32(255) for x in (self.train, self.test))
        return train.astype(np.float32, copy=False), test.astype(np.float32, copy=False)


@dataclass(frozen=True)
class Method:
    """A method, as a row of the tables.

    Attributes
    ----------
    name
        Name of the row; where the paper has the method, the paper's.
    reduce
        Called with the data, the number of dimensions, the seed, the settings and the context;
        returns embedded training and test images, and what else is recorded.
    settings
        What a record is measured with.
    seeds
        How many seeds are published; 0 if nothing is random.
    is_control
        Whether it only explains another row; such methods are not in the figure.
    """

    name: str
    reduce: Callable[[Split, int, int, dict[str, Any], Context], Embedded]
    settings: dict[str, Any]
    seeds: int = 3
    is_control: bool = False

    @property
    def slug(self) -> str:
        """The name of its folder.

        Examples
        --------
        >>> find_method("Param. t-SNE").slug
        'param-t-sne'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def is_random(self) -> bool:
        """Whether the result depends on a seed."""
        return self.seeds > 0

    def n_seeds(self, asked: int | None) -> int:
        """Return how many seeds to measure.

        Examples
        --------
        >>> find_method("PCA").n_seeds(3), find_method("OURS").n_seeds(2)
        (1, 2)
        """
        return (asked or self.seeds) if self.is_random else 1

    def embed(self, data: Split, dimensions: int, seed: int, context: Context) -> Embedded:
        """Learn from the training images, and embed them and the test images."""
        return self.reduce(data, dimensions, seed, self.settings, context)


def find_method(name: str) -> Method:
    """Return a method by its exact name.

    Examples
    --------
    >>> find_method("NCA").seeds
    3
    """
    return next(method for method in METHODS if method.name == name)


def _pca(data: Split, dimensions: int, seed: int, settings: dict[str, Any], _: Context) -> Embedded:
    from sklearn.decomposition import PCA

    train, test = data.intensities()
    pca = PCA(dimensions, random_state=seed, **settings).fit(train)
    return pca.transform(train), pca.transform(test), {}


def _pca_test_not_centred(
    data: Split, dimensions: int, seed: int, settings: dict[str, Any], _: Context
) -> Embedded:
    """Subtract the mean from the training images only, which moves the test images aside."""
    from sklearn.decomposition import PCA

    train, test = data.intensities()
    pca = PCA(dimensions, random_state=seed, **settings).fit(train)
    return pca.transform(train), test @ pca.components_.T, {}


def _nca(
    data: Split, dimensions: int, seed: int, settings: dict[str, Any], context: Context
) -> Embedded:
    """Learn from some images: the cost grows with the square of their number."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    train, test = data.intensities()
    some = np.random.default_rng(seed).permutation(len(train))[: settings["samples"]]
    context.progress("NCA", 0.0)
    nca = NeighborhoodComponentsAnalysis(
        dimensions, init="pca", max_iter=settings["iterations"], random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of iterations is recorded
        nca.fit(train[some], data.train_labels[some])
    return nca.transform(train), nca.transform(test), {"training images used": len(some)}


def _autoencoder(
    data: Split, dimensions: int, seed: int, settings: dict[str, Any], context: Context
) -> Embedded:
    from jule.paper.reducers import Fitting, apply_network, train_autoencoder

    train, test = data.intensities()
    show = partial(context.progress, "autoencoder")
    fitting = Fitting(**settings)
    network = train_autoencoder(train, dimensions, fitting=fitting, seed=seed, progress=show)
    return apply_network(network, train), apply_network(network, test), {}


def _parametric_tsne(
    data: Split, dimensions: int, seed: int, settings: dict[str, Any], context: Context
) -> Embedded:
    from jule.paper.reducers import Fitting, apply_network, train_parametric_tsne

    train, test = data.intensities()
    fitted = {each.name: settings[each.name] for each in fields(Fitting)}
    network = train_parametric_tsne(
        train,
        dimensions,
        fitting=Fitting(**fitted),
        perplexity=settings["perplexity"],
        seed=seed,
        progress=partial(context.progress, "parametric t-SNE"),
    )
    return apply_network(network, train), apply_network(network, test), {}


def _jule(
    data: Split, dimensions: int, seed: int, settings: dict[str, Any], context: Context
) -> Embedded:
    """Train on clusters that merge by the affinities of the images themselves."""
    from jule.backward.mapping import train_map
    from jule.joint.lowdim import stages_of_tree
    from jule.paper.reducers import apply_network, build_image_mapper

    config = Config(n_clusters=data.n_classes)
    tree, neighbors = _raw_tree(data, config, context)
    stages = stages_of_tree(tree, cut_tree(tree, data.n_classes, config), settings["eta"])
    training = MapTraining(**settings["training"])
    per_step = training.batch_size + (2 * training.n_pairs if training.within else 0)
    n_steps = -(-settings["epochs"] * len(data.train) // per_step)
    spread = settings.get("spread of the principal components")
    network = build_image_mapper(data.train, dimensions, settings["side"], spread=spread, seed=seed)
    train_map(
        network,
        data.train,
        stages,
        neighbors,
        n_steps=n_steps,
        settings=training,
        seed=seed,
        progress=partial(context.progress, "training"),
    )
    train, test = (apply_network(network, images) for images in (data.train, data.test))
    return train, test, {"initial clusters": tree.n_initial, "stages": len(stages)}


def _raw_tree(
    data: Split, config: Config, context: Context
) -> tuple[MergeTree, NDArray[np.integer]]:
    """Return the merge tree and the neighbours of the training images, which all cells share."""
    folder = context.runs / f"embedding-{data.name}"
    about = {"data": fingerprint(data.train), "settings": config.to_json()}
    try:
        if parse_json((folder / ABOUT).read_bytes()) == parse_json(json_bytes(about)):
            tree = MergeTree.from_bytes((folder / TREE).read_bytes())
            return tree, np.load(folder / NEIGHBORS, allow_pickle=False)
    except FileNotFoundError:
        pass
    inputs = examine_inputs(data.train, config, context.progress)
    make_folder(context.runs)
    make_folder(folder)
    write_atomic(folder / TREE, inputs.tree.to_bytes())
    write_atomic(folder / NEIGHBORS, array_bytes(inputs.neighbors.indices))
    write_atomic(folder / ABOUT, json_bytes(about))  # last: what it describes is then there
    return inputs.tree, inputs.neighbors.indices


def _jule_settings(**training: Any) -> dict[str, Any]:
    # At half their size, images are far less work for the network.
    return {"eta": 0.2, "epochs": 12, "side": 14, "training": asdict(MapTraining(**training))}


def _jule_on_components() -> dict[str, Any]:
    # Tried by hand on the last 10,000 training images; 15 was only slightly worse.
    return _jule_settings() | {"spread of the principal components": 5.0}


METHODS = (
    Method("PCA", _pca, {"svd_solver": "covariance_eigh"}, seeds=0),
    Method(
        "PCA (test images not centred)",
        _pca_test_not_centred,
        {"svd_solver": "covariance_eigh"},
        seeds=0,
        is_control=True,
    ),
    Method("NCA", _nca, {"samples": 3000, "iterations": 50}),
    Method("Autoencoder", _autoencoder, {"epochs": 10, "batch_size": 200, "learning_rate": 1e-3}),
    Method(
        "Param. t-SNE",
        _parametric_tsne,
        # The perplexity is the same share of a batch as in the original, 30 of 5,000. Smaller
        # batches give more steps per epoch.
        {
            "epochs": 30,
            "batch_size": 2000,
            # Not an option: it tells these records from earlier ones, whose batches were fixed.
            "batches": "drawn in every epoch",
            "learning_rate": 3e-3,
            "perplexity": 12.0,
        },
    ),
    Method("OURS", _jule, _jule_settings(within=0.0, margin=0.2)),
    Method("OURS + neighbours", _jule, _jule_settings()),
    Method("OURS + neighbours on PCA", _jule, _jule_on_components()),
)
