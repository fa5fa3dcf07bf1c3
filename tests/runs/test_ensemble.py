"""Runs of several networks: their files, kills in each of them, and everything read back."""

import json
import os
import shutil

import numpy as np
import pytest

from jule import JULE
from jule.backward import embed
from jule.files import checked_json, json_bytes
from jule.images import fingerprint, load_dataset
from jule.joint import Config
from jule.runs.edits import EditSession
from jule.runs.execute import execute
from jule.runs.folder import RunFolder, create_run
from jule.runs.manifest import DamagedError
from jule.runs.predict import most_similar, predict_samples
from jule.runs.refining import accept, refine
from jule.runs.results import read_network, read_results
from tests.sealing import reseal

QUICK = Config(n_clusters=4, n_periods=2, rounds=1, min_images=200, epochs=1.0, ensemble=2)
SAME = (
    "labels.csv", "labels_sf.npy", "labels_rc.npy", "embedding.npy", "tree.npz", "tree-1.npz",
    "tree-2.npz", "network.safetensors",
)  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    few = data.labels < 4
    return data.images[few][:120], data.labels[few][:120]


@pytest.fixture(scope="module")
def whole(digits, tmp_path_factory):
    run = create_run(tmp_path_factory.mktemp("runs") / "whole", QUICK, fingerprint(digits[0]))
    return run, execute(run, digits[0], labels=digits[1])


class Stopped(Exception):
    """Stands for a kill."""


STAGES = (
    "network 1 of 2, period 2 of 2, training",
    "network 1 of 2, period 2 of 2, neighbours",
    "network 2 of 2, period 1 of 2, training",
    "network 2 of 2, period 2 of 2, embedding",
    "all networks, embedding",
    "all networks, neighbours",
)


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_killed_in_any_network_and_resumed_ends_with_the_same_files(
    digits, whole, tmp_path, stage
):
    def stop(now, _):
        if now == stage:
            raise Stopped

    run = create_run(tmp_path / "run", QUICK, fingerprint(digits[0]))
    with pytest.raises(Stopped):
        execute(run, digits[0], labels=digits[1], progress=stop)
    execute(run, digits[0], labels=digits[1])
    for name in SAME:
        assert run.read(name) == whole[0].read(name), name
    shots = sorted(os.listdir(whole[0].path("snapshots")))
    assert sorted(os.listdir(run.path("snapshots"))) == shots
    assert len(shots) == 1 + 2 * 2 + 1


def test_everything_is_read_back(digits, whole):
    run, returned = whole
    found = read_results(run)
    one, two = found.result, returned.result
    assert found.history == returned.history
    assert [period.member for period in found.history] == [0, 0, 1, 1, 2]
    np.testing.assert_array_equal(one.votes, two.votes)
    # labels.csv has four digits.
    np.testing.assert_allclose(one.confidence_in(one.labels), two.confidence, atol=1e-4)
    np.testing.assert_allclose(embed(read_network(run), digits[0]), two.embedding, atol=1e-6)
    assert set(found.columns(2)["cluster"]) == {0, 1}


def test_new_and_similar_images_are_found(digits, whole):
    run, returned = whole
    network = read_network(run)
    found = predict_samples(returned, network, digits[0][:20], [str(i) for i in range(20)])
    np.testing.assert_array_equal(found.labels, returned.result.labels[:20])
    nearest, cosines = most_similar(returned, network, digits[0][7])
    assert nearest[0] == 7
    assert cosines[0] == 1


@pytest.mark.parametrize("name", ["tree-1.npz", "tree-2.npz"])
def test_a_damaged_or_missing_tree_of_a_network_is_an_error(whole, tmp_path, name):
    shutil.copytree(whole[0].folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_bytes(b"x" + (tmp_path / name).read_bytes()[1:])
    with pytest.raises(DamagedError, match=f"{name} is damaged"):
        read_results(RunFolder(tmp_path))
    reseal(tmp_path)
    with pytest.raises(DamagedError, match=f"{name} is damaged"):
        read_results(RunFolder(tmp_path))
    (tmp_path / name).unlink()
    with pytest.raises((ValueError, OSError), match=f"{name} is missing"):
        read_results(RunFolder(tmp_path))


def test_runs_of_older_versions_have_one_network(digits, tmp_path):
    run = create_run(tmp_path, QUICK, fingerprint(digits[0]))
    about = json.loads(run.path("config.json").read_text())
    del about["config"]["ensemble"], about["checksum"]
    run.path("config.json").write_bytes(checked_json(about))
    assert RunFolder(tmp_path).config().ensemble == 1
    results = execute(RunFolder(tmp_path), digits[0])
    assert results.result.embedding.shape == (120, 160)
    history = json.loads((tmp_path / "history.json").read_text())
    for period in history:
        del period["member"]
    (tmp_path / "history.json").write_bytes(json_bytes(history))
    reseal(tmp_path)
    assert {period.member for period in read_results(RunFolder(tmp_path)).history} == {0}


def test_the_estimator_has_it_too(digits, whole, tmp_path):
    settings = {name: getattr(QUICK, name) for name in ("n_periods", "min_images", "epochs")}
    model = JULE(4, ensemble=2, rounds=1, settings=settings).fit(digits[0])
    np.testing.assert_array_equal(model.labels_, whole[1].result.labels)
    assert model.transform(digits[0][:3]).shape == (3, 320)
    assert len(model.history_) == 5
    model.save(tmp_path / "run")
    again = JULE.load(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(digits[0]), model.predict(digits[0]))
    assert again._results.config.ensemble == 2
    with pytest.raises(ValueError, match="ensemble must be 1 or more"):
        JULE(4, ensemble=0).fit(digits[0])


def test_each_network_is_refined_with_corrections(digits, whole, tmp_path):
    shutil.copytree(whole[0].folder, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    session = EditSession(run)
    one, two = (int(np.flatnonzero(session.state.labels == label)[0]) for label in (0, 1))
    session.add(session.editor.must_link([one, two]))
    before = read_network(run, device="cpu")
    refined = refine(run, digits[0], periods=1, device="cpu")
    labels = refined.found.result.labels
    assert labels[one] == labels[two]
    assert len(refined.found.result.member_trees) == 2
    more = refined.found.history[len(whole[1].history) :]
    assert [period.member for period in more] == [0, 1, 2]
    for member in range(2):
        old, new = (network.member(member) for network in (before, refined.embedder))
        assert np.abs(embed(old, digits[0]) - embed(new, digits[0])).max() > 1e-4
    accept(run, refined)
    np.testing.assert_array_equal(read_results(run).result.labels, refined.after.result.labels)
