"""Whether training images may be warped is decided from the data."""

import numpy as np
import pytest

from jule.forward import prepare
from jule.images import load_dataset
from jule.joint import Config
from jule.joint.clustering import cut_tree, initial_clusters, merge_tree, represent
from jule.joint.warp import warps_keep_clusters


def may_be_warped(images, k):
    config = Config(n_clusters=k)
    raw = represent(prepare(images, config.preparation), config)
    clusters = cut_tree(merge_tree(raw, initial_clusters(raw, config), config), k, config)
    return warps_keep_clusters(images, raw, clusters, config)


def test_handwritten_digits_may_be_warped():
    assert may_be_warped(load_dataset("digits").images, 10)


def test_faces_cropped_to_the_pixel_may_not(data_folder):
    data = load_dataset("cmu-pie", data_folder)
    assert not may_be_warped(data.images, data.n_clusters)


def test_stripes_that_differ_by_their_place_may_not():
    rows = np.arange(32)[None, :, None]
    phases = np.repeat(np.arange(8), 20)[:, None, None]
    stripes = 127 + 120 * np.sin(2 * np.pi * (rows + phases) / 8)
    noise = np.random.default_rng(0).normal(0, 2, (160, 32, 32))
    assert not may_be_warped((stripes + noise).clip(0, 255).astype(np.uint8), 8)


@pytest.mark.parametrize("n", [2, 3])
def test_tiny_sets_get_an_answer(n):
    images = np.random.default_rng(0).integers(0, 255, (n, 8, 8), np.uint8)
    assert may_be_warped(images, 2) in (True, False)
