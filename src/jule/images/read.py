"""From what the user names to an array: all pictures of one source, in one look."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.images.cache import decoded
from jule.images.decode import Look, decode
from jule.images.resolve import open_source
from jule.images.source import ImageSource, Skipped
from jule.images.survey import choose_look, survey

MENTIONED = 3  # bad files in an error


@dataclass(frozen=True, eq=False)
class Samples:
    """Images or vectors with their names, and true classes where they are known.

    Attributes
    ----------
    samples
        (n, h, w), (n, h, w, c) or (n, d).
    names
        One text a sample; its number where it has no name.
    labels
        For evaluation alone; None where there are none.
    numbers
        (n,) the place of each in its source.
    first_copies
        (n,) for each the first sample with exactly the same content, which may be itself.
    skipped
        What could not be read, and why.
    look
        What pictures were brought to; None for arrays that were taken as they are.
    """

    samples: NDArray
    names: list[str] = field(repr=False)
    labels: NDArray | None = field(repr=False)
    numbers: NDArray[np.int64] = field(repr=False)
    first_copies: NDArray[np.int64] = field(repr=False)
    skipped: tuple[Skipped, ...] = field(repr=False)
    look: Look | None

    def __len__(self) -> int:
        return len(self.samples)


def read_images(
    what: Any,
    look: Look | None = None,
    *,
    strict: bool = False,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Samples:
    """Read pictures from wherever they are: a folder, a list, an archive, an array, a data set.

    Parameters
    ----------
    what
        Anything that `open_source` takes, or a source.
    look
        The size and kind of pixel; chosen from the pictures by default. Arrays are taken as they
        are.
    strict
        Raise for a bad file instead of leaving it out.
    cache
        The folder where decoded pictures are kept.
    progress
        Called with the number of pictures done and of all.

    Raises
    ------
    ValueError
        Where nothing can be read, or, with `strict`, something.

    Examples
    --------
    >>> read_images("photos").samples.shape  # doctest: +SKIP
    (1203, 48, 64, 3)
    """
    source = what if isinstance(what, ImageSource) else open_source(what)
    if len(source) == 0:
        raise ValueError(_nothing(source))
    array = source.array()
    if array is not None and (look is None or array.shape[1:] == look.shape):
        return _as_they_are(source, array)
    with warnings.catch_warnings():
        # Pillow's words on odd files; what matters of them becomes a reason.
        warnings.simplefilter("ignore")
        if look is None:
            look = look_of(source)
        found = decoded(source, look, folder=cache, progress=progress)
    bad = [Skipped(source.names[number], why) for number, why in found.skipped.items()]
    skipped = (*source.left_out, *bad)
    if strict and (wrong := [one for one in skipped if one.picture]):
        raise ValueError(f"{len(wrong)} of the pictures cannot be read: {_some(wrong)}")
    if len(found.images) == 0:
        raise ValueError(f"none of {len(source)} files in {source.where} can be read: {_some(bad)}")
    return Samples(
        found.images,
        [source.names[number] for number in found.numbers],
        None if source.labels is None else source.labels[found.numbers],
        found.numbers,
        first_of_equal(found.digests),
        skipped,
        look,
    )


def look_of(source: ImageSource, **wanted: Any) -> Look:
    """Choose the look for a source; `wanted` is what `choose_look` takes.

    Examples
    --------
    >>> look_of(open_source("photos"), size=32)  # doctest: +SKIP
    """
    seen = survey(source)
    if not seen.sizes:
        bad = [Skipped(*one) for one in seen.bad]
        raise ValueError(f"none of {len(source)} files in {source.where} can be read: {_some(bad)}")
    return choose_look(seen, **wanted)


def read_one(path: Path, look: Look) -> NDArray[np.uint8]:
    """Read a single picture.

    Examples
    --------
    >>> read_one(Path("cat.jpg"), Look(64, 64, 3)).shape  # doctest: +SKIP
    (64, 64, 3)
    """
    from jule.images.batch import read_file

    try:
        return decode(read_file(path), look)[0]
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _as_they_are(source: ImageSource, array: NDArray) -> Samples:
    numbers = np.arange(len(array))
    rows = np.ascontiguousarray(array).reshape(len(array), -1)
    copies = first_of_equal(rows.view(np.uint8).reshape(len(rows), -1))
    labels = source.labels
    return Samples(array, source.names, labels, numbers, copies, tuple(source.left_out), None)


def first_of_equal(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Give, for each row, the number of the first row that is equal to it.

    Examples
    --------
    >>> first_of_equal(np.array([[1, 2], [3, 4], [1, 2]], np.uint8)).tolist()
    [0, 1, 0]
    """
    first: dict[int, list[int]] = {}
    found = np.arange(len(rows))
    for number, row in enumerate(rows):
        # Equal hashes are made sure of; what differs shares a short list.
        known = first.setdefault(hash(row.tobytes()), [])
        same = next((other for other in known if np.array_equal(rows[other], row)), None)
        if same is None:
            known.append(number)
        else:
            found[number] = same
    return found


def _nothing(source: ImageSource) -> str:
    if not source.left_out:
        return f"there are no pictures in {source.where}"
    return (
        f"there are no pictures in {source.where}, only {len(source.left_out)} other files: "
        f"{_some(source.left_out)}"
    )


def _some(skipped: list[Skipped]) -> str:
    text = "; ".join(f"{one.name}: {one.reason}" for one in skipped[:MENTIONED])
    return text + ("; ..." if len(skipped) > MENTIONED else "")
