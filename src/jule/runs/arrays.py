"""Parse the arrays in the files of a run, which may be damaged or come from a stranger."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.runs.manifest import damaged


def parse_array(
    content: bytes, path: Path, *, shape: tuple[int | None, ...] | None = None, kind: str = "iuf"
) -> NDArray:
    """Parse the content of a .npy file.

    Parameters
    ----------
    content
        The bytes of the file.
    path
        The file, for error messages.
    shape
        The expected shape, with None for any length; by default any shape.
    kind
        The accepted kinds of numbers, as in `numpy.dtype.kind`.

    Raises
    ------
    DamagedError
        If it is not such an array, or has a value that is not finite.

    Examples
    --------
    >>> from jule.files import array_bytes
    >>> parse_array(array_bytes(np.arange(3)), Path("a.npy"), shape=(3,)).tolist()
    [0, 1, 2]
    """
    try:
        # Without this check, numpy's message for an array of objects would advise to load it.
        if not content.startswith(b"\x93NUMPY"):
            raise ValueError("it is not a .npy file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that earlier versions wrote
            array: NDArray = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # numpy raises anything for damaged bytes
        reason = "its array cannot be read" if "pickle" in str(error) else error
        raise damaged(path, reason) from error
    if array.dtype.kind not in kind:
        raise damaged(path, f"its values have the type {array.dtype}")
    expected = array.shape if shape is None else shape
    if len(expected) != array.ndim or any(
        length not in (None, found) for length, found in zip(expected, array.shape, strict=True)
    ):
        raise damaged(path, f"its shape is {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise damaged(path, "it has values that are not finite")
    return array


def parse_arrays(content: bytes, path: Path, kinds: Mapping[str, str]) -> dict[str, NDArray]:
    """Parse the content of a .npz file with exactly the given arrays, and their kinds of numbers.

    Examples
    --------
    >>> from jule.files import arrays_bytes
    >>> parse_arrays(arrays_bytes(a=np.arange(3)), Path("a.npz"), {"a": "i"})["a"].tolist()
    [0, 1, 2]
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if set(members) != {f"{name}.npy" for name in kinds}:
                raise ValueError(f"it holds {', '.join(sorted(members)) or 'nothing'}")
            # Written without compression, so that a small file cannot become a large array.
            if any(one.compress_type != zipfile.ZIP_STORED for one in members.values()):
                raise ValueError("it is compressed")
            parts = {name: archive.read(f"{name}.npy") for name in kinds}
    except Exception as error:  # zipfile raises anything for damaged bytes
        raise damaged(path, error) from error
    return {name: parse_array(part, path, kind=kinds[name]) for name, part in parts.items()}
