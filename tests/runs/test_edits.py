"""Changes made on the page, taken back: strictly, and without losing what the machine found."""

import json

import numpy as np
import pytest

from jule.images import load_dataset
from jule.runs.edits import apply_edits, parse_edits, read_edits
from jule.report.inputs import cluster_names, labels_id, run_id
from jule.runs import read_results
from jule.runs.tables import read_labels
from tests.report.made import run_of


@pytest.fixture
def run(tmp_path):
    images = load_dataset("digits").images[:60]
    return run_of(tmp_path / "run", images, 3, names=[f"{i}.png" for i in range(60)])


def edits_of(run, /, **changes):
    finished = read_results(run)
    edits = {
        "format": "jule-edits-1",
        "run": run_id(finished),
        "labels": labels_id(finished.result.labels),
        "k": None,
        "names": {},
        "moves": [],
    }
    return edits | changes


def move(image, cluster):
    return {"image": image, "path": f"{image}.png", "cluster": cluster}


def labels_of(run, name="labels.csv"):
    return read_labels(run.path(name))[1]


def test_names_and_moves_reach_the_run(run):
    before = labels_of(run)
    image = int(np.flatnonzero(before == 0)[0])
    edits = edits_of(run, names={"1": " ones "}, moves=[move(image, 2)])
    applied = apply_edits(run, parse_edits(edits))
    assert applied.n_moved == 1
    after = labels_of(run)
    assert after[image] == 2
    assert (after != before).sum() == 1
    assert cluster_names(run) == {1: "ones"}
    np.testing.assert_array_equal(labels_of(run, "labels_auto.csv"), before)
    summary = run.report().summary
    assert summary["groups"][1]["name"] == "ones"
    assert summary["edited"]
    assert read_results(run).result.labels[image] == 2


def test_a_page_made_before_the_last_change_still_counts(run):
    before = labels_of(run)
    a, b = np.flatnonzero(before == 0)[:2].tolist()
    first = edits_of(run, moves=[move(a, 1)])
    second = edits_of(run, moves=[move(a, 1), move(b, 1)])
    apply_edits(run, parse_edits(first))
    apply_edits(run, parse_edits(second))
    assert labels_of(run)[[a, b]].tolist() == [1, 1]
    np.testing.assert_array_equal(labels_of(run, "labels_auto.csv"), before)


def test_a_cut_of_the_tree_becomes_the_labels(run):
    apply_edits(run, parse_edits(edits_of(run, k=7, labels=None)))
    finished = read_results(run)
    np.testing.assert_array_equal(labels_of(run), finished.result.tree.cut(7))


def test_new_and_empty_clusters_leave_no_gap(run):
    before = labels_of(run)
    gone = np.flatnonzero(before == 1).tolist()
    kept = int(np.flatnonzero(before == 0)[0])
    moves = [move(image, 2) for image in gone] + [move(kept, 3)]
    edits = edits_of(run, names={"1": "gone", "2": "two", "3": "new"}, moves=moves)
    apply_edits(run, parse_edits(edits))
    assert np.unique(labels_of(run)).tolist() == [0, 1, 2]
    assert cluster_names(run) == {1: "two", 2: "new"}


BAD = {
    "another format": ({"format": "jule-edits-9"}, "format"),
    "another run": ({"run": "00000000"}, "another run"),
    "other labels": ({"labels": "00000000"}, "older than"),
    "no start": ({"labels": None}, "one of 'k' and 'labels'"),
    "two starts": ({"k": 3}, "one of 'k' and 'labels'"),
    "k of text": ({"k": "3", "labels": None}, "'k' must be"),
    "k too large": ({"k": 999, "labels": None}, "between 1 and 60"),
    "an unknown key": ({"script": "x"}, "'script'"),
    "an unknown image": ({"moves": [move(99, 1)]}, "image 99"),
    "another path": ({"moves": [{"image": 1, "path": "x.png", "cluster": 1}]}, r"1\.png"),
    "an unknown cluster": ({"moves": [move(1, 9)]}, "cluster"),
    "a cluster below zero": ({"moves": [move(1, -1)]}, "cluster -1"),
    "a move of true": ({"moves": [{"image": True, "path": "1.png", "cluster": 1}]}, "whole"),
    "a move without a path": ({"moves": [{"image": 1, "cluster": 1}]}, "image, path and cluster"),
    "a name of nobody": ({"names": {"9": "nine"}}, "cluster 9"),
    "a name for text": ({"names": {"x": "nine"}}, "cluster number"),
    "an empty name": ({"names": {"1": " "}}, "name of cluster 1"),
    "a long name": ({"names": {"1": "x" * 201}}, "1 to 200"),
    "names in a list": ({"names": []}, "'names'"),
    "moves in an object": ({"moves": {}}, "'moves'"),
}


@pytest.mark.parametrize(("changes", "said"), BAD.values(), ids=BAD.keys())
def test_bad_edits_are_refused_and_nothing_is_touched(run, changes, said):
    before = run.path("labels.csv").read_bytes()
    with pytest.raises(ValueError, match=said):
        apply_edits(run, parse_edits(edits_of(run, **changes)))
    assert run.path("labels.csv").read_bytes() == before
    assert not run.path("labels_auto.csv").exists()
    assert not run.path("cluster_names.json").exists()


def test_a_file_that_is_not_json_is_named(tmp_path):
    path = tmp_path / "edits.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"edits\.json is not JSON"):
        read_edits(path)
    path.write_text(json.dumps([1]))
    with pytest.raises(ValueError, match=r"edits\.json: not a file of changes"):
        read_edits(path)
