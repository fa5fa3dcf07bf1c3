"""The clustering tables: measured once, resumed, and rendered beside the paper's numbers."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from jule.baselines import METHODS
from jule.forward import prepare
from jule.joint.config import Config
from jule.paper import clustering, learned
from jule.paper.clustering import ROWS, Table3, Table4, Table10, Table11
from jule.paper.driver import run_experiment
from jule.paper.experiment import Request
from jule.paper.numbers import paper_methods
from jule.paper.records import read_record, write_record

QUICK = Config(n_clusters=10, rounds=1, n_periods=2, min_images=500, epochs=0.1)


def run(table, tmp_path, **options):
    lines = []
    run_experiment(
        table,
        Request(datasets=("digits",), **options),
        results=tmp_path / "results",
        runs=tmp_path / "runs",
        say=lines.append,
    )
    return lines


def record_path(tmp_path, features, row, seed=0):
    return tmp_path / "results" / "clustering" / features / row / f"digits-{seed}.json"


@pytest.mark.parametrize("table", [Table3(), Table4(), Table10(), Table11()])
def test_every_method_of_the_paper_has_a_row(table):
    methods = [name for name in paper_methods(table.features) if not name.startswith("OURS")]
    compared = [row.name for row in table.rows() if row.is_paper]
    assert compared == [row.method for row in table.rows() if row.is_paper]
    assert sorted(compared) == sorted(methods)


def test_the_paper_compares_twelve_methods():
    assert list(METHODS) == [
        *("K-means", "SC-NJW", "SC-ST", "SC-LS", "N-Cuts", "AC-Link", "AC-Zell", "AC-GDL"),
        *("AC-PIC", "NMF-LP", "NMF-D", "TSC-D"),
    ]
    assert len({row.slug for row in ROWS}) == len(ROWS)
    for row in ROWS:
        row.make("learned", 3, seed=1)  # raises for parameters that the method does not have


def test_rows_are_prepared_as_the_papers_numbers_need_it():
    by_name = {row.name: row for row in ROWS}
    assert by_name["AC-GDL"].preparation("usps") == "center-l2"
    assert by_name["AC-GDL"].preparation("umist") == "l2"
    assert by_name["AC-GDL (absorbing)"].preparation("usps") == "l2"
    assert by_name["N-Cuts"].preparation("usps") == "l2"
    assert {row.method for row in ROWS if row.is_non_negative} == {"NMF-LP"}
    assert {row.method for row in ROWS if not row.is_rotation_invariant} == {"NMF-LP", "NMF-D"}


def test_wide_intensities_are_rotated_where_only_distances_matter(monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (4, 5, 5), dtype=np.uint8)
    monkeypatch.setattr(clustering, "_load", lambda _: SimpleNamespace(images=images))
    scaled = prepare(images, "l2")
    rotated = clustering._intensities("wide", "l2", True)
    assert rotated.shape == (4, 4)
    np.testing.assert_allclose(rotated @ rotated.T, scaled @ scaled.T, atol=1e-6)
    np.testing.assert_array_equal(clustering._intensities("wide", "l2", False), scaled)


def test_methods_that_refuse_negative_values_get_a_shifted_representation(tmp_path, monkeypatch):
    learned = np.random.default_rng(0).normal(size=(1797, 4))
    monkeypatch.setattr(clustering, "_learned", lambda *_: (learned, {}))
    (line,) = run(Table4(), tmp_path, methods=("NMF-LP",), seeds=1)
    assert "NMI" in line


def test_a_cell_is_measured_once_and_tables_share_it(tmp_path):
    (line,) = run(Table3(), tmp_path, methods=("ac-gdl",))
    path = record_path(tmp_path, "raw", "ac-gdl")
    record = read_record(path)
    assert record["settings"]["preparation"] == "center-l2"
    assert record["settings"]["parameters"] == {"min_cluster_size": 1}
    assert record["seed"] is None
    assert record["command"] == "jule reproduce table3 --datasets digits --methods AC-GDL --seeds 1"
    assert f"NMI {record['scores']['nmi']:.3f}" in line
    assert run(Table10(), tmp_path, methods=("AC-GDL",)) == [line]
    assert read_record(path) == record
    write_record(path, record | {"settings": {}})  # as if measured with other settings
    run(Table3(), tmp_path, methods=("AC-GDL",))
    assert read_record(path)["settings"] == record["settings"]


def test_random_methods_have_several_seeds(tmp_path):
    lines = run(Table3(), tmp_path, methods=("K-means",), seeds=2)
    assert len(lines) == 2
    assert [read_record(record_path(tmp_path, "raw", "k-means", s))["seed"] for s in (0, 1)] == [
        0,
        1,
    ]


def test_methods_run_on_the_representation_of_one_run_per_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(learned, "config_for", lambda cell, _k: replace(QUICK, seed=cell.seed))
    run(Table4(), tmp_path, methods=("AC-GDL", "K-means"), seeds=2)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [
        "learned-digits-0",
        "learned-digits-1",
    ]
    found = [read_record(record_path(tmp_path, "learned", "ac-gdl", s)) for s in (0, 1)]
    assert [one["joint"]["settings"]["seed"] for one in found] == [0, 1]
    assert all(one["scores"]["nmi"] > 0.5 for one in found)
    assert [one["seed"] for one in found] == [0, 1]
    assert all(one["seconds"] > 0 and one["warnings"] == [] for one in found)


def test_a_representation_of_other_settings_is_not_current(tmp_path, monkeypatch):
    monkeypatch.setattr(learned, "config_for", lambda _cell, _k: QUICK)
    run(Table4(), tmp_path, methods=("AC-GDL",), seeds=1)
    record = read_record(record_path(tmp_path, "learned", "ac-gdl"))
    (cell,) = Table4().cells(Request(datasets=("digits",), methods=("AC-GDL",), seeds=1))
    assert Table4().is_current(cell, record)
    monkeypatch.setattr(learned, "config_for", lambda _cell, _k: replace(QUICK, epochs=0.2))
    assert not Table4().is_current(cell, record)


def test_what_does_not_fit_is_recorded_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr("jule.memory.available_memory", lambda: 1000)
    (line,) = run(Table3(), tmp_path, methods=("AC-Link",))
    assert "of memory" in line
    record = read_record(record_path(tmp_path, "raw", "ac-link"))
    assert "scores" not in record
    assert "of memory" in record["refused"]


def fake(nmi, dataset="usps"):
    return {"dataset": dataset, "scores": {"nmi": nmi, "ac": nmi / 2}}


def test_tables_show_means_beside_the_papers_numbers_with_the_best_in_bold(tmp_path):
    folder = tmp_path / "clustering" / "raw"
    for seed, value in enumerate((0.4, 0.6)):
        write_record(folder / "k-means" / f"usps-{seed}.json", fake(value))
    write_record(folder / "ac-gdl" / "usps-0.json", fake(0.9))
    write_record(folder / "ac-link" / "usps-0.json", {"dataset": "usps", "refused": "too large"})
    write_record(
        tmp_path / "joint" / "default" / "usps-0.json",
        {"scores": {"sf": fake(0.8)["scores"], "rc": fake(0.95)["scores"]}},
    )
    text = Table3().render(tmp_path)["table3"]
    lines = text.splitlines()
    assert lines[0] == "| NMI | USPS |"
    assert "| K-means | 0.500 (0.447) |" in lines
    assert "| AC-GDL | 0.900 (0.854) |" in lines
    assert any(line.startswith("| AC-Link | memory (") for line in lines)
    assert any(line.startswith("| SC-LS | - (") for line in lines)
    assert "| OURS-SF | 0.800 (0.858) |" in lines
    assert "| OURS-RC | **0.950** (0.913) |" in lines
    assert "| K-means | 0.250 (0.467) |" in Table10().render(tmp_path)["table10"].splitlines()
    (tex,) = Table3().files(tmp_path).values()
    assert r"OURS-RC & \textbf{0.950} (0.913) \\" in tex.splitlines()
    write_record(folder / "k-means" / "mnist-0.json", fake(0.5, "mnist"))
    lines = Table3().render(tmp_path)["table3"].splitlines()
    assert "| HDBSCAN | - | time |" in lines


def test_tables_without_records_are_empty(tmp_path):
    assert Table4().files(tmp_path) == {}
    assert Table4().render(tmp_path)["table4"].splitlines()[0] == "| NMI |"
