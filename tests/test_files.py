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
    delay_interrupts,
    user_cache,
    write_array,
    write_arrays,
    write_atomic,
    write_json,
)


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
    write_array(tmp_path / "a.npy", np.eye(2))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.eye(2))
    write_arrays(tmp_path / "a.npz", one=np.eye(2), two=np.int64(3))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert sorted(archive) == ["one", "two"]
        assert archive["two"] == 3


def test_objects_are_never_pickled(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        write_array(tmp_path / "a.npy", np.array([object()]))
    assert os.listdir(tmp_path) == []


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
