"""IDX files, plain and gzipped, and those that lie about themselves."""

import gzip
import struct

import numpy as np
import pytest

from jule.images import open_source, read_images
from jule.images.sources.idx import TYPES, read_idx
from tests.images.pictures import pixels


def idx(array, kind=8):
    head = bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(TYPES[kind]).tobytes()


IMAGES = np.stack([pixels(n, channels=1) for n in range(5)])


@pytest.mark.parametrize("name", ["a.idx", "t-images-idx3-ubyte", "noname"])
def test_plain_files_are_known_by_their_name_or_their_head(tmp_path, name):
    (tmp_path / name).write_bytes(idx(IMAGES))
    np.testing.assert_array_equal(read_images(tmp_path / name).samples, IMAGES)


@pytest.mark.parametrize("name", ["a.idx.gz", "t-images-idx3-ubyte.gz"])
def test_gzipped_files(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(idx(IMAGES)))
    np.testing.assert_array_equal(read_images(tmp_path / name).samples, IMAGES)


def test_labels_beside_are_for_scores(tmp_path):
    (tmp_path / "t-images-idx3-ubyte").write_bytes(idx(IMAGES))
    (tmp_path / "t-labels-idx1-ubyte").write_bytes(idx(np.arange(5)))
    assert read_images(tmp_path / "t-images-idx3-ubyte").labels.tolist() == [0, 1, 2, 3, 4]
    (tmp_path / "t-labels-idx1-ubyte").write_bytes(idx(np.arange(4)))
    with pytest.raises(ValueError, match="5 samples need as many labels"):
        open_source(tmp_path / "t-images-idx3-ubyte")


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_of_number(tmp_path, kind):
    values = np.array([[0, 1], [2, 100]])
    (tmp_path / "a.idx").write_bytes(idx(values, kind))
    found = read_idx(tmp_path / "a.idx")
    np.testing.assert_array_equal(found, values)
    assert found.dtype.isnative


def test_colour(tmp_path):
    images = np.stack([pixels(n) for n in range(3)])
    (tmp_path / "a.idx").write_bytes(idx(images))
    np.testing.assert_array_equal(read_images(tmp_path / "a.idx").samples, images)


GOOD = idx(IMAGES)
BAD = {
    "empty": (b"", "does not begin like an IDX"),
    "another file": (b"hello", "does not begin like an IDX"),
    "a head alone": (GOOD[:4], "cut off"),
    "half a head": (GOOD[:9], ""),
    "cut off": (GOOD[:-1], "its header announces 3,840 bytes"),
    "too long": (GOOD + b"x", "it has more"),
    "gigabytes promised": (b"\0\0\x08\x03" + struct.pack(">3I", 2**20, 2**10, 2**10), "announces"),
    "more than there is": (b"\0\0\x0e\x04" + b"\xff" * 16, "announces"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_cannot_be_read_is_a_clear_error(tmp_path, case, pack):
    content, message = BAD[case]
    (tmp_path / "a.idx").write_bytes(pack(content))
    with pytest.raises(ValueError, match="cannot be read as IDX: .*" + message):
        open_source(tmp_path / "a.idx")


def test_a_gzip_file_that_is_cut_off_is_a_clear_error(tmp_path):
    (tmp_path / "a.idx.gz").write_bytes(gzip.compress(GOOD)[:-20])
    with pytest.raises(ValueError, match="cannot be read as IDX"):
        open_source(tmp_path / "a.idx.gz")


def test_labels_alone_are_no_pictures(tmp_path):
    (tmp_path / "labels.idx").write_bytes(idx(np.arange(5)))
    with pytest.raises(ValueError, match=r"labels\.idx.*expected images"):
        open_source(tmp_path / "labels.idx")
