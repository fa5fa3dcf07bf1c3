"""Verification: the protocol of LFW, against a worked example and a slow oracle."""

import numpy as np
import pytest

from jule.paper.verification import best_threshold, cosine_similarity, verification_accuracy


def test_a_worked_example():
    # Three folds of two pairs: the first of each shows one person, the second two people.
    similarity = np.array([0.9, 0.1, 0.6, 0.5, 0.4, 0.3])
    same = np.array([True, False, True, False, True, False])
    fold = np.array([0, 0, 1, 1, 2, 2])
    # Fold 0 held out. Of 0.6+, 0.5-, 0.4+, 0.3-, a threshold of 0.35 and one of 0.55 tell three
    # rightly; the lower one is taken. It tells 0.9 (same) and 0.1 (different) rightly.
    assert best_threshold(similarity[2:], same[2:]) == pytest.approx(0.35)
    # Fold 1 held out. Of 0.9+, 0.1-, 0.4+, 0.3-, 0.35 tells all rightly. It takes 0.6 and 0.5 for
    # the same, one of which is wrong.
    assert best_threshold(similarity[[0, 1, 4, 5]], same[[0, 1, 4, 5]]) == pytest.approx(0.35)
    # Fold 2 held out. Of 0.9+, 0.1-, 0.6+, 0.5-, 0.55 tells all rightly. It takes 0.4 and 0.3 for
    # different, one of which is wrong.
    assert best_threshold(similarity[:4], same[:4]) == pytest.approx(0.55)
    assert verification_accuracy(similarity, same, fold).tolist() == [1.0, 0.5, 0.5]


def accuracy_at(threshold, similarity, same):
    right = sum((s >= threshold) == bool(t) for s, t in zip(similarity, same, strict=True))
    return right / len(same)


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_better(seed):
    rng = np.random.default_rng(seed)
    similarity = rng.integers(0, 12, 40) / 10  # with many ties
    same = rng.random(40) < 0.5
    best = accuracy_at(best_threshold(similarity, same), similarity, same)
    assert best == max(accuracy_at(t, similarity, same) for t in np.arange(-1, 3, 0.05))


@pytest.mark.parametrize("is_same", [True, False])
def test_pairs_of_one_kind_are_told_rightly(is_same):
    similarity, same = np.array([0.2, 0.7, 0.7]), np.full(3, is_same)
    assert accuracy_at(best_threshold(similarity, same), similarity, same) == 1


def test_the_held_out_fold_does_not_move_its_threshold():
    rng = np.random.default_rng(0)
    fold, same = np.repeat(np.arange(10), 20), np.tile([True, False], 100)
    similarity = rng.normal(size=200) + same
    before = verification_accuracy(similarity, same, fold)
    flipped = np.where(fold == 3, ~same, same)
    after = verification_accuracy(similarity, flipped, fold)
    assert after[3] == pytest.approx(1 - before[3])
    assert 0.6 < before.mean() < 0.8  # the best possible one is about 0.69


def test_cosines_do_not_depend_on_lengths():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(6, 4)).astype(np.float32)
    pairs = np.array([[0, 1], [2, 5], [3, 3]])
    found = cosine_similarity(vectors, pairs)
    np.testing.assert_allclose(
        cosine_similarity(vectors * rng.uniform(1, 9, (6, 1)), pairs), found, atol=1e-6
    )
    assert found[2] == pytest.approx(1)
    assert cosine_similarity(np.zeros((2, 3)), np.array([[0, 1]])).tolist() == [0]
