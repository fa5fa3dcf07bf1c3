"""Find exact copies among samples, and choose the original of each group."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jule.images.sources.arrays import row_blocks

COPY_NAME = re.compile(
    r"^copy( \(\d+\))? of "  # Copy of IMG_1.jpg, Copy (2) of IMG_1.jpg
    r"|[ _-]copy( ?\(?\d+\)?)?$"  # IMG_1 copy.jpg, IMG_1 - Copy (2).jpg
    r"|\(([\w ]+ )?copy( \d+)?\)$"  # IMG_1 (copy).jpg, IMG_1 (another copy).jpg
    r"|\(\d+\)$",  # IMG_1 (1).jpg
    re.IGNORECASE,
)


def find_copies(samples: NDArray) -> NDArray[np.int64]:
    """Return, for each sample, the index of the first sample with exactly the same values.

    Only one block of samples and one hash per sample are in memory at a time.

    Examples
    --------
    >>> find_copies(np.array([[1, 2], [3, 4], [1, 2]])).tolist()
    [0, 1, 0]
    """
    firsts = np.arange(len(samples))
    seen: dict[int, list[int]] = {}  # by hash; different samples with one hash share a list
    index = 0
    for block in row_blocks(samples):
        content = _content(block)
        size = len(content) // len(block)
        for start in range(0, len(content), size):
            sample = content[start : start + size]
            known = seen.setdefault(hash(sample), [])
            for first in known:
                if _content(samples[first]) == sample:
                    firsts[index] = first
                    break
            else:
                known.append(index)
            index += 1
    return firsts


def _content(values: NDArray) -> bytes:
    """Return the values as bytes that are the same for equal values, -0.0 and 0.0 included."""
    return (values + 0.0 if values.dtype.kind == "f" else values).tobytes()


def choose_originals(firsts: NDArray[np.int64], names: Sequence[str]) -> NDArray[np.int64]:
    """Return, for each sample, the index of the original of its group of exact copies.

    `firsts` is the result of `find_copies`. The original is the one whose name does not look like
    that of a copy, such as "IMG_1 (1).jpg"; among several, the one with the shortest name; among
    those, the first.

    Examples
    --------
    >>> names = ["a copy.jpg", "a.jpg", "b.jpg"]
    >>> choose_originals(np.array([0, 0, 2]), names).tolist()
    [1, 1, 2]
    """
    originals = firsts.copy()
    groups: dict[int, list[int]] = {}
    for copy in np.flatnonzero(firsts != np.arange(len(firsts))).tolist():
        groups.setdefault(int(firsts[copy]), []).append(copy)
    for first, copies in groups.items():
        group = [first, *copies]
        originals[group] = min(group, key=lambda i: (is_copy_name(names[i]), len(names[i]), i))
    return originals


def is_copy_name(name: str) -> bool:
    """Return whether a file name looks like that of a copy.

    Examples
    --------
    >>> [is_copy_name(name) for name in ("a (1).jpg", "x/Copy of a.jpg", "a-copy 2.png", "a.jpg")]
    [True, True, True, False]
    """
    stem = re.sub(r"\.\w+$", "", name.rpartition("/")[2])
    return COPY_NAME.search(stem) is not None
