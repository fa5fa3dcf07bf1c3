"""Labels from automatic labels and edits, by one pure function: `replay`.

Exact copies, and pictures with a must-link, form units that are never divided. Pictures with a
cannot-link are never in one cluster. An edit that would break this raises EditError.

Another number of clusters separates nothing that a person has put together, by a merge or a move,
and joins nothing that a person has separated: only further edits of these clusters do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from jule.corrections.edits import Edit, Pictures
from jule.corrections.joins import Joins
from jule.corrections.pictures import PictureIndex
from jule.forward.branches import leaf_intervals, node_intervals
from jule.forward.tree import MergeTree

SHELF = -1  # the label of pictures that fit nowhere; users see them as unsure
SHELF_NAME = "unsure"

MOST_PARTS = 300  # clusters of a side that are kept apart from the other one: a page has no more

# The samples of two clusters of which a person has said that they are different.
Different = tuple[NDArray[np.int64], NDArray[np.int64]]
# Labels and names of the clusters if there were k of them.
Recut = Callable[["Corrected", int], tuple[NDArray[np.int32], dict[int, str]]]


class EditError(ValueError):
    """An edit is not possible; the message says why."""


@dataclass(frozen=True, eq=False)
class Base:
    """What edits start from: the clustering of a run as it was found.

    Attributes
    ----------
    labels
        (n,) automatic clusters 0, 1, ... without gaps.
    tree
        The merge tree of the run.
    pictures
        Its pictures.
    first_copies
        (n,) index of the original of each; exact copies stay together.
    run
        Identifier of the run.
    earlier
        Identifiers of the same run before pictures were added.
    recut
        Returns labels and names for another number of clusters; None to ignore edits that ask for
        one.
    numbers
        The numbers of the automatic clusters, in order; empty for 0, 1, ...
    """

    labels: NDArray[np.int32]
    tree: MergeTree
    pictures: PictureIndex
    first_copies: NDArray[np.int64]
    run: str = ""
    earlier: frozenset[str] = frozenset()
    recut: Recut | None = None
    numbers: tuple[int, ...] = ()

    def is_own(self, edit: Edit) -> bool:
        """Return whether an edit was made on this run."""
        return edit.run == self.run or edit.run in self.earlier

    @cached_property
    def intervals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the leaves of every node begin and end, with the leaves of the tree in a line."""
        return node_intervals(self.tree)

    @cached_property
    def merge_between(self) -> NDArray[np.int64]:
        """The merge that joins each leaf of the line with the next."""
        _, splits = leaf_intervals(self.tree)
        merges = np.empty(len(self.labels) - 1, np.int64)
        merges[splits] = np.arange(len(splits))
        return merges

    def joined_by(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the merge of the tree that joins each two of some samples; -1 for one alone.

        Examples
        --------
        >>> tree = MergeTree(3, np.array([[0, 2], [1, 3]]), np.array([0.5, 0.1]))
        >>> base = Base(np.zeros(3, np.int32), tree, PictureIndex("abc"), np.arange(3))
        >>> base.joined_by(np.array([0, 1, 2])).tolist()
        [[-1, 1, 0], [1, -1, 1], [0, 1, -1]]
        """
        places = self.intervals[0][samples].tolist()
        merges = self.merge_between
        found = [
            [int(merges[min(one, other) : max(one, other)].max(initial=-1)) for other in places]
            for one in places
        ]
        return np.array(found, np.int64)


@dataclass(frozen=True, eq=False)
class Corrected:
    """A clustering after edits.

    Attributes
    ----------
    labels
        (n,) cluster of every sample, -1 on the shelf. A cluster keeps its number as long as it
        exists, so there may be gaps; see `numbered`.
    names
        The names of the clusters that have one; no two are the same.
    by_hand
        (n,) whether a person chose the cluster of each sample.
    units
        (n,) the first sample of each sample's unit.
    apart
        Pairs of samples that must not share a cluster.
    next_label
        The number of the next new cluster.
    links
        The must-links and cannot-links in effect, from which units and pairs follow.
    joins
        What a person has put together; None if nothing.
    different
        The samples of clusters that a person has separated, or called different.
    """

    labels: NDArray[np.int32]
    names: Mapping[int, str]
    by_hand: NDArray[np.bool_]
    units: NDArray[np.int64]
    apart: tuple[tuple[int, int], ...] = ()
    next_label: int = 0
    links: tuple[Edit, ...] = ()
    joins: Joins | None = None
    different: tuple[Different, ...] = ()

    @cached_property
    def together(self) -> NDArray[np.int64]:
        """One sample of all that every number of clusters keeps together with each sample.

        The tree has all of them where it has this one, which nobody has moved if there is any.
        """
        if self.joins is None:
            return self.units
        return self.joins.places(self.joins.sets(self.units), self.labels, self.by_hand)

    @cached_property
    def kept_apart(self) -> tuple[tuple[int, int], ...]:
        """Pairs of samples whose clusters no smaller number of clusters joins."""
        return tuple(dict.fromkeys([*self.apart, *self.different_pairs]))

    @cached_property
    def different_pairs(self) -> tuple[tuple[int, int], ...]:
        """A pair of samples for every two clusters with samples that a person has separated."""
        pairs: dict[tuple[int, int], tuple[int, int]] = {}
        for sides in self.different:
            one, other = (self._by_cluster(side) for side in sides)
            for a, b in product(one, other):
                if a != b:
                    pairs.setdefault((min(a, b), max(a, b)), (one[a], other[b]))
        return tuple(pairs.values())

    def _by_cluster(self, samples: NDArray[np.int64]) -> dict[int, int]:
        """Return the first of some samples in each cluster with most of them, without the shelf."""
        samples = samples[self.labels[samples] != SHELF]
        labels = self.labels[samples]
        counts = np.bincount(labels)
        first = np.empty(len(counts), np.int64)
        first[labels[::-1]] = samples[::-1]
        most = np.argsort(-counts, kind="stable")[: min(np.count_nonzero(counts), MOST_PARTS)]
        return dict(zip(most.tolist(), first[most].tolist(), strict=True))

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """The labels that are in use, in order, without the shelf."""
        counts = np.bincount(self.labels[self.labels != SHELF])
        return np.flatnonzero(counts).astype(np.int32)

    @cached_property
    def n_shelved(self) -> int:
        """How many pictures are on the shelf."""
        return int((self.labels == SHELF).sum())

    @property
    def has_shelf(self) -> bool:
        """Whether any picture is on the shelf."""
        return self.n_shelved > 0

    def numbered(self) -> tuple[NDArray[np.int32], dict[int, str]]:
        """Return labels 0, 1, ... without gaps, and their names; the shelf is the last cluster.

        Examples
        --------
        >>> corrected = Corrected(
        ...     np.array([4, -1, 2], np.int32), {4: "cats"}, np.zeros(3, bool), np.arange(3)
        ... )
        >>> labels, names = corrected.numbered()
        >>> labels.tolist(), names
        ([1, 2, 0], {1: 'cats', 2: 'unsure'})
        """
        closed = np.searchsorted(self.numbers, self.labels).astype(np.int32)
        closed[self.labels == SHELF] = len(self.numbers)
        names = {
            place: self.names[label]
            for place, label in enumerate(self.numbers.tolist())
            if label in self.names
        }
        if self.has_shelf:
            names[len(self.numbers)] = SHELF_NAME
        return closed, names


@dataclass
class _Edited:
    """A clustering while an edit is applied to it."""

    base: Base
    labels: NDArray[np.int32]
    names: dict[int, str]
    by_hand: NDArray[np.bool_]
    units: NDArray[np.int64]
    apart: list[tuple[int, int]]
    next_label: int
    links: list[Edit]
    joins: Joins
    different: list[Different]
    samples: dict[Pictures, NDArray[np.int64]] = field(default_factory=dict)

    def find(self, pictures: Pictures) -> NDArray[np.int64]:
        """Return the samples that are some pictures; at least one must be there."""
        if pictures not in self.samples:
            self.samples[pictures] = self.base.pictures.find_all(pictures)
        found = self.samples[pictures]
        if len(found) == 0:
            raise EditError(f"{_listed([one.path for one in pictures])} is not in this run")
        return found

    def cluster(self, pictures: Pictures) -> int:
        """Return the cluster that has most of some pictures; of equal ones, that of the first."""
        labels = self.labels[self.find(pictures)]
        labels = labels[labels != SHELF]
        if len(labels) == 0:
            paths = [one.path for one in pictures]
            raise EditError(f"{_listed(paths)}: {SHELF_NAME}, so not in any cluster")
        found, first, counts = np.unique(labels, return_index=True, return_counts=True)
        best = np.lexsort((first, -counts))[0]
        return int(found[best])

    def of_units(self, samples: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which samples are in the units of some samples."""
        inside = np.zeros(len(self.labels), bool)
        inside[self.units[samples]] = True
        return inside[self.units]

    def new_label(self) -> int:
        self.next_label += 1
        return self.next_label - 1

    def check_together(self, together: NDArray[np.bool_]) -> None:
        """Raise if samples that would share a cluster have a cannot-link."""
        for one, other in self.apart:
            if together[one] and together[other]:
                paths = self.base.pictures.paths
                raise EditError(
                    f"{paths[one]} and {paths[other]} do not belong together (a cannot-link): "
                    "remove that link first"
                )

    def put(self, samples: NDArray[np.bool_], label: int) -> None:
        """Put whole units into a cluster, or on the shelf."""
        if label != SHELF:
            self.check_together(samples | (self.labels == label))
        self.labels[samples] = label

    def take(self, samples: NDArray[np.bool_], label: int) -> None:
        """Put units elsewhere, where they no longer stand for the clusters that they leave."""
        leaving = samples & (self.labels != label)
        self.put(samples, label)
        if not leaving.any():
            return
        self.joins = self.joins.leave(np.flatnonzero(leaving))
        left = [(_staying(one, leaving), _staying(two, leaving)) for one, two in self.different]
        self.different = [(one, other) for one, other in left if len(one) and len(other)]

    def separate(self, samples: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        """Keep all clusters with any of some samples apart from those with any of the others."""
        self.different.append((samples, others))

    def gather(self, samples: NDArray[np.bool_], home: NDArray[np.int64]) -> None:
        """Keep units that were moved together, and with samples of the cluster they joined."""
        moved = np.flatnonzero(samples).tolist()
        self.joins = self.joins.move(moved, home.tolist(), self.base.joined_by)

    def drop_empty_names(self) -> None:
        counts = np.bincount(self.labels + 1, minlength=self.next_label + 1)
        self.names = {label: name for label, name in self.names.items() if counts[label + 1]}


def _staying(side: NDArray[np.int64], leaving: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the samples of a side that stay in their clusters."""
    gone = leaving[side]
    return side[~gone] if gone.any() else side


def _listed(paths: list[str]) -> str:
    more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    return f"{paths[0][:200]}{more}"


def start(base: Base) -> Corrected:
    """Return a clustering without edits.

    Examples
    --------
    >>> tree = MergeTree(3, np.array([[0, 1], [2, 3]]), np.array([0.5, 0.1]))
    >>> base = Base(np.array([0, 0, 1], np.int32), tree, PictureIndex("abc"), np.arange(3))
    >>> start(base).next_label
    2
    """
    n = len(base.labels)
    units = _first_of_unit(np.asarray(base.first_copies, np.int64))
    labels = base.labels.astype(np.int32)
    if base.numbers:
        labels = np.array(base.numbers, np.int32)[labels]
    return Corrected(labels, {}, np.zeros(n, bool), units, (), int(labels.max()) + 1)


def _first_of_unit(units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first sample with the same value as each."""
    _, first, inverse = np.unique(units, return_index=True, return_inverse=True)
    return first[inverse.reshape(-1)].astype(np.int64)


def apply_edit(base: Base, before: Corrected, edit: Edit) -> Corrected:
    """Return a clustering after one more edit.

    Raises
    ------
    EditError
        If the edit is not possible: its pictures are not in the run, a name is taken, or a
        cannot-link would be broken.

    Examples
    --------
    >>> from jule.corrections.edits import Picture
    >>> tree = MergeTree(3, np.array([[0, 1], [2, 3]]), np.array([0.5, 0.1]))
    >>> base = Base(np.array([0, 0, 1], np.int32), tree, PictureIndex("abc"), np.arange(3))
    >>> edit = Edit("move", (Picture("a"),), (Picture("c"),))
    >>> apply_edit(base, start(base), edit).labels.tolist()
    [1, 0, 1]
    """
    edited = _Edited(
        base,
        before.labels.copy(),
        dict(before.names),
        before.by_hand.copy(),
        before.units,
        list(before.apart),
        before.next_label,
        list(before.links),
        before.joins or Joins.none(len(before.labels)),
        list(before.different),
    )
    _APPLY[edit.kind](edited, edit)
    edited.drop_empty_names()
    return replace(
        before,
        labels=edited.labels,
        names=edited.names,
        by_hand=edited.by_hand,
        units=edited.units,
        apart=tuple(edited.apart),
        next_label=edited.next_label,
        links=tuple(edited.links),
        joins=edited.joins,
        different=tuple(edited.different),
    )


def replay(
    base: Base, edits: Iterable[Edit]
) -> tuple[Corrected, tuple[tuple[int, Edit, str], ...]]:
    """Return a clustering after edits, and those that are not possible on it.

    On the run that they were made on, all are possible. On another one, pictures may be missing,
    and clusters may be different.

    Returns
    -------
    corrected
        The clustering.
    ignored
        (place, edit, reason) of those that were left out.
    """
    state, ignored = start(base), []
    for place, edit in enumerate(edits):
        try:
            state = apply_edit(base, state, edit)
        except EditError as error:
            ignored.append((place, edit, str(error)))
    return state, tuple(ignored)


def _name(edited: _Edited, edit: Edit) -> None:
    label = edited.cluster(edit.pictures)
    now = edited.names.get(label, "")
    if now not in (edit.was, edit.name):
        raise EditError(f"the cluster is already called {now!r}, so it is not called {edit.name!r}")
    if edit.name.casefold() == SHELF_NAME:
        raise EditError(f"{SHELF_NAME!r} is for pictures that fit nowhere: choose another name")
    if edit.name and any(
        name == edit.name and other != label for other, name in edited.names.items()
    ):
        raise EditError(
            f"another cluster is already called {edit.name!r}: merge them, or choose another name"
        )
    edited.names[label] = edit.name
    if not edit.name:
        del edited.names[label]


def _move(edited: _Edited, edit: Edit) -> None:
    found = edited.find(edit.pictures)
    moving = edited.of_units(found)
    home = np.empty(0, np.int64)
    is_new = False
    if edit.others:
        label = edited.cluster(edit.others)
        home = edited.find(edit.others)
        home = home[(edited.labels[home] == label) & ~moving[home]]
    else:
        label = -2 if edited.base.is_own(edit) else _own_cluster(edited, moving)
        is_new = label < 0
        label = edited.new_label() if is_new else label
    left = np.unique(edited.labels[moving]) if is_new else ()
    edited.take(moving, label)
    edited.by_hand |= moving
    edited.gather(moving, home)
    for one in left:
        rest = np.flatnonzero(edited.labels == one)
        if one != SHELF and len(rest):
            edited.separate(rest, np.flatnonzero(moving))


def _own_cluster(edited: _Edited, samples: NDArray[np.bool_]) -> int:
    """Return the cluster that consists mostly of some samples and has most of them, or -2."""
    inside = edited.labels[samples & (edited.labels != SHELF)]
    if len(inside) == 0:
        return -2
    counts = np.bincount(inside)
    label = int(counts.argmax())
    size = int((edited.labels == label).sum())
    return label if 2 * counts[label] > max(size, int(samples.sum())) else -2


def _shelve(edited: _Edited, edit: Edit) -> None:
    moving = edited.of_units(edited.find(edit.pictures))
    edited.take(moving, SHELF)
    edited.by_hand |= moving


def _place(edited: _Edited, edit: Edit) -> None:
    edited.take(edited.of_units(edited.find(edit.pictures)), edited.cluster(edit.others))


def _split(edited: _Edited, edit: Edit) -> None:
    label = edited.cluster(edit.pictures)
    if edited.cluster(edit.others) != label:
        _refuse(edited, edit)  # they are apart already, in this run
        return
    stays, leaves = (
        edited.units[samples[edited.labels[samples] == label]]
        for samples in (edited.find(edit.pictures), edited.find(edit.others))
    )
    inside = edited.labels == label
    branch = _branch_with(edited.base, leaves, stays)
    leaving = inside & branch[edited.units]
    if not leaving.any() or (leaving == inside).all():
        raise EditError("the tree has no branch that divides this cluster in such a way")
    edited.labels[leaving] = edited.new_label()
    edited.joins = edited.joins.divide(np.flatnonzero(leaving))
    edited.separate(np.flatnonzero(inside & ~leaving), np.flatnonzero(leaving))


def _branch_with(
    base: Base, wanted: NDArray[np.int64], unwanted: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return the samples of the largest branch with most of the wanted, less the unwanted ones."""
    starts, stops = base.intervals
    n = len(base.labels)
    balance = np.zeros(n + 1, np.int64)
    np.add.at(balance, starts[wanted] + 1, 1)
    np.subtract.at(balance, starts[unwanted] + 1, 1)
    sums = np.cumsum(balance)
    scores = sums[stops] - sums[starts]
    best_ones = np.flatnonzero(scores == scores.max())
    best = best_ones[np.argmax((stops - starts)[best_ones])]
    places = starts[:n]
    inside: NDArray[np.bool_] = (places >= starts[best]) & (places < stops[best])
    return inside


def _merge(edited: _Edited, edit: Edit) -> None:
    label, other = edited.cluster(edit.pictures), edited.cluster(edit.others)
    if label == other:  # of another run, or of one with more pictures
        inside = np.flatnonzero(edited.labels == label)
        named = np.isin(inside, edited.find(edit.others))
        edited.joins = edited.joins.join(inside, named.astype(np.int64))
        return
    joining = edited.labels == other
    inside = np.flatnonzero(joining | (edited.labels == label))
    edited.put(joining, label)
    edited.joins = edited.joins.join(inside, joining[inside].astype(np.int64))
    if label not in edited.names and other in edited.names:
        edited.names[label] = edited.names[other]


def _refuse(edited: _Edited, edit: Edit) -> None:
    # Nothing moves, but they must exist.
    sides = [edited.find(some) for some in (edit.pictures, edit.others)]
    one, other = (_mostly(edited.labels, side) for side in sides)
    if len(one) == 0 or len(other) == 0:
        return
    label, second = edited.labels[one[0]], edited.labels[other[0]]
    if label != second:  # in another run, they may be parts of one cluster
        one, other = (np.flatnonzero(edited.labels == each) for each in (label, second))
    edited.separate(one, other)


def _mostly(labels: NDArray[np.int32], samples: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return those of some samples that are in the cluster which most of them are in."""
    samples = samples[labels[samples] != SHELF]
    most = np.bincount(labels[samples], minlength=1).argmax()
    found: NDArray[np.int64] = samples[labels[samples] == most]
    return found


def _must_link(edited: _Edited, edit: Edit) -> None:
    found = edited.find(edit.pictures)
    together = edited.of_units(found)
    edited.check_together(together)
    labels = edited.labels[found]
    label = int(next((one for one in labels if one != SHELF), SHELF))
    moving = together & (edited.labels != label)
    edited.take(together, label)
    edited.by_hand |= moving
    edited.units = np.where(together, np.flatnonzero(together)[0], edited.units)
    edited.links.append(edit)


def _cannot_link(edited: _Edited, edit: Edit) -> None:
    found, others = edited.find(edit.pictures), edited.find(edit.others)
    paths = edited.base.pictures.paths
    known = set(edited.apart)
    for one in found.tolist():
        for other in others.tolist():
            if edited.units[one] == edited.units[other]:
                raise EditError(
                    f"{paths[one]} and {paths[other]} are exact copies, or belong together (a "
                    "must-link), so they cannot be kept apart"
                )
            if (one, other) not in known:
                known.add((one, other))
                edited.apart.append((one, other))
    free: list[int] = []
    for other in others.tolist():
        unit = edited.of_units(np.array([other]))
        label = int(edited.labels[other])
        if label == SHELF or not (edited.labels[found] == label).any():
            continue
        edited.take(unit, _first_allowed(edited, unit, free))
        edited.by_hand |= unit
    edited.links.append(edit)


def _unlink(edited: _Edited, edit: Edit) -> None:
    """Forget a link; the pictures stay where they are."""
    kept = [link for link in edited.links if not link.has_same_pictures(edit)]
    if len(kept) == len(edited.links):
        raise EditError("these pictures have no link that could be removed")
    edited.links, edited.apart = kept, []
    edited.units = _first_of_unit(np.asarray(edited.base.first_copies, np.int64))
    for link in kept:
        found = edited.find(link.pictures)
        if link.kind == "must-link":
            together = edited.of_units(found)
            edited.units[together] = int(np.flatnonzero(together)[0])
        else:
            others = edited.find(link.others).tolist()
            edited.apart += [(one, other) for one in found.tolist() for other in others]


def _first_allowed(edited: _Edited, unit: NDArray[np.bool_], free: list[int]) -> int:
    """Return the first of some clusters in which a unit may be, or a new one."""
    for label in free:
        try:
            edited.check_together(unit | (edited.labels == label))
        except EditError:
            continue
        return label
    free.append(edited.new_label())
    return free[-1]


def _cut(edited: _Edited, edit: Edit) -> None:
    base = edited.base
    if base.recut is None or not base.is_own(edit):
        return  # the number of clusters of another run was chosen for that one
    now = Corrected(
        edited.labels,
        edited.names,
        edited.by_hand,
        edited.units,
        tuple(edited.apart),
        edited.next_label,
        joins=edited.joins,
        different=tuple(edited.different),
    )
    labels, names = base.recut(now, edit.k)
    edited.labels = labels
    edited.names = dict(names)
    edited.next_label = max(edited.next_label, int(labels.max()) + 1)


_APPLY: dict[str, Callable[[_Edited, Edit], None]] = {
    "name": _name,
    "move": _move,
    "shelve": _shelve,
    "place": _place,
    "split": _split,
    "merge": _merge,
    "refuse": _refuse,
    "must-link": _must_link,
    "cannot-link": _cannot_link,
    "unlink": _unlink,
    "cut": _cut,
}
