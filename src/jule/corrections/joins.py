"""What a person has put together, and a merge tree that never separates it.

A cut into more clusters undoes the last merges of the tree. Clusters that a person has merged would
be the first to come apart, because the tree joins them last. So whatever a person has joined is at
the bottom of the tree instead, like exact copies.

A picture that a person has moved may be unlike all others of its cluster. So it changes nothing in
the tree: it hangs below a picture that stands for the cluster, whose place is the one it had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jule.forward.branches import leaf_intervals
from jule.forward.restrict import range_maxima
from jule.forward.tree import MergeTree

NONE = -1
MOST_NAMED = 10  # samples that stand for a cluster


@dataclass(frozen=True, eq=False)
class Moved:
    """Samples that a person has moved, and those that stand for the cluster they were moved to.

    Attributes
    ----------
    samples
        The samples that were moved.
    homes
        The samples that stand for the cluster, the most typical first; none if it was a new one.
    joined_by
        Returns the merge of the tree of the run that joins each two of some samples, (m, m); it is
        smaller for a sample and itself.

    Examples
    --------
    >>> line = Moved((9,), (0, 1, 3), lambda found: abs(found[:, None] - found))
    >>> line.home([0, 1, 3]), line.home([1, 3]), line.home([])
    (0, 1, None)
    """

    samples: tuple[int, ...]
    homes: tuple[int, ...]
    joined_by: Callable[[NDArray[np.int64]], NDArray[np.int64]]

    def without(self, samples: set[int]) -> Moved:
        """Forget some samples, which were moved again."""
        if samples.isdisjoint(self.samples) and samples.isdisjoint(self.homes):
            return self
        return replace(
            self,
            samples=tuple(one for one in self.samples if one not in samples),
            homes=tuple(one for one in self.homes if one not in samples),
        )

    def home(self, homes: list[int]) -> int | None:
        """Return the sample, of some that stand for the cluster, below which all moved ones hang.

        Wherever the tree divides these, it is in the part with more of them; of equal ones, in that
        of the first.
        """
        if not homes:
            return None
        merges = self.joined_by(np.array(homes, np.int64))
        left = np.arange(len(homes))
        while len(left) > 1:
            joined = merges[left[0], left]
            is_near = joined < joined.max()  # with the first, before the last merge
            left = left[is_near if 2 * is_near.sum() >= len(left) else ~is_near]
        return homes[int(left[0])]


@dataclass(frozen=True, eq=False)
class Joins:
    """Groups of samples that a person has put together, each made of pieces, and moved samples.

    A piece is what was one thing before: a cluster that was merged. What is left of a group when a
    split has taken all other pieces out of it is free again.

    Attributes
    ----------
    groups
        (n,) the group of each sample; -1 if it is in none.
    pieces
        (n,) the piece of each sample in a group.
    n_used
        The first number that no group or piece has had.
    moves
        The samples that were moved, in the order of the moves.

    Examples
    --------
    >>> merged = Joins.none(5).join(np.array([0, 1, 3]), np.array([0, 0, 1]))
    >>> merged.sets(np.arange(5)).tolist()
    [0, 0, 2, 0, 4]
    >>> merged.divide(np.array([3])).sets(np.arange(5)).tolist()
    [0, 1, 2, 3, 4]
    """

    groups: NDArray[np.int32]
    pieces: NDArray[np.int32]
    n_used: int = 0
    moves: tuple[Moved, ...] = ()

    @classmethod
    def none(cls, n_samples: int) -> Joins:
        """Return the groups before any edit: none."""
        nothing = np.full(n_samples, NONE, np.int32)
        return cls(nothing, nothing)

    def join(self, samples: NDArray[np.int64], parts: NDArray[np.integer]) -> Joins:
        """Put samples together, and the groups that any of them is in.

        Parameters
        ----------
        samples
            The samples.
        parts
            Which of several pieces each of them is, 0, 1, ...; those in a group keep theirs.
        """
        # What a split has left of a group is free, and may have been divided since.
        groups = np.where(self._are_joined(), self.groups, np.int32(NONE))
        pieces = self.pieces.copy()
        old = _unique(groups[samples])
        free = samples[groups[samples] == NONE]
        pieces[free] = self.n_used + parts[groups[samples] == NONE]
        group = self.n_used + (int(parts.max()) + 1 if len(parts) else 0)
        if (old != NONE).any():
            groups[np.isin(groups, old[old != NONE])] = group
        groups[samples] = group
        return Joins(groups, pieces, group + 1, self.moves)

    def move(
        self,
        samples: list[int],
        homes: list[int],
        joined_by: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    ) -> Joins:
        """Keep samples where they were moved to; what was said of them before is forgotten.

        Parameters are those of `Moved`.
        """
        moved = Moved(tuple(samples), tuple(dict.fromkeys(homes))[:MOST_NAMED], joined_by)
        return replace(self, moves=(*self._moves_without(set(samples)), moved))

    def leave(self, samples: NDArray[np.int64]) -> Joins:
        """Take samples out of their groups, and out of the clusters for which they stand."""
        moves = self._moves_without(set(samples.tolist())) if self.moves else ()
        if (self.groups[samples] == NONE).all():
            return replace(self, moves=moves) if self.moves else self
        groups = self.groups.copy()
        groups[samples] = NONE
        return replace(self, groups=groups, moves=moves)

    def _moves_without(self, samples: set[int]) -> tuple[Moved, ...]:
        left = (one.without(samples) for one in self.moves)
        return tuple(one for one in left if one.samples)

    def divide(self, samples: NDArray[np.int64]) -> Joins:
        """Take samples out of their groups; those of one group stay together."""
        leaving = samples[self.groups[samples] != NONE]
        if len(leaving) == 0:
            return self
        groups = self.groups.copy()
        old, place = np.unique(groups[leaving], return_inverse=True)
        groups[leaving] = self.n_used + place.reshape(-1)
        return Joins(groups, self.pieces, self.n_used + len(old), self.moves)

    def examples(self, counted: NDArray[np.bool_]) -> list[tuple[list[int], list[int]]]:
        """Return a few samples of two pieces of every group that has two or more.

        Parameters
        ----------
        counted
            (n,) the samples that count.
        """
        inside = np.flatnonzero(counted & (self.groups != NONE))
        found = []
        for group in _unique(self.groups[inside]).tolist():
            members = inside[self.groups[inside] == group]
            kinds = _unique(self.pieces[members])
            if len(kinds) > 1:
                one, other = (members[self.pieces[members] == kind] for kind in kinds[:2])
                found.append((one[:MOST_NAMED].tolist(), other[:MOST_NAMED].tolist()))
        return found

    def sets(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first sample of all that is kept together with each sample.

        Parameters
        ----------
        units
            (n,) the first sample of each sample's unit; units stay together, too.
        """
        inside = np.flatnonzero(self._are_joined())
        if len(inside) == 0:
            return units
        group = np.unique(self.groups[inside], return_inverse=True)[1].reshape(-1)
        first = units.copy()
        while True:  # a unit can join two groups
            before = first
            least = np.full(len(units), len(units))
            np.minimum.at(least, group, first[inside])
            first = first.copy()
            first[inside] = least[group]
            of_unit = np.full(len(units), len(units))
            np.minimum.at(of_unit, units, first)
            first = of_unit[units]
            if np.array_equal(first, before):
                return first

    def _are_joined(self) -> NDArray[np.bool_]:
        """Return which samples are in a group of two or more pieces."""
        inside = np.flatnonzero(self.groups != NONE)
        joined = np.zeros(len(self.groups), bool)
        if len(inside):
            keys = self.groups[inside].astype(np.int64) * self.n_used + self.pieces[inside]
            whole, n_pieces = np.unique(_unique(keys) // self.n_used, return_counts=True)
            joined[inside] = np.isin(self.groups[inside], whole[n_pieces > 1])
        return joined

    def places(
        self,
        first: NDArray[np.int64],
        labels: NDArray[np.int32],
        by_hand: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Return a sample of all that is kept together with each sample, where the tree has these.

        It is one that nobody has moved, if there is any.

        Parameters
        ----------
        first
            (n,) what `sets` returns.
        labels
            (n,) the cluster of each sample.
        by_hand
            (n,) whether a person chose it.

        Examples
        --------
        >>> joins = Joins.none(4).move([0], [2, 3], lambda found: abs(found[:, None] - found))
        >>> joins.places(np.arange(4), np.zeros(4, np.int32), np.arange(4) < 1).tolist()
        [2, 1, 2, 3]
        """
        stays = np.zeros(len(first), bool)  # sets with samples that nobody has moved
        stays[first[~by_hand]] = True
        below: dict[int, int] = {}  # sets that hang below another one

        def top(sample: int) -> int:
            found = int(first[sample])
            while found in below:
                found = below[found]
            return found

        for moved in reversed(self.moves):
            for label in dict.fromkeys(labels[list(moved.samples)].tolist()):
                if label == NONE:
                    continue
                homes = [one for one in moved.homes if labels[one] == label]
                home = moved.home([one for one in homes if not by_hand[one]] or homes)
                own = dict.fromkeys(top(one) for one in moved.samples if labels[one] == label)
                # Those that a link or a merge has joined to others stay where these are.
                where = top(home) if home is not None else max(own, key=lambda one: stays[one])
                below.update((one, where) for one in own if one != where and not stays[one])
        tops = np.arange(len(first))
        for one in below:
            tops[one] = top(one)
        tops = tops[first]
        unmoved = np.flatnonzero(~by_hand)
        place = np.full(len(first), len(first))
        np.minimum.at(place, tops[unmoved], unmoved)
        found = np.where(place < len(first), place, np.arange(len(first)))[tops]
        return first if np.array_equal(found, first) else found


def _unique(values: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the sorted unique values.

    Asking for indices as well keeps `np.unique` from importing `numpy.ma`.
    """
    found: NDArray[np.integer] = np.unique(values, return_index=True)[0]
    return found


def joined_first(tree: MergeTree, found: MergeTree, together: NDArray[np.int64]) -> MergeTree:
    """Return a tree in which what is kept together merges as it does in the tree of the run.

    Parameters
    ----------
    tree
        A tree that joins what is kept together first, one sample after another; see
        `jule.forward.restrict.tree_through_labels`.
    found
        The tree of the run as it was found.
    together
        (n,) one sample of all that is kept together with each sample, the same for all of these.

    Examples
    --------
    >>> found = MergeTree(4, np.array([[2, 3], [1, 4], [0, 5]]), np.zeros(3))
    >>> chain = MergeTree(4, np.array([[1, 2], [3, 4], [0, 5]]), np.zeros(3), n_copies=2)
    >>> joined_first(chain, found, np.array([0, 1, 1, 1])).merges.tolist()
    [[2, 3], [1, 4], [0, 5]]
    """
    n, n_first = tree.n_samples, tree.n_copies
    sizes = np.bincount(together, minlength=n)
    members = np.flatnonzero(sizes[together] > 1)
    starts, splits = leaf_intervals(found)
    line = members[np.lexsort((starts[members], together[members]))]
    joins = np.flatnonzero(together[line[:-1]] == together[line[1:]])  # of this place and the next
    merge_at = np.empty(n - 1, np.int64)
    merge_at[splits] = np.arange(n - 1)
    joined_by = range_maxima(merge_at, starts[line[joins]], starts[line[joins + 1]])
    nodes, first, last = line.tolist(), list(range(len(line))), list(range(len(line)))
    merges, top = [], {}
    for made, left in enumerate(joins[np.argsort(joined_by, kind="stable")].tolist(), n):
        begin, end = first[left], last[left + 1]
        merges.append((nodes[begin], nodes[left + 1]))
        nodes[begin] = made
        first[end], last[begin] = begin, end
        top[int(together[line[left]])] = made
    new = np.arange(n + len(tree.merges))
    later = np.flatnonzero(together != np.arange(n))  # each is joined to the ones before it
    for made, sample in enumerate(together[later].tolist(), n):
        new[made] = top[sample]
    below = np.array(merges, np.int64).reshape(-1, 2)
    return replace(tree, merges=np.concatenate([below, new[tree.merges[n_first:]]]))
