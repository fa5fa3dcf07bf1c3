"""Batch norm, ReLU and pooling in two passes, against the modules of torch."""

import copy
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from jule.backward import Training, build_embedder, train
from jule.backward.fused import can_fuse, normalize_and_activate
from jule.backward.networks import ConvNet, convnet


def random_maps(n, c, h, w, seed=0):
    generator = torch.Generator().manual_seed(seed)
    maps = torch.randn(n, c, h, w, generator=generator) * 2 + 0.7
    return maps.contiguous(memory_format=torch.channels_last)


def random_norm(c, seed=0):
    """A batch norm some of whose scales are negative: the largest value is then the smallest."""
    generator = torch.Generator().manual_seed(seed)
    norm = nn.BatchNorm2d(c)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(c, generator=generator))
        norm.bias.copy_(torch.randn(c, generator=generator))
    return norm


def plain(maps, norm, pooled):
    outputs = norm(maps).relu()
    return nn.functional.max_pool2d(outputs, 2, ceil_mode=True) if pooled else outputs


def close(found, expected):
    scale = max(1.0, expected.abs().max().item())
    torch.testing.assert_close(found, expected.to(found.dtype), rtol=1e-4, atol=1e-5 * scale)


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(2, 5),
    c=st.integers(1, 50),
    h=st.integers(2, 9),
    w=st.integers(2, 9),
    pooled=st.booleans(),
    seed=st.integers(0, 99),
)
def test_same_as_the_modules(n, c, h, w, pooled, seed):
    ours = random_norm(c, seed)
    theirs = copy.deepcopy(ours).double()
    x = random_maps(n, c, h, w, seed).requires_grad_()
    y = x.detach().double().requires_grad_()
    found, expected = normalize_and_activate(x, ours, pooled=pooled), plain(y, theirs, pooled)
    close(found, expected)
    gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(seed + 1))
    found.backward(gradient)
    expected.backward(gradient)
    close(x.grad, y.grad)
    close(ours.weight.grad, theirs.weight.grad)
    close(ours.bias.grad, theirs.bias.grad)
    for name, value in theirs.state_dict().items():
        close(ours.state_dict()[name], value)


def test_far_from_zero_no_digits_are_lost():
    """The variance is a difference of large numbers if the mean is not subtracted first."""
    maps = random_maps(20, 3, 12, 12) + 1000
    maps = maps.contiguous(memory_format=torch.channels_last)
    exact = maps.double().var(dim=(0, 2, 3), correction=0)
    norm = nn.BatchNorm2d(3, momentum=1.0)
    normalize_and_activate(maps, norm, pooled=True)
    count = maps.numel() // 3
    torch.testing.assert_close(
        norm.running_var.double(), exact * count / (count - 1), rtol=1e-5, atol=0
    )


@pytest.mark.parametrize("pooled", [False, True])
def test_constant_maps(pooled):
    maps = torch.full((4, 2, 6, 6), 3.0).contiguous(memory_format=torch.channels_last)
    maps.requires_grad_()
    outputs = normalize_and_activate(maps, random_norm(2), pooled=pooled)
    outputs.sum().backward()
    assert torch.isfinite(outputs).all()
    assert torch.isfinite(maps.grad).all()


@pytest.mark.parametrize("pooled", [False, True])
def test_in_evaluation_the_running_statistics_count(pooled):
    norm = random_norm(5)
    norm(random_maps(8, 5, 6, 6, seed=3))
    norm.eval()
    before = copy.deepcopy(norm.state_dict())
    maps = random_maps(3, 5, 7, 6)
    with torch.no_grad():
        close(normalize_and_activate(maps, norm, pooled=pooled), plain(maps, norm, pooled))
    assert all(torch.equal(value, norm.state_dict()[name]) for name, value in before.items())


def test_what_cannot_be_fused_is_left_to_the_modules():
    maps, norm = random_maps(2, 5, 6, 6), random_norm(5)
    assert can_fuse(maps, norm)
    assert not can_fuse(maps.double(), norm)
    assert not can_fuse(maps.contiguous(), norm)
    assert not can_fuse(maps, nn.BatchNorm2d(5, momentum=None))
    norm.eval()
    assert not can_fuse(maps, norm)  # the gradient in evaluation mode
    with torch.no_grad():
        assert can_fuse(maps, norm)


def test_training_is_the_same_with_and_without(monkeypatch):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 255, (60, 28, 28), np.uint8), np.arange(60) // 6
    losses = []
    for fused in (True, False):
        if not fused:
            monkeypatch.setattr(convnet, "can_fuse", lambda *_: False)
        embedder = build_embedder(images)
        losses.append(train(embedder, images, labels, n_steps=5, settings=Training(batch_size=30)))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)


def test_a_network_can_be_exported():
    """torch traces a network with tensors that have no values."""
    network = ConvNet(16, 16, 1).eval()
    images = torch.zeros(2, 1, 16, 16)
    program = torch.export.export(network, (images,))
    close(program.module()(images), network(images))


def test_without_compiled_kernels_the_modules_are_used():
    program = (
        "import torch; from torch import nn; from jule.backward.fused import can_fuse;"
        "maps = torch.zeros(2, 5, 6, 6).contiguous(memory_format=torch.channels_last);"
        "print(can_fuse(maps, nn.BatchNorm2d(5)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "JULE_COMPILE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
