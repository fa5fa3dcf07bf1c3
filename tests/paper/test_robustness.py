"""Robustness: one parameter at a time, resumable cell by cell."""

from dataclasses import fields, replace

import pytest

from jule.joint.config import preset
from jule.paper import robustness
from jule.paper.driver import run_experiment
from jule.paper.experiment import Cell, Request
from jule.paper.raw_gdl import RawGDL
from jule.paper.records import read_record, write_record
from jule.paper.robustness import METHODS, VALUES, Robustness, config_for

QUICK = {"n_periods": 1, "min_images": 300, "epochs": 0.1}


def run(folder, experiment=None, **options):
    lines = []
    run_experiment(
        experiment or Robustness(),
        Request(datasets=("digits",), **options),
        results=folder,
        runs=folder / "runs",
        say=lines.append,
    )
    return lines


def test_linkage_with_the_default_neighbours_is_that_of_the_raw_experiment(tmp_path):
    lines = run(tmp_path, methods=("linkage",))
    assert len(lines) == 2
    found = read_record(tmp_path / "robustness" / "linkage" / "digits.json")["rows"]
    run(tmp_path, RawGDL())
    raw = read_record(tmp_path / "raw-gdl" / "digits.json")["rows"]
    for name in ("paper", "local"):
        assert found[name]["20"] == raw[name]["scores"]
        assert list(found[name]) == [f"{k}" for k in VALUES["K_s"]]
        assert len({row["nmi"] for row in found[name].values()}) > 3, "K_s matters"


def test_a_cell_is_learned_with_its_value_and_kept(tmp_path, monkeypatch):
    whole = config_for
    monkeypatch.setattr(robustness, "config_for", lambda cell, k: replace(whole(cell, k), **QUICK))
    (line,) = run(tmp_path, methods=("K_s 10",), seeds=1)
    record = read_record(tmp_path / "robustness" / "K_s" / "digits-10-0.json")
    assert record["settings"]["n_neighbors"] == 10
    assert record["settings"]["rounds"] == record["periods"] == 1
    assert record["images trained on"] == 300
    assert record["command"] == (
        "jule reproduce robustness --datasets digits --methods 'K_s 10' --seeds 1"
    )
    assert 0.3 < record["scores"]["rc"]["nmi"] <= 1
    assert f"RC {record['scores']['rc']['nmi']:.3f}" in line
    assert run(tmp_path, methods=("K_s 10",), seeds=1) == [line]


def test_every_method_changes_one_setting():
    default = preset(rounds=1, n_clusters=10, seed=2)
    for name, (parameter, value) in METHODS.items():
        config = config_for(Cell("", "usps", seed=2, method=name), 10)
        changed = {
            field.name
            for field in fields(config)
            if getattr(config, field.name) != getattr(default, field.name)
        }
        expected = "eta" if parameter == "eta" else "n_neighbors"
        assert changed <= {expected}
        assert getattr(config, expected) == value


def test_by_default_only_some_sets_are_learned(monkeypatch):
    monkeypatch.setattr(robustness, "has_dataset", lambda name: False)
    cells = Robustness().cells(Request())
    learned = {cell.dataset for cell in cells if cell.method != "linkage"}
    assert learned == set(robustness.LEARNED)
    assert {cell.dataset for cell in cells} == set(Robustness.datasets)
    seeds = {cell.dataset: cell.seed for cell in cells if cell.method == "eta 0.9"}  # the last
    assert seeds == {name: count - 1 for name, count in robustness.LEARNED.items()}
    asked = Robustness().cells(Request(datasets=("umist",), seeds=2, methods=("eta 0.2",)))
    assert [cell.path for cell in asked] == [
        "robustness/eta/umist-0.2-0.json",
        "robustness/eta/umist-0.2-1.json",
    ]
    assert len({cell.path for cell in cells}) == len(cells)
    with pytest.raises(ValueError, match=r"unknown method 'eta 0.25'"):
        Robustness().cells(Request(methods=("eta 0.25",)))


def test_cells_of_other_settings_are_not_current():
    (cell,) = Robustness().cells(Request(datasets=("usps",), seeds=1, methods=("eta 0.4",)))
    record = {"clusters": 10, "settings": config_for(cell, 10).to_json()}
    assert Robustness().is_current(cell, record)
    assert not Robustness().is_current(cell, record | {"clusters": 12})
    (raw,) = Robustness().cells(Request(datasets=("usps",), methods=("linkage",)))
    settings = robustness._raw_settings("usps")
    assert Robustness().is_current(raw, {"settings": settings})
    assert not Robustness().is_current(raw, {"settings": settings | {"K_s": [5]}})


def test_tables_and_the_figure_show_means_over_the_seeds(tmp_path):
    folder = tmp_path / "robustness"
    for seed, nmi in enumerate((0.8, 0.9)):
        scores = {"sf": {"nmi": nmi}, "rc": {"nmi": 0.95}}
        write_record(folder / "eta" / f"usps-0.2-{seed}.json", {"scores": scores})
        write_record(folder / "K_s" / f"usps-10-{seed}.json", {"scores": scores})
    rows = {name: {f"{k}": {"nmi": 0.5} for k in VALUES["K_s"]} for name in ("paper", "local")}
    write_record(folder / "linkage" / "usps.json", {"dataset": "usps", "rows": rows})
    tables = Robustness().render(tmp_path)
    eta = tables["robustness eta"].splitlines()
    assert eta[0] == "| NMI | eta 0.2 | eta 0.4 | eta 0.6 | eta 0.8 | eta 0.9 |"
    assert eta[2:] == [
        "| USPS, SF | 0.850 ± 0.050 | - | - | - | - |",
        "| USPS, RC | 0.950 ± 0.000 | - | - | - | - |",
    ]
    neighbours = tables["robustness neighbours"].splitlines()
    assert neighbours[2].startswith("| USPS, AC-GDL | 0.500 | 0.500 |")
    assert neighbours[4].startswith("| USPS, SF | - | 0.850 ± 0.050 | - |")
    pytest.importorskip("matplotlib")
    (draw,) = Robustness().files(tmp_path).values()
    text = draw()
    for shown in ("USPS", "η, with learning (SF dashed)", "AC-GDL on intensities", "NMI"):
        assert shown in text
    assert Robustness().files(tmp_path / "nothing") == {}
