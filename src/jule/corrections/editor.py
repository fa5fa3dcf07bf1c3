"""Edit a clustering step by step: make edits from numbers of clusters, apply and undo them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from jule.corrections.apply import SHELF, Base, EditError, apply_edit, start
from jule.corrections.edits import Edit, EditLog, Pictures

SHOWN = 10  # pictures that stand for a cluster in an edit
MOST_COMPARED = 5000  # pictures of a cluster among which the typical ones are searched
REMEMBERED = 64  # states to which undo returns without replaying all edits


class Editor:
    """A clustering that is being edited.

    Clusters are given by their numbers in `state.labels`, pictures by their place in the run.
    Methods that return an Edit change nothing: pass it to `add`.

    Parameters
    ----------
    base
        The clustering as it was found.
    vectors
        (n, d) representation of the samples, to find typical ones.
    log
        Edits made before.

    Attributes
    ----------
    state
        The clustering with all edits in effect.
    log
        The list of edits.
    ignored
        (place, edit, reason) of those that are not possible on this run.

    Examples
    --------
    >>> from jule.corrections.pictures import PictureIndex
    >>> from jule.forward import MergeTree
    >>> tree = MergeTree(3, np.array([[0, 1], [2, 3]]), np.array([0.5, 0.1]))
    >>> base = Base(np.array([0, 0, 1], np.int32), tree, PictureIndex("abc"), np.arange(3))
    >>> editor = Editor(base, np.array([[0.0], [1.0], [9.0]]))
    >>> editor.add(editor.split(0))
    >>> editor.state.labels.tolist()
    [0, 2, 1]
    >>> editor.undo()
    >>> editor.state.labels.tolist()
    [0, 0, 1]
    """

    def __init__(
        self, base: Base, vectors: NDArray[np.floating], log: EditLog | None = None
    ) -> None:
        self.base = base
        self.vectors = vectors
        self.load(log or EditLog())

    def load(self, log: EditLog) -> None:
        """Replace all edits."""
        self.log = log
        self.ignored: list[tuple[int, Edit, str]] = []
        self.state = start(self.base)
        self._states = {0: self.state}
        for place, edit in enumerate(log.in_effect):
            try:
                self.state = apply_edit(self.base, self.state, edit)
            except EditError as error:
                self.ignored.append((place, edit, str(error)))
            self._remember(place + 1)

    def _remember(self, done: int) -> None:
        self._states[done] = self.state
        self._states.pop(done - REMEMBERED, None)

    def add(self, *edits: Edit) -> None:
        """Apply edits, all of them or none.

        Raises
        ------
        EditError
            If one is not possible; the message says why.
        """
        state = self.state
        for edit in edits:
            state = apply_edit(self.base, state, edit)
        if len(edits) != 1:  # the states between them are not known to `undo`
            self._states.clear()
        self.log, self.state = self.log.add(*edits), state
        self._states = {done: one for done, one in self._states.items() if done < self.log.done}
        self._remember(self.log.done)

    def undo(self) -> None:
        """Undo the last edit; raise ValueError if there is none."""
        log = self.log.undo()
        if log.done not in self._states:
            self.load(log)
            return
        self.log, self.state = log, self._states[log.done]
        self.ignored = [one for one in self.ignored if one[0] < log.done]

    def redo(self) -> None:
        """Redo the edit that was undone last; raise ValueError if there is none."""
        log = self.log.redo()
        try:
            state = apply_edit(self.base, self.state, log.in_effect[-1])
        except EditError as error:
            state = self.state
            self.ignored.append((log.done - 1, log.in_effect[-1], str(error)))
        self.log, self.state = log, state
        self._remember(log.done)

    # ---- edits

    def name(self, label: int, name: str) -> Edit:
        """Return the edit that gives a cluster a name; an empty name removes it."""
        was = self.state.names.get(label, "")
        return Edit("name", self.typical(label), name=name, was=was, run=self.base.run)

    def move(self, samples: Iterable[int], to: int | None) -> Edit:
        """Return the edit that moves samples to a cluster; None: to a new one."""
        others = () if to is None else self.typical(to)
        return Edit("move", self.pictures(samples), others, run=self.base.run)

    def shelve(self, samples: Iterable[int]) -> Edit:
        """Return the edit that makes samples unsure: they fit nowhere, and leave their clusters."""
        return Edit("shelve", self.pictures(samples), run=self.base.run)

    def merge(self, label: int, other: int) -> Edit:
        """Return the edit that adds all of another cluster to one, which keeps its name."""
        if label == other:
            raise EditError("a cluster cannot be merged with itself")
        return Edit("merge", self.typical(label), self.typical(other), run=self.base.run)

    def refuse(self, label: int, other: int) -> Edit:
        """Return the edit that says that two clusters are not the same."""
        if label == other:
            raise EditError("a cluster is the same as itself")
        return Edit("refuse", self.typical(label), self.typical(other), run=self.base.run)

    def must_link(self, samples: Iterable[int]) -> Edit:
        """Return the edit that keeps samples together permanently."""
        return Edit("must-link", self.pictures(samples), run=self.base.run)

    def cannot_link(self, samples: Iterable[int], others: Iterable[int]) -> Edit:
        """Return the edit that keeps samples apart from others permanently."""
        return Edit("cannot-link", self.pictures(samples), self.pictures(others), run=self.base.run)

    def unlink(self, samples: Iterable[int], others: Iterable[int] = ()) -> Edit:
        """Return the edit that removes a link, given by the samples on both sides of it."""
        wanted, find = (list(samples), list(others)), self.base.pictures.find_all
        for link in self.state.links:
            if (find(link.pictures).tolist(), find(link.others).tolist()) == wanted:
                return Edit("unlink", link.pictures, link.others, run=self.base.run)
        raise EditError("these pictures have no link that could be removed")

    def cut(self, k: int) -> Edit:
        """Return the edit that asks for another number of clusters."""
        return Edit("cut", k=k, run=self.base.run)

    def split(self, label: int, branch: int | None = None) -> Edit:
        """Return the edit that splits a cluster: one step down its branch of the tree.

        Parameters
        ----------
        label
            The cluster.
        branch
            A node of the tree whose samples leave the cluster; by default, the smaller part of the
            last merge within it.
        """
        inside = np.flatnonzero(self._inside(label))
        units = inside[self.state.units[inside] == inside]
        if len(units) < 2:
            raise EditError("a cluster of one picture, or of copies of one, cannot be split")
        branch = self._smaller_part(units) if branch is None else branch
        leaves = self._below(branch, units)
        if not leaves.any() or leaves.all():
            raise EditError("this branch does not divide the cluster")
        nearest = self._beside(branch, units)
        stays = self.typical_of(units[~leaves], SHOWN - 1)
        if nearest not in stays:
            stays = np.append(stays, nearest)
        return Edit(
            "split",
            self.pictures(stays),
            self.pictures(self.typical_of(units[leaves])),
            run=self.base.run,
        )

    def split_off(self, label: int, samples: Iterable[int]) -> Edit:
        """Return the edit that makes samples of a cluster a new one.

        It is a split if they are a branch of the tree, as far as it is in the cluster; otherwise
        they move.
        """
        leaving = list(samples)
        self.pictures(leaving)  # raises if one is not there
        inside = np.flatnonzero(self._inside(label))
        units = inside[self.state.units[inside] == inside]
        leaves = np.isin(units, self.state.units[leaving])
        if leaves.any():
            branch = self._joined_by(units[leaves])
            if not leaves.all() and np.array_equal(self._below(branch, units), leaves):
                return self.split(label, branch)
        return self.move(leaving, None)

    def _joined_by(self, samples: NDArray[np.int64]) -> int:
        """Return the smallest branch that has all of some samples, as a node."""
        if len(samples) == 1:
            return int(samples[0])
        places = self.base.intervals[0][samples]
        merge = self.base.merge_between[places.min() : places.max()].max()
        return len(self.base.labels) + int(merge)

    def _smaller_part(self, units: NDArray[np.int64]) -> int:
        """Return the smaller side of the last merge that joins some samples, as a node."""
        # Pictures that were put here by hand may come from anywhere in the tree.
        found = units[~self.state.by_hand[units]]
        found = units if len(found) < 2 else found
        merge = self._joined_by(found) - len(self.base.labels)
        left, right = self.base.tree.merges[merge].tolist()
        n_left = int(self._below(left, found).sum())
        return int(right if 2 * n_left >= len(found) else left)

    def _below(self, node: int, samples: NDArray[np.int64]) -> NDArray[np.bool_]:
        starts, stops = self.base.intervals
        places = starts[samples]
        below: NDArray[np.bool_] = (places >= starts[node]) & (places < stops[node])
        return below

    def _beside(self, node: int, units: NDArray[np.int64]) -> int:
        """Return one of some samples in the smallest branch that has more of them than a node."""
        starts, stops = self.base.intervals
        places = starts[units]
        inside = int(self._below(node, units).sum())
        # Its ancestors are the nodes around it; they are numbered from the bottom to the top.
        above = np.flatnonzero((starts <= starts[node]) & (stops >= stops[node]))
        above = above[above > node]
        ordered = np.sort(places)
        counts = np.searchsorted(ordered, stops[above]) - np.searchsorted(ordered, starts[above])
        parent = above[np.argmax(counts > inside)]
        beside = self._below(int(parent), units) & ~self._below(node, units)
        return int(self.typical_of(units[beside], 1)[0])

    # ---- pictures

    def typical(self, label: int, count: int = SHOWN) -> Pictures:
        """Return the most typical pictures of a cluster, as an edit names it."""
        return self.pictures(self.typical_of(np.flatnonzero(self._inside(label)), count))

    def _inside(self, label: int) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = self.state.labels == label
        if label == SHELF or not inside.any():
            raise EditError(f"there is no cluster {label}")
        return inside

    def typical_of(self, samples: NDArray[np.int64], count: int = SHOWN) -> NDArray[np.int64]:
        """Return the samples nearest to the mean of all, nearest first."""
        return self.nearest_to_mean(samples[:: -(-len(samples) // MOST_COMPARED)])[:count]

    def nearest_to_mean(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return samples in the order of their distance from the mean of them."""
        vectors = self.vectors[samples]
        gaps = vectors - vectors.mean(axis=0, dtype=np.float64)
        order: NDArray[np.int64] = np.argsort(np.einsum("ij,ij->i", gaps, gaps), kind="stable")
        return samples[order]

    def label_of(self, samples: NDArray[np.int64]) -> int:
        """Return the cluster that has most of some samples; -1 for the shelf."""
        found, counts = np.unique(self.state.labels[samples], return_counts=True)
        return int(found[counts.argmax()])

    def pictures(self, samples: Iterable[int]) -> Pictures:
        """Return samples as an edit names them."""
        listed = [int(sample) for sample in samples]
        n = len(self.base.labels)
        for sample in listed:
            if not 0 <= sample < n:
                raise EditError(f"there is no picture {sample}: the run has {n}")
        return self.base.pictures.pictures(listed)
