"""Stages: positions and clusters of a run, recorded and drawn."""

import numpy as np
import pytest

from jule.paper.driver import run_experiment
from jule.paper.experiment import Request
from jule.paper.records import read_record, write_record
from jule.paper.stages import Stages, draw_stages, whole_positions
from jule.report.inputs import read_snapshots
from jule.runs.folder import RunFolder


def test_positions_keep_their_proportions():
    positions = np.random.default_rng(0).normal(size=(50, 3)) * [3.0, 1.0, 0.1]
    found = whole_positions(positions)
    assert found.min() == 0
    assert found.max() == 999
    moved = positions - positions.min(axis=0)
    np.testing.assert_allclose(found / 999, moved / moved.max(), atol=6e-4)
    np.testing.assert_array_equal(whole_positions(np.ones((4, 3))), np.zeros((4, 3)))


def test_the_stages_of_a_run_are_recorded(runs, tmp_path):
    lines = []
    where = {"results": tmp_path / "results", "runs": runs}
    run_experiment(Stages(), Request(datasets=("digits",)), **where, say=lines.append)
    record = read_record(tmp_path / "results" / "stages" / "digits.json")
    shots = read_snapshots(RunFolder(runs / "learned-digits-0"), 1797)
    assert [stage["clusters"] for stage in record["stages"]] == [s.n_clusters for s in shots]
    assert [stage["periods"] for stage in record["stages"]] == [0, 1, 2]
    assert record["stages"][-1]["clusters"] == 10
    for stage, shot in zip(record["stages"], shots, strict=True):
        assert stage["cluster"].split() == [str(label) for label in shot.labels]
        assert len(stage["x"].split()) == len(stage["z"].split()) == 1797
        assert 0 < stage["nmi of the samples shown"] < 1
    assert "10 clusters  (paper from -)" in lines[0]
    (cell,) = Stages().cells(Request(datasets=("digits",)))
    assert Stages().is_current(cell, record)
    assert not Stages().is_current(cell, record | {"joint": record["joint"] | {"epochs": 1.0}})


def stage(periods, clusters):
    places = " ".join(map(str, range(20)))
    return {
        "periods": periods,
        "clusters": clusters,
        "nmi of the samples shown": 0.5,
        **dict.fromkeys("xyz", places),
        "cluster": " ".join(str(number % clusters) for number in range(20)),
    }


def test_tables_and_figures_come_from_records(tmp_path):
    assert Stages().files(tmp_path) == {}
    stages = [stage(0, 15), stage(1, 7), stage(2, 3)]
    write_record(tmp_path / "stages" / "umist.json", {"stages": stages})
    assert Stages().render(tmp_path)["stages"].splitlines()[2:] == [
        "| UMist | 15 (0.500) | 7 (0.500) | 3 (0.500) | 188 |"
    ]
    pytest.importorskip("matplotlib")
    ((name, draw),) = Stages().files(tmp_path).items()
    text = draw()
    assert name == "stages/umist.svg"
    assert text == draw_stages(stages)  # to the last byte
    for title in ("15 clusters, before training", "7 clusters, after period 1"):
        assert title in text
    assert "<image" in text  # thousands of points are one picture
    assert len(text) < 300_000
