"""Decode a source on all cores, in order and with few pictures in memory."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from jule.images.decoding.batch import Batch
from jule.images.decoding.decode import Item
from jule.images.decoding.pool import Crew
from jule.images.decoding.spec import ImageSpec
from jule.images.decoding.worker import limits_for
from jule.images.sources.base import ImageSource
from jule.memory import format_bytes

CHUNK = 128  # pictures per batch, or ...
CHUNK_BYTES = 2**21  # ... fewer large ones, to report progress often and to save memory ...
DECODED_BYTES = 2**25  # ... or fewer that become large
AHEAD_BYTES = 2**26  # of files that wait for a worker
TIMED = 8  # pictures that are decoded to estimate the time for all of them ...
TIMED_SECONDS = 0.2  # ... or fewer, if they take longer than this


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
    n_workers = workers or count_cores()
    most = most_at_once(spec, n_workers)
    chunks = make_chunks(source, range(start, len(source)), most)
    return decode_in_order(Crew(limits_for(n_workers)), chunks, spec, n_workers)


def decode_blocks(
    source: ImageSource, spec: ImageSpec, blocks: Iterable[range], workers: int | None = None
) -> Iterator[Batch]:
    """Yield the pictures of each block of indices as one batch, in order, decoded on all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images.sources.arrays import ArraySource
    >>> source = ArraySource(np.zeros((5, 8, 8), np.uint8))
    >>> blocks = [range(0, 2), range(4, 5)]
    >>> [batch.indices for batch in decode_blocks(source, ImageSpec(4, 4, 1), blocks)]
    [[0, 1], [4]]
    """
    n_workers = workers or count_cores()
    most_at_once(spec, n_workers)  # raises if the images are too large for a decoder
    chunks = ({index: _item(source, index) for index in block} for block in blocks)
    return decode_in_order(Crew(limits_for(n_workers)), chunks, spec, n_workers)


def most_at_once(spec: ImageSpec, n_workers: int) -> int:
    """Return how many pictures a batch has at most; raise if a single one is too large.

    Examples
    --------
    >>> most_at_once(ImageSpec(64, 64, 3), 2)
    128
    """
    limits = limits_for(n_workers)
    image_bytes = math.prod(spec.shape)
    if image_bytes > limits.memory // 4:
        raise ValueError(
            f"an image of {spec} has {format_bytes(image_bytes)}, which is more than a quarter "
            f"of the {format_bytes(limits.memory)} that a decoder may use: choose a smaller size"
        )
    return max(1, min(CHUNK, DECODED_BYTES // image_bytes))


def make_chunks(
    source: ImageSource, indices: Iterable[int], most: int = CHUNK
) -> Iterator[dict[int, Item]]:
    """Read pictures of a source, and yield at most `most` of them at a time, fewer large ones.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images.sources.arrays import ArraySource
    >>> source = ArraySource(np.zeros((5, 8, 8), np.uint8))
    >>> [list(chunk) for chunk in make_chunks(source, [0, 2, 4], 2)]
    [[0, 2], [4]]
    """
    chunk: dict[int, Item] = {}
    size = 0
    for index in indices:
        chunk[index] = item = _item(source, index)
        size += _encoded_size(item)
        if len(chunk) == most or size > CHUNK_BYTES:
            yield chunk
            chunk, size = {}, 0
    if chunk:
        yield chunk


def _item(source: ImageSource, index: int) -> Item:
    return source.path(index) or source.picture_or_reason(index)


def _encoded_size(item: Item) -> int:
    if isinstance(item, Path):
        with suppress(OSError, ValueError):
            return os.stat(item).st_size
    return len(item) if isinstance(item, bytes) else 0


def decode_in_order(
    crew: Crew, chunks: Iterable[dict[int, Item]], spec: ImageSpec, n_workers: int
) -> Iterator[Batch]:
    """Decode chunks with several workers at once; yield the batches in the order of the chunks.

    Chunks are taken from the iterable only as workers become free, at most two per worker ahead,
    and fewer if they are large. The threads started here only wait; the workers are processes.

    Examples
    --------
    >>> crew = Crew(limits_for(1))
    >>> found = decode_in_order(crew, [{0: b""}, {1: b""}], ImageSpec(2, 2, 1), 1)
    >>> [batch.skipped for batch in found]
    [{0: 'it is empty'}, {1: 'it is empty'}]
    """

    def work(chunk: dict[int, Item]) -> Batch:
        with crew.borrow() as worker:
            return worker.decode(chunk, spec)

    waiting: deque[tuple[Future[Batch], int]] = deque()
    with ThreadPoolExecutor(n_workers) as pool:
        try:
            for chunk in chunks:
                size = sum(len(item) for item in chunk.values() if isinstance(item, bytes))
                waiting.append((pool.submit(work, chunk), size))
                while len(waiting) > 2 * n_workers or sum(s for _, s in waiting) > AHEAD_BYTES:
                    yield waiting.popleft()[0].result()
            while waiting:
                yield waiting.popleft()[0].result()
        finally:
            if waiting:  # nobody wants the rest
                crew.stop()
                pool.shutdown(cancel_futures=True)


def time_decoding(source: ImageSource, spec: ImageSpec) -> float:
    """Decode a few pictures, and return the seconds per picture on all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images.sources.arrays import ArraySource
    >>> time_decoding(ArraySource(np.zeros((5, 8, 8), np.uint8)), ImageSpec(4, 4, 1)) > 0
    True
    """
    step = max(1, len(source) // TIMED)
    timed, taken = 0, 0.0
    with Crew(limits_for(count_cores())).borrow() as worker:
        worker.decode({0: "only to start it"}, spec)
        start = time.perf_counter()
        for index in range(0, len(source), step)[:TIMED]:
            worker.decode(next(make_chunks(source, [index])), spec)
            timed, taken = timed + 1, time.perf_counter() - start
            if taken > TIMED_SECONDS:
                break
    return taken / timed / count_cores()
