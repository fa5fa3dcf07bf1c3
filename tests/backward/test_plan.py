"""The layout of the networks without torch, against the networks themselves."""

import pytest
import torch

from jule.backward.networks import MLP, ConvNet
from jule.backward.plan import input_size, multiply_adds


def counted(network, x):
    """The multiply-adds of one sample, counted layer by layer while it passes."""
    total = 0

    def count(layer, _, out):
        nonlocal total
        total += layer.weight[0].numel() * out[0].numel()

    for layer in network.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            layer.register_forward_hook(count)
    network.eval()(x)
    return total


@pytest.mark.parametrize("shape", [(16, 16), (28, 28, 1), (32, 24, 3), (128, 128), (3, 5), (55, 9)])
def test_multiply_adds_are_those_of_the_network(shape):
    height, width, channels = (*shape, 1)[:3]
    x = torch.zeros(1, channels, height, width)
    assert multiply_adds(shape) == counted(ConvNet(height, width, channels), x)


def test_multiply_adds_of_vectors():
    assert multiply_adds((7,)) == counted(MLP(7), torch.zeros(1, 7))


@pytest.mark.parametrize(
    ("size", "expected"),
    [((8, 8), (16, 16)), ((7, 3), (16, 7)), ((1, 1), (16, 16)), ((1, 15), (1, 16)),
     ((16, 2), (16, 2)), ((32, 32), (32, 32)), ((128, 96), (32, 24)), ((500, 1), (32, 1))],
)  # fmt: skip
def test_the_larger_side_ends_between_both_limits(size, expected):
    assert input_size(*size, 16, 32) == expected
    assert input_size(*size) == size
