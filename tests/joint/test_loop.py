"""Algorithm 1 on small real sets: what every period keeps, and what the end is."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from jule.backward import TrainingFailedError, embed
from jule.evaluation import nmi
from jule.images import load_dataset
from jule.joint import Config, finish, first_network, joint_learning
from jule.joint.loop import begin

QUICK = Config(n_clusters=10, n_periods=3, rounds=1, least_images=1500, epochs=1.0)


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    return data.images[:400], data.labels[:400]


def run(images, config, **options):
    embedder = first_network(images, config)
    states = list(joint_learning(images, embedder, config, **options))
    return embedder, states


@pytest.fixture(scope="module")
def quick(digits):
    return run(digits[0], QUICK, labels=digits[1])


def test_clusters_fall_by_eta_to_exactly_k(digits, quick):
    first = begin(digits[0], QUICK)
    counts = [first.n_clusters] + [state.n_clusters for state in quick[1]]
    assert counts[-1] == 10
    for before, after in pairwise(counts):
        assert after == max(10, before - math.ceil(first.eta * before))
    assert len(counts) - 1 == QUICK.n_periods


def test_merging_never_takes_clusters_apart(quick):
    *early, last = quick[1]
    for before, after in pairwise(early):
        for cluster in range(before.n_clusters):
            assert len(np.unique(after.labels[before.labels == cluster])) == 1
    assert last.ended
    assert not any(state.ended for state in early)


def test_the_history_tells_what_happened(quick):
    for number, period in enumerate(quick[1][-1].history):
        assert (period.round, period.number) == (0, number)
        assert period.steps == QUICK.steps_a_period(400)
        assert period.images == period.steps * QUICK.batch_size
        assert period.loss_first >= 0
        assert set(period.seconds) == {"train", "embed", "neighbours", "merge"}
        assert 0 <= period.nmi <= 1
        assert 0 <= period.ac <= 1


def test_the_same_seed_gives_the_same_labels_and_another_one_others(digits, quick):
    again = run(digits[0], QUICK)[1]
    for one, other in zip(quick[1], again, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        for name in one.network:
            np.testing.assert_array_equal(one.network[name], other.network[name])
    other_seed = run(digits[0], replace(QUICK, seed=1))[1]
    assert (
        other_seed[-1].network["body.top.weight"] != quick[1][-1].network["body.top.weight"]
    ).any()


def test_labels_for_evaluation_change_nothing(digits, quick):
    wrong = np.random.default_rng(0).permutation(digits[1])
    states = run(digits[0], QUICK, labels=wrong)[1]
    np.testing.assert_array_equal(states[-1].labels, quick[1][-1].labels)


@pytest.mark.parametrize("done", [1, 2])
def test_going_on_from_any_period_ends_the_same(digits, quick, done):
    fresh = first_network(digits[0], QUICK)
    rest = list(joint_learning(digits[0], fresh, QUICK, state=quick[1][done - 1]))
    assert len(rest) == len(quick[1]) - done
    np.testing.assert_array_equal(rest[-1].labels, quick[1][-1].labels)


def test_a_finished_state_has_nothing_left_to_do(digits, quick):
    fresh = first_network(digits[0], QUICK)
    assert list(joint_learning(digits[0], fresh, QUICK, state=quick[1][-1])) == []


def test_a_second_round_starts_again_from_what_was_learned(digits):
    states = run(digits[0], replace(QUICK, rounds=2))[1]
    rounds = [period.round for period in states[-1].history]
    assert rounds == sorted(rounds)
    assert set(rounds) == {0, 1}
    second = next(p for p in states[-1].history if p.round == 1)
    assert second.clusters_before > 10
    assert states[-1].n_clusters == 10


def test_both_results_have_k_clusters_and_the_chosen_one_is_one_of_them(digits, quick):
    embedder, states = quick
    result = finish(embed(embedder, digits[0]), states[-1], QUICK)
    for labels in (result.labels_sf, result.labels_rc):
        assert sorted(set(labels.tolist())) == list(range(10))
    chosen = {"sf": result.labels_sf, "rc": result.labels_rc}[result.chosen]
    np.testing.assert_array_equal(result.labels, chosen)
    assert result.tree.n_clusters == 1
    assert ((result.confidence >= 0) & (result.confidence <= 1)).all()
    np.testing.assert_allclose(np.linalg.norm(result.embedding, axis=1), 1, atol=1e-5)


def test_an_open_number_of_clusters_is_chosen(digits):
    config = replace(QUICK, n_clusters=None)
    embedder, states = run(digits[0], config)
    result = finish(embed(embedder, digits[0]), states[-1], config)
    assert result.choice.k == result.labels_rc.max() + 1
    assert 0 <= result.choice.sureness <= 1


def test_it_learns_something_on_digits(digits):
    images, labels = digits
    embedder, states = run(images, replace(QUICK, least_images=6000))
    result = finish(embed(embedder, images), states[-1], QUICK)
    assert nmi(labels, result.labels) > 0.75


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (5, 5), (12, 11), (30, 25)])
def test_tiny_sets_and_many_clusters_end_with_k(digits, n, k):
    images = digits[0][:n]
    config = replace(QUICK, n_clusters=k, least_images=100)
    embedder, states = run(images, config)
    assert states[-1].n_clusters == k
    result = finish(embed(embedder, images), states[-1], config)
    assert len(np.unique(result.labels_rc)) == k


def test_copies_of_one_image_share_a_cluster(digits):
    images = np.repeat(digits[0][:40], 3, axis=0)
    config = replace(QUICK, n_clusters=5, least_images=500)
    labels = run(images, config)[1][-1].labels.reshape(40, 3)
    assert (labels == labels[:, :1]).all()


def test_plain_vectors_train_an_mlp(digits):
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(c, 0.3, (40, 6)) for c in (-2, 0, 2)]).astype(np.float32)
    config = replace(QUICK, n_clusters=3, least_images=500, preparation="none")
    embedder, states = run(vectors, config)
    result = finish(embed(embedder, vectors), states[-1], config)
    assert nmi(np.repeat(range(3), 40), result.labels) > 0.8


def test_colour_images_and_kmeans_as_first_clusters(digits):
    colour = np.stack([digits[0][:150]] * 3, axis=-1)
    config = replace(QUICK, first="kmeans", least_images=500)
    assert run(colour, config)[1][-1].n_clusters == 10


def test_progress_names_the_stages(digits):
    heard = []
    run(digits[0][:100], replace(QUICK, least_images=300), progress=lambda *x: heard.append(x))
    stages = {stage for stage, _ in heard}
    assert {"neighbours", "period 1 of 3, training", "period 1 of 3, neighbours"} <= stages
    whole = [share for stage, share in heard if stage == "all periods"]
    assert whole == sorted(whole)
    assert all(0 <= share <= 1 for _, share in heard)


@pytest.mark.parametrize(
    ("n", "k", "message"),
    [(1, 1, "at least 2 samples"), (4, 5, "5 clusters cannot be made of n_samples=4")],
)
def test_too_few_samples_are_refused(digits, n, k, message):
    with pytest.raises(ValueError, match=message):
        begin(digits[0][:n], replace(QUICK, n_clusters=k))


def test_identical_samples_are_refused():
    with pytest.raises(ValueError, match="all 19 samples are identical"):
        begin(np.ones((19, 8, 8), np.uint8), QUICK)


def test_a_learning_rate_far_too_large_never_becomes_a_result(digits):
    with pytest.raises(TrainingFailedError, match="learning rate"):
        run(digits[0][:100], replace(QUICK, learning_rate=1e30))
