"""Algorithm 1: training the network and merging clusters, in turn, until K clusters are left."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from jule.backward import Embedder, build_embedder, embed, train
from jule.backward.embedder import restore, state_of
from jule.backward.train import refuse_collapsed
from jule.evaluation import accuracy, nmi
from jule.forward import MergeTree, prepare
from jule.forward.prepare import refuse_all_identical
from jule.joint.clustering import View, cut, first_clusters, merge_tree, target, view
from jule.joint.config import Config
from jule.joint.stages import Progress, in_period
from jule.joint.state import Period, State
from jule.joint.warp import warps_keep_clusters


def joint_learning(
    samples: NDArray,
    embedder: Embedder,
    config: Config,
    *,
    state: State | None = None,
    labels: NDArray | None = None,
    progress: Progress | None = None,
) -> Iterator[State]:
    """Run Algorithm 1, and yield what the run is after each period.

    Parameters
    ----------
    samples
        Images (n, h, w[, c]) or vectors (n, d).
    embedder
        The network; trained in place.
    config
        All settings.
    state
        Where to go on; None starts at the beginning.
    labels
        True classes, for NMI and AC in the history and nothing else.
    progress
        Called now and then with the name of the stage and the share of it that is done.

    Examples
    --------
    >>> from jule.images import load_dataset
    >>> images = load_dataset("digits").images[:200]
    >>> config = Config(n_clusters=10, least_images=500)
    >>> periods = joint_learning(images, first_network(images, config), config)
    >>> [state.n_clusters for state in periods][-1]
    10
    """
    if state is None:
        state = begin(samples, config, progress)
    else:
        restore(embedder, state.network)
    while not (state.ended and state.round + 1 == config.rounds):
        if state.ended:
            state = begin_again(state, embed(embedder, samples), config, progress)
        state = next_period(state, samples, embedder, config, labels, progress)
        yield state


def first_network(samples: NDArray, config: Config, body: nn.Module | None = None) -> Embedder:
    """Initialize theta: the network that suits the samples, or the user's own, untrained.

    Examples
    --------
    >>> first_network(np.zeros((4, 128, 96), np.uint8), Config()).size
    (32, 24)
    """
    return build_embedder(
        samples, body=body, max_side=config.max_side, level=config.level, seed=config.seed
    )


def refuse_what_cannot_be_clustered(samples: NDArray, config: Config) -> None:
    """Raise for too few samples, more clusters than samples, or samples that are all identical.

    Examples
    --------
    >>> refuse_what_cannot_be_clustered(np.eye(3), Config(n_clusters=2))
    """
    k = config.n_clusters
    if len(samples) < 2:
        raise ValueError(f"clustering needs at least 2 samples, got n_samples={len(samples)}")
    if k is not None and k > len(samples):
        raise ValueError(
            f"n_clusters={k} clusters cannot be made of n_samples={len(samples)} samples"
        )
    refuse_all_identical(samples.reshape(len(samples), -1))


def begin(samples: NDArray, config: Config, progress: Progress | None = None) -> State:
    """Initialize y with the first clusters of the raw samples.

    Examples
    --------
    >>> begin(np.random.default_rng(0).normal(size=(50, 2)), Config(n_clusters=2)).n_periods
    0
    """
    refuse_what_cannot_be_clustered(samples, config)
    seen = view(prepare(samples, config.preparation), config, progress)
    state, tree = _with_first_clusters(State(), seen, config)
    if not config.augment:
        return state
    raw = cut(tree, target(seen, tree, config), config)
    return replace(state, warp=warps_keep_clusters(samples, seen, raw, config))


def begin_again(
    state: State, embedding: NDArray[np.floating], config: Config, progress: Progress | None = None
) -> State:
    """Keep the network, and start another round from the first clusters of what it has learned.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(50, 2))
    >>> config = Config(n_clusters=2, rounds=2)
    >>> begin_again(begin(points, config), points, config).round
    1
    """
    following = replace(state, round=state.round + 1, number=0, ended=False)
    return _with_first_clusters(following, view(embedding, config, progress), config)[0]


def _with_first_clusters(state: State, seen: View, config: Config) -> tuple[State, MergeTree]:
    clusters = first_clusters(seen, config)
    tree = merge_tree(seen, clusters, config)
    k = target(seen, tree, config)
    if tree.n_first < k:  # more clusters are wanted than there are first ones
        clusters = tree.cut(k)
    eta = config.eta or _even_rate(max(tree.n_first, k), k, config.n_periods)
    return replace(state, labels=clusters, eta=eta), tree


def _even_rate(n_first: int, k: int, n_periods: int) -> float:
    """Give the eta that leads to k in so many periods, each by the same ratio."""
    return 1.0 - math.pow(k / n_first, 1.0 / n_periods)


def next_period(
    state: State,
    samples: NDArray,
    embedder: Embedder,
    config: Config,
    labels: NDArray | None = None,
    progress: Progress | None = None,
) -> State:
    """Update theta by training on the clusters, then y by merging ceil(eta * n_c) of them.

    Examples
    --------
    >>> next_period(state, images, embedder, config)  # doctest: +SKIP
    """
    clock = _Clock()
    show = in_period(progress, state.n_periods, config)
    losses = train(
        embedder,
        samples,
        state.labels,
        n_steps=config.steps_a_period(len(samples)) if _has_a_pair(state.labels) else 0,
        first_step=state.step,
        settings=config.training(state.warp),
        seed=[config.seed, state.round, state.number],
        progress=show and (lambda share: show("training", share)),
    )
    clock.ends("train")
    embedding = embed(embedder, samples)
    refuse_collapsed(embedding)
    clock.ends("embed")
    seen = view(embedding, config, show)
    clock.ends("neighbours")
    tree = merge_tree(seen, state.labels, config)
    k = target(seen, tree, config)
    left = max(k, state.n_clusters - math.ceil(state.eta * state.n_clusters))
    merged = cut(tree, k, config) if left == k else tree.cut(left)
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
    )
    return replace(
        state,
        number=state.number + 1,
        labels=merged,
        ended=left == k,
        step=state.step + len(losses),
        network=state_of(embedder),
        history=(*state.history, period),
    )


def _has_a_pair(labels: NDArray[np.integer]) -> bool:
    return len(np.unique(labels)) < len(labels)


def _mean_of_tenth(losses: list[float]) -> float | None:
    tenth = losses[: max(1, len(losses) // 10)]
    return sum(tenth) / len(tenth) if tenth else None


class _Clock:
    """The seconds of every stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def ends(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self._last
        self._last = now
