"""Maps of results: stages of a tree, and what is learned from them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from jule.joint import Config, State, finish
from jule.joint.lowdim import learn_map, requested_map, stages_of_tree


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(4 * k, 1, (30, 5)) for k in range(3)]).astype(np.float32)
    state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 30))
    return finish(state, Config(n_clusters=3), embedding=points)


def test_stages_go_from_initial_clusters_to_the_labels(result):
    stages = stages_of_tree(result.tree, result.labels, eta=0.2)
    counts = [int(stage.max()) + 1 for stage in stages]
    assert counts[0] == result.tree.n_initial
    assert counts[-1] == 3
    np.testing.assert_array_equal(stages[-1], result.labels)
    for before, after in pairwise(counts[:-1]):
        assert after == before - np.ceil(0.2 * before)
    for finer, coarser in pairwise(stages):
        pairs = np.unique(np.stack([finer, coarser]), axis=1)
        assert pairs.shape[1] == finer.max() + 1  # each cluster lies in one of the next stage


def test_one_cluster_has_stages_too(result):
    stages = stages_of_tree(result.tree, np.zeros(90, np.int32))
    assert stages[-1].max() == 0


def test_a_map_is_learned_only_if_it_is_asked_for(result, monkeypatch):
    monkeypatch.setattr("jule.joint.lowdim.FEWEST_STEPS", 3)
    assert requested_map(result, Config()) is None
    seen = []
    found = requested_map(
        result, Config(n_components=3), progress=lambda stage, share: seen.append((stage, share))
    )
    assert found.positions.shape == (90, 3)
    assert found.positions.dtype == np.float32
    assert seen[-1] == ("map", 1.0)


def test_neighbours_before_learning_count(result):
    without = learn_map(result, n_steps=3).positions
    turned = replace(result.neighbors, indices=result.neighbors.indices[:, ::-1].copy())
    both = learn_map(replace(result, input_neighbors=turned), n_steps=3).positions
    assert not np.array_equal(without, both)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", 10**6])
def test_the_number_of_dimensions_is_checked(wrong):
    with pytest.raises(ValueError, match="n_components must be"):
        Config(n_components=wrong)
