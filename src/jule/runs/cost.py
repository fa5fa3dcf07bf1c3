"""Estimate the time and memory that a run will need before it starts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from jule.backward.plan import OUTPUTS, multiply_adds
from jule.forward.cells import CELL, N_PROBES
from jule.joint.clustering import search_method
from jule.joint.config import Config

SIDE = 1024  # of the matrices that are multiplied to measure the speed of this machine
SEARCH_SHARE = 0.5  # fraction of that speed that the neighbour search reaches
TRAINING_SHARE = 0.3  # fraction of that speed that training and embedding reach
BACKWARD = 3  # a training step costs about three forward passes
STEP_OVERHEAD = 0.004  # seconds per batch, whatever its size
ENCODER_OUTPUTS = 1280  # numbers per picture
ENCODER_MULTIPLY_ADDS = 385_000_000  # per picture of 224 x 224 pixels
ENCODER_SHARE = 0.5  # fraction of that speed that the encoder reaches
ENCODED_COPIES = 2  # of the vectors of an encoder: as they are, and scaled
SEARCH_COPIES = 2  # of the representation: as it is, and centred for the search
# Samples that an approximate search compares each sample with. How many cells it takes is found out
# from the data when the search begins; 24 are a little more than handwritten digits need.
COMPARED = 24 * CELL
GRAPH_BYTES = 3000  # per sample: two graphs of 20 neighbours, and the links while they merge
BYTES_AT_REST = 6e8  # Python, torch, and the maps of a batch


@dataclass(frozen=True)
class Cost:
    """The estimated cost of a run.

    Attributes
    ----------
    seconds
        Time on this machine at its current load.
    memory
        Peak memory in bytes.
    """

    seconds: float
    memory: float


def estimate_cost(
    n_images: int, shape: tuple[int, ...], config: Config, *, encoded: bool = False
) -> Cost:
    """Estimate the cost of a run from its multiply-adds and the speed of this machine.

    Parameters
    ----------
    n_images
        The number of samples.
    shape
        Shape of one sample: (height, width[, channels]) or (features,).
    config
        The settings.
    encoded
        Whether the encoder for photographs describes the samples first.

    Examples
    --------
    >>> estimate_cost(1000, (28, 28), Config(n_clusters=10)).seconds > 0
    True
    """
    rate = products_per_second()
    encoding, outputs = 0.0, OUTPUTS
    if encoded:
        shape, outputs = (ENCODER_OUTPUTS,), ENCODER_OUTPUTS
        encoding = float(n_images * ENCODER_MULTIPLY_ADDS)
    members = config.ensemble
    periods = members * config.rounds * config.n_periods
    values = math.prod(shape)
    per_image = multiply_adds(shape, config.min_side, config.max_side)
    batch = min(config.batch_size, n_images)
    steps = 0 if config.n_clusters == 1 else periods * config.steps_per_period(n_images)
    trained = steps * batch * BACKWARD * per_image
    embedded = periods * n_images * per_image
    joint = 0  # of an ensemble: its networks are embedded and searched once more, and together
    if members > 1:
        joint = 2 * members
        embedded += members * n_images * per_image
    searched = _search_products(n_images, values, config)
    searched += (periods + joint) * _search_products(n_images, outputs, config)
    return Cost(
        seconds=(trained + embedded) / (TRAINING_SHARE * rate)
        + encoding / (ENCODER_SHARE * rate)
        + steps * STEP_OVERHEAD
        + searched / (SEARCH_SHARE * rate),
        memory=estimate_memory(n_images, shape, config, encoded=encoded),
    )


def _search_products(n: int, width: int, config: Config) -> float:
    """Return the multiply-adds of a neighbour search, or as many as would take as long."""
    if search_method(n, config) == "exact":
        return n**2 * width / 2  # each pair of blocks once
    return n * width * min(COMPARED + 2 * N_PROBES + 2 * n / CELL, n / 2)


def estimate_memory(
    n_images: int, shape: tuple[int, ...], config: Config, *, encoded: bool = False
) -> float:
    """Estimate the peak memory of a run in bytes, without the samples themselves.

    Parameters
    ----------
    n_images, shape, config, encoded
        As for `estimate_cost`.

    Examples
    --------
    >>> estimate_memory(10**6, (28, 28), Config()) > 1e9
    True
    """
    values = ENCODER_OUTPUTS if encoded else math.prod(shape)
    at_once = config.ensemble * (ENCODER_OUTPUTS if encoded else OUTPUTS) * SEARCH_COPIES
    held = values * ENCODED_COPIES + at_once if encoded else max(values, at_once)
    # All pixels as float32 at the beginning, and later the representation; and the graphs.
    return BYTES_AT_REST + n_images * (4.0 * held + GRAPH_BYTES)


def products_per_second() -> float:
    """Measure the multiply-adds per second of a float32 matrix product on this machine.

    Examples
    --------
    >>> products_per_second() > 0
    True
    """
    matrix = np.ones((SIDE, SIDE), np.float32)
    best = math.inf
    for _ in range(10):  # the best one, as others may be interrupted
        start = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - start)
    return float(SIDE) ** 3 / best
