"""Verification of pairs by cross-validation, as for Labeled Faces in the Wild (LFW)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cosine_similarity(
    vectors: NDArray[np.floating], pairs: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the cosine of the two vectors of each pair; 0 if one of them is zero.

    Examples
    --------
    >>> cosine_similarity(np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0, 1], [1, 1]])).tolist()
    [0.6, 1.0]
    """
    wide = np.asarray(vectors, np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    unit = wide / np.where(norms > 0, norms, 1.0)
    found: NDArray[np.float64] = np.einsum("ij,ij->i", unit[pairs[:, 0]], unit[pairs[:, 1]])
    return found


def best_threshold(similarity: NDArray[np.floating], same: NDArray[np.bool_]) -> float:
    """Return the threshold that tells most pairs rightly: the same if it is reached.

    It lies halfway between two similarities that occur. Of several thresholds that are equally
    good, the lowest is returned.

    Examples
    --------
    >>> best_threshold(np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, False, True, True]))
    0.5
    """
    values = np.unique(similarity)
    middles = (values[:-1] + values[1:]) / 2
    candidates = np.concatenate([[values[0] - 1.0], middles, [values[-1] + 1.0]])
    # Right at a threshold: different pairs below it, and same pairs that are not below it.
    different = np.searchsorted(np.sort(similarity[~same]), candidates)
    missed = np.searchsorted(np.sort(similarity[same]), candidates)
    return float(candidates[np.argmax(different - missed)])


def verification_accuracy(
    similarity: NDArray[np.floating], same: NDArray[np.bool_], fold: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the accuracy on each fold, with the best threshold of the other folds.

    Parameters
    ----------
    similarity
        (m,) similarity of each pair.
    same
        (m,) whether the pair shows the same person.
    fold
        (m,) the fold of each pair.

    Examples
    --------
    >>> same = np.array([False, True, False, True])
    >>> verification_accuracy(np.array([0.1, 0.9, 0.3, 0.4]), same, np.array([0, 0, 1, 1])).tolist()
    [1.0, 0.5]
    """
    found = []
    for held_out in np.unique(fold):
        is_test = fold == held_out
        threshold = best_threshold(similarity[~is_test], same[~is_test])
        found.append(np.mean((similarity[is_test] >= threshold) == same[is_test]))
    return np.array(found)
