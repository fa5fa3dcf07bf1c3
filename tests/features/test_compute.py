"""All pictures of an array are encoded once."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from jule.features import ModuleEncoder, Preprocessing, encode_images, power_normalize
from jule.features.base import Encoder

IMAGES = np.random.default_rng(0).integers(0, 256, (50, 8, 8, 3), dtype=np.uint8)


class Counting(Encoder):
    """The mean colour, and a count of the pictures that were encoded."""

    name, about, weights_digest = "counting", "the mean colour", "0"
    preprocessing = Preprocessing(8, 8)

    def __init__(self, limit=10**9):
        self.count, self.limit = 0, limit

    def encode(self, images):
        if self.count + len(images) > self.limit:
            raise KeyboardInterrupt
        self.count += len(images)
        return images.mean(axis=(1, 2)).astype(np.float32)


EXPECTED = power_normalize(IMAGES.mean(axis=(1, 2)).astype(np.float32))


def test_nothing_is_encoded_twice(tmp_path):
    encoder = Counting()
    for _ in range(2):
        np.testing.assert_array_equal(encode_images(encoder, IMAGES, cache=tmp_path), EXPECTED)
    assert encoder.count == len(IMAGES)
    more = np.concatenate([IMAGES[30:], IMAGES[:5] // 2])
    encode_images(encoder, more, cache=tmp_path)
    assert encoder.count == len(IMAGES) + 5


def test_copies_are_encoded_once_and_have_the_same_vector(tmp_path, monkeypatch):
    monkeypatch.setattr("jule.features.compute.LOOKUP_BLOCK", 7)
    copies = IMAGES[[0, 1, 0, 0, 2, 1, 3, 0, 2, 4, 0]]
    encoder = Counting()
    found = encode_images(encoder, copies, cache=tmp_path)
    assert encoder.count == 5
    np.testing.assert_array_equal(found, EXPECTED[[0, 1, 0, 0, 2, 1, 3, 0, 2, 4, 0]])
    encoder = Counting()
    found = encode_images(encoder, np.repeat(IMAGES[:1], 30, axis=0), cache=tmp_path / "other")
    assert encoder.count == 1  # all later blocks are copies
    np.testing.assert_array_equal(found, np.repeat(EXPECTED[:1], 30, axis=0))


class Scaled(nn.Module):
    """A module whose code, and not its weights, decides what it returns."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x.mean((2, 3)) + self.factor


def test_modules_that_differ_in_code_do_not_share_vectors(tmp_path):
    first, second = (ModuleEncoder(Scaled(factor), Preprocessing(8, 8)) for factor in (5.0, 9.0))
    one = encode_images(first, IMAGES, cache=tmp_path)
    two = encode_images(second, IMAGES, cache=tmp_path)
    assert np.abs(one - two).max() > 1e-3
    np.testing.assert_array_equal(encode_images(first, IMAGES, cache=tmp_path), one)


def test_modules_of_other_types_are_accepted():
    for module in (nn.Conv2d(3, 2, 8).double(), nn.Conv2d(3, 2, 8).half()):
        assert ModuleEncoder(module, Preprocessing(8, 8)).encode(IMAGES[:2]).dtype == np.float32


def network():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(2)]
    return nn.Sequential(*layers)


def test_fused_modules_return_the_same():
    encoder = ModuleEncoder(network(), Preprocessing(8, 8), fuse=True)
    expected = ModuleEncoder(network(), Preprocessing(8, 8)).encode(IMAGES)
    for count in (1, 4, 5, 50, 7):
        np.testing.assert_allclose(encoder.encode(IMAGES[:count]), expected[:count], atol=1e-6)
    for again in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_allclose(again.encode(IMAGES), expected, atol=1e-6)
    assert encoder.digest == ModuleEncoder(network(), Preprocessing(8, 8)).digest


def test_threads_share_the_pictures():
    encoder = ModuleEncoder(network(), Preprocessing(8, 8), fuse=True)
    expected = encoder.encode(IMAGES)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        np.testing.assert_allclose(encoder.encode(IMAGES), expected, atol=1e-6)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_modules_that_cannot_be_fused_run_as_they_are(monkeypatch):
    encoder = ModuleEncoder(network(), Preprocessing(8, 8), fuse=True)
    monkeypatch.delattr(torch.jit, "trace")
    expected = ModuleEncoder(network(), Preprocessing(8, 8)).encode(IMAGES)
    np.testing.assert_array_equal(encoder.encode(IMAGES[:4]), expected[:4])
    np.testing.assert_allclose(encoder.encode(IMAGES), expected, atol=1e-6)


def test_vectors_may_be_deleted_at_any_time(tmp_path):
    import shutil

    class Deleting(Counting):
        def encode(self, images):
            shutil.rmtree(tmp_path, ignore_errors=True)
            return super().encode(images)

    encode_images(Counting(), IMAGES[:20], cache=tmp_path)
    np.testing.assert_array_equal(encode_images(Deleting(), IMAGES, cache=tmp_path), EXPECTED)


def test_an_interrupted_computation_is_resumed(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        encode_images(Counting(limit=40), IMAGES, cache=tmp_path)
    encoder = Counting()
    np.testing.assert_array_equal(encode_images(encoder, IMAGES, cache=tmp_path), EXPECTED)
    assert encoder.count == len(IMAGES) - 2 * Encoder.batch


def test_progress_reaches_the_end(tmp_path):
    shares = []
    encode_images(Counting(), IMAGES, cache=tmp_path, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    again = []
    encode_images(Counting(), IMAGES, cache=tmp_path, progress=again.append)
    assert again == [1.0]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.warns(UserWarning, match=r"cannot be stored .* computed again"):
        found = encode_images(Counting(), IMAGES, cache=blocked)
    np.testing.assert_array_equal(found, EXPECTED)


class Broken(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.how == "nan":
            return torch.full((len(x), 3), torch.nan)
        if self.how == "tuple":
            return (x,)
        if self.how in ("same", "number"):
            return torch.ones(len(x), 3 if self.how == "same" else 1)
        return torch.zeros(len(x), 0) if self.how == "empty" else x.new_zeros(1, 3)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("nan", "not finite"),
        ("empty", "instead of one"),
        ("one", "instead of"),
        ("tuple", "a tuple instead of a tensor"),
        ("number", "instead of one vector"),
    ],
)
def test_broken_encoders_are_named(tmp_path, how, message):
    encoder = ModuleEncoder(Broken(how), Preprocessing(8, 8))
    with pytest.raises(ValueError, match=rf"the encoder module:Broken returned .*{message}"):
        encode_images(encoder, IMAGES, cache=tmp_path)


def test_an_encoder_that_tells_nothing_apart_is_named(tmp_path):
    encoder = ModuleEncoder(Broken("same"), Preprocessing(8, 8))
    with pytest.warns(UserWarning, match=r"module:Broken returned the same vector for all"):
        encode_images(encoder, IMAGES, cache=tmp_path)


def test_pictures_that_are_too_small_are_named(tmp_path):
    encoder = ModuleEncoder(nn.AvgPool2d(64), Preprocessing(64, 64))
    with pytest.warns(UserWarning, match=r"have 8 x 8 pixels, .* takes 64 x 64: use pixels"):
        encode_images(encoder, IMAGES, cache=tmp_path)


def test_no_pictures(tmp_path):
    with pytest.raises(ValueError, match=r"no pictures"):
        encode_images(Counting(), IMAGES[:0], cache=tmp_path)


def test_the_digest_depends_on_weights_and_scaling():
    torch.manual_seed(0)
    module = nn.Conv2d(3, 2, 8)
    digest = ModuleEncoder(module, Preprocessing(8, 8)).digest
    assert ModuleEncoder(module, Preprocessing(8, 8)).digest == digest
    assert ModuleEncoder(module, Preprocessing(8, 8, mean=(0.0,) * 3)).digest != digest
    with torch.no_grad():
        module.weight[0, 0, 0, 0] += 1e-6
    assert ModuleEncoder(module, Preprocessing(8, 8)).digest != digest


def test_the_users_module_is_not_changed():
    module = nn.Sequential(nn.Dropout(0.5), nn.Flatten())
    module.train()
    encoder = ModuleEncoder(module, Preprocessing(8, 8))
    assert module.training
    np.testing.assert_array_equal(encoder.encode(IMAGES[:2]), encoder.encode(IMAGES[:2]))
