"""The same pictures through every kind of source, and what reading reports beside them."""

import gzip
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import TensorDataset

from jule.images import ImageSpec, fingerprint, open_source, read, read_images
from jule.images.copies import choose_originals, find_copies
from jule.images.read import read_one
from jule.images.sources import arrays
from tests.images.pictures import file_of, pixels, write_pictures
from tests.images.sources.test_archives import write_tar, write_zip
from tests.images.sources.test_idx import idx

N = 6


def _folder(folder, images):
    write_pictures(folder / "photos", images)
    return folder / "photos"


def _listed(suffix, head=""):
    def make(folder, images):
        names = write_pictures(folder / "photos", images)
        lines = [head] * bool(head) + [f"photos/{name}" for name in names]
        (folder / f"list.{suffix}").write_text("\n".join(lines))
        return folder / f"list.{suffix}"

    return make


def _pattern(folder, images):
    return f"{_folder(folder, images)}/*.png"


def _npy(folder, images):
    np.save(folder / "a.npy", images)
    return folder / "a.npy"


def _npz(folder, images):
    np.savez_compressed(folder / "a.npz", images=images)
    return folder / "a.npz"


def _hdf5(layout):
    def make(folder, images):
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / "a.h5", "w") as file:
            if layout == "authors":
                images = images[:, None] if images.ndim == 3 else np.moveaxis(images, -1, 1)
                file["data"], file["labels"] = images, np.zeros((N, 1))
            else:
                file["images"] = images
        return folder / "a.h5"

    return make


def _idx(pack, name):
    def make(folder, images):
        (folder / name).write_bytes(pack(idx(images)))
        return folder / name

    return make


def _members(images, numbers=range(N)):
    return {f"{number:03}.png": file_of(images[number]) for number in numbers}


def _tar(suffix):
    return lambda folder, images: write_tar(folder / f"a.{suffix}", _members(images))


def _shards(what):
    def make(folder, images):
        for shard in range(3):
            write_tar(folder / f"s-{shard}.tar", _members(images, (2 * shard, 2 * shard + 1)))
        return f"{folder}{what}"

    return make


def _zip(folder, images):
    return write_zip(folder / "a.zip", _members(images))


def _torch(folder, images):
    tensors = torch.from_numpy(images)
    return TensorDataset(tensors if images.ndim == 3 else tensors.permute(0, 3, 1, 2))


def _hugging_face(images):
    datasets = pytest.importorskip("datasets")
    items = {"image": [Image.fromarray(image) for image in images]}
    return datasets.Dataset.from_dict(items, datasets.Features({"image": datasets.Image()}))


def _saved(folder, images):
    _hugging_face(images).save_to_disk(str(folder / "saved"))
    return folder / "saved"


SOURCES = {
    "folder": _folder,
    "text list": _listed("txt"),
    "CSV list": _listed("csv", "path"),
    "pattern": _pattern,
    "npy": _npy,
    "npz": _npz,
    "HDF5": _hdf5("plain"),
    "the authors' HDF5": _hdf5("authors"),
    "IDX": _idx(bytes, "x-images-idx3-ubyte"),
    "gzipped IDX": _idx(gzip.compress, "x-images-idx3-ubyte.gz"),
    "tar": _tar("tar"),
    "tar.gz": _tar("tar.gz"),
    "shards in braces": _shards("/s-{0..2}.tar"),
    "shards by pattern": _shards("/s-*.tar"),
    "folder of shards": _shards(""),
    "zip": _zip,
    "torch": _torch,
    "Hugging Face": lambda folder, images: _hugging_face(images),
    "saved Hugging Face": _saved,
    "list of arrays": lambda folder, images: list(images),
    "array": lambda folder, images: images,
    "list of Pillow images": lambda folder, images: [Image.fromarray(one) for one in images],
}


@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "colour"])
@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_gives_the_same_array(tmp_path, kind, channels):
    images = np.stack([pixels(number, channels=channels) for number in range(N)])
    images[4] = images[1]
    what = SOURCES[kind](tmp_path, images)
    found = read_images(what)  # their own size, grey or colour
    np.testing.assert_array_equal(found.samples, images)
    assert found.samples.dtype == np.uint8
    assert len(found) == len(found.names) == len(set(found.names)) == N
    assert found.indices.tolist() == list(range(N))
    assert found.first_copies.tolist() == [0, 1, 2, 3, 1, 5]
    assert found.skipped == ()
    small = read_images(what, ImageSpec(12, 16, 1)).samples
    np.testing.assert_array_equal(small, read_images(images, ImageSpec(12, 16, 1)).samples)


def test_exact_copies_are_found_and_near_ones_are_not(tmp_path):
    near = pixels(0)
    near[0, 0, 0] ^= 1
    write_pictures(tmp_path, [pixels(0), pixels(1), pixels(0), near, pixels(1)])
    assert read_images(tmp_path).first_copies.tolist() == [0, 1, 0, 3, 1]


def test_strict_names_three_and_says_there_are_more(tmp_path):
    write_pictures(tmp_path, [pixels()], "good.png")
    for number in range(5):
        (tmp_path / f"bad {number}.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"^5 of the pictures cannot be read: .*bad 2.*; \.\.\.$"):
        read_images(tmp_path, strict=True)
    assert len(read_images(tmp_path).skipped) == 5


def test_what_is_not_listed_first_is_counted_too(tmp_path):
    write_pictures(tmp_path, [pixels(n % 5) for n in range(60)])
    bad = list(range(1, 60, 17))
    for number in bad:
        (tmp_path / f"{number:03}.png").write_bytes(b"")
    found = read_images(tmp_path)
    assert [one.name for one in found.skipped] == [f"{number:03}.png" for number in bad]
    assert len(found) + len(found.skipped) == 60


def test_one_picture(tmp_path):
    (tmp_path / "a.png").write_bytes(file_of(pixels()))
    np.testing.assert_array_equal(read_one(tmp_path / "a.png", ImageSpec(24, 32, 3)), pixels())


def test_one_picture_that_is_bad_is_named(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a\.png cannot be read: it is empty"):
        read_one(tmp_path / "a.png", ImageSpec(24, 32, 3))
    with pytest.raises(ValueError, match="cannot be read: it is not a regular file"):
        read_one(tmp_path, ImageSpec(24, 32, 3))
    with pytest.raises(FileNotFoundError, match=r"gone\.png"):
        read_one(tmp_path / "gone.png", ImageSpec(24, 32, 3))


def test_vectors_cannot_be_resized():
    with pytest.raises(ValueError, match=r"none of 3 files .* is not a picture"):
        read_images(np.eye(3), ImageSpec(4, 4, 1))


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), max_size=30))
def test_the_first_of_equal_rows_is_the_first(rows):
    for dtype in (np.uint8, np.float32):
        array = np.array(rows, dtype).reshape(len(rows), 2)
        assert find_copies(array).tolist() == [rows.index(row) for row in rows]


def test_copies_are_found_across_blocks_and_in_strided_arrays(monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 16)
    rows = np.random.default_rng(0).integers(0, 2, (50, 3))
    expected = [rows.tolist().index(row) for row in rows.tolist()]
    for array in (rows, rows.astype(np.uint8), np.asfortranarray(rows)):
        assert find_copies(array).tolist() == expected
        assert fingerprint(array)["checksum"] == zlib.crc32(array.tobytes())


@pytest.mark.parametrize(
    ("names", "original"),
    [
        (["a copy.jpg", "a.jpg"], 1),
        (["Copy of a.jpg", "holiday/2024/a.jpg"], 1),
        (["a (1).jpg", "a (2).jpg", "a.jpg"], 2),
        (["a - Copy (2).jpg", "a.jpg"], 1),
        (["backup/a.jpg", "a.jpg"], 1),
        (["b.jpg", "a.jpg"], 0),
        (["a (1).jpg", "a (2).jpg"], 0),
        (["copyright 12.jpg", "a photocopy x.jpg"], 0),
    ],
)
def test_the_original_of_exact_copies_is_the_one_with_the_plainest_name(names, original):
    firsts = np.zeros(len(names), np.int64)
    assert choose_originals(firsts, names).tolist() == [original] * len(names)


def test_the_original_is_chosen_among_the_files_of_a_folder(tmp_path):
    write_pictures(tmp_path, [pixels(0)], "IMG_1 (1).png")
    write_pictures(tmp_path, [pixels(0)], "IMG_1.png")
    write_pictures(tmp_path, [pixels(1)], "IMG_2.png")
    assert read_images(tmp_path).first_copies.tolist() == [1, 1, 2]


def test_a_fingerprint_is_computed_once(monkeypatch):
    data = read_images(np.zeros((3, 4, 4), np.uint8))
    assert data.fingerprint == fingerprint(data.samples)
    monkeypatch.setattr(read, "fingerprint", None)
    assert data.fingerprint["shape"] == [3, 4, 4]


def test_the_order_of_a_source_is_the_same_every_time(tmp_path):
    write_pictures(tmp_path, [pixels(n % 3) for n in range(50)], "{0}.png")
    once, again = open_source(tmp_path), open_source(tmp_path)
    assert once.names == again.names == sorted(f"{n}.png" for n in range(50))
