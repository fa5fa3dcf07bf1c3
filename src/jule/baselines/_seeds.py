"""Keep the states of the global random generators, which some libraries use or seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def global_seeds_kept() -> Iterator[None]:
    """Restore the states of the generators of Python, numpy and torch after the block.

    Examples
    --------
    >>> random.seed(0)
    >>> with global_seeds_kept():
    ...     inside = random.random()
    >>> inside == random.random()
    True
    """
    import torch

    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
