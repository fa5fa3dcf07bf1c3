"""Small warps: how far they move an image, and what they leave alone."""

import pytest
import torch

from jule.backward import augment
from jule.backward.augment import small_warps


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def smooth_images(n=4, channels=1, height=24, width=24):
    """A soft spot in every image, at a random place near the middle."""
    place = torch.rand(n, 2, generator=seeded(0)) * 0.3 + 0.35
    return spots(place * torch.tensor([height, width]), height, width).expand(-1, channels, -1, -1)


def spots(centres, height, width, spread=2.0):
    """Images (n, 1, height, width), each with a spot at (row, column)."""
    rows = torch.arange(height)[None, :, None] + 0.5 - centres[:, 0, None, None]
    columns = torch.arange(width)[None, None, :] + 0.5 - centres[:, 1, None, None]
    return torch.exp(-(rows**2 + columns**2) / (2 * spread**2))[:, None]


def centres_of(images):
    """Centres of mass (row, column) of every image's first channel."""
    mass = images[:, 0] / images[:, 0].sum(dim=(1, 2), keepdim=True)
    rows = torch.arange(images.shape[2]) + 0.5
    columns = torch.arange(images.shape[3]) + 0.5
    return torch.stack([(mass.sum(dim=2) * rows).sum(1), (mass.sum(dim=1) * columns).sum(1)], 1)


@pytest.fixture
def only(monkeypatch):
    """Switch off every change but one."""

    def switch(name, value):
        for other in ("SHIFT", "ROTATION", "SCALE", "SHEAR"):
            monkeypatch.setattr(augment, other, value if other == name else 0.0)

    return switch


@pytest.mark.parametrize("size", [(24, 24), (13, 30), (1, 1)])
def test_strength_zero_changes_nothing(size):
    images = torch.rand(3, 2, *size, generator=seeded(1))
    torch.testing.assert_close(small_warps(images, 0.0), images, rtol=0, atol=1e-5)


@pytest.mark.parametrize("strength", [0.5, 1.0, 5.0])
def test_a_constant_image_stays(strength):
    images = torch.tensor([-2.0, 0.0, 7.0])[:, None, None, None].expand(3, 2, 9, 14)
    warped = small_warps(images, strength, seeded(0))
    torch.testing.assert_close(warped, images, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 1, 16, 16), (2, 3, 112, 92), (3, 1, 1, 7)])
def test_shapes_stay_and_values_stay_in_range(shape):
    images = torch.rand(shape, generator=seeded(1))
    warped = small_warps(images, 1.0, seeded(0))
    assert warped.shape == shape
    assert warped.dtype == images.dtype
    assert ((warped >= 0.0) & (warped <= 1.0 + 1e-5)).all()


def test_the_generator_decides():
    images = smooth_images()
    one, two, other = (small_warps(images, 1.0, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_with_a_generator_the_global_one_is_left_alone():
    before = torch.get_rng_state()
    small_warps(smooth_images(), 1.0, seeded(0))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_images_given_are_not_changed():
    images = smooth_images().clone()
    before = images.clone()
    small_warps(images, 1.0, seeded(0))
    assert torch.equal(images, before)


def test_every_image_is_warped_in_its_own_way():
    warped = small_warps(smooth_images(1).expand(5, -1, -1, -1), 1.0, seeded(0))
    centres = centres_of(warped)
    assert len({tuple(centre) for centre in centres.round(decimals=3).tolist()}) == 5


def test_channels_move_together():
    warped = small_warps(smooth_images(channels=3), 1.0, seeded(0))
    assert torch.equal(warped[:, 0], warped[:, 1])
    assert torch.equal(warped[:, 0], warped[:, 2])


def test_a_little_strength_moves_a_little():
    images = smooth_images(50)
    moved = {
        strength: (centres_of(small_warps(images, strength, seeded(0))) - centres_of(images)).abs()
        for strength in (0.01, 0.1, 1.0)
    }
    assert moved[0.01].max() < 0.05
    assert moved[0.1].max() < 0.5
    assert 1.0 < moved[1.0].max() < 5.0


@pytest.mark.parametrize("size", [(30, 60), (60, 30)])
def test_shifts_reach_a_tenth_of_each_side(size, only):
    only("SHIFT", 0.1)
    centres = torch.tensor([[size[0] / 2, size[1] / 2]]).expand(300, 2)
    moved = centres_of(small_warps(spots(centres, *size), 1.0, seeded(0))) - centres
    bound = 0.1 * torch.tensor([size], dtype=torch.float32)
    assert (moved.abs() <= bound + 0.01).all()
    assert (moved.amax(0) > 0.9 * bound).all()
    assert (moved.amin(0) < -0.9 * bound).all()


@pytest.mark.parametrize("size", [(40, 40), (30, 60), (60, 30)])
def test_turning_neither_squeezes_nor_changes_distances(size, only):
    only("ROTATION", 90.0)
    middle = torch.tensor([size[0] / 2, size[1] / 2])
    centres = (middle + torch.tensor([4.0, 6.0])).expand(50, 2)
    images = spots(centres, *size)
    warped = small_warps(images, 1.0, seeded(0))
    arms = centres_of(warped) - middle
    torch.testing.assert_close(arms.norm(dim=1), torch.full((50,), 52.0**0.5), rtol=0.01, atol=0)
    # A round spot is round wherever it has gone.
    torch.testing.assert_close(warped, spots(middle + arms, *size), rtol=0, atol=0.1)
    assert (arms - torch.tensor([4.0, 6.0])).norm(dim=1).max() > 5.0


def test_turns_reach_ten_degrees(only):
    only("ROTATION", augment.ROTATION)
    arm = torch.tensor([0.0, 10.0])
    images = spots((20.0 + arm).expand(300, 2), 40, 40)
    arms = centres_of(small_warps(images, 1.0, seeded(0))) - 20.0
    degrees = torch.rad2deg(torch.atan2(arms[:, 0], arms[:, 1]))
    assert 9.0 < degrees.max() < 10.2
    assert -10.2 < degrees.min() < -9.0


def test_what_comes_in_repeats_the_border(only):
    only("SHIFT", 0.1)
    left_white = torch.zeros(50, 1, 20, 20)
    left_white[..., :10] = 1.0
    warped = small_warps(left_white, 1.0, seeded(0))
    torch.testing.assert_close(warped[..., 0], torch.ones(50, 1, 20))
    torch.testing.assert_close(warped[..., -1], torch.zeros(50, 1, 20))


def test_gradients_pass_through():
    images = smooth_images().clone().requires_grad_()
    small_warps(images, 1.0, seeded(0)).sum().backward()
    assert images.grad.isfinite().all()
    assert images.grad.abs().sum() > 0
