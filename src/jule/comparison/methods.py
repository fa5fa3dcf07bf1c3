"""The methods that can be compared, and which of them run by default."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Methods = Mapping[str, type[Any]]

# The number of samples up to which a method takes at most about a minute on two cores, and 0 for
# methods that always take longer. The time of the others grows slowly enough for any number.
MOST_SAMPLES = {
    "SC-NJW": 10_000,
    "SC-ST": 10_000,
    "N-Cuts": 10_000,
    "AC-Link": 10_000,
    "NMF-D": 5_000,
    "TSC-D": 10_000,
    "HDBSCAN": 10_000,
    "Ward": 10_000,
    "UMAP + HDBSCAN": 50_000,
    "UMAP + K-means": 50_000,
    "DEC": 0,
    "IDEC": 0,
    "DCN": 0,
}

# The same as a number of values, for methods that go through all values many times.
MOST_VALUES = {"NMF-LP": 10_000_000}


def known_methods() -> dict[str, type[Any]]:
    """Return all methods by name: those of the paper, then those in use today.

    Examples
    --------
    >>> known_methods()["AC-GDL"].__name__
    'GraphDegreeLinkage'
    """
    from jule.baselines import METHODS  # slow to import, because of compiled kernels
    from jule.baselines.modern import MODERN

    return {**METHODS, **MODERN}


def choose_quick(known: Methods, n_samples: int, n_features: int) -> tuple[list[str], list[str]]:
    """Choose the methods that finish within about a minute.

    Parameters
    ----------
    known
        Methods by name.
    n_samples
        Number of samples.
    n_features
        Number of values of a sample.

    Returns
    -------
    chosen
        Names of the methods to run.
    left_out
        Names of the others.

    Examples
    --------
    >>> chosen, left_out = choose_quick(known_methods(), 60, 1024)
    >>> "AC-GDL" in chosen
    True
    """
    n_values = n_samples * n_features
    chosen = [
        name
        for name in known
        if n_samples <= MOST_SAMPLES.get(name, n_samples)
        and n_values <= MOST_VALUES.get(name, n_values)
    ]
    return chosen, [name for name in known if name not in chosen]


def needs_non_negative(method: type[Any]) -> bool:
    """Return whether a method refuses negative values.

    Examples
    --------
    >>> needs_non_negative(known_methods()["AC-GDL"])
    False
    """
    return bool(getattr(method, "_non_negative", False))


def is_rotation_invariant(method: type[Any]) -> bool:
    """Return whether only the distances between samples matter to a method.

    Examples
    --------
    >>> is_rotation_invariant(known_methods()["AC-GDL"])
    True
    """
    return bool(getattr(method, "_is_rotation_invariant", False))


def fit_values(method: type[Any], vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the samples in a form that a method accepts.

    If it refuses negative values and there are some, every feature is shifted so that its smallest
    value is 0, which changes no distance.

    Examples
    --------
    >>> fit_values(known_methods()["AC-GDL"], np.array([[-1.0], [2.0]])).tolist()
    [[-1.0], [2.0]]
    """
    if not needs_non_negative(method) or vectors.min() >= 0:
        return vectors
    shifted: NDArray[np.floating] = vectors - vectors.min(axis=0)
    return shifted


def is_random(method: type[Any]) -> bool:
    """Return whether the result of a method, with its default parameters, depends on a seed.

    Examples
    --------
    >>> is_random(known_methods()["AC-GDL"])
    False
    """
    return bool(method()._is_random())


def make_estimator(method: type[Any], n_clusters: int, seed: int) -> Any:
    """Return an estimator with a number of clusters and a seed, as far as it has these parameters.

    Examples
    --------
    >>> make_estimator(known_methods()["AC-GDL"], 3, 0)
    GraphDegreeLinkage(n_clusters=3)
    """
    wanted = {"n_clusters": n_clusters, "random_state": seed}
    taken = inspect.signature(method).parameters
    return method(**{name: value for name, value in wanted.items() if name in taken})
