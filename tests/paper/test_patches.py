"""Patches: cut, normalised and whitened as published; the layers against torch's convolutions."""

import numpy as np
import pytest
import torch

from jule.backward import build_embedder, embed
from jule.paper.patches import (
    SIDE,
    ConvolutionalLayers,
    PatchNet,
    cut_patches,
    fit_whitening,
    normalize_contrast,
    random_patches,
)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (5, 9, 8, 3)).astype(np.uint8)


def test_patches_are_cut_row_by_row(images):
    patches = cut_patches(images).reshape(5, 4, 3, SIDE, SIDE, 3)
    for n, y, x in [(0, 0, 0), (1, 3, 2), (4, 2, 1)]:
        np.testing.assert_array_equal(patches[n, y, x], images[n, y : y + SIDE, x : x + SIDE])


def test_random_patches_are_patches(images):
    known = {patch.tobytes() for patch in cut_patches(images)}
    drawn = random_patches(images, 2000, seed=1)
    assert {patch.tobytes() for patch in drawn} == known, "every place is drawn, none outside"
    np.testing.assert_array_equal(drawn, random_patches(images, 2000, seed=1))
    assert (drawn != random_patches(images, 2000, seed=2)).any()


def test_grey_images_have_one_channel(images):
    grey = images[..., 0]
    np.testing.assert_array_equal(cut_patches(grey), cut_patches(grey[..., None]))
    assert random_patches(grey, 3, seed=0).shape == (3, SIDE * SIDE)


def test_contrast_as_published(images):
    patches = cut_patches(images).astype(np.float64)
    expected = patches - patches.mean(axis=1, keepdims=True)
    expected /= np.sqrt(patches.var(axis=1, ddof=1, keepdims=True) + 10)
    np.testing.assert_allclose(normalize_contrast(cut_patches(images)), expected, atol=1e-5)


def test_a_flat_patch_stays_flat():
    assert (normalize_contrast(np.full((1, 108), 77, np.float32)) == 0).all()


def test_whitening_decorrelates_and_stays_close(images):
    rng = np.random.default_rng(0)
    patches = (rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6)) * 9 + 3).astype(np.float32)
    whitening = fit_whitening(patches)
    whitened = whitening(patches)
    np.testing.assert_allclose(whitened.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(whitened.T), np.eye(6), atol=0.02)
    np.testing.assert_allclose(whitening.matrix, whitening.matrix.T, atol=1e-5)


def test_the_network_has_the_papers_layers():
    network = PatchNet(3)
    kinds = [type(layer).__name__ for layer in network.blocks[0]]
    assert kinds == ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"]
    for block in network.blocks:
        assert block[0].weight.shape[0] == 50
        assert (block[0].kernel_size, block[0].padding) == ((3, 3), (1, 1))
    assert network(torch.zeros(2, 3, SIDE, SIDE)).shape == (2, 160)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_layers_are_those_of_the_network(images, channels):
    patches = normalize_contrast(cut_patches(images[..., :channels]))
    whitening = fit_whitening(patches)
    whitened = whitening(patches).reshape(-1, SIDE, SIDE, channels)
    torch.manual_seed(0)
    embedder = build_embedder(whitened + 1, body=PatchNet(channels))  # a mean that is not 0
    for block in embedder.body.blocks:
        for values in (block[1].weight, block[1].bias, block[1].running_mean):
            torch.nn.init.normal_(values)
        torch.nn.init.uniform_(block[1].running_var, 0.5, 2.0)
    layers = ConvolutionalLayers(whitening, embedder.eval())(patches)
    for layer, tap, side in zip(layers, ("top-2", "top-1"), (3, 2), strict=True):
        expected = embed(embedder, whitened, tap=tap)
        found = layer.reshape(-1, side, side, 50).transpose(0, 3, 1, 2).reshape(len(layer), -1)
        assert (expected > 0).any()
        np.testing.assert_allclose(found, expected, atol=1e-4)
