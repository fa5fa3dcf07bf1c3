"""Decode a source on all cores, in order and with few pictures in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from jule.images.decoding.batch import Batch, Item, decode_chunk
from jule.images.decoding.decode import ImageSpec
from jule.images.decoding.worker import Worker
from jule.images.sources.base import ImageSource

CHUNK = 128  # pictures per batch, or ...
CHUNK_BYTES = 2**21  # ... fewer large ones, to report progress often and to save memory
FEW = 200  # this many pictures are decoded before a worker process would have started


class Decoder(Protocol):
    """Anything that decodes chunks and is closed at the end."""

    def decode(self, chunk: dict[int, Item], /) -> Batch: ...

    def close(self) -> None: ...


def count_cores() -> int:
    """Return the number of cores that this process may use.

    Examples
    --------
    >>> count_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def decode_batches(
    source: ImageSource, spec: ImageSpec, start: int = 0, workers: int | None = None
) -> Iterator[Batch]:
    """Yield the pictures of a source from index `start` on, in order, decoded on all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images.sources.arrays import ArraySource
    >>> source = ArraySource(np.zeros((5, 8, 8), np.uint8))
    >>> [batch.images.shape for batch in decode_batches(source, ImageSpec(4, 4, 1))]
    [(5, 4, 4)]
    """
    chunks = _chunks(source, start)
    if len(source) - start <= FEW:
        return (decode_chunk(chunk, spec) for chunk in chunks)
    return decode_in_order([Worker(spec) for _ in range(workers or count_cores())], chunks)


def _chunks(source: ImageSource, start: int) -> Iterator[dict[int, Item]]:
    chunk: dict[int, Item] = {}
    size = 0
    for index in range(start, len(source)):
        chunk[index] = item = source.path(index) or source.picture_or_reason(index)
        size += _encoded_size(item)
        if len(chunk) == CHUNK or size > CHUNK_BYTES:
            yield chunk
            chunk, size = {}, 0
    if chunk:
        yield chunk


def _encoded_size(item: Item) -> int:
    if isinstance(item, Path):
        with suppress(OSError, ValueError):
            return os.stat(item).st_size
    return len(item) if isinstance(item, bytes) else 0


def decode_in_order(
    workers: Sequence[Decoder], chunks: Iterable[dict[int, Item]]
) -> Iterator[Batch]:
    """Decode chunks with several workers at once; yield the batches in the order of the chunks.

    Chunks are taken from the iterable only as workers become free, at most two per worker ahead.
    The threads started here only wait; the workers are processes.

    Examples
    --------
    >>> found = decode_in_order([Worker(ImageSpec(2, 2, 1))], [{0: b""}, {1: b""}])
    >>> [batch.skipped for batch in found]
    [{0: 'it is empty'}, {1: 'it is empty'}]
    """
    free: SimpleQueue[Decoder] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def work(chunk: dict[int, Item]) -> Batch:
        worker = free.get()
        try:
            return worker.decode(chunk)
        finally:
            free.put(worker)

    with ThreadPoolExecutor(len(workers)) as pool:
        waiting: deque[Future[Batch]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(work, chunk))
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
