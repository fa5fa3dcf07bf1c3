"""HDF5 files as a source: which array holds the images, and in which layout."""

import numpy as np
import pytest

from jule.images import open_source, read_images
from tests.images.pictures import pixels

h5py = pytest.importorskip("h5py")
GREY = np.stack([pixels(n, channels=1) for n in range(5)])
COLOUR = np.stack([pixels(n) for n in range(5)])


@pytest.fixture
def write(tmp_path):
    def write(name="a.h5", **arrays):
        with h5py.File(tmp_path / name, "w") as file:
            for key, array in arrays.items():
                file[key] = array
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (GREY, GREY),
        (GREY[..., None], GREY),
        (GREY[:, None], GREY),
        (COLOUR, COLOUR),
        (np.moveaxis(COLOUR, -1, 1), COLOUR),
        (COLOUR / np.float32(255), COLOUR),
        (COLOUR.astype(np.int32), COLOUR),
    ],
    ids=["grey", "grey with a channel", "authors' grey", "colour", "authors' colour", "0..1", "i4"],
)
@pytest.mark.parametrize("key", ["images", "data", "X", "group/frames"])
def test_layouts_and_names(write, stored, expected, key):
    found = read_images(write(**{key: stored}))
    np.testing.assert_array_equal(found.samples, expected)
    assert found.samples.dtype == np.uint8


@pytest.mark.parametrize("name", ["a.h5", "a.hdf5", "a.HDF"])
def test_suffixes(write, name):
    assert len(read_images(write(name, images=GREY))) == 5


def test_labels_are_taken_where_they_fit(write):
    assert read_images(write(data=GREY, labels=np.arange(5)[:, None])).labels.tolist() == [
        0, 1, 2, 3, 4
    ]  # fmt: skip
    assert read_images(write("b.h5", data=GREY, y=np.arange(4))).labels is None


def test_vectors_stay_vectors(write):
    found = read_images(write(data=np.eye(6)))
    np.testing.assert_array_equal(found.samples, np.eye(6))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "it holds nothing"),
        ({"one": GREY, "two": GREY}, r"it holds one \(5, 24, 32\), two \(5, 24, 32\)"),
        ({"images": GREY.astype(np.float32) - 100}, "has values from"),
        ({"images": np.full((2, 3, 3), np.nan)}, "has values from"),
        ({"images": np.zeros((0, 3, 3), np.uint8)}, "is empty"),
        ({"images": np.zeros(7)}, "expected images"),
    ],
)
def test_what_is_no_array_of_images_is_a_clear_error(write, arrays, message):
    with pytest.raises(ValueError, match=message):
        open_source(write(**arrays))


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89HDF\r\n\x1a\n" + b"\0" * 500])
def test_what_is_no_hdf5_is_a_clear_error(tmp_path, content):
    (tmp_path / "a.h5").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.h5 cannot be read as HDF5"):
        open_source(tmp_path / "a.h5")


def test_a_link_to_nothing_inside_is_passed_over(write):
    path = write(images=GREY)
    with h5py.File(path, "a") as file:
        file["lost"] = h5py.SoftLink("/nowhere")
        file["outside"] = h5py.ExternalLink("other.h5", "/x")
        file["text"] = "hello"
    np.testing.assert_array_equal(read_images(path).samples, GREY)
