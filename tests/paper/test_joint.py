"""The joint experiment: measured, resumed, and rendered as it was found."""

from dataclasses import replace

import numpy as np
import pytest

from jule.images import load_dataset
from jule.joint.config import Config, preset
from jule.paper import joint
from jule.paper.driver import run_experiment
from jule.paper.experiment import Cell, Request
from jule.paper.joint import Joint, config_for
from jule.paper.records import read_record, write_record

QUICK = Config(n_clusters=10, rounds=1, n_periods=2, min_images=500, epochs=0.1)


@pytest.fixture
def quick(monkeypatch):
    """Make the settings of every cell cheap."""
    monkeypatch.setattr(joint, "config_for", lambda cell, _k: replace(QUICK, seed=cell.seed))


def run(tmp_path, **options):
    lines = []
    run_experiment(
        Joint(),
        Request(datasets=("digits",), **options),
        results=tmp_path / "results",
        runs=tmp_path / "runs",
        say=lines.append,
    )
    return lines


def record_path(tmp_path, seed):
    return tmp_path / "results" / "joint" / "default" / f"digits-{seed}.json"


def test_a_run_is_measured_once_and_its_folder_removed(quick, tmp_path):
    (line,) = run(tmp_path, seeds=1)
    record = read_record(record_path(tmp_path, 0))
    assert record["seed"] == record["settings"]["seed"] == 0
    assert record["command"] == "jule reproduce joint --datasets digits --preset default --seeds 1"
    assert record["images trained on"] == 2 * 500
    assert len(record["history"]) == 2
    assert record["chosen"] in ("sf", "rc", "linkage")
    if record["chosen"] != "linkage":  # which so short a training may not beat
        assert record["scores"]["labels"] == record["scores"][record["chosen"]]
    assert f"RC {record['scores']['rc']['nmi']:.3f}" in line
    assert "(paper - / -)" in line
    assert list((tmp_path / "runs").iterdir()) == []
    assert run(tmp_path, seeds=1) == [line]
    assert read_record(record_path(tmp_path, 0)) == record


def test_a_finished_run_that_is_damaged_is_learned_again(runs):
    data, folder = load_dataset("digits"), runs / "learned-digits-0"
    whole = joint.learn(data, QUICK, folder)
    (folder / "embedding.npy").write_bytes(b"")
    again = joint.learn(data, QUICK, folder)
    np.testing.assert_array_equal(again.result.labels, whole.result.labels)
    assert np.load(folder / "embedding.npy").shape == (1797, 160)


def test_an_interrupted_run_is_resumed(quick, monkeypatch, tmp_path):
    run(tmp_path / "straight", seeds=1)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("jule.paper.joint.scores", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, seeds=1)
    folder = tmp_path / "runs" / "joint-default-digits-0"
    assert (folder / "config.json").exists()
    run(tmp_path, seeds=1)
    straight = read_record(record_path(tmp_path / "straight", 0))
    assert read_record(record_path(tmp_path, 0))["scores"] == straight["scores"]
    assert not folder.exists()


def test_a_record_without_a_field_has_its_default():
    cell = Cell("", "usps", "default", 1)
    settings = config_for(cell, 10).to_json()
    assert Joint().is_current(cell, {"clusters": 10, "settings": settings})
    del settings["margin"]
    assert Joint().is_current(cell, {"clusters": 10, "settings": settings})
    assert not Joint().is_current(cell, {"clusters": 10, "settings": settings | {"margin": 0.3}})


def test_only_the_papers_preset_has_a_rate_for_faces():
    umist, usps = (Cell("", name, "paper", 0) for name in ("umist", "usps"))
    assert config_for(umist, 20) == preset("paper", n_clusters=20, eta=0.2)
    assert config_for(usps, 10) == preset("paper", n_clusters=10)
    assert config_for(replace(umist, preset="default", seed=3), 20) == preset(
        "default", n_clusters=20, seed=3
    )


def test_an_unknown_preset_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"unknown preset 'papre'\. Did you mean 'paper'"):
        run(tmp_path, preset="papre")


def record(nmi, chosen="rc"):
    return {
        "scores": {
            "sf": {"nmi": 0.5, "ac": 0.5},
            "rc": {"nmi": nmi, "ac": nmi},
            "labels": {"nmi": nmi, "ac": nmi},
        },
        "chosen": chosen,
        "images trained on": 1000,
        "seconds of the periods": 12.0,
    }


def test_the_tables_show_mean_and_spread_over_the_seeds(tmp_path):
    for seed, nmi in enumerate((0.8, 0.9, 1.0)):
        write_record(tmp_path / "joint" / "default" / f"usps-{seed}.json", record(nmi))
    write_record(tmp_path / "joint" / "paper" / "usps-0.json", record(0.4))
    write_record(tmp_path / "joint" / "default" / "mnist-test-0.json", record(0.7))
    tables = Joint().render(tmp_path)
    shown = tables["joint default"]
    assert "| USPS | 0.858 / 0.922 |" in shown
    assert "0.900 ± 0.082 / 0.900 ± 0.082" in shown
    assert shown.count("\n") == 3, "sets without results have no row"
    assert "| MNIST-test |" in shown, "its records are not those of MNIST-full"
    assert "1.00 |" in tables["presets"]
    assert "better one was chosen | 4 |" in tables["chosen"]
    assert "worse one was chosen | 1 |" in tables["chosen"]
    assert "cost | 0.100 |" in tables["chosen"]
