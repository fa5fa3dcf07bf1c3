"""Files of strangers: sizes that cannot be true, other files, names, members of one name."""

import gzip
import io
import os
import struct
import tarfile
import warnings
import zipfile

import numpy as np
import pytest

from jule.images import ArraySource, ImageSpec, open_source, read_authors_hdf5, read_images
from jule.images.sources.resolve import expand_braces
from jule.images.sources.tars import MOST_HEADER
from tests.images.pictures import file_of, pixels
from tests.images.sources.test_idx import idx

IMAGES = np.stack([pixels(n, height=6, width=5, channels=1) for n in range(4)])
SPEC = ImageSpec(24, 32, 3)
TERABYTE = (10**6, 1000, 1000)
TOO_MUCH = r"{}.* needs [\d,.]+ TB of memory, but only "


# -- HDF5 ----------------------------------------------------------------------------------------


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py")


@pytest.mark.parametrize("options", [{}, {"chunks": True, "compression": "gzip"}])
def test_a_data_set_larger_than_memory_is_refused_before_it_is_read(tmp_path, h5py, options):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("images", TERABYTE, np.uint8, **options)
        file.create_dataset("data", (*TERABYTE, 1), np.uint8, **options)
        file["labels"] = np.arange(4)
    for read in (open_source, read_authors_hdf5):
        with pytest.raises(ValueError, match=TOO_MUCH.format(r"a\.h5")) as caught:
            read(tmp_path / "a.h5")
        assert "\n" not in str(caught.value)


def test_only_what_is_needed_is_read_of_an_hdf5_file(tmp_path, h5py):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = IMAGES
        file.create_dataset("more", TERABYTE, np.uint8)
        file.create_dataset("labels", TERABYTE, np.uint8)
    np.testing.assert_array_equal(open_source(tmp_path / "a.h5").array(), IMAGES)


def _external_storage(file, h5py, secret):
    for name in ("images", "data"):
        file.create_dataset(name, (2, 1, 4, 4), np.uint8, external=[(str(secret), 0, 32)])


def _virtual(file, h5py, secret):
    layout = h5py.VirtualLayout((2, 1, 4, 4), np.uint8)
    layout[...] = h5py.VirtualSource(str(secret), "images", (2, 1, 4, 4), np.uint8)
    for name in ("images", "data"):
        file.create_virtual_dataset(name, layout)


def _external_link(file, h5py, secret):
    file["images"] = file["data"] = h5py.ExternalLink(str(secret), "/images")


def _soft_link(file, h5py, secret):
    file["out"] = h5py.ExternalLink(str(secret), "/")
    file["images"] = file["data"] = h5py.SoftLink("/out/images")


def _labels_elsewhere(file, h5py, secret):
    file["images"] = np.zeros((2, 4, 4), np.uint8)
    file["data"] = np.zeros((2, 1, 4, 4), np.uint8)
    file.create_dataset("labels", (2,), np.uint8, external=[(str(secret), 0, 2)])


ELSEWHERE = [_external_storage, _virtual, _external_link, _soft_link, _labels_elsewhere]


@pytest.mark.parametrize("write", ELSEWHERE)
def test_an_hdf5_file_never_leads_to_another_file(tmp_path, h5py, write):
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["images"] = np.full((2, 1, 4, 4), 7, np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write(file, h5py, tmp_path / "secret.h5")
        if "labels" not in file:
            file["labels"] = [0, 1]
    for read in (open_source, read_authors_hdf5):
        with pytest.raises(ValueError, match=r"a\.h5 (refers to other files|is a link)"):
            read(tmp_path / "a.h5")


# -- arrays --------------------------------------------------------------------------------------


def header(shape, kind="|u1"):
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        content, {"descr": kind, "fortran_order": False, "shape": shape}
    )
    return content.getvalue()


@pytest.mark.parametrize("name", ["images", "names", "labels"])
def test_a_member_of_an_npz_larger_than_memory_is_refused(tmp_path, name):
    np.savez(tmp_path / "a.npz", **({} if name == "images" else {"images": IMAGES}))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as file:
        file.writestr(f"{name}.npy", header(TERABYTE))
    with pytest.raises(ValueError, match=TOO_MUCH.format(r"a\.npz cannot be read.*" + name)):
        open_source(tmp_path / "a.npz")


def test_names_that_are_huge_strings_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", images=IMAGES)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as file:
        file.writestr("names.npy", header((4,), "<U500000000000"))
    with pytest.raises(ValueError, match=r"a\.npz cannot be read as arrays"):
        open_source(tmp_path / "a.npz")


def sparse(path, size, content=b""):
    """Write a file of any size that takes no space on the disk."""
    path.write_bytes(content)
    try:
        os.truncate(path, size)
    except OSError:
        pytest.skip("this file system has no files of that size")


def test_numbers_that_would_not_fit_into_memory_as_float32_are_refused(tmp_path):
    head = header((10**6, 10**6), "<f8")
    sparse(tmp_path / "a.npy", len(head) + 8 * 10**12, head)
    with pytest.raises(ValueError, match=TOO_MUCH.format(r"a\.npy")):
        open_source(tmp_path / "a.npy")


def test_objects_are_refused_without_bad_advice(tmp_path):
    objects = np.array([{"a": 1}], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "a.npz", images=objects)
    np.savez(tmp_path / "b.npz", images=IMAGES, labels=objects)
    (tmp_path / "b.npy").write_bytes(b"\x80\x04}\x94.")
    for name in ("a.npy", "a.npz", "b.npz", "b.npy"):
        with pytest.raises(ValueError, match=f"{name} cannot be read as arrays") as caught:
            open_source(tmp_path / name)
        assert "allow_pickle" not in str(caught.value)
        assert "pickle" not in str(caught.value)


def test_masks_are_refused():
    masked = np.ma.masked_less(IMAGES, 50)
    for one in (masked, list(masked), [masked[0], IMAGES[1]]):
        with pytest.raises(ValueError, match="masks of masked arrays are not supported: fill or"):
            open_source(one)
    items = [(masked[0], 0), (masked[1], 1)]
    with pytest.raises(ValueError, match="masks of masked arrays"):
        read_images(items, SPEC)


def test_names_that_are_not_unicode_are_escaped(tmp_path):
    np.savez(tmp_path / "a.npz", images=IMAGES, names=["a\ud800", "b", "c", "d"])
    names = read_images(tmp_path / "a.npz").names
    assert names == ["a\\ud800", "b", "c", "d"]
    assert "\n".join(names).encode()


def test_names_without_end_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", images=IMAGES, names=["a" * 5000, "b", "c", "d"])
    with pytest.raises(ValueError, match=r"a\.npz: .* has more than 4,096 char") as error:
        open_source(tmp_path / "a.npz")
    assert len(str(error.value)) < 500
    assert ArraySource(IMAGES, ["a" * 4096, "b", "c", "d"])


# -- IDX and lists -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(10**4, 10**4, 10**4), (4 * 10**9, 4 * 10**9, 4 * 10**9)])
@pytest.mark.parametrize("kind", [8, 14])
def test_an_idx_file_larger_than_memory_is_refused(tmp_path, shape, kind):
    head = bytes([0, 0, kind, 3]) + struct.pack(">3I", *shape)
    (tmp_path / "a-ubyte").write_bytes(head)
    (tmp_path / "a-ubyte.gz").write_bytes(gzip.compress(head + bytes(2**20)))
    with pytest.raises(ValueError, match=r"a-ubyte cannot be read as IDX: .* more than it has"):
        open_source(tmp_path / "a-ubyte")
    with pytest.raises(ValueError, match=r"a-ubyte\.gz .* [TE]B of memory, but only "):
        open_source(tmp_path / "a-ubyte.gz")


def test_more_than_an_idx_file_announces_is_not_unpacked(tmp_path):
    (tmp_path / "a-ubyte.gz").write_bytes(gzip.compress(idx(IMAGES) + bytes(2**26)))
    with pytest.raises(ValueError, match=r"announces 120 bytes .* it has more"):
        open_source(tmp_path / "a-ubyte.gz")


@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_a_list_larger_than_memory_is_refused(tmp_path, name):
    sparse(tmp_path / name, 10**12)
    with pytest.raises(ValueError, match=TOO_MUCH.format(name)):
        open_source(tmp_path / name)


def test_a_cell_without_end_is_a_clear_error(tmp_path):
    (tmp_path / "a.csv").write_text('path\n"' + "x" * 200_000)
    with pytest.raises(ValueError, match=r"a\.csv cannot be read as a table: field larger"):
        open_source(tmp_path / "a.csv")


def test_a_line_without_end_is_skipped(tmp_path):
    (tmp_path / "a.png").write_bytes(file_of(pixels()))
    (tmp_path / "a.csv").write_text(f"path,label\na.png,one\n{'x' * 100_000},two\n")
    found = read_images(tmp_path / "a.csv")
    assert found.labels.tolist() == ["one"]
    assert found.skipped[0].reason == "its name has more than 4,096 characters"
    assert len(found.skipped[0].name) == 203


@pytest.mark.parametrize(
    "pattern", ["{0..999999999999}.tar", "{1..9999}{1..9999}{1..9999}.tar", "{0..1000000}.tar"]
)
def test_a_pattern_of_too_many_files_is_refused(pattern):
    with pytest.raises(ValueError, match=r"\.tar stands for [\d,]+ files; at most 1,000,000"):
        expand_braces(pattern)


def test_a_pattern_with_numbers_without_end_is_no_range():
    assert expand_braces("{0..%s}.tar" % ("9" * 5000)) == ["0..%s.tar" % ("9" * 5000)]


@pytest.mark.parametrize("name", ["hf:", "hf: ", "hf::train"])
def test_a_data_set_without_a_name_is_a_clear_error(name):
    pytest.importorskip("datasets")
    with pytest.raises(ValueError, match="names no data set: write hf:NAME"):
        open_source(name)


# -- archives ------------------------------------------------------------------------------------


def tar_of(path, *members):
    """A tar file of TarInfo objects with their content, as they are."""
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as file:
        for info, content in members:
            file.addfile(info, io.BytesIO(content))


def member(name, content=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


GOOD = file_of(pixels())


def test_a_header_without_end_is_not_read(tmp_path):
    content = bytes(MOST_HEADER + 512)
    tar_of(
        tmp_path / "a.tar.gz",
        member("good.png", GOOD),
        member("x", content, type=tarfile.XHDTYPE),
        member("b.png", GOOD),
    )
    found = read_images(tmp_path / "a.tar.gz")
    assert found.names == ["good.png"]
    assert found.skipped[0].reason.startswith("the archive is cut off (a header of 1,049,088 bytes")


def negative(name, size):
    """A header with a size below zero, which tarfile itself refuses to write."""
    block = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    block[124:136] = (256**12 + size).to_bytes(12, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("size", [-1, -512, -1024, -(10**9)])
@pytest.mark.parametrize("way", ["header", "pax"])
def test_a_negative_size_does_not_lead_back(tmp_path, size, way):
    if way == "header":
        content = negative("b.png", size)
        tar_of(tmp_path / "a.tar", member("good.png", GOOD))
        whole = (tmp_path / "a.tar").read_bytes()
        at = 512 + -(-len(GOOD) // 512) * 512
        (tmp_path / "a.tar").write_bytes(whole[:at] + content + whole[at:])
    else:
        info, _ = member("b.png", GOOD, pax_headers={"size": str(size)})
        with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as file:
            file.addfile(member("good.png", GOOD)[0], io.BytesIO(GOOD))
            file.addfile(info, io.BytesIO(GOOD))
    found = read_images(tmp_path / "a.tar")
    assert found.names[0] == "good.png"
    assert len(found) + len(found.skipped) == 2


def test_headers_of_headers_of_headers_are_a_clear_reason(tmp_path):
    long = member("x", b"y" * 10, type=tarfile.GNUTYPE_LONGNAME)
    tar_of(tmp_path / "a.tar", member("good.png", GOOD), *[long] * 3000, member("b.png", GOOD))
    found = read_images(tmp_path / "a.tar")
    assert found.names == ["good.png"]
    assert "the archive is cut off" in found.skipped[0].reason


def test_sparse_members_are_skipped(tmp_path):
    info, content = member("b.png", GOOD, pax_headers={"GNU.sparse.map": "0,1,99999,1",
                                                       "GNU.sparse.size": "100000"})  # fmt: skip
    tar_of(tmp_path / "a.tar", member("good.png", GOOD), (info, content))
    found = read_images(tmp_path / "a.tar")
    assert found.names == ["good.png"]
    assert [(one.name, one.reason) for one in found.skipped] == [("b.png", "it is a sparse file")]


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_members_with_endless_names_are_skipped(tmp_path, name):
    long = "x" * 9000 + ".png"
    if name == "a.tar":
        tar_of(tmp_path / name, member("good.png", GOOD), member(long, GOOD))
    else:
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr("good.png", GOOD)
            file.writestr(long, GOOD)
    found = read_images(tmp_path / name)
    assert found.names == ["good.png"]
    assert [one.reason for one in found.skipped] == ["its name has more than 4,096 characters"]
    assert len(found.skipped[0].name) == 203


# -- several pictures of one name ----------------------------------------------------------------


def _zip_of_one_name(folder, contents):
    with zipfile.ZipFile(folder / "a.zip", "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about repeated names
        for content in contents:
            file.writestr("same.png", content)
    return folder / "a.zip"


def _tar_of_one_name(folder, contents):
    tar_of(folder / "a.tar", *[member("same.png", content) for content in contents])
    return folder / "a.tar"


def _tars_of_one_name(folder, contents):
    for number, content in enumerate(contents):
        (folder / f"{number}").mkdir()
        tar_of(folder / f"{number}" / "a.tar", member("same.png", content))
    return f"{folder}/{{0..{len(contents) - 1}}}/a.tar"


@pytest.mark.parametrize("write", [_zip_of_one_name, _tar_of_one_name, _tars_of_one_name])
def test_every_picture_of_one_name_is_itself(tmp_path, write):
    contents = [file_of(pixels(n)) for n in range(5)]
    source = open_source(write(tmp_path, contents))
    assert len(set(source.names)) == 1
    assert [source.picture(index) for index in range(5)] == contents
    assert [source.picture(index) for index in (4, 0, 3)] == [contents[n] for n in (4, 0, 3)]
    found = read_images(source, SPEC)
    np.testing.assert_array_equal(found.samples, [pixels(n) for n in range(5)])
    assert found.indices.tolist() == list(range(5))


def test_a_path_that_is_listed_twice_is_two_pictures(tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(file_of(pixels(number)))
    (tmp_path / "a.txt").write_text("0.png\n1.png\n0.png\n")
    found = read_images(tmp_path / "a.txt", SPEC)
    assert found.names == ["0.png", "1.png", "0.png"]
    np.testing.assert_array_equal(found.samples, [pixels(n) for n in (0, 1, 0)])
    assert found.first_copies.tolist() == [0, 1, 0]
