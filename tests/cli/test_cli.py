"""The `jule` command as a whole: help, errors, and the few things only a real process can show."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from jule.cli import COMMANDS
from jule.images import load_dataset

JULE = Path(sys.executable).with_name("jule")
# map_ is the command map, and import_labels is import-labels.
NAMES = [command.__name__.rstrip("_").replace("_", "-") for command in COMMANDS]


def test_help_lists_every_command(jule):
    shown = jule("--help").stdout
    for name in NAMES:
        assert f" {name} " in shown


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_every_command_has_an_example(jule, name):
    done = jule(name, "--help")
    assert done.exit_code == 0
    assert "Example" in done.stdout
    assert f"jule {name}" in done.stdout
    assert jule(name, "-h").stdout == done.stdout


def test_brackets_in_help_are_shown(jule):
    assert 'pip install "jule[plot]"' in jule("plot", "--help").stdout


def test_no_arguments_show_the_help(jule):
    assert "Usage" in jule().output


NOT_A_RUN = {
    "resume": ["resume", "."],
    "report": ["report", "."],
    "serve": ["serve", ".", "--no-browser"],
    "apply": ["apply", ".", "edits.json"],
    "predict": ["predict", ".", "photos"],
    "similar": ["similar", ".", "a.png"],
    "cut": ["cut", ".", "-k", "2"],
    "export": ["export", ".", "--to", "x"],
    "plot": ["plot", "."],
}


@pytest.mark.parametrize("case", NOT_A_RUN)
def test_a_folder_that_is_no_run_is_one_clear_line(refused, tmp_path, case):
    message = refused(*NOT_A_RUN[case], cwd=tmp_path)
    assert "has no run in it yet" in message
    (tmp_path / "thesis.tex").write_text("years of work")
    message = refused(*NOT_A_RUN[case], cwd=tmp_path)
    assert "is not a run folder: it has no config.json" in message
    assert len(message.splitlines()) == 1
    assert os.listdir(tmp_path) == ["thesis.tex"]


@pytest.mark.parametrize("case", sorted(set(NOT_A_RUN) - {"resume"}))
def test_an_unfinished_run_is_to_be_resumed(refused, copied, case):
    for name in ("manifest.json", "result.json"):
        (copied / name).unlink()
    command, _, *rest = NOT_A_RUN[case]
    assert "is not finished: run jule resume" in refused(command, copied, *rest)


@pytest.mark.parametrize("case", NOT_A_RUN)
def test_a_run_of_an_earlier_version_is_named(refused, copied, case):
    (copied / "config.json").write_text('{"format": "jule-run-2"}')
    command, _, *rest = NOT_A_RUN[case]
    assert "earlier version of jule" in refused(command, copied, *rest)


# Real processes


def test_the_installed_command_and_debug_anywhere_on_the_line(tmp_path):
    def run(*arguments):
        return subprocess.run([JULE, *arguments], capture_output=True, text=True, cwd=tmp_path)

    assert run("--version").stdout.startswith("jule 0.")
    shown = run("info", "nowhere", "--debug").stderr
    assert "Traceback" in shown
    assert "nowhere does not exist" in shown


@pytest.mark.skipif(os.name == "nt", reason="closes pipes as POSIX does")
def test_a_closed_pipe_is_no_error(trained):
    command = [JULE, "predict", trained.folder / "run", trained.folder / "new"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_tells_how_to_resume_and_resuming_finishes_the_run(jule, tmp_path):
    data = load_dataset("digits")
    np.savez(tmp_path / "digits.npz", images=data.images[:200], labels=data.labels[:200])
    # So many steps that the run cannot end before it is stopped.
    command = [JULE, "cluster", "digits.npz", "-k", "4", "--epochs", "900", "--out", "run"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "run" / "snapshots").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "stopped; resume with: jule resume run" in errors
    assert "Traceback" not in errors
    assert not list((tmp_path / "run").rglob("*.part"))
    (tmp_path / "digits.npz").rename(tmp_path / "moved.npz")
    done = jule("resume", "run", "--source", "moved.npz", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "run" / "labels.csv").exists()
    assert not (tmp_path / "run" / "state").exists()
