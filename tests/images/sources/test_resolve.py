"""Choice of the kind of source, and errors that say what a source may be."""

import os

import numpy as np
import pytest

from jule.images import open_source
from jule.images.sources.resolve import expand_braces
from tests.images.pictures import file_of, pixels, write_pictures


@pytest.mark.parametrize("what", ["nowhere", "nowhere/at/all.jpg", "gone.tar", "gone.npz"])
def test_a_missing_source_says_what_a_source_may_be(tmp_path, what):
    with pytest.raises(FileNotFoundError) as error:
        open_source(tmp_path / what)
    assert str(error.value).startswith(
        f"{tmp_path / what} does not exist. A source is a folder of pictures, an archive"
    )


@pytest.mark.parametrize("typed", ["photo", "Photos", "fotos/", "photos2"])
def test_a_mistyped_source_is_asked_about(tmp_path, monkeypatch, typed):
    for name in ("photos", ".photo", "other", "run"):
        (tmp_path / name).mkdir()
    with pytest.raises(FileNotFoundError, match=r"does not exist: did you mean '.*/photos'\? A"):
        open_source(f"{tmp_path}/{typed}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"^{typed} does not exist: did you mean 'photos'"):
        open_source(typed)


@pytest.mark.parametrize("name", ["notes.doc", "noname", "movie.mp4", "empty"])
def test_a_file_of_an_unknown_kind_says_what_a_source_may_be(tmp_path, name):
    (tmp_path / name).write_bytes(b"" if name == "empty" else b"hello")
    with pytest.raises(ValueError, match=r"not a kind of file .* A source is a folder"):
        open_source(tmp_path / name)


@pytest.mark.skipif(os.name == "nt", reason="makes pipes and links")
def test_a_pipe_or_a_link_to_nothing_is_an_error_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "loop.jpg").symlink_to(tmp_path / "loop.jpg")
    (tmp_path / "broken.npz").symlink_to(tmp_path / "gone.npz")
    for name in ("pipe.jpg", "loop.jpg", "broken.npz"):
        with pytest.raises(ValueError, match="not a kind of file"):
            open_source(tmp_path / name)


def test_a_source_and_a_path_and_its_text_are_the_same(tmp_path):
    write_pictures(tmp_path, [pixels()])
    source = open_source(tmp_path)
    assert open_source(source) is source
    assert open_source(str(tmp_path)).names == source.names == ["000.png"]


def test_a_single_picture(tmp_path):
    (tmp_path / "A.JPG").write_bytes(file_of(pixels(), "JPEG"))
    assert open_source(tmp_path / "A.JPG").names == ["A.JPG"]


def test_a_folder_with_pictures_beside_tar_files_is_a_folder_of_pictures(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"")
    write_pictures(tmp_path, [pixels()])
    assert open_source(tmp_path).names == ["000.png"]


def test_classes_from_folders_need_a_folder():
    with pytest.raises(ValueError, match="is not a folder"):
        open_source("photos.zip", labels_from_folders=True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a.tar", ["a.tar"]),
        ("s-{08..10}.tar", ["s-08.tar", "s-09.tar", "s-10.tar"]),
        ("s-{8..10}.tar", ["s-8.tar", "s-9.tar", "s-10.tar"]),
        ("{a,b}-{0..1}.tar", ["a-0.tar", "a-1.tar", "b-0.tar", "b-1.tar"]),
        ("{a}.tar", ["a.tar"]),
        ("s-{2..1}.tar", []),
    ],
)
def test_braces_are_written_out_as_shells_do(text, names):
    assert expand_braces(text) == names


def test_braces_that_name_nothing_are_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no tar file"):
        open_source(f"{tmp_path}/s-{{2..1}}.tar")


def test_a_list_of_arrays_must_be_of_one_size():
    assert open_source([pixels(n) for n in range(3)]).array().shape == (3, 24, 32, 3)
    with pytest.raises(ValueError, match="image 1 has shape"):
        open_source([pixels(), pixels(height=9)])
    with pytest.raises(ValueError, match="expected images"):
        open_source(np.zeros(5))
