"""Keep freed memory for the next batch instead of handing it back to the system."""

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
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    options = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, NEVER), (M_TOP_PAD, AHEAD))
    return all(mallopt(option, value) == 1 for option, value in options)
