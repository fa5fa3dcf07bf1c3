"""Every error is one line: bad input, bad options, full disks, and what nobody expected."""

import csv
import errno
import json
import os
import struct
import subprocess
import sys
import tokenize
import warnings
import zipfile
from pathlib import Path

import pytest
import typer
from rich.errors import MarkupError
from typer.testing import CliRunner

from jule.cli.commands import Commands
from jule.cli.errors import describe_known, is_run_folder
from jule.runs.tables import parse_labels

JULE = Path(sys.executable).with_name("jule")
UNEXPECTED = [
    KeyError("path"), TypeError("no"), csv.Error("line contains NUL"), RuntimeError("of torch"),
    zipfile.BadZipFile("bad"), EOFError("no data left"), tokenize.TokenError("EOF", (1, 0)),
    RecursionError("too deep"), MarkupError("closing tag [/b]"), struct.error("unpack"),
    AssertionError(), StopIteration(), ValueError(), ZeroDivisionError(),
]  # fmt: skip


def failing(error):
    """Run a command of an app like jule's that raises an error; return its result."""
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)

    @app.callback()
    def options(_debug: bool = typer.Option(False, "--debug")):
        pass

    @app.command()
    def work(run: str = ""):
        raise error

    return lambda *arguments: CliRunner().invoke(app, ["work", *map(str, arguments)])


def one_line(done):
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("jule: ")
    assert done.stdout == ""
    return lines[0]


@pytest.fixture
def run(tmp_path):
    """A folder that looks like a run."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text('{"format": "jule-run-3", damaged')
    return folder


@pytest.mark.parametrize("error", UNEXPECTED, ids=lambda error: type(error).__name__)
def test_an_unexpected_error_is_one_line_and_is_logged_in_the_run(error, run):
    done = failing(error)("--run", run)
    assert done.exit_code == 1
    line = one_line(done)
    assert type(error).__name__ in line
    assert str(run / "error.log") in line
    logged = (run / "error.log").read_text()
    assert "Traceback" in logged
    assert f"jule work --run {run}" in logged
    assert "Python 3" in logged
    assert "numpy" in logged
    if os.name != "nt":
        assert (run / "error.log").stat().st_mode & 0o077 == 0


def test_without_a_run_folder_debug_is_suggested_and_nothing_is_written(tmp_path):
    done = failing(KeyError("path"))("--run", tmp_path)
    line = one_line(done)
    assert line.startswith("jule: unexpected KeyError: 'path'")
    assert "--debug" in line
    assert f"jule work --run {tmp_path}" in line  # the culprit is one of these words
    assert os.listdir(tmp_path) == []


def test_the_log_is_not_written_through_a_link(run, tmp_path):
    (tmp_path / "victim").write_text("precious")
    (run / "error.log").symlink_to(tmp_path / "victim")
    one_line(failing(KeyError("path"))("--run", run))
    assert (tmp_path / "victim").read_text() == "precious"
    assert "Traceback" in (run / "error.log").read_text()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_log_that_cannot_be_written_is_not_mentioned(run):
    run.chmod(0o500)
    line = one_line(failing(KeyError("path"))("--run", run))
    assert "error.log" not in line


def test_a_folder_in_the_place_of_the_log_is_no_further_error(run):
    (run / "error.log").mkdir()
    assert "error.log" not in one_line(failing(KeyError("path"))("--run", run))


def test_a_message_of_several_lines_with_control_characters_is_one_line(run):
    error = RuntimeError("size mismatch:\n\tfor \x1b[2J[/b]\u202e: \r\n" + "x" * 10_000)
    done = failing(error)("--run", run)
    line = one_line(done)
    assert "size mismatch: for \\x1b[2J[/b]\\u202e:" in line
    assert len(line) < 1100
    assert "\x1b" not in (run / "error.log").read_text()


@pytest.mark.parametrize("where", [0, 1])
def test_debug_anywhere_shows_the_traceback(where):
    arguments = ["--run", "x"]
    arguments.insert(where * 2, "--debug")
    done = failing(KeyError("\x1b[2J"))(*arguments)
    assert done.exit_code == 1
    assert "Traceback" in done.stderr
    assert "\x1b[2J" not in done.stderr
    assert "jule: unexpected KeyError" in done.stderr.splitlines()[-1]


def test_debug_behind_two_dashes_is_a_name(jule):
    done = jule("info", "--", "--debug")
    assert "--debug does not exist" in one_line(done)


def test_errors_of_the_system_name_the_file_and_the_reason():
    done = failing(PermissionError(errno.EACCES, "Permission denied", "a\x1b.png"))()
    assert one_line(done) == "jule: a\\x1b.png: Permission denied"
    done = failing(OSError(errno.EXDEV, "Invalid cross-device link", b"a", None, "b"))()
    assert one_line(done) == "jule: a -> b: Invalid cross-device link"
    done = failing(OSError(errno.EBADF, "Bad file descriptor", 7))()
    assert one_line(done) == "jule: Bad file descriptor"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_is_one_line_that_says_what_to_do():
    with open("/dev/full", "w") as full:
        done = subprocess.run([JULE, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "jule: No space left on device: free some space and run the command again, "
        "or jule resume RUN if it made a run"
    ]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 931. GiB for an array with shape (9, 9)"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: not enough memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    ],
)
def test_too_little_memory_says_what_to_do(error, run):
    done = failing(error)("--run", run)
    assert done.exit_code == 1
    assert "there is not enough memory: use smaller images (--size)" in one_line(done)
    assert not (run / "error.log").exists()


def test_errors_of_other_libraries_are_unexpected_even_if_they_are_value_errors():
    with pytest.raises(ValueError, match="Expecting") as theirs:
        json.loads("{")
    assert describe_known(theirs.value) is None
    with pytest.raises(ValueError, match="damaged") as ours:
        parse_labels(b"\xff", "run/labels.csv")
    assert "labels.csv" in describe_known(ours.value)


def test_the_cause_of_a_known_error_is_logged_without_a_word(jule, run):
    (run / "config.json").write_text('{"format": "jule-run-3", damaged')
    done = jule("cut", run, "-k", 3)
    assert done.exit_code == 1
    line = one_line(done)
    assert "config.json is damaged" in line
    assert "error.log" not in line
    assert "Traceback" in (run / "error.log").read_text()


def test_warnings_are_one_line_each():
    app = typer.Typer(cls=Commands)

    @app.command()
    def work():
        warnings.warn("two\nlines [/b] \x1b[2J", stacklevel=1)

    @app.command()
    def other():
        pass

    done = CliRunner().invoke(app, ["work"])
    assert done.exit_code == 0
    assert done.stderr == "jule: two lines [/b] \\x1b[2J\n"


# usage errors

USAGE = {
    "cut -k 0": (
        ["cut", "run", "-k", "0"],
        "'-k' / '--clusters': '0' is not a whole number from 1 up",
        "jule cut --help",
    ),
    "a word for a number": (
        ["cluster", "x", "-k", "abc"],
        "'-k' / '--clusters': 'abc' is not a whole number from 1 up",
        "jule cluster --help",
    ),
    "half a number": (
        ["info", "x", "-k", "1.5"],
        "'1.5' is not a whole number from 1 up",
        "jule info --help",
    ),
    "-k of an export": (
        ["export", "run", "-k", "-3"],
        "'-3' is not a whole number from 1 up",
        "jule export --help",
    ),
    "too many periods": (
        ["refine", "run", "--periods", "101"],
        "'101' is not a whole number from 1 to 100",
        "jule refine --help",
    ),
    "a hostile number": (
        ["cut", "run", "-k", "[/b]\x1b[2J"],
        "is not a whole number",
        "jule cut --help",
    ),
    "a device": (
        ["cluster", "x", "-o", "y", "--device", "bogus"],
        "'bogus'",
        "jule cluster --help",
    ),
    "no argument": (["cut"], "missing", "jule cut --help"),
    "no option": (["cut", "run"], "'-k' / '--clusters'", "jule cut --help"),
    "no value": (["cut", "run", "-k"], "-k", "jule cut --help"),
    "another argument": (["cache", "more"], "more", "jule cache --help"),
    "an option": (["cluster", "x", "--nope\x1b[2J"], "--nope\\x1b[2J", "jule cluster --help"),
    "an option of jule": (["--nope"], "--nope", "jule --help"),
    "a command": (["clutser"], "Did you mean 'cluster'", "jule --help"),
    "a hostile command": (["[/b]\x1b[2J\n"], "[/b]\\x1b[2J", "jule --help"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_usage_error_is_one_line_that_points_to_the_help(jule, case):
    arguments, problem, see = USAGE[case]
    done = jule(*arguments)
    assert done.exit_code == 2
    line = one_line(done)
    assert problem in line
    assert line.endswith(f"ee {see}")
    assert "\x1b" not in line


def test_usage_errors_do_not_touch_the_run(jule, run):
    assert jule("cut", run, "-k", 0).exit_code == 2
    assert os.listdir(run) == ["config.json"]


# what is a run folder


def test_run_folders_are_recognised_by_either_of_two_files(tmp_path, run):
    assert is_run_folder(run)
    (run / "config.json").write_text("{}")
    assert not is_run_folder(run)
    (run / "manifest.json").write_text('{"format": "jule-manifest-1"')
    assert is_run_folder(run)
    assert not is_run_folder("no\0path")
    if os.name != "nt":
        (tmp_path / "pipe").mkdir()
        os.mkfifo(tmp_path / "pipe" / "config.json")
        assert not is_run_folder(tmp_path / "pipe")


@pytest.mark.parametrize("command", [["info"], ["cluster", "--out", "new"]])
def test_a_run_folder_is_no_source(refused, run, command, tmp_path):
    message = refused(command[0], run, *command[1:], cwd=tmp_path)
    assert "is a run folder" in message
    assert not (tmp_path / "new").exists()


def test_a_data_set_without_a_name_is_refused(refused):
    assert "hf: needs the name of a data set" in refused("info", "hf:")
