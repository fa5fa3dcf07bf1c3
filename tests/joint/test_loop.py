"""Algorithm 1 on small real sets: what every period keeps, and how it ends."""

import math
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

from jule.backward import TrainingFailedError
from jule.evaluation import nmi
from jule.images import load_dataset
from jule.joint import Config, finish, init_network, joint_learning, preset
from jule.joint.loop import begin
from jule.joint.state import load_state, save_state

QUICK = Config(n_clusters=10, n_periods=3, rounds=1, min_images=1500, epochs=1.0)
TINY = replace(QUICK, min_images=100, epochs=0.1)


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    return data.images[:400], data.labels[:400]


def run(images, config, **options):
    return list(joint_learning(images, init_network(images, config), config, **options))


@pytest.fixture(scope="module")
def quick(digits):
    return run(digits[0], QUICK, labels=digits[1])


def test_clusters_fall_by_eta_to_exactly_k(digits, quick):
    first = begin(digits[0], QUICK)
    counts = [first.n_clusters] + [state.n_clusters for state in quick]
    assert counts[-1] == 10
    for before, after in pairwise(counts):
        assert after == max(10, before - math.ceil(first.eta * before))
    assert len(counts) - 1 == QUICK.n_periods


def test_merging_never_takes_clusters_apart(quick):
    *early, last = quick
    for before, after in pairwise(early):
        for cluster in range(before.n_clusters):
            assert len(np.unique(after.labels[before.labels == cluster])) == 1
    assert last.ended
    assert not any(state.ended for state in early)


def test_the_history_has_an_entry_per_period(quick):
    for number, period in enumerate(quick[-1].history):
        assert (period.round, period.number) == (0, number)
        assert period.steps == QUICK.steps_per_period(400)
        assert period.images == period.steps * QUICK.batch_size
        assert period.loss_first >= 0
        assert set(period.seconds) == {"train", "embed", "neighbours", "merge"}
        assert 0 <= period.nmi <= 1
        assert 0 <= period.ac <= 1


def test_the_same_seed_gives_the_same_result_whatever_the_true_classes(digits, quick):
    wrong = np.random.default_rng(0).permutation(digits[1])
    for one, other in zip(quick, run(digits[0], QUICK, labels=wrong), strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        for name in one.network:
            np.testing.assert_array_equal(one.network[name], other.network[name])


def test_another_seed_gives_another_network(digits):
    one, other = (run(digits[0][:60], replace(TINY, seed=seed))[-1].network for seed in (0, 1))
    assert any((one[name] != other[name]).any() for name in one)


@pytest.mark.parametrize("done", [1, 2])
def test_a_run_resumed_after_any_period_ends_the_same(digits, quick, tmp_path, done):
    save_state(tmp_path, quick[done - 1], {})
    rest = run(digits[0], QUICK, state=load_state(tmp_path, {}))
    assert len(rest) == len(quick) - done
    np.testing.assert_array_equal(rest[-1].labels, quick[-1].labels)
    for name in quick[-1].network:
        np.testing.assert_array_equal(rest[-1].network[name], quick[-1].network[name])


def test_a_run_resumed_between_two_rounds_ends_the_same(digits, tmp_path):
    images, config = digits[0][:80], replace(TINY, n_clusters=3, rounds=2)
    whole = run(images, config)
    between = next(state for state in whole if state.ended)
    save_state(tmp_path, between, {})
    rest = run(images, config, state=load_state(tmp_path, {}))
    assert len(rest) == len(whole) - between.n_periods
    np.testing.assert_array_equal(rest[-1].labels, whole[-1].labels)


def test_a_finished_state_has_nothing_left_to_do(digits, quick):
    assert run(digits[0], QUICK, state=quick[-1]) == []


def test_a_second_round_starts_again_from_the_learned_representation(digits):
    last = run(digits[0], replace(TINY, rounds=2))[-1]
    rounds = [period.round for period in last.history]
    assert rounds == sorted(rounds)
    assert set(rounds) == {0, 1}
    second = next(period for period in last.history if period.round == 1)
    assert second.clusters_before > 10
    assert last.n_clusters == 10


@pytest.mark.parametrize("rounds", [1, 2])
def test_neighbours_are_searched_once_and_samples_embedded_once_per_period(
    digits, monkeypatch, rounds
):
    import jule.joint.clustering
    import jule.joint.team

    calls = []

    def counting(module, name):
        real = getattr(module, name)

        def call(*args, **kwargs):
            calls.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, call)

    counting(jule.joint.team, "embed")
    counting(jule.joint.clustering, "nearest_neighbors")
    config = replace(TINY, n_clusters=3, rounds=rounds)
    last = run(digits[0][:80], config)[-1]
    finish(last, config)
    assert calls.count("embed") == last.n_periods
    assert calls.count("nearest_neighbors") == 1 + last.n_periods


def test_one_cluster_needs_no_training(digits):
    last = run(digits[0][:60], replace(QUICK, n_clusters=1))[-1]
    assert {period.steps for period in last.history} == {0}
    assert not last.labels.any()
    assert not finish(last, replace(QUICK, n_clusters=1)).labels.any()


def test_both_results_have_k_clusters_and_the_chosen_one_is_one_of_them(quick):
    result = finish(quick[-1], QUICK)
    for labels in (result.labels_sf, result.labels_rc):
        assert sorted(set(labels.tolist())) == list(range(10))
    assert result.chosen in ("sf", "rc")  # pixels do not win here
    chosen = {"sf": result.labels_sf, "rc": result.labels_rc}[result.chosen]
    np.testing.assert_array_equal(result.labels, chosen)
    assert result.tree.n_clusters == 1
    assert ((result.confidence >= 0) & (result.confidence <= 1)).all()
    np.testing.assert_allclose(np.linalg.norm(result.embedding, axis=1), 1, atol=1e-5)


def test_an_open_number_of_clusters_is_chosen(digits):
    config = replace(TINY, n_clusters=None)
    result = finish(run(digits[0][:200], config)[-1], config)
    assert result.choice.k == result.n_clusters
    assert 0 <= result.choice.sureness <= 1


@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_rounds_end_whatever_number_is_suggested_on_the_way(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 50)), int(rng.integers(3, 12))
    config = preset("default", of="vectors", rounds=2)
    vectors = rng.normal(size=(n, d))
    states = joint_learning(vectors, init_network(vectors, config), config)
    last = list(islice(states, 7))[-1]
    assert last.ended
    assert last.n_periods <= 6
    assert last.round == 1
    result = finish(last, config)
    assert result.choice.k == result.n_clusters
    assert len(np.unique(result.labels_sf)) == result.n_clusters


def test_digits_are_learned(digits):
    images, labels = digits
    last = run(images, replace(QUICK, min_images=6000))[-1]
    assert nmi(labels, finish(last, QUICK).labels) > 0.75


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 2), (5, 5), (12, 11), (30, 25)])
def test_tiny_sets_and_many_clusters_end_with_k(digits, n, k):
    config = replace(TINY, n_clusters=k)
    last = run(digits[0][:n], config)[-1]
    assert last.n_clusters == k
    assert len(np.unique(finish(last, config).labels)) == k


@pytest.mark.parametrize(("times", "ends"), [(1.0, 4), (1.6, 6), (2.0, 8)])
def test_a_round_can_end_before_k_clusters_are_left(digits, times, ends):
    config = replace(TINY, n_clusters=4, ends_at=times)
    last = run(digits[0][:120], config)[-1]
    result = finish(last, config)
    assert last.n_clusters == ends
    assert result.n_clusters == 4
    assert result.choice is None
    # SF is what these clusters merge into.
    whole = {(before, after) for before, after in zip(last.labels, result.labels_sf, strict=True)}
    assert len(whole) == ends
    assert len(np.unique(result.labels_sf)) == 4


def test_copies_of_one_image_share_a_cluster(digits):
    images = np.repeat(digits[0][:40], 3, axis=0)
    labels = run(images, replace(TINY, n_clusters=5, min_images=500))[-1].labels.reshape(40, 3)
    assert (labels == labels[:, :1]).all()


def test_plain_vectors_train_an_mlp():
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(c, 0.3, (40, 6)) for c in (-2, 0, 2)]).astype(np.float32)
    config = replace(QUICK, n_clusters=3, min_images=500, preparation="none")
    result = finish(run(vectors, config)[-1], config)
    assert nmi(np.repeat(range(3), 40), result.labels) > 0.8


def test_colour_images_and_kmeans_as_initial_clusters(digits):
    colour = np.stack([digits[0][:150]] * 3, axis=-1)
    assert run(colour, replace(TINY, init="kmeans"))[-1].n_clusters == 10


def test_progress_names_the_stages(digits):
    calls = []
    run(digits[0][:100], TINY, progress=lambda *call: calls.append(call))
    stages = {stage for stage, _ in calls}
    assert {"neighbours", "period 1 of 3, training", "period 1 of 3, neighbours"} <= stages
    whole = [share for stage, share in calls if stage == "all periods"]
    assert whole == sorted(whole)
    assert all(0 <= share <= 1 for _, share in calls)


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
        run(digits[0][:100], replace(TINY, learning_rate=1e30, min_images=500))
