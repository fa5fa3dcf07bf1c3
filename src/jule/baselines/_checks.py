"""Checks of the parameters that the baselines share."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np


def check_count(value: int, name: str, least: int = 1) -> int:
    """Return a parameter that must be an integer that is large enough.

    Examples
    --------
    >>> check_count(20, "n_neighbors")
    20
    """
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of {least} or more, got {value!r}")
    return int(value)


def check_positive(value: float, name: str) -> float:
    """Return a parameter that must be a positive, finite number.

    Examples
    --------
    >>> check_positive(0.05, "scale")
    0.05
    """
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return float(value)


def check_not_negative(value: float, name: str) -> float:
    """Return a parameter that must be a finite number of 0 or more.

    Examples
    --------
    >>> check_not_negative(0.5, "lam")
    0.5
    """
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a number of 0 or more, got {value!r}")
    return float(value)


def check_choice(value: str, name: str, choices: Sequence[str]) -> None:
    """Raise an error unless a parameter is one of several strings.

    Examples
    --------
    >>> check_choice("relu", "nonlinearity", ("linear", "relu"))
    """
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}: choose one of {', '.join(map(repr, choices))}")
