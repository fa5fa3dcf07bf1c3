"""The compiler of the kernels: numba, or none.

Every kernel also runs as plain Python. Loading numba and its compiled kernels takes about a second,
so a short program that works on a few hundred samples is faster without: JULE_COMPILE=0, set before
this module is imported, leaves the kernels as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

if os.environ.get("JULE_COMPILE") == "0":
    prange = range

    def njit(function: Callable | None = None, **_options: Any) -> Callable:
        """Return a function as it is."""
        return function if function is not None else lambda kernel: kernel

    def get_num_threads() -> int:
        """Return the number of threads that work on a kernel."""
        return 1

else:
    from numba import get_num_threads, njit, prange  # type: ignore[assignment]

__all__ = ["get_num_threads", "njit", "prange"]
