"""Keep freed memory for the next batch, and hand it back to the system after the last one."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# Names of glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
NEVER = 2**31 - 1
AHEAD = 2**26


@cache
def keep_freed_memory() -> bool:
    """Ask glibc to reuse large blocks; says whether it will.

    By default every large tensor is mapped anew and unmapped when freed, and the first touch of
    each of its pages stops the program: up to half of a training step on large images. Elsewhere
    than on Linux with glibc nothing is done.

    Examples
    --------
    >>> keep_freed_memory() in (True, False)
    True
    """
    options = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, NEVER), (M_TOP_PAD, AHEAD))
    c = _glibc()
    return c is not None and all(c.mallopt(option, value) == 1 for option, value in options)


def return_freed_memory() -> None:
    """Hand back what was kept: what comes after training allocates in other sizes.

    Examples
    --------
    >>> return_freed_memory()
    """
    c = _glibc()
    if c is not None:
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
