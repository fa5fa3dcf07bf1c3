"""EfficientNet-Lite0: its layers against plain definitions, and its published weights."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from jule.features.efficientnet import (
    EPSILON,
    Block,
    Convolution,
    EfficientNetLite0,
    _published_names,
    load_pretrained,
)


def naive_convolution(x, weight, bias, stride):
    """A convolution padded as in TensorFlow, with loops: (h, w) to (h', w')."""
    height, width = x.shape
    kernel = len(weight)
    rows, columns = -(-height // stride), -(-width // stride)
    top = max((rows - 1) * stride + kernel - height, 0) // 2
    left = max((columns - 1) * stride + kernel - width, 0) // 2
    found = np.full((rows, columns), float(bias))
    for row in range(rows):
        for column in range(columns):
            for i in range(kernel):
                for j in range(kernel):
                    y, z = row * stride + i - top, column * stride + j - left
                    if 0 <= y < height and 0 <= z < width:
                        found[row, column] += weight[i, j] * x[y, z]
    return found


@pytest.mark.parametrize("size", [(8, 8), (7, 8), (9, 5), (1, 1)])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (5, 1), (5, 2)])
@pytest.mark.parametrize("is_exported", [False, True])
def test_padding_is_that_of_tensorflow(monkeypatch, size, kernel, stride, is_exported):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: is_exported)
    rng = np.random.default_rng(0)
    layer = Convolution(1, 1, kernel, stride, is_linear=True)
    weight, bias, x = rng.normal(size=(kernel, kernel)), rng.normal(), rng.normal(size=size)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight)[None, None])
        layer.bias.fill_(bias)
        found = layer(torch.from_numpy(x).float()[None, None])[0, 0].numpy()
    np.testing.assert_allclose(found, naive_convolution(x, weight, bias, stride), atol=1e-5)


def random_weights(network, seed=0):
    """Weights in their published form, with batch normalisation apart."""
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    layers = [layer for layer in network.modules() if isinstance(layer, Convolution)]
    for layer, (convolution, norm) in zip(layers, _published_names(network), strict=True):
        shape, outputs = layer.weight.shape, len(layer.bias)
        weights[f"{convolution}.weight"] = 0.3 * torch.randn(shape, generator=generator)
        for name in ("weight", "running_var"):
            weights[f"{norm}.{name}"] = 0.5 + torch.rand(outputs, generator=generator)
        for name in ("bias", "running_mean"):
            weights[f"{norm}.{name}"] = torch.randn(outputs, generator=generator)
    return weights


def test_batch_normalisation_is_folded_into_the_convolutions():
    network = EfficientNetLite0()
    weights = random_weights(network)
    load_pretrained(network, weights)
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    padded = F.pad(x, (0, 1, 0, 1))
    plain = F.conv2d(padded, weights["_conv_stem.weight"], stride=2)
    names = ("running_mean", "running_var", "weight", "bias")
    plain = F.batch_norm(plain, *(weights[f"_bn0.{name}"] for name in names), eps=EPSILON)
    with torch.no_grad():
        found = network.layers[0](x)
    torch.testing.assert_close(found, plain.clamp(0, 6), atol=1e-5, rtol=1e-5)


def test_blocks_add_their_input_where_the_size_stays():
    for block, is_residual in ((Block(4, 4, 1, 3, 6), True), (Block(4, 4, 2, 3, 6), False)):
        x = torch.rand(1, 4, 6, 6)
        with torch.no_grad():
            assert torch.equal(block(x), x) == is_residual  # its weights are 0


def test_other_weights_are_refused():
    network = EfficientNetLite0()
    weights = random_weights(network)
    with pytest.raises(ValueError, match=r"no entry '_conv_head.weight'"):
        load_pretrained(network, {k: v for k, v in weights.items() if k != "_conv_head.weight"})
    with pytest.raises(ValueError, match=r"_conv_stem have the shape"):
        load_pretrained(network, weights | {"_conv_stem.weight": torch.zeros(1)})
