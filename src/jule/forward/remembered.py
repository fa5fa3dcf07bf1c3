"""Remember neighbour searches, for several methods that are given the same samples."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from jule.forward.neighbors import Neighbors

MIN_STORED = 30  # neighbours that are searched at least, so that most methods find enough
MAX_SEARCHES = 4  # of different samples, the latest


@dataclass
class RememberedSearches:
    """Exact neighbour searches that `nearest_neighbors` does not repeat.

    Attributes
    ----------
    seconds_saved
        How long the searches took that were not repeated.
    """

    seconds_saved: float = 0.0
    _found: dict[str, tuple[Neighbors, float]] = field(default_factory=dict)

    def search(
        self,
        vectors: NDArray[np.floating],
        k: int,
        search: Callable[[NDArray[np.floating], int], Neighbors],
    ) -> Neighbors:
        """Return the k nearest neighbours: remembered ones, or those that `search` finds."""
        key = _fingerprint(vectors)
        found, seconds = self._found.get(key, (None, 0.0))
        if found is None or found.k < k:
            start = time.perf_counter()
            found = search(vectors, min(max(k, MIN_STORED), len(vectors) - 1))
            self._found.pop(key, None)
            self._found[key] = found, time.perf_counter() - start
            while len(self._found) > MAX_SEARCHES:
                del self._found[next(iter(self._found))]
        else:
            self.seconds_saved += seconds
        return found.nearest(k)


_remembered: ContextVar[RememberedSearches | None] = ContextVar("_remembered", default=None)


@contextmanager
def remember_searches(searches: RememberedSearches) -> Iterator[None]:
    """Within this context, exact neighbours of the same samples are searched once.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> searches = RememberedSearches()
    >>> with remember_searches(searches):
    ...     first = nearest_neighbors([[0.0], [1.0], [3.0]], k=2)
    ...     again = nearest_neighbors([[0.0], [1.0], [3.0]], k=1)
    >>> again.indices.ravel().tolist(), searches.seconds_saved > 0
    ([1, 0, 1], True)
    """
    token = _remembered.set(searches)
    try:
        yield
    finally:
        _remembered.reset(token)


def remembered_searches() -> RememberedSearches | None:
    """Return the searches of the current context; None outside of `remember_searches`.

    Examples
    --------
    >>> remembered_searches() is None
    True
    """
    return _remembered.get()


def _fingerprint(vectors: NDArray[np.floating]) -> str:
    """Return a hash of the values, their type and their shape."""
    digest = hashlib.blake2b(f"{vectors.dtype} {vectors.shape}".encode())
    digest.update(np.ascontiguousarray(vectors).data)
    return digest.hexdigest()
