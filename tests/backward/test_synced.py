"""Training on several processes, against training on one."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from jule.backward import Training, build_embedder, train
from jule.backward.embedder import get_weights
from jule.backward.synced import part_of_batch, synced_batch_norm
from jule.images import load_dataset
from jule.ranks import ALONE
from tests.made_ranks import together


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
def test_parts_of_a_batch_are_all_of_it_and_keep_groups_together(size):
    clusters = np.repeat(np.random.default_rng(0).permutation(25), 4)
    parts = [part_of_batch(clusters, rank, size) for rank in range(size)]
    rows = np.concatenate([np.arange(100)[part] for part in parts])
    np.testing.assert_array_equal(rows, np.arange(100))
    owners = [{rank for rank, part in enumerate(parts) if c in clusters[part]} for c in range(25)]
    assert {len(found) for found in owners} == {1}
    assert max(part.stop - part.start for part in parts) <= 100 / size + 4


def test_a_batch_of_one_cluster_stays_on_one_rank():
    parts = [part_of_batch(np.zeros(10, int), rank, 3) for rank in range(3)]
    assert sorted(part.stop - part.start for part in parts) == [0, 0, 10]


CASES = [
    (nn.BatchNorm2d(5), (12, 5, 4, 3)),
    (nn.BatchNorm1d(5), (12, 5)),
    (nn.BatchNorm2d(5, affine=False, momentum=None), (12, 5, 4, 3)),
    (nn.BatchNorm2d(5, track_running_stats=False), (12, 5, 4, 3)),
]


@pytest.mark.parametrize(("plain", "shape"), CASES)
@pytest.mark.parametrize("cut", [5, 1, 0])
def test_batch_norm_is_that_of_the_whole_batch(plain, shape, cut):
    generator = torch.Generator().manual_seed(0)
    x, wanted = (torch.randn(shape, generator=generator) for _ in range(2))
    x = 100.0 + 3.0 * x  # far from 0, where sums of squares would cancel
    plain = copy.deepcopy(plain).train()
    if plain.affine:
        with torch.no_grad():
            plain.weight.normal_(generator=generator)
            plain.bias.normal_(generator=generator)
    layers = [copy.deepcopy(plain) for _ in range(2)]
    inputs = [x[:cut].clone(), x[cut:].clone()]

    def work(ranks):
        own = inputs[ranks.rank].requires_grad_()
        with synced_batch_norm(layers[ranks.rank], ranks):
            y = layers[ranks.rank](own)
        rows = slice(0, cut) if ranks.is_first else slice(cut, None)
        (y * wanted[rows]).sum().backward()
        return y.detach(), own.grad, [weight.grad for weight in layers[ranks.rank].parameters()]

    found = together(2, work)
    x.requires_grad_()
    y = plain(x)
    (y * wanted).sum().backward()
    torch.testing.assert_close(torch.cat([each[0] for each in found]), y.detach())
    torch.testing.assert_close(torch.cat([each[1] for each in found]), x.grad, rtol=1e-4, atol=1e-5)
    for number, weight in enumerate(plain.parameters()):
        total = sum(each[2][number] for each in found)
        torch.testing.assert_close(total, weight.grad, rtol=1e-4, atol=1e-4)
    for layer in layers:
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(layer.state_dict()[name], value)
        assert "forward" not in vars(layer)


def test_batch_norm_that_does_not_train_and_single_processes_are_left_alone():
    layer = nn.BatchNorm1d(3).eval()
    x = torch.ones(1, 3)
    both = together(2, lambda ranks: _normalized(layer, x, ranks))
    for found in both:
        torch.testing.assert_close(found, layer(x))
    with synced_batch_norm(layer, ALONE):
        assert "forward" not in vars(layer)


def _normalized(layer, x, ranks):
    own = copy.deepcopy(layer)
    with synced_batch_norm(own, ranks):
        return own(x)


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        (2, Training(warp=1.0)),
        (3, Training(batches="random", negatives="random", batch_size=20)),
        (9, Training(batch_size=8)),  # more processes than groups: some have no images
    ],
)
def test_several_processes_learn_what_one_learns(size, settings):
    images = load_dataset("digits").images[:120]
    labels = np.arange(120) // 5
    start = build_embedder(images, min_side=16, normalize=True)
    alone = copy.deepcopy(start)
    how = {"n_steps": 6, "settings": settings, "seed": [0, 1]}
    losses = train(alone, images, labels, **how)

    def work(ranks):
        own = copy.deepcopy(start)
        return train(own, images, labels, ranks=ranks, **how), get_weights(own)

    found = together(size, work)
    for their_losses, weights in found:
        np.testing.assert_allclose(their_losses, losses, rtol=1e-4)
        for name, value in get_weights(alone).items():
            np.testing.assert_allclose(weights[name], value, rtol=1e-3, atol=2e-5, err_msg=name)
        for name, value in found[0][1].items():
            np.testing.assert_array_equal(weights[name], value)
