"""Work on all cores, results in order, little waiting in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def cores() -> int:
    """Count the cores that this process may use.

    Examples
    --------
    >>> cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(work: Callable[[T], U], items: Iterable[T], workers: int) -> Iterator[U]:
    """Do the work on each item in threads, and give the results in the order of the items.

    Items are taken as room comes free, two a worker ahead. Threads suffice where the work leaves
    Python's lock alone, as decoding and hashing do.

    Examples
    --------
    >>> list(in_order(lambda x: x * x, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[U]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()
