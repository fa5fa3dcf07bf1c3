"""The arrays in the files of a run: read as numpy reads them, and refused if they are damaged."""

import io
from pathlib import Path

import numpy as np
import pytest

from jule.files import array_bytes, arrays_bytes, read_large, write_atomic
from jule.runs.arrays import parse_array, parse_arrays
from jule.runs.manifest import DamagedError

ARRAYS = [
    np.arange(12, dtype=np.float32).reshape(3, 4),
    np.arange(3),
    np.arange(6, dtype=">i4").reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.zeros((0, 16), np.uint8),
    np.array(7),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str} {array.shape}")
def test_arrays_are_read_as_numpy_reads_them(tmp_path, array):
    content = array_bytes(array)
    write_atomic(tmp_path / "a.npy", content)
    for given in (content, read_large(tmp_path / "a.npy")):
        found = parse_array(given, Path("a.npy"))
        np.testing.assert_array_equal(found, np.load(io.BytesIO(content)))
        assert found.dtype == array.dtype
        assert found.flags.writeable
        assert found.flags.aligned
    (found,) = parse_arrays(arrays_bytes(a=array), Path("a.npz"), {"a": "iuf"}).values()
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable
    assert found.flags.aligned


@pytest.mark.parametrize("keep", [0, 5, 9, 60, 128, 130])
def test_half_an_array_is_refused(keep):
    with pytest.raises(DamagedError, match=r"a\.npy is damaged"):
        parse_array(array_bytes(ARRAYS[0])[:keep], Path("a.npy"))


@pytest.mark.parametrize("shape", [(-1, 4), (-1,), (-3, -4), (3, -1)])
def test_lengths_below_zero_are_refused(shape):
    content = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, about)
    content.write(ARRAYS[0].tobytes())
    with pytest.raises(DamagedError, match=r"a\.npy is damaged.*its shape is"):
        parse_array(content.getvalue(), Path("a.npy"))


def test_an_archive_whose_members_are_elsewhere_is_refused():
    content = arrays_bytes(a=ARRAYS[0])
    assert content.startswith(b"PK\x03\x04")
    with pytest.raises(DamagedError, match=r"a\.npy does not begin where the archive says"):
        parse_arrays(b"PK\x00\x00" + content[4:], Path("a.npz"), {"a": "f"})


def test_objects_are_not_loaded():
    content = io.BytesIO()
    np.save(content, np.array([{}], object), allow_pickle=True)
    with pytest.raises(DamagedError, match="its array cannot be read"):
        parse_array(content.getvalue(), Path("a.npy"))
