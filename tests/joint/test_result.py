"""The end of a run: SF and RC, the choice between them, recuts, edited labels, exact copies."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward.assign import label_confidence, modularity
from jule.joint.clustering import examine_appearance, examine_inputs
from jule.joint.config import Config
from jule.joint.result import (
    cluster_shares,
    finish,
    join_copies,
    recut,
    recut_names,
    with_labels,
)
from jule.joint.state import State

CENTRES = np.eye(4, dtype=np.float32)
TRUE = np.repeat(np.arange(4), 30).astype(np.int32)
BAD = (np.arange(120) % 4).astype(np.int32)
FOUR = Config(n_clusters=4)


def around_centres(per_centre=30, spread=0.05, seed=0):
    rng = np.random.default_rng(seed)
    vectors = np.repeat(CENTRES, per_centre, axis=0)
    vectors = vectors + rng.normal(0, spread, vectors.shape).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


CLEAR, WIDE = around_centres(), around_centres(spread=0.5)  # so wide that merging cuts groups apart


@cache
def better_than_rc():
    """The clusters of RC, with every sample moved to the cluster it has most affinity to."""
    found = finish(State(labels=BAD), FOUR, embedding=WIDE)
    graph, labels = found.graph, found.labels_rc
    for _ in range(3):
        shares = np.zeros((120, 4))
        for sample in range(120):
            for other, weight in zip(graph.indices[sample], graph.weights[sample], strict=True):
                shares[sample, labels[other]] += weight
                shares[other, labels[sample]] += weight
        labels = shares.argmax(axis=1).astype(np.int32)
    return labels


def result_with(chosen):
    """A result whose labels are SF, RC or edited by hand."""
    if chosen == "sf":
        return finish(State(labels=better_than_rc()), FOUR, embedding=WIDE)
    found = finish(State(labels=BAD), FOUR, embedding=WIDE)
    return found if chosen == "rc" else with_labels(found, TRUE, FOUR)


def test_a_bad_sf_gives_way_to_rc():
    result = finish(State(labels=BAD), FOUR, embedding=CLEAR)
    assert result.chosen == "rc"
    np.testing.assert_array_equal(result.labels, result.labels_rc)
    np.testing.assert_array_equal(result.labels, TRUE)
    np.testing.assert_array_equal(result.labels_sf, BAD)
    np.testing.assert_allclose(result.confidence, 1.0, atol=1e-6)


def test_a_better_sf_is_kept():
    better = better_than_rc()
    result = finish(State(labels=better), FOUR, embedding=WIDE)
    assert modularity(result.graph, better) > modularity(result.graph, result.labels_rc)
    assert result.chosen == "sf"
    np.testing.assert_array_equal(result.labels, better)


@pytest.mark.parametrize("n_clusters_sf", [2, 4, 7])
def test_with_k_open_there_are_as_many_clusters_as_suggested_whatever_sf_had(n_clusters_sf):
    sf = (np.arange(120) * n_clusters_sf // 120).astype(np.int32)
    result = finish(State(labels=sf), Config(), embedding=CLEAR)
    assert result.choice.k == 4
    assert result.n_clusters == 4
    assert len(np.unique(result.labels_sf)) == 4
    np.testing.assert_array_equal(result.labels, TRUE)


def test_a_state_without_representation_needs_the_embedding():
    with pytest.raises(ValueError, match="pass the embedding"):
        finish(State(labels=TRUE), FOUR)


# Recuts


@pytest.mark.parametrize("chosen", ["sf", "rc", "edited"])
def test_the_recut_at_k_is_the_labels(chosen):
    result = result_with(chosen)
    assert result.chosen == chosen
    np.testing.assert_array_equal(recut(result, 4, FOUR), result.labels)
    # Also by the tree alone, apart from the order of the numbers.
    pairs = set(zip(result.tree.cut(4).tolist(), result.labels.tolist(), strict=True))
    assert len(pairs) == 4


@pytest.mark.parametrize("chosen", ["sf", "rc", "edited"])
@pytest.mark.parametrize("k", [1, 2, 9, 120])
def test_every_recut_has_k_clusters_without_gaps(chosen, k):
    assert np.unique(recut(result_with(chosen), k, FOUR)).tolist() == list(range(k))


def test_a_recut_outside_of_the_tree_is_refused():
    for k in (0, 121):
        with pytest.raises(ValueError, match="between 1 and 120"):
            recut(result_with("rc"), k, FOUR)


@pytest.mark.parametrize("chosen", ["sf", "rc", "edited"])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_a_name_stays_with_the_largest_part_of_its_cluster(chosen, k):
    result, config = result_with(chosen), Config(n_clusters=4, min_cluster_size=1)
    names = {cluster: f"was {cluster}" for cluster in range(4)}
    labels, found = recut(result, k, config), recut_names(result, names, k, config)
    assert len(set(found.values())) == len(found) == min(k, 4)
    for cluster, name in found.items():
        before = int(name.removeprefix("was "))
        assert ((labels == cluster) & (result.labels == before)).any()


def test_names_are_unchanged_where_k_is():
    assert recut_names(result_with("rc"), {2: "two"}, 4, FOUR) == {2: "two"}
    assert recut_names(result_with("rc"), {}, 9, FOUR) == {}


# Edited labels


def test_confidence_follows_edited_labels_and_is_1_for_what_was_moved_by_hand():
    found = result_with("rc")
    by_hand = np.arange(120) < 5
    edited = with_labels(found, TRUE, FOUR, by_hand=by_hand)
    expected = label_confidence([found.graph], TRUE)
    np.testing.assert_array_equal(edited.confidence[5:], expected[5:])
    assert (edited.confidence[:5] == 1).all()
    assert edited.embedding is found.embedding
    np.testing.assert_array_equal(edited.labels_rc, found.labels_rc)


# Exact copies


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=30))
@settings(deadline=None)
def test_joined_copies_share_the_label_of_their_original_without_gaps(pairs):
    labels = np.unique([label for label, _ in pairs], return_inverse=True)[1].astype(np.int32)
    contents = [content for _, content in pairs]
    copies = np.array([contents.index(content) for content in contents])
    found = join_copies(labels.reshape(-1), copies)
    np.testing.assert_array_equal(found, found[copies])
    assert np.unique(found).tolist() == list(range(found.max() + 1))
    originals = np.unique(copies)
    together = set(zip(found[originals].tolist(), labels[originals].tolist(), strict=True))
    assert len(together) == found.max() + 1


def test_copies_have_one_label_in_every_result_and_every_recut():
    copies = np.arange(120)
    copies[[1, 40, 70]] = 0  # from three groups
    result = finish(State(labels=BAD), FOUR, embedding=WIDE, first_copies=copies)
    for labels in (result.labels, result.labels_sf, result.labels_rc, result.tree.cut(100)):
        assert len(set(labels[[0, 1, 40, 70]].tolist())) == 1


# New samples


def test_new_samples_go_to_the_cluster_around_them():
    result = finish(State(labels=TRUE), FOUR, embedding=CLEAR)
    shares = cluster_shares(result, FOUR, CENTRES)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), result.labels[::30])


# Fewer different samples than clusters


def copies_of(n_different, n=120):
    """WIDE with only some different samples, repeated in turn, and the original of each."""
    first = np.arange(n) % n_different
    return WIDE[np.linspace(0, 119, n_different).astype(int)][first], first


def test_more_clusters_than_different_samples():
    vectors, copies = copies_of(2)
    with pytest.warns(UserWarning, match="^2 clusters instead of 5: there are only 2 different"):
        result = finish(
            State(labels=(np.arange(120) % 5).astype(np.int32)),
            Config(n_clusters=5),
            embedding=vectors,
            first_copies=copies,
        )
    assert result.n_clusters == 2
    for labels in (result.labels, result.labels_rc):
        assert np.unique(labels).tolist() == [0, 1]
        np.testing.assert_array_equal(labels, labels[copies])


def test_the_suggestion_is_at_most_the_number_of_different_samples():
    vectors, copies = copies_of(3)
    noisy = vectors + np.random.default_rng(0).normal(0, 1e-6, vectors.shape).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody asked for a number
        result = finish(State(labels=BAD), Config(), embedding=noisy, first_copies=copies)
    assert result.n_clusters == result.choice.k <= 3
    assert all(k <= 3 for k, _ in result.suggestions)


@pytest.mark.parametrize("k", [2, 30, 59, 60, 61, 100, 120])
@pytest.mark.filterwarnings("ignore:.*there are only 60 different")
def test_recuts_have_as_many_clusters_as_there_can_be(k):
    vectors, copies = copies_of(60)
    result = finish(State(labels=BAD), FOUR, embedding=vectors, first_copies=copies)
    config = Config(n_clusters=4, min_cluster_size=1)
    labels = recut(result, k, config)
    assert np.unique(labels).tolist() == list(range(min(k, 60)))
    np.testing.assert_array_equal(labels, labels[copies])
    names = recut_names(result, {0: "one", 1: "two"}, k, config)
    assert all(0 <= cluster < min(k, 60) for cluster in names)


def test_a_recut_says_once_that_there_are_fewer_clusters():
    vectors, copies = copies_of(60)
    result = finish(State(labels=BAD), FOUR, embedding=vectors, first_copies=copies)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recut(result, 100, FOUR)
        recut_names(result, {0: "one"}, 100, FOUR)
    assert [str(one.message) for one in told] == [
        "60 clusters instead of 100: there are only 60 different samples"
    ]


def test_k_clusters_where_copies_would_have_had_clusters_of_their_own():
    # Copies whose representations differ: the cut puts them into different clusters.
    copies = np.arange(120)
    copies[60:] = np.arange(60)
    result = finish(
        State(labels=BAD), Config(n_clusters=50), embedding=WIDE, first_copies=copies
    )  # fmt: skip
    assert result.n_clusters == 4  # as many as the state has
    state = State(labels=(np.arange(120) % 50).astype(np.int32))
    result = finish(state, Config(n_clusters=50), embedding=WIDE, first_copies=copies)
    assert result.n_clusters == 50
    np.testing.assert_array_equal(result.labels, result.labels[copies])


# Clusters without learning


def inputs_with(vectors):
    """A state whose inputs are given vectors."""
    return State(labels=BAD, inputs=examine_inputs(vectors, replace(FOUR, preparation="none")))


def test_linkage_replaces_what_learning_made_worse():
    noise = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    found = finish(inputs_with(CLEAR), FOUR, embedding=noise)
    assert found.chosen == "linkage"
    np.testing.assert_array_equal(found.labels, TRUE)
    np.testing.assert_array_equal(found.tree.cut(4), TRUE)
    assert found.n_clusters == 4


def test_linkage_does_not_replace_what_learning_made_better():
    found = finish(inputs_with(WIDE), FOUR, embedding=CLEAR)
    assert found.chosen == "rc"
    np.testing.assert_array_equal(found.labels, TRUE)


def test_confidence_counts_the_learned_graph_as_far_as_the_inputs_bear_it_out():
    found = finish(inputs_with(WIDE), FOUR, embedding=CLEAR)
    learned, before = (label_confidence([graph], found.labels) for graph in found.graphs)
    inner, outer = (modularity(graph, found.labels) for graph in found.graphs)
    weight = (outer / inner) ** 4
    np.testing.assert_allclose(found.confidence, weight * learned + (1 - weight) * before)
    assert before.mean() < found.confidence.mean() < learned.mean()


def test_inputs_are_examined_again_for_a_state_that_was_read_from_a_file():
    config = replace(FOUR, preparation="none")
    kept = finish(inputs_with(WIDE), FOUR, embedding=CLEAR)
    again = finish(State(labels=BAD), config, embedding=CLEAR, samples=WIDE)
    np.testing.assert_array_equal(kept.confidence, again.confidence)
    assert finish(State(labels=BAD), config, embedding=CLEAR).input_neighbors is None


def test_linkage_keeps_copies_together():
    vectors = np.concatenate([CLEAR, CLEAR[:3]])
    noise = np.random.default_rng(1).normal(size=(123, 4)).astype(np.float32)
    copies = np.concatenate([np.arange(120), np.arange(3)])
    inputs = examine_inputs(vectors, replace(FOUR, preparation="none"))
    state = State(labels=np.append(BAD, BAD[:3]), inputs=inputs)
    found = finish(state, FOUR, embedding=noise, first_copies=copies)
    assert found.chosen == "linkage"
    np.testing.assert_array_equal(found.labels[120:], found.labels[:3])


def photographs(n=40, side=16, seed=0):
    """Pictures of two colours, whose place in the picture is random."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (n, side, side, 3), np.uint8)
    for number, image in enumerate(images):
        y, x = rng.integers(0, side // 2, 2)
        image[y : y + side // 2, x : x + side // 2, number % 2] = 255
    return images


def test_pictures_in_colour_are_given_by_what_they_look_like():
    images = photographs()
    colours = np.arange(40, dtype=np.int32) % 2
    config = Config(n_clusters=2)
    found = finish(
        State(labels=colours),
        config,
        embedding=around_centres(10)[:40],
        samples=images,
    )
    looks = examine_appearance(images, config)
    np.testing.assert_array_equal(found.input_neighbors.indices, looks.neighbors.indices)
    assert found.input_sigma2 == looks.graph.sigma2
    assert modularity(looks.graph, colours) > 0.3
    np.testing.assert_allclose(found.confidence, found.confidence_in(found.labels))


def test_grey_pictures_are_given_by_their_pixels():
    grey = photographs().max(axis=3)
    found = finish(State(labels=TRUE[::3]), FOUR, embedding=around_centres(10), samples=grey)
    inputs = examine_inputs(grey, FOUR)
    np.testing.assert_array_equal(found.input_neighbors.indices, inputs.neighbors.indices)
