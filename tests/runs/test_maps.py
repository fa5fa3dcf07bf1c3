"""The map of a run: written with it or later, read back, used for new samples, damaged."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load, save

from jule.backward.mapper import Mapper, place
from jule.files import array_bytes
from jule.images import fingerprint
from jule.joint import Config
from jule.runs.execute import execute, make_map
from jule.runs.folder import RunFolder, create_run
from jule.runs.manifest import DamagedError
from jule.runs.maps import read_map
from jule.runs.names import MAP, MAP_NETWORK, MAP_TABLE
from jule.runs.predict import predict_samples
from jule.runs.results import read_network, read_results
from tests.sealing import reseal

FILES = {MAP, MAP_TABLE, MAP_NETWORK}


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr("jule.joint.lowdim.FEWEST_STEPS", 4)


def blobs():
    random = np.random.default_rng(0)
    vectors = np.concatenate([random.normal(3 * k, 1, (20, 8)) for k in range(3)])
    return vectors.astype(np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with a map of two dimensions."""
    folder = tmp_path_factory.mktemp("mapped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jule.joint.lowdim.FEWEST_STEPS", 4)
        config = Config(n_clusters=3, rounds=1, min_images=200, n_components=2)
        run = create_run(folder, config, fingerprint(blobs()))
        execute(run, blobs())
    return run


@pytest.fixture
def run(made, tmp_path):
    shutil.copytree(made.folder, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def test_a_run_has_the_map_that_its_settings_ask_for(run):
    assert set(run.manifest()) >= FILES
    results = read_results(run)
    assert results.positions.shape == (60, 2)
    lines = run.read(MAP_TABLE).decode().splitlines()
    assert lines[0] == "path,x,y,index"
    assert len(lines) == 61
    shown = [float(cell) for cell in lines[1].split(",")[1:3]]
    np.testing.assert_allclose(shown, results.positions[0], atol=1e-4)


def test_new_samples_are_placed_where_the_same_ones_of_the_run_are(run):
    results, network = read_results(run), read_network(run, device="cpu")
    learned = read_map(run, results, device="cpu")
    names = [str(number) for number in range(5)]
    found = predict_samples(results, network, blobs()[:5], names, learned_map=learned)
    np.testing.assert_allclose(found.positions, results.positions[:5], atol=1e-3)
    assert list(found.columns())[-2:] == ["x", "y"]
    without = predict_samples(results, network, blobs()[:5], names)
    assert without.positions is None
    assert list(without.columns())[-1] == "index"


def test_a_map_is_learned_later_and_replaces_another(run):
    before = read_results(run)
    after = make_map(run, 3, seed=1)
    assert after.positions.shape == (60, 3)
    read = read_results(run)
    np.testing.assert_array_equal(read.positions, after.positions)
    np.testing.assert_array_equal(read.result.labels, before.result.labels)
    assert run.read(MAP_TABLE).startswith(b"path,x,y,z,index\r\n")
    learned = read_map(run, read, device="cpu")
    again = place(learned.mapper, read.result.embedding)
    np.testing.assert_allclose(again, read.positions, atol=1e-4)


def test_runs_without_a_map_are_read_as_before(trained):
    results = read_results(RunFolder(trained.folder / "run"))
    assert results.positions is None
    assert read_map(RunFolder(trained.folder / "run"), results) is None


def test_an_interrupted_map_leaves_the_run_as_it_was(run, monkeypatch):
    before = {name: run.read(name) for name in run.manifest()}

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("jule.joint.lowdim.train_map", stop)
    with pytest.raises(KeyboardInterrupt):
        make_map(run)
    assert {name: run.read(name) for name in run.manifest()} == before


def test_a_run_that_was_stopped_in_its_map_is_resumed(tmp_path, made, monkeypatch):
    run = create_run(tmp_path / "run", made.config(), fingerprint(blobs()))

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("jule.joint.lowdim.train_map", stop)
        with pytest.raises(KeyboardInterrupt):
            execute(run, blobs())
    assert not run.is_finished
    assert np.array_equal(execute(run, blobs()).positions, read_results(made).positions)


# Damage


def change(run, name, content):
    run.path(name).write_bytes(content)
    reseal(run.folder)


def test_positions_of_another_run_are_refused(run):
    change(run, MAP, array_bytes(np.zeros((7, 2), np.float32)))
    with pytest.raises(DamagedError, match=r"map\.npy"):
        read_results(run)


def test_positions_that_are_not_finite_are_refused(run):
    change(run, MAP, array_bytes(np.full((60, 2), np.nan, np.float32)))
    with pytest.raises(DamagedError, match="not finite"):
        read_results(run)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "map.safetensors"),
        (save({"a": np.zeros(3)}), "not those of a map"),
        (save(Mapper(5, 2, hidden=4).weights()), "it maps 5 numbers to 2"),
    ],
)
def test_a_damaged_network_of_the_map_is_named(run, content, reason):
    change(run, MAP_NETWORK, content)
    with pytest.raises(DamagedError, match=reason):
        read_map(run, read_results(run))


def test_weights_are_kept_as_they_are(run):
    results = read_results(run)
    learned = read_map(run, results, device="cpu")
    stored = load(run.read(MAP_NETWORK))
    assert {name: x.shape for name, x in learned.mapper.weights().items()} == {
        name: x.shape for name, x in stored.items()
    }
