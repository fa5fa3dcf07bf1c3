"""Keep freed memory between batches, and return it to the system after the last one."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

# Options of glibc's malloc.h: while training, and their defaults.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
WHILE_TRAINING = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**26))
OTHERWISE = ((M_MMAP_MAX, 65536), (M_TRIM_THRESHOLD, 2**17), (M_TOP_PAD, 2**17))


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Let glibc reuse large freed blocks inside the context, and release them at its end.

    By default glibc maps memory for every large tensor and unmaps it when the tensor is freed. The
    page faults on first access take a good part of a training step on large images. The default
    is restored at the end, because blocks of all sizes would otherwise accumulate. Nothing is done
    on systems without glibc.

    Examples
    --------
    >>> with keep_freed_memory():
    ...     pass
    """
    c = _glibc()
    if c is None:
        yield
        return
    for option, value in WHILE_TRAINING:
        c.mallopt(option, value)
    try:
        yield
    finally:
        for option, value in OTHERWISE:
            c.mallopt(option, value)
        c.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        c = ctypes.CDLL(None)
        return c if hasattr(c, "mallopt") and hasattr(c, "malloc_trim") else None
    except OSError:
        return None
