"""cluster, resume, predict and cut, through the installed command."""

import csv
import os
import signal
import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

from jule.cli import app
from jule.images import load_dataset
from tests.cli.test_cli import JULE, jule


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    data = load_dataset("digits")
    few = data.labels < 4
    images, labels = data.images[few], data.labels[few]
    names = np.array([f"digit {number}.png" for number in range(200)])
    np.savez(folder / "digits.npz", images=images[:200], labels=labels[:200], names=names)
    np.savez(folder / "more.npz", images=images[200:260])
    np.save(folder / "other.npy", np.zeros((3, 9, 9)))
    np.save(folder / "vectors.npy", np.zeros((3, 9)))
    return folder


@pytest.fixture(scope="module")
def run(files):
    done = jule(
        "cluster", "digits.npz", "-k", "4", "--out", "run", "--rounds", "1", "--epochs", "1",
        cwd=files,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "NMI" in done.stdout
    return files / "run"


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_cluster_writes_a_row_for_every_image(run):
    found = rows(run / "labels.csv")
    assert [row["path"] for row in found[:2]] == ["digit 0.png", "digit 1.png"]
    assert {row["cluster"] for row in found} == {"0", "1", "2", "3"}
    assert all(0 <= float(row["confidence"]) <= 1 for row in found)


def test_predict_sorts_new_images(run, files):
    done = jule("predict", "run", "more.npz", "--out", "more.csv", cwd=files)
    assert done.returncode == 0, done.stderr
    assert len(rows(files / "more.csv")) == 60
    shown = jule("predict", "run", "more.npz", cwd=files).stdout.splitlines()
    assert len(shown) == 1 + 60
    assert shown[1].split(",")[1] == rows(files / "more.csv")[0]["cluster"]


def test_cut_gives_another_number_of_clusters(run, files):
    done = jule("cut", "run", "-k", "2", cwd=files)
    assert done.returncode == 0, done.stderr
    assert len({row["cluster"] for row in rows(run / "labels-2.csv")}) == 2


def test_a_finished_run_has_nothing_to_resume(run, files):
    assert "nothing is left to do" in jule("resume", "run", cwd=files).stdout


BAD = {
    "an existing run": (["cluster", "digits.npz", "-k", "4", "--out", "run"], "--overwrite"),
    "too many clusters": (["cluster", "digits.npz", "-k", "999", "--out", "x"], "999 clusters"),
    "no clusters": (["cluster", "digits.npz", "-k", "0", "--out", "x"], "1 or more"),
    "a list of nothing": (["cluster", "notes.txt", "--out", "x"], "hello: it vanished"),
    "a broken file": (["cluster", "broken.npz", "--out", "x"], "cannot be read"),
    "identical images": (["cluster", "other.npy", "-k", "2", "--out", "x"], "identical"),
    "vectors for images": (["predict", "run", "vectors.npy"], "is not a picture"),
    "an unknown preset": (["cluster", "digits.npz", "--preset", "fast", "--out", "x"], "preset"),
    "no run": (["resume", "."], "is not a run"),
    "a cut too fine": (["cut", "run", "-k", "201"], "between 1 and 200"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(run, files, case, monkeypatch):
    (files / "notes.txt").write_text("hello")
    (files / "broken.npz").write_bytes(b"PK\x03\x04 broken")
    arguments, message = BAD[case]
    monkeypatch.chdir(files)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (files / "x").exists()


def test_what_is_not_there_is_told_with_all_that_could_be(files):
    done = jule("cluster", "nowhere.xyz", "--out", "x", cwd=files)
    assert done.returncode == 1
    assert "nowhere.xyz is not there" in done.stderr
    assert "- a folder of pictures" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_says_how_to_go_on_and_resume_does(files):
    command = [JULE, "cluster", "digits.npz", "-k", "4", "--out", "stopped", "--rounds", "1"]
    with subprocess.Popen(command, cwd=files, stderr=subprocess.PIPE, text=True) as process:
        while not (files / "stopped" / "state").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "jule resume stopped" in errors
    assert not list((files / "stopped").rglob("*.part"))
    (files / "moved.npz").write_bytes((files / "digits.npz").read_bytes())
    done = jule("resume", "stopped", "--source", "moved.npz", cwd=files)
    assert done.returncode == 0, done.stderr
    assert (files / "stopped" / "labels.csv").exists()
