"""Scores of outcomes: against plain definitions, with noise, failures and small samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, silhouette_score

from jule.comparison import scores
from jule.comparison.process import Outcome
from jule.comparison.scores import (
    agreement,
    internal_scores,
    make_geometry,
    score_outcome,
    sort_rows,
)
from jule.comparison.tables import labels_table, scores_table

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 2)) + np.repeat([[0, 0], [8, 0], [0, 8]], 20, axis=0)
TRUE = np.repeat(["a", "b", "c"], 20)
LABELS = np.repeat([0, 1, 2], 20).astype(np.int32)


def plain_modularity(graph, labels):
    total = sum(map(sum, graph.weights.tolist()))
    out_mass, in_mass, inside = {}, {}, 0.0
    for i, row in enumerate(graph.indices):
        for j, weight in zip(row.tolist(), graph.weights[i].tolist(), strict=True):
            out_mass[labels[i]] = out_mass.get(labels[i], 0.0) + weight
            in_mass[labels[j]] = in_mass.get(labels[j], 0.0) + weight
            inside += weight * (labels[i] == labels[j])
    chance = sum(out_mass[c] * in_mass.get(c, 0.0) for c in out_mass)
    return inside / total - chance / total**2


def test_internal_scores_are_their_definitions():
    geometry = make_geometry(POINTS)
    for labels in (LABELS, RNG.integers(-1, 4, 60)):
        found = internal_scores(geometry, labels)
        assert found["silhouette"] == pytest.approx(silhouette_score(POINTS, labels))
        assert found["modularity"] == pytest.approx(plain_modularity(geometry.graph, labels))


def test_silhouette_uses_the_same_few_of_many_samples(monkeypatch):
    monkeypatch.setattr(scores, "MOST_IN_SILHOUETTE", 30)
    first, second = make_geometry(POINTS), make_geometry(POINTS)
    assert len(first.rows) == 30
    assert (first.rows == second.rows).all()
    wanted = silhouette_score(POINTS[first.rows], LABELS[first.rows])
    assert internal_scores(first, LABELS)["silhouette"] == pytest.approx(wanted)


@pytest.mark.parametrize("labels", [[0, 0], [0, 1]])
def test_two_samples_have_no_silhouette(labels):
    found = internal_scores(make_geometry(np.eye(2)), np.array(labels))
    assert math.isnan(found["silhouette"])
    assert math.isfinite(found["modularity"])


def test_a_row_has_mean_and_spread_over_seeds():
    outcome = Outcome("it", (LABELS, np.zeros(60, np.int32)), (1.0, 3.0), 7)
    row = score_outcome(outcome, true=TRUE)
    assert row.scores == {"nmi": (0.5, 0.5), "ac": pytest.approx((2 / 3, 1 / 3))}
    assert (row.n_clusters, row.seconds, row.memory, row.seeds) == ((1, 3), 2.0, 7, 2)


def test_noise_is_no_cluster_but_is_scored():
    labels = np.where(LABELS == 2, -1, LABELS)
    row = score_outcome(Outcome("it", (labels,), (1.0,)), true=TRUE)
    assert (row.n_clusters, row.noise) == ((2, 2), pytest.approx(1 / 3))
    assert row.scores["nmi"] == (1.0, 0.0)


def test_failed_methods_are_last_and_have_no_labels():
    rows = sort_rows(
        [
            score_outcome(Outcome("failed", reason="=it crashed"), true=TRUE),
            score_outcome(Outcome("bad", (LABELS * 0,), (1.0,)), true=TRUE),
            score_outcome(Outcome("good", (LABELS,), (1.0,), 5), true=TRUE),
        ],
        "nmi",
    )
    assert [row.method for row in rows] == ["good", "bad", "failed"]
    table = scores_table(rows).decode().split("\r\n")
    assert table[1] == "good,3,0.0000,1.000000,0.000000,1.000000,0.000000,,,,,1,1.000,5,"
    assert table[3] == "failed,,,,,,,,,,,0,,,'=it crashed"
    labels = labels_table(["=a"] * 60, np.arange(60), rows).decode().split("\r\n")
    assert labels[:2] == ["path,index,good,bad", "'=a,0,0,0"]


labelings = st.lists(st.integers(-1, 3), min_size=6, max_size=6).map(np.array)


@settings(max_examples=50, deadline=None)
@given(st.lists(labelings, min_size=1, max_size=4))
def test_agreement_is_the_adjusted_rand_index_of_all_pairs(found):
    matrix = agreement(found)
    assert (matrix == matrix.T).all()
    for i, first in enumerate(found):
        for j, second in enumerate(found):
            assert matrix[i, j] == pytest.approx(adjusted_rand_score(first, second))
