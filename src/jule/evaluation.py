"""Scores that compare a clustering with the true classes.

The scores depend only on which samples share a label, so labels may be numbers, text or booleans in
any order. They are computed from the label pairs that occur, so memory grows with the number of
samples and not with clusters x classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from scipy.special import gammaln

__all__ = ["accuracy", "ami", "ari", "nmi", "purity", "scores"]

Average = Literal["geometric", "arithmetic", "max", "min"]

AVERAGES: dict[str, Callable[[float, float], float]] = {
    "geometric": lambda a, b: sqrt(a * b),
    "arithmetic": lambda a, b: (a + b) / 2,
    "max": max,
    "min": min,
}

# Up to this many cells (8 MB) a dense table is cheap, and the Hungarian algorithm can be used.
DENSE_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class _Contingency:
    """The label pairs that occur: class `rows[k]` meets cluster `columns[k]` `counts[k]` times."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    counts: NDArray[np.int64]
    class_sizes: NDArray[np.int64]
    cluster_sizes: NDArray[np.int64]

    @property
    def n_samples(self) -> int:
        return int(self.counts.sum())

    @property
    def same_partition(self) -> bool:
        """Whether classes and clusters are the same partition of the samples."""
        return self.counts.size == self.class_sizes.size == self.cluster_sizes.size


def nmi(true: ArrayLike, found: ArrayLike, average: Average = "geometric") -> float:
    """Compute the normalised mutual information, from 0 (independent) to 1 (same partition).

    By default it is divided by the geometric mean of the two entropies, ``MI / sqrt(H1 * H2)``, as
    in the JULE paper. Two labellings with a single group each score 1; a single group against
    several scores 0.

    Parameters
    ----------
    true, found
        (n,) one label per sample.
    average
        How the two entropies are combined: ``"geometric"``, ``"arithmetic"``, ``"max"`` or
        ``"min"``.

    Examples
    --------
    >>> nmi([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    >>> round(nmi([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8165
    """
    return _nmi(_contingency(true, found), average)


def accuracy(true: ArrayLike, found: ArrayLike) -> float:
    """Compute the clustering accuracy (AC) under the best one-to-one matching.

    Each cluster is matched with at most one class, and each class with at most one cluster. Samples
    of unmatched clusters count as wrong.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    return _accuracy(_contingency(true, found))


def ari(true: ArrayLike, found: ArrayLike) -> float:
    """Compute the adjusted Rand index: at most 1, and 0 on average for random labels.

    Examples
    --------
    >>> ari([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    >>> ari([0, 0, 1, 1], [0, 1, 0, 1])
    -0.5
    """
    return _ari(_contingency(true, found))


def ami(true: ArrayLike, found: ArrayLike) -> float:
    """Compute the adjusted mutual information: at most 1, and 0 on average for random labels.

    ``(MI - E[MI]) / (mean(H1, H2) - E[MI])`` with the arithmetic mean of the entropies.

    Examples
    --------
    >>> ami([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    >>> round(ami([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    return _ami(_contingency(true, found))


def purity(true: ArrayLike, found: ArrayLike) -> float:
    """Compute the fraction of samples that belong to the most frequent class of their cluster.

    Examples
    --------
    >>> purity([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    return _purity(_contingency(true, found))


def with_own_class(true: ArrayLike, found: ArrayLike) -> NDArray[np.bool_]:
    """Return which samples belong to the most frequent class of their cluster, as `purity` counts.

    Of equally frequent classes, the first counts.

    Examples
    --------
    >>> with_own_class([0, 0, 1, 1], [1, 1, 1, 0]).tolist()
    [True, True, False, True]
    """
    classes, clusters = _group_numbers(true, "true"), _group_numbers(found, "found")
    if len(classes) != len(clusters):
        raise ValueError(f"{len(classes)} true and {len(clusters)} found labels differ in number")
    n_classes = int(classes.max()) + 1
    pairs, counts = np.unique(clusters * n_classes + classes, return_counts=True)
    # The last of equal places wins an assignment, so the most frequent come last.
    order = np.lexsort((-pairs, counts))
    most_frequent = np.empty(int(clusters.max()) + 1, np.int64)
    most_frequent[pairs[order] // n_classes] = pairs[order] % n_classes
    own: NDArray[np.bool_] = most_frequent[clusters] == classes
    return own


def calibration_error(confidence: ArrayLike, correct: ArrayLike, n_bins: int = 10) -> float:
    """Compute the expected calibration error of confidences: 0 is best.

    Samples are divided into bins of equal width by their confidence. The error is the mean
    difference, over all samples, between the mean confidence of their bin and the fraction of it
    that is correct.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger: On calibration of modern neural networks, ICML 2017.

    Examples
    --------
    >>> calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    >>> calibration_error([1.0, 1.0], [True, False])
    0.5
    """
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    if sure.shape != right.shape or sure.ndim != 1 or not len(sure):
        raise ValueError(
            f"confidence and correct must have one value per sample, got shapes {sure.shape} and "
            f"{right.shape}"
        )
    if not ((sure >= 0) & (sure <= 1)).all():
        raise ValueError("confidence must be between 0 and 1")
    if not ((right == 0) | (right == 1)).all():
        raise ValueError("correct must be true or false for every sample")
    if n_bins < 1:
        raise ValueError(f"n_bins must be 1 or more, got {n_bins}")
    bins = np.minimum((sure * n_bins).astype(np.int64), n_bins - 1)
    gaps = np.bincount(bins, sure - right, n_bins)
    return float(np.abs(gaps).sum() / len(sure))


def scores(true: ArrayLike, found: ArrayLike) -> dict[str, float]:
    """Compute all scores: ``nmi``, ``ac``, ``ari``, ``ami`` and ``purity``.

    Examples
    --------
    >>> scores([0, 0, 1, 1], [1, 1, 0, 0])
    {'nmi': 1.0, 'ac': 1.0, 'ari': 1.0, 'ami': 1.0, 'purity': 1.0}
    """
    table = _contingency(true, found)
    return {
        "nmi": _nmi(table, "geometric"),
        "ac": _accuracy(table),
        "ari": _ari(table),
        "ami": _ami(table),
        "purity": _purity(table),
    }


def _contingency(true: ArrayLike, found: ArrayLike) -> _Contingency:
    classes = _group_numbers(true, "true")
    clusters = _group_numbers(found, "found")
    if classes.size != clusters.size:
        raise ValueError(
            f"true has {classes.size} labels and found has {clusters.size}: "
            "give one label per sample in each, in the same order"
        )
    n_clusters = int(clusters.max()) + 1
    pairs, counts = np.unique(classes * n_clusters + clusters, return_counts=True)
    return _Contingency(
        rows=pairs // n_clusters,
        columns=pairs % n_clusters,
        counts=counts.astype(np.int64),
        class_sizes=np.bincount(classes).astype(np.int64),
        cluster_sizes=np.bincount(clusters).astype(np.int64),
    )


def _group_numbers(labels: ArrayLike, name: str) -> NDArray[np.int64]:
    """Check labels of any kind and number the distinct ones 0, 1, ..."""
    array = _label_array(labels, name)
    try:
        if _has_missing(array):
            raise ValueError(
                f"{name} has missing labels (NaN, NaT or None): remove those samples from both "
                "arguments, or give them a label of their own"
            )
        numbers = np.unique(array, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            f"{name} mixes labels that cannot be compared ({error}): "
            "use one kind of label throughout, such as all numbers or all text"
        ) from error
    return np.asarray(numbers, dtype=np.int64)


def _label_array(labels: ArrayLike, name: str) -> NDArray[np.generic]:
    message = f"{name} must be a flat sequence with one label per sample"
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise ValueError(f"{message}; it cannot be read as an array ({error})") from error
    if array.ndim != 1:
        raise ValueError(f"{message}; its shape is {array.shape}")
    if array.size == 0:
        raise ValueError(f"{message}; it is empty")
    if array.dtype.kind in "US":
        # numpy converts [nan, "a"] to text; as objects, the NaN is still recognised.
        return np.asarray(labels, dtype=object)
    return array


def _has_missing(array: NDArray[np.generic]) -> bool:
    if array.dtype.kind in "mM":
        return bool(np.isnat(array).any())
    if array.dtype.kind in "fc":
        return bool(np.isnan(array).any())
    if array.dtype.kind == "O":
        # Only NaN-like values differ from themselves.
        return any(label is None or bool(label != label) for label in array)
    return False


def _nmi(table: _Contingency, average: str) -> float:
    if average not in AVERAGES:
        raise ValueError(f"average must be one of {', '.join(AVERAGES)}, got {average!r}")
    if table.same_partition:
        return 1.0
    if table.class_sizes.size == 1 or table.cluster_sizes.size == 1:
        return 0.0
    divisor = AVERAGES[average](_entropy(table.class_sizes), _entropy(table.cluster_sizes))
    # Rounding can lift the ratio slightly above 1.
    return float(min(1.0, _mutual_information(table) / divisor))


def _accuracy(table: _Contingency) -> float:
    return _best_matching_total(table) / table.n_samples


def _ari(table: _Contingency) -> float:
    # Python integers, because products of pair counts overflow 64 bits from 100,000 samples on.
    together = int(np.square(table.counts).sum())
    same_class = int(np.square(table.class_sizes).sum())
    same_cluster = int(np.square(table.cluster_sizes).sum())
    both = together - table.n_samples
    only_class = same_class - together
    only_cluster = same_cluster - together
    neither = table.n_samples**2 - same_class - same_cluster + together
    if only_class == only_cluster == 0:
        return 1.0
    return (2 * (both * neither - only_class * only_cluster)) / (
        (both + only_class) * (only_class + neither)
        + (both + only_cluster) * (only_cluster + neither)
    )


def _ami(table: _Contingency) -> float:
    # The quotient below is 0/0 only for equal partitions.
    if table.same_partition:
        return 1.0
    if table.class_sizes.size == 1 or table.cluster_sizes.size == 1:
        return 0.0
    by_chance = _expected_mutual_information(table)
    mean_entropy = (_entropy(table.class_sizes) + _entropy(table.cluster_sizes)) / 2
    return (_mutual_information(table) - by_chance) / (mean_entropy - by_chance)


def _purity(table: _Contingency) -> float:
    most_frequent = np.zeros(table.cluster_sizes.size, dtype=np.int64)
    np.maximum.at(most_frequent, table.columns, table.counts)
    return int(most_frequent.sum()) / table.n_samples


def _entropy(sizes: NDArray[np.int64]) -> float:
    shares = sizes / sizes.sum()
    return float(-(shares * np.log(shares)).sum())


def _mutual_information(table: _Contingency) -> float:
    total = table.n_samples
    shares = table.counts / total
    by_chance = (table.class_sizes[table.rows] / total) * (
        table.cluster_sizes[table.columns] / total
    )
    # Rounding can put the information of independent labels slightly below 0.
    return max(0.0, float((shares * np.log(shares / by_chance)).sum()))


def _expected_mutual_information(table: _Contingency) -> float:
    """Compute the mean mutual information of random labels with the same group sizes.

    It depends on the sizes alone, so groups of equal size are handled together. There are at most
    sqrt(2n) different sizes, so this is fast even with thousands of groups.
    """
    total = table.n_samples
    log_factorial = gammaln(np.arange(total + 1) + 1.0)
    cluster_sizes, cluster_repeats = np.unique(table.cluster_sizes, return_counts=True)
    expected = 0.0
    for size, repeats in zip(*np.unique(table.class_sizes, return_counts=True), strict=True):
        fewest = np.maximum(1, size + cluster_sizes - total)
        lengths = np.minimum(size, cluster_sizes) - fewest + 1
        # All possible overlaps with each cluster size, one cluster size after the other.
        starts = np.cumsum(lengths) - lengths
        overlap = np.arange(lengths.sum()) + np.repeat(fewest - starts, lengths)
        other = np.repeat(cluster_sizes, lengths)
        log_chance = (
            log_factorial[size]
            + log_factorial[other]
            + log_factorial[total - size]
            + log_factorial[total - other]
            - log_factorial[total]
            - log_factorial[overlap]
            - log_factorial[size - overlap]
            - log_factorial[other - overlap]
            - log_factorial[total - size - other + overlap]
        )
        information = overlap / total * np.log(total / size * overlap / other)
        terms = np.exp(log_chance) * information * np.repeat(cluster_repeats, lengths)
        expected += float(repeats * terms.sum())
    return expected


def _best_matching_total(table: _Contingency) -> int:
    """Return the number of samples that the best matching of classes and clusters covers."""
    # A class and a cluster that overlap only with each other are matched in any best matching.
    # Without them the solvers are much faster if there are many clusters.
    alone = (np.bincount(table.rows)[table.rows] == 1) & (
        np.bincount(table.columns)[table.columns] == 1
    )
    n_certain = int(table.counts[alone].sum())
    rows = np.unique(table.rows[~alone], return_inverse=True)[1]
    columns = np.unique(table.columns[~alone], return_inverse=True)[1]
    counts = table.counts[~alone]
    if counts.size == 0:
        return n_certain
    if (int(rows.max()) + 1) * (int(columns.max()) + 1) <= DENSE_CELLS:
        return n_certain + _dense_matching_total(rows, columns, counts)
    return n_certain + _sparse_matching_total(rows, columns, counts)


def _dense_matching_total(
    rows: NDArray[np.int64], columns: NDArray[np.int64], counts: NDArray[np.int64]
) -> int:
    dense = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1), dtype=np.int64)
    dense[rows, columns] = counts
    return int(dense[linear_sum_assignment(dense, maximize=True)].sum())


def _sparse_matching_total(
    rows: NDArray[np.int64], columns: NDArray[np.int64], counts: NDArray[np.int64]
) -> int:
    # The solver matches every row, so each row gets an extra column that means "unmatched". It also
    # needs positive weights, so every weight is raised by 1, which adds 1 per row to any matching.
    n_rows, n_columns = int(rows.max()) + 1, int(columns.max()) + 1
    spare = np.arange(n_rows)
    weights = csr_array(
        (
            np.concatenate([counts + 1, np.ones(n_rows)]),
            (np.concatenate([rows, spare]), np.concatenate([columns, n_columns + spare])),
        ),
        shape=(n_rows, n_columns + n_rows),
    )
    matched = min_weight_full_bipartite_matching(weights, maximize=True)
    return round(float(weights[matched].sum())) - n_rows
