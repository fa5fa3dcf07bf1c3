"""Ensembles: each network as it would be alone, what they have in common, how they vote."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward.assign import label_confidence
from jule.images import load_dataset
from jule.joint import Config, finish, init_network, joint_learning, preset, represent
from jule.joint.clustering import cut_tree, initial_clusters, merge_tree
from jule.joint.ensemble import cluster_members, common_clusters, member_votes
from jule.joint.state import load_state, save_state

TINY = Config(n_clusters=4, n_periods=2, rounds=2, min_images=100, epochs=0.1, ensemble=3)
VECTORS = np.concatenate(
    [np.random.default_rng(c).normal(3 * c, 1.0, (25, 4)) for c in range(3)]
).astype(np.float32)
GENTLE = preset("default", of="vectors", n_clusters=3, ensemble=2)


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits").images[:90]


def run(samples, config, **options):
    return list(joint_learning(samples, init_network(samples, config), config, **options))


@pytest.fixture(scope="module")
def whole(digits):
    return run(digits, TINY)


def test_every_network_is_trained_as_it_would_be_alone(digits, whole):
    for number in range(TINY.ensemble):
        alone = run(digits, replace(TINY, ensemble=1, seed=TINY.seed + number))
        same = [state for state in whole if state.member == number]
        assert len(same) == len(alone) == 4
        for one, other in zip(same, alone, strict=True):
            np.testing.assert_array_equal(one.labels, other.labels)
            np.testing.assert_array_equal(one.representation.vectors, other.representation.vectors)
        network = same[-1].network
        for name, value in alone[-1].network.items():
            own = name.replace("body.", f"body.members.{number}.")
            np.testing.assert_array_equal(network[own], value)


def test_k_means_draws_the_initial_clusters_of_each_network(digits):
    config = replace(TINY, init="kmeans", rounds=1)
    found = [state for state in run(digits, config) if state.member == 1]
    alone = run(digits, replace(config, ensemble=1, seed=1))
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)


def test_the_last_period_clusters_all_representations_side_by_side(digits, whole):
    *_, before, last = whole
    assert (before.member, last.member) == (2, 3)
    assert [period.member for period in last.history] == [0] * 4 + [1] * 4 + [2] * 4 + [3]
    ends = [state for state in whole if state.ended and state.round == 1][:3]
    parts = [state.representation.vectors for state in ends]
    joint = last.representation.vectors
    np.testing.assert_allclose(joint, np.hstack(parts) / np.sqrt(3), atol=1e-6)
    period = last.history[-1]
    assert (period.steps, period.images, period.loss_first) == (0, 0, None)
    assert period.clusters_after == last.n_clusters == 4
    cuts = [cut_tree(tree, 4, TINY) for tree in last.member_trees]
    assert period.clusters_before == len(set(zip(*(cut.tolist() for cut in cuts), strict=True)))


def test_rc_is_the_clustering_of_the_joint_representation(whole):
    last = whole[-1]
    result = finish(last, TINY)
    joint = represent(last.representation.vectors, TINY)
    tree = merge_tree(joint, initial_clusters(joint, TINY), TINY)
    np.testing.assert_array_equal(result.labels_rc, cut_tree(tree, 4, TINY))
    np.testing.assert_array_equal(result.labels_sf, last.labels)
    assert len(result.member_trees) == 3


def test_confidence_counts_how_many_networks_agree(whole):
    result = finish(whole[-1], TINY)
    agree = np.mean([vote == result.labels for vote in result.votes], axis=0)
    graphs = label_confidence(result.graphs, result.labels)
    n = len(result.graphs)
    np.testing.assert_allclose(result.confidence, (n * graphs + agree) / (n + 1))
    np.testing.assert_allclose(result.confidence_in(result.labels), result.confidence)


@pytest.mark.parametrize("done", [1, 2, 4, 5, 8, 12, 13])
def test_a_run_resumed_after_any_period_of_any_network_ends_the_same(digits, whole, tmp_path, done):
    save_state(tmp_path, whole[done - 1], {})
    rest = run(digits, TINY, state=load_state(tmp_path, {}))
    assert len(rest) == len(whole) - done
    last = rest[-1] if rest else load_state(tmp_path, {})
    np.testing.assert_array_equal(last.labels, whole[-1].labels)
    for name in whole[-1].network:
        np.testing.assert_array_equal(last.network[name], whole[-1].network[name])
    if not rest:  # killed before the results were written
        vectors = whole[-1].representation.vectors
        expected = finish(whole[-1], TINY)
        result = finish(last, TINY, embedding=vectors, samples=digits)
        np.testing.assert_array_equal(result.labels, expected.labels)
        for one, two in zip(result.member_trees, expected.member_trees, strict=True):
            np.testing.assert_array_equal(one.merges, two.merges)


def test_vectors_get_several_heads():
    last = run(VECTORS, GENTLE)[-1]
    result = finish(last, GENTLE, samples=VECTORS)
    assert result.embedding.shape == (75, 10)
    assert result.n_clusters == 3


def test_an_open_number_of_clusters_is_suggested_for_all_networks_together():
    config = replace(GENTLE, n_clusters=None)
    last = run(VECTORS, config)[-1]
    result = finish(last, config, samples=VECTORS)
    assert result.choice.k == result.n_clusters == len(np.unique(result.labels_sf))
    assert last.n_clusters >= result.n_clusters


def test_one_cluster_needs_no_training(digits):
    config = replace(TINY, n_clusters=1)
    result = finish(run(digits[:20], config)[-1], config)
    assert not result.labels.any()
    assert result.confidence.min() == 1


def test_copies_and_as_many_clusters_as_samples(digits):
    config = replace(TINY, n_clusters=6, ensemble=2)
    result = finish(run(digits[:6], config)[-1], config)
    assert sorted(result.labels.tolist()) == list(range(6))
    images = np.repeat(digits[:20], 2, axis=0)
    result = finish(run(images, config)[-1], config, first_copies=np.arange(40) // 2 * 2)
    assert (result.labels[::2] == result.labels[1::2]).all()


def test_a_network_with_other_members_is_refused(digits):
    network = init_network(digits, replace(TINY, ensemble=1))
    with pytest.raises(ValueError, match="ensemble=3, but the network has 1"):
        next(joint_learning(digits, network, TINY))


def test_progress_names_the_networks(digits):
    calls = []
    run(digits[:40], TINY, progress=lambda *call: calls.append(call))
    stages = {stage for stage, _ in calls}
    assert {"network 1 of 3, period 1 of 4, training", "all networks, embedding"} <= stages
    assert {"network 3 of 3, period 4 of 4, neighbours", "all networks, neighbours"} <= stages
    overall = [share for stage, share in calls if stage == "all periods"]
    assert overall == sorted(overall)
    assert overall[-1] == 1


# What the networks have in common, and how they vote


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_common_clusters_are_those_that_share_all_labels(seed, count):
    rng = np.random.default_rng(seed)
    labels = [rng.integers(0, 4, 25) for _ in range(count)]
    common = common_clusters(labels)
    assert sorted(set(common.tolist())) == list(range(common.max() + 1))
    for i in range(25):
        for j in range(25):
            together = all(each[i] == each[j] for each in labels)
            assert (common[i] == common[j]) == together


def test_each_part_of_the_columns_is_a_network():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(60, 3)).astype(np.float32) for _ in range(2)]
    config = Config(ensemble=2)
    for tree, part in zip(cluster_members(np.hstack(parts), config), parts, strict=True):
        own = represent(part, config)
        expected = merge_tree(own, initial_clusters(own, config), config)
        np.testing.assert_array_equal(tree.merges, expected.merges)


def test_a_network_with_the_same_clusters_agrees_whatever_their_numbers():
    (tree,) = cluster_members(VECTORS, Config())
    for order in ([0, 1, 2], [2, 0, 1]):
        labels = np.array(order, np.int32)[tree.cut(3, 2)]
        np.testing.assert_array_equal(member_votes([tree], labels)[0], labels)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_votes_are_matched_one_to_one_largest_overlap_first(seed):
    rng = np.random.default_rng(seed)
    tree = cluster_members(rng.normal(size=(30, 2)).astype(np.float32), Config())[0]
    k = int(rng.integers(1, 9))
    labels = rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, 30 - k)]))
    own = tree.cut(k, -(-30 // (20 * k)))
    free, expected = set(range(k)), {}
    shared = {(a, b): int(((own == a) & (labels == b)).sum()) for a in range(k) for b in range(k)}
    for (a, b), count in sorted(shared.items(), key=lambda one: -one[1]):
        if count and a not in expected and b in free:
            expected[a] = b
            free.remove(b)
    votes = member_votes([tree], labels)[0]
    np.testing.assert_array_equal(votes, [expected.get(a, -1) for a in own.tolist()])
