"""Trustworthiness against scikit-learn, and the 1-NN error."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness as oracle
from sklearn.neighbors import KNeighborsClassifier

from jule.images import load_dataset
from jule.paper import neighborhoods
from jule.paper.neighborhoods import nearest_neighbor_error, trustworthiness


@pytest.mark.parametrize("k", [1, 5, 12])
@pytest.mark.parametrize("cells", [2**22, 1000, 1])
def test_trustworthiness_is_that_of_scikit_learn(k, cells, monkeypatch):
    monkeypatch.setattr(neighborhoods, "BLOCK_CELLS", cells)
    rng = np.random.default_rng(k)
    samples = rng.normal(size=(90, 7))
    for positions in (samples[:, :2], rng.normal(size=(90, 3)), samples):
        found = trustworthiness(samples, positions, k)
        assert found == pytest.approx(oracle(samples, positions, n_neighbors=k), abs=1e-12)


def test_real_images_agree_up_to_ties():
    images = load_dataset("digits").images[:300]
    flat = images.reshape(300, -1).astype(float)
    positions = flat[:, [20, 36]] + np.random.default_rng(0).normal(0, 1e-3, (300, 2))
    expected = oracle(flat, positions, n_neighbors=12)
    assert trustworthiness(images, positions) == pytest.approx(expected, abs=2e-3)


def test_copies_share_the_better_rank():
    samples = np.repeat(np.arange(10.0), 2)[:, None]
    assert trustworthiness(samples, samples, k=1) == 1.0


@pytest.mark.parametrize("k", [0, 10])
def test_the_number_of_neighbours_is_checked(k):
    with pytest.raises(ValueError, match="less than n_samples / 2"):
        trustworthiness(np.eye(20), np.eye(20), k)


def test_the_error_is_that_of_a_classifier():
    data = load_dataset("digits")
    flat = data.images.reshape(len(data), -1).astype(float)
    train, test = slice(0, 400), slice(400, 600)
    classifier = KNeighborsClassifier(1).fit(flat[train], data.labels[train])
    expected = 1 - classifier.score(flat[test], data.labels[test])
    found = nearest_neighbor_error(flat[train], data.labels[train], flat[test], data.labels[test])
    assert found == pytest.approx(expected)
