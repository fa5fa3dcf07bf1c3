"""Suggestions against plain loops, and what a person said is not suggested again."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jule.corrections import Base, PictureIndex
from jule.corrections.apply import start
from jule.corrections.editor import Editor
from jule.corrections.suggest import doubtful, near_duplicates, same_pairs, strangers
from jule.forward import affinity_graph, agglomerate, nearest_neighbors


def scene(seed, n=40, k=5):
    """Random points, their graph and an editor of their clusters."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2)) + 4 * rng.integers(3, size=(n, 1))
    neighbors = nearest_neighbors(points, 6)
    tree = agglomerate(points, n_neighbors=6)
    labels = tree.cut(k)
    index = PictureIndex([f"{number}.jpg" for number in range(n)])
    base = Base(labels, tree, index, np.arange(n), "one")
    return affinity_graph(neighbors), neighbors, Editor(base, points)


def dense(graph):
    w = np.zeros((len(graph), len(graph)))
    for x in range(len(graph)):
        w[x, graph.indices[x]] = graph.weights[x]
    return w


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 9))
def test_pairs_are_in_the_order_of_their_mean_affinity(seed, k):
    graph, _, editor = scene(seed, k=k)
    labels, w = editor.state.labels, dense(graph)
    expected = {}
    for a in range(k):
        for b in range(a):
            both = np.ix_(labels == a, labels == b), np.ix_(labels == b, labels == a)
            mean = (w[both[0]].mean() + w[both[1]].mean()) / 2
            if mean > 0:
                expected[frozenset((a, b))] = mean
    found = same_pairs(graph, editor.base, editor.state)
    assert [pair.affinity for pair in found] == sorted(
        (pair.affinity for pair in found), reverse=True
    )
    assert {frozenset((pair.label, pair.other)) for pair in found} == set(expected)
    for pair in found:
        assert pair.affinity == pytest.approx(expected[frozenset((pair.label, pair.other))])
    assert same_pairs(graph, editor.base, editor.state, count=1) == found[:1]


def test_what_was_refused_split_or_kept_apart_is_not_suggested_again():
    graph, _, editor = scene(1, k=6)

    def suggested():
        found = same_pairs(graph, editor.base, editor.state, editor.log.in_effect)
        return [frozenset((pair.label, pair.other)) for pair in found]

    before = same_pairs(graph, editor.base, editor.state)
    first = frozenset((before[0].label, before[0].other))
    assert suggested()[0] == first
    editor.add(editor.refuse(before[0].label, before[0].other))
    assert first not in suggested()
    editor.undo()
    a = int(np.flatnonzero(editor.state.labels == before[0].label)[0])
    b = int(np.flatnonzero(editor.state.labels == before[0].other)[0])
    editor.add(editor.cannot_link([a], [b]))
    assert first not in suggested()
    editor.undo()
    label = before[0].label
    editor.add(editor.split(label))
    assert frozenset((label, editor.state.next_label - 1)) not in suggested()
    editor.undo()
    some = np.flatnonzero(editor.state.labels == label)[:3]
    editor.add(editor.move(some, None))  # a split that follows no branch
    new = frozenset((label, editor.state.next_label - 1))
    assert new not in suggested()
    found = same_pairs(graph, editor.base, replace(editor.state, different=()))
    assert new in [frozenset((pair.label, pair.other)) for pair in found]
    editor.undo()
    editor.add(editor.merge(before[0].label, before[0].other))
    assert all(before[0].other not in pair for pair in suggested())


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 6))
@example(43, 2)  # a share of 0 that rounding made negative
def test_shares_of_branches_are_those_of_plain_loops(seed, k):
    graph, _, editor = scene(seed, k=k)
    base, labels, w = editor.base, editor.state.labels, dense(graph)
    starts, stops = base.intervals
    n = len(labels)
    for found in strangers(graph, base, editor.state):
        places = starts[:n]
        inside = (places >= starts[found.branch]) & (places < stops[found.branch])
        cluster = labels == found.label
        assert inside.sum() == found.size
        assert not (inside & ~cluster).any()
        assert 2 * inside.sum() <= cluster.sum()
        rest = cluster & ~inside
        stays = w[np.ix_(inside, rest)].sum() + w[np.ix_(rest, inside)].sum()
        leaves = w[np.ix_(inside, ~inside)].sum() + w[np.ix_(~inside, inside)].sum()
        assert found.share >= 0
        assert found.share == pytest.approx(stays / leaves if leaves > 0 else 0.0, abs=1e-9)


def test_two_groups_in_one_cluster_are_strangers_and_split_off_exactly():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(12, 2)) + 40])
    tree, graph = agglomerate(points, n_neighbors=5), affinity_graph(nearest_neighbors(points, 5))
    index = PictureIndex([f"{number}.jpg" for number in range(42)])
    base = Base(np.zeros(42, np.int32), tree, index, np.arange(42), "one")
    editor = Editor(base, points)
    (found,) = strangers(graph, base, editor.state)
    assert found.share == 0.0
    editor.add(editor.split(0, found.branch))
    expected = (np.arange(42) >= 30) if found.size == 12 else None
    if expected is None:  # a branch of the larger group, where that has none of its own outside
        assert (editor.state.labels != 0).sum() == found.size
    else:
        np.testing.assert_array_equal(editor.state.labels != 0, expected)


def test_doubtful_pictures_are_open_and_unsure():
    _, _, editor = scene(2)
    editor.add(editor.shelve([3]))
    editor.add(editor.move([4], 0))
    sure = np.linspace(0, 1, 40)
    assert doubtful(editor.state, sure, 3).tolist() == [0, 1, 2]
    assert not set(doubtful(editor.state, sure, 40).tolist()) & {3, 4}
    assert start(editor.base).has_shelf is False


def test_stacks_are_all_near_each_other_and_within_clusters():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 8)) * 10
    burst = centres[:3, None] + rng.normal(size=(3, 4, 8)) * 0.01
    points = np.concatenate([burst.reshape(-1, 8), centres[3:]])
    labels = np.zeros(len(points), int)
    labels[3] = 1  # one of the first burst is in another cluster
    stacks = near_duplicates(nearest_neighbors(points, 10), labels)
    assert sorted(map(sorted, stacks)) == [[0, 1, 2], [4, 5, 6, 7], [8, 9, 10, 11]]
    sharp = np.arange(len(points))
    best = near_duplicates(nearest_neighbors(points, 10), labels, sharp)
    assert sorted(stack[0] for stack in best) == [2, 7, 11]


def test_a_chain_of_small_steps_is_not_one_stack():
    chain = np.arange(12)[:, None] * 1.0
    others = 1000.0 + 50 * np.arange(12)[:, None]
    stacks = near_duplicates(
        nearest_neighbors(np.concatenate([chain, others]), 12), np.zeros(24, int)
    )
    assert all(np.ptp(stack) <= 3 for stack in stacks if max(stack) < 12)
