"""Edits made on the page: applied strictly, kept by later ones, and the found labels kept too."""

import json
import os
import shutil

import numpy as np
import pytest

from jule.images import load_dataset
from jule.runs.edits import EditSession, apply_edits, parse_edits, read_edits
from jule.runs.folder import RunFolder
from jule.runs.page_edits import labels_id
from jule.runs.results import read_found, read_results
from jule.runs.tables import parse_labels
from tests.report.made import run_of
from tests.sealing import reseal

N, K = 60, 3
COPY, ORIGINAL = 11, 4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of digits, one of them an exact copy."""
    images = load_dataset("digits").images[:N].copy()
    images[COPY] = images[ORIGINAL]
    copies = np.arange(N)
    copies[COPY] = ORIGINAL
    names = [f"{number}.png" for number in range(N)]
    return run_of(tmp_path_factory.mktemp("made") / "run", images, K, names, first_copies=copies)


@pytest.fixture
def run(made, tmp_path):
    shutil.copytree(made.folder, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def edits_for(run, /, **changes):
    """The file that a page of the run as it is would download."""
    results = read_results(run)
    edits = {
        "format": "jule-page-edits-3",
        "run": results.id,
        "labels": labels_id(results.result.labels),
        "k": results.n_clusters,
        "names": {},
        "moves": [],
    }
    return edits | changes


def move(image, cluster):
    return {"image": int(image), "path": f"{image}.png", "cluster": int(cluster)}


def apply(run, edits):
    return apply_edits(run, parse_edits(edits))


def labels_of(run, name="labels.csv"):
    return parse_labels(run.path(name).read_bytes(), name).labels


def members(run, cluster):
    """Images of a cluster without copies."""
    inside = np.flatnonzero(labels_of(run) == cluster)
    return [image for image in inside.tolist() if image not in (COPY, ORIGINAL)]


def test_names_and_moves_are_written_and_the_found_labels_are_kept(run):
    before, content = labels_of(run), run.path("labels.csv").read_bytes()
    image = members(run, 0)[0]
    results, n_moved = apply(run, edits_for(run, names={"1": " ones "}, moves=[move(image, 2)]))
    assert n_moved == 1
    after = labels_of(run)
    assert after[image] == 2
    assert (after != before).sum() == 1
    assert run.path("labels_auto.csv").read_bytes() == content
    again = read_results(run)
    assert again.edited
    assert again.result.chosen == "edited"
    for found in (results, again):
        assert found.cluster_names == {1: "ones"}
        assert found.result.labels[image] == 2
        assert np.flatnonzero(found.by_hand).tolist() == [image]
    np.testing.assert_allclose(again.result.confidence, results.result.confidence, atol=5e-5)
    np.testing.assert_array_equal(again.result.tree.merges, results.result.tree.merges)
    np.testing.assert_array_equal(read_found(run).result.labels, before)


def test_apply_changes_labels_and_manifest_and_nothing_else(run):
    before = {path.name: path.read_bytes() for path in run.folder.iterdir() if path.is_file()}
    apply(run, edits_for(run, names={"0": "a"}, moves=[move(members(run, 0)[0], 1)]))
    apply(run, edits_for(run, names={"0": "b"}))
    after = {path.name: path.read_bytes() for path in run.folder.iterdir() if path.is_file()}
    assert set(after) == set(before) | {"labels_auto.csv", "edits.json"}
    changed = {name for name, content in before.items() if after[name] != content}
    assert changed == {"labels.csv", "manifest.json"}


@pytest.mark.parametrize("step", range(1, 12))
def test_interrupted_anywhere_names_and_labels_are_those_before_or_after(run, monkeypatch, step):
    before = run.path("labels.csv").read_bytes()
    edits = edits_for(run, names={"0": "zeros"}, moves=[move(members(run, 0)[0], 1)])
    calls = 0

    def stop_at_the_step(*_, **__):
        nonlocal calls
        calls += 1
        if calls == step:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        for name in ("replace", "fsync", "mkdir"):
            real = getattr(os, name)

            def instead(*args, real=real, **more):
                stop_at_the_step()
                return real(*args, **more)

            patch.setattr(os, name, instead)
        with pytest.raises(KeyboardInterrupt):
            apply(run, edits)
    results = read_results(run)
    if run.path("labels.csv").read_bytes() == before:
        assert not results.edited
        assert results.cluster_names == {}
        apply(run, edits)  # the page still fits
    assert read_results(run).cluster_names == {0: "zeros"}
    assert run.path("labels_auto.csv").read_bytes() == before


def test_a_second_apply_keeps_names_and_moves_of_the_first(run):
    a, b = members(run, 0)[:2]
    apply(run, edits_for(run, names={"0": "zeros", "1": "ones"}, moves=[move(a, 1)]))
    results, _ = apply(run, edits_for(run, names={"2": "twos"}, moves=[move(b, 2)]))
    assert results.cluster_names == {0: "zeros", 1: "ones", 2: "twos"}
    assert results.result.labels[[a, b]].tolist() == [1, 2]
    again = read_results(run)
    for found in (results, again):
        assert np.flatnonzero(found.by_hand).tolist() == sorted([a, b])
        assert (found.result.confidence[[a, b]] == 1).all()
    assert again.cluster_names == results.cluster_names


def test_cleared_names_vanish(run):
    apply(run, edits_for(run, names={"0": "zeros", "1": "ones"}))
    results, _ = apply(run, edits_for(run, names={"0": "", "1": " "}))
    assert results.cluster_names == read_results(run).cluster_names == {}


def test_names_survive_a_recut(run):
    apply(run, edits_for(run, names={"0": "zeros", "1": "ones", "2": "twos"}))
    before = labels_of(run)
    results, n_moved = apply(run, edits_for(run, k=5))
    assert n_moved == 0
    assert results.result.n_clusters == 5
    assert sorted(results.cluster_names.values()) == ["ones", "twos", "zeros"]
    for cluster, name in results.cluster_names.items():
        inside = results.result.labels == cluster
        was = ["zeros", "ones", "twos"].index(name)
        assert (before[inside] == was).mean() > 0.5


def test_a_recut_on_the_page_becomes_the_labels(run):
    results = read_results(run)
    expected = results.columns(7)["cluster"]
    after, _ = apply(run, edits_for(run, k=7))
    assert after.labels.tolist() == expected
    assert labels_of(run).tolist() == expected
    cut = read_results(run).result.tree.cut(7)
    assert len({*zip(cut.tolist(), expected, strict=True)}) == 7


def test_copies_move_together(run):
    other = (labels_of(run)[ORIGINAL] + 1) % K
    results, n_moved = apply(run, edits_for(run, moves=[move(COPY, other)]))
    assert n_moved == 2
    assert results.result.labels[[ORIGINAL, COPY]].tolist() == [other, other]
    assert (results.result.confidence[[ORIGINAL, COPY]] == 1).all()
    for k in (1, 2, 5, N - 1):
        cut = read_results(run).result.tree.cut(k)
        assert cut[ORIGINAL] == cut[COPY]


def test_more_clusters_than_different_images_can_be_edited(run):
    results, _ = apply(run, edits_for(run, k=N, names={"0": "first"}))
    assert results.result.n_clusters == N - 1
    assert results.result.labels[COPY] == results.result.labels[ORIGINAL]


def test_what_was_moved_is_certain_at_every_number_of_clusters(run):
    image = members(run, 0)[0]
    results, _ = apply(run, edits_for(run, moves=[move(image, 1)]))
    assert [results.columns(k)["confidence"][image] for k in (2, K, 9)] == [1.0, 1.0, 1.0]


def test_labels_in_another_order_are_not_mistaken_for_those_of_the_run(run):
    head, *rows = run.path("labels.csv").read_text().splitlines()
    run.path("labels.csv").write_text("\n".join([head, *sorted(rows, reverse=True)]))
    with pytest.raises(ValueError, match=r"labels\.csv is damaged \(it has changed since"):
        read_results(run)
    reseal(run.folder)
    with pytest.raises(ValueError, match=r"labels\.csv is damaged \(its rows are not those of"):
        read_results(run)


def test_clusters_keep_their_numbers_when_another_one_is_empty(run):
    gone = np.flatnonzero(labels_of(run) == 1).tolist()
    kept = members(run, 0)[0]
    moves = [move(image, 2) for image in gone] + [move(kept, 3)]
    edits = edits_for(run, names={"1": "gone", "2": "two", "3": "new"}, moves=moves)
    results, _ = apply(run, edits)
    assert np.unique(labels_of(run)).tolist() == [0, 2, 3]
    assert results.recut()[1] == {2: "two", 3: "new"}
    assert np.unique(results.result.labels).tolist() == [0, 1, 2]


def test_edits_of_an_older_page_are_added_to_those_it_did_not_know(run):
    a, b = members(run, 0)[:2]
    first = edits_for(run, names={"1": "ones"}, moves=[move(a, 1)])
    second = edits_for(run, names={"2": "twos"}, moves=[move(b, 1)])  # of the same page
    apply(run, first)
    found = labels_of(run, "labels_auto.csv")
    results, _ = apply(run, second)
    assert results.result.labels[[a, b]].tolist() == [1, 1]
    assert np.flatnonzero(results.by_hand).tolist() == sorted([a, b])
    assert results.cluster_names == {1: "ones", 2: "twos"}
    np.testing.assert_array_equal(labels_of(run, "labels_auto.csv"), found)


def test_two_clusters_of_one_name_get_two(run):
    with pytest.warns(UserWarning, match="two clusters are called 'cats'"):
        results, _ = apply(run, edits_for(run, names={"0": "cats", "2": "cats"}))
    assert results.cluster_names == {0: "cats", 2: "cats (2)"}


def test_clusters_that_swap_all_their_images_swap_their_names(run):
    before = labels_of(run)
    moves = [move(image, 1 - before[image]) for image in np.flatnonzero(before < 2)]
    results, _ = apply(run, edits_for(run, names={"0": "zeros", "1": "ones"}, moves=moves))
    by_name = {name: results.result.labels == c for c, name in results.cluster_names.items()}
    np.testing.assert_array_equal(by_name["zeros"], before == 1)
    np.testing.assert_array_equal(by_name["ones"], before == 0)


def test_a_page_that_is_neither_of_these_is_refused(run):
    apply(run, edits_for(run, moves=[move(members(run, 0)[0], 1)]))
    middle = edits_for(run)
    apply(run, edits_for(run, moves=[move(members(run, 0)[0], 2)]))
    with pytest.raises(ValueError, match="older than the run's labels: make the page again"):
        apply(run, middle)


def test_the_shelf_comes_after_the_clusters_and_new_ones_after_it(run):
    one, two, three = members(run, 0)[:3]
    session = EditSession(run)
    session.add(session.editor.shelve([one]))
    session.write_labels()
    moves = [move(two, K), move(three, K + 1)]
    results, n_moved = apply(run, edits_for(run, moves=moves, names={str(K + 1): "new"}))
    assert (n_moved, results.n_clusters) == (2, K + 1)
    assert results.labels[[one, two, three]].tolist() == [-1, -1, K]
    assert results.recut()[1][K] == "new"


def test_a_page_without_clusters_can_be_edited(run):
    session = EditSession(run)
    session.add(session.editor.shelve(range(N)))
    session.write_labels()
    edits = edits_for(run, edits=[{"edit": "move", "images": [5, 6], "to": None}])
    assert edits["k"] == 0
    results, n_moved = apply(run, edits)
    assert (n_moved, results.n_clusters) == (2, 1)
    assert np.flatnonzero(results.labels != -1).tolist() == [5, 6]


BAD = {
    "another format": ({"format": "jule-edits-9"}, "format"),
    "the first format": ({"format": "jule-edits-1"}, "make the page again"),
    "a format that counts the shelf": ({"format": "jule-edits-2"}, "make the page again"),
    "another run": ({"run": "00000000"}, "another run"),
    "no run": ({"run": None}, "'run' must be"),
    "other labels": ({"labels": "00000000"}, "older than"),
    "no labels": ({"labels": None}, "'labels' must be"),
    "no k": ({"k": None}, "'k' must be"),
    "k of text": ({"k": "3"}, "'k' must be"),
    "k of true": ({"k": True}, "'k' must be"),
    "k below one": ({"k": 0}, "'k' must be"),
    "k too large": ({"k": 999}, "between 1 and 60"),
    "an unknown key": ({"script": "x"}, "'script'"),
    "an unknown image": ({"moves": [move(99, 1)]}, "image 99"),
    "an image below zero": ({"moves": [move(-1, 1)]}, "image -1"),
    "another path": ({"moves": [{"image": 1, "path": "x.png", "cluster": 1}]}, r"1\.png"),
    "an unknown cluster": ({"moves": [move(1, 9)]}, "cluster 9"),
    "a new cluster with a gap": ({"moves": [move(1, 4), move(2, 4)]}, "cluster 3"),
    "a cluster below zero": ({"moves": [move(1, -1)]}, "cluster -1"),
    "a cluster far too large": ({"moves": [move(1, 2_000_000_000)]}, "cluster 2000000000"),
    "a cluster beyond all numbers": ({"moves": [move(1, 10**30)]}, "cluster 10000"),
    "a move of true": ({"moves": [{"image": True, "path": "1.png", "cluster": 1}]}, "whole"),
    "a move without a path": ({"moves": [{"image": 1, "cluster": 1}]}, "image, path and cluster"),
    "a name of no cluster": ({"names": {"9": "nine"}}, "cluster 9"),
    "a name for text": ({"names": {"x": "nine"}}, "cluster number"),
    "a name below zero": ({"names": {"-1": "x"}}, "cluster number"),
    "a name that is a number": ({"names": {"1": 1}}, "name of cluster 1"),
    "a long name": ({"names": {"1": "x" * 201}}, "at most 200"),
    "a name that is no text": ({"names": {"1": "\ud800"}}, "name of cluster 1"),
    "names in a list": ({"names": []}, "'names'"),
    "moves in an object": ({"moves": {}}, "'moves'"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD.keys())
def test_bad_edits_are_refused_and_nothing_is_written(made, changes, message):
    files = {path: path.stat().st_mtime_ns for path in made.folder.iterdir()}
    with pytest.raises(ValueError, match=message):
        apply(made, edits_for(made, **changes))
    assert {path: path.stat().st_mtime_ns for path in made.folder.iterdir()} == files


@pytest.mark.parametrize("value", [None, 3, [1], "x"])
def test_other_json_is_no_file_of_edits(value):
    with pytest.raises(ValueError, match="not a file of edits"):
        parse_edits(value)


def test_a_file_that_cannot_be_used_is_named(tmp_path):
    path = tmp_path / "edits.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"edits\.json is not JSON"):
        read_edits(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"edits\.json is not JSON"):
        read_edits(path)
    path.write_text(json.dumps([1]))
    with pytest.raises(ValueError, match=r"edits\.json: not a file of edits"):
        read_edits(path)
