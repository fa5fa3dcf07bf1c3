"""Run folders: real processes killed, resumed, read back; folders that must not be touched."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jule.images import fingerprint, load_dataset
from jule.files import delay_interrupts
from jule.joint import Config
from jule.runs import Run, create_run, go, read_results
from jule.runs.tables import read_labels, write_labels

JULE = Path(sys.executable).with_name("jule")
QUICK = Config(n_clusters=5, n_periods=3, rounds=1, min_images=1000, epochs=1.0)
RESULTS = {
    "config.json",
    "history.json",
    "snapshots",
    "labels.csv",
    "labels_sf.npy",
    "labels_rc.npy",
    "embedding.npy",
    "tree.npz",
    "network.safetensors",
    "result.json",
}
BY_COMMAND = {"skipped.csv", "duplicates.csv", "report.html", "report.json"}


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    few = data.labels < 5
    return data.images[few][:300], data.labels[few][:300]


def new_run(folder, images, source=""):
    return create_run(folder, QUICK, fingerprint(images), source=str(source))


@pytest.fixture(scope="module")
def finished(digits, tmp_path_factory):
    """A run that nobody disturbed, as the others have to end."""
    run = new_run(tmp_path_factory.mktemp("runs") / "whole", digits[0])
    go(run, digits[0], labels=digits[1])
    return run


def test_a_finished_run_has_all_its_files_and_no_others(finished):
    assert set(os.listdir(finished.folder)) == RESULTS
    assert finished.is_finished
    rows = finished.path("labels.csv").read_text().splitlines()
    assert rows[0] == "path,cluster,confidence,rank"
    assert len(rows) == 301
    assert json.loads(finished.path("result.json").read_text())["scores"]["rc"]["nmi"] > 0.5


def test_what_is_read_back_is_what_was_written(digits, finished):
    again = read_results(finished)
    assert again.config == QUICK
    assert again.names[:2] == ["0", "1"]
    assert again.result.labels.max() == 4
    assert again.result.tree.cut(5, 3).shape == (300,)
    from jule.backward import embed

    np.testing.assert_allclose(embed(again.embedder, digits[0]), again.result.embedding, atol=1e-6)


# What a killed process is doing is read from the names of its stages, one line each.
CHILD = """
import sys
import numpy as np
from pathlib import Path
from jule.runs import Run, go
told = set()
def tell(stage, share):
    if stage not in told:
        told.add(stage)
        print(stage, flush=True)
go(Run(Path(sys.argv[1])), np.load(sys.argv[2])["images"], progress=tell)
print("written", flush=True)
"""
KILLED_AT = [
    "neighbours",
    "period 1 of 3, training",
    "period 2 of 3, training",
    "period 3 of 3, neighbours",
]


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
@pytest.mark.parametrize("stage", KILLED_AT)
def test_a_run_killed_at_any_moment_ends_as_if_nothing_had_happened(
    digits, finished, tmp_path, stage
):
    source = tmp_path / "digits.npz"
    np.savez(source, images=digits[0])
    run = new_run(tmp_path / "killed", digits[0], source)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, run.folder, source], stdout=subprocess.PIPE, text=True
    ) as child:
        assert stage in iter(lambda: child.stdout.readline().strip(), "written")
        child.send_signal(signal.SIGKILL)
    assert not run.is_finished
    done = subprocess.run([JULE, "resume", run.folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("labels.csv", "labels_sf.npy", "labels_rc.npy", "embedding.npy"):
        assert run.path(name).read_bytes() == finished.path(name).read_bytes()
    assert set(os.listdir(run.folder)) == RESULTS | BY_COMMAND
    for shot in sorted(os.listdir(finished.path("snapshots"))):
        again, whole = (each.path("snapshots") / shot for each in (run, finished))
        assert again.read_bytes() == whole.read_bytes()


def test_resuming_with_other_data_is_refused(digits, tmp_path):
    run = new_run(tmp_path / "run", digits[0])
    with pytest.raises(ValueError, match="not what"):
        go(run, digits[0][:200])


def test_an_existing_folder_is_refused_unless_told(digits, tmp_path):
    run = new_run(tmp_path / "run", digits[0])
    with pytest.raises(FileExistsError, match="exists and is not empty"):
        new_run(run.folder, digits[0])
    create_run(run.folder, QUICK, fingerprint(digits[0]), overwrite=True)


def test_a_folder_that_is_not_a_run_is_never_overwritten(digits, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        create_run(tmp_path, QUICK, fingerprint(digits[0]), overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_cannot_be_made_is_an_error_and_leaves_nothing(digits, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        new_run(tmp_path / "file" / "run", digits[0])
    assert os.listdir(tmp_path) == ["file"]


LITTLE_ROOM = """
import resource, signal, sys
import numpy as np
from pathlib import Path
from jule.images import fingerprint
from jule.joint import Config
from jule.runs import create_run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
try:
    create_run(Path(sys.argv[1]), Config(), fingerprint(np.zeros((3, 2))))
except OSError as error:
    print("refused")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits file sizes as POSIX does")
def test_a_full_disk_leaves_no_folder_behind(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_ROOM, tmp_path / "run"], capture_output=True, text=True
    )
    assert done.stdout == "refused\n", done.stderr
    assert os.listdir(tmp_path) == []


def test_an_unfinished_run_cannot_be_read(digits, tmp_path):
    with pytest.raises(ValueError, match="is not finished: jule resume"):
        read_results(new_run(tmp_path / "run", digits[0]))


def test_what_is_not_a_run_is_said_to_be_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run"):
        Run(tmp_path).about()
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        Run(tmp_path).about()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="is not of a run"):
        Run(tmp_path).about()


@pytest.mark.parametrize("name", ["network.safetensors", "tree.npz", "result.json", "labels.csv"])
def test_a_damaged_file_is_a_clear_error(finished, tmp_path, name):
    for file in filter(Path.is_file, finished.folder.iterdir()):
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(
            content[: len(content) // 2] if file.name == name else content
        )
    with pytest.raises(ValueError, match=str(tmp_path)):
        read_results(Run(tmp_path))


def test_names_of_all_kinds_survive_the_csv(tmp_path):
    names = ["plain.png", 'with "quotes", commas', "two\nlines", "snow ☃", "bad \udcff byte"]
    labels, sure = np.arange(5), np.linspace(0, 1, 5)
    write_labels(tmp_path / "labels.csv", names, labels, sure)
    found = read_labels(tmp_path / "labels.csv")
    assert found[0] == names
    np.testing.assert_array_equal(found[1], labels)
    np.testing.assert_allclose(found[2], sure, atol=1e-4)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_waits_for_the_writing_in_hand():
    done = []

    def write():
        with delay_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("written")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert done == ["written"]
