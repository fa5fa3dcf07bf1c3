"""How long a run will take and how much memory, from a few steps of the real thing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jule.backward import build_embedder, embed, train
from jule.joint import Config

TRIED = 200  # images
STEPS = 4
PRODUCTS = 1024  # side of the matrices that are multiplied
AT_REST = 6e8  # bytes: Python, torch, and the maps of a batch
SHARE = 0.5  # of the rate of large matrix products, which the neighbour search reaches


@dataclass(frozen=True)
class Estimate:
    """What a run will need.

    Attributes
    ----------
    seconds
        On this machine, as busy as it is now.
    memory
        Bytes at the highest point.
    """

    seconds: float
    memory: float


def estimate_run(n_images: int, shape: tuple[int, ...], config: Config) -> Estimate:
    """Estimate a run by training and embedding a few made-up images of the same shape.

    Examples
    --------
    >>> estimate_run(1000, (8, 8), Config(n_clusters=10)).seconds > 0
    True
    """
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (TRIED, *shape), np.uint8)
    embedder = build_embedder(images, max_side=config.max_side, level=config.level)
    labels = np.arange(TRIED) // config.per_cluster

    def steps(count: int) -> None:
        train(embedder, images, labels, n_steps=count, settings=config.training(warp=True))

    steps(1)
    a_step = _seconds(lambda: steps(STEPS)) / STEPS
    an_image = _seconds(lambda: embed(embedder, images)) / TRIED
    periods = config.rounds * config.n_periods
    values = int(np.prod(shape))
    searches = n_images**2 * (values + (periods + 2) * embed(embedder, images[:1]).shape[1])
    return Estimate(
        seconds=periods * config.steps_a_period(n_images) * a_step
        + (periods + 2) * n_images * an_image
        + searches / (SHARE * _products_a_second()),
        memory=AT_REST + 4.0 * n_images * values,  # all pixels as float32, for the first clusters
    )


def _products_a_second() -> float:
    matrix = np.random.default_rng(0).random((PRODUCTS, PRODUCTS), np.float32)
    _seconds(lambda: matrix @ matrix)
    return PRODUCTS**3 / _seconds(lambda: matrix @ matrix)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
