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


def test_demo_shows_clusters_beside_k_means():
    done = jule("demo")
    assert done.returncode == 0, done.stderr
    assert "graph degree linkage" in done.stdout
    assert "K-means" in done.stdout


def test_help_has_examples():
    assert "reproduce" in jule("--help").stdout
    assert "Example: jule demo" in jule("demo", "--help").stdout
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
def test_ctrl_c_says_so_and_leaves_nothing_half_written(tmp_path, data_folder):
    with subprocess.Popen(
        [JULE, "reproduce", "raw-gdl", "--datasets", "coil20"],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "JULE_DATA": data_folder, "PYTHONUNBUFFERED": "1"},
    ) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"stopped" in err
    assert b"Traceback" not in err
    assert not (tmp_path / "results").exists()
