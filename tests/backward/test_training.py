"""Training and embedding: the loss decreases, results repeat, failures suggest a remedy."""

from dataclasses import fields, replace
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn

from jule.backward import Training, TrainingFailedError, build_embedder, embed, train
from jule.backward.embedder import get_weights
from jule.backward.training import check_not_collapsed, learning_rate

module = import_module("jule.backward.training")


def patterns(n=40, side=12, clusters=4, noise=200, seed=0):
    """Noisy images of a few random patterns, and which pattern each of them is."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % clusters
    clean = rng.integers(0, 256, (clusters, side, side))[labels]
    images = np.clip(clean + rng.normal(0, noise, clean.shape), 0, 255).astype(np.uint8)
    return images, labels


def vectors(n=40, clusters=4, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % clusters
    centres = rng.standard_normal((clusters, 5))
    return (centres[labels] + 0.3 * rng.standard_normal((n, 5))).astype(np.float32), labels


def assert_equal_states(one, two):
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


@pytest.fixture
def pieces(monkeypatch):
    """Note the type and number of the samples that become float at once."""
    seen = []
    convert = module.as_images

    def noting(samples):
        seen.append((samples.dtype, len(samples)))
        return convert(samples)

    monkeypatch.setattr(module, "as_images", noting)
    return seen


# Training


@pytest.mark.parametrize("negatives", ["random", "nearest"])
@pytest.mark.parametrize("batches", ["clusters", "random"])
@pytest.mark.parametrize("problem", [patterns, vectors])
def test_the_loss_falls_on_an_easy_problem(problem, batches, negatives):
    samples, labels = problem()
    settings = Training(
        learning_rate=0.01, batches=batches, negatives=negatives, n_negatives=5, batch_size=20
    )
    embedder = build_embedder(samples)
    losses = train(embedder, samples, labels, n_steps=30, settings=settings)
    assert len(losses) == 30
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])


def test_training_brings_clusters_together():
    samples, labels = patterns()
    same = labels[:, None] == labels[None, :]
    embedder = build_embedder(samples)

    def how_much_more_alike():
        likeness = embed(embedder, samples) @ embed(embedder, samples).T
        return likeness[same].mean() - likeness[~same].mean()

    assert how_much_more_alike() < 0.2
    train(embedder, samples, labels, n_steps=40, settings=Training(learning_rate=0.01))
    assert how_much_more_alike() > 0.4


def test_an_own_network_is_trained():
    samples, labels = patterns()
    body = nn.Sequential(nn.Flatten(), nn.Linear(144, 8))
    before = body[1].weight.detach().clone()
    embedder = build_embedder(samples, body=body)
    losses = train(embedder, samples, labels, n_steps=5, settings=Training(warp=0.5))
    assert np.isfinite(losses).all()
    assert not torch.equal(body[1].weight, before)


def test_lone_samples_are_trained_with():
    samples, _ = patterns(21)
    labels = np.append(np.arange(20) // 4, 5)
    losses = train(
        build_embedder(samples), samples, labels, n_steps=8, settings=Training(batch_size=10)
    )
    assert np.isfinite(losses).all()


def test_no_steps_change_nothing():
    samples, labels = patterns()
    embedder = build_embedder(samples)
    before, shares = get_weights(embedder), []
    assert train(embedder, samples, labels, n_steps=0, progress=shares.append) == []
    assert_equal_states(get_weights(embedder), before)
    assert shares == []


def test_progress_of_training_ends_at_one():
    samples, labels = vectors()
    shares = []
    train(build_embedder(samples), samples, labels, n_steps=4, progress=shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0]


# Settings


CHANGES = {
    "learning_rate": 0.01,
    "momentum": 0.5,
    "weight_decay": 0.1,
    "decay": 1.0,
    "decay_power": 0.1,
    "gamma": 2.0,
    "margin": 0.5,
    "negatives": "random",
    "n_negatives": 2,
    "batches": "random",
    "batch_size": 12,
    "per_cluster": 2,
    "warp": 0.5,
}


def weights_after(settings):
    samples, labels = patterns()
    embedder = build_embedder(samples)
    train(embedder, samples, labels, n_steps=3, first_step=1000, settings=settings)
    return get_weights(embedder)["body.top.weight"]


@pytest.mark.parametrize("name", [field.name for field in fields(Training)])
def test_every_setting_matters(name):
    plain = Training(batch_size=16, n_negatives=5)
    changed = replace(plain, **{name: CHANGES[name]})
    assert not np.array_equal(weights_after(changed), weights_after(plain))


# Learning rates


@pytest.mark.parametrize(
    ("step", "share"), [(0, 1.0), (1, 1.0001**-0.75), (10_000, 2**-0.75), (150_000, 1 / 8)]
)
def test_the_inverse_policy(step, share):
    assert learning_rate(Training(), step) == pytest.approx(0.001 * share)
    assert learning_rate(Training(learning_rate=0.5), step) == pytest.approx(0.5 * share)


def test_without_decay_the_rate_stays():
    assert learning_rate(Training(decay=0.0), 10**9) == 0.001


def test_steps_before_count_for_the_rate():
    samples, labels = vectors()
    settings = Training(momentum=0.0, weight_decay=0.0)
    change = {}
    for first_step in (0, 150_000):
        embedder = build_embedder(samples)
        before = embedder.body.top.weight.detach().double()
        train(embedder, samples, labels, n_steps=1, first_step=first_step, settings=settings)
        change[first_step] = (embedder.body.top.weight.detach().double() - before).norm().item()
    assert change[150_000] == pytest.approx(change[0] / 8, rel=0.01)


# Twice the same


@pytest.mark.parametrize(
    ("seed", "warp", "threads"), [(7, 0.0, 1), (7, 1.0, 1), ([7, 1, 2], 1.0, 2)]
)
def test_the_same_seed_gives_the_same_network_to_the_last_bit(seed, warp, threads):
    torch.set_num_threads(threads)
    samples, labels = patterns()
    settings = Training(batch_size=16, n_negatives=3, warp=warp)
    runs = []
    for everywhere in (1, 2):
        torch.manual_seed(everywhere)
        embedder = build_embedder(samples)
        losses = train(embedder, samples, labels, n_steps=3, settings=settings, seed=seed)
        runs.append((losses, get_weights(embedder), embed(embedder, samples)))
    assert runs[0][0] == runs[1][0]
    assert_equal_states(runs[0][1], runs[1][1])
    np.testing.assert_array_equal(runs[0][2], runs[1][2])


def test_another_seed_gives_other_batches():
    samples, labels = vectors()
    settings = Training(batch_size=16)
    one, two = (
        train(build_embedder(samples), samples, labels, n_steps=3, settings=settings, seed=seed)
        for seed in (0, 1)
    )
    assert one != two


def test_training_leaves_the_global_generator_alone():
    samples, labels = patterns()
    embedder = build_embedder(samples)
    before = torch.get_rng_state()
    train(embedder, samples, labels, n_steps=2, settings=Training(warp=1.0))
    assert torch.equal(torch.get_rng_state(), before)


def test_warps_change_the_training_of_images_but_not_of_vectors():
    for problem, same in ((patterns, False), (vectors, True)):
        samples, labels = problem()
        plain, warped = (
            train(build_embedder(samples), samples, labels, n_steps=2, settings=Training(warp=warp))
            for warp in (0.0, 1.0)
        )
        assert (plain == warped) is same


# What fails


def test_an_exploding_rate_says_what_to_try():
    samples, labels = vectors()
    embedder, settings = build_embedder(samples), Training(learning_rate=1e30)
    with pytest.raises(TrainingFailedError, match=r"at step 10[1-9]: try a learning rate below"):
        train(embedder, samples, labels, n_steps=9, first_step=100, settings=settings)


def test_samples_that_are_not_numbers_are_found_out():
    samples, labels = vectors()
    samples[3, 2] = np.nan
    with pytest.raises(ValueError, match="not finite in float32"):
        train(build_embedder(samples), samples, labels, n_steps=3)


def test_outputs_that_are_not_finite_are_rejected():
    samples, _ = patterns()
    embedder = build_embedder(samples)
    nn.init.constant_(embedder.body.top.weight, torch.inf)
    found = embed(embedder, samples)
    assert np.isnan(found).any()
    with pytest.raises(TrainingFailedError, match="outputs are not finite"):
        check_not_collapsed(found)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_bad_number_is_enough(value):
    embedding = np.eye(5)
    embedding[4, 0] = value
    with pytest.raises(TrainingFailedError, match="smaller learning rate"):
        check_not_collapsed(embedding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_outputs_are_rejected(dtype):
    vector = np.full(160, 160**-0.5)
    nearly = vector + 1e-4 * np.random.default_rng(0).standard_normal((1000, 160))
    for embedding in (np.tile(vector, (1000, 1)), nearly):
        with pytest.raises(TrainingFailedError, match="maps all samples to nearly the same"):
            check_not_collapsed(embedding.astype(dtype))


def test_sound_outputs_pass():
    samples, _ = patterns()
    check_not_collapsed(embed(build_embedder(samples), samples))
    check_not_collapsed(np.array([[1.0, 0.0], [np.cos(0.1), np.sin(0.1)]]))


def test_failed_training_is_an_arithmetic_error():
    assert issubclass(TrainingFailedError, ArithmeticError)


# Embedding


@pytest.mark.parametrize("tap", ["top", "top-1"])
@pytest.mark.parametrize("at_once", [1, 7, 40])
def test_pieces_give_the_same_as_all_at_once(at_once, tap, monkeypatch):
    samples, _ = patterns()
    embedder = build_embedder(samples)
    whole = embed(embedder, samples, tap=tap)
    monkeypatch.setattr(module, "EMBED_AT_ONCE", at_once)
    np.testing.assert_allclose(embed(embedder, samples, tap=tap), whole, rtol=1e-4, atol=1e-6)
    assert whole.dtype == np.float32


def test_embedding_changes_nothing_after_training():
    samples, labels = patterns()
    embedder = build_embedder(samples)
    train(embedder, samples, labels, n_steps=2)
    before = get_weights(embedder)
    first = embed(embedder, samples)
    np.testing.assert_array_equal(embed(embedder, samples), first)
    assert_equal_states(get_weights(embedder), before)


def test_progress_of_embedding_ends_at_one(monkeypatch):
    monkeypatch.setattr(module, "EMBED_AT_ONCE", 16)
    samples, _ = vectors()
    shares = []
    embed(build_embedder(samples), samples, progress=shares.append)
    assert shares == [0.4, 0.8, 1.0]


def test_images_on_disk_become_float_a_piece_at_a_time(tmp_path, pieces, monkeypatch):
    images, labels = patterns()
    on_disk = np.memmap(tmp_path / "images", np.uint8, "w+", shape=images.shape)
    on_disk[:] = images
    embedder = build_embedder(on_disk)
    losses = train(embedder, on_disk, labels, n_steps=3, settings=Training(batch_size=8))
    assert pieces == [(np.uint8, 8)] * 3
    pieces.clear()
    monkeypatch.setattr(module, "EMBED_AT_ONCE", 15)
    found = embed(embedder, on_disk)
    assert pieces == [(np.uint8, 15), (np.uint8, 15), (np.uint8, 10)]
    np.testing.assert_array_equal(on_disk, images)

    in_memory = build_embedder(images)
    assert losses == train(in_memory, images, labels, n_steps=3, settings=Training(batch_size=8))
    np.testing.assert_array_equal(found, embed(in_memory, images))


@pytest.mark.parametrize("batches", ["clusters", "random"])
def test_a_sample_left_alone_at_the_end_of_an_epoch_stops_nothing(batches):
    vectors = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    labels = np.array([0] * 8 + [1])
    settings = Training(batches=batches, batch_size=8)
    assert len(train(build_embedder(vectors), vectors, labels, n_steps=10, settings=settings)) == 10


def test_one_sample_cannot_be_trained_on():
    vectors = np.zeros((1, 3), np.float32)
    with pytest.raises(ValueError, match="at least 2 samples"):
        train(build_embedder(vectors), vectors, np.zeros(1, int), n_steps=1)
