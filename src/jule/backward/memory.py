"""Keep freed memory from batch to batch, and hand it back to the system after the last one."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

# Names of glibc's malloc.h: while training, and the defaults that it starts with.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
WHILE_TRAINING = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**26))
OTHERWISE = ((M_MMAP_MAX, 65536), (M_TRIM_THRESHOLD, 2**17), (M_TOP_PAD, 2**17))


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let glibc reuse large blocks inside this block of code, and give them all back at its end.

    By default every large tensor is mapped anew and unmapped when freed, and the first touch of
    each of its pages stops the program: a good part of a training step on large images. Kept for
    ever, blocks of all sizes would pile up; so it ends with the training. Elsewhere than on Linux
    with glibc nothing is done.

    Examples
    --------
    >>> with freed_memory_kept():
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
