"""Reliability: the purity of nearest neighbours, raw and learned."""

import numpy as np
import pytest

from jule.paper.driver import run_experiment
from jule.paper.experiment import Request
from jule.paper.records import read_record, write_record
from jule.paper.reliability import MOST, Reliability, neighbor_purity


def test_purity_is_the_mean_fraction_of_neighbours_of_the_same_class():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 20)
    neighbors = np.array([rng.permutation(np.delete(np.arange(20), i))[:7] for i in range(20)])
    expected = [
        np.mean([sum(classes[j] == classes[i] for j in neighbors[i, :k]) / k for i in range(20)])
        for k in range(1, 8)
    ]
    np.testing.assert_allclose(neighbor_purity(neighbors, classes), expected)
    np.testing.assert_array_equal(neighbor_purity(neighbors, np.zeros(20, int)), np.ones(7))


def test_raw_and_learned_neighbours_are_measured_once(runs, tmp_path):
    lines = []
    where = {"results": tmp_path / "results", "runs": runs}
    request = Request(datasets=("digits",), seeds=1)
    run_experiment(Reliability(), request, **where, say=lines.append)
    raw = read_record(tmp_path / "results" / "reliability" / "raw" / "digits.json")
    learned = read_record(tmp_path / "results" / "reliability" / "learned" / "digits-0.json")
    for record in (raw, learned):
        purity = np.array(record["purity"])
        assert len(purity) == MOST
        assert 0.9 < purity[0] <= 1
        assert purity[-1] < purity[0]
    assert raw["seed"] is None
    assert learned["seed"] == 0
    assert lines[0].startswith("digits      raw ")
    run_experiment(Reliability(), request, **where, say=lines.append)
    assert lines[2:] == lines[:2]
    assert read_record(tmp_path / "results" / "reliability" / "raw" / "digits.json") == raw
    (_, cell) = Reliability().cells(request)
    assert Reliability().is_current(cell, learned)
    changed = learned["joint"] | {"epochs": 1.0}
    assert not Reliability().is_current(cell, learned | {"joint": changed})


def test_the_table_and_the_figure_show_raw_beside_learned(tmp_path):
    assert Reliability().files(tmp_path) == {}
    folder = tmp_path / "reliability"
    write_record(folder / "raw" / "usps.json", {"purity": np.linspace(0.9, 0.5, 100).tolist()})
    for seed, last in enumerate((0.6, 0.8)):
        purity = np.linspace(1.0, last, 100).tolist()
        write_record(folder / "learned" / f"usps-{seed}.json", {"purity": purity})
    write_record(folder / "raw" / "umist.json", {"purity": [0.5] * 100})  # not learned yet
    lines = Reliability().render(tmp_path)["reliability"].splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("| USPS | 0.900 / 1.000 | ")
    assert lines[2].endswith(" | 0.500 / 0.700 | 2 |")
    pytest.importorskip("matplotlib")
    ((name, draw),) = Reliability().files(tmp_path).items()
    text = draw()
    assert name == "reliability/purity.svg"
    assert text == draw()
    assert all(word in text for word in ("USPS", "raw", "learned"))
    assert "UMist" not in text
