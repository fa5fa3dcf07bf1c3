"""The joint experiment: measured once, resumed, and rendered as it was found."""

from dataclasses import replace

import pytest

from jule.joint import Config, preset
from jule.paper import joint, tables
from jule.paper.numbers import OURS_RC, OURS_SF
from jule.paper.records import write_record

QUICK = Config(n_clusters=10, rounds=1, n_periods=2, least_images=500, epochs=0.1)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(joint, "config_for", lambda *given: replace(QUICK, seed=given[-1]))


def test_a_run_is_measured_and_its_folder_removed(quick, tmp_path):
    record = joint.measure("digits", "default", 1, tmp_path / "results", tmp_path / "runs")
    assert record["settings"]["seed"] == record["seed"] == 1
    assert record["images trained on"] == 2 * 500
    for which in ("sf", "rc", "labels"):
        assert 0 < record["scores"][which]["nmi"] <= 1
    assert record["scores"]["labels"] == record["scores"][record["chosen"]]
    assert len(record["history"]) == 2
    assert list((tmp_path / "runs").iterdir()) == []
    path = joint.record_path(tmp_path / "results", "digits", "default", 1)
    before = path.stat().st_mtime_ns
    again = joint.measure("digits", "default", 1, tmp_path / "results", tmp_path / "runs")
    assert again["scores"] == record["scores"]
    assert path.stat().st_mtime_ns == before, "what is there is not measured again"


def test_other_settings_are_measured_anew(quick, monkeypatch, tmp_path):
    first = joint.measure("digits", "default", 0, tmp_path, tmp_path / "runs")
    monkeypatch.setattr(joint, "config_for", lambda *given: replace(QUICK, margin=0.3))
    second = joint.measure("digits", "default", 0, tmp_path, tmp_path / "runs")
    assert (first["settings"]["margin"], second["settings"]["margin"]) == (0.2, 0.3)


def test_only_the_papers_preset_has_a_rate_for_faces():
    assert joint.config_for("umist", "paper", 20, 0) == preset("paper", n_clusters=20, eta=0.2)
    assert joint.config_for("usps", "paper", 10, 0) == preset("paper", n_clusters=10)
    assert joint.config_for("umist", "default", 20, 3) == preset("default", n_clusters=20, seed=3)


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


def test_the_table_shows_mean_and_spread_over_the_seeds(tmp_path):
    for seed, nmi in enumerate((0.8, 0.9, 1.0)):
        write_record(joint.record_path(tmp_path, "usps", "default", seed), record(nmi))
    write_record(joint.record_path(tmp_path, "usps", "paper", 0), record(0.4))
    write_record(joint.record_path(tmp_path, "mnist-test", "default", 0), record(0.7))
    shown = tables.TABLES["joint default"](tmp_path)
    assert "| USPS | 0.858 / 0.922 |" in shown
    assert "0.900 ± 0.082 / 0.900 ± 0.082" in shown
    assert shown.count("\n") == 3, "sets without results have no row"
    assert "| MNIST-test |" in shown, "whose records are not MNIST-full's"
    assert "1.00 |" in tables.TABLES["presets"](tmp_path)
    chosen = tables.TABLES["chosen"](tmp_path)
    assert "better one was chosen | 4 |" in chosen
    assert "worse one was chosen | 1 |" in chosen
    assert "cost | 0.100 |" in chosen


def test_the_papers_numbers_are_those_of_nine_sets():
    assert OURS_SF.keys() == OURS_RC.keys()
    assert len(OURS_SF) == 9
    assert all(
        0 < value <= 1 for table in (OURS_SF, OURS_RC) for s in table.values() for value in s
    )
