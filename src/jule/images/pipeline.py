"""Work on all cores, results in order, little waiting in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Protocol, TypeVar

Item = TypeVar("Item", contravariant=True)
Result = TypeVar("Result", covariant=True)


class Decoder(Protocol[Item, Result]):
    """Something that works on an item, and is closed at the end."""

    def decode(self, item: Item, /) -> Result: ...

    def close(self) -> None: ...


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


def in_order(workers: Sequence[Decoder[Item, Result]], items: Iterable[Item]) -> Iterator[Result]:
    """Let each worker decode one item after the other, and give the results in the items' order.

    Items are taken as room comes free, two a worker ahead. Here are only threads that wait; the
    workers are processes.

    Examples
    --------
    >>> from jule.images.decode import Look
    >>> from jule.images.worker import Worker
    >>> found = in_order([Worker(Look(2, 2, 1))], [{0: b""}, {1: b""}])
    >>> [batch.skipped for batch in found]
    [{0: 'it is empty'}, {1: 'it is empty'}]
    """
    free: SimpleQueue[Decoder[Item, Result]] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def work(item: Item) -> Result:
        worker = free.get()
        try:
            return worker.decode(item)
        finally:
            free.put(worker)

    with ThreadPoolExecutor(len(workers)) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * len(workers):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()
            pool.shutdown()
            for worker in workers:
                worker.close()
