"""Folders of pictures: what is read, what is skipped, and why."""

import os
import shutil
import socket
import warnings

import numpy as np
import pytest

from jule.images import BadPictureError, ImageSpec, open_source, read_images
from jule.images.decoding import pipeline
from jule.images.sources.content import MOST_BYTES, read_file
from jule.images.sources.files import FileSource, file_identity
from tests.images.pictures import file_of, pixels, write_pictures

POSIX = pytest.mark.skipif(os.name == "nt", reason="makes links, pipes and odd names")
SPEC = ImageSpec(24, 32, 3)


def reasons(found):
    return {one.name: one.reason for one in found.skipped}


@pytest.fixture
def good(tmp_path):
    """A folder with two pictures that can be read."""
    write_pictures(tmp_path / "photos", [pixels(0), pixels(1)], "good {}.png")
    return tmp_path / "photos"


# -- what is found -------------------------------------------------------------------------------


def test_all_below_is_found_in_the_order_of_the_names(tmp_path):
    for name in ("b/2.png", "b/10.png", "a.png", "c.PNG", "B.png", "b.png", "é.png", "b/c/d.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(file_of(pixels()))
    names = open_source(tmp_path).names
    assert names == sorted(names)
    assert set(names) == {
        "b/2.png", "b/10.png", "a.png", "c.PNG", "B.png", "b.png", "é.png", "b/c/d.png"
    }  # fmt: skip
    assert open_source(tmp_path).names == names


def test_hidden_files_and_folders_are_passed_over(good):
    for name in (".hidden.png", ".thumbs/a.png", "__MACOSX/a.png", "sub/._a.png", ".DS_Store"):
        (good / name).parent.mkdir(exist_ok=True)
        (good / name).write_bytes(file_of(pixels()))
    found = open_source(good)
    assert found.names == ["good 0.png", "good 1.png"]
    assert found.skipped == []


def test_results_of_earlier_runs_are_not_read(good):
    write_pictures(good / "run" / "sheets", [pixels()])
    (good / "run" / "config.json").write_text("{}")
    assert len(open_source(good)) == 3  # a settings file alone is no run
    (good / "run" / "labels.csv").write_text("path,cluster\n")
    assert open_source(good).names == ["good 0.png", "good 1.png"]


def test_a_folder_inside_a_run_can_still_be_named(good):
    for name in ("config.json", "labels.csv"):
        (good / name).write_text("")
    assert open_source(good).names == ["good 0.png", "good 1.png"]


def test_folders_can_be_the_true_classes(tmp_path):
    write_pictures(tmp_path, [pixels(n) for n in range(4)], "class {0}/a.png")
    write_pictures(tmp_path, [pixels(9)], "top.png")
    found = read_images(open_source(tmp_path, labels_from_folders=True), SPEC)
    assert found.labels.tolist() == ["class 0", "class 1", "class 2", "class 3", ""]
    assert open_source(tmp_path).labels is None


def test_classes_stay_with_their_pictures_when_one_is_bad(tmp_path):
    write_pictures(tmp_path, [pixels(n) for n in range(3)], "{0}/a.png")
    (tmp_path / "1" / "a.png").write_bytes(b"")
    found = read_images(open_source(tmp_path, labels_from_folders=True), SPEC)
    assert found.labels.tolist() == ["0", "2"]
    assert found.names == ["0/a.png", "2/a.png"]
    assert found.indices.tolist() == [0, 2]


@POSIX
def test_links_to_files_are_followed_and_links_to_folders_are_not(good, tmp_path):
    write_pictures(tmp_path / "elsewhere", [pixels(5)])
    (good / "link.png").symlink_to(tmp_path / "elsewhere" / "000.png")
    (good / "circle").symlink_to(good)
    (good / "away").symlink_to(tmp_path / "elsewhere")
    assert open_source(good).names == ["good 0.png", "good 1.png", "link.png"]
    np.testing.assert_array_equal(read_images(good, SPEC).samples[2], pixels(5))


def test_odd_names_are_only_names(good):
    odd = ["[red].png", "a,b.png", 'say "x".png', "100%.png", "-k.png", "a\nb.png", " .png"]
    if os.name == "nt":
        odd = odd[:2]
    for name in odd:
        (good / name).write_bytes(file_of(pixels()))
    assert set(read_images(good, SPEC).names) == {*odd, "good 0.png", "good 1.png"}


def test_a_folder_called_like_a_picture_is_a_folder(good):
    write_pictures(good / "album.jpg", [pixels(3)])
    found = read_images(good, SPEC)
    assert found.names[0] == "album.jpg/000.png"
    assert found.skipped == ()


# -- faults --------------------------------------------------------------------------------------

WHOLE = file_of(pixels(), "JPEG")
FAULTS = {
    "cut.jpg": (WHOLE[: len(WHOLE) // 2], "damaged"),
    "empty.jpg": (b"", "it is empty"),
    "text.jpg": (b"I am a text", "it is not an image"),
    "page.png": (b"<html>404</html>", "it is not an image"),
    "postscript.jpg": (file_of(pixels(), "EPS"), "it is not an image"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_file_is_left_out_and_listed(good, name):
    content, reason = FAULTS[name]
    (good / name).write_bytes(content)
    found = read_images(good, SPEC)
    assert found.names == ["good 0.png", "good 1.png"]
    assert list(reasons(found)) == [name]
    assert reason in reasons(found)[name]
    with pytest.raises(ValueError, match="1 of the pictures cannot be read: " + name):
        read_images(good, SPEC, strict=True)


@POSIX
def test_a_named_pipe_does_not_stop_the_reading(good):
    os.mkfifo(good / "pipe.jpg")
    assert reasons(read_images(good, SPEC)) == {"pipe.jpg": "it is not a regular file"}


@POSIX
def test_a_socket_is_left_out(good, monkeypatch):
    monkeypatch.chdir(good)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.jpg")
        assert "cannot be read" in reasons(read_images(good, SPEC))["socket.jpg"]


@POSIX
def test_links_that_lead_nowhere_are_left_out(good):
    (good / "broken.jpg").symlink_to(good / "nothing")
    (good / "loop.jpg").symlink_to(good / "loop.jpg")
    found = reasons(read_images(good, SPEC))
    assert found["broken.jpg"] == "it does not exist"
    assert "symbolic links" in found["loop.jpg"]


@POSIX
def test_a_link_to_a_device_without_an_end_is_left_out(good):
    (good / "zero.jpg").symlink_to("/dev/zero")
    assert reasons(read_images(good, SPEC)) == {"zero.jpg": "it is not a regular file"}


def test_a_file_that_vanishes_before_it_is_read_is_left_out(good):
    source = open_source(good)
    (good / "good 0.png").unlink()
    found = read_images(source, SPEC)
    assert found.names == ["good 1.png"]
    assert reasons(found) == {"good 0.png": "it does not exist"}


@POSIX
def test_a_name_that_is_no_text_is_left_out(good):
    name = b"caf\xe9.png"
    try:
        with open(os.path.join(os.fsencode(good), name), "wb") as file:
            file.write(file_of(pixels()))
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    found = read_images(good, SPEC)
    assert reasons(found) == {"caf\\udce9.png": "its name is not UTF-8: rename it"}
    with pytest.raises(ValueError, match="not UTF-8"):
        read_images(good, SPEC, strict=True)


def test_a_file_of_another_kind_is_listed_but_nothing_to_stop_for(good):
    (good / "notes.txt").write_text("hello")
    (good / "noname").write_text("hello")
    found = read_images(good, SPEC, strict=True)
    assert reasons(found) == {
        "noname": "it is not a picture file", "notes.txt": "it is not a picture file"
    }  # fmt: skip


@POSIX
def test_a_folder_below_that_cannot_be_listed_is_named(good):
    """Longer than a path may be, which even root cannot read."""
    before = os.getcwd()
    os.chdir(good)
    try:
        for _ in range(20):
            os.mkdir("d" * 250)
            os.chdir("d" * 250)
        with open("lost.png", "wb") as file:
            file.write(file_of(pixels()))
    finally:
        os.chdir(before)
    found = read_images(good, SPEC)
    assert found.names == ["good 0.png", "good 1.png"]
    assert len(found.skipped) == 1
    assert "folder cannot be" in found.skipped[0].reason
    with pytest.raises(ValueError, match="folder cannot be"):
        read_images(good, SPEC, strict=True)
    shutil.rmtree(good)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_left_out_until_it_may(good):
    (good / "good 1.png").chmod(0)
    assert "permission denied" in reasons(read_images(good, SPEC))["good 1.png"]
    (good / "good 1.png").chmod(0o600)
    assert len(read_images(good, SPEC)) == 2


def test_an_empty_folder_is_a_clear_error(tmp_path):
    with pytest.raises(ValueError, match="there are no pictures in"):
        read_images(tmp_path)


def test_a_folder_without_pictures_names_what_it_has(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("")
    with pytest.raises(ValueError, match=r"only 5 other files: 0\.txt: it is not.*; \.\.\.$"):
        read_images(tmp_path)


def test_a_folder_of_bad_pictures_names_some_and_why(tmp_path):
    for number in range(70):
        (tmp_path / f"{number:02}.jpg").write_bytes(b"")
    for spec in (None, SPEC):
        with pytest.raises(ValueError, match=r"none of 70 files in .*: 00\.jpg: it is empty; 01"):
            read_images(tmp_path, spec)


# -- one file ------------------------------------------------------------------------------------


def test_a_folder_given_as_a_picture_is_refused_and_closed_again(tmp_path):
    for _ in range(3):
        with pytest.raises((BadPictureError, PermissionError)):
            read_file(tmp_path)
    if os.path.isdir("/proc/self/fd"):
        links = [f"/proc/self/fd/{one}" for one in os.listdir("/proc/self/fd")]
        opened = [os.readlink(one) for one in links if os.path.lexists(one)]
        assert str(tmp_path) not in opened


def test_a_huge_file_is_not_read(tmp_path):
    with open(tmp_path / "huge.jpg", "wb") as file:
        file.truncate(MOST_BYTES + 1)  # a hole: it takes no room
    with pytest.raises(BadPictureError, match="too large"):
        read_file(tmp_path / "huge.jpg")


def test_identity_changes_with_size_time_and_mode(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"12345")
    seen = [file_identity(path)]
    os.utime(path, ns=(1, 1))
    seen.append(file_identity(path))
    path.write_bytes(b"123456")
    os.utime(path, ns=(1, 1))
    seen.append(file_identity(path))
    path.chmod(0o400)
    seen.append(file_identity(path))
    assert len(set(seen)) == 4


def test_a_file_that_is_gone_has_an_identity_too(tmp_path):
    source = FileSource("one", [tmp_path / "gone.jpg"], ["gone.jpg"])
    assert "is gone" in next(iter(source.identity()))


def test_one_process_or_several_decode_the_same(tmp_path):
    write_pictures(tmp_path, [pixels(n) for n in range(150)])
    (tmp_path / "077.png").write_bytes(b"bad")
    source = open_source(tmp_path)
    for workers in (1, 2):
        batches = list(pipeline.decode_batches(source, ImageSpec(24, 32, 3), workers=workers))
        found = np.concatenate([batch.images for batch in batches])
        np.testing.assert_array_equal(found, [pixels(n) for n in range(150) if n != 77])
        skipped = {index: why for batch in batches for index, why in batch.skipped.items()}
        assert skipped == {77: "it is not an image"}


def test_nothing_is_printed_for_odd_files(tmp_path, capfd):
    """Pillow's own warnings are not for the user."""
    (tmp_path / "a.jpg").write_bytes(
        file_of(pixels(), "JPEG", exif=b"Exif\0\0MM\0*rubbish that is no IFD")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_images(tmp_path)) == 1
    assert capfd.readouterr() == ("", "")
