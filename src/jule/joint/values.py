"""Check values that were read from JSON, or given by a user, before they are used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

LONGEST = 60  # characters of a value in an error message


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number; True and False are not.

    Examples
    --------
    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number that a float can hold, NaN and infinity included.

    Examples
    --------
    >>> is_number(3), is_number(0.5), is_number(10**400), is_number("3")
    (True, True, False, False)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def plain(value: Any) -> Any:
    """Convert a numpy scalar to a Python object, which JSON can store; return others unchanged.

    Examples
    --------
    >>> plain(np.int64(3)), plain("l2")
    (3, 'l2')
    """
    return value.item() if isinstance(value, np.generic) else value


def shortened(value: Any, *, quotes: bool = True) -> str:
    """Return a value as text that is not too long for an error message.

    Examples
    --------
    >>> len(shortened("x" * 1000)), shortened([1, 2])
    (60, '[1, 2]')
    """
    try:
        text = repr(value) if quotes else str(value)
    except (RecursionError, ValueError):  # nested too deeply; a number of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def whole_in(values: Mapping[str, Any], name: str) -> int:
    """Return a whole number of 0 or more from an object; raise ValueError for anything else.

    Examples
    --------
    >>> whole_in({"k": 3}, "k")
    3
    """
    value: Any = values.get(name)
    if not is_whole(value) or not 0 <= value < 2**63:
        raise ValueError(f"{name} must be a whole number of 0 or more, got {shortened(value)}")
    return int(value)


def finite_in(values: Mapping[str, Any], name: str) -> float:
    """Return a finite number from an object; raise ValueError for anything else.

    Examples
    --------
    >>> finite_in({"score": 0.5}, "score")
    0.5
    """
    value: Any = values.get(name)
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {shortened(value)}")
    return float(value)


def object_of(value: Any, what: str, names: frozenset[str] | None = None) -> dict[str, Any]:
    """Return a JSON object; raise ValueError for anything else, or for names that are not given.

    Examples
    --------
    >>> object_of({"k": 3}, "a choice", frozenset({"k", "score"}))
    {'k': 3}
    """
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be an object, got {shortened(value)}")
    unknown = set() if names is None else value.keys() - names
    if unknown:
        listed = shortened(", ".join(sorted(map(str, unknown))), quotes=False)
        raise ValueError(f"{what} has unknown entries: {listed}")
    return value
