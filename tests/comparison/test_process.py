"""A method in a process of its own: whatever it does costs only itself."""

import os
import sys

import numpy as np
import pytest

from jule.comparison.process import run_method, stored_vectors
from tests.comparison import made

VECTORS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def stored():
    with stored_vectors(VECTORS) as path:
        yield path


def run(path, method, k=3, **options):
    outcome = run_method("it", method, path, k, **options)
    assert os.listdir(path.parent) == ["samples.npy"]
    return outcome


def test_wide_vectors_are_rotated_and_copies_stay_exact():
    wide = np.random.default_rng(0).normal(size=(4, 50)).astype(np.float32)
    wide[3] = wide[1]
    with stored_vectors(wide) as path:
        rotated = np.load(path.with_name("rotated.npy"))
        assert rotated.shape == (4, 4)
        np.testing.assert_allclose(rotated @ rotated.T, wide @ wide.T, rtol=1e-5, atol=1e-4)
        assert (rotated[3] == rotated[1]).all()
        seen = {
            method: run_method("it", method, path, 2).labels[0].tolist()
            for method in (made.Features, made.OwnFeatures)
        }
    assert seen == {made.Features: [4] * 4, made.OwnFeatures: [50] * 4}


def test_a_method_that_is_not_random_runs_once(stored):
    outcome = run(stored, made.Halves, seeds=range(3))
    assert [labels.tolist() for labels in outcome.labels] == [[0] * 4 + [1] * 4 + [2] * 4]
    assert (outcome.reason, outcome.warnings) == ("", ())
    assert 0 <= outcome.seconds[0] < 10


def test_a_random_method_runs_with_every_seed(stored):
    shares = []
    outcome = run(stored, made.Dice, seeds=range(3), progress=shares.append)
    wanted = [made.Dice(3, seed).fit(VECTORS).labels_.tolist() for seed in range(3)]
    assert [labels.tolist() for labels in outcome.labels] == wanted
    assert shares == pytest.approx([1 / 3, 2 / 3, 1.0])


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (made.Refuses, "it needs other samples"),
        (made.NotInstalled, 'UMAP needs umap-learn: pip install "jule[umap]"'),
        (made.Killed, "it was killed: probably there is not enough memory"),
        (made.Crashes, "it crashed (SIGABRT)"),
    ],
)
def test_a_method_that_fails_says_why(stored, method, reason):
    outcome = run(stored, method)
    assert (outcome.labels, outcome.reason) == ((), reason)


def test_seeds_before_a_failure_are_kept(stored):
    outcome = run(stored, made.SecondSeedFails, seeds=range(3))
    assert (len(outcome.labels), outcome.reason) == (1, "KeyError: 'seed'")


def test_what_a_method_prints_is_not_taken_for_a_reply(stored, capfd):
    outcome = run(stored, made.Chatty)
    assert (len(outcome.labels), outcome.reason) == (1, "")
    assert outcome.warnings == ("fewer clusters",)
    assert capfd.readouterr() == ("", "")


def test_a_method_cannot_change_the_samples_and_its_memory_is_measured(stored):
    outcome = run(stored, made.Writer)
    assert outcome.reason == ""
    assert (np.load(stored) == VECTORS).all()
    if sys.platform == "linux":
        assert 45e6 < outcome.memory < 80e6


def test_negative_values_are_shifted_for_a_method_that_refuses_them(stored):
    assert run(stored, made.Positive).reason == ""
