"""Runs executed: killed at any moment and resumed to the same bytes, read back, damaged."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

from jule.backward import embed
from jule.files import arrays_bytes, json_bytes
from jule.forward.assign import label_confidence
from jule.images import fingerprint, load_dataset
from jule.joint import Config
from jule.joint.state import load_state
from jule.runs.completion import complete
from jule.runs.execute import execute
from jule.runs.folder import RunFolder, create_run, unfinished_run
from jule.runs.manifest import DamagedError
from jule.runs.names import STATES
from jule.runs.page_edits import labels_id
from jule.runs.reading import read_again
from jule.runs.results import read_network, read_results
from tests.sealing import reseal

QUICK = Config(n_clusters=5, n_periods=3, rounds=1, min_images=600, epochs=1.0)
FILES = {
    "config.json", "history.json", "snapshots", "labels.csv", "labels_sf.npy", "labels_rc.npy",
    "digests.npy", "embedding.npy", "neighbors.npz", "input_neighbors.npz", "tree.npz",
    "network.safetensors", "result.json", "manifest.json",
}  # fmt: skip
SAME = ("labels.csv", "labels_sf.npy", "labels_rc.npy", "embedding.npy", "tree.npz")


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    few = data.labels < 5
    return data.images[few][:200], data.labels[few][:200]


def new_run(folder, images, source=""):
    return create_run(folder, QUICK, fingerprint(images), source=str(source))


@pytest.fixture(scope="module")
def whole(digits, tmp_path_factory):
    """A run that was not interrupted, and what it returned."""
    run = new_run(tmp_path_factory.mktemp("runs") / "whole", digits[0])
    return run, execute(run, digits[0], labels=digits[1])


def assert_same_files(run, other):
    for name in SAME:
        assert run.path(name).read_bytes() == other.path(name).read_bytes(), name
    shots = sorted(os.listdir(other.path("snapshots")))
    assert sorted(os.listdir(run.path("snapshots"))) == shots
    for shot in shots:
        one, two = (each.path("snapshots") / shot for each in (run, other))
        assert one.read_bytes() == two.read_bytes(), shot


def test_a_finished_run_has_all_its_files_and_no_others(whole):
    run, _ = whole
    assert run.is_finished
    assert set(os.listdir(run.folder)) == FILES
    rows = run.path("labels.csv").read_text().splitlines()
    assert rows[0] == "path,cluster,confidence,rank,name,by_hand,index"
    assert len(rows) == 201
    scores = json.loads(run.path("result.json").read_text())["scores"]
    assert scores["labels"]["nmi"] > 0.5
    assert len(os.listdir(run.path("snapshots"))) == 1 + QUICK.n_periods


def test_what_was_found_before_learning_is_read_back(whole):
    run, returned = whole
    one, two = read_results(run).result, returned.result
    assert one.evidence == two.evidence != ()
    assert one.input_sigma2 == two.input_sigma2 > 0
    np.testing.assert_array_equal(one.input_neighbors.indices, two.input_neighbors.indices)
    np.testing.assert_allclose(label_confidence(one.graphs, one.labels), two.confidence)


def test_runs_without_what_was_found_before_learning_can_be_read(whole, tmp_path):
    older = shutil.copytree(whole[0].folder, tmp_path / "older")
    (older / "input_neighbors.npz").unlink()
    numbers = json.loads((older / "result.json").read_text())
    for name in ("evidence", "input_sigma2"):
        del numbers[name]
    (older / "result.json").write_bytes(json_bytes(numbers))
    reseal(older)
    found = read_results(RunFolder(older)).result
    assert (found.evidence, found.input_neighbors, len(found.graphs)) == ((), None, 1)
    np.testing.assert_array_equal(found.labels, whole[1].result.labels)


@pytest.mark.parametrize("shape", [(200, 3), (199, 14), (200, 14, 1)])
def test_neighbours_before_learning_of_another_run_are_refused(whole, tmp_path, shape):
    other = shutil.copytree(whole[0].folder, tmp_path / "other")
    arrays = arrays_bytes(indices=np.zeros(shape, np.int32), distances=np.zeros(shape))
    (other / "input_neighbors.npz").write_bytes(arrays)
    reseal(other)
    with pytest.raises(DamagedError, match=r"input_neighbors\.npz is damaged"):
        read_results(RunFolder(other))


def test_results_are_read_back_as_they_were_returned(digits, whole):
    run, returned = whole
    again = read_results(run)
    assert (again.id, again.config, again.names) == (returned.id, QUICK, returned.names)
    assert (again.seconds, again.scores) == (returned.seconds, returned.scores)
    assert again.history == returned.history
    one, two = again.result, returned.result
    assert (one.chosen, one.sigma2, one.choice) == (two.chosen, two.sigma2, two.choice)
    for name in ("labels", "labels_sf", "labels_rc", "embedding"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_allclose(one.confidence, two.confidence, atol=5e-5)
    np.testing.assert_array_equal(one.tree.merges, two.tree.merges)
    np.testing.assert_array_equal(one.graph.weights, two.graph.weights)
    embedded = embed(read_network(run, device="cpu"), digits[0])
    np.testing.assert_allclose(embedded, one.embedding, atol=1e-6)


class Stopped(Exception):
    """Raised where Ctrl-C would be."""


def stop_at(stage):
    def progress(name, _):
        if name == stage:
            raise Stopped

    return progress


def test_seconds_accumulate_over_resumed_legs(digits, whole, tmp_path):
    run = new_run(tmp_path / "run", digits[0])
    identity = {"config": QUICK.to_json(), "data": fingerprint(digits[0])}
    seconds = [0.0]
    for period in (2, 3):
        with pytest.raises(Stopped):
            execute(run, digits[0], progress=stop_at(f"period {period} of 3, training"))
        state = load_state(run.path(STATES), identity)
        assert state.n_periods == period - 1
        seconds.append(state.seconds)
    results = execute(run, digits[0], labels=digits[1])
    seconds.append(results.seconds)
    spent = [sum(period.seconds.values()) for period in results.history]
    for (before, after), least in zip(pairwise(seconds), spent, strict=True):
        assert after - before >= least
    assert read_results(run).seconds == results.seconds
    assert not run.path(STATES).exists()
    assert_same_files(run, whole[0])


def test_a_run_stopped_after_its_last_period_is_finished_from_its_state(
    digits, whole, tmp_path, monkeypatch
):
    run = new_run(tmp_path / "run", digits[0])

    def fail(*_, **__):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr("jule.runs.execute.finish", fail)
        with pytest.raises(Stopped):
            execute(run, digits[0])
    assert not run.is_finished
    execute(run, digits[0])
    assert_same_files(run, whole[0])


# One process is started, and forks a child for every leg: each is killed by SIGKILL, before its
# first, second, third, ... write, or at a random moment. The last leg of each run is let alone.
KILLER = """
import os, random, signal, sys, time
import numpy as np
import jule.files
from jule.runs.page_edits import labels_id
from jule.runs.execute import execute
from jule.runs.folder import RunFolder, create_run

samples = np.load(sys.argv[1])
writes, whole = map(RunFolder, sys.argv[2:4])
moments = [RunFolder(folder) for folder in sys.argv[4:]]
start = time.perf_counter()
execute(whole, samples)
seconds = time.perf_counter() - start

def forked(leg):
    pid = os.fork()
    if pid == 0:
        try:
            leg()
        finally:
            os._exit(0)
    return pid

def killed_before_write(number):
    def leg():
        calls, real = 0, os.replace
        def replace(*args):
            nonlocal calls
            calls += 1
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            real(*args)
        jule.files.os.replace = replace
        execute(writes, samples)
    return leg

legs = 0
while not writes.is_finished:
    legs += 1
    assert legs < 40
    os.waitpid(forked(killed_before_write(legs)), 0)
print("writes", legs)
random.seed(0)
for run in moments:
    for _ in range(2):
        pid = forked(lambda: execute(run, samples))
        time.sleep(random.uniform(0, seconds))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if not run.is_finished:
        assert os.waitpid(forked(lambda: execute(run, samples)), 0)[1] == 0
print("moments", len(moments))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks and kills as POSIX does")
def test_a_run_killed_at_any_moment_ends_as_if_nothing_had_happened(digits, whole, tmp_path):
    np.save(tmp_path / "samples.npy", digits[0])
    names = ("writes", "whole", "one", "two")
    runs = [new_run(tmp_path / name, digits[0]) for name in names]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, tmp_path / "samples.npy", *(run.folder for run in runs)],
        capture_output=True,
        text=True,
        timeout=1800,
        env={**os.environ, "NUMBA_THREADING_LAYER": "workqueue"},  # the one that can be forked
    )
    assert done.returncode == 0, done.stderr
    legs = int(done.stdout.split()[1])
    assert legs > 5
    for run in runs:
        assert_same_files(run, whole[0])
        assert not list(run.folder.rglob("*.part"))


# Data


def test_resuming_with_other_data_is_refused(digits, tmp_path):
    run = new_run(tmp_path / "run", digits[0])
    with pytest.raises(ValueError, match="the data differs from that of"):
        execute(run, digits[0][:100])
    with pytest.raises(ValueError, match="or different values"):
        execute(run, 255 - digits[0])


def test_the_samples_of_a_run_are_read_again(digits, tmp_path):
    np.savez(tmp_path / "digits.npz", images=digits[0])
    run = new_run(tmp_path / "run", digits[0], tmp_path / "digits.npz")
    np.testing.assert_array_equal(read_again(run).samples, digits[0])
    (tmp_path / "digits.npz").rename(tmp_path / "moved.npz")
    assert len(read_again(run, str(tmp_path / "moved.npz"))) == 200
    with pytest.raises(FileNotFoundError, match=r"digits\.npz"):
        read_again(run)
    with pytest.raises(ValueError, match="does not say where its images are"):
        read_again(new_run(tmp_path / "other", digits[0]))


def test_a_finished_run_is_read_and_not_executed_again(digits, whole):
    run, returned = whole
    before = run.path("manifest.json").stat().st_mtime_ns
    again = execute(run, digits[0], progress=stop_at("period 1 of 3, training"))
    assert again.seconds == returned.seconds
    assert run.path("manifest.json").stat().st_mtime_ns == before


def test_an_unfinished_run_cannot_be_read(digits, tmp_path):
    run = new_run(tmp_path / "run", digits[0])
    for read in (read_results, read_network):
        with pytest.raises(ValueError, match="is not finished: run jule resume"):
            read(run)


@pytest.mark.parametrize("name", sorted(FILES - {"snapshots"}))
@pytest.mark.parametrize("damage", ["cut", "empty"])
def test_a_damaged_file_is_an_error_that_names_the_run(whole, tmp_path, name, damage):
    shutil.copytree(whole[0].folder, tmp_path, dirs_exist_ok=True)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2] if damage == "cut" else b"")
    read = read_network if name == "network.safetensors" else read_results
    with pytest.raises(ValueError, match=f"{tmp_path / name} is damaged"):
        read(RunFolder(tmp_path))


@pytest.mark.parametrize("name", sorted(FILES - {"snapshots"}))
def test_one_flipped_bit_is_noticed(whole, tmp_path, name):
    shutil.copytree(whole[0].folder, tmp_path, dirs_exist_ok=True)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) * 2 // 3] ^= 4
    (tmp_path / name).write_bytes(content)
    read = read_network if name == "network.safetensors" else read_results
    with pytest.raises(ValueError, match=f"{tmp_path / name} is damaged"):
        read(RunFolder(tmp_path))


@pytest.mark.parametrize("name", sorted(FILES - {"snapshots", "manifest.json"}))
def test_a_half_deleted_run_is_not_whole(whole, tmp_path, name):
    shutil.copytree(whole[0].folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).unlink()
    read = read_network if name == "network.safetensors" else read_results
    with pytest.raises((ValueError, OSError), match=f"{tmp_path / name} is missing"):
        read(RunFolder(tmp_path))


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_files_that_are_links_are_not_read(whole, tmp_path):
    shutil.copytree(whole[0].folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "labels.csv").unlink()
    (tmp_path / "labels.csv").symlink_to(whole[0].path("labels.csv"))
    with pytest.raises(ValueError, match=r"labels\.csv is damaged \(a link or a device"):
        read_results(RunFolder(tmp_path))


def test_what_a_kill_left_of_a_finished_run_is_removed(whole, tmp_path):
    run = RunFolder(tmp_path)
    shutil.copytree(whole[0].folder, tmp_path, dirs_exist_ok=True)
    for name in ("state/state-0001.safetensors", ".jule-0123456789abcdef.part"):
        run.path(name).parent.mkdir(exist_ok=True)
        run.path(name).write_text("")
    for name in (".jule-update", ".jule-next"):
        run.path(name).mkdir()
    assert complete(run)  # the page is missing
    assert set(os.listdir(tmp_path)) == FILES
    shown = labels_id(whole[1].result.labels)
    run.update({"report.html": b"page", "report.json": json_bytes({"labels": "of another page"})})
    assert complete(run)
    run.update({"report.json": json_bytes({"labels": shown})})
    assert not complete(run)
    run.path("report.html").write_bytes(b"pag")
    assert complete(run)
    run.path("tree.npz").unlink()
    with pytest.raises(ValueError, match=r"tree\.npz is missing"):
        complete(run)


def test_a_run_that_replaces_another_is_resumed_in_its_place(digits, whole, tmp_path):
    old = create_run(tmp_path / "run", Config(n_clusters=2, min_images=100), fingerprint(np.eye(3)))
    old.update({"result.json": b"{}", "labels.csv": b"old"})
    run = create_run(old.folder, QUICK, fingerprint(digits[0]), overwrite=True)
    with pytest.raises(Stopped):
        execute(run, digits[0], progress=stop_at("period 2 of 3, training"))
    assert old.read("labels.csv") == b"old"
    execute(unfinished_run(old.folder), digits[0], labels=digits[1])
    assert set(os.listdir(old.folder)) == FILES
    assert_same_files(old, whole[0])


def test_the_history_is_plain_json(whole):
    run, results = whole
    assert json.loads(run.path("history.json").read_text()) == [
        asdict(period) for period in results.history
    ]
