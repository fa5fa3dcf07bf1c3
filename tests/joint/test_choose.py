"""The suggested number of clusters."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from jule.forward import MergeTree, affinity_graph, agglomerate, nearest_neighbors
from jule.joint import Choice, choose_n_clusters
from jule.joint.choose import considered
from jule.joint.quality import Space


def choice_for(samples, n_neighbors=20):
    space = Space.of(samples, affinity_graph(nearest_neighbors(samples, n_neighbors)))
    return choose_n_clusters(agglomerate(samples, n_neighbors=n_neighbors), space)


def blobs(k, spread=0.1, size=60, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.permutation(np.stack(np.meshgrid(range(4), range(4)), -1).reshape(-1, 2))[:k]
    return np.concatenate([rng.normal(centre, spread, (size, 2)) for centre in centres])


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_well_separated_groups_are_counted(k):
    choice = choice_for(blobs(k))
    assert choice.k == k
    assert choice.candidates[0][0] == k


def test_it_is_surer_of_clear_groups_than_of_one_cloud():
    clear = choice_for(blobs(4, spread=0.05))
    cloud = choice_for(np.random.default_rng(0).normal(size=(300, 2)))
    assert 0 <= cloud.sureness <= 1
    assert clear.sureness > cloud.sureness


def test_outliers_do_not_count():
    far_pairs = np.array([[9.0, 9.0], [9.01, 9.0], [-9.0, 9.0], [-9.0, 9.01]])
    choice = choice_for(np.concatenate([blobs(3), far_pairs]))
    assert choice.k == 3


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_tiny_sets_get_some_answer(n):
    samples = np.arange(n, dtype=float)[:, None] ** 2
    choice = choice_for(samples, n_neighbors=1)
    assert 2 <= choice.k <= n


def test_a_tree_without_affinities_gets_some_answer():
    tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.zeros(3))
    space = Space.of(np.eye(4), affinity_graph(nearest_neighbors(np.eye(4), 1)))
    assert choose_n_clusters(tree, space).k >= 2


def test_numbers_that_constraints_forbid_are_not_suggested():
    samples = blobs(6)
    tree = replace(agglomerate(samples), n_forced=3)  # the last three merges are forbidden
    space = Space.of(samples, affinity_graph(nearest_neighbors(samples, 20)))
    choice = choose_n_clusters(tree, space)
    assert choice.k == 6
    assert min(k for k, _, _ in choice.evidence) == tree.fewest == 4
    assert choose_n_clusters(tree, space, most=3).k == 4


def test_suggestions_are_peaks_of_the_evidence():
    choice = choice_for(blobs(5, spread=0.2))
    scores = {k: separation + inside for k, separation, inside in choice.evidence}
    numbers = list(scores)
    assert numbers == sorted(numbers) == considered(numbers[-1])
    for k, score in choice.candidates:
        place = numbers.index(k)
        assert (
            score == scores[k] >= max(scores[other] for other in numbers[max(0, place - 1) :][:3])
        )
    assert choice.k == max(scores, key=scores.__getitem__) == choice.candidates[0][0]


@pytest.mark.parametrize("most", [2, 29, 30, 31, 45, 400])
def test_numbers_of_clusters_that_are_considered(most):
    found = considered(most)
    assert found[0] == 2
    assert found[-1] == most
    assert found == sorted(set(found))
    assert set(range(2, min(most, 30) + 1)) <= set(found)
    assert len(found) < 61


class Scored:
    """A space in which cuts into a number of clusters have given scores."""

    def __init__(self, scores):
        self.scores = scores

    def measure_all(self, cuts):
        return [self.scores.get(int(labels.max()) + 1, (0.0, 0.0)) for labels in cuts]


@pytest.mark.parametrize(("gap", "k"), [(0.01, 3), (0.03, 6)])
def test_of_peaks_about_equally_high_the_smallest_is_suggested(gap, k):
    n = 40
    merges = np.array([[0, 1], *[[i + 1, n + i - 1] for i in range(1, n - 1)]])
    tree = MergeTree(n, merges, np.linspace(1.0, 0.1, n - 1))
    choice = choose_n_clusters(tree, Scored({3: (1.0 - gap, 0.5), 6: (1.0, 0.5), 9: (0.5, 0.5)}))
    assert choice.k == k
    assert {number for number, _ in choice.candidates} == {3, 6, 9}


@pytest.mark.parametrize(
    ("scores", "k"),
    [
        ({3: (0.4, 0.9), 6: (0.6, 0.85)}, 3),  # the silhouette splits clusters of the graph
        ({3: (0.4, 0.9), 6: (0.6, 0.895)}, 6),  # which are no clusters of the graph here
        ({3: (0.4, 0.9), 4: (0.5, 0.88), 5: (0.6, 0.87)}, 3),  # no peak before the best score
        ({3: (0.4, 0.9), 5: (0.45, 0.895), 9: (0.8, 0.8)}, 3),  # then the graph decides alone
        ({3: (0.4, 0.8), 6: (0.2, 0.9)}, 3),  # nothing is split only because the graph allows it
    ],
)
def test_numbers_that_split_clusters_of_the_graph_are_not_suggested(scores, k):
    n = 40
    merges = np.array([[0, 1], *[[i + 1, n + i - 1] for i in range(1, n - 1)]])
    tree = MergeTree(n, merges, np.linspace(1.0, 0.1, n - 1))
    assert choose_n_clusters(tree, Scored(scores)).k == k


def test_all_numbers_near_a_large_suggestion_are_considered():
    rng = np.random.default_rng(0)
    centres = np.stack(np.meshgrid(range(8), range(8)), -1).reshape(-1, 2)[:61]
    samples = np.concatenate([rng.normal(centre, 0.03, (12, 2)) for centre in centres])
    choice = choice_for(samples, n_neighbors=8)
    assert choice.k == 61
    assert 61 not in considered(choice.evidence[-1][0])


# Choices from a file


def test_a_choice_survives_json():
    choice = Choice(3, 0.5, ((3, 0.9), (7, 0.25)), ((2, 0.1, 0.2), (3, 0.5, 0.4)))
    assert Choice.from_json(json.loads(json.dumps(asdict(choice)))) == choice


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"k": 3},
        {"k": 0, "sureness": 0.5, "candidates": []},
        {"k": 2.5, "sureness": 0.5, "candidates": []},
        {"k": True, "sureness": 0.5, "candidates": []},
        {"k": 3, "sureness": "high", "candidates": []},
        {"k": 3, "sureness": float("nan"), "candidates": []},
        {"k": 3, "sureness": 0.5, "candidates": 7},
        {"k": 3, "sureness": 0.5, "candidates": [3]},
        {"k": 3, "sureness": 0.5, "candidates": [], "evidence": 7},
        {"k": 3, "sureness": 0.5, "candidates": [], "evidence": [[3, 0.5]]},
        {"k": 3, "sureness": 0.5, "candidates": [], "evidence": [[3, 0.5, float("inf")]]},
        {"k": 3, "sureness": 0.5, "candidates": [], "evidence": [[0.5, 0.5, 0.5]]},
        {"k": 3, "sureness": 0.5, "candidates": [[3, 0.5, 1]]},
        {"k": 3, "sureness": 0.5, "candidates": [["3", 0.5]]},
        {"k": 3, "sureness": 0.5, "candidates": [[3, None]]},
        {"k": 3, "sureness": 0.5, "candidates": [[10**30, 0.5]]},
        {"k": 3, "sureness": 0.5, "candidates": [], "more": 1},
    ],
)
def test_a_damaged_choice_is_refused(value):
    with pytest.raises(ValueError, match=r"must be|has unknown"):
        Choice.from_json(value)
