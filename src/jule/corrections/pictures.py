"""Find the pictures that edits name among those of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jule.corrections.edits import Picture, Pictures


class PictureIndex:
    """The pictures of a run, found by their content or by their path.

    Parameters
    ----------
    paths
        The path or name of each.
    digests
        (n, 16) checksums of their content; None if not known.

    Examples
    --------
    >>> index = PictureIndex(["a.jpg", "b.jpg"], np.array([[1] * 16, [2] * 16], np.uint8))
    >>> index.find(Picture("moved/b.jpg", "02" * 16)), index.find(Picture("c.jpg"))
    (1, -1)
    """

    def __init__(self, paths: Sequence[str], digests: NDArray[np.uint8] | None = None) -> None:
        self.paths = paths
        self.digests = digests

    def __len__(self) -> int:
        return len(self.paths)

    def picture(self, sample: int) -> Picture:
        """Return how edits name a sample."""
        digest = "" if self.digests is None else self.digests[sample].tobytes().hex()
        return Picture(self.paths[sample], digest)

    def pictures(self, samples: Iterable[int]) -> Pictures:
        """Return how edits name several samples."""
        return tuple(self.picture(int(sample)) for sample in samples)

    def find(self, picture: Picture) -> int:
        """Return the sample that is a picture, or -1.

        Content decides, and the path between exact copies. A picture whose content is not there
        may have been changed in place, so then its path decides; except for a number, which is
        only a position in an array.
        """
        known = self.digests is not None and picture.hash
        if known:
            same = self._with_hash(picture.hash)
            for sample in same:
                if self.paths[sample] == picture.path:
                    return sample
            if same:
                return same[0]
            if picture.path.isdigit():
                return -1
        found = self._by_path.get(picture.path, ())
        return found[0] if len(found) == 1 else -1

    def find_all(self, pictures: Iterable[Picture]) -> NDArray[np.int64]:
        """Return the samples that are some pictures, without those that are not there."""
        found = [self.find(picture) for picture in pictures]
        return np.array([sample for sample in found if sample >= 0], np.int64)

    @cached_property
    def _by_path(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for sample, path in enumerate(self.paths):
            places.setdefault(path, []).append(sample)
        return places

    def _with_hash(self, digest: str) -> list[int]:
        """Return the samples with a checksum, in their order."""
        assert self.digests is not None  # `find` has looked
        try:
            wanted = bytes.fromhex(digest)
        except ValueError:  # it is not a checksum
            return []
        if len(wanted) != self.digests.shape[1]:
            return []
        values, order = self._sorted
        begins = np.frombuffer(wanted, np.uint64, 1)[0]
        first, last = values.searchsorted(begins), values.searchsorted(begins, "right")
        found: list[int] = sorted(order[first:last].tolist())
        return [sample for sample in found if self.digests[sample].tobytes() == wanted]

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The first eight bytes of all checksums, as numbers in order, and their samples."""
        assert self.digests is not None
        values = np.ascontiguousarray(self.digests[:, :8]).view(np.uint64).reshape(-1)
        order = np.argsort(values)
        return values[order], order
