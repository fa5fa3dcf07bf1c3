"""Pictures in zip and tar files, whole and damaged."""

import io
import os
import tarfile
import zipfile

import numpy as np
import pytest

from jule.images import ImageSpec, open_source, read_images
from tests.images.pictures import file_of, pixels

SPEC = ImageSpec(24, 32, 3)


def write_tar(path, members):
    """Members are bytes by name; anything else is put in as it is."""
    mode = {".gz": "w:gz", ".tgz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(path.suffix, "w")
    with tarfile.open(path, mode) as file:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                about.size = len(content)
                file.addfile(about, io.BytesIO(content))
            else:
                about.type, about.linkname = content
                file.addfile(about)
    return path


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def pictures(n=4, name="{}.png"):
    return {name.format(number): file_of(pixels(number)) for number in range(n)}


def reasons(found):
    return {one.name: one.reason for one in found.skipped}


OTHERS = {
    "notes.doc": b"hello", ".hidden.png": b"", "__MACOSX/._0.png": b"", "a/.b/c.png": b"",
    "cut.png": file_of(pixels())[:100], "empty.png": b"",
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tgz", "tar.bz2", "tar.xz", "zip"])
def test_pictures_are_read_and_others_are_listed(tmp_path, suffix):
    write = write_zip if suffix == "zip" else write_tar
    path = write(tmp_path / f"a.{suffix}", pictures(name="in/{}.png") | OTHERS)
    found = read_images(path, SPEC)
    assert found.names == ["in/0.png", "in/1.png", "in/2.png", "in/3.png"]
    np.testing.assert_array_equal(found.samples, [pixels(n) for n in range(4)])
    assert set(reasons(found)) == {"notes.doc", "cut.png", "empty.png"}
    assert reasons(found)["empty.png"] == "it is empty"
    with pytest.raises(ValueError, match="2 of the pictures cannot be read"):
        read_images(path, SPEC, strict=True)


# -- zip -----------------------------------------------------------------------------------------


def test_the_order_in_a_zip_is_that_of_the_names(tmp_path):
    members = dict(reversed(pictures().items()))
    assert open_source(write_zip(tmp_path / "a.zip", members)).names == list(pictures())


def test_a_damaged_member_of_a_zip_is_left_out(tmp_path):
    path = write_zip(tmp_path / "a.zip", pictures())
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        at = file.getinfo("2.png").header_offset
    content[at + 60 : at + 120] = os.urandom(60)
    path.write_bytes(content)
    found = read_images(path, SPEC)
    assert found.names == ["0.png", "1.png", "3.png"]
    assert "cannot be unpacked" in reasons(found)["2.png"]


def test_a_member_whose_name_was_damaged_is_left_out(tmp_path):
    path = write_zip(tmp_path / "a.zip", pictures(name="é{}.png"))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        at = file.getinfo("é1.png").header_offset
    content[at + 30 : at + 32] = b"\xff\xfe"  # the name before the content, no UTF-8 any more
    path.write_bytes(content)
    found = read_images(path, SPEC)
    assert found.names == ["é0.png", "é2.png", "é3.png"]
    assert "cannot be unpacked" in reasons(found)["é1.png"]


def test_a_member_behind_a_password_is_left_out(tmp_path):
    path = write_zip(tmp_path / "a.zip", pictures())
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02")  # of the last member, where the flags are 8 bytes on
    content[at + 8] |= 1
    path.write_bytes(content)
    assert "password" in reasons(read_images(path, SPEC))["3.png"]


def test_a_member_of_a_zip_that_says_it_is_huge_is_not_unpacked(tmp_path):
    path = write_zip(tmp_path / "a.zip", pictures())
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(content)
    assert "too large" in reasons(read_images(path, SPEC))["3.png"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello" * 100])
def test_what_is_no_zip_is_a_clear_error(tmp_path, content):
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.zip cannot be read as a zip file"):
        open_source(tmp_path / "a.zip")


def test_an_empty_zip_is_a_clear_error(tmp_path):
    with pytest.raises(ValueError, match="there are no pictures in"):
        read_images(write_zip(tmp_path / "a.zip", {}))


# -- tar -----------------------------------------------------------------------------------------


def test_the_order_in_a_tar_is_its_own(tmp_path):
    members = dict(reversed(pictures().items()))
    assert open_source(write_tar(tmp_path / "a.tar", members)).names == list(members)


@pytest.fixture
def shards(tmp_path):
    for shard in range(3):
        members = {}
        for number in range(2):
            members[f"{number}.png"] = file_of(pixels(2 * shard + number))
            members[f"{number}.cls"] = str(shard).encode()
            members[f"{number}.json"] = b"{}"
        write_tar(tmp_path / f"shard-{shard:03}.tar", members)
    return tmp_path


@pytest.mark.parametrize("what", ["", "shard-{000..002}.tar", "shard-*.tar", "shard-00[012].tar"])
def test_shards_are_read_one_after_the_other_with_their_classes(shards, what):
    found = read_images(f"{shards}/{what}", SPEC)
    np.testing.assert_array_equal(found.samples, [pixels(n) for n in range(6)])
    assert found.names[:3] == ["shard-000.tar/0.png", "shard-000.tar/1.png", "shard-001.tar/0.png"]
    assert found.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert found.skipped == ()


def test_one_shard_has_plain_names(shards):
    assert open_source(shards / "shard-001.tar").names == ["0.png", "1.png"]


def test_without_a_class_for_every_picture_there_are_none(tmp_path):
    members = pictures(2) | {"0.cls": b"1"}
    assert open_source(write_tar(tmp_path / "a.tar", members)).labels is None
    members = pictures(2) | {"0.cls": b"1", "1.cls": b"cat"}
    assert open_source(write_tar(tmp_path / "b.tar", members)).labels is None


def test_a_missing_shard_is_named(shards):
    with pytest.raises(FileNotFoundError, match=r"shard-003\.tar"):
        open_source(f"{shards}/shard-{{000..003}}.tar")
    with pytest.raises(FileNotFoundError, match="no tar file matches"):
        open_source(f"{shards}/nothing-*.tar")


@pytest.mark.skipif(os.name == "nt", reason="sets how many files may be open")
def test_there_may_be_more_shards_than_files_that_may_be_open(tmp_path):
    import resource

    for shard in range(80):
        write_tar(tmp_path / f"{shard:02}.tar", {"0.png": file_of(pixels(shard))})
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (70, before[1]))
    try:
        found = read_images(tmp_path, SPEC)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(found) == 80


def test_links_devices_and_folders_in_a_tar_are_not_followed(tmp_path):
    odd = {
        "link.png": (tarfile.SYMTYPE, "/etc/passwd"),
        "pipe.png": (tarfile.FIFOTYPE, ""),
        "device.png": (tarfile.CHRTYPE, ""),
        "folder.png": (tarfile.DIRTYPE, ""),
    }
    found = read_images(write_tar(tmp_path / "a.tar", pictures(2) | odd), SPEC)
    assert found.names == ["0.png", "1.png"]
    assert set(reasons(found)) == {"link.png", "pipe.png", "device.png"}


def test_a_second_name_of_one_file_in_a_tar_is_listed(tmp_path):
    again = {"again.png": (tarfile.LNKTYPE, "0.png")}
    found = read_images(write_tar(tmp_path / "a.tar", pictures(2) | again), SPEC)
    assert found.names == ["0.png", "1.png"]
    assert list(reasons(found)) == ["again.png"]


def test_names_in_a_tar_that_lead_elsewhere_are_only_names(tmp_path):
    members = {"../../0.png": file_of(pixels(0)), "/etc/1.png": file_of(pixels(1))}
    found = read_images(write_tar(tmp_path / "a.tar", members), SPEC)
    assert len(found) == 2
    assert sorted(os.listdir(tmp_path)) == ["a.tar"]


def test_a_tar_cut_in_a_picture_gives_those_before(tmp_path):
    path = write_tar(tmp_path / "a.tar", pictures())
    with tarfile.open(path) as file:
        at = file.getmember("2.png").offset_data
    path.write_bytes(path.read_bytes()[: at + 100])
    found = read_images(path, SPEC)
    assert found.names == ["0.png", "1.png"]
    assert any("cut off" in reason for reason in reasons(found).values())
    with pytest.raises(ValueError, match="cannot be read"):
        read_images(path, SPEC, strict=True)


def test_a_tar_with_a_damaged_head_in_the_middle_says_so(tmp_path):
    path = write_tar(tmp_path / "a.tar", pictures())
    with tarfile.open(path) as file:
        at = file.getmember("2.png").offset
    content = bytearray(path.read_bytes())
    content[at : at + 200] = b"\xaa" * 200
    path.write_bytes(content)
    found = read_images(path, SPEC)
    assert found.names == ["0.png", "1.png"]
    assert list(reasons(found)) == ["a.tar"]
    with pytest.raises(ValueError, match=r"a\.tar: the archive is"):
        read_images(path, SPEC, strict=True)


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.bz2", "tar.xz"])
def test_a_packed_tar_that_is_cut_gives_those_before_or_a_clear_error(tmp_path, suffix):
    path = write_tar(tmp_path / f"a.{suffix}", pictures(20))
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        try:
            found = read_images(path, SPEC)
        except ValueError:
            continue
        assert 0 < len(found) < 20
        assert found.skipped


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.bz2", "tar.xz"])
@pytest.mark.parametrize(
    "content", [b"hello" * 300, b"\x1f\x8b\x08", b"\xfd7zXZ\0rubbish", b"BZh9"]
)
def test_what_is_no_tar_is_a_clear_error(tmp_path, suffix, content):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read as a tar file"):
        open_source(path)


def test_an_empty_tar_is_a_clear_error(tmp_path):
    with pytest.raises(ValueError, match="there are no pictures in"):
        read_images(write_tar(tmp_path / "a.tar", {}))
