"""NMF-D: deep semi-non-negative matrix factorisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd

from jule.baselines._base import BaseClusterer
from jule.baselines._checks import check_choice, check_count, check_not_negative
from jule.baselines._factors import (
    divide_by_mean_length,
    rotate_to_fewer,
    row_blocks,
    solve_gram,
)
from jule.baselines._rounding import round_by_kmeans
from jule.memory import check_memory

Nonlinearity = Literal["linear", "relu"]
Array = NDArray[np.floating]

N_BETWEEN = 10  # iterations between two computations of the error
FLOOR = 1e-10
FILL = 0.1  # first value of factors that the start leaves at 0 ...
LENGTH = 1000.0  # ... and mean length that samples are scaled to, like images of 0 to 255
LEARNING_RATE = 1e-3  # of Adam

DEFAULTS = {"linear": ((160, 160), 100), "relu": ((400, 100), 1000)}  # layers and max_iter


class DeepSemiNMF(BaseClusterer):
    """Deep semi-NMF: K-means on the last factor of a product of several matrices.

    The samples are approximated by ``H Z_m' ... Z_1'``, where only H must be non-negative, so that
    samples may be negative. Each layer describes the samples by fewer attributes.

    Parameters
    ----------
    n_clusters
        Number of clusters.
    nonlinearity
        ``"linear"``, or ``"relu"``: negative values are set to 0 between two layers.
    layers
        Number of factors of each layer. None means ``(160, 160)`` for ``"linear"``, as the authors
        of JULE ran it, and ``(400, 100)`` for ``"relu"``.
    max_iter
        Maximum number of iterations: of each layer and of the fine-tuning for ``"linear"``, of the
        training for ``"relu"``. None means 100 for ``"linear"`` and 1000 for ``"relu"``.
    tol
        The iterations of ``"linear"`` stop once the error falls by less than this fraction in ten
        iterations.
    random_state
        Random seed.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters.
    n_iter_
        Number of iterations of the training of all layers together; not set for 1 cluster or as
        many as different samples.

    Notes
    -----
    ``"linear"``:

    1. Factorise the samples, and then H of each layer in turn: start from the NNDSVD of the
       absolute values, and alternate between least squares for Z and a multiplicative update of H.
    2. Fine-tune: least squares for every Z in turn, then a multiplicative update of H.
    3. K-means on H.

    ``"relu"``: every layer starts from a truncated singular value decomposition, shifted so that H
    is not negative; all layers are then trained together by Adam on the squared error. This is the
    demonstration of the method's authors. It needs PyTorch.

    Differences from the original: the samples are first scaled to a fixed mean length, 1000 for
    ``"linear"`` and 1 for ``"relu"``, because the initial factors depend on their unit. If they
    have more features than there are samples, they are rotated to as many features as samples.
    Columns of H for which the NNDSVD has no singular vector start at random. K-means starts by
    k-means++. The original runs up to 500 iterations of ``"linear"``.

    References
    ----------
    G. Trigeorgis, K. Bousmalis, S. Zafeiriou, B. Schuller: A deep semi-NMF model for learning
    hidden representations, ICML 2014.

    N. Gillis, A. Kumar: Exact and heuristic algorithms for semi-nonnegative matrix factorization,
    SIAM Journal on Matrix Analysis and Applications 36(4), 2015 (the start of ``"relu"``).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(3 * row, 0.3, (30, 4)) for row in np.eye(4)[:2]])
    >>> model = DeepSemiNMF(n_clusters=2, layers=(4, 3))
    >>> model.fit(samples).labels_[[0, 29, 30, 59]].tolist()
    [0, 0, 1, 1]
    """

    n_iter_: int

    _is_rotation_invariant = False

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        nonlinearity: Nonlinearity = "linear",
        layers: Sequence[int] | None = None,
        max_iter: int | None = None,
        tol: float = 1e-5,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.nonlinearity = nonlinearity
        self.layers = layers
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _cluster(self, samples: Array, k: int) -> NDArray[np.int32]:
        layers, max_iter = self._layers_and_max_iter()
        n, d = samples.shape
        check_memory(
            samples.itemsize * n * d + 8 * (3 * n * d + 8 * (n + d) * max(layers)),
            f"the factorisation of {n:,} samples with {d} values into layers of {tuple(layers)}",
        )
        rng = check_random_state(self.random_state)
        samples = divide_by_mean_length(samples)
        if self.nonlinearity == "relu":
            factors, self.n_iter_ = train_relu(samples, layers, max_iter, rng), max_iter
        else:
            factors, self.n_iter_ = factorise(samples, layers, max_iter, self.tol, rng)
        return round_by_kmeans(factors, k, max_iter=300, random_state=rng)

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        check_choice(self.nonlinearity, "nonlinearity", tuple(DEFAULTS))
        layers, max_iter = self._layers_and_max_iter()
        if not isinstance(layers, Sequence) or not layers:
            raise ValueError(f"layers must be a sequence of numbers of factors, got {layers!r}")
        for size in layers:
            check_count(size, "every number in layers", least=2)
        check_count(max_iter, "max_iter")
        check_not_negative(self.tol, "tol")

    def _layers_and_max_iter(self) -> tuple[Sequence[int], int]:
        layers, max_iter = DEFAULTS[self.nonlinearity]
        return (
            layers if self.layers is None else self.layers,
            max_iter if self.max_iter is None else self.max_iter,
        )


def factorise(
    samples: Array, layers: Sequence[int], max_iter: int, tol: float, rng: RandomState
) -> tuple[Array, int]:
    """Return the factors (n, layers[-1]) of the linear model and the number of iterations.

    The samples must have a mean length of 1.
    """
    # In float64, because float32 loses the small eigenvalues of nearly dependent factors.
    samples = samples.astype(np.float64) * LENGTH
    factors = nndsvd(np.abs(samples), layers[0], rng)
    samples = rotate_to_fewer(samples)
    weights, n_iter = fine_tune(samples, [], factors, max_iter, tol)
    for n_factors in layers[1:]:
        inner, factors = factors, nndsvd(factors, n_factors, rng)
        weights += fine_tune(inner, [], factors, max_iter, tol)[0]
    if len(layers) > 1:
        _, n_iter = fine_tune(samples, weights, factors, max_iter, tol)
    return factors, n_iter


def fine_tune(
    samples: Array, weights: Sequence[Array], factors: Array, max_iter: int, tol: float
) -> tuple[list[Array], int]:
    """Improve all layers together; the factors are changed in place.

    Without weights, there is a single layer: this is semi-NMF.

    Returns
    -------
    weights
        Z_1, ..., Z_m.
    n_iter
        Number of iterations.
    """
    error = np.inf
    for iteration in range(1, max_iter + 1):
        weights, product = update_weights(samples.T @ factors, factors.T @ factors, weights)
        update_factors(factors, samples @ product, product.T @ product)
        if iteration % N_BETWEEN == 0:
            previous, error = error, squared_error(samples, factors, product) ** 0.5
            if previous - error < tol * previous:
                break
    return list(weights), iteration


def update_weights(
    cross: Array, gram: Array, weights: Sequence[Array]
) -> tuple[list[Array], Array]:
    """Replace Z_1, ..., Z_m in turn by the least squares solution with the others fixed.

    The solutions depend on the n samples and factors only through two small matrices.

    Parameters
    ----------
    cross
        (d, p) transposed samples times factors, X' H.
    gram
        (p, p) H' H.
    weights
        Z_1, ..., Z_m; empty for a single layer, because the old Z_1 is not used.

    Returns
    -------
    weights
        Z_1, ..., Z_m.
    product
        (d, p) ``Z_1 ... Z_m``.
    """
    after = [np.eye(len(gram))]  # Z_{i+1} ... Z_m, from the last layer to the first
    for weight in weights[:0:-1]:
        after.append(weight @ after[-1])
    outer = after.pop()
    product = solve_gram(outer @ gram @ outer.T, outer @ cross.T).T
    updated = [product]
    while after:
        outer = after.pop()
        right = solve_gram(outer @ gram @ outer.T, outer @ cross.T @ product).T
        updated.append(solve_gram(product.T @ product, right))
        product = product @ updated[-1]
    return updated, product


def update_factors(factors: Array, projected: Array, gram: Array) -> None:
    """Update the factors by the multiplicative rule of semi-NMF, in place.

    Parameters
    ----------
    factors
        (n, p) H.
    projected
        (n, p) samples times the weights, X Z. It is overwritten.
    gram
        (p, p) Z' Z.
    """
    growth = factors @ np.maximum(-gram, 0)
    growth += np.maximum(projected, 0)
    shrinkage = factors @ np.maximum(gram, 0)
    shrinkage -= np.minimum(projected, 0, out=projected)
    shrinkage += FLOOR
    growth /= shrinkage
    factors *= np.sqrt(growth, out=growth)


def squared_error(samples: Array, factors: Array, weight: Array) -> float:
    """Return the sum of squares of ``samples - factors @ weight.T``."""
    total = 0.0
    for block in row_blocks(samples):
        rest = samples[block] - factors[block] @ weight.T
        total += float(np.vdot(rest, rest))
    return total


def nndsvd(samples: Array, n_factors: int, rng: RandomState) -> Array:
    """Return (n, n_factors) positive factors of non-negative samples by NNDSVD.

    Values that would be 0 are set to 0.1. Factors for which there is no singular vector are random.
    """
    n_vectors = min(n_factors, *samples.shape)
    left, values, right = randomized_svd(samples, n_vectors, random_state=rng)
    factors = rng.uniform(0, 2 * FILL, (len(samples), n_factors)).astype(samples.dtype)
    for f, (u, value, v) in enumerate(zip(left.T, values, right, strict=True)):
        parts = [(np.maximum(s * u, 0), np.maximum(s * v, 0)) for s in (1, -1)]
        lengths = [(float(np.linalg.norm(x)), float(np.linalg.norm(y))) for x, y in parts]
        side = int(lengths[1][0] * lengths[1][1] > lengths[0][0] * lengths[0][1])
        x, y = lengths[side]
        factors[:, f] = parts[side][0] * (np.sqrt(value * x * y) / max(x, FLOOR))
    factors[factors < FLOOR] = FILL
    return factors


def shifted_svd(samples: Array, n_factors: int, rng: RandomState) -> tuple[Array, Array]:
    """Return factors (n, p) >= 0 and weights (d, p) by a truncated SVD of one rank less.

    The entries of each sample are shifted by their smallest, if it is negative, and one more factor
    undoes the shift, so that the product is that of the SVD.
    """
    n_vectors = min(n_factors - 1, *samples.shape)
    left, values, right = randomized_svd(samples, n_vectors, random_state=rng)
    signs = np.where(left.min(axis=0) < -left.max(axis=0), -1, 1).astype(samples.dtype)
    factors = np.pad(left * signs, ((0, 0), (0, 1)))
    factors -= factors.min(axis=1, keepdims=True)  # the last is 0, so this is at most 0
    weights = right.T * (values * signs)
    weights = np.concatenate([weights, -weights.sum(axis=1, keepdims=True)], axis=1)
    return factors, weights.astype(samples.dtype)


def train_relu(samples: Array, layers: Sequence[int], n_steps: int, rng: RandomState) -> Array:
    """Return the factors (n, layers[-1]) of the last layer of the model with relu."""
    import torch

    samples = rotate_to_fewer(samples)
    start, weights = samples, []
    for n_factors in layers:
        start, weight = shifted_svd(start, n_factors, rng)
        weights.append(torch.from_numpy(weight).requires_grad_())
    factors = torch.from_numpy(start).requires_grad_()
    target = torch.from_numpy(samples)
    optimizer = torch.optim.Adam([*weights, factors], lr=LEARNING_RATE)
    for _ in range(n_steps):
        optimizer.zero_grad()
        # relu, with the derivative 1/2 at 0, so that factors that start at 0 can grow.
        inner = (factors + factors.abs()) / 2
        for layer in weights[:0:-1]:
            inner = (inner @ layer.T).relu()
        error = (target - inner @ weights[0].T).square().sum()
        error.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    result: Array = factors.detach().relu().numpy()
    return result
