"""Files are written whole or not at all; Ctrl-C waits for them."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from jule import files
from jule.files import (
    array_bytes,
    checked_json,
    delay_interrupts,
    is_leftover,
    make_folder,
    parse_checked_json,
    parse_json,
    read_large,
    read_regular,
    remove_parts,
    remove_tree,
    user_cache,
    user_config,
    write_arrays,
    write_atomic,
    write_json,
    write_new,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="links and permissions of POSIX")


def test_a_file_is_replaced(tmp_path):
    for content in (b"one", b"two"):
        write_atomic(tmp_path / "a", content)
        assert (tmp_path / "a").read_bytes() == content
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step, error):
    (tmp_path / "labels.csv").write_text("old")

    def fail(*_):
        raise error

    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(type(error)):
        write_atomic(tmp_path / "labels.csv", b"new")
    monkeypatch.undo()
    assert (tmp_path / "labels.csv").read_text() == "old"
    assert os.listdir(tmp_path) == ["labels.csv"]


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_atomic(tmp_path / "nowhere" / "a", b"")


def test_values_and_arrays_come_back(tmp_path):
    write_json(tmp_path / "a.json", {"k": [1, None]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"k": [1, None]}
    write_arrays(tmp_path / "a.npz", one=np.eye(2), two=np.int64(3))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert sorted(archive) == ["one", "two"]
        assert archive["two"] == 3


def test_objects_are_never_pickled(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        array_bytes(np.array([object()]))
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "a.npz", one=np.array([object()]))
    assert os.listdir(tmp_path) == []


def test_a_temporary_name_cannot_be_guessed(tmp_path, monkeypatch):
    names = []
    opened = os.open

    def note(path, *rest, **more):
        names.append(os.path.basename(path))
        return opened(path, *rest, **more)

    monkeypatch.setattr(files.os, "open", note)
    for _ in range(2):
        write_atomic(tmp_path / "a", b"")
    parts = [name for name in names if name.endswith(".part")]
    assert len(set(parts)) == 2
    assert all(map(is_leftover, parts))


@posix
@pytest.mark.parametrize("name", ["a", "a.part", ".a.part"])
def test_nothing_is_written_through_a_link(tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / name).symlink_to(victim)
    write_atomic(tmp_path / "a", b"new")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "a").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"new"


@posix
def test_a_pipe_that_the_user_chose_is_written_to_and_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_atomic(tmp_path / "pipe", b"table", private=False)
    assert os.read(reading, 10) == b"table"
    os.close(reading)
    assert (tmp_path / "pipe").is_fifo()


@posix
def test_a_new_file_never_replaces_another(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    (tmp_path / "file").write_text("old")
    for name in ("link", "file"):
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, b"new")
    assert not (tmp_path / "victim").exists()


@posix
def test_files_and_folders_are_private_unless_their_place_was_chosen(tmp_path):
    before = os.umask(0o022)
    try:
        write_atomic(tmp_path / "private", b"")
        write_atomic(tmp_path / "chosen", b"", private=False)
        make_folder(tmp_path / "folder")
        (tmp_path / "shared").write_text("old")
        (tmp_path / "shared").chmod(0o640)
        write_atomic(tmp_path / "shared", b"new")
        os.umask(0o277)
        write_atomic(tmp_path / "strict", b"")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {
        "private": 0o600, "chosen": 0o644, "folder": 0o700, "shared": 0o640, "strict": 0o400,
    }  # fmt: skip


@posix
def test_a_link_is_no_folder(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(NotADirectoryError, match=f"{name} is a link or a file"):
            make_folder(tmp_path / name)


@posix
def test_removing_a_link_leaves_its_target(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "inner").symlink_to(tmp_path / "photos")
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    for name in ("link", "run", "missing"):
        remove_tree(tmp_path / name)
    assert os.listdir(tmp_path) == ["photos"]
    assert (tmp_path / "photos" / "a.jpg").read_text() == "precious"


def test_only_unfinished_files_are_leftovers(tmp_path):
    names = ["a.part", ".jule-0123456789abcdef.part", ".jule-lock", "labels.csv.part"]
    for name in names:
        (tmp_path / name).write_text("")
    remove_parts(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(set(names) - {".jule-0123456789abcdef.part"})


@posix
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device", "large"])
@pytest.mark.parametrize("read", [read_regular, read_large])
def test_only_regular_files_are_read(tmp_path, kind, read):
    path = tmp_path / "labels.csv"
    if kind == "link":
        (tmp_path / "other").write_text("secret")
        path.symlink_to(tmp_path / "other")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        path.write_bytes(bytes(11))
    with pytest.raises((ValueError, IsADirectoryError), match=path.name):
        read(path, 10)


def test_a_checksum_of_its_own_finds_every_changed_byte():
    content = checked_json({"seed": 0, "name": "a"})
    assert parse_checked_json(content) == {"seed": 0, "name": "a"}
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        try:
            value = parse_checked_json(bytes(changed))
        except ValueError:
            continue
        assert value == {"seed": 0, "name": "a"}  # white space


def test_deep_nesting_is_refused():
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(b"[" * 100_000 + b"]" * 100_000)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_waits_for_the_end_of_the_block():
    done = []

    def write():
        with delay_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("written")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert done == ["written"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_receive_no_signals_and_delay_none():
    done = []

    def write():
        with delay_interrupts():
            done.append("written")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert done == ["written"]


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, Path("/x")),
        ("linux", {"XDG_CACHE_HOME": ""}, Path("/home/me/.cache")),
        ("darwin", {}, Path("/home/me/Library/Caches")),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local")),
        ("win32", {"LOCALAPPDATA": ""}, Path("/home/me/AppData/Local")),
    ],
)
def test_the_cache_of_each_system(monkeypatch, platform, variables, expected):
    monkeypatch.setattr(files.sys, "platform", platform)
    monkeypatch.setattr(files.Path, "home", lambda: Path("/home/me"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_cache() == expected


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CONFIG_HOME": "/x"}, Path("/x")),
        ("linux", {"XDG_CONFIG_HOME": ""}, Path("/home/me/.config")),
        ("darwin", {}, Path("/home/me/Library/Application Support")),
        ("win32", {"APPDATA": "/roaming"}, Path("/roaming")),
    ],
)
def test_the_configuration_of_each_system(monkeypatch, platform, variables, expected):
    monkeypatch.setattr(files.sys, "platform", platform)
    monkeypatch.setattr(files.Path, "home", lambda: Path("/home/me"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_config() == expected
