"""From what the user typed to the right kind of source."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from jule.images import arrays, hdf5, lists, tars
from jule.images.arrays import ArraySource, open_arrays
from jule.images.files import FileSource
from jule.images.folder import open_folder
from jule.images.hdf5 import open_hdf5
from jule.images.idx import is_gzip, is_idx, open_idx
from jule.images.lists import open_list, open_pattern
from jule.images.objects import DatasetSource, HuggingFaceSource, open_hugging_face
from jule.images.source import ImageSource, is_picture_name
from jule.images.tars import TarSource
from jule.images.zips import ZipSource


@dataclass(frozen=True)
class Kind:
    """A kind of source: what it is called, how it is known, how it is opened."""

    words: str
    fits: Callable[[str], bool]
    open: Callable[[str], ImageSource]


def open_source(what: Any, *, labels_from_folders: bool = False) -> ImageSource:
    """Open pictures, wherever they are.

    Parameters
    ----------
    what
        A path, a pattern such as ``photos/**/*.jpg``, ``hf:NAME``, an array, or a data set of torch
        or Hugging Face.
    labels_from_folders
        In a folder, take the folder of a picture as its true class, to score the result by.

    Raises
    ------
    ValueError, FileNotFoundError
        Saying what was tried.

    Examples
    --------
    >>> len(open_source(np.zeros((3, 8, 8), np.uint8)))
    3
    """
    if isinstance(what, ImageSource):
        return what
    if not isinstance(what, str | os.PathLike):
        return _open_object(what)
    text = os.fspath(what)
    if labels_from_folders:
        if not os.path.isdir(text):
            raise ValueError(f"{text} is not a folder, so its folders cannot be classes")
        return open_folder(Path(text), labels_from_folders=True)
    for kind in KINDS:
        if kind.fits(text):
            return kind.open(text)
    tried = "".join(f"\n  - {kind.words}" for kind in KINDS)
    if not os.path.lexists(text):
        raise FileNotFoundError(f"{text} is not there. Pictures can be given as:{tried}")
    raise ValueError(f"{text} is nothing that pictures can be read from. It may be:{tried}")


def _open_object(what: Any) -> ImageSource:
    if isinstance(what, np.ndarray) or (
        isinstance(what, list) and what and all(isinstance(one, np.ndarray) for one in what)
    ):
        return ArraySource(what)
    if hasattr(what, "features") and hasattr(what, "cast_column"):
        return HuggingFaceSource(what)
    if isinstance(what, dict):
        known = ", ".join(map(str, what))
        raise ValueError(f"pictures cannot be read from a dict of {known}: give one of them")
    if hasattr(what, "__len__") and hasattr(what, "__getitem__"):
        return DatasetSource(what)
    raise ValueError(
        f"pictures cannot be read from a {type(what).__name__}: give a path, an array (n, h, w) or "
        "(n, h, w, c), or a data set with a length and items"
    )


def _is_hugging_face(text: str) -> bool:
    saved = ("dataset_info.json", "dataset_dict.json")
    return text.startswith("hf:") or any(os.path.isfile(os.path.join(text, one)) for one in saved)


def _is_folder_of_shards(text: str) -> bool:
    if not os.path.isdir(text):
        return False
    names = [name for name in os.listdir(text) if not name.startswith(".")]
    return any(name.lower().endswith(tars.SUFFIXES) for name in names) and not any(
        is_picture_name(name) or os.path.isdir(os.path.join(text, name)) for name in names
    )


def _file_ending(*suffixes: str) -> Callable[[str], bool]:
    return lambda text: os.path.isfile(text) and text.lower().endswith(suffixes)


def _is_idx_file(text: str) -> bool:
    if not os.path.isfile(text):
        return False
    if text.lower().endswith((".idx", "-ubyte", ".idx.gz", "-ubyte.gz")):
        return True
    with open(text, "rb") as file:
        return is_idx(file.read(4)) and not is_gzip(Path(text))


def _is_pattern(text: str) -> bool:
    return not os.path.lexists(text) and any(letter in text for letter in "*?[")


def _is_shard_pattern(text: str) -> bool:
    return (
        text.lower().endswith(tars.SUFFIXES)
        and not os.path.exists(text)
        and (bool(re.search(r"\{.*\}", text)) or _is_pattern(text))
    )


def open_shards(text: str) -> TarSource:
    """Open the tar files of a folder, or of a pattern: shard-{000..012}.tar, shard-*.tar.

    Examples
    --------
    >>> open_shards("shard-{000..012}.tar")  # doctest: +SKIP
    """
    if os.path.isdir(text):
        names = sorted(n for n in os.listdir(text) if n.lower().endswith(tars.SUFFIXES))
        return TarSource(text, [Path(text, name) for name in names])
    if os.path.isfile(text):
        return TarSource(text, [Path(text)])
    if "{" in text:
        found = [Path(name) for name in expand_braces(text)]
    else:
        found = sorted(Path(text).parent.glob(Path(text).name))
    if not found:
        raise FileNotFoundError(f"no tar file is found by the pattern {text!r}")
    return TarSource(text, found)


def expand_braces(text: str) -> list[str]:
    """Write out the numbers in braces, as shells do: {08..10} or {a,b}.

    Examples
    --------
    >>> expand_braces("s-{08..10}.tar")
    ['s-08.tar', 's-09.tar', 's-10.tar']
    """
    parts = re.split(r"\{([^{}]*)\}", text)
    choices = []
    for place, part in enumerate(parts):
        span = re.fullmatch(r"(\d+)\.\.(\d+)", part) if place % 2 else None
        if span:
            low, high = span.groups()
            choices.append([f"{i:0{len(low)}d}" for i in range(int(low), int(high) + 1)])
        else:
            choices.append(part.split(",") if place % 2 else [part])
    return ["".join(chosen) for chosen in product(*choices)]


def _open_single(text: str) -> FileSource:
    return FileSource(text, [Path(text)], [os.path.basename(text)])


# In the order they are tried.
KINDS = (
    Kind("a Hugging Face data set: hf:NAME, hf:NAME:SPLIT, or a folder it was saved to",
         _is_hugging_face, open_hugging_face),
    Kind("a folder of tar shards, a .tar file, or a pattern such as shard-{000..012}.tar",
         lambda text: _is_folder_of_shards(text) or _is_shard_pattern(text)
         or _file_ending(*tars.SUFFIXES)(text), open_shards),
    Kind("a folder of pictures", os.path.isdir, lambda text: open_folder(Path(text))),
    Kind("a .npy or .npz file of arrays", _file_ending(*arrays.SUFFIXES),
         lambda text: open_arrays(Path(text))),
    Kind("an HDF5 file (.h5, .hdf5)", _file_ending(*hdf5.SUFFIXES),
         lambda text: open_hdf5(Path(text))),
    Kind("a .zip file of pictures", _file_ending(".zip"), lambda text: ZipSource(Path(text))),
    Kind("a list of paths (.txt, .csv, .tsv)", _file_ending(*lists.SUFFIXES),
         lambda text: open_list(Path(text))),
    Kind("a single picture", lambda text: os.path.isfile(text) and is_picture_name(text),
         _open_single),
    Kind("an IDX file, as of MNIST (-ubyte, -ubyte.gz)", _is_idx_file,
         lambda text: open_idx(Path(text))),
    Kind("a pattern such as 'photos/**/*.jpg' (in quotes)", _is_pattern, open_pattern),
)  # fmt: skip
