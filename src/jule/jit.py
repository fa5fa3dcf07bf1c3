"""Compile the kernels with numba when they are first called, or leave them as plain Python.

Loading numba and the compiled kernels takes about a second, so a program that calls no kernel does
not load it. A short program that works on a few hundred samples is faster without it: if the
environment variable JULE_COMPILE is 0 when this module is imported, the kernels run as plain
Python.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import update_wrapper
from types import CodeType, FunctionType
from typing import Any

IS_COMPILED = os.environ.get("JULE_COMPILE") != "0"
_compiling = threading.RLock()


def prange(*bounds: int) -> range:
    """Return a range; numba runs the iterations of a compiled kernel over it in parallel.

    Examples
    --------
    >>> list(prange(3))
    [0, 1, 2]
    """
    return range(*bounds)


def get_num_threads() -> int:
    """Return the number of threads of a parallel kernel, which is 1 without numba."""
    if not IS_COMPILED:
        return 1
    from numba import get_num_threads as count

    return int(count())


class Kernel:
    """A function that numba compiles when it is first called.

    Parameters
    ----------
    function
        A function of a module that numba can compile; it may call other kernels.
    options
        The options of `numba.njit`.
    """

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._options = options
        self._compiled: Callable | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.compiled()(*arguments)

    def compiled(self) -> Callable:
        """Return the function as numba knows it."""
        with _compiling:
            if self._compiled is None:
                import numba

                self._compiled = numba.njit(**self._options)(self._function)
                self._link(numba.prange)
            return self._compiled

    def _link(self, parallel_range: Any) -> None:
        """Put compiled functions in the place of the kernels that this one calls."""
        known = self._function.__globals__
        for name in _names_in(self._function.__code__):
            value = known.get(name)
            if isinstance(value, Kernel):
                known[name] = value.compiled()
            elif value is prange:
                known[name] = parallel_range


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function and the functions inside it take from elsewhere."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def njit(function: Callable | None = None, **options: Any) -> Callable:
    """Make a kernel of a function, like `numba.njit`.

    Examples
    --------
    >>> @njit
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if function is None:
        return lambda kernel: njit(kernel, **options)
    if not IS_COMPILED:
        return function
    assert isinstance(function, FunctionType)
    return Kernel(function, options)
