"""Who searches exact neighbours: this process, or several together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from jule.forward.neighbors import Neighbors

# Called with vectors, the number of neighbours, and what is told about progress.
Search = Callable[[NDArray[np.floating], int, Callable[[float], None] | None], "Neighbors"]

_search: ContextVar[Search | None] = ContextVar("_search", default=None)


@contextmanager
def search_with(search: Search | None) -> Iterator[None]:
    """Within this context, `nearest_neighbors` calls another function for exact neighbours.

    Examples
    --------
    >>> from jule.forward import Neighbors, nearest_neighbors
    >>> def last(vectors, k, progress):
    ...     return Neighbors(np.array([[1], [0]], np.int32), np.ones((2, 1)))
    >>> with search_with(last):
    ...     nearest_neighbors([[0.0], [5.0]], k=1).distances.ravel().tolist()
    [1.0, 1.0]
    """
    token = _search.set(search)
    try:
        yield
    finally:
        _search.reset(token)


def chosen_search() -> Search | None:
    """Return the function of the current context; None outside of `search_with`.

    Examples
    --------
    >>> chosen_search() is None
    True
    """
    return _search.get()
