"""Networks side by side: what they output, what they share, and how they are described."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from jule.backward import build_embedder, embed
from jule.backward.description import describe, rebuild
from jule.backward.embedder import as_images, get_weights, set_weights
from jule.backward.networks import Ensemble

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 12, 12), np.uint8)
VECTORS = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)


class Own(nn.Module):
    """A user's network, which also runs on one sample."""

    def __init__(self):
        super().__init__()
        self.top = nn.Linear(144, 7)

    def forward(self, x):
        return self.top(x.flatten(1))


@pytest.mark.parametrize("samples", [IMAGES, VECTORS])
def test_the_output_is_that_of_the_members_divided_by_the_root_of_their_number(samples):
    together = build_embedder(samples, members=3)
    parts = [embed(together.member(number), samples) for number in range(3)]
    found = embed(together, samples)
    np.testing.assert_allclose(found, np.hstack(parts) / np.sqrt(3), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    far = [np.square(part[0] - part[1]).sum() for part in parts]
    np.testing.assert_allclose(np.square(found[0] - found[1]).sum(), np.mean(far), atol=1e-6)


@pytest.mark.parametrize("network", ["mlp", "residual"])
@pytest.mark.parametrize("lift", [False, True])
def test_every_member_is_the_network_of_its_own_seed(network, lift):
    settings = {"network": network, "lift": lift, "center": True}
    together = build_embedder(VECTORS, seed=4, members=3, **settings)
    for number in range(3):
        alone = get_weights(build_embedder(VECTORS, seed=4 + number, **settings))
        member = get_weights(together.member(number))
        assert alone.keys() == member.keys()
        for name in alone:
            np.testing.assert_array_equal(alone[name], member[name])


def test_a_member_shares_its_weights():
    together = build_embedder(IMAGES, members=2)
    before = get_weights(together)
    with torch.no_grad():
        for weights in together.member(1).parameters():
            weights += 1
    for name, value in get_weights(together).items():
        changed = not np.array_equal(value, before[name])
        is_weight = not any(part in name for part in ("mean", "std", "running", "num_batches"))
        assert changed == (".members.1." in name and is_weight), name


def test_one_member_is_the_network_itself():
    alone = build_embedder(IMAGES)
    assert not isinstance(alone.body, Ensemble)
    assert alone.members == [alone.body]
    np.testing.assert_array_equal(embed(alone.member(0), IMAGES), embed(alone, IMAGES))


def test_copies_of_a_users_network_are_trained_apart():
    together = build_embedder(IMAGES, body=Own(), members=2)
    one, two = together.members
    assert torch.equal(one.top.weight, two.top.weight)
    assert one.top.weight is not two.top.weight


def test_layers_are_side_by_side_too():
    together = build_embedder(IMAGES, members=2)
    x = as_images(IMAGES)
    parts = [together.eval().member(number).eval().tap(x, "top-1") for number in range(2)]
    torch.testing.assert_close(together.tap(x, "top-1"), torch.cat(parts, dim=1))
    with pytest.raises(ValueError, match="only in the networks of jule"):
        build_embedder(IMAGES, body=Own(), members=2).tap(x, "top-1")


@pytest.mark.parametrize("samples", [IMAGES, VECTORS])
def test_an_ensemble_is_rebuilt_from_its_description(samples):
    together = build_embedder(samples, members=2)
    about = json.loads(json.dumps(describe(together)))
    assert about["members"] == 2
    again = rebuild(about)
    set_weights(again, get_weights(together))
    np.testing.assert_array_equal(embed(again, samples), embed(together, samples))


def test_an_ensemble_of_a_users_network_is_rebuilt_from_an_instance():
    together = build_embedder(IMAGES, body=Own(), members=2)
    again = rebuild(describe(together), Own())
    set_weights(again, get_weights(together))
    np.testing.assert_array_equal(embed(again, IMAGES), embed(together, IMAGES))


def test_single_networks_are_described_as_before():
    assert "members" not in describe(build_embedder(IMAGES))


@pytest.mark.parametrize("members", [0, -1, 101, 10**12, 2.0, True, "2", None, [2]])
def test_a_damaged_number_of_members_is_refused(members):
    with pytest.raises(ValueError, match="members"):
        rebuild(describe(build_embedder(IMAGES)) | {"members": members})


def test_members_that_do_not_fit_into_memory_are_refused():
    about = describe(build_embedder(VECTORS)) | {"options": {"hidden": 10**7}, "members": 100}
    with pytest.raises(ValueError, match=r"the network needs .* of memory"):
        rebuild(about)
