"""Some pictures of several sources, in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images.sources.base import ImageSource
from jule.images.sources.content import RawImage


class SelectedSource(ImageSource):
    """Some pictures of several sources.

    Parameters
    ----------
    sources
        The sources.
    places
        (source, index) of each picture: the number of its source, and its index in it.

    Examples
    --------
    >>> from jule.images import ArraySource
    >>> one = ArraySource(np.zeros((2, 4, 4), np.uint8), names=["a", "b"])
    >>> two = ArraySource(np.ones((1, 4, 4), np.uint8), names=["c"])
    >>> SelectedSource([one, two], [(1, 0), (0, 1)]).names
    ['c', 'b']
    """

    def __init__(self, sources: Sequence[ImageSource], places: Sequence[tuple[int, int]]) -> None:
        self.sources, self.places = sources, places
        names = [sources[which].names[index] for which, index in places]
        super().__init__(" and ".join(dict.fromkeys(one.where for one in sources)), names)

    def picture(self, index: int) -> RawImage:
        which, place = self.places[index]
        return self.sources[which].picture(place)

    def path(self, index: int) -> Path | None:
        which, place = self.places[index]
        return self.sources[which].path(place)

    def array(self) -> NDArray | None:
        arrays = [source.array() for source in self.sources]
        if any(one is None for one in arrays):
            return None
        return np.stack([arrays[which][place] for which, place in self.places])  # type: ignore[index]

    def identity(self) -> Iterator[str] | None:
        known = [source.identity() for source in self.sources]
        if any(one is None for one in known):
            return None
        return self._identity(known)  # type: ignore[arg-type]

    def _identity(self, known: Sequence[Iterator[str]]) -> Iterator[str]:
        for one in known:
            yield from one
        for which, place in self.places:
            yield f"{which} {place}"
