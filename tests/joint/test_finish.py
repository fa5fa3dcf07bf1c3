"""The end of a run: both results, and the one that is chosen without labels."""

import numpy as np
import pytest

from jule.forward import affinity_graph, nearest_neighbors
from jule.forward.assign import modularity
from jule.joint.config import Config
from jule.joint.finish import cluster_shares, finish
from jule.joint.state import State

CENTRES = np.eye(4, dtype=np.float32)


def around_centres(per_centre=30, spread=0.05, seed=0):
    rng = np.random.default_rng(seed)
    vectors = np.repeat(CENTRES, per_centre, axis=0)
    vectors = vectors + rng.normal(0, spread, vectors.shape).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


TRUE = np.repeat(np.arange(4), 30).astype(np.int32)


def test_a_bad_sf_gives_way_to_rc():
    bad = (np.arange(120) % 4).astype(np.int32)
    result = finish(around_centres(), State(labels=bad), Config(n_clusters=4))
    assert result.chosen == "rc"
    np.testing.assert_array_equal(result.labels, result.labels_rc)
    np.testing.assert_array_equal(result.labels, TRUE)
    np.testing.assert_array_equal(result.labels_sf, bad)
    np.testing.assert_allclose(result.confidence, 1.0, atol=1e-6)


def test_a_better_sf_is_kept():
    vectors = around_centres(spread=0.5)  # so wide that merging cuts one of the groups apart
    graph = affinity_graph(nearest_neighbors(vectors, 20))
    result = finish(vectors, State(labels=TRUE), Config(n_clusters=4))
    assert modularity(graph, TRUE) > modularity(graph, result.labels_rc)
    assert result.chosen == "sf"
    np.testing.assert_array_equal(result.labels, TRUE)


def test_an_open_number_of_clusters_is_suggested():
    result = finish(around_centres(), State(labels=TRUE), Config())
    assert result.choice is not None
    assert result.choice.k == 4
    assert result.labels_rc.max() + 1 == 4


@pytest.mark.parametrize("k", [2, 4])
def test_the_tree_can_be_cut_anywhere(k):
    result = finish(around_centres(), State(labels=TRUE), Config(n_clusters=4))
    assert len(np.unique(result.tree.cut(k))) == k


def test_new_samples_go_to_the_cluster_around_them():
    config = Config(n_clusters=4)
    result = finish(around_centres(), State(labels=TRUE), config)
    shares = cluster_shares(result, config, CENTRES)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), result.labels[::30])
