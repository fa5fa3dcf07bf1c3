"""Compile the kernels with numba, or leave them as plain Python.

Loading numba and the compiled kernels takes about a second, so a short program that works on a few
hundred samples is faster without them. If the environment variable JULE_COMPILE is 0 when this
module is imported, the kernels run as plain Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

IS_COMPILED = os.environ.get("JULE_COMPILE") != "0"

if not IS_COMPILED:
    prange = range

    def njit(function: Callable | None = None, **_options: Any) -> Callable:
        """Return a function unchanged."""
        return function if function is not None else lambda kernel: kernel

    def get_num_threads() -> int:
        """Return the number of threads of a kernel, which is 1 without numba."""
        return 1

else:
    from numba import get_num_threads, njit, prange  # type: ignore[assignment]

__all__ = ["IS_COMPILED", "get_num_threads", "njit", "prange"]
