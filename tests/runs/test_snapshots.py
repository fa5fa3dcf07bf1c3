"""Snapshots: principal components against scikit-learn, files that are read back."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from jule.runs.snapshots import (
    load_snapshots,
    principal_components,
    save_snapshot,
    shown_samples,
    take_snapshot,
)


@pytest.mark.parametrize("shape", [(200, 30), (40, 700), (90, 2000), (5, 3), (2, 1)])
def test_principal_components_are_those_of_scikit_learn(shape):
    vectors = np.random.default_rng(0).normal(size=shape) * np.linspace(9, 1, shape[1]) ** 2
    count = min(3, shape[0] - 1, shape[1])
    found = principal_components(vectors, 3)
    expected = PCA(count, svd_solver="full").fit_transform(vectors)
    assert found.shape == (shape[0], 3)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        np.abs(found[:, :count]), np.abs(expected), atol=1e-3 * scale
    )  # the sign is free
    assert np.abs(found[:, count:]).max(initial=0) < 1e-6 * scale


def test_vectors_that_are_all_the_same_lie_in_one_point():
    assert not principal_components(np.ones((6, 4)), 3).any()


def test_images_are_vectors_too():
    assert principal_components(np.random.default_rng(0).normal(size=(9, 4, 4)), 3).shape == (9, 3)


def test_large_sets_are_seen_through_two_thousand_samples():
    shown = shown_samples(70_000)
    assert len(np.unique(shown)) == 2000
    assert shown.max() < 70_000
    assert set(np.diff(shown).tolist()) == {35}


def test_a_snapshot_is_read_back_in_the_order_of_the_periods(tmp_path):
    labels = np.arange(60) % 7
    vectors = np.random.default_rng(0).normal(size=(60, 5))
    for period in (2, 0, 11):
        save_snapshot(tmp_path / "snapshots", take_snapshot(period, vectors, labels))
    (tmp_path / "snapshots" / "notes.txt").write_text("not ours")
    found = load_snapshots(tmp_path / "snapshots")
    assert [shot.period for shot in found] == [0, 2, 11]
    assert found[0].n_clusters == 7
    np.testing.assert_array_equal(found[0].labels, labels)
    np.testing.assert_array_equal(found[0].positions, found[1].positions)
