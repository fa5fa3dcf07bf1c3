"""The image sets: real files where they are at hand, the rest with files written here."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from jule.images import (
    Dataset,
    dataset_names,
    datasets,
    load_dataset,
    load_pairs,
    read_authors_hdf5,
)
from jule.images.datasets import load_videos

Write = Callable[..., Path]


@pytest.fixture
def write_hdf5(tmp_path: Path) -> Write:
    """Write arrays to an HDF5 file under tmp_path and return its path."""
    h5py = pytest.importorskip("h5py")

    def write(name: str = "mine.h5", **arrays: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        with h5py.File(path, "w") as file:
            for key, array in arrays.items():
                file[key] = array
        return path

    return write


# -- real files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "smallest_class", "largest_class", "n_classes"),
    [
        ("mnist", (70_000, 28, 28), 6313, 7877, 10),
        ("usps", (11_000, 16, 16), 1100, 1100, 10),
        ("coil20", (1440, 128, 128), 72, 72, 20),
        ("coil100", (7200, 128, 128, 3), 72, 72, 100),
        ("umist", (575, 112, 92), 19, 48, 20),
        ("cmu-pie", (2856, 32, 32), 42, 42, 68),
        ("ytf-frames", (4232, 55, 55, 3), 11, 15, 347),
    ],
)
def test_real_sets(
    data_folder: str,
    name: str,
    shape: tuple[int, ...],
    smallest_class: int,
    largest_class: int,
    n_classes: int,
) -> None:
    dataset = load_dataset(name, data_folder)
    assert dataset.name == name
    assert dataset.images.shape == shape
    assert dataset.images.dtype == np.uint8
    assert dataset.images.max() > 200
    assert dataset.labels.shape == (shape[0],) == (len(dataset),)
    assert dataset.labels.dtype == np.int64
    sizes = np.bincount(dataset.labels)
    assert (sizes.min(), sizes.max(), len(sizes)) == (smallest_class, largest_class, n_classes)
    assert dataset.n_clusters == n_classes


def test_videos_are_numbered_across_people(data_folder: str) -> None:
    videos, people = load_videos(data_folder), load_dataset("ytf-frames", data_folder).labels
    assert videos.shape == people.shape
    assert len(np.unique(videos)) == videos.max() + 1 == 1154


def test_pairs_of_faces_follow_the_restricted_protocol(data_folder: str) -> None:
    people = load_dataset("lfw", data_folder).labels
    faces = load_pairs(data_folder)
    assert faces.images.shape == (7701, 64, 64, 3)
    assert len(faces) == 6000
    np.testing.assert_array_equal(np.bincount(faces.fold), [600] * 10)
    np.testing.assert_array_equal(np.bincount(faces.fold[faces.same]), [300] * 10)
    first, second = people[faces.pairs].T
    np.testing.assert_array_equal(first == second, faces.same)
    folds_of = [set(people[faces.pairs[faces.fold == fold]].ravel()) for fold in range(10)]
    assert sum(map(len, folds_of)) == len(set.union(*folds_of))  # nobody is in two folds


def test_mnist_test_is_the_end_of_mnist(data_folder: str) -> None:
    whole, test = load_dataset("mnist", data_folder), load_dataset("mnist-test", data_folder)
    np.testing.assert_array_equal(test.images, whole.images[-10_000:])
    np.testing.assert_array_equal(test.labels, whole.labels[-10_000:])
    assert len(test) == 10_000


def test_cifar10(data_folder: str) -> None:
    if not datasets.has_dataset("cifar10", data_folder):
        pytest.skip("cifar10.npz is not in the data folder")
    dataset = load_dataset("CIFAR-10", data_folder)
    assert dataset.images.shape == (60_000, 32, 32, 3)
    for part in (slice(50_000), slice(50_000, None)):
        assert len(set(np.bincount(dataset.labels[part]))) == 1, "classes are of one size"


def test_digits_need_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JULE_DATA", str(tmp_path / "absent"))
    digits = load_dataset("digits")
    assert isinstance(digits, Dataset)
    assert digits.images.shape == (1797, 8, 8)
    assert digits.images.dtype == np.uint8
    assert digits.labels.dtype == np.int64
    assert digits.n_clusters == 10
    # 17 grey levels, spread evenly from black to white.
    levels = np.unique(digits.images)
    np.testing.assert_array_equal(levels, np.rint(np.arange(17) * 255 / 16))


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("MNIST_test", "mnist-test"),
        ("MNIST-full", "mnist"),
        ("COIL-20", "coil20"),
        ("coil_100", "coil100"),
        ("UMist", "umist"),
        ("CMU-PIE", "cmu-pie"),
        ("cmu_pie", "cmu-pie"),
        ("Usps", "usps"),
        ("YTF", "ytf"),
    ],
)
def test_names_as_people_write_them(tmp_path: Path, written: str, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"data set '{name}'"):
        load_dataset(written, tmp_path)


def test_unknown_name_with_a_close_match() -> None:
    with pytest.raises(ValueError, match=r"unknown data set 'coil-10'.*Did you mean 'coil100'"):
        load_dataset("coil-10")


def test_unknown_name_with_several_close_matches() -> None:
    with pytest.raises(ValueError, match=r"Did you mean 'umist' or 'mnist'\?"):
        load_dataset("minst")


@pytest.mark.parametrize("name", ["imagenet21k", "", "--"])
def test_unknown_name_without_a_close_match(name: str) -> None:
    with pytest.raises(ValueError, match="unknown data set") as caught:
        load_dataset(name)
    assert "Did you mean" not in str(caught.value)
    assert all(known in str(caught.value) for known in dataset_names())


# -- the folder ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in dataset_names() if name != "digits"])
def test_missing_file_says_all_one_needs(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset(name, tmp_path)
    message = str(caught.value)
    for part in [repr(name), str(tmp_path), "classes", "labels", "JULE_DATA", "folder="]:
        assert part in message
    assert ".npz" in message or f"{name}.h5 or {name.upper()}/data4torch.h5" in message


def test_missing_folder_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="a folder that does not exist"):
        load_dataset("usps", tmp_path / "absent")


def test_argument_goes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JULE_DATA", str(tmp_path / "environment"))
    with pytest.raises(FileNotFoundError, match="environment"):
        load_dataset("usps")
    with pytest.raises(FileNotFoundError, match="argument"):
        load_dataset("usps", tmp_path / "argument")


def test_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("usps", "~/mine")
    assert str(tmp_path / "mine") in str(caught.value)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/jule"),
        ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/jule"),
        ("darwin", {"XDG_CACHE_HOME": "xdg"}, "home/Library/Caches/jule"),
        ("win32", {}, "home/AppData/Local/jule"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/jule"),
    ],
)
def test_cache_folder_of_each_system(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    for variable in ["JULE_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"]:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    assert datasets._data_folder(None) == Path(expected)


def test_damaged_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "usps.npz", images=np.zeros((2, 16, 16), np.uint8), labels=[0, 1])
    with pytest.raises(ValueError, match=r"usps\.npz is damaged.*expected 5d30f1c1.*Replace"):
        load_dataset("usps", tmp_path)


@pytest.fixture
def small_cifar10(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two images in the place of CIFAR-10, with their checksum; returns the folder."""
    images, labels = np.arange(2 * 32 * 32 * 3, dtype=np.uint8).reshape(2, 32, 32, 3), [0, 1]
    np.savez_compressed(tmp_path / "cifar10.npz", images=images, labels=labels, split=[0, 1])
    digest = hashlib.sha256(images.tobytes() + np.array(labels).tobytes()).hexdigest()
    archive = replace(datasets._ARCHIVES["cifar10"], sha256=digest)
    monkeypatch.setitem(datasets._ARCHIVES, "cifar10", archive)
    return tmp_path


def test_the_checksum_of_cifar10_does_not_depend_on_compression(small_cifar10: Path) -> None:
    compressed = load_dataset("cifar10", small_cifar10)
    arrays = {"images": compressed.images, "labels": compressed.labels}
    np.savez(small_cifar10 / "cifar10.npz", **arrays)
    np.testing.assert_array_equal(load_dataset("cifar10", small_cifar10).images, compressed.images)
    compressed.images[1, 2, 3, 0] += 1
    np.savez(small_cifar10 / "cifar10.npz", **arrays)
    with pytest.raises(ValueError, match=r"cifar10\.npz is damaged or another version.*Replace"):
        load_dataset("cifar10", small_cifar10)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
def test_a_truncated_file_without_a_checksum_of_its_own(small_cifar10: Path, share: float) -> None:
    path = small_cifar10 / "cifar10.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"cifar10\.npz is damaged: .* Replace it"):
        load_dataset("cifar10", small_cifar10)


def test_truncated_file(data_folder: str, tmp_path: Path) -> None:
    whole = (Path(data_folder) / "usps.npz").read_bytes()
    (tmp_path / "usps.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"usps\.npz is damaged"):
        load_dataset("usps", tmp_path)


# -- the authors' HDF5 layout --------------------------------------------------------------------


def some_pixels(channels: int) -> NDArray[np.uint8]:
    rng = np.random.default_rng(channels)
    pixels = rng.integers(0, 256, (6, channels, 5, 4)).astype(np.uint8)
    pixels[0, 0, 0, :2] = 0, 255
    return pixels


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64", "0..1", "half 0..1"])
def test_hdf5_round_trip(write_hdf5: Write, channels: int, dtype: str) -> None:
    pixels = some_pixels(channels)
    stored = {
        "0..1": pixels.astype(np.float32) / 255,
        "half 0..1": (pixels / 255).astype(np.float16),
    }.get(dtype)
    if stored is None:
        stored = pixels.astype(dtype)
    path = write_hdf5(data=stored, labels=np.arange(6.0)[:, None])
    images, labels = read_authors_hdf5(path)
    expected = pixels[:, 0] if channels == 1 else pixels.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(images, expected)
    np.testing.assert_array_equal(labels, np.arange(6))
    assert images.dtype == np.uint8
    assert images.flags.c_contiguous
    assert labels.dtype == np.int64


def test_hdf5_floats_are_rounded_not_cut(write_hdf5: Write) -> None:
    pixels = np.full((1, 1, 2, 2), 99.7)
    images, _ = read_authors_hdf5(write_hdf5(data=pixels, labels=[0]))
    assert (images == 100).all()


@pytest.mark.parametrize("file", ["frgc.h5", "FRGC/data4torch.h5", "ytf.h5", "YTF/data4torch.h5"])
def test_frgc_and_ytf_are_found_under_both_names(
    write_hdf5: Write, tmp_path: Path, file: str
) -> None:
    write_hdf5(file, data=some_pixels(3), labels=[4, 4, 7, 7, 9, 9])
    dataset = load_dataset(file[:4].strip("./"), tmp_path)
    assert dataset.images.shape == (6, 5, 4, 3)
    assert dataset.n_clusters == 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"data": some_pixels(1)}, r"has no array 'labels', only \['data'\]"),
        ({"labels": [0]}, "has no array 'data'"),
        ({"data/inner": some_pixels(1), "labels": [0]}, "has no array 'data'"),
        ({"data": some_pixels(1)[:, 0], "labels": range(6)}, r"shape \(6, 5, 4\), expected images"),
        ({"data": some_pixels(2), "labels": range(6)}, "with 1 or 3 channels"),
        ({"data": some_pixels(1)[:0], "labels": []}, r"shape \(0, 1, 5, 4\)"),
        ({"data": some_pixels(1), "labels": range(5)}, "6 images in 'data' but 5 labels"),
        ({"data": some_pixels(1) - 0.5, "labels": range(6)}, "has values from -0.5 to 254.5"),
        ({"data": some_pixels(1) + 0.5, "labels": range(6)}, "has values from 0.5 to 255.5"),
        ({"data": some_pixels(1) * np.nan, "labels": range(6)}, "has values from nan to nan"),
        ({"data": some_pixels(1) - np.int64(300), "labels": range(6)}, "pixels must be between"),
        ({"data": some_pixels(1) > 99, "labels": range(6)}, "has the type bool"),
        ({"data": some_pixels(1), "labels": np.arange(6) + 0.5}, "not all integers"),
        ({"data": some_pixels(1), "labels": np.full(6, np.nan)}, "not all integers"),
        ({"data": some_pixels(1), "labels": np.full(6, b"a")}, "not all integers"),
    ],
)
def test_hdf5_that_does_not_fit(write_hdf5: Write, arrays: dict[str, Any], message: str) -> None:
    path = write_hdf5(**arrays)
    with pytest.raises(ValueError, match=message) as caught:
        read_authors_hdf5(path)
    assert str(path) in str(caught.value)


def test_hdf5_missing_damaged_or_of_another_kind(write_hdf5: Write, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent\.h5"):
        read_authors_hdf5(tmp_path / "absent.h5")
    (tmp_path / "text.h5").write_text("not HDF5")
    with pytest.raises(ValueError, match=r"text\.h5 cannot be read as HDF5"):
        read_authors_hdf5(tmp_path / "text.h5")
    path = write_hdf5(data=some_pixels(3), labels=range(6))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"mine\.h5 cannot be read as HDF5"):
        read_authors_hdf5(path)


def test_without_h5py_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "frgc.h5").touch()
    with pytest.raises(ImportError, match=r'pip install "jule\[hdf5\]"'):
        load_dataset("frgc", tmp_path)


# -- imports -------------------------------------------------------------------------------------


def test_importing_brings_in_no_heavy_packages() -> None:
    code = (
        "import sys; import jule.images.datasets; "
        "sys.exit(' '.join({'sklearn', 'h5py', 'datasets', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
