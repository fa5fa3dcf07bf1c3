"""Clustering scores against hand-made cases, slow oracles and scikit-learn."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule import evaluation
from jule.evaluation import (
    accuracy,
    ami,
    ari,
    calibration_error,
    nmi,
    purity,
    scores,
    with_own_class,
)
from tests.oracles import evaluation as oracle

Score = Callable[[object, object], float]
ALL: list[Score] = [nmi, accuracy, ari, ami, purity]


@st.composite
def labellings(draw: st.DrawFn, most_samples: int = 40) -> tuple[list[int], list[int]]:
    n = draw(st.integers(1, most_samples))
    group = st.integers(0, 4)
    size = {"min_size": n, "max_size": n}
    return draw(st.lists(group, **size)), draw(st.lists(group, **size))


# ---- by hand


def test_hand_made_scores() -> None:
    true = [0, 0, 0, 1, 1, 1]
    found = [0, 0, 1, 1, 1, 1]
    information = 1 / 3 * math.log(2) + 1 / 6 * math.log(1 / 2) + 1 / 2 * math.log(3 / 2)
    h_true, h_found = math.log(2), math.log(3) - 2 / 3 * math.log(2)
    assert nmi(true, found) == pytest.approx(information / math.sqrt(h_true * h_found))
    assert nmi(true, found, "arithmetic") == pytest.approx(2 * information / (h_true + h_found))
    assert nmi(true, found, "max") == pytest.approx(information / h_true)
    assert nmi(true, found, "min") == pytest.approx(information / h_found)
    assert accuracy(true, found) == 5 / 6
    assert purity(true, found) == 5 / 6
    # 4 pairs together in both, 6 by class, 7 by cluster, 15 in all.
    assert ari(true, found) == pytest.approx((4 - 6 * 7 / 15) / (6.5 - 6 * 7 / 15))


def test_accuracy_prefers_the_best_matching_to_the_largest_cell() -> None:
    # Taking the cell of 5 first would leave 0; the two cells of 4 make 8.
    true = [0] * 9 + [1] * 4
    found = [0] * 5 + [1] * 4 + [0] * 4
    assert accuracy(true, found) == 8 / 13


def test_accuracy_counts_surplus_clusters_as_wrong() -> None:
    assert accuracy([0, 0, 0, 0], [0, 1, 2, 3]) == 0.25
    assert accuracy([0, 1, 2, 3], [7, 7, 7, 7]) == 0.25
    assert purity([0, 0, 0, 0], [0, 1, 2, 3]) == 1.0


def test_independent_labels_score_zero() -> None:
    assert nmi([0, 0, 1, 1], [0, 1, 0, 1]) == 0.0
    assert ari([0, 0, 1, 1], [0, 1, 0, 1]) == -0.5


def test_scores_holds_every_score() -> None:
    true, found = [0, 0, 1, 1, 2], [0, 0, 1, 2, 2]
    assert scores(true, found) == {
        "nmi": nmi(true, found),
        "ac": accuracy(true, found),
        "ari": ari(true, found),
        "ami": ami(true, found),
        "purity": purity(true, found),
    }


# ---- against the oracles and scikit-learn


@settings(max_examples=50, deadline=None)
@given(labellings())
def test_equals_the_oracles(pair: tuple[list[int], list[int]]) -> None:
    true, found = pair
    assert accuracy(true, found) == pytest.approx(oracle.accuracy(true, found))
    assert purity(true, found) == pytest.approx(oracle.purity(true, found))
    assert ari(true, found) == pytest.approx(oracle.ari(true, found), abs=1e-12)
    for average in ("geometric", "arithmetic", "max", "min"):
        ours = nmi(true, found, average)
        assert ours == pytest.approx(oracle.nmi(true, found, average), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(labellings(most_samples=6).filter(lambda pair: min(len(set(p)) for p in pair) > 1))
def test_ami_equals_the_mean_over_every_order(pair: tuple[list[int], list[int]]) -> None:
    true, found = pair
    if ami(true, found) < 1.0:
        assert ami(true, found) == pytest.approx(oracle.ami(true, found), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(labellings())
def test_equals_scikit_learn_on_small_labellings(pair: tuple[list[int], list[int]]) -> None:
    check_against_scikit_learn(*pair)


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(10, 10), (3, 40), (300, 7), (400, 500)])
def test_equals_scikit_learn_on_large_labellings(n_classes: int, n_clusters: int) -> None:
    rng = np.random.default_rng(n_clusters)
    true = rng.integers(0, n_classes, 3000)
    found = np.where(rng.random(3000) < 0.5, true, rng.integers(0, n_clusters, 3000))
    check_against_scikit_learn(true, found)


def check_against_scikit_learn(true: object, found: object) -> None:
    from sklearn import metrics

    with warnings.catch_warnings():
        # scikit-learn warns when the groups are nearly as many as the samples.
        warnings.simplefilter("ignore", UserWarning)
        assert ari(true, found) == pytest.approx(
            metrics.adjusted_rand_score(true, found), abs=1e-12
        )
        assert ami(true, found) == pytest.approx(
            metrics.adjusted_mutual_info_score(true, found), abs=1e-8
        )
        for average in ("geometric", "arithmetic", "max", "min"):
            theirs = metrics.normalized_mutual_info_score(true, found, average_method=average)
            assert nmi(true, found, average) == pytest.approx(theirs, abs=1e-9)


# ---- properties


@settings(max_examples=30, deadline=None)
@given(labellings(), st.permutations(range(5)), st.randoms())
def test_names_and_order_do_not_matter(
    pair: tuple[list[int], list[int]], names: list[int], random: object
) -> None:
    true, found = pair
    order = list(range(len(true)))
    random.shuffle(order)  # type: ignore[attr-defined]
    expected = scores(true, found)
    renamed = scores(true, [f"cluster {names[label]}" for label in found])
    reordered = scores([true[i] for i in order], [found[i] for i in order])
    assert renamed == pytest.approx(expected, abs=1e-12)
    assert reordered == pytest.approx(expected, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(labellings())
def test_ranges(pair: tuple[list[int], list[int]]) -> None:
    found = scores(*pair)
    for name in ("nmi", "ac", "purity"):
        assert 0.0 <= found[name] <= 1.0
    assert found["ac"] > 0.0
    assert found["ac"] <= found["purity"]
    assert -1.0 <= found["ari"] <= 1.0
    assert found["ami"] <= 1.0 + 1e-12


@settings(max_examples=30, deadline=None)
@given(labellings())
def test_all_but_purity_treat_both_sides_alike(pair: tuple[list[int], list[int]]) -> None:
    true, found = pair
    for score in (nmi, accuracy, ari, ami):
        assert score(true, found) == pytest.approx(score(found, true), abs=1e-12)


@pytest.mark.parametrize("score", ALL)
@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40))
def test_identical_labels_score_one(score: Score, labels: list[int]) -> None:
    assert score(labels, labels) == 1.0


# ---- edges


@pytest.mark.parametrize("score", ALL)
def test_equal_partitions_score_one_where_entropies_vanish(score: Score) -> None:
    assert score([3], ["a"]) == 1.0
    assert score([1, 1, 1], [2, 2, 2]) == 1.0
    assert score([1, 2, 3], [30, 10, 20]) == 1.0


@pytest.mark.parametrize("average", ["geometric", "arithmetic", "max", "min"])
def test_single_group_against_several_scores_zero(average: evaluation.Average) -> None:
    assert nmi([0, 0, 0], [0, 1, 1], average) == 0.0
    assert nmi([0, 1, 1], [0, 0, 0], average) == 0.0
    assert ami([0, 0, 0], [0, 1, 1]) == 0.0
    assert ari([0, 0, 0], [0, 1, 1]) == 0.0


@pytest.mark.parametrize(
    "labels",
    [
        [0, 0, 1],
        ("x", "x", "y"),
        np.array(["x", "x", "y"]),
        np.array(["x", "x", "y"], dtype=object),
        [b"x", b"x", b"y"],
        [True, True, False],
        [0.5, 0.5, -np.inf],
        np.array([7, 7, 9], dtype=np.uint8),
        np.array(["2020-01-01", "2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    ],
    ids=repr,
)
def test_any_kind_of_label(labels: object) -> None:
    assert scores(labels, [1, 1, 0]) == dict.fromkeys(("nmi", "ac", "ari", "ami", "purity"), 1.0)


def test_many_clusters_need_no_dense_table() -> None:
    rng = np.random.default_rng(0)
    true = np.arange(50_000)
    expected = dict.fromkeys(("nmi", "ac", "ari", "ami", "purity"), 1.0)
    assert scores(true, rng.permutation(50_000)) == expected


def test_sparse_and_dense_matching_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    for n_classes, n_clusters in ((5, 5), (40, 9), (9, 40), (300, 310)):
        true, found = rng.integers(0, n_classes, 900), rng.integers(0, n_clusters, 900)
        dense = accuracy(true, found)
        with monkeypatch.context() as patch:
            patch.setattr(evaluation, "DENSE_CELLS", 0)
            assert accuracy(true, found) == dense


def test_large_tangled_table_uses_the_sparse_matching() -> None:
    # 3,000 x 3,000 groups where each class spills one sample of three into the next cluster.
    true = np.arange(9000) // 3
    found = np.where(np.arange(9000) % 3 == 2, (true + 1) % 3000, true)
    assert accuracy(true, found) == 2 / 3


def test_ari_stays_exact_beyond_64_bits() -> None:
    true = np.arange(400_000) % 2
    found = np.arange(400_000) // 200_000
    assert ari(true, found) == pytest.approx(-1 / 399_998, rel=0.01)


# ---- wrong input


@pytest.mark.parametrize("score", [*ALL, scores])
def test_mismatched_lengths(score: Score) -> None:
    with pytest.raises(ValueError, match="true has 3 labels and found has 2"):
        score([1, 2, 3], [1, 2])


@pytest.mark.parametrize(
    ("true", "found", "message"),
    [
        ([], [], "true must be .* empty"),
        ([1], [], "found must be .* empty"),
        ([[1, 2], [3, 4]], [1, 2], r"true must be .* shape is \(2, 2\)"),
        ([1], 1, r"found must be .* shape is \(\)"),
        ([1, 2], [[1], [2, 3]], "found must be .* cannot be read"),
        ([1.0, np.nan], [1, 2], "true has missing labels"),
        ([1, 2], ["a", np.nan], "found has missing labels"),
        ([1, 2], [None, None], "found has missing labels"),
        ([1, 2], np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), "found has missing"),
        ([1, 2], [1, "1"], "found mixes labels"),
    ],
)
def test_unusable_labels(true: object, found: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nmi(true, found)


def test_unknown_average() -> None:
    with pytest.raises(ValueError, match="geometric, arithmetic, max, min, got 'mean'"):
        nmi([1, 2], [1, 2], "mean")  # type: ignore[arg-type]


# Confidence


def calibration_by_hand(confidence, correct, n_bins):
    total = 0.0
    for number in range(n_bins):
        inside = [
            (c, r)
            for c, r in zip(confidence, correct, strict=True)
            if min(int(c * n_bins), n_bins - 1) == number
        ]
        if inside:
            sure = sum(c for c, _ in inside) / len(inside)
            right = sum(r for _, r in inside) / len(inside)
            total += len(inside) / len(confidence) * abs(sure - right)
    return total


@given(seed=st.integers(0, 10_000), n=st.integers(1, 60), n_bins=st.integers(1, 15))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_the_calibration_error_is_that_of_its_definition(seed, n, n_bins):
    rng = np.random.default_rng(seed)
    confidence, correct = rng.uniform(0, 1, n).round(1), rng.random(n) < 0.7
    expected = calibration_by_hand(confidence.tolist(), correct.tolist(), n_bins)
    assert calibration_error(confidence, correct, n_bins) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("confidence", "correct", "message"),
    [
        ([], [], "one value per sample"),
        ([0.5], [True, False], "one value per sample"),
        ([1.5], [True], "between 0 and 1"),
        ([float("nan")], [True], "between 0 and 1"),
        ([0.5], [float("nan")], "true or false"),
    ],
)
def test_confidences_that_make_no_sense_are_refused(confidence, correct, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(confidence, correct)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 40))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_as_many_samples_are_with_their_own_class_as_purity_counts(seed, n):
    rng = np.random.default_rng(seed)
    true, found = rng.integers(0, 4, n), rng.integers(3, 6, n)
    own = with_own_class(true, found)
    assert own.mean() == pytest.approx(purity(true, found))
    for cluster in set(found.tolist()):
        inside = found == cluster
        classes = {int(each) for each in true[inside & own]}
        assert len(classes) == 1
        assert (true[inside] == classes.pop()).sum() == np.bincount(true[inside]).max()


def test_bins_are_needed():
    with pytest.raises(ValueError, match="n_bins must be 1 or more, got 0"):
        calibration_error([0.5], [True], 0)


def test_labels_of_different_lengths_have_no_own_class():
    with pytest.raises(ValueError, match="differ in number"):
        with_own_class([0, 1], [0])
