"""Parse the arrays in the files of a run, which may be damaged or come from a stranger."""

from __future__ import annotations

import io
import math
import struct
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.runs.manifest import damaged

MAGIC = b"\x93NUMPY"
MOST_HEAD = 2**16 + 10  # bytes before the values of an array, in the format that numpy writes
LOCAL_MAGIC = b"PK\x03\x04"
LOCAL_HEAD = struct.Struct("<26xHH")  # of a member of an archive: the lengths of name and extra


def parse_array(
    content: bytes | memoryview,
    path: Path,
    *,
    shape: tuple[int | None, ...] | None = None,
    kind: str = "iuf",
) -> NDArray:
    """Parse the content of a .npy file.

    Parameters
    ----------
    content
        The bytes of the file. The array uses their memory if it can be written to.
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
        if bytes(content[: len(MAGIC)]) != MAGIC:
            raise ValueError("it is not a .npy file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that earlier versions wrote
            array = _array_in(content)
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


def _array_in(content: bytes | memoryview) -> NDArray:
    """Return the array of a .npy file, if possible without a copy: it may have a gigabyte."""
    head = io.BytesIO(bytes(content[:MOST_HEAD]))
    if np.lib.format.read_magic(head) == (1, 0):
        shape, is_transposed, dtype = np.lib.format.read_array_header_1_0(head)
        if min(shape, default=0) < 0:
            raise ValueError(f"its shape is {shape}")
        if math.prod(shape) and not is_transposed and not dtype.hasobject:
            found = np.frombuffer(content, dtype, math.prod(shape), head.tell()).reshape(shape)
            return found if found.flags.writeable and found.flags.aligned else found.copy()
    array: NDArray = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
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
            parts = {name: _stored(content, members[f"{name}.npy"]) for name in kinds}
    except Exception as error:  # zipfile raises anything for damaged bytes
        raise damaged(path, error) from error
    return {name: parse_array(part, path, kind=kinds[name]) for name, part in parts.items()}


def _stored(content: bytes, member: zipfile.ZipInfo) -> memoryview:
    """Return the bytes of a member that is not compressed.

    Its own checksum is not looked at: the manifest has one of the file.
    """
    begin = member.header_offset + LOCAL_HEAD.size
    if not content.startswith(LOCAL_MAGIC, member.header_offset):
        raise ValueError(f"{member.filename} does not begin where the archive says")
    name, extra = LOCAL_HEAD.unpack_from(content, member.header_offset)
    begin += name + extra
    return memoryview(content)[begin : begin + member.file_size]
