"""The embedder: scaling, taps, description, reading and setting weights."""

import json
import tracemalloc

import numpy as np
import pytest
import torch
from torch import nn

from jule.backward import Embedder, build_embedder, embed
from jule.backward.description import describe, rebuild
from jule.backward.embedder import (
    as_images,
    best_device,
    channel_moments,
    get_weights,
    set_weights,
    tap_names,
)


def random_images(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def own_network():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 7))


# Means and deviations


@pytest.mark.parametrize("shape", [(7, 6, 5), (7, 6, 5, 1), (7, 6, 5, 3), (50, 4), (1, 3, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_moments_are_those_of_numpy(dtype, shape):
    samples = (np.random.default_rng(0).random(shape) * 200).astype(dtype)
    mean, std = channel_moments(samples)
    flat = samples.astype(np.float64).reshape(-1, 1 if len(shape) == 3 else shape[-1])
    assert mean.dtype == std.dtype == np.float32
    np.testing.assert_allclose(mean, flat.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(std, flat.std(axis=0), rtol=1e-5)


def test_moments_in_several_blocks_take_little_memory(tmp_path):
    samples = np.memmap(tmp_path / "images", np.uint8, "w+", shape=(6000, 64, 64))
    samples[:] = random_images(6000, 1, 64) // 4 + np.arange(64, dtype=np.uint8)[:, None]
    tracemalloc.start()
    mean, std = channel_moments(samples)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < samples.size * 4  # less than all of them as float32
    exact = np.bincount(samples.ravel(), minlength=256) / samples.size
    centre = exact @ np.arange(256)
    np.testing.assert_allclose(mean, [centre], rtol=1e-6)
    np.testing.assert_allclose(std, [np.sqrt(exact @ (np.arange(256) - centre) ** 2)], rtol=1e-6)


@pytest.mark.parametrize("value", [0, 1, 7, 255])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_constant_channels_have_deviation_one(dtype, value):
    samples = random_images(5, 4, 4, 3).astype(dtype)
    samples[..., 1] = value
    mean, std = channel_moments(samples)
    assert (mean[1], std[1]) == (value, 1.0)
    assert (std[[0, 2]] > 10).all()


def test_constant_features_with_a_fraction_have_deviation_one():
    mean, std = channel_moments(np.full((50, 2), [0.1, -3.3]))
    np.testing.assert_allclose(mean, [0.1, -3.3], rtol=1e-6)
    assert std.tolist() == [1.0, 1.0]


def test_a_large_mean_does_not_drown_the_deviation():
    samples = 1000.0 + np.random.default_rng(0).standard_normal((500, 2))
    np.testing.assert_allclose(channel_moments(samples)[1], samples.std(axis=0), rtol=1e-6)


# Around a network


@pytest.mark.parametrize("shape", [(20, 6, 7), (20, 6, 7, 3), (200, 5)])
def test_scaled_samples_have_mean_zero_and_deviation_one(shape):
    samples = random_images(*shape)
    x = build_embedder(samples).scaled(as_images(samples)).transpose(0, 1).flatten(1)
    torch.testing.assert_close(x.mean(dim=1), torch.zeros(len(x)), rtol=0, atol=1e-5)
    torch.testing.assert_close(x.std(dim=1, correction=0), torch.ones(len(x)))


@pytest.mark.parametrize(
    ("size", "max_side", "expected"),
    [
        ((128, 96), 64, (64, 48)),
        ((96, 128), 64, (48, 64)),
        ((28, 28), 28, (28, 28)),
        ((20, 28), 64, (20, 28)),
        ((200, 1), 10, (10, 1)),
        ((20, 28), None, (20, 28)),
    ],
)
def test_larger_images_are_averaged_down_to_max_side(size, max_side, expected):
    images = random_images(3, *size)
    embedder = build_embedder(images, max_side=max_side)
    assert embedder.size == expected
    assert embedder.scaled(as_images(images)).shape == (3, 1, *expected)
    assert embed(embedder, images).shape == (3, 160)


def test_images_are_averaged_down():
    images = random_images(3, 8, 8)
    embedder = Embedder(nn.Flatten(), torch.zeros(1), torch.ones(1), (4, 4))
    means = images.reshape(3, 4, 2, 4, 2).mean(axis=(2, 4))
    np.testing.assert_allclose(embedder.scaled(as_images(images))[:, 0], means, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float64, bool])
def test_samples_become_float32_in_the_order_of_torch(dtype):
    samples = np.random.default_rng(0).integers(0, 2, (2, 5, 4, 3)).astype(dtype)
    colour, grey, vectors = as_images(samples), as_images(samples[..., 0]), as_images(samples[0, 0])
    assert colour.dtype == grey.dtype == vectors.dtype == torch.float32
    np.testing.assert_array_equal(colour, samples.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(grey, samples[:, None, :, :, 0])
    np.testing.assert_array_equal(vectors, samples[0, 0])


def test_samples_that_lie_backwards_in_memory_are_read_right():
    samples = random_images(4, 5, 6)[::-1, :, ::-2]
    np.testing.assert_array_equal(as_images(samples)[:, 0], samples)


def test_devices():
    assert best_device("cpu") == torch.device("cpu")
    assert best_device().type in ("cpu", "cuda", "mps")


def test_normalized_images_have_root_mean_square_one():
    images = random_images(5, 8, 8)
    images[2] = 0  # a black image stays black
    embedder = Embedder(nn.Flatten(), torch.zeros(1), torch.ones(1), normalize=True)
    scaled = embedder.scaled(as_images(images))
    rms = scaled.square().mean(dim=(1, 2, 3)).sqrt()
    torch.testing.assert_close(rms, torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0]))
    mean, std = channel_moments(images, normalize=True)
    np.testing.assert_allclose(mean, scaled.mean(), rtol=1e-5)
    np.testing.assert_allclose(std, scaled.std(correction=0), rtol=1e-5)


# Taps


def test_taps_of_images_from_the_top_down():
    embedder = build_embedder(random_images(4, 28, 28)).eval()
    x = as_images(random_images(2, 28, 28))
    with torch.no_grad():
        maps = embedder.body.layers(embedder.scaled(x))
        assert torch.equal(embedder.tap(x, "top"), embedder(x))
        assert torch.equal(embedder.tap(x, "top-1"), maps[1])
        assert torch.equal(embedder.tap(x, "top-2"), maps[0])
    assert [tuple(output.shape) for output in maps] == [
        (2, 50 * 12 * 12),
        (2, 50 * 8 * 8),
        (2, 160),
    ]


def test_taps_of_vectors():
    vectors = random_images(4, 10)
    embedder = build_embedder(vectors).eval()
    assert embedder.tap(as_images(vectors), "top-1").shape == (4, 500)


def test_tap_names():
    assert tap_names(1) == ["top"]
    assert tap_names(4) == ["top", "top-1", "top-2", "top-3"]


@pytest.mark.parametrize("name", ["top-3", "top-0", "bottom", ""])
def test_unknown_taps_are_rejected(name):
    embedder = build_embedder(random_images(4, 28, 28))
    with pytest.raises(ValueError, match=f"unknown layer '{name}': choose one of top, top-1"):
        embedder.tap(torch.zeros(2, 1, 28, 28), name)


def test_own_networks_have_only_the_top():
    embedder = build_embedder(random_images(4, 8, 8), body=own_network())
    x = torch.rand(2, 1, 8, 8)
    assert torch.equal(embedder.tap(x, "top"), embedder(x))
    with pytest.raises(ValueError, match="use 'top' with your own"):
        embedder.tap(x, "top-1")


# Weights


@pytest.mark.parametrize("shape", [(8, 16, 16, 3), (8, 10)])
def test_weights_are_read_and_set(shape):
    samples = random_images(*shape)
    embedder = build_embedder(samples, seed=1)
    embedder.train()(as_images(samples))
    other = build_embedder(random_images(*shape, seed=9), seed=2)
    set_weights(other, get_weights(embedder))
    np.testing.assert_array_equal(embed(other, samples), embed(embedder, samples))
    for name, numbers in get_weights(embedder).items():
        np.testing.assert_array_equal(get_weights(other)[name], numbers)


def test_weights_that_were_read_do_not_change_with_the_network():
    embedder = build_embedder(random_images(4, 16, 16))
    state = get_weights(embedder)
    before = {name: numbers.copy() for name, numbers in state.items()}
    with torch.no_grad():
        for weights in embedder.state_dict().values():
            weights += 1
    for name, numbers in state.items():
        assert numbers.flags.c_contiguous
        np.testing.assert_array_equal(numbers, before[name])


@pytest.mark.parametrize("shape", [(4, 28, 28), (4, 16, 16, 3), (4, 13, 13), (4, 10)])
def test_weights_of_another_network_are_rejected(shape):
    foreign = get_weights(build_embedder(random_images(*shape)))
    with pytest.raises(ValueError, match="belong to a different network"):
        set_weights(build_embedder(random_images(4, 16, 16)), foreign)


def test_missing_weights_are_rejected():
    embedder = build_embedder(random_images(4, 16, 16))
    state = get_weights(embedder)
    del state["body.top.bias"]
    with pytest.raises(ValueError, match=r"(?s)belong to a different network.*body\.top\.bias"):
        set_weights(embedder, state)


@pytest.mark.parametrize("shape", [(4, 28, 28), (4, 20, 30, 3), (4, 10)])
def test_a_network_is_built_again_from_its_description(shape):
    samples = random_images(*shape)
    embedder = build_embedder(samples, max_side=24, normalize=True, seed=5)
    again = rebuild(json.loads(json.dumps(describe(embedder))))
    set_weights(again, get_weights(embedder))
    assert again.size == embedder.size
    assert describe(again) == describe(embedder)
    np.testing.assert_array_equal(embed(again, samples), embed(embedder, samples))


# Networks of the user's own


def test_an_own_network_takes_the_place_of_the_paper_s():
    images = random_images(6, 8, 8)
    body = own_network()
    embedder = build_embedder(images, body=body)
    assert embedder.body is body
    found = embed(embedder, images)
    assert found.shape == (6, 7)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-5)


def test_maps_of_an_own_network_are_flattened():
    images = random_images(6, 8, 8, 3)
    found = embed(build_embedder(images, body=nn.Conv2d(3, 2, 5)), images)
    assert found.shape == (6, 2 * 4 * 4)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-5)


def test_an_own_network_is_built_again_from_an_instance():
    images = random_images(6, 8, 8)
    embedder = build_embedder(images, body=own_network())
    about = describe(embedder)
    assert about["network"] == "custom"
    with pytest.raises(ValueError, match=r"your own network \(Sequential\): pass an instance"):
        rebuild(about)
    again = rebuild(about, own_network())
    set_weights(again, get_weights(embedder))
    np.testing.assert_array_equal(embed(again, images), embed(embedder, images))
