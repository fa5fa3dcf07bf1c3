"""Constraints for another run that follow from edits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from jule.corrections.edits import Edit, Pictures, without_unlinked
from jule.corrections.pictures import PictureIndex
from jule.forward.constraints import Constraints, ContradictionError


class _Groups:
    """Groups of samples that stay together, and groups that are kept apart from each other."""

    def __init__(self, units: NDArray[np.int64]) -> None:
        self.parents = units.tolist()
        self.enemies: dict[int, set[int]] = {}
        self.together: list[tuple[int, int]] = []
        self.apart: list[tuple[int, int]] = []

    def root(self, sample: int) -> int:
        parents = self.parents
        while parents[sample] != sample:
            parents[sample] = parents[parents[sample]]
            sample = parents[sample]
        return int(sample)

    def join(self, one: int, other: int) -> bool:
        """Join two groups, unless they are kept apart; return whether they are one now."""
        a, b = self.root(one), self.root(other)
        if a == b:
            return True
        if b in self.enemies.get(a, ()):
            return False
        self.parents[b] = a
        for enemy in self.enemies.pop(b, ()):
            self.enemies[enemy].discard(b)
            self.enemies[enemy].add(a)
            self.enemies.setdefault(a, set()).add(enemy)
        self.together.append((one, other))
        return True

    def separate(self, one: int, other: int) -> bool:
        """Keep two groups apart, unless they are one; return whether they are apart now."""
        a, b = self.root(one), self.root(other)
        if a == b:
            return False
        if b not in self.enemies.get(a, ()):
            self.enemies.setdefault(a, set()).add(b)
            self.enemies.setdefault(b, set()).add(a)
            self.apart.append((one, other))
        return True


def constraints_from(
    edits: Sequence[Edit], pictures: PictureIndex, first_copies: NDArray[np.integer]
) -> Constraints:
    """Return what edits ask of a clustering of pictures that may be another than theirs.

    Must-links and cannot-links hold as they are, for exact copies too. Beyond these, pictures that
    stand for one cluster in the edits are kept together, and those of clusters that were split,
    refused as the same or given different names are kept apart. Where edits disagree, the later
    one counts; what was moved later no longer stands for its old cluster.

    Parameters
    ----------
    edits
        The edits in effect.
    pictures
        The pictures to be clustered.
    first_copies
        (n,) index of the original of each.

    Raises
    ------
    ContradictionError
        If must-links join two pictures that have a cannot-link.

    Examples
    --------
    >>> from jule.corrections.edits import Picture
    >>> a, b, c = (Picture(name) for name in "abc")
    >>> edits = [Edit("merge", (a,), (b,)), Edit("refuse", (a,), (c,))]
    >>> found = constraints_from(edits, PictureIndex("abc"), np.arange(3))
    >>> found.units.tolist(), found.apart.tolist()
    ([0, 0, 2], [[0, 2]])
    """
    edits = without_unlinked(edits)
    groups = _Groups(np.asarray(first_copies, np.int64))
    n = len(pictures)
    copied = np.flatnonzero(np.asarray(first_copies) != np.arange(n))
    for copy in copied.tolist():
        groups.together.append((int(first_copies[copy]), copy))
    _add_hard(groups, edits, pictures)
    _add_soft(groups, edits, pictures)
    return Constraints.of(n, groups.together, groups.apart)


def _add_hard(groups: _Groups, edits: Sequence[Edit], pictures: PictureIndex) -> None:
    for edit in edits:
        if edit.kind == "must-link":
            found = pictures.find_all(edit.pictures).tolist()
            for other in found[1:]:
                groups.join(found[0], other)
    for edit in edits:
        if edit.kind == "cannot-link":
            for one in pictures.find_all(edit.pictures).tolist():
                for other in pictures.find_all(edit.others).tolist():
                    if not groups.separate(one, other):
                        raise ContradictionError((one, other))


def _add_soft(groups: _Groups, edits: Sequence[Edit], pictures: PictureIndex) -> None:
    """Add what edits say of clusters, the last edit first."""
    units = [groups.root(sample) for sample in range(len(pictures))]
    decided: set[int] = set()  # units that a later edit has moved
    named: dict[str, int] = {}  # one picture of every cluster with a name
    renamed: set[str] = set()  # names that a later edit has changed

    def find(some: Pictures) -> list[int]:
        """Return the pictures that no later edit has moved."""
        return [one for one in pictures.find_all(some).tolist() if units[one] not in decided]

    def gather(cluster: Pictures) -> list[int]:
        """Join the pictures that stand for a cluster; return those that are together."""
        found = find(cluster)
        return found[:1] + [other for other in found[1:] if groups.join(found[0], other)]

    for edit in reversed(edits):
        if edit.kind in ("move", "shelve"):
            moving = find(edit.pictures)
            if edit.kind != "shelve":
                target = gather(edit.others) or moving[:1]
                for one in moving:
                    groups.join(target[0], one)
            decided.update(units[one] for one in moving)
        elif edit.kind in ("must-link", "cannot-link"):
            # The link has taken them out of the cluster for which they may stand in earlier edits.
            taken = edit.pictures if edit.kind == "must-link" else edit.others
            decided.update(units[one] for one in find(taken))
        elif edit.kind == "name":
            cluster = gather(edit.pictures)
            if cluster and edit.name and edit.name not in renamed:
                named.setdefault(edit.name, cluster[0])
            renamed.add(edit.was)
        elif edit.kind in ("merge", "split", "refuse"):
            first, second = gather(edit.pictures), gather(edit.others)
            if first and second:
                (groups.join if edit.kind == "merge" else groups.separate)(first[0], second[0])
    for pair in combinations(named.values(), 2):
        groups.separate(*pair)
