"""The installed command, run as a user would."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

JULE = Path(sys.executable).with_name("jule")


def jule(*arguments, cwd=None, **environment):
    return subprocess.run(
        [JULE, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", **environment},
    )


def test_demo_shows_clusters_beside_k_means(tmp_path):
    done = jule("demo", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for method in ("joint learning", "graph degree linkage", "K-means"):
        assert method in done.stdout
    assert (tmp_path / "run" / "labels.csv").exists()
    assert "1,797 images in 10 clusters" in (tmp_path / "run" / "report.html").read_text()


def test_help_has_examples():
    assert "reproduce" in jule("--help").stdout
    assert "Example: jule demo" in jule("demo", "--help").stdout
    assert "jule cluster photos -k 12" in jule("cluster", "--help").stdout
    assert "Example: jule resume" in jule("resume", "--help").stdout
    assert "jule predict photos-run new-photos" in jule("predict", "--help").stdout
    assert "Example: jule cut" in jule("cut", "--help").stdout
    assert "jule export photos-run --to sorted" in jule("export", "--help").stdout
    assert "--datasets usps,mnist-test" in jule("reproduce", "raw-gdl", "--help").stdout


def test_version():
    assert jule("--version").stdout.startswith("jule 0.")


def test_missing_data_is_one_clear_line(tmp_path):
    done = jule("reproduce", "raw-gdl", "--datasets", "usps", cwd=tmp_path, JULE_DATA=str(tmp_path))
    assert done.returncode == 1
    assert "usps.npz" in done.stderr
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_unknown_data_set_is_one_clear_line(tmp_path):
    done = jule("reproduce", "raw-gdl", "--datasets", "mnits", cwd=tmp_path)
    assert done.returncode == 1
    assert "mnist" in done.stderr
    assert "Traceback" not in done.stderr


def test_reproduce_writes_what_it_measured(tmp_path, data_folder):
    done = jule("reproduce", "raw-gdl", "--datasets", "umist", cwd=tmp_path, JULE_DATA=data_folder)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "results" / "raw-gdl" / "umist.json").read_text())
    assert record["rows"]["paper"]["scores"]["nmi"] == pytest.approx(0.755, abs=0.002)
    assert record["versions"]["numba"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_keeps_what_is_finished_and_leaves_nothing_half_written(tmp_path, data_folder):
    with subprocess.Popen(
        [JULE, "reproduce", "raw-gdl", "--datasets", "umist,mnist"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "JULE_DATA": data_folder, "PYTHONUNBUFFERED": "1"},
    ) as process:
        for _ in range(3):  # a line a setting: the first data set is done, the long one begins
            assert process.stdout.readline().startswith("umist")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "stopped" in err
    assert "Traceback" not in err
    assert [path.name for path in (tmp_path / "results" / "raw-gdl").iterdir()] == ["umist.json"]


def test_a_wrong_option_shows_the_way_to_help():
    done = jule("reproduce", "raw-gdl", "--nope")
    assert done.returncode == 2
    assert "--nope" in done.stderr
    assert "help" in done.stderr
