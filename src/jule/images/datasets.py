"""Read the image data sets of the paper from files in a data folder.

The folder is the argument `folder`, or the environment variable JULE_DATA, or `jule` in the user's
cache folder. Nothing is downloaded, because the licences of the data sets vary. Labels are for
evaluation only.
"""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from jule.files import user_cache
from jule.images.sources.hdf5 import read_authors_hdf5
from jule.text import match_name


@dataclass(frozen=True, eq=False)  # arrays have no single truth value to compare by
class Dataset:
    """Images and their classes.

    Attributes
    ----------
    name
        One of `dataset_names()`.
    images
        uint8, (n, height, width) for grey images, (n, height, width, 3) for RGB.
    labels
        int64, (n,).

    Examples
    --------
    >>> digits = load_dataset("digits")
    >>> len(digits), digits.n_clusters
    (1797, 10)
    """

    name: str
    images: NDArray[np.uint8] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def n_clusters(self) -> int:
        """Number of classes, which is the number of clusters to look for."""
        return len(np.unique(self.labels))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of images that show the same person or two different people.

    Attributes
    ----------
    images
        uint8, (n, height, width, 3).
    pairs
        int64, (m, 2): the two images of each pair.
    same
        bool, (m,): whether they show the same person.
    fold
        int64, (m,): the part of a cross-validation that each pair belongs to.
    """

    images: NDArray[np.uint8] = field(repr=False)
    pairs: NDArray[np.int64] = field(repr=False)
    same: NDArray[np.bool_] = field(repr=False)
    fold: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True)
class _Archive:
    """An .npz file: its name, its contents, and its checksum.

    The checksum is that of the file, or that of the pixels and classes in it: whoever has to make
    the file will not get the same bytes, because versions of zlib compress differently.
    """

    file: str
    holds: str
    sha256: str
    of_arrays: bool = False


_MNIST = _Archive(
    "mnist.npz",
    "70,000 grey images of 28 x 28, 10 classes; arrays images, labels, split (1 = test)",
    "9a8c6fc4ba0fe9bec678f493abd750342066c7e560d97c3f55cb4ac3be707fa0",
)

_ARCHIVES = {
    "mnist": _MNIST,
    "mnist-test": _MNIST,
    "usps": _Archive(
        "usps.npz",
        "11,000 grey images of 16 x 16, 10 classes; arrays images, labels",
        "5d30f1c1e9acd1dbf32c58af5518bfa5a36d99b383e7f27e365da8c936a9ffb9",
    ),
    "coil20": _Archive(
        "coil20.npz",
        "1,440 grey images of 128 x 128, 20 classes; arrays images, labels",
        "b14f4e0652c2f30d76fb9896cefbc34f75a2f294a9c71738db2f9aee8d2939bb",
    ),
    "coil100": _Archive(
        "coil100.npz",
        "7,200 RGB images of 128 x 128, 100 classes; arrays webp, offsets, labels",
        "ed86850524b2218bd2be34cc5fbd27fe81f34d774ddf873c86e42e3b42e0cda5",
    ),
    "umist": _Archive(
        "umist.npz",
        "575 grey images of 112 x 92, 20 classes; arrays images, labels",
        "69523e613233a9ae1e5baafec3f7b3a4eea8cba5e9a8b7b4e9f3d4caaa02e8d5",
    ),
    "cmu-pie": _Archive(
        "cmu_pie.npz",
        "2,856 grey images of 32 x 32, 68 classes; arrays images, labels",
        "a54d85707e66144a0241b1ede3c14d69a90b3550477f17717e24920ba84b9c05",
    ),
    "cifar10": _Archive(
        "cifar10.npz",
        "60,000 RGB images of 32 x 32 in the original order, the 10,000 of the test batch last, "
        "10 classes; arrays images (uint8), labels (int64)",
        "679a0a54bc26fa5425a8717c376404f30e2982dcca8ebd67a5e0ea32155044bf",
        of_arrays=True,
    ),
    "ytf-frames": _Archive(
        "ytf_frames.npz",
        "4,232 RGB images of 55 x 55, frames of YouTube Faces, 347 classes; arrays images, labels, "
        "video (numbered within each person)",
        "47f8dc72d1555dea7b0a53c8785853df021f79cf8aeb8c2bba3c246a8127ece6",
    ),
    "lfw": _Archive(
        "lfw_pairs.npz",
        "7,701 RGB images of 64 x 64, 4,281 classes, and 6,000 pairs of them in 10 folds; arrays "
        "jpeg, offsets, labels, pairs, same, fold",
        "623eb46e0c6dc9c94fc0ca3a3ad285bfccfd790c11250083a8d5c1d4e912bc1e",
    ),
}

# Files of the authors, whose checksums are not known.
_AUTHORS_FILES = {
    "frgc": "2,462 RGB images of 32 x 32, 20 classes; HDF5 keys data (N x C x H x W) and labels",
    "ytf": "10,000 RGB images of 55 x 55, 41 classes; HDF5 keys data (N x C x H x W) and labels",
}


def dataset_names() -> tuple[str, ...]:
    """Return the names that `load_dataset` accepts.

    Examples
    --------
    >>> dataset_names()[:3]
    ('mnist', 'mnist-test', 'usps')
    """
    return (*_ARCHIVES, *_AUTHORS_FILES, "digits")


def load_dataset(name: str, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read a data set by name.

    Parameters
    ----------
    name
        One of `dataset_names()`. Case, hyphens and underscores do not matter: "COIL-20" and
        "MNIST_test" work. "digits" is part of scikit-learn and needs no file.
    folder
        The folder of the files. By default the environment variable JULE_DATA, or `jule` in the
        user's cache folder.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If the name is unknown, or the file is damaged or a different version.
    FileNotFoundError
        If the file is not in the folder.

    Examples
    --------
    >>> load_dataset("digits").images.shape
    (1797, 8, 8)
    """
    known = _known_name(name)
    if known == "digits":
        images, labels = _read_digits()
    elif known in _AUTHORS_FILES:
        images, labels = read_authors_hdf5(_find_authors_file(known, _data_folder(folder)))
    else:
        images, labels = _read_archive(known, _data_folder(folder))
    return Dataset(known, images, labels)


def load_pairs(folder: str | os.PathLike[str] | None = None) -> Pairs:
    """Read the pairs of Labeled Faces in the Wild: view 2, restricted protocol, 10 folds.

    Parameters
    ----------
    folder
        The folder of the files, as for `load_dataset`.

    Returns
    -------
    Pairs

    Raises
    ------
    ValueError
        If the file is damaged or a different version.
    FileNotFoundError
        If the file is not in the folder.
    """
    arrays = _arrays_of("lfw", _data_folder(folder))
    return Pairs(
        _images_in(arrays),
        arrays["pairs"].astype(np.int64),
        arrays["same"].astype(bool),
        arrays["fold"].astype(np.int64),
    )


def load_videos(folder: str | os.PathLike[str] | None = None) -> NDArray[np.int64]:
    """Return the video of each frame of ``"ytf-frames"``, numbered across all people.

    Examples
    --------
    >>> load_videos().max() + 1  # doctest: +SKIP
    1154
    """
    arrays = _arrays_of("ytf-frames", _data_folder(folder))
    of_person = arrays["video"].astype(np.int64)
    both = arrays["labels"].astype(np.int64) * (of_person.max() + 1) + of_person
    videos: NDArray[np.int64] = np.unique(both, return_inverse=True)[1]
    return videos


def has_dataset(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Return whether the file of a data set is in the data folder.

    Examples
    --------
    >>> has_dataset("digits")
    True
    """
    known = _known_name(name)
    if known == "digits":
        return True
    where = _data_folder(folder)
    if known in _AUTHORS_FILES:
        return any((where / choice).is_file() for choice in _authors_files(known))
    return (where / _ARCHIVES[known].file).is_file()


def _known_name(name: str) -> str:
    known = {each: each for each in dataset_names()}
    known["mnist"] = "mnist-full"  # the paper's name for all 70,000
    return match_name(name, known, "data set")


def _data_folder(folder: str | os.PathLike[str] | None) -> Path:
    chosen = folder or os.environ.get("JULE_DATA")
    return Path(chosen).expanduser() if chosen else user_cache() / "jule"


def _not_found(name: str, folder: Path, expected: str, holds: str) -> FileNotFoundError:
    where = folder if folder.is_dir() else f"{folder} (a folder that does not exist)"
    return FileNotFoundError(
        f"data set {name!r} is not in {where}: expected the file {expected} with {holds}. "
        f"Put the file there, or pass the folder that has it: load_dataset({name!r}, folder=...) "
        "or the environment variable JULE_DATA"
    )


def _read_digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    levels = digits.images.astype(np.int64)  # 0 to 16
    images = ((levels * 255 + 8) // 16).astype(np.uint8)  # + 8: rounded to the nearest
    return images, digits.target.astype(np.int64)


def _read_archive(name: str, folder: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    arrays = _arrays_of(name, folder)
    images, labels = _images_in(arrays), arrays["labels"].astype(np.int64)
    if name == "mnist-test":
        test = arrays["split"] == 1
        return images[test], labels[test]
    return images, labels


def _arrays_of(name: str, folder: Path) -> dict[str, NDArray[Any]]:
    archive = _ARCHIVES[name]
    path = folder / archive.file
    if not path.is_file():
        raise _not_found(name, folder, archive.file, archive.holds)
    return _checked_arrays(path, archive)


def _images_in(arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the images of an archive, which may hold them as encoded files."""
    if "images" in arrays:
        return arrays["images"]
    return _decode(arrays["webp" if "webp" in arrays else "jpeg"], arrays["offsets"])


def _checked_arrays(path: Path, archive: _Archive) -> dict[str, NDArray[Any]]:
    """Return all arrays of an .npz file after verifying its checksum."""
    with path.open("rb") as file:
        if archive.of_arrays:
            return _arrays_with_digest(path, file, archive.sha256)
        _check(path, hashlib.file_digest(file, "sha256").hexdigest(), archive.sha256)
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}


def _arrays_with_digest(path: Path, file: BinaryIO, sha256: str) -> dict[str, NDArray[Any]]:
    """Return images and labels of an .npz file after verifying their checksum."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in ("images", "labels")}
    except (BadZipFile, EOFError, KeyError, OSError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} is damaged: {error}. Replace it with a good copy") from error
    digest = hashlib.sha256()
    for values in arrays.values():
        digest.update(values.tobytes())
    _check(path, digest.hexdigest(), sha256)
    return arrays


def _check(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise ValueError(
            f"{path} is damaged or another version: its sha256 is {found}, expected {expected}. "
            "Replace it with a good copy of the file"
        )


def _decode(stream: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Decode concatenated images of one size to an array (n, height, width, 3)."""
    from PIL import Image

    def pixels(index: int) -> NDArray[np.uint8]:
        encoded = stream[offsets[index] : offsets[index + 1]].tobytes()
        with Image.open(io.BytesIO(encoded)) as image:
            return np.asarray(image.convert("RGB"), dtype=np.uint8)

    n = len(offsets) - 1
    images = np.empty((n, *pixels(0).shape), dtype=np.uint8)

    def fill(index: int) -> None:
        images[index] = pixels(index)

    # Pillow releases the interpreter lock while it decodes.
    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(n)))  # raises the errors of the threads
    return images


def _authors_files(name: str) -> list[str]:
    return [f"{name}.h5", f"{name.upper()}/data4torch.h5"]


def _find_authors_file(name: str, folder: Path) -> Path:
    choices = _authors_files(name)
    for choice in choices:
        if (folder / choice).is_file():
            return folder / choice
    raise _not_found(name, folder, " or ".join(choices), _AUTHORS_FILES[name])
