"""Edits of a run, saved one by one: nothing is lost, and two writers notice each other."""

import json
import shutil
import time
import warnings

import numpy as np
import pytest

from jule.corrections import Edit, EditError, EditLog, Picture
from jule.forward.init import number_by_first_sample
from jule.images import load_dataset
from jule.locks import hold
from jule.runs.corrected import with_state
from jule.runs.edits import EditSession, StaleError, apply_edits, read_edits
from jule.runs.folder import RunFolder
from jule.runs.results import read_results
from tests.report.made import run_of
from tests.sealing import reseal

N, K = 60, 4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    images = load_dataset("digits").images[:N]
    names = [f"{number}.png" for number in range(N)]
    return run_of(tmp_path_factory.mktemp("made") / "run", images, K, names)


@pytest.fixture
def run(made, tmp_path):
    shutil.copytree(made.folder, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def test_edits_are_there_when_the_run_is_read_again(run):
    session = EditSession(run)
    editor = session.editor
    size = int((session.state.labels == 0).sum())
    session.add(editor.name(0, "cats"))
    session.add(editor.split(0))
    session.add(editor.move([5], 1))
    session.add(editor.shelve([7]))
    again = EditSession(run)
    np.testing.assert_array_equal(again.state.labels, session.state.labels)
    assert again.revision == session.revision == 4
    results = read_results(run)
    assert "cats" in results.cluster_names.values()
    assert results.cluster_names[results.shelf] == "unsure"
    assert results.shelf == results.result.n_clusters - 1
    assert np.flatnonzero(results.result.labels == results.shelf).tolist() == [7]
    assert np.flatnonzero(results.by_hand).tolist() == [5, 7]
    assert (results.result.labels == 0).sum() < size
    cut = results.result.tree.cut(results.result.n_clusters)
    np.testing.assert_array_equal(cut, number_by_first_sample(results.result.labels))


def test_a_split_is_one_step_down_and_a_merge_takes_it_back(run):
    session = EditSession(run)
    before = session.state.labels.copy()
    session.add(session.editor.split(2))
    new = session.state.next_label - 1
    assert set(before[session.state.labels == new].tolist()) == {2}
    finer = session.found.result.tree.cut(N - 1)
    assert finer.max() == N - 2
    session.add(session.editor.merge(2, new))
    np.testing.assert_array_equal(session.state.labels, before)
    for _ in range(2):
        session.undo()
    np.testing.assert_array_equal(session.state.labels, before)


def test_two_writers_do_not_overwrite_each_other(run):
    one, other = EditSession(run), EditSession(run)
    seen = other.revision
    one.add(one.editor.name(0, "cats"), revision=one.revision)
    with pytest.raises(StaleError, match="in another window") as caught:
        other.add(other.editor.name(1, "dogs"), revision=seen)
    assert caught.value.revision == other.revision == 1  # and it knows the new ones now
    assert other.state.names == {0: "cats"}
    other.add(other.editor.name(1, "dogs"), revision=other.revision)
    one.undo(revision=one.refresh())
    assert read_results(run).cluster_names == {0: "cats"}


def test_without_a_revision_edits_follow_those_of_others(run):
    one, other = EditSession(run), EditSession(run)
    one.add(one.editor.name(0, "cats"))
    other.add(other.editor.name(1, "dogs"))
    assert read_results(run).cluster_names == {0: "cats", 1: "dogs"}


def test_an_edit_that_is_not_possible_or_not_saved_changes_nothing(run, monkeypatch):
    session = EditSession(run)
    session.add(session.editor.name(0, "cats"))
    with pytest.raises(EditError, match="already called 'cats': merge them"):
        session.add(session.editor.name(1, "cats"))
    with pytest.raises(EditError, match="'unsure' is for pictures that fit nowhere"):
        session.add(session.editor.name(1, "Unsure"))
    with pytest.raises(EditError, match="there is no cluster 99"):
        session.editor.split(99)
    with pytest.raises(EditError, match="there is no picture 99"):
        session.editor.move([99], 0)
    with pytest.raises(EditError, match=r"nowhere\.png is not in this run"):
        session.add(Edit("shelve", (Picture("nowhere.png"),)))
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "update", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            session.add(session.editor.name(1, "dogs"))
    assert session.revision == 1
    assert session.state.names == read_results(run).cluster_names == {0: "cats"}


def test_constraints_hold_and_say_which_pictures(run):
    session = EditSession(run)
    a, b, *_ = np.flatnonzero(session.state.labels == 0).tolist()
    session.add(session.editor.cannot_link([a], [b]))
    assert session.state.labels[a] != session.state.labels[b]
    for impossible in (
        session.editor.move([b], 0),
        session.editor.must_link([a, b]),
        session.editor.merge(0, int(session.state.labels[b])),
    ):
        with pytest.raises(EditError, match=rf"{a}\.png and {b}\.png do not belong together"):
            session.add(impossible)
    results = session.results()
    for k in (1, 2, 9):
        cut = results.result.tree.cut(k)
        assert cut[a] != cut[b]
    session.add(session.editor.must_link([b, 50]))
    assert session.state.labels[b] == session.state.labels[50]
    session.add(session.editor.shelve([50]))  # a unit goes together
    assert (session.state.labels[[b, 50]] == -1).all()


def test_results_are_not_those_of_an_edit_made_while_they_are_computed(run, monkeypatch):
    session = EditSession(run)

    def slow(found, state, log):
        monkeypatch.setattr("jule.runs.edits.with_state", with_state)
        session.add(session.editor.name(0, "cats"))  # as another thread may
        return with_state(found, state, log)

    monkeypatch.setattr("jule.runs.edits.with_state", slow)
    assert session.results().cluster_names == {}
    assert session.results().cluster_names == {0: "cats"}


def test_labels_are_written_on_request_and_nothing_else_changes(run):
    before = run.path("labels.csv").read_bytes()
    session = EditSession(run)
    session.add(session.editor.name(1, "dogs"))
    assert run.path("labels.csv").read_bytes() == before
    session.write_labels()
    assert b"dogs" in run.path("labels.csv").read_bytes()
    assert run.path("labels_auto.csv").read_bytes() == before
    session.undo()
    session.write_labels()
    assert b"dogs" not in run.path("labels.csv").read_bytes()


def test_a_file_of_another_run_is_added_once(run, made, tmp_path):
    session = EditSession(run)
    session.add(session.editor.name(1, "dogs"))
    session.add(session.editor.move([3], 1))
    path = tmp_path / "edits.json"
    path.write_bytes(run.path("edits.json").read_bytes())
    shutil.copytree(made.folder, tmp_path / "other")
    other = RunFolder(tmp_path / "other")
    EditSession(other).add(session.editor.shelve([9]))
    for _ in range(2):
        results, _ = apply_edits(other, read_edits(path))
        assert results.edits.done == 3
    assert "dogs" in results.cluster_names.values()
    assert results.by_hand[[3, 9]].all()


def test_a_file_with_a_number_of_clusters_that_is_not_possible_warns(run):
    session = EditSession(run)
    edits = [session.editor.refuse(0, 1), session.editor.cut(1), session.editor.name(2, "cats")]
    message = "2 clusters instead of 1: corrections keep this many apart"
    with pytest.warns(UserWarning, match=message):
        apply_edits(run, EditLog().add(*edits[:2]))
    with pytest.warns(UserWarning, match=f"{N} clusters instead of 99: there are only {N} diff"):
        apply_edits(run, EditLog().add(session.editor.cut(99), *edits[2:]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apply_edits(run, EditLog().add(Edit("cut", k=1, run="another one")))


def test_edits_whose_pictures_are_not_there_are_left_out_with_a_warning(run):
    log = EditLog().add(Edit("shelve", (Picture("gone.png"),)), Edit("shelve", (Picture("7.png"),)))
    with pytest.warns(UserWarning, match=r"1 edits are left out \(shelve: gone\.png is not in"):
        results, _ = apply_edits(run, log)
    assert np.flatnonzero(results.by_hand).tolist() == [7]


BAD = {
    "no list": ({"edits": {}}, "'edits' must be a list"),
    "an unknown edit": ({"edits": [{"edit": "paint"}]}, "edit 1: unknown edit 'paint'"),
    "no pictures": ({"edits": [{"edit": "shelve", "pictures": []}]}, "at least 1 of pictures"),
    "others": (
        {"edits": [{"edit": "shelve", "pictures": [{"path": "a"}], "others": [{"path": "a"}]}]},
        "takes no others",
    ),
    "a picture of text": ({"edits": [{"edit": "shelve", "pictures": ["a"]}]}, "must have a path"),
    "a name of a number": (
        {"edits": [{"edit": "name", "pictures": [{"path": "a"}], "name": 3}]},
        "must be a string",
    ),
    "a long name": (
        {"edits": [{"edit": "name", "pictures": [{"path": "a"}], "name": "x" * 201}]},
        "at most 200",
    ),
    "a cut into nothing": ({"edits": [{"edit": "cut", "k": 0}]}, "'k' is the number"),
    "more done than there is": ({"edits": [], "done": 3}, "'done' is 3, but there are 0"),
    "a revision of text": ({"revision": "1"}, "'revision' must be a whole number"),
    "an unknown entry": ({"script": 1}, "'script'"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD.keys())
def test_damaged_files_are_refused(tmp_path, content, message):
    path = tmp_path / "edits.json"
    path.write_text(json.dumps({"format": "jule-edits-3", **content}))
    with pytest.raises(ValueError, match=message):
        read_edits(path)


def test_a_locked_run_is_waited_for_and_then_reported(run, monkeypatch):
    import threading

    monkeypatch.setattr("jule.runs.edits.PATIENCE", 0.01)
    session = EditSession(run)
    ready, done = threading.Event(), threading.Event()

    def occupy():
        with hold(run.folder):
            ready.set()
            done.wait(10)

    thread = threading.Thread(target=occupy)
    thread.start()
    ready.wait(10)
    started = time.perf_counter()
    with pytest.raises(OSError, match="is in use by"):
        session.add(session.editor.name(0, "cats"))
    assert time.perf_counter() - started < 5
    done.set()
    thread.join()
    session.add(session.editor.name(0, "cats"))


def test_a_cut_keeps_linked_pictures_of_the_shelf_together(run):
    session = EditSession(run)
    one, two = (int(np.flatnonzero(session.state.labels == label)[0]) for label in (0, 1))
    session.add(session.editor.must_link([one, two]))
    session.add(session.editor.shelve([one]))
    session.add(session.editor.cut(2))
    assert (session.state.labels[[one, two]] == -1).all()
    assert len(session.state.numbers) == 2
    everything = range(len(session.state.labels))
    session.add(session.editor.shelve(everything))
    session.add(session.editor.cut(3))  # of what would be there
    assert session.results().shelf == 0


def test_the_shelf_stays_where_links_allow_no_fewer_clusters(run):
    session = EditSession(run)
    session.add(session.editor.cut(2))
    one, two = (np.flatnonzero(session.state.labels == label) for label in session.state.numbers)
    session.add(session.editor.shelve(one[:2].tolist()))
    for other in (one, two):
        session.add(session.editor.cannot_link(one[:1].tolist(), other[-1:].tolist()))
    shelved = np.flatnonzero(session.state.labels == -1)
    results = session.results()
    assert results.result.tree.fewest == results.shelf == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels, _ = results.recut(1)
        session.add(session.editor.cut(1))
    for found in (labels, session.state.labels):
        assert np.flatnonzero(found == -1).tolist() == shelved.tolist()


@pytest.mark.parametrize("number", [-1, 10**7 + 1, 2**31 - 1, True])
def test_numbers_of_clusters_that_no_run_has_are_refused(run, number):
    result = json.loads(run.path("result.json").read_text())
    run.path("result.json").write_text(json.dumps(result | {"numbers": [0, 1, 2, number]}))
    reseal(run.folder)
    with pytest.raises(ValueError, match=r"result\.json.*the numbers of its clusters"):
        read_results(run)


def test_names_of_every_number_of_clusters_have_plain_numbers(run):
    session = EditSession(run)
    session.add(session.editor.name(0, "cats"))
    for k in (None, K, K + 1):
        assert json.dumps(session.results().recut(k)[1]) == '{"0": "cats"}'
