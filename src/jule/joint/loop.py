"""Algorithm 1: train the network and merge clusters in turn, until K clusters are left."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from jule.backward import Embedder, build_embedder
from jule.backward.batches import Pairs
from jule.backward.embedder import get_weights, set_weights
from jule.backward.training import check_not_collapsed
from jule.evaluation import accuracy, nmi
from jule.forward import MergeTree, prepare
from jule.forward.constraints import Constraints
from jule.forward.prepare import are_identical, check_not_identical
from jule.joint.clustering import (
    Inputs,
    Representation,
    cut_tree,
    initial_clusters,
    merge_tree,
    represent,
    suggest_n_clusters,
)
from jule.joint.config import Config
from jule.joint.ensemble import cluster_members, common_clusters
from jule.joint.stages import after_training, in_period
from jule.joint.state import Period, State
from jule.joint.team import SINGLE, Team
from jule.joint.warp import warps_keep_clusters
from jule.progress import Progress

TIMES_A_GUESS = 2.0  # rounds end at so many times the suggested number while K is open


def joint_learning(
    samples: NDArray,
    embedder: Embedder,
    config: Config,
    *,
    state: State | None = None,
    labels: NDArray | None = None,
    constraints: Constraints | None = None,
    progress: Progress | None = None,
    team: Team = SINGLE,
) -> Iterator[State]:
    """Run Algorithm 1 and yield the state after each period.

    The networks of an ensemble are trained one after another, each exactly as it would be alone
    with its own seed. A last period without training then clusters their representations side by
    side; see `join_members`.

    Parameters
    ----------
    samples
        Images (n, h, w[, c]) or vectors (n, d).
    embedder
        The network, with ``config.ensemble`` members; trained in place.
    config
        All settings.
    state
        The state to resume from; None starts from the beginning.
    labels
        True classes, used only for NMI and AC in the history.
    constraints
        Samples that must and must not share a cluster, in every period.
    progress
        Called with the name of a stage and the fraction of it that is done.
    team
        The processes that train and embed together; see `jule.joint.team`.

    Examples
    --------
    >>> from jule.images import load_dataset
    >>> images = load_dataset("digits").images[:200]
    >>> config = Config(n_clusters=10, min_images=500)
    >>> states = joint_learning(images, init_network(images, config), config)
    >>> [state.n_clusters for state in states][-1]
    10
    """
    n_members = len(embedder.members)
    if n_members != config.ensemble:
        raise ValueError(
            f"the settings ask for ensemble={config.ensemble}, but the network has {n_members} "
            "side by side: build it with jule.joint.init_network"
        )
    if state is None:
        state = begin(samples, config, progress, constraints)
    else:
        set_weights(embedder, state.network)
        state = replace(state, constraints=constraints)
    start = None if state.history else state
    while state.member < config.ensemble:
        if state.ended and state.round + 1 < config.rounds:
            learned = state.representation
            if learned is None:  # the state was read from a file
                vectors = team.embed(embedder.member(state.member), samples)
                learned = represent(vectors, config, progress, constraints)
            state = begin_round(state, learned, config)
        elif state.ended and state.member + 1 < config.ensemble:
            if start is None or config.init != "nearest":  # only these do not depend on the seed
                own = replace(config, seed=config.seed + state.member + 1)
                start = begin(samples, own, progress, constraints)
            state = begin_member(state, start)
        elif state.ended:
            break
        state = next_period(state, samples, embedder, config, labels, progress, team)
        yield state
    if config.ensemble > 1 and state.member < config.ensemble:
        show = after_training(progress)
        embedding = team.embed(
            embedder, samples, progress=show and (lambda share: show("embedding", share))
        )
        yield join_members(state, embedding, config, labels, show)


def init_network(samples: NDArray, config: Config, body: nn.Module | None = None) -> Embedder:
    """Build an untrained network for the samples, or wrap the user's own module.

    Examples
    --------
    >>> import numpy as np
    >>> init_network(np.zeros((4, 128, 96), np.uint8), Config()).size
    (32, 24)
    """
    return build_embedder(
        samples,
        body=body,
        network=config.network,
        min_side=config.min_side,
        max_side=config.max_side,
        normalize=config.normalize,
        center=config.preparation != "l2",
        lift=config.preparation == "none",
        seed=config.seed,
        members=config.ensemble,
    )


def check_clusterable(samples: NDArray, config: Config) -> None:
    """Raise for too few samples, more clusters than samples, or samples that are all identical.

    Examples
    --------
    >>> import numpy as np
    >>> check_clusterable(np.eye(3), Config(n_clusters=2))
    """
    k = config.n_clusters
    if len(samples) < 2:
        raise ValueError(f"clustering needs at least 2 samples, got n_samples={len(samples)}")
    if k is not None and k > len(samples):
        raise ValueError(
            f"n_clusters={k} clusters cannot be made of n_samples={len(samples)} samples"
        )
    check_not_identical(samples)
    if samples.dtype == np.float64 and are_identical(samples, np.float32):
        raise ValueError(
            "the samples differ by too little for float32, in which the network computes: "
            "subtract their mean and divide them by their standard deviation first"
        )


def begin(
    samples: NDArray,
    config: Config,
    progress: Progress | None = None,
    constraints: Constraints | None = None,
) -> State:
    """Return the state before the first period: the initial clusters of the raw samples.

    Examples
    --------
    >>> import numpy as np
    >>> begin(np.random.default_rng(0).normal(size=(50, 2)), Config(n_clusters=2)).n_periods
    0
    """
    check_clusterable(samples, config)
    vectors = prepare(samples, config.preparation)
    if samples.ndim > 2 and are_identical(vectors, vectors.dtype):
        raise ValueError(
            f"all images are identical once their brightness is divided out, as images of shape "
            f"{samples.shape[1:]} can be: use preparation='none' and normalize=False"
        )
    raw = represent(vectors, config, progress, constraints)
    state, tree, k = _with_initial_clusters(State(constraints=constraints), raw, config)
    state = replace(state, inputs=Inputs.of(raw, tree))
    if not config.augment:
        return state
    clusters = cut_tree(tree, k, config)
    return replace(state, warp=warps_keep_clusters(samples, raw, clusters, config))


def begin_round(state: State, learned: Representation, config: Config) -> State:
    """Start another round from the initial clusters of the learned representation.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(50, 2))
    >>> config = Config(n_clusters=2, rounds=2)
    >>> begin_round(begin(points, config), represent(points, config), config).round
    1
    """
    following = replace(state, round=state.round + 1, number=0, ended=False)
    return _with_initial_clusters(following, learned, config)[0]


def begin_member(state: State, start: State) -> State:
    """Start the next network of an ensemble.

    Parameters
    ----------
    state
        The state when the network before it has ended.
    start
        The state before its first period, with the initial clusters of the raw samples.

    Examples
    --------
    >>> import numpy as np
    >>> start = begin(np.random.default_rng(0).normal(size=(50, 2)), Config(ensemble=2))
    >>> begin_member(start, start).member
    1
    """
    return replace(
        start,
        member=state.member + 1,
        seconds=state.seconds,
        network=state.network,
        history=state.history,
        inputs=state.inputs,
    )


def _with_initial_clusters(
    state: State, representation: Representation, config: Config
) -> tuple[State, MergeTree, int]:
    clusters = initial_clusters(representation, config)
    tree = merge_tree(representation, clusters, config)
    k = _target(representation, tree, config)
    if tree.n_initial < k:  # the user asked for more clusters than there are initial ones
        clusters = tree.cut(min(k, tree.n_different))
    eta = config.eta or _even_rate(max(tree.n_initial, k), k, config.n_periods)
    return replace(state, labels=clusters, eta=eta, representation=None), tree, k


def _target(representation: Representation, tree: MergeTree, config: Config) -> int:
    """Return the number of clusters at which a round ends.

    It is `ends_at` times K if the user gave K, and otherwise twice the number that the tree
    suggests. A network that was trained on a wrong merge confirms it, so merging stops early while
    K is only a guess.
    """
    choice = suggest_n_clusters(representation, tree, config)
    if choice is None:
        k, times = config.n_clusters or 1, config.ends_at
    else:
        k, times = choice.k, TIMES_A_GUESS
    k = max(k, min(round(times * k), tree.n_initial), tree.fewest)
    return min(k, tree.n_different)  # must-links are never divided


def _even_rate(n_initial: int, k: int, n_periods: int) -> float:
    """Return the eta that reaches k clusters after `n_periods` periods of equal ratio."""
    return 1.0 - math.pow(k / n_initial, 1.0 / n_periods)


def next_period(
    state: State,
    samples: NDArray,
    embedder: Embedder,
    config: Config,
    labels: NDArray | None = None,
    progress: Progress | None = None,
    team: Team = SINGLE,
) -> State:
    """Train on the clusters (theta), then merge ceil(eta * n_c) of them (y); return the new state.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(50, 2))
    >>> config = Config(n_clusters=2, min_images=200)
    >>> state = begin(points, config)
    >>> next_period(state, points, init_network(points, config), config).n_periods
    1
    """
    clock = _Clock()
    done = sum(period.member == state.member for period in state.history)
    show = in_period(progress, done, config, state.member)
    network = embedder.member(state.member)
    losses = team.train(
        network,
        samples,
        state.labels,
        n_steps=config.steps_per_period(len(samples)) if _can_learn(state, config) else 0,
        first_step=state.step,
        settings=config.training(state.warp),
        seed=[config.seed + state.member, state.round, state.number],
        pairs=None if state.constraints is None else _pairs(state.constraints, samples),
        progress=show and (lambda share: show("training", share)),
    )
    clock.ends("train")
    embedding = team.embed(
        network, samples, progress=show and (lambda share: show("embedding", share))
    )
    check_not_collapsed(embedding)
    clock.ends("embed")
    learned = represent(embedding, config, show, state.constraints)
    clock.ends("neighbours")
    tree = merge_tree(learned, state.labels, config)
    k = _target(learned, tree, config)
    left = max(k, state.n_clusters - math.ceil(state.eta * state.n_clusters))
    if config.eta is None and state.number + 1 >= config.n_periods:
        left = k  # which may have become smaller since eta was computed
    merged = cut_tree(tree, k, config) if left == k else tree.cut(left)
    clock.ends("merge")

    made = tree.affinities[len(samples) - state.n_clusters : len(samples) - left]
    period = Period(
        round=state.round,
        number=state.number,
        clusters_before=state.n_clusters,
        clusters_after=left,
        steps=len(losses),
        images=len(losses) * min(config.batch_size, len(samples)),
        loss_first=_mean_of_tenth(losses),
        loss_last=_mean_of_tenth(losses[::-1]),
        affinity_first=float(made[0]) if len(made) else None,
        affinity_last=float(made[-1]) if len(made) else None,
        seconds=clock.seconds,
        nmi=None if labels is None else nmi(labels, merged),
        ac=None if labels is None else accuracy(labels, merged),
        recall=learned.neighbors.recall,
        member=state.member,
    )
    return replace(
        state,
        number=state.number + 1,
        labels=merged,
        ended=left == k,
        step=state.step + len(losses),
        network=get_weights(embedder),
        history=(*state.history, period),
        representation=learned,
    )


def join_members(
    state: State,
    embedding: NDArray[np.float32],
    config: Config,
    labels: NDArray | None = None,
    progress: Progress | None = None,
) -> State:
    """Cluster the representations of all networks of an ensemble, side by side, without training.

    Every network's own representation is clustered, too. Samples that are together in each of
    these clusterings stay together; they are merged in the joint representation, until K clusters
    are left. These are SF of the ensemble, whose networks have no common recurrent process.

    Parameters
    ----------
    state
        The state when the last network has ended.
    embedding
        (n, E d) the unit vectors of the E networks side by side, divided by the root of E.
    config
        The settings.
    labels
        True classes, used only for NMI and AC in the history.
    progress
        Called with the name of a stage and the fraction of it that is done.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    >>> join_members(State(), points, Config(n_clusters=2, ensemble=2)).n_clusters
    2
    """
    clock = _Clock()
    joint = represent(embedding, config, progress, state.constraints)
    trees = cluster_members(embedding, config, progress, state.constraints)
    clock.ends("neighbours")
    k = _target(joint, merge_tree(joint, initial_clusters(joint, config), config), config)
    common = common_clusters([cut_tree(tree, k, config) for tree in trees])
    merged = cut_tree(merge_tree(joint, common, config), k, config)
    clock.ends("merge")
    period = Period(
        member=config.ensemble,
        round=0,
        number=0,
        clusters_before=int(common.max()) + 1,
        clusters_after=k,
        steps=0,
        images=0,
        loss_first=None,
        loss_last=None,
        affinity_first=None,
        affinity_last=None,
        seconds=clock.seconds,
        nmi=None if labels is None else nmi(labels, merged),
        ac=None if labels is None else accuracy(labels, merged),
        recall=joint.neighbors.recall,
    )
    return replace(
        state,
        member=config.ensemble,
        labels=merged,
        history=(*state.history, period),
        representation=joint,
        member_trees=trees,
    )


def _pairs(constraints: Constraints, samples: NDArray) -> Pairs:
    """Return the pairs that constraints ask for, without exact copies: these are alike already."""
    linked = np.flatnonzero(constraints.units != np.arange(len(samples)))
    together = np.column_stack((constraints.units[linked], linked))
    axes = tuple(range(1, samples.ndim))
    differ = (samples[together[:, 0]] != samples[together[:, 1]]).any(axis=axes)
    return Pairs(together[differ], constraints.apart)


def _can_learn(state: State, config: Config) -> bool:
    """Return whether there are pairs to learn from, and more than one cluster to find."""
    return config.n_clusters != 1 and state.n_clusters < len(state.labels)


def _mean_of_tenth(losses: list[float]) -> float | None:
    tenth = losses[: max(1, len(losses) // 10)]
    return sum(tenth) / len(tenth) if tenth else None


class _Clock:
    """Measures the seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def ends(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self._last
        self._last = now
