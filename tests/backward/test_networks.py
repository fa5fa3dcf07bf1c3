"""The networks of the appendix, their initial weights, and the registry."""

import numpy as np
import pytest
import torch
from torch import nn

from jule.backward import (
    MLP,
    NETWORKS,
    ConvNet,
    Training,
    build_embedder,
    build_network,
    embed,
    layer_plan,
    train,
)
from jule.backward.description import describe, rebuild
from jule.backward.embedder import as_images, get_weights, set_weights

# Of the appendix: the image size, and what follows each other; every conv has its bn and relu.
APPENDIX = {
    "COIL-20": ((128, 128), "conv pool conv pool conv pool conv pool"),
    "COIL-100": ((128, 128), "conv pool conv pool conv pool conv pool"),
    "USPS": ((16, 16), "conv pool"),
    "MNIST-test": ((28, 28), "conv pool conv"),
    "MNIST-full": ((28, 28), "conv pool conv"),
    "UMist": ((112, 92), "conv pool conv pool conv pool"),
    "FRGC": ((32, 32), "conv pool conv pool"),
    "CMU-PIE": ((32, 32), "conv pool conv pool"),
    "YTF": ((55, 55), "conv pool conv pool"),
}
NAMES = {nn.Conv2d: "conv", nn.BatchNorm2d: "bn", nn.ReLU: "relu", nn.MaxPool2d: "pool"}
SIZES = [(1, 1), (1, 28), (3, 3), (8, 8), (12, 12), (13, 17), (28, 5), (55, 55), (4, 128), (92, 70)]


def random_images(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


# The paper's networks


@pytest.mark.parametrize(("size", "layers"), APPENDIX.values(), ids=APPENDIX)
def test_the_layers_of_the_appendix(size, layers):
    found = [NAMES[type(layer)] for block in ConvNet(*size).blocks for layer in block]
    assert " ".join(found) == layers.replace("conv", "conv bn relu")
    plan = layer_plan(*size)
    assert " ".join("conv pool" if pooled else "conv" for pooled in plan) == layers
    assert plan == layer_plan(*reversed(size))


def test_every_convolution_is_5x5_with_50_channels_and_no_padding():
    net = ConvNet(128, 128, 3)
    convolutions = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    assert [layer.in_channels for layer in convolutions] == [3, 50, 50, 50]
    for layer in convolutions:
        assert (layer.out_channels, layer.kernel_size) == (50, (5, 5))
        assert (layer.stride, layer.padding) == ((1, 1), (0, 0))
    assert net.top.out_features == 160


@pytest.mark.parametrize(
    ("size", "top"),
    [
        ((16, 16), (6, 6)),
        ((28, 28), (8, 8)),
        ((55, 55), (11, 11)),  # 51 is pooled to 26
        ((112, 92), (11, 8)),  # 21 is pooled to 11
        ((128, 128), (5, 5)),  # 25 is pooled to 13, 9 to 5
    ],
)
def test_maps_of_odd_sides_are_pooled_to_the_larger_half(size, top):
    net = ConvNet(*size).eval()
    x = torch.zeros(1, 1, *size)
    with torch.no_grad():
        for block in net.blocks:
            x = block(x)
    assert x.shape == (1, 50, *top)
    assert net.top.in_features == 50 * top[0] * top[1]


def test_pooling_keeps_the_odd_row_and_column():
    pool = ConvNet(13, 13).blocks[0][-1]
    marked = torch.zeros(1, 1, 9, 9)
    marked[..., 8, 8] = 1.0
    assert pool(marked)[0, 0, 4, 4] == 1.0


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (5, 5), (8, 8), (11, 11)])
def test_images_too_small_for_the_rule_get_one_convolution(size):
    assert layer_plan(*size) == [False]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", SIZES)
def test_any_size_gives_unit_vectors_that_can_be_trained(size, channels):
    images = random_images(4, *size, channels)
    embedder = build_embedder(images)
    x = as_images(images)
    out = embedder(x)
    assert out.shape == (4, 160)
    torch.testing.assert_close(out.norm(dim=1), torch.ones(4))
    out[0].sum().backward()
    assert all(weights.grad.isfinite().all() for weights in embedder.parameters())
    with torch.no_grad():
        torch.testing.assert_close(embedder.eval()(x).norm(dim=1), torch.ones(4))


def test_vectors_get_the_mlp():
    vectors = np.random.default_rng(0).standard_normal((6, 9))
    embedder = build_embedder(vectors)
    assert isinstance(embedder.body, MLP)
    out = embedder(as_images(vectors))
    assert out.shape == (6, 160)
    torch.testing.assert_close(out.norm(dim=1), torch.ones(6))


def test_lengths_of_the_outputs_can_be_chosen():
    assert ConvNet(8, 8, 1, outputs=5)(torch.zeros(2, 1, 8, 8)).shape == (2, 5)
    assert MLP(4, outputs=5, hidden=3)(torch.zeros(2, 4)).shape == (2, 5)


def test_memory_layout_does_not_matter():
    net = ConvNet(28, 28, 3).eval()
    x = torch.rand(2, 3, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(net(x), net(x.to(memory_format=torch.channels_last)))
        torch.testing.assert_close(net(x), net.layers(x)[-1])


# Initial weights


@pytest.mark.parametrize("shape", [(4, 28, 28), (4, 100)])
def test_initial_weights_are_small_and_biases_zero(shape):
    for layer in build_embedder(random_images(*shape)).modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            error = 0.01 / layer.weight.numel() ** 0.5
            assert layer.weight.mean().item() == pytest.approx(0.0, abs=4 * error)
            assert layer.weight.std().item() == pytest.approx(0.01, abs=4 * error)
            assert layer.bias is None or (layer.bias == 0).all()
        elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            assert (layer.weight == 1).all()
            assert (layer.bias == 0).all()


@pytest.mark.parametrize("shape", [(4, 16, 16), (4, 10)])
def test_the_seed_decides_the_initial_weights(shape):
    samples = random_images(*shape)
    torch.manual_seed(1)
    one = get_weights(build_embedder(samples, seed=3))
    torch.manual_seed(2)
    two = get_weights(build_embedder(samples, seed=3))
    other = get_weights(build_embedder(samples, seed=4))
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    assert not np.array_equal(one["body.top.weight"], other["body.top.weight"])


def test_building_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    build_embedder(random_images(4, 16, 16), seed=3)
    build_embedder(random_images(4, 10), seed=3)
    assert torch.equal(torch.get_rng_state(), before)


# The registry


@pytest.mark.parametrize(
    ("name", "input_shape", "kind"),
    [
        ("auto", (16, 12, 3), ConvNet),
        ("cnn", (16, 12, 3), ConvNet),
        ("auto", (9,), MLP),
        ("mlp", (9,), MLP),
    ],
)
def test_networks_by_name(name, input_shape, kind):
    network = build_network(name, input_shape, outputs=7)
    assert type(network) is kind
    assert network.options["outputs"] == 7
    channels_first = (input_shape[-1], *input_shape[:-1])
    assert network.eval()(torch.zeros(2, *channels_first)).shape == (2, 7)


def test_unknown_networks_are_rejected_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown network 'vit': choose one of auto, cnn, mlp"):
        build_embedder(random_images(4, 10), network="vit")
    assert list(NETWORKS) == ["cnn", "mlp", "residual"]


def test_the_head_for_encoded_vectors_starts_as_the_identity():
    vectors = np.random.default_rng(0).normal(3, 2, (6, 40)).astype(np.float32)
    embedder = build_embedder(vectors, network="residual", seed=1)
    assert embedder.mean.abs().max() == 0  # the vectors are not standardised
    assert embedder.std.unique().item() == pytest.approx(np.sqrt(np.square(vectors).mean()))
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(embed(embedder, vectors), expected, atol=1e-6)
    inner = embed(embedder, vectors, tap="top-1")
    assert inner.shape == (6, 256)
    assert (inner > 0).any()


def test_the_head_learns_and_is_built_again_from_its_description():
    vectors = np.random.default_rng(0).normal(size=(40, 12)).astype(np.float32)
    embedder = build_embedder(vectors, network="residual")
    settings = Training(learning_rate=1.0)
    train(embedder, vectors, np.arange(40) % 4, n_steps=3, settings=settings)
    learned = embed(embedder, vectors)
    assert (
        np.abs(learned - embed(build_embedder(vectors, network="residual"), vectors)).max() > 0.01
    )
    again = rebuild(describe(embedder))
    set_weights(again, get_weights(embedder))
    np.testing.assert_array_equal(embed(again, vectors), learned)
    with pytest.raises(ValueError, match="not among hidden, lift"):
        rebuild(describe(embedder) | {"options": {"outputs": 7}})


def test_a_lifted_head_keeps_the_lengths_of_vectors():
    line = np.linspace(4, 8, 9, dtype=np.float32)[:, None] * np.ones((1, 3), np.float32)
    flat = build_embedder(line, network="residual")
    lifted = build_embedder(line, network="residual", center=True, lift=True)
    np.testing.assert_allclose(embed(flat, line), 3**-0.5, atol=1e-6)
    found = embed(lifted, line)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)
    assert found.shape == (9, 4)
    assert (np.diff(found[:, 0]) > 0.04).all()
    again = rebuild(describe(lifted))
    set_weights(again, get_weights(lifted))
    np.testing.assert_array_equal(embed(again, line), found)


@pytest.mark.parametrize(
    ("name", "shape"), [("cnn", (4, 10)), ("mlp", (4, 8, 8)), ("residual", (4, 8, 8))]
)
def test_networks_for_another_kind_of_sample_are_rejected(name, shape):
    with pytest.raises(ValueError, match=f"'{name}' takes (images|vectors), but a sample has"):
        build_embedder(random_images(*shape), network=name)
