"""Choose the right kind of source for the user's input."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from jule.images.sources import arrays, hdf5, lists, tars
from jule.images.sources.arrays import ArraySource, open_arrays
from jule.images.sources.base import ImageSource, is_picture_name
from jule.images.sources.content import is_tensor
from jule.images.sources.files import FileSource, open_paths
from jule.images.sources.folder import open_folder
from jule.images.sources.hdf5 import open_hdf5
from jule.images.sources.idx import is_gzip, is_idx, open_idx
from jule.images.sources.lists import open_list, open_pattern
from jule.images.sources.objects import DatasetSource, HuggingFaceSource, open_hugging_face
from jule.images.sources.tars import TarSource
from jule.images.sources.zips import ZipSource

HINT = (
    "A source is a folder of pictures, an archive (.zip, .tar), an array file (.npy, .npz, .h5, "
    "IDX), a list of paths (.txt, .csv), a pattern such as 'photos/**/*.jpg', or hf:NAME"
)
MOST_SHARDS = 1_000_000  # tar files of one pattern
MOST_COMPARED = 10_000  # names in a folder that are compared with a mistyped name


@dataclass(frozen=True)
class Kind:
    """A kind of source: how it is recognised and how it is opened."""

    matches: Callable[[str], bool]
    open: Callable[[str], ImageSource]


def open_source(source: Any, *, labels_from_folders: bool = False) -> ImageSource:
    """Open a source of pictures.

    Parameters
    ----------
    source
        A path, a list of paths, a pattern such as ``photos/**/*.jpg``, ``hf:NAME``, an array
        (n, height, width[, channels]), or a data set of torch or Hugging Face.
    labels_from_folders
        Whether to use the folder of each picture as its true class, for evaluation. Requires a
        folder.

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder.
    ValueError
        If it is not a source of pictures, or is damaged.

    Examples
    --------
    >>> len(open_source(np.zeros((3, 8, 8), np.uint8)))
    3
    """
    if isinstance(source, ImageSource):
        return source
    if not isinstance(source, str | os.PathLike):
        return _open_object(source)
    text = os.fspath(source)
    if labels_from_folders:
        if not os.path.isdir(text):
            problem = f"{text} is not a folder, so its folders cannot be classes"
            raise ValueError(problem + did_you_mean(text))
        return open_folder(Path(text), labels_from_folders=True)
    for kind in KINDS:
        if kind.matches(text):
            return kind.open(text)
    if not os.path.lexists(text):
        raise FileNotFoundError(f"{text} does not exist{did_you_mean(text) or '.'} {HINT}")
    raise ValueError(f"{text} is not a kind of file that pictures can be read from. {HINT}")


def did_you_mean(text: str) -> str:
    """Return a question that suggests a path similar to a missing one; empty if there is none.

    Examples
    --------
    >>> did_you_mean("/no such folder/a")
    ''
    """
    if os.path.lexists(text):
        return ""
    folder, name = os.path.split(os.path.normpath(text))
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, MOST_COMPARED)]
    except OSError:
        return ""
    visible = [one for one in names if not one.startswith(".")]
    close = difflib.get_close_matches(name, visible, n=1)
    return f": did you mean {os.path.join(folder, close[0])!r}?" if close else ""


def _open_object(data: Any) -> ImageSource:
    if isinstance(data, np.ndarray) or is_tensor(data) or _all_are(data, np.ndarray):
        return ArraySource(data)
    if _all_are(data, str | os.PathLike):
        return open_paths(data)
    if hasattr(data, "features") and hasattr(data, "cast_column"):
        return HuggingFaceSource(data)
    if isinstance(data, dict):
        keys = ", ".join(map(str, data))
        raise ValueError(f"pictures cannot be read from a dict of {keys}: pass one of its values")
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return DatasetSource(data)
    raise ValueError(
        f"pictures cannot be read from a {type(data).__name__}: pass a path, a list of paths, an "
        "array (n, h, w) or (n, h, w, c), or a data set with a length and items"
    )


def _all_are(data: Any, kind: Any) -> bool:
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(x, kind) for x in data)


def _is_hugging_face(text: str) -> bool:
    saved = ("dataset_info.json", "dataset_dict.json")
    return text.startswith("hf:") or any(os.path.isfile(os.path.join(text, one)) for one in saved)


def _is_tar(text: str) -> bool:
    return _is_folder_of_shards(text) or _is_shard_pattern(text) or _is_file(tars.SUFFIXES)(text)


def _is_folder_of_shards(text: str) -> bool:
    if not os.path.isdir(text):
        return False
    names = [name for name in os.listdir(text) if not name.startswith(".")]
    return any(name.lower().endswith(tars.SUFFIXES) for name in names) and not any(
        is_picture_name(name) or os.path.isdir(os.path.join(text, name)) for name in names
    )


def _is_shard_pattern(text: str) -> bool:
    return (
        text.lower().endswith(tars.SUFFIXES)
        and not os.path.exists(text)
        and (bool(re.search(r"\{.*\}", text)) or _is_pattern(text))
    )


def _is_file(suffixes: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda text: os.path.isfile(text) and text.lower().endswith(suffixes)


def _is_single_picture(text: str) -> bool:
    return os.path.isfile(text) and is_picture_name(text)


def _is_idx_file(text: str) -> bool:
    if not os.path.isfile(text):
        return False
    if text.lower().endswith((".idx", "-ubyte", ".idx.gz", "-ubyte.gz")):
        return True
    with open(text, "rb") as file:
        return is_idx(file.read(4)) and not is_gzip(Path(text))


def _is_pattern(text: str) -> bool:
    return not os.path.lexists(text) and any(letter in text for letter in "*?[")


def open_shards(text: str) -> TarSource:
    """Open a tar file, the tar files of a folder, or those of a pattern such as s-{00..12}.tar."""
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
        raise FileNotFoundError(f"no tar file matches the pattern {text!r}")
    return TarSource(text, found)


def expand_braces(text: str) -> list[str]:
    """Expand braces as shells do: {08..10} or {a,b}.

    Examples
    --------
    >>> expand_braces("s-{08..10}.tar")
    ['s-08.tar', 's-09.tar', 's-10.tar']
    """
    parts = re.split(r"\{([^{}]*)\}", text)
    choices: list[Sequence[str]] = []
    for position, part in enumerate(parts):
        span = re.fullmatch(r"([0-9]{1,18})\.\.([0-9]{1,18})", part) if position % 2 else None
        if span:
            low, high = (int(end) for end in span.groups())
            _check_count(text, high + 1 - low)
            choices.append([f"{i:0{len(span[1])}d}" for i in range(low, high + 1)])
        else:
            choices.append(part.split(",") if position % 2 else [part])
    _check_count(text, math.prod(len(some) for some in choices))
    return ["".join(chosen) for chosen in product(*choices)]


def _check_count(text: str, count: int) -> None:
    if count > MOST_SHARDS:
        raise ValueError(f"{text} stands for {count:,} files; at most {MOST_SHARDS:,} can be read")


def _open_single(text: str) -> FileSource:
    return FileSource(text, [Path(text)], [os.path.basename(text)])


# In the order they are tried.
KINDS = (
    Kind(_is_hugging_face, open_hugging_face),
    Kind(_is_tar, open_shards),
    Kind(os.path.isdir, lambda text: open_folder(Path(text))),
    Kind(_is_file(arrays.SUFFIXES), lambda text: open_arrays(Path(text))),
    Kind(_is_file(hdf5.SUFFIXES), lambda text: open_hdf5(Path(text))),
    Kind(_is_file((".zip",)), lambda text: ZipSource(Path(text))),
    Kind(_is_file(lists.SUFFIXES), lambda text: open_list(Path(text))),
    Kind(_is_single_picture, _open_single),
    Kind(_is_idx_file, lambda text: open_idx(Path(text))),
    Kind(_is_pattern, open_pattern),
)
