"""Exact copies of one picture, which keep one label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jule.joint import Result


def with_copies_together(result: Result, first_copies: NDArray[np.int64]) -> Result:
    """Give exact copies the label of the first of them.

    They lie at one point, and merging all but always keeps them together; here it is certain.

    Examples
    --------
    >>> with_copies_together(result, np.array([0, 1, 0]))  # doctest: +SKIP
    """
    return replace(
        result,
        labels=labels_together(result.labels, first_copies),
        labels_sf=labels_together(result.labels_sf, first_copies),
        labels_rc=labels_together(result.labels_rc, first_copies),
        confidence=result.confidence[first_copies],
    )


def labels_together(
    labels: NDArray[np.int32], first_copies: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Give copies the label of the first of them, and leave no number unused.

    Examples
    --------
    >>> labels_together(np.array([0, 1, 2], np.int32), np.array([0, 0, 2])).tolist()
    [0, 0, 1]
    """
    together = np.unique(labels[first_copies], return_inverse=True)[1].astype(np.int32)
    return together.reshape(-1)
