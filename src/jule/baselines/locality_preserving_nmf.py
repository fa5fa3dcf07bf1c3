"""NMF-LP: locality preserving non-negative matrix factorisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from jule.baselines._base import BaseClusterer, Preset
from jule.baselines._checks import check_count, check_not_negative
from jule.baselines._factors import (
    divide_by_mean_length,
    rotate_to_fewer,
    row_blocks,
    solve_gram,
    solve_shifted,
)
from jule.baselines._ratios import ratios_times_factors, ratios_times_parts
from jule.baselines._rounding import round_by_kmeans
from jule.forward.search import nearest_neighbors
from jule.memory import check_memory

Array = NDArray[np.floating]

N_FIRST = 10  # iterations of every start, both of K-means and of the factorisation
FLOOR = 1e-10  # lower bound of divisors and arguments of logarithms, for samples of mean length 1


class LocalityPreservingNMF(BaseClusterer):
    """Locality preserving NMF: K-means on non-negative factors that are similar for neighbours.

    The samples are approximated by non-negative combinations of non-negative parts. The
    approximation minimises the generalised Kullback-Leibler divergence plus a penalty on
    differences between the factors of neighbouring samples.

    Parameters
    ----------
    n_clusters
        Number of clusters.
    preset
        Values of the parameters that are None. ``"original"``: as many factors as clusters,
        ``lam=100``, ``max_iter=200``, ``weighted=False``. ``"jule-paper"``: 10 factors, ``lam=0``,
        ``max_iter=50``, ``weighted=True``.
    n_factors
        Number of factors; at most the number of different samples is used.
    lam
        Weight of the penalty. With 0, neighbours are not needed, and this is an ordinary
        non-negative matrix factorisation.
    n_neighbors
        Number of neighbours of each sample.
    weighted
        Whether a sample's weight is the inverse of its inner product with the sum of all samples.
    n_init
        Number of starts, of which the best after ten iterations is continued.
    max_iter
        Number of iterations.
    random_state
        Random seed.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters.
    n_iter_
        Number of iterations; not set for 1 cluster or as many as different samples.

    Notes
    -----
    1. Divide the samples by their mean length, so that `lam` does not depend on the unit.
    2. Join each sample with its nearest neighbours, in both directions, by edges of weight 1.
    3. Start: the parts are the centres of ten iterations of K-means; the factors are the least
       squares solution, negative values set to 0.
    4. Repeat: multiplicative update of the factors if `lam` is 0, otherwise the solution of one
       sparse linear system per factor; multiplicative update of the parts.
    5. Scale the parts to length 1 and the factors accordingly; K-means on the factors.

    The original has no step 1, which changes nothing for samples of unit length, and it solves the
    linear systems by factorisation; here conjugate gradients solve all of them together. The sample
    weights are scaled to a mean of 1.

    References
    ----------
    D. Cai, X. He, X. Wang, H. Bao, J. Han: Locality preserving nonnegative matrix factorization,
    IJCAI 2009.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.uniform(0, 1, (30, 4)) + 3 * row for row in np.eye(4)[:2]])
    >>> LocalityPreservingNMF(n_clusters=2).fit(samples).labels_[[0, 29, 30, 59]].tolist()
    [0, 0, 1, 1]
    """

    n_iter_: int

    _non_negative = True
    _is_rotation_invariant = False
    _presets: ClassVar = {
        "original": {"n_factors": None, "lam": 100.0, "max_iter": 200, "weighted": False},
        "jule-paper": {"n_factors": 10, "lam": 0.0, "max_iter": 50, "weighted": True},
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        preset: Preset = "original",
        n_factors: int | None = None,
        lam: float | None = None,
        n_neighbors: int = 5,
        weighted: bool | None = None,
        n_init: int = 10,
        max_iter: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.preset = preset
        self.n_factors = n_factors
        self.lam = lam
        self.n_neighbors = n_neighbors
        self.weighted = weighted
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        settings = self._settings()
        for name in ("n_neighbors", "n_init", "max_iter"):
            check_count(settings[name], name)
        if settings["n_factors"] is not None:
            check_count(settings["n_factors"], "n_factors")
        check_not_negative(settings["lam"], "lam")

    def _cluster(self, samples: Array, k: int) -> NDArray[np.int32]:
        settings = self._settings()
        n_factors = k if settings["n_factors"] is None else settings["n_factors"]
        n, d = samples.shape
        n_factors = min(n_factors, n)
        check_memory(
            samples.itemsize * (2 * n * d + 8 * (n + d) * n_factors),
            f"the factorisation of {n:,} samples with {d} values into {n_factors} factors",
        )
        rng = check_random_state(self.random_state)
        samples = divide_by_mean_length(samples)
        problem = Problem(
            samples,
            inverse_similarities(samples) if settings["weighted"] else np.ones(n, samples.dtype),
            settings["lam"],
            neighbor_laplacian(samples, self.n_neighbors) if settings["lam"] > 0 else None,
        )
        factors, parts = problem.minimise(n_factors, self.n_init, settings["max_iter"], rng)
        self.n_iter_ = settings["max_iter"]
        lengths = np.sqrt((parts * parts).sum(axis=0))
        return round_by_kmeans(factors * lengths, k, random_state=rng)


def inverse_similarities(samples: Array) -> Array:
    """Return sample weights: 1 / (inner product with the sum of all samples), of mean 1.

    Samples of zeros get the largest weight of the others.

    Examples
    --------
    >>> inverse_similarities(np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 0.0]])).round(3).tolist()
    [1.286, 0.429, 1.286]
    """
    similarities = samples @ samples.sum(axis=0)
    similarities[similarities == 0] = similarities[similarities > 0].min()
    weights: Array = similarities.min() / similarities
    weights /= weights.mean()
    return weights


def neighbor_laplacian(samples: Array, n_neighbors: int) -> csr_array:
    """Return the Laplacian of the graph that joins each sample with its nearest neighbours.

    Examples
    --------
    >>> neighbor_laplacian(np.array([[0.0], [1.0], [3.0]]), 1).toarray().tolist()
    [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    """
    n = len(samples)
    k = min(n_neighbors, n - 1)
    indices = nearest_neighbors(samples, k).indices
    edges = np.ones(indices.size, samples.dtype), indices.ravel(), np.arange(0, n * k + 1, k)
    graph = csr_array(edges, shape=(n, n))
    graph = graph.maximum(graph.T).tocsr()
    degrees = graph.sum(axis=1)
    diagonal = csr_array((degrees, np.arange(n), np.arange(n + 1)), shape=(n, n))
    return (diagonal - graph).tocsr()


@dataclass(frozen=True, eq=False)
class Problem:
    """The weighted divergence of samples from ``factors @ parts.T``, plus the penalty.

    Attributes
    ----------
    samples
        (n, d) non-negative samples of mean length 1.
    weights
        (n,) weights of the samples.
    lam
        Weight of the penalty, more than 0 if there is a Laplacian.
    laplacian
        (n, n) Laplacian of the graph of neighbours; None for no penalty.
    """

    samples: Array
    weights: Array
    lam: float = 0.0
    laplacian: csr_array | None = None

    def minimise(
        self, n_factors: int, n_init: int, max_iter: int, rng: RandomState
    ) -> tuple[Array, Array]:
        """Return (n, p) factors and (d, p) parts: the best of several starts, continued."""
        best = np.inf
        n_first = min(N_FIRST, max_iter)
        rotated = rotate_to_fewer(self.samples)
        for _ in range(n_init):
            candidate = start(self.samples, rotated, n_factors, rng)
            for _ in range(n_first):
                self.improve(*candidate)
            objective = self.objective(*candidate)
            if objective < best:
                best, found = objective, candidate
        for _ in range(n_first, max_iter):
            self.improve(*found)
        return found

    def improve(self, factors: Array, parts: Array) -> None:
        """Update the factors, then the parts, in place."""
        rows = np.ascontiguousarray(parts.T)
        sums = np.maximum(parts.sum(axis=0), FLOOR)
        growth = ratios_times_parts(self.samples, factors, rows, FLOOR)
        if self.laplacian is None:
            factors *= growth / sums
        else:
            growth *= factors * self.weights[:, None]
            factors[:] = solve_shifted(
                self.laplacian * self.lam, self.weights[:, None] * sums, growth, factors
            )
            np.maximum(factors, 0, out=factors)  # the exact solution is not negative
        gradient = ratios_times_factors(self.samples, factors, rows, self.weights, FLOOR)
        parts *= gradient.T / np.maximum(self.weights @ factors, FLOOR)

    def objective(self, factors: Array, parts: Array) -> float:
        """Return the divergence plus the penalty, up to a constant."""
        total = float(self.weights @ factors @ parts.sum(axis=0))
        for block in row_blocks(self.samples):
            logs = np.log(np.maximum(factors[block] @ parts.T, FLOOR))
            total -= float(self.weights[block] @ np.einsum("ij,ij->i", self.samples[block], logs))
        if self.laplacian is not None:
            smoothed = self.laplacian @ np.log(np.maximum(factors, FLOOR))
            total += self.lam * float(np.vdot(factors, smoothed))
        return total


def start(samples: Array, rotated: Array, n_factors: int, rng: RandomState) -> tuple[Array, Array]:
    """Return initial factors and parts: least squares on the centres of a short K-means.

    K-means is given the rotated samples, which have the same distances. There are fewer factors if
    it finds fewer clusters.
    """
    labels = round_by_kmeans(rotated, n_factors, n_init=1, max_iter=N_FIRST, random_state=rng)
    _, columns, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    n = len(samples)
    members = csr_array((np.ones(n, samples.dtype), columns, np.arange(n + 1)))
    parts = np.ascontiguousarray((members.T @ samples / sizes[:, None]).T, samples.dtype)
    exact = parts.astype(np.float64)
    inverse = solve_gram(exact.T @ exact, exact.T)
    return np.maximum(samples @ inverse.T.astype(samples.dtype), 0), parts
