"""Stages: positions and clusters of a run, recorded and drawn."""

import numpy as np
import pytest

from jule.paper.driver import run_experiment
from jule.paper.experiment import Request
from jule.paper.records import read_record, write_record
from jule.paper.stages import Stages, draw_stages, project, whole_positions
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


def test_points_are_seen_from_the_front_and_drawn_from_far_to_near():
    positions = np.random.default_rng(0).integers(0, 999, (200, 3))
    seen, order = project(positions)
    # A point straight towards the reader is seen at the same place, and drawn later.
    towards = np.array([np.cos(np.pi / 3), -np.sin(np.pi / 3), np.tan(np.pi / 6)])
    near, pair = project(np.rint(1000 * np.stack([np.zeros(3), towards])).astype(int))
    np.testing.assert_allclose(near[0], near[1], atol=1.0)
    assert pair.tolist() == [0, 1]
    # Nothing gets longer, and what is lost is the distance along the line of sight.
    far = towards / np.linalg.norm(towards)
    along = positions @ far
    np.testing.assert_allclose(
        np.square(seen).sum(axis=1) + along**2, np.square(positions).sum(axis=1)
    )
    assert (np.diff(along[order]) >= -1e-6).all()


def test_points_at_one_distance_keep_their_order():
    positions = np.repeat([[5, 3, 1], [0, 0, 0], [9, 9, 9]], 50, axis=0)
    _, order = project(positions)
    for start in range(0, 150, 50):
        kept = order[(order >= start) & (order < start + 50)]
        assert kept.tolist() == list(range(start, start + 50))
    level = np.array([[0, 2 * k, 3 * k] for k in range(300)])  # equally far, but for rounding
    assert project(level)[1].tolist() == list(range(300))


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
