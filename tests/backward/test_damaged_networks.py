"""Descriptions and weights that are damaged, or made to use up the memory; devices."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.backward.description import describe, rebuild
from jule.backward.embedder import (
    as_images,
    best_device,
    build_embedder,
    get_weights,
    set_weights,
)
from jule.backward.networks import build_network
from jule.backward.plan import n_weights

IMAGES = np.random.default_rng(0).random((4, 16, 16))
VECTORS = np.random.default_rng(0).random((4, 7))


def about(samples=IMAGES):
    return json.loads(json.dumps(describe(build_embedder(samples))))


@pytest.mark.parametrize("samples", [IMAGES, VECTORS])
def test_a_description_survives_json(samples):
    embedder = build_embedder(samples)
    again = rebuild(json.loads(json.dumps(describe(embedder))))
    set_weights(again, get_weights(embedder))
    assert describe(again) == describe(embedder)


@pytest.mark.parametrize(
    "changes",
    [
        {"size": [16]},
        {"size": [16, -16]},
        {"size": [16, 0]},
        {"size": [16, 16.0]},
        {"size": "16x16"},
        {"size": {"height": 16}},
        {"size": [10**9, 10**9]},
        {"size": [10**30, 1]},
        {"channels": 0},
        {"channels": True},
        {"channels": "1"},
        {"channels": 10**12},
        {"channels": None},
        {"normalize": 1},
        {"normalize": None},
        {"network": None},
        {"network": ["cnn"]},
        {"network": "unknown"},
        {"network": "mlp"},
        {"options": None},
        {"options": {"outputs": 10**9}},
        {"options": {"outputs": -1}},
        {"options": {"outputs": "160"}},
        {"options": {"hidden": 10}},
        {"options": {"__class__": 1}},
        {"more": 1},
    ],
)
def test_a_damaged_description_is_refused(changes):
    with pytest.raises(ValueError, match=r"network|memory"):
        rebuild(about() | changes)


@pytest.mark.parametrize("name", ["size", "channels", "normalize", "network"])
def test_a_description_without_an_entry_is_refused(name):
    values = about()
    del values[name]
    with pytest.raises(ValueError, match="network"):
        rebuild(values)


@pytest.mark.parametrize("value", [None, 3, "cnn", [], [["network", "cnn"]]])
def test_a_description_that_is_no_object_is_refused(value):
    with pytest.raises(ValueError, match="not an object"):
        rebuild(value)


def test_a_large_network_for_vectors_is_refused_before_it_is_built():
    with pytest.raises(ValueError, match=r"the network needs .* of memory"):
        rebuild(about(VECTORS) | {"channels": 10**9, "options": {"hidden": 10**6}})


@given(
    values=st.dictionaries(
        st.sampled_from(["size", "channels", "normalize", "network", "options", "class"]),
        st.none()
        | st.booleans()
        | st.integers(-5, 40)
        | st.text(max_size=3)
        | st.lists(st.integers(-1, 20), max_size=3)
        | st.dictionaries(st.sampled_from(["outputs", "hidden", "x"]), st.integers(-1, 200)),
    )
)
@settings(max_examples=200, deadline=None)
def test_any_description_is_a_network_or_a_value_error(values):
    try:
        embedder = rebuild(about() | values)
    except ValueError:
        return
    assert len(embedder.mean) == (about() | values)["channels"]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x * np.nan,
        lambda x: x + np.inf,
        lambda x: x[..., None],
        lambda x: x[:-1],
        lambda x: x.astype(np.int64),
        lambda x: x.astype(np.complex64),
    ],
)
@pytest.mark.parametrize("name", ["top.weight", "std"])
def test_damaged_weights_are_refused(change, name):
    embedder = build_embedder(IMAGES)
    weights = get_weights(embedder)
    name = name if name in weights else f"body.{name}"
    with pytest.raises(ValueError, match=r"different network|not finite"):
        set_weights(embedder, weights | {name: change(weights[name])})


def test_a_standard_deviation_of_0_is_refused():
    embedder = build_embedder(IMAGES)
    weights = get_weights(embedder)
    with pytest.raises(ValueError, match="std are not all positive"):
        set_weights(embedder, weights | {"std": np.zeros(1, np.float32)})


@pytest.mark.parametrize("shape", [(16, 16, 1), (28, 28, 3), (1, 1, 1), (5, 64, 1), (9,), (500,)])
def test_the_weights_are_counted_before_they_exist(shape):
    network = build_network("auto", shape)
    assert n_weights(shape) == sum(weight.numel() for weight in network.parameters())


# Values beyond float32


@pytest.mark.parametrize("scale", [1e298, 1e-310, 1e30, 1e-30])
@pytest.mark.parametrize("samples", [IMAGES, VECTORS])
def test_values_that_float32_cannot_square_are_refused(scale, samples):
    with pytest.raises(ValueError, match="computes in float32: scale the samples"):
        build_embedder(samples * scale)


def test_new_samples_beyond_float32_are_refused():
    with pytest.raises(ValueError, match="not finite in float32"):
        as_images(VECTORS * 1e300)


# Devices


@pytest.mark.parametrize("name", ["bogus", "", "cpu:x", "cpu:", "meta", "xla", "cuda:x", "cpu:-1"])
def test_unknown_devices_are_refused(name):
    with pytest.raises(ValueError, match="is not available here: choose one of auto"):
        best_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_a_gpu_that_is_not_there_is_refused(name):
    with pytest.raises(ValueError, match=f"device '{name}' is not available here: choose one of"):
        best_device(name)
