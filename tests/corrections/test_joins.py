"""What a person has put together or separated stays so at every number of clusters."""

import warnings
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.corrections.editor import Editor
from jule.corrections.edits import Edit
from jule.corrections.joins import Joins, joined_first
from jule.forward import MergeTree
from jule.runs.corrected import base_of, edited_result, with_state
from tests.corrections.made import random_tree
from tests.corrections.test_properties import check_sound, number, step, take
from tests.runs.test_histories import run_of, update

cut = st.tuples(st.just("cut"), number, number, st.just(""))
hand = step.filter(lambda one: one[0] not in ("undo", "redo"))


@cache
def found_of(seed):
    rng = np.random.default_rng(seed)
    near = 2.0 * rng.normal(size=(5, 3))[np.arange(60) % 5] + rng.normal(size=(60, 3))
    return run_of(near.astype(np.float32), 5)[0]


def editor_of(seed):
    found = found_of(seed)
    return found, Editor(base_of(found, found.result), found.result.embedding)


def members(state, label):
    return set(np.flatnonzero(state.labels == label).tolist())


def clusters_of(state, samples):
    return set(state.labels[sorted(samples)].tolist())


class Said:
    """A slow record of what a person has joined and separated: sets of samples."""

    def __init__(self):
        self.joined, self.apart = [], []

    def note(self, before, after, kind):
        """Take over an edit. Whatever it has changed is no longer known, except what it says."""
        moved = set(np.flatnonzero(before.labels != after.labels).tolist())
        new = set(after.numbers.tolist()) - set(before.numbers.tolist())
        if kind == "merge":
            gone = set(before.numbers.tolist()) - set(after.numbers.tolist())
            for label in gone:
                merged = members(after, after.labels[min(members(before, label))])
                self.joined.append(merged)
                self.apart = [
                    pair for pair in self.apart if not (pair[0] & merged and pair[1] & merged)
                ]
            return
        if kind == "split":
            self.joined = [one for one in self.joined if not one & moved]
            for label in new:
                rest = clusters_of(before, members(after, label))
                self.apart.append((members(after, label), members(after, rest.pop())))
            return
        self.joined = [one - moved for one in self.joined]
        self.apart = [(one, other) for one, other in self.apart if not (one | other) & moved]

    def check(self, state):
        for one in self.joined:
            assert len(clusters_of(state, one) - {-1}) <= 1
        for one, other in self.apart:
            assert not clusters_of(state, one) & clusters_of(state, other)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 3), st.lists(st.one_of(hand, cut, cut), max_size=14))
def test_another_number_of_clusters_undoes_nothing_that_a_person_did(seed, steps):
    warnings.simplefilter("ignore")  # of numbers of clusters that corrections do not allow
    _, editor = editor_of(seed)
    said = Said()
    for kind, a, b, name in steps:
        before = editor.state
        if len(before.numbers) == 0:
            break
        if kind != "cut":
            if take(editor, kind, a, b, name):
                said.note(before, editor.state, kind)
        else:
            k = 1 + a % 20
            editor.add(editor.cut(k))
            state = editor.state
            said.check(state)
            assert (state.labels == -1).tolist() == (before.labels == -1).tolist()
            if len(state.numbers) < k:  # nothing is left that may be divided
                for label in state.numbers.tolist():
                    assert len(set(state.together[sorted(members(state, label))])) == 1
        check_sound(editor.base, editor.state)
        np.testing.assert_array_equal(
            editor.state.labels[editor.state.together], editor.state.labels
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_merge_stays_whole_until_it_is_split_or_undone(seed):
    found, editor = editor_of(seed)
    editor.add(editor.merge(0, 3))
    merged = members(editor.state, 0)
    for k in (8, 2, 12, 4):
        editor.add(editor.cut(k))
        assert len(editor.state.numbers) == k
        assert len(clusters_of(editor.state, merged)) == 1
        results = with_state(found, editor.state, editor.log)
        for other in (3, 10):
            assert len(set(results.recut(other)[0][sorted(merged)])) == 1
    while editor.log.done > 1:
        editor.undo()
    editor.add(editor.split(0))
    editor.add(editor.cut(30))
    assert len(editor.state.numbers) == 30  # both parts are as free as before the merge
    assert max(np.bincount(editor.state.labels)) < len(merged) / 2
    while editor.log.done:
        editor.undo()
    editor.add(editor.cut(30))
    assert len(clusters_of(editor.state, merged)) > 2


@pytest.mark.parametrize("seed", range(4))
def test_what_a_split_has_left_of_a_merge_is_joined_only_to_what_it_is_merged_with(seed):
    found, editor = editor_of(seed)
    editor.add(editor.merge(0, 1))
    editor.add(editor.split(0))
    editor.add(editor.cut(15))
    merged = members(editor.state, 0) | members(editor.state, 2)
    elsewhere = editor.state.labels.copy()
    editor.add(editor.merge(0, 2))
    assert members(editor.state, 0) == merged
    others = sorted(set(range(len(elsewhere))) - merged)
    np.testing.assert_array_equal(editor.state.labels[others], elsewhere[others])
    with_state(found, editor.state, editor.log)  # every sample has the label of those it is with


@pytest.mark.parametrize("seed", range(4))
def test_the_halves_of_a_merged_cluster_stay_together_when_merged_again(seed):
    _, editor = editor_of(seed)
    editor.add(editor.merge(0, 1))
    editor.add(editor.split(0))
    before = set(editor.state.numbers.tolist())
    editor.add(editor.split(0))
    (new,) = set(editor.state.numbers.tolist()) - before
    editor.add(editor.merge(0, new))
    merged = members(editor.state, 0)
    editor.add(editor.cut(12))
    assert len(clusters_of(editor.state, merged)) == 1


@pytest.mark.parametrize("seed", range(4))
def test_what_was_moved_stays_where_it_was_put(seed):
    _, editor = editor_of(seed)
    moved = sorted(members(editor.state, 1))[:3]
    editor.add(editor.move(moved, 2))
    others = sorted(members(editor.state, 3))[:2]
    editor.add(editor.move(others, None))
    left = members(editor.state, 3)
    editor.add(editor.cut(25))
    assert len(clusters_of(editor.state, moved)) == 1
    assert len(clusters_of(editor.state, others)) == 1
    editor.add(editor.cut(3))
    # They were separated by hand.
    assert not clusters_of(editor.state, left) & clusters_of(editor.state, others)


@cache
def found_with_outliers():
    rng = np.random.default_rng(0)
    near = np.repeat(4.0 * rng.normal(size=(4, 3)), 100, axis=0) + rng.normal(size=(400, 3))
    near[:2] += 6.0  # outliers of the first cluster, which come before all others
    return run_of(near.astype(np.float32), 4)[0]


def test_outliers_that_were_moved_take_nothing_along():
    found = found_with_outliers()
    editor = Editor(base_of(found, found.result), found.result.embedding)
    target = int(editor.state.labels[399])
    homes = editor.typical_of(np.flatnonzero(editor.state.labels == target))
    assert target != editor.state.labels[0]
    move = editor.move([0, 1], target)
    for k in range(2, 25):
        editor.add(editor.cut(k))
        without = editor.state.labels[homes].copy()
        editor.undo()
        editor.add(move)
        results = with_state(found, editor.state, editor.log)
        editor.add(editor.cut(k))
        labels = editor.state.labels
        np.testing.assert_array_equal(results.recut(k)[0], labels)
        np.testing.assert_array_equal(labels[homes], without)
        assert np.bincount(labels[homes])[labels[:2]].tolist() == [np.bincount(without).max()] * 2
        editor.undo()
        editor.undo()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 3), st.lists(st.tuples(number, number), min_size=1, max_size=5))
def test_moves_change_nothing_else_in_the_tree(seed, steps):
    found, editor = editor_of(seed)
    for a, b in steps:
        take(editor, "move", a, b, "")
    state = editor.state
    tree = edited_result(found.result, found.config, state).tree
    n, n_clusters = tree.n_samples, len(state.numbers)
    branches = [_leaves(found.result.tree, node) for node in range(n, 2 * n - 1)]
    by_hand = set(np.flatnonzero(state.by_hand).tolist())
    for node in range(n, 2 * n - n_clusters):  # below the clusters
        inside = _leaves(tree, node)
        rest = members(state, state.labels[min(inside)]) - by_hand
        spanned = min((one for one in branches if inside - by_hand <= one), key=len)
        assert len(inside - by_hand) <= 1 or inside - by_hand == spanned & rest
    for moved in state.joins.moves:
        label = state.labels[moved.samples[0]]
        homes = sorted({*moved.homes} & members(state, label) - by_hand)
        for k in range(1, tree.n_different + 1):
            cut = tree.cut(k)
            counts = np.bincount(cut[homes], minlength=k)
            assert len({*cut[list(moved.samples)]}) == 1
            if 2 * counts.max() > len(homes):
                assert cut[moved.samples[0]] == counts.argmax()


def test_moved_pictures_with_a_link_take_nothing_along_either():
    _, editor = editor_of(0)
    target = 2
    one, other = sorted(members(editor.state, 1))[:2]
    near, far = (editor.typical_of(np.flatnonzero(editor.state.labels == target))[[0, -1]]).tolist()
    editor.add(editor.move([one], target))
    editor.add(editor.move([other], target))
    assert editor.state.together[one] == editor.state.together[other]
    editor.add(editor.must_link([far, one]))
    together = editor.state.together
    assert together[one] == together[far] == far  # where the one is that nobody has moved
    assert together[other] != far
    editor.add(editor.move([near], 1))  # it does not stand for the cluster any more
    assert editor.state.labels[other] == target
    place = editor.state.together[other]
    assert editor.state.labels[place] == target
    assert not editor.state.by_hand[place]


@pytest.mark.parametrize("seed", range(4))
def test_an_update_keeps_the_pictures_that_a_move_names(seed):
    found, editor = editor_of(seed)
    moved = sorted(members(editor.state, 1))[:2]
    move = editor.move(moved, 2)
    editor.add(move)
    editor.add(editor.cut(7))
    homes = editor.base.pictures.find_all(move.others)
    near = found.result.embedding[:20] + np.float32(0.01)
    _, editor = update(found, editor, near)
    again = [edit for edit in editor.log.in_effect if edit.kind == "move"]
    assert [edit.pictures for edit in again] == [move.pictures]
    here = editor.state.labels[homes] == editor.state.labels[moved[0]]
    assert [one for one in again[0].others if one in move.others] == list(again[0].others)
    assert len(again[0].others) >= here.sum() > 0


@pytest.mark.parametrize("kind", ["split", "refuse"])
def test_clusters_that_were_called_different_are_joined_last(kind):
    found, editor = editor_of(0)
    editor.add(editor.split(0) if kind == "split" else editor.refuse(0, 1))
    other = 5 if kind == "split" else 1
    pair = members(editor.state, 0), members(editor.state, other)
    for k in (4, 3, 2, 9, 2):
        editor.add(editor.cut(k))
        assert len(editor.state.numbers) == k
        one, two = (clusters_of(editor.state, side) for side in pair)
        assert not one & two
    editor.add(editor.cut(1))
    assert len(editor.state.numbers) == 2
    with pytest.warns(UserWarning, match="2 clusters instead of 1: corrections keep"):
        with_state(found, editor.state, editor.log).recut(1)
    editor.add(editor.merge(*editor.state.numbers.tolist()))  # the last word counts
    editor.add(editor.cut(4))
    assert len(editor.state.numbers) == 1


def test_all_of_a_split_cluster_stays_apart_after_fine_and_coarse_cuts():
    rng = np.random.default_rng(0)
    found, _ = run_of(rng.normal(size=(200, 3)).astype(np.float32), 4)
    editor = Editor(base_of(found, found.result), found.result.embedding)
    editor.add(editor.split(0))
    parts = members(editor.state, 0), members(editor.state, 4)
    for k in (100, 3, 50, 2):
        editor.add(editor.cut(k))
        one, other = (clusters_of(editor.state, part) for part in parts)
        assert not one & other


def test_of_many_parts_the_largest_are_kept_apart(monkeypatch):
    _, editor = editor_of(0)
    editor.add(editor.refuse(0, 1))
    parts = members(editor.state, 0), members(editor.state, 1)
    editor.add(editor.cut(30))
    assert len(editor.state.kept_apart) > 4
    monkeypatch.setattr("jule.corrections.apply.MOST_PARTS", 2)
    editor.undo()
    editor.redo()
    sizes = np.bincount(editor.state.labels)
    for side, part in zip(zip(*editor.state.kept_apart, strict=True), parts, strict=True):
        kept = clusters_of(editor.state, side)
        assert len(kept) == 2
        others = clusters_of(editor.state, part) - kept
        assert min(sizes[list(kept)]) >= max(sizes[list(others)])


@pytest.mark.parametrize("seed", range(4))
def test_an_update_says_again_that_the_parts_of_two_clusters_are_different(seed, monkeypatch):
    found, editor = editor_of(seed)
    editor.add(editor.refuse(1, 2))
    parts = members(editor.state, 1), members(editor.state, 2)
    editor.add(editor.cut(30))
    monkeypatch.setattr("jule.runs.adding._has", lambda *_: False)
    _, editor = update(found, editor, found.result.embedding[:20] + np.float32(0.3))
    assert {edit.kind for edit in editor.log.edits} == {"refuse"}  # they begin again
    labels = editor.state.labels
    closed = {frozenset((labels[a], labels[b])) for a, b in editor.state.kept_apart}
    one, other = (clusters_of(editor.state, part) for part in parts)
    assert len(one) > 1
    assert closed == {frozenset(pair) for pair in product(one, other)}


def test_clusters_of_another_run_that_are_one_here_are_kept_apart_by_those_named():
    _, editor = editor_of(0)
    one, two, *_ = sorted(members(editor.state, 0))
    editor.add(Edit("refuse", editor.pictures([one]), editor.pictures([two]), run="other"))
    assert editor.state.kept_apart == ()
    editor.add(editor.cut(59))
    assert editor.state.kept_apart == ((one, two),)


@pytest.mark.parametrize("seed", range(4))
def test_a_merge_stays_when_pictures_are_added(seed):
    found, editor = editor_of(seed)
    editor.add(editor.merge(0, 3))
    editor.add(editor.refuse(1, 2))
    merged, refused = members(editor.state, 0), [members(editor.state, one) for one in (1, 2)]
    editor.add(editor.cut(20))
    near = found.result.embedding[:20] + np.float32(0.01)
    _, editor = update(found, editor, near)
    for k in (12, 3):
        editor.add(editor.cut(k))
        assert len(clusters_of(editor.state, merged)) == 1
        one, two = (clusters_of(editor.state, side) for side in refused)
        assert not one & two


def test_more_clusters_than_corrections_allow_are_as_many_as_they_do():
    found, editor = editor_of(1)
    for other in (1, 2, 3):
        editor.add(editor.merge(0, other))
    n_others = len(members(editor.state, 4))
    results = with_state(found, editor.state, editor.log)
    with pytest.warns(UserWarning, match="instead of 59: more would separate"):
        labels, _ = results.recut(59)
    assert len(set(labels.tolist())) <= 1 + n_others
    editor.add(editor.merge(0, 4))
    with pytest.warns(UserWarning, match="^1 cluster instead of 3: more would separate what"):
        with_state(found, editor.state, editor.log).recut(3)
    editor.add(editor.shelve(range(60)))
    results = with_state(found, editor.state, editor.log)
    with pytest.warns(UserWarning, match="no clusters instead of 3"):
        assert set(results.recut(3)[0].tolist()) == {-1}


@pytest.mark.parametrize("k", [-1, 0, 61, 1000])
def test_numbers_of_clusters_that_no_run_has_are_refused_before_and_after_edits(k):
    found, editor = editor_of(1)
    for edit in (editor.name(0, "cats"), editor.merge(0, 1), editor.shelve(range(60))):
        editor.add(edit)
        for results in (found, with_state(found, editor.state, editor.log)):
            with pytest.raises(ValueError, match=f"k must be between 1 and 60, .* got {k}"):
                results.recut(k)


def test_corrections_are_not_blamed_for_samples_that_are_not_there():
    vectors = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    vectors[-2:] = vectors[0]
    found, editor = run_of(vectors, 3)
    editor.add(editor.name(0, "cats"))
    with pytest.warns(UserWarning, match="18 clusters instead of 20: there are only 18 different"):
        with_state(found, editor.state, editor.log).recut(20)
    editor.add(editor.shelve([5]))
    message = "17 clusters instead of 18: there are only 17 different samples that are not unsure"
    with pytest.warns(UserWarning, match=message):
        with_state(found, editor.state, editor.log).recut(18)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 30))
def test_what_is_joined_first_merges_as_in_the_tree_of_the_run(seed, n):
    rng = np.random.default_rng(seed)
    found = random_tree(rng, n)
    together = np.arange(n) % min(5, n)
    chain = MergeTree(n, *_chained(together))
    tree = joined_first(chain, found, together)
    np.testing.assert_array_equal(
        tree.cut(tree.n_different), np.unique(together, return_inverse=True)[1].reshape(-1)
    )
    np.testing.assert_array_equal(tree.cut(1), np.zeros(n))
    for node in range(chain.n_copies):  # below, leaves are joined by a branch of the other tree
        inside = _leaves(tree, n + node)
        spanned = min(
            (_leaves(found, top) for top in range(n, 2 * n - 1) if inside <= _leaves(found, top)),
            key=len,
        )
        group = {int(one) for one in np.flatnonzero(together == together[min(inside)])}
        assert inside == spanned & group


def _chained(together):
    n, top, merges = len(together), {}, []
    for sample in np.flatnonzero(together != np.arange(n)).tolist():
        first = int(together[sample])
        merges.append([top.get(first, first), sample])
        top[first] = n + len(merges) - 1
    n_copies = len(merges)
    tops = [top.get(first, first) for first in sorted(set(together.tolist()))]
    while len(tops) > 1:
        merges.append([tops.pop(0), tops.pop(0)])
        tops.insert(0, n + len(merges) - 1)
    return np.array(merges), np.zeros(n - 1), n_copies


def _leaves(tree, node):
    if node < tree.n_samples:
        return {int(node)}
    return set.union(*(_leaves(tree, one) for one in tree.merges[node - tree.n_samples]))


def test_a_unit_joins_the_groups_that_it_is_in():
    joins = Joins.none(6).join(np.array([0, 1]), np.array([0, 1]))
    joins = joins.join(np.array([4, 5]), np.array([0, 1]))
    assert joins.sets(np.arange(6)).tolist() == [0, 0, 2, 3, 4, 4]
    assert joins.sets(np.array([0, 1, 2, 3, 1, 5])).tolist() == [0, 0, 2, 3, 0, 0]
    assert joins.leave(np.array([1])).sets(np.arange(6)).tolist() == [0, 1, 2, 3, 4, 4]
    assert joins.leave(np.array([2])) is joins


def test_the_result_keeps_its_graph():
    found, editor = editor_of(0)
    editor.add(editor.merge(0, 1))
    edited = edited_result(found.result, found.config, editor.state)
    assert edited.graph is found.result.graph
