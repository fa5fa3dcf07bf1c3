"""Arrays of images: what is taken, and what is refused with its name."""

import zipfile

import numpy as np
import pytest
import torch

from jule.images import as_samples, check_labels, fingerprint, open_source, read_images


def images(n=4, shape=(5, 6), dtype=np.uint8):
    return np.random.default_rng(0).integers(0, 255, (n, *shape)).astype(dtype)


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 3), (7,)])
def test_uint8_stays_and_other_numbers_become_float32(shape):
    assert as_samples(images(shape=shape)).dtype == np.uint8
    for dtype in (np.float64, np.int64, np.float32, bool):
        assert as_samples(images(shape=shape, dtype=dtype)).dtype == np.float32


def test_a_list_of_images_becomes_one_array():
    assert as_samples(list(images())).shape == (4, 5, 6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 5))], r"image 2 has shape \(4, 5\)"),
        (np.zeros(5), "shape .5,"),
        (np.zeros((2, 3, 4, 5, 6)), r"expected images.*\(2, 3, 4, 5, 6\): flatten or select"),
        (np.zeros((0, 4, 4)), "is empty"),
        (np.array([["a", "b"]]), "must be numbers"),
        (np.array([[1.0, 2.0], [np.nan, 1.0], [np.inf, 0.0]]), "sample 1 is the first of 2"),
    ],
)
def test_what_cannot_be_clustered_is_named(data, message):
    with pytest.raises(ValueError, match=message):
        as_samples(data)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_first_arrays_are_refused_with_the_fix(channels, tmp_path):
    array = np.zeros((50, channels, 32, 16), np.uint8)
    fix = rf"\(50, {channels}, 32, 16\) looks channels-first.*use images.transpose\(0, 2, 3, 1\)"
    np.save(tmp_path / "a.npy", array)
    for data in (array, list(array), tmp_path / "a.npy"):
        with pytest.raises(ValueError, match=fix):
            open_source(data)
    with pytest.raises(ValueError, match=r"use images.permute\(0, 2, 3, 1\)"):
        open_source(torch.from_numpy(array))
    assert read_images(array.transpose(0, 2, 3, 1)).samples.shape == (50, 32, 16, channels)


@pytest.mark.parametrize("shape", [(5, 6, 7, 8), (5, 3, 7, 3), (5, 3, 3, 1), (5, 6, 7, 2)])
def test_other_numbers_of_channels_are_accepted(shape):
    assert read_images(np.zeros(shape, np.uint8)).samples.shape == shape
    assert read_images(torch.zeros(shape)).samples.shape == shape


def test_large_values_are_no_reason_to_refuse_floats():
    as_samples(np.full((2, 4), 3e38, np.float32))
    with pytest.raises(ValueError, match="sample 1 is the first of 1"):
        as_samples(np.array([[1.0], [1e300]]))


def test_labels_must_be_one_per_sample():
    with pytest.raises(ValueError, match="3 samples need as many labels"):
        check_labels([1, 2], 3)


def test_npz_with_names_and_labels(tmp_path):
    np.savez(tmp_path / "a.npz", images=images(), labels=np.arange(4), names=np.array(list("wxyz")))
    found = read_images(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.samples, images())
    assert found.names == ["w", "x", "y", "z"]
    assert found.labels.tolist() == [0, 1, 2, 3]
    assert len(found) == 4


def test_npy_and_a_single_unnamed_array(tmp_path):
    np.save(tmp_path / "a.npy", images())
    np.savez(tmp_path / "b.npz", images())
    for name in ("a.npy", "b.npz"):
        found = read_images(tmp_path / name)
        np.testing.assert_array_equal(found.samples, images())
        assert found.names == ["0", "1", "2", "3"]
        assert found.labels is None


BAD = {
    "no.npz": (None, FileNotFoundError, "does not exist"),
    "text.doc": (b"hello", ValueError, "not a kind of file"),
    "broken.npz": (b"PK\x03\x04rest", ValueError, "cannot be read"),
    "empty.npy": (b"", ValueError, "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_cannot_be_read_are_named(tmp_path, name):
    content, error, message = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message):
        read_images(tmp_path / name)


def test_arrays_of_the_wrong_kind_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", pictures=images(), more=images())
    with pytest.raises(ValueError, match="no array 'images' among more, pictures"):
        read_images(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", images=images(), labels=np.arange(3))
    with pytest.raises(ValueError, match=r"b\.npz: 4 samples need as many labels"):
        read_images(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", images=images(), names=np.array(["a"]))
    with pytest.raises(ValueError, match="4 images need as many names"):
        read_images(tmp_path / "c.npz")


def test_nothing_in_a_file_is_executed(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read"):
        read_images(tmp_path / "objects.npy")


def test_fingerprints_tell_values_shapes_and_types_apart():
    one = images()
    other = one.copy()
    other[3, 4, 5] ^= 1
    prints = [fingerprint(x) for x in (one, other, one.astype(np.float32), one[:3])]
    assert all(a != b for i, a in enumerate(prints) for b in prints[i + 1 :])
    assert fingerprint(one) == fingerprint(one.copy())


def test_members_of_an_npz_that_are_no_arrays_are_passed_over(tmp_path):
    np.savez(tmp_path / "a.npz", images=images())
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as file:
        file.writestr("names", "not an array")
        file.writestr("notes.txt", "hello")
    assert read_images(tmp_path / "a.npz").names == ["0", "1", "2", "3"]
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as file:
        file.writestr("notes.txt", "hello")
    with pytest.raises(ValueError, match="there is no array 'images'"):
        read_images(tmp_path / "b.npz")
