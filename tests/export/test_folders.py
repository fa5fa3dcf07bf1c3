"""Pictures sorted into folders: hostile names, nothing replaced, killed and run again."""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.export import folders
from jule.export.folders import PART, Exported, Picture, sort_into_folders
from jule.export.names import MOST_BYTES, safe_name, safe_text

POSIX = pytest.mark.skipif(os.name == "nt", reason="needs links and signals of POSIX")


@pytest.fixture(params=["relative", "by path"], autouse=True)
def way(request, monkeypatch):
    """Every test, with folders held open and as on systems that cannot do that."""
    if request.param == "by path":
        monkeypatch.setattr(folders, "RELATIVE", False)
    elif not folders.RELATIVE:
        pytest.skip("this system names no files relative to an open folder")


def sort(*arguments, **options):
    """Sort pictures, and leave the number of folders out of the outcome."""
    return replace(sort_into_folders(*arguments, **options), n_folders=0)


def originals(folder, names=("a.jpg", "b.jpg", "c.jpg")):
    """Make files that each hold their own name, sorted by turns into two clusters."""
    pictures = []
    for number, name in enumerate(names):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name)
        pictures.append(Picture(name, f"cluster-0{number % 2}", place))
    return pictures


def in_memory(*names, folder="cluster-00"):
    return [
        Picture(name, folder, content=lambda name=name: os.fsencode(name), suffix=".png")
        for name in names
    ]


def files_in(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()
    )  # fmt: skip


@POSIX
def test_links_are_absolute_and_lead_to_the_originals(tmp_path):
    pictures = originals(tmp_path / "from")
    assert sort(pictures, tmp_path / "to", "link") == Exported(made=3)
    assert files_in(tmp_path / "to") == ["cluster-00/a.jpg", "cluster-00/c.jpg", "cluster-01/b.jpg"]
    link = tmp_path / "to" / "cluster-01" / "b.jpg"
    assert os.readlink(link) == str(tmp_path / "from" / "b.jpg")
    assert link.read_text() == "b.jpg"


@POSIX
def test_a_relative_original_is_linked_absolutely(tmp_path, monkeypatch):
    originals(tmp_path / "from")
    monkeypatch.chdir(tmp_path / "from")
    sort([Picture("a.jpg", "x", Path("a.jpg"))], tmp_path / "to", "link")
    assert (tmp_path / "to" / "x" / "a.jpg").read_text() == "a.jpg"


def test_copies_have_bytes_times_and_permissions(tmp_path):
    (picture,) = originals(tmp_path / "from", ["a.jpg"])
    os.utime(picture.place, ns=(10**18, 10**18))
    os.chmod(picture.place, 0o640)
    assert sort([picture], tmp_path / "to", "copy") == Exported(made=1)
    copy = tmp_path / "to" / "cluster-00" / "a.jpg"
    assert not copy.is_symlink()
    assert copy.read_bytes() == b"a.jpg"
    assert copy.stat().st_mtime_ns == 10**18
    if os.name != "nt":
        assert copy.stat().st_mode & 0o777 == 0o640
    assert files_in(tmp_path / "to") == ["cluster-00/a.jpg"]


def test_pictures_without_a_file_are_written_from_their_content(tmp_path):
    sort(in_memory("0", "digit 1.png"), tmp_path / "to", "copy")
    assert files_in(tmp_path / "to") == ["cluster-00/0.png", "cluster-00/digit 1.png"]
    assert (tmp_path / "to" / "cluster-00" / "0.png").read_bytes() == b"0"


def test_folders_are_counted(tmp_path):
    assert sort_into_folders(originals(tmp_path / "from"), tmp_path / "to", "copy").n_folders == 2


@pytest.mark.parametrize("how", ["link", "copy"])
def test_no_pictures_leave_nothing(tmp_path, how):
    assert sort([], tmp_path / "to", how) == Exported()
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("how", [pytest.param("link", marks=POSIX), "copy"])
def test_a_second_run_only_adds_what_is_missing(tmp_path, how):
    pictures = originals(tmp_path / "from")
    sort(pictures[:2], tmp_path / "to", how)
    before = (tmp_path / "to" / "cluster-00" / "a.jpg").lstat().st_ino
    assert sort(pictures, tmp_path / "to", how) == Exported(made=1, already_there=2)
    assert (tmp_path / "to" / "cluster-00" / "a.jpg").lstat().st_ino == before


@pytest.mark.parametrize("how", [pytest.param("link", marks=POSIX), "copy"])
@pytest.mark.parametrize("other", ["shorter", "same length", "a folder"])
def test_what_is_there_and_different_is_left_alone(tmp_path, how, other):
    pictures = originals(tmp_path / "from")
    there = tmp_path / "to" / "cluster-01" / "b.jpg"
    there.parent.mkdir(parents=True)
    if other == "a folder":
        there.mkdir()
    else:
        there.write_text("mine" if other == "shorter" else "mine!")
    found = sort(pictures, tmp_path / "to", how)
    assert found == Exported(made=2, conflicts=("cluster-01/b.jpg",))
    assert there.is_dir() or there.read_text().startswith("mine")


@POSIX
@pytest.mark.parametrize("how", ["link", "copy"])
def test_a_link_to_something_else_is_neither_followed_nor_replaced(tmp_path, how):
    pictures = originals(tmp_path / "from")
    victim = tmp_path / "victim"
    victim.write_text("b.jpg")  # even where the bytes are the same
    (tmp_path / "to" / "cluster-01").mkdir(parents=True)
    (tmp_path / "to" / "cluster-01" / "b.jpg").symlink_to(victim)
    found = sort(pictures, tmp_path / "to", how)
    assert found.conflicts == ("cluster-01/b.jpg",)
    assert victim.read_text() == "b.jpg"


@POSIX
@pytest.mark.parametrize("how", ["link", "copy"])
def test_a_dangling_link_is_a_conflict_and_creates_nothing(tmp_path, how):
    pictures = originals(tmp_path / "from")
    (tmp_path / "to" / "cluster-01").mkdir(parents=True)
    (tmp_path / "to" / "cluster-01" / "b.jpg").symlink_to(tmp_path / "outside")
    assert sort(pictures, tmp_path / "to", how).conflicts == ("cluster-01/b.jpg",)
    assert not (tmp_path / "outside").exists()


@POSIX
@pytest.mark.parametrize("how", ["link", "copy"])
@pytest.mark.parametrize("kind", ["a link", "a dangling link", "a link inside", "a file"])
def test_a_cluster_folder_that_is_no_folder_is_refused_before_anything_is_made(tmp_path, how, kind):
    pictures = originals(tmp_path / "from")
    to, outside = tmp_path / "to", tmp_path / "outside"
    to.mkdir()
    outside.mkdir()
    trap = to / "cluster-01"
    if kind == "a file":
        trap.write_text("mine")
    elif kind == "a link inside":
        (to / "mine").mkdir()
        trap.symlink_to(to / "mine")
    else:
        trap.symlink_to(outside if kind == "a link" else tmp_path / "nowhere")
    with pytest.raises(NotADirectoryError, match="real folders"):
        sort(pictures, to, how)
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "nowhere").exists()
    assert files_in(to) in ([], ["cluster-01"])


@POSIX
def test_a_trap_under_the_name_of_the_temporary_file_catches_nothing(tmp_path):
    (tmp_path / "to").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "to" / PART).symlink_to(victim)
    sort(originals(tmp_path / "from"), tmp_path / "to", "copy")
    assert victim.read_text() == "mine"
    assert len(files_in(tmp_path / "to")) == 3


@POSIX
@pytest.mark.parametrize("kind", ["a second name", "a pipe"])
def test_anything_under_the_name_of_the_temporary_file_is_harmless(tmp_path, kind):
    (tmp_path / "to").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    if kind == "a pipe":
        os.mkfifo(tmp_path / "to" / PART)
    else:
        os.link(victim, tmp_path / "to" / PART)
    assert sort(originals(tmp_path / "from"), tmp_path / "to", "copy").made == 3
    assert victim.read_text() == "mine"
    assert len(files_in(tmp_path / "to")) == 3


def test_a_folder_under_the_name_of_the_temporary_file_is_named(tmp_path):
    (tmp_path / "to" / PART).mkdir(parents=True)
    with pytest.raises(OSError, match=r"jule-export\.part is in the way"):
        sort(originals(tmp_path / "from"), tmp_path / "to", "copy")


@POSIX
def test_a_private_original_is_private_while_it_is_copied(tmp_path, monkeypatch):
    (picture,) = originals(tmp_path / "from", ["a.jpg"])
    picture.place.chmod(0o600)
    seen, fsync = [], os.fsync

    def watch(fd):
        seen.append(os.fstat(fd).st_mode & 0o777)
        fsync(fd)

    chunks = folders._chunks

    def watched_chunks(picture):
        part = tmp_path / "to" / PART
        seen.append(part.stat().st_mode & 0o777)
        yield from chunks(picture)

    monkeypatch.setattr(folders.os, "fsync", watch)
    monkeypatch.setattr(folders, "_chunks", watched_chunks)
    sort([picture], tmp_path / "to", "copy")
    assert seen[:2] == [0o600, 0o600]  # the last one is the folder


@pytest.mark.parametrize("how", [pytest.param("link", marks=POSIX), "copy"])
def test_a_picture_that_is_missing_is_named_and_keeps_its_name_free(tmp_path, how):
    pictures = originals(tmp_path / "from", ["one/a.jpg", "two/a.jpg"])
    folder = pictures[0].folder
    gone = Picture("one/a.jpg", folder, missing="it is no longer there")
    found = sort([gone, replace(pictures[1], folder=folder)], tmp_path / "to", how)
    assert found.missing == ("one/a.jpg: it is no longer there",)
    assert files_in(tmp_path / "to") == [f"{folder}/a (two).jpg"]  # as if it were there


@pytest.mark.parametrize("how", [pytest.param("link", marks=POSIX), "copy"])
def test_a_vanished_original_is_named_and_the_rest_goes_on(tmp_path, how):
    pictures = originals(tmp_path / "from")
    pictures[0].place.unlink()
    pictures[1].place.unlink()
    pictures[1].place.mkdir()
    found = sort(pictures, tmp_path / "to", how)
    assert found.made == 1
    assert [text.split(":")[0] for text in found.missing] == ["a.jpg", "b.jpg"]
    assert files_in(tmp_path / "to") == ["cluster-00/c.jpg"]


@pytest.mark.parametrize("path", ["a\0b/c.jpg", "x" * 5000 + "/c.jpg", "\ud800/c.jpg"], ids=ascii)
def test_a_path_that_no_file_can_have_is_named_and_the_rest_goes_on(tmp_path, path):
    pictures = [Picture("bad.jpg", "c", tmp_path / path), *originals(tmp_path / "from")]
    found = sort(pictures, tmp_path / "to", "copy")
    assert found.made == 3
    assert found.missing[0].startswith("bad.jpg: ")


def test_content_that_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path):
    def broken():
        raise RuntimeError("the archive is locked")

    pictures = [Picture("x.png", "c", content=broken), *in_memory("y.png", folder="c")]
    found = sort(pictures, tmp_path / "to", "copy")
    assert found == Exported(made=1, missing=("x.png: the archive is locked",))
    assert files_in(tmp_path / "to") == ["c/y.png"]


def test_an_original_that_vanishes_while_it_is_copied_is_named(tmp_path, monkeypatch):
    pictures = originals(tmp_path / "from")
    isfile = os.path.isfile

    def gone_after_the_look(path):
        found = isfile(path)
        if Path(path).name == "b.jpg":
            os.unlink(path)
        return found

    monkeypatch.setattr(folders.os.path, "isfile", gone_after_the_look)
    found = sort(pictures, tmp_path / "to", "copy")
    assert found.made == 2
    assert found.missing[0].startswith("b.jpg: ")
    assert len(files_in(tmp_path / "to")) == 2


def test_a_full_disk_stops_and_leaves_no_half_file(tmp_path, monkeypatch):
    def full(fd, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders.os, "utime", full)
    with pytest.raises(OSError, match="No space"):
        sort(originals(tmp_path / "from"), tmp_path / "to", "copy")
    assert files_in(tmp_path / "to") == []


def test_links_that_are_impossible_point_to_copy(tmp_path, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(folders.os, "symlink", refused)
    with pytest.raises(OSError, match="copy them instead"):
        sort(originals(tmp_path / "from"), tmp_path / "to", "link")


def test_copies_where_a_file_cannot_have_two_names(tmp_path, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(folders.os, "link", refused)
    pictures = originals(tmp_path / "from")
    assert sort(pictures, tmp_path / "to", "copy") == Exported(made=3)
    assert sort(pictures, tmp_path / "to", "copy") == Exported(already_there=3)
    assert len(files_in(tmp_path / "to")) == 3


def test_pictures_without_a_file_cannot_be_linked(tmp_path):
    with pytest.raises(ValueError, match="copy them instead"):
        sort(in_memory("a"), tmp_path / "to", "link")
    assert not (tmp_path / "to").exists()


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match="neither a file nor content"):
        sort([Picture("a", "b")], tmp_path / "to", "copy")
    with pytest.raises(ValueError, match="'move'"):
        sort([], tmp_path / "to", "move")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match="is a file"):
        sort(in_memory("a"), tmp_path / "file", "copy")


@pytest.mark.parametrize("to", ["from", "from/sorted", "from/deep/sorted", "."])
def test_sorting_among_the_originals_is_refused(tmp_path, to):
    pictures = originals(tmp_path / "from", ["a.jpg", "deep/b.jpg"])
    with pytest.raises(ValueError, match="originals"):
        sort(pictures, tmp_path / to, "copy")
    assert files_in(tmp_path) == ["from/a.jpg", "from/deep/b.jpg"]


def test_sorting_into_the_source_is_refused_also_beside_all_pictures(tmp_path):
    pictures = originals(tmp_path / "from", ["deep/a.jpg"])
    with pytest.raises(ValueError, match="would be read with them next time"):
        sort(pictures, tmp_path / "from" / "to", "copy", source_folder=tmp_path / "from")
    assert sort(pictures, tmp_path / "to", "copy", source_folder=tmp_path / "from")


@POSIX
def test_a_detour_into_the_originals_is_seen(tmp_path):
    pictures = originals(tmp_path / "from")
    (tmp_path / "detour").symlink_to(tmp_path / "from")
    with pytest.raises(ValueError, match="originals"):
        sort(pictures, tmp_path / "detour" / "to", "copy")


def test_progress_ends_at_one(tmp_path):
    shares = []
    sort(originals(tmp_path / "from"), tmp_path / "to", "copy", shares.append)
    assert shares == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]


NAMES = {
    "../../x.jpg": "x.jpg",
    "/etc/passwd": "passwd.png",
    "a/b\nc.jpg": "b_c.jpg",
    "C:\\pictures\\cat.JPG": "cat.JPG",
    ".": "unnamed.png",
    "..": "unnamed.png",
    "": "unnamed.png",
    "a/": "unnamed.png",
    "...jpg": "jpg.png",
    ".hidden.jpg": "hidden.jpg",
    "CON.jpg": "_CON.jpg",
    "nul": "_nul.png",
    "com1.tar.gz": "_com1.tar.gz",
    "console.jpg": "console.jpg",
    "null\0byte.jpg": "null_byte.jpg",
    "what?*<>|:.jpg": "what______.jpg",
    "\u202egpj.exe": "_gpj.exe",
    "line\u2028.jpg": "line_.jpg",
    "not \udcff text.jpg": "not _ text.jpg",
    "dots. . .": "dots.png",
    "space .jpg": "space.jpg",
    "3.5": "3.5.png",
    "猫.jpg": "猫.jpg",
}


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_are_made_safe(name):
    assert safe_name(name, ".png") == NAMES[name]


def test_long_names_are_cut_and_keep_their_suffix():
    for letter in ("x", "é", "猫", "🐈"):
        name = safe_name(letter * 300 + ".jpeg")
        assert name.endswith(f"{letter}.jpeg")
        assert MOST_BYTES - 4 < len(name.encode()) <= MOST_BYTES


def test_a_suffix_is_no_way_out():
    assert safe_text("x", "/../../y") == "x"


def test_one_name_many_times_becomes_many_names(tmp_path):
    pictures = [
        Picture(name, "c", content=lambda number=number: b"%d" % number)
        for number, name in enumerate(
            ["one/cat.jpg", "two/cat.jpg", "two/CAT.jpg", "deep/two/cat.jpg", "cat.jpg", "cat.jpg"]
        )
    ]
    expected = [
        "c/CAT (two) 2.jpg",
        "c/cat (two) 3.jpg",
        "c/cat (two).jpg",
        "c/cat 2.jpg",
        "c/cat 3.jpg",
        "c/cat.jpg",
    ]
    assert sort(pictures, tmp_path / "to", "copy") == Exported(made=6)
    assert files_in(tmp_path / "to") == expected
    assert (tmp_path / "to" / "c" / "CAT (two) 2.jpg").read_bytes() == b"2"
    assert sort(pictures, tmp_path / "to", "copy") == Exported(already_there=6)


def test_long_names_that_are_alike_when_cut_stay_apart(tmp_path):
    names = [f"{'p' * 300}/{'x' * 300}{number}.jpg" for number in range(12)]
    assert sort(in_memory(*names), tmp_path / "to", "copy") == Exported(made=12)
    found = [path.name for path in (tmp_path / "to" / "cluster-00").iterdir()]
    assert len(found) == 12
    assert all(len(name) <= MOST_BYTES and name.endswith(".jpg") for name in found)


def test_many_pictures_of_one_name_take_no_time_to_name():
    plan = folders._plan(in_memory(*["same"] * 20_000))
    assert len({name for name, _ in plan["cluster-00"]}) == 20_000


def test_folder_names_are_made_safe_and_alike_ones_are_one(tmp_path):
    pictures = [
        Picture(f"{number}", folder, content=bytes, suffix=".png")
        for number, folder in enumerate(["../out", "Cats", "cats", "", "a/../../b"])
    ]
    sort(pictures, tmp_path / "to", "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["to"]
    found = sorted(path.name for path in (tmp_path / "to").iterdir())
    assert found == ["Cats", "_out", "a_.._.._b", "unnamed"]


hostile = st.text(st.characters() | st.sampled_from("./\\\0\n:~ "), max_size=40) | st.sampled_from(
    [*NAMES, "../" * 10 + "x", "x" * 300, PART, "a/" + PART]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(hostile, hostile, hostile), max_size=6), st.sampled_from(["link", "copy"])
)
def test_nothing_is_ever_written_outside(pictures, how):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        original = folder / "from" / "original"
        original.parent.mkdir()
        original.write_text("mine")
        if os.name == "nt":
            how = "copy"
        given_pictures = [
            Picture(name, inside, original, suffix=suffix) for name, inside, suffix in pictures
        ]
        to = folder / "deep" / "to"
        to.mkdir(parents=True)
        assert sort(given_pictures, to, how) == Exported(made=len(pictures))
        assert all(path.is_dir() for path in to.iterdir())
        assert sum(len(list(inside.iterdir())) for inside in to.iterdir()) == len(pictures)
        outside = [path for path in folder.rglob("*") if to not in path.parents]
        assert sorted(outside) == sorted([to.parent, to, original.parent, original])
        assert original.read_text() == "mine"
        again = sort(given_pictures, to, how)
        assert again == Exported(already_there=len(pictures))


CHILD = """
import os, signal, sys
from pathlib import Path
from jule.export import folders

folders.RELATIVE = folders.RELATIVE and sys.argv[5] == "True"
source, to, how, call, times = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4], 0
before, _, call = call.partition(" ")
real = getattr(os, call)

def deadly(*args, **kwargs):
    global times
    times += 1
    if times == 5 and before == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*args, **kwargs)
    if times == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

pictures = [
    folders.Picture(path.name, f"cluster-0{int(path.stem) % 3}", path)
    for path in sorted(source.iterdir())
]
setattr(os, call, deadly)
folders.sort_into_folders(pictures, to, how)
"""


@POSIX
@pytest.mark.parametrize(
    ("how", "moment"),
    [
        ("copy", "before link"),
        ("copy", "after link"),
        ("copy", "after utime"),
        ("copy", "before fsync"),
        ("copy", "after fsync"),
        ("copy", "before unlink"),
        ("copy", "after mkdir"),
        ("link", "before symlink"),
        ("link", "after symlink"),
    ],
)
def test_killed_in_the_middle_and_run_again(tmp_path, how, moment):
    source, to = tmp_path / "from", tmp_path / "to"
    names = [f"{number}.jpg" for number in range(10)]
    pictures = originals(source, names)
    pictures = [
        Picture(picture.name, f"cluster-0{number % 3}", picture.place)
        for number, picture in enumerate(pictures)
    ]
    if moment == "after mkdir":
        to = to / "a" / "b"
    child = [sys.executable, "-c", CHILD, str(source), str(to), how, moment, str(folders.RELATIVE)]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    half = len([name for name in files_in(to) if not name.endswith(PART)])
    assert half < 10
    found = sort(pictures, to, how)
    assert found == Exported(made=10 - half, already_there=half)
    assert files_in(to) == sorted(f"cluster-0{n % 3}/{name}" for n, name in enumerate(names))
    for number, name in enumerate(names):
        assert (to / f"cluster-0{number % 3}" / name).read_text() == name


@POSIX
@pytest.mark.parametrize("way", ["relative"], indirect=True)
def test_two_at_once_are_refused(tmp_path):
    def second():
        with pytest.raises(BlockingIOError, match="another process is sorting"):
            sort(in_memory("b"), tmp_path / "to", "copy")
        return b"first"

    found = sort([Picture("a", "c", content=second)], tmp_path / "to", "copy")
    assert found == Exported(made=1)


@POSIX
@pytest.mark.parametrize("way", ["relative"], indirect=True)
def test_a_folder_swapped_for_a_link_while_it_is_written_to_leads_nowhere(tmp_path):
    to, outside = tmp_path / "to", tmp_path / "outside"
    outside.mkdir()

    def swap():
        (to / "c").rename(tmp_path / "moved")
        (to / "c").symlink_to(outside)
        return b"first"

    pictures = [Picture("a", "c", content=swap), *in_memory("b", folder="c")]
    sort(pictures, to, "copy")
    assert list(outside.iterdir()) == []
    assert files_in(tmp_path / "moved") == ["a", "b.png"]
