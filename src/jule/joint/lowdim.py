"""Learn a map: a network that places samples in few dimensions, by their clusters and neighbours.

The paper's appendix on low-dimensional embedding trains on clusters that merge by affinities which
stay the same (Sec. "Visualizing Data in Low Dimension"). The merges then do not depend on the
network, so its stages are cuts of one merge tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jule.backward.embedder import best_device
from jule.backward.mapper import Mapper, build_mapper, place
from jule.backward.mapping import train_map
from jule.backward.settings import MapTraining
from jule.forward import MergeTree
from jule.joint.config import Config
from jule.joint.result import Result
from jule.progress import Progress

ETA = 0.2  # unrolling rate of the paper's low-dimensional embedding
EPOCHS, FEWEST_STEPS, MOST_STEPS = 20, 500, 2000  # of the map of a run
MAPPING = "map"  # the stage, for progress


@dataclass(frozen=True, eq=False)
class Map:
    """A map of the samples of a run.

    Attributes
    ----------
    mapper
        Maps the representation of a sample to its position.
    positions
        (n, n_components) positions of the samples of the run.
    """

    mapper: Mapper
    positions: NDArray[np.float32]


def stages_of_tree(
    tree: MergeTree, labels: NDArray[np.int32], eta: float = ETA
) -> list[NDArray[np.int32]]:
    """Return the clusters of every stage, from the initial clusters of a tree to given labels.

    Parameters
    ----------
    tree
        The merge tree.
    labels
        (n,) the clusters of the last stage.
    eta
        Unrolling rate: a stage merges ceil(eta * n_c) of its n_c clusters.

    Examples
    --------
    >>> tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([0.5, 0.4, 0.1]))
    >>> stages = stages_of_tree(tree, np.array([0, 0, 1, 1], np.int32))
    >>> [stage.tolist() for stage in stages]
    [[0, 1, 2, 3], [0, 0, 1, 2], [0, 0, 1, 1]]
    """
    found = []
    k, count = int(labels.max()) + 1, tree.n_initial
    while count > k:
        found.append(tree.cut(count))
        count -= math.ceil(eta * count)
    return [*found, labels]


def learn_map(
    result: Result,
    n_components: int = 2,
    *,
    seed: int = 0,
    device: str = "auto",
    n_steps: int | None = None,
    settings: MapTraining | None = None,
    progress: Progress | None = None,
) -> Map:
    """Train a map on the representation, the clusters and the neighbours of a result.

    Neighbours are those in the final representation and those before learning, in equal parts: the
    latter hold the order within clusters, which joint learning does not.

    Parameters
    ----------
    result
        The result of joint learning.
    n_components
        Number of dimensions of the map.
    seed
        Random seed.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    n_steps
        Number of batches; by default so many that all pairs of 20 epochs are seen, but from 500 to
        2,000.
    settings
        Settings of the training.
    progress
        Called with the name of a stage and the fraction of it that is done.

    Examples
    --------
    >>> from jule.joint.result import finish
    >>> from jule.joint.state import State
    >>> points = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    >>> state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 20))
    >>> result = finish(state, Config(n_clusters=3), embedding=points)
    >>> learn_map(result, n_steps=5).positions.shape
    (60, 2)
    """
    vectors = result.embedding
    near = [result.neighbors.indices]
    if result.input_neighbors is not None:
        near.append(result.input_neighbors.indices)
    settings = settings or MapTraining()
    if n_steps is None:
        n_steps = math.ceil(EPOCHS * len(vectors) / settings.n_pairs)
        n_steps = min(max(n_steps, FEWEST_STEPS), MOST_STEPS)
    mapper = build_mapper(vectors, n_components, seed=seed).to(best_device(device))
    train_map(
        mapper,
        vectors,
        stages_of_tree(result.tree, result.labels),
        np.hstack(near),
        n_steps=n_steps,
        settings=settings,
        seed=seed,
        progress=progress and (lambda share: progress(MAPPING, share)),
    )
    return Map(mapper, place(mapper, vectors))


def requested_map(
    result: Result, config: Config, *, device: str = "auto", progress: Progress | None = None
) -> Map | None:
    """Learn the map that the settings of a run ask for; return None if they ask for none.

    Examples
    --------
    >>> from jule.joint.result import finish
    >>> from jule.joint.state import State
    >>> points = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    >>> state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 20))
    >>> result = finish(state, Config(n_clusters=3), embedding=points)
    >>> requested_map(result, Config()) is None
    True
    """
    if config.n_components is None:
        return None
    return learn_map(
        result, config.n_components, seed=config.seed, device=device, progress=progress
    )
