"""A linear support vector machine for many dense features: one against all, squared hinge loss.

For each class, 1/2 |w|^2 + C * mean(max(0, 1 - y f(x))^2) is minimised, where f(x) is w times the
standardised features and a constant 1, as in the code of Coates, Ng and Lee. This is what
scikit-learn's ``LinearSVC(C=C / n)`` minimises on standardised features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ADDED_VARIANCE = 0.01  # features that hardly vary are not blown up, as in the original
ROWS_AT_ONCE = 2000
MOST_ITERATIONS = 200
TOLERANCE = 1e-5  # relative decrease of the objective at which the search ends

Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LinearSVM:
    """A trained classifier.

    Attributes
    ----------
    classes
        The labels that it predicts.
    weights, bias
        (d, k) and (k,): the scores of features x are x @ weights + bias.
    objective
        The sum of the objectives of all classes.
    iterations
        The number of iterations until convergence.
    """

    classes: NDArray
    weights: Matrix
    bias: NDArray[np.float32]
    objective: float
    iterations: int

    def predict(self, features: Matrix) -> NDArray:
        """Return the class with the largest score for every row of features."""
        scores = features @ self.weights + self.bias
        predicted: NDArray = self.classes[scores.argmax(axis=1)]
        return predicted

    def accuracy(self, features: Matrix, labels: NDArray) -> float:
        """Return the share of rows whose class is predicted."""
        return float((self.predict(features) == labels).mean())


class Moments:
    """Number, sum and products of rows of features, to which rows can be added.

    Examples
    --------
    >>> rows = np.array([[0, 1], [2, 1], [4, 4]], np.float32)
    >>> moments = Moments(rows[0])
    >>> moments.add(rows)
    >>> moments.covariance().round(2)
    array([[2.67, 2.  ],
           [2.  , 2.  ]], dtype=float32)
    """

    def __init__(self, near: NDArray[np.float32]) -> None:
        # Products of differences from a row near the mean: those of large values lose their digits.
        self._near = near.copy()
        self._n = 0
        self._sum = np.zeros(len(near))
        # Only the upper triangle is kept. In Fortran order, BLAS adds to it in place.
        self._products = np.zeros((len(near), len(near)), np.float32, order="F")

    def add(self, features: Matrix) -> None:
        """Add rows."""
        from scipy.linalg.blas import ssyrk

        for rows in _blocks(features):
            block = features[rows] - self._near
            self._n += len(block)
            self._sum += block.sum(axis=0, dtype=np.float64)
            self._products = ssyrk(1.0, block.T, 1.0, self._products, overwrite_c=True)

    def of(self, columns: slice) -> Moments:
        """Return the moments of some of the features.

        They share memory with these: do not add rows to them.
        """
        part = copy(self)
        part._near, part._sum = self._near[columns], self._sum[columns]
        part._products = self._products[columns, columns]
        return part

    def covariance(self) -> Matrix:
        """Return the covariance of the features, as a new array."""
        covariance = np.empty(self._products.shape, np.float32)
        np.divide(self._products.T, np.float32(self._n), out=covariance)  # now the lower half
        mean = (self._sum / self._n).astype(np.float32)
        for rows in _blocks(covariance):
            covariance[rows, : rows.stop] -= np.outer(mean[rows], mean[: rows.stop])
            covariance[: rows.start, rows] = covariance[rows, : rows.start].T
            square = covariance[rows, rows]
            square[:] = np.tril(square) + np.tril(square, -1).T
        return covariance


def train_svm(
    features: Matrix,
    labels: NDArray,
    c: float,
    *,
    moments: Moments | None = None,
    tolerance: float = TOLERANCE,
) -> LinearSVM:
    """Train a linear support vector machine.

    L-BFGS in coordinates in which the Hessian of all samples together is the identity: it converges
    in few iterations, although pooled codes are strongly correlated.

    Parameters
    ----------
    features
        (n, d); not standardised, and not changed.
    labels
        The class of every row.
    c
        The weight C of the loss.
    moments
        The moments of these features, or of similar ones, if they are known.
    tolerance
        The relative decrease of the objective at which the search ends.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [4.0], [5.0]], np.float32)
    >>> train_svm(x, np.array(["a", "a", "b", "b"]), c=10.0).predict(x).tolist()
    ['a', 'a', 'b', 'b']
    """
    from scipy.optimize import minimize

    loss = _Loss(features, labels, c)
    if moments is None:
        moments = Moments(features[0])
        moments.add(features)
    space = _Preconditioner(loss, moments)

    def objective(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = loss(space.to_weights(values.reshape(loss.shape)))
        return value, space.to_gradient(gradient).ravel()

    # With all samples inside the margin, the loss is quadratic, and this is its minimum.
    _, slope = loss(np.zeros(loss.shape))
    start = -space.to_gradient(slope)
    found = minimize(
        objective,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_ITERATIONS, "ftol": tolerance, "gtol": 0.0},
    )
    weights = space.to_weights(found.x.reshape(loss.shape))
    raw, bias = loss.raw(weights)
    return LinearSVM(loss.classes, raw, bias, float(found.fun), int(found.nit))


class _Loss:
    """The objective of all classes and its gradient, in blocks of rows.

    Weights are (d + 1, k) float64 and belong to standardised features; the last row is the bias.
    The features are not standardised, because a second copy might not fit into memory.
    """

    def __init__(self, features: Matrix, labels: NDArray, c: float) -> None:
        self.features, self.c = features, c
        self.classes, numbers = np.unique(labels, return_inverse=True)
        self.signs = np.where(numbers[:, None] == np.arange(len(self.classes)), 1, -1).astype("f")
        self.mean, self.std = _moments_of(features)
        self.shape = features.shape[1] + 1, len(self.classes)

    def raw(self, weights: NDArray[np.float64]) -> tuple[Matrix, NDArray[np.float32]]:
        """Return weights and bias for features that are not standardised."""
        raw = weights[:-1] / self.std[:, None]
        bias = weights[-1] - self.mean @ raw
        return raw.astype(np.float32), bias.astype(np.float32)

    def __call__(self, weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        raw, bias = self.raw(weights)
        squares, sums = 0.0, np.zeros(self.shape[1])
        products = np.zeros((self.shape[0] - 1, self.shape[1]))
        for rows in _blocks(self.features):
            block, signs = self.features[rows], self.signs[rows]
            missing = np.maximum(1 - signs * (block @ raw + bias), 0)
            squares += float(np.square(missing).sum(dtype=np.float64))
            missing *= signs
            sums += missing.sum(axis=0, dtype=np.float64)
            products += block.T @ missing
        scale = self.c / len(self.features)
        gradient = weights.copy()
        gradient[:-1] -= 2 * scale * (products - self.mean[:, None] * sums) / self.std[:, None]
        gradient[-1] -= 2 * scale * sums
        return 0.5 * float(np.square(weights).sum()) + scale * squares, gradient


class _Preconditioner:
    """Coordinates in which the Hessian is the identity while all samples are inside the margin."""

    def __init__(self, loss: _Loss, moments: Moments) -> None:
        self._factor = _factorize(loss, moments)
        self._bias = np.sqrt(1 + 2 * loss.c)

    def to_weights(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._solve(values, "T")

    def to_gradient(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._solve(gradient, "N")

    def _solve(self, values: NDArray[np.float64], transposed: str) -> NDArray[np.float64]:
        from scipy.linalg import solve_triangular

        right = values[:-1].astype(np.float32)
        solved = solve_triangular(
            self._factor, right, lower=True, trans=transposed, check_finite=False
        )
        return np.vstack([solved, values[-1:] / self._bias]).astype(np.float64)


def _factorize(loss: _Loss, moments: Moments) -> Matrix:
    """Return the Cholesky factor of the Hessian."""
    from scipy.linalg import LinAlgError, cholesky

    ridge = 1.0
    while True:
        hessian = _hessian(loss, moments, ridge).T  # symmetric; LAPACK works in place in this order
        try:
            factor: Matrix = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
            return factor
        except LinAlgError:  # it is not positive definite in float32
            del hessian  # before there is another one
            ridge *= 10.0


def _hessian(loss: _Loss, moments: Moments, ridge: float) -> Matrix:
    """Return the Hessian while all samples are inside the margin, plus `ridge` on its diagonal."""
    std = loss.std.astype(np.float32)
    hessian = moments.covariance()
    hessian *= np.float32(2 * loss.c) / std
    hessian /= std[:, None]
    hessian.flat[:: len(hessian) + 1] += np.float32(ridge)
    return hessian


def choose_c(
    features: Matrix,
    labels: NDArray,
    candidates: Sequence[float],
    *,
    moments: Moments,
    tolerance: float = 1e-3,
    progress: Callable[[float], None] | None = None,
) -> tuple[float, dict[float, float]]:
    """Return the C with the best accuracy on the last tenth of the rows, and all accuracies.

    Parameters
    ----------
    features, labels
        All rows for training; a classifier is trained on the first nine tenths per candidate.
    candidates
        The values of C, in ascending order; of equally good ones, the smallest is taken.
    moments
        The moments of the features.
    tolerance
        As in `train_svm`; little, because only the order of the candidates matters.
    progress
        Called with the fraction of the candidates that is done.
    """
    n_train = len(features) - max(1, len(features) // 10)
    held = slice(n_train, None)
    scores = {}
    for c in candidates:
        trained = train_svm(
            features[:n_train],
            labels[:n_train],
            c,
            moments=moments,
            tolerance=tolerance,
        )
        scores[c] = trained.accuracy(features[held], labels[held])
        if progress is not None:
            progress(len(scores) / len(candidates))
    return max(scores, key=lambda c: scores[c]), scores


def _moments_of(features: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the smoothed standard deviation of every feature."""
    total, squares = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    first = features[0].astype(np.float64)  # a constant feature gets exactly 0 this way
    for rows in _blocks(features):
        block = features[rows] - first
        total += block.sum(axis=0)
        squares += np.einsum("ij,ij->j", block, block)
    mean = total / len(features)
    variance = np.maximum(squares / len(features) - mean**2, 0.0)
    return mean + first, np.sqrt(variance + ADDED_VARIANCE)


def _blocks(features: Matrix) -> Iterator[slice]:
    for start in range(0, len(features), ROWS_AT_ONCE):
        yield slice(start, start + ROWS_AT_ONCE)
