"""Parse numbers on the command line, with an error for those that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from jule.forward import MergeTree


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers, for options; its errors are the same in every typer.

    Parameters
    ----------
    least, most
        The smallest and the largest number that is accepted; None for any.

    Examples
    --------
    >>> whole(1)("12")
    12
    """
    limit = "up" if most is None else f"to {most:,}"

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise typer.BadParameter(f"{text!r} is not a whole number from {least:,} {limit}")
        return number

    return parse


def check_clusters(k: int | None, tree: MergeTree, run: Path) -> None:
    """Raise if the tree of a run cannot be cut into k clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.forward import MergeTree
    >>> check_clusters(5, MergeTree(2, np.array([[0, 1]]), np.array([0.5])), "run")
    Traceback (most recent call last):
        ...
    ValueError: run has 2 images, so 5 clusters cannot be made of them: give -k between 1 and 2
    """
    least, most = tree.n_clusters, tree.n_samples
    if k is None or least <= k <= most:
        return
    have = f"{most:,} image{'' if most == 1 else 's'}"
    if k < least:
        have += f" in {least:,} parts that nothing joins"
    raise ValueError(
        f"{run} has {have}, so {k:,} cluster{'' if k == 1 else 's'} cannot be made of them: give "
        f"-k between {least:,} and {most:,}"
    )
