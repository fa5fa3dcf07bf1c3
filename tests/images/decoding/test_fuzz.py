"""Damaged bytes: the process survives, and every picture is decoded or listed as skipped."""

import contextlib
import gzip
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from jule.images import ImageSpec, open_source, read_images
from tests.images.pictures import file_of, pixels
from tests.images.sources.test_archives import write_tar, write_zip
from tests.images.sources.test_idx import idx

SPEC = ImageSpec(16, 16, 3)
EACH = 25  # damaged versions of a file
KINDS = {
    "JPEG": {}, "PNG": {}, "WEBP": {}, "BMP": {}, "GIF": {}, "TIFF": {},
    "TIFF packed": {"compression": "tiff_lzw"}, "AVIF": {}, "PPM": {},
}  # fmt: skip


def damaged(content, random):
    """One damaged version: cut off, some bytes changed, a block of noise, or a piece missing."""
    content = bytearray(content)
    at = int(random.integers(len(content)))
    match int(random.integers(4)):
        case 0:
            del content[at:]
        case 1:
            for _ in range(int(random.integers(1, 9))):
                where = int(random.integers(len(content)))
                content[where] ^= int(random.integers(1, 256))
        case 2:
            noise = random.bytes(min(int(random.integers(1, 200)), len(content) - at))
            content[at : at + len(noise)] = noise
        case _:
            del content[at : at + int(random.integers(1, 50))]
    return bytes(content)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_pictures_are_decoded_or_listed(tmp_path, kind):
    random = np.random.default_rng(list(kind.encode()))
    name = kind.split()[0]
    whole = file_of(pixels(height=40, width=50), name, **KINDS[kind])
    for number in range(EACH):
        (tmp_path / f"{number:03}.{name.lower()}").write_bytes(damaged(whole, random))
    (tmp_path / f"whole.{name.lower()}").write_bytes(whole)
    found = read_images(tmp_path, SPEC)
    assert found.samples.shape == (len(found), 16, 16, 3)
    assert len(found) + len(found.skipped) == EACH + 1
    assert found.names[-1] == f"whole.{name.lower()}"
    assert all(one.reason for one in found.skipped)
    assert len(read_images(tmp_path).names) == len(found)  # through the survey too


def test_bytes_in_a_header_can_be_anything(tmp_path):
    """Extreme values in the headers of small files, which hold sizes and colour modes."""
    random = np.random.default_rng(0)
    number = 0
    for kind in ("PNG", "BMP", "GIF", "TIFF", "JPEG", "WEBP"):
        whole = file_of(pixels(height=6, width=5), kind)
        for at in range(0, min(64, len(whole)), 2):
            content = bytearray(whole)
            content[at] = random.choice([0, 1, 127, 128, 255])
            (tmp_path / f"{number:04}.png").write_bytes(content)
            number += 1
    found = read_images(tmp_path, SPEC)
    assert len(found) + len(found.skipped) == number


def only_value_errors(path, random, whole):
    """Open damaged versions of a container; count those that could be read all the same."""
    good, name = 0, path.name
    for number in range(EACH):
        path = path.with_name(f"{number}-{name}")
        path.write_bytes(damaged(whole, random))
        try:
            found = read_images(path)
        except ValueError:
            continue
        assert len(found) >= 1
        good += 1
    return good


IMAGES = np.stack([pixels(n, height=12, width=10, channels=1) for n in range(6)])
MEMBERS = {f"{n}.png": file_of(image) for n, image in enumerate(IMAGES)}


def _zip(path):
    write_zip(path, MEMBERS)


def _zip_lzma(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        for name, content in MEMBERS.items():
            file.writestr(name, content)


def _tar(path):
    write_tar(path, MEMBERS | {"0.cls": b"1", "1.cls": b"2"})


def _npz(path):
    np.savez(path, images=IMAGES, names=list("abcdef"), labels=np.arange(6))


def _npz_packed(path):
    np.savez_compressed(path, images=IMAGES)


def _npy(path):
    np.save(path, IMAGES)


def _idx(path):
    path.write_bytes(idx(IMAGES))


def _idx_packed(path):
    path.write_bytes(gzip.compress(idx(IMAGES)))


CONTAINERS = {
    "a.zip": _zip, "lzma.zip": _zip_lzma,
    "a.tar": _tar, "a.tar.gz": _tar, "a.tar.bz2": _tar, "a.tar.xz": _tar,
    "a.npz": _npz, "packed.npz": _npz_packed, "a.npy": _npy,
    "a-ubyte": _idx, "a-ubyte.gz": _idx_packed,
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_damaged_container_is_read_or_a_value_error(tmp_path, name):
    random = np.random.default_rng(list(name.encode()))
    CONTAINERS[name](tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    assert only_value_errors(tmp_path / name, random, whole) < EACH
    (tmp_path / name).write_bytes(whole)
    assert len(read_images(tmp_path / name)) == 6


@pytest.mark.parametrize("name", ["a.npz", "a.npy"])
def test_every_byte_of_a_head_can_be_anything(tmp_path, name):
    path = tmp_path / name
    CONTAINERS[name](path)
    whole = path.read_bytes()
    for at in range(0, min(len(whole), 140), 3):
        content = bytearray(whole)
        content[at] ^= 0xA5
        (tmp_path / f"{at}-{name}").write_bytes(content)
        with contextlib.suppress(ValueError):
            open_source(tmp_path / f"{at}-{name}")


HDF5 = """
import sys
from pathlib import Path
import numpy as np
from jule.images import open_source
from tests.images.decoding.test_fuzz import EACH, damaged

path = Path(sys.argv[1])
whole, random, good = path.read_bytes(), np.random.default_rng(5), 0
for number in range(EACH):
    path = path.with_name(f"{number}.h5")
    path.write_bytes(damaged(whole, random))
    try:
        open_source(path)
        good += 1
    except ValueError:
        pass
print("read", good)
"""


def test_a_damaged_hdf5_file_is_read_or_a_value_error(tmp_path):
    """In a separate process: HDF5 is a large library in C."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("images", data=IMAGES, compression="gzip")
        file["labels"] = np.arange(6)
    done = subprocess.run(
        [sys.executable, "-c", HDF5, tmp_path / "a.h5"], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("read")


TABLES = [b'path\n"', b"\xef\xbb\xbf", b",,,\n,,\n", b"path\n\0\n", b"\r\r\r", b"path,path\na,b\n"]


@pytest.mark.parametrize("content", TABLES)
def test_odd_tables_are_read_or_a_value_error(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.csv|none of"):
        read_images(tmp_path / "a.csv")
