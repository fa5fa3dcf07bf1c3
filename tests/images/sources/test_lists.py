"""Lists of pictures in text and CSV files, and patterns."""

import os

import numpy as np
import pytest

from jule.images import ImageSpec, open_source, read_images
from tests.images.pictures import file_of, pixels, write_pictures

SPEC = ImageSpec(24, 32, 3)


@pytest.fixture
def folder(tmp_path):
    write_pictures(tmp_path, [pixels(n) for n in range(4)], "photos/{}.png")
    return tmp_path


def write(folder, name, text):
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / name


def test_a_text_file_lists_one_path_a_line_from_its_own_folder(folder, monkeypatch):
    monkeypatch.chdir("/")
    path = write(folder, "list.txt", "photos/2.png\n\n  photos/0.png  \r\nphotos/2.png")
    found = read_images(path, SPEC)
    assert found.names == ["photos/2.png", "photos/0.png", "photos/2.png"]
    np.testing.assert_array_equal(found.samples, [pixels(2), pixels(0), pixels(2)])
    assert found.first_copies.tolist() == [0, 1, 0]


def test_paths_from_the_root_are_taken_too(folder):
    path = write(folder, "list.lst", str(folder / "photos" / "1.png"))
    np.testing.assert_array_equal(read_images(path, SPEC).samples, [pixels(1)])


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        ("a.csv", "path\nphotos/0.png\nphotos/1.png\n", None),
        ("a.csv", "\ufeffPath,Label\nphotos/0.png,cat\nphotos/1.png,dog\n", ["cat", "dog"]),
        ("a.csv", "id,file_name,class\n7,photos/0.png,1\n8,photos/1.png,2\n", ["1", "2"]),
        ("a.tsv", "target\timage\n3\tphotos/0.png\n4\tphotos/1.png\n", ["3", "4"]),
        ("a.csv", "photos/0.png\nphotos/1.png\n", None),
        ("a.csv", "photos/0.png,cat\nphotos/1.png,dog\n", None),
        ("a.csv", "where,what\nphotos/0.png,cat\nphotos/1.png,dog\n", None),
        ("a.csv", '"path"\r\n"photos/0.png"\r\n\r\n"photos/1.png"\r\n', None),
    ],
)
def test_the_column_of_paths_and_that_of_classes_are_found(folder, name, text, labels):
    found = open_source(write(folder, name, text))
    assert found.names == ["photos/0.png", "photos/1.png"]
    assert (None if found.labels is None else found.labels.tolist()) == labels


def test_classes_stay_with_their_paths_where_rows_are_short(folder):
    text = "label,path\ncat,photos/0.png\nlost\ndog,photos/1.png\nbird,photos/2.png\n"
    found = read_images(write(folder, "a.csv", text), SPEC)
    assert found.names == ["photos/0.png", "photos/1.png", "photos/2.png"]
    assert found.labels.tolist() == ["cat", "dog", "bird"]


def test_a_row_without_a_class_has_an_empty_one(folder):
    found = open_source(write(folder, "a.csv", "path,label\nphotos/0.png,cat\nphotos/1.png\n"))
    assert found.labels.tolist() == ["cat", ""]


def test_names_with_commas_quotes_and_newlines_can_be_listed(folder):
    odd = 'photos/a, "b"\nc.png'
    (folder / odd).write_bytes(file_of(pixels(7)))
    quoted = odd.replace('"', '""')
    found = read_images(write(folder, "a.csv", f'path\n"{quoted}"\n'), SPEC)
    assert found.names == [odd]


def test_what_is_listed_but_not_there_is_left_out(folder):
    lines = ["photos/0.png", "photos/gone.png", "photos", "photos/no\0file.png", "x" * 4000]
    found = read_images(write(folder, "list.txt", "\n".join(lines)), SPEC)
    assert found.names == ["photos/0.png"]
    reasons = {one.name: one.reason for one in found.skipped}
    assert list(reasons) == lines[1:]
    assert reasons["photos/gone.png"] == "it does not exist"
    if os.name != "nt":
        assert reasons["photos"] == "it is not a regular file"


@pytest.mark.parametrize("name", ["list.txt", "list.csv"])
@pytest.mark.parametrize("text", ["", "\n\n", " \n"])
def test_an_empty_list_is_a_clear_error(folder, name, text):
    with pytest.raises(ValueError, match="lists no pictures"):
        open_source(write(folder, name, text))


def test_a_csv_with_a_head_alone_is_a_clear_error(folder):
    with pytest.raises(ValueError, match="lists no pictures"):
        open_source(write(folder, "list.csv", "path,label\n"))


def test_a_list_that_is_no_text_is_a_clear_error(folder):
    with pytest.raises(ValueError, match="not a list in UTF-8"):
        open_source(write(folder, "list.txt", b"\xff\xfe\x00"))


def test_a_csv_that_is_none_is_a_clear_error(folder):
    with pytest.raises(ValueError, match=r"list\.csv"):
        open_source(write(folder, "list.csv", 'path\n"' + "x" * 200_000))


# -- lists of paths in Python ---------------------------------------------------------------------


def test_a_list_or_a_tuple_of_paths_is_a_list_of_files(folder):
    paths = [folder / "photos" / "2.png", str(folder / "photos" / "0.png")]
    for given in (paths, tuple(paths)):
        found = read_images(given, SPEC)
        np.testing.assert_array_equal(found.samples, [pixels(2), pixels(0)])
        assert found.names == [str(path) for path in paths]
    found = read_images([*paths, folder / "gone.png"], SPEC)
    assert [one.name for one in found.skipped] == [str(folder / "gone.png")]


# -- patterns ------------------------------------------------------------------------------------


def test_a_pattern_finds_files_in_order_with_names_after_its_plain_folder(folder):
    write_pictures(folder, [pixels(5), pixels(6)], "photos/more {}/x.png")
    (folder / "photos" / "notes.txt").write_text("no picture")
    (folder / "photos" / ".hidden.png").write_bytes(file_of(pixels()))
    flat = open_source(f"{folder}/photos/*")
    assert flat.names == ["0.png", "1.png", "2.png", "3.png"]
    deep = open_source(f"{folder}/photos/**/*.png")
    assert deep.names == ["0.png", "1.png", "2.png", "3.png", "more 0/x.png", "more 1/x.png"]
    assert open_source(f"{folder}/photos/more ?/*.png").names == ["more 0/x.png", "more 1/x.png"]
    assert open_source(f"{folder}/photos/[12].png").names == ["1.png", "2.png"]
    np.testing.assert_array_equal(read_images(flat, SPEC).samples, [pixels(n) for n in range(4)])


def test_a_pattern_that_finds_nothing_is_a_clear_error(folder):
    with pytest.raises(FileNotFoundError, match="no picture matches the pattern"):
        open_source(f"{folder}/photos/*.jpg")


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(folder):
    (folder / "[1].png").write_bytes(file_of(pixels(8)))
    assert open_source(folder / "[1].png").names == ["[1].png"]


@pytest.mark.skipif(os.name == "nt", reason="makes odd names")
def test_a_pattern_leaves_out_names_that_are_no_text(folder):
    try:
        with open(os.path.join(os.fsencode(folder), b"photos/caf\xe9.png"), "wb") as file:
            file.write(file_of(pixels()))
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    found = open_source(f"{folder}/photos/*.png")
    assert len(found) == 4
    assert [one.reason for one in found.skipped] == ["its name is not UTF-8: rename it"]
