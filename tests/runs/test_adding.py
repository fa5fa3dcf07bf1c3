"""Pictures added to a run: they join clusters, and nothing else changes."""

import shutil

import numpy as np
import pytest
from PIL import Image

from jule import Run
from jule.forward import MergeTree, agglomerate, nearest_neighbors
from jule.forward.extend import extend_neighbors, extend_tree
from jule.report.inputs import read_skipped
from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder
from jule.runs.reading import open_run_source, read_again
from jule.runs.results import read_results


@pytest.mark.parametrize("seed", range(4))
def test_cuts_of_a_tree_with_more_samples_are_those_without(seed):
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(40, 3))
    tree = agglomerate(samples, n_neighbors=5)
    partners = rng.integers(40, size=7)
    first = np.arange(7)
    first[3], partners[3] = 1, partners[1]
    grown = extend_tree(tree, partners, first)
    assert grown.n_copies == 1
    for k in (1, 2, 5, 30):
        cut = grown.cut(k)
        np.testing.assert_array_equal(cut[:40], tree.cut(k))
        np.testing.assert_array_equal(cut[40:], cut[partners])
    assert MergeTree.from_bytes(grown.to_bytes()).n_samples == 47


def test_neighbors_with_more_samples_are_those_of_all():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(60, 4))
    whole = nearest_neighbors(samples, 6)
    grown = extend_neighbors(nearest_neighbors(samples[:50], 6), samples[:50], samples[50:])
    np.testing.assert_array_equal(grown.indices, whole.indices)
    np.testing.assert_allclose(grown.distances, whole.distances, atol=1e-9)


def test_new_pictures_are_placed_and_corrections_stay(copied, trained, jule, tmp_path):
    run = RunFolder(copied)
    session = EditSession(run)
    session.add(session.editor.name(1, "ones"))
    session.add(session.editor.split(0))
    inside = np.flatnonzero(session.state.labels == 2)[:4].tolist()
    session.add(session.editor.move(inside, None))
    session.add(session.editor.shelve([5]))
    before = read_results(run)
    done = jule("update", copied, trained.folder / "new")
    assert done.exit_code == 0, done.output
    assert "20 pictures added" in done.stdout
    after = read_results(run)
    n = len(before.names)
    assert len(after.names) == n + 20
    np.testing.assert_array_equal(after.labels[:n], before.labels)
    assert after.recut()[1] == before.recut()[1]
    assert not (after.result.labels[n:] == after.shelf).any()
    assert not after.by_hand[n:].any()
    again = EditSession(run)
    again.undo()  # the tree and the edits still fit each other
    predicted = Run(trained.folder / "run", device="cpu").predict(trained.folder / "new")
    votes = EditSession(run).found.result.labels[n:]
    assert (votes == predicted.labels).mean() > 0.8
    # All pictures are found again, in the order of the run.
    assert open_run_source(run).names == after.names
    assert read_again(run).fingerprint == run.about()["data"]
    exported = jule("export", copied, "--to", tmp_path / "sorted")
    assert exported.exit_code == 0, exported.output
    assert f"{n + 20} pictures" in exported.stdout


def test_numbers_with_gaps_are_kept_where_edits_begin_again(copied, trained, jule, monkeypatch):
    run = RunFolder(copied)
    session = EditSession(run)
    session.add(session.editor.split(1))
    session.add(session.editor.merge(2, 0))
    session.add(session.editor.name(3, "new"))
    session.write_labels()
    before = read_results(run)
    assert before.numbers == (1, 2, 3)
    monkeypatch.setattr("jule.runs.adding._has", lambda *_: False)
    done = jule("update", copied, trained.folder / "new")
    assert done.exit_code == 0, done.output
    after = read_results(run)
    np.testing.assert_array_equal(after.labels[: len(before.labels)], before.labels)
    assert after.recut()[1] == {3: "new"}
    session = EditSession(run)
    session.undo()  # the name
    np.testing.assert_array_equal(session.state.labels, after.labels)
    assert jule("resume", copied).stdout.endswith("there is nothing to resume\n")


def test_a_run_without_edits_that_were_applied_takes_pictures(copied, trained, jule):
    assert jule("apply", copied).exit_code == 0
    n = len(read_results(RunFolder(copied)).names)
    done = jule("update", copied, trained.folder / "new")
    assert done.exit_code == 0, done.output
    assert len(read_results(RunFolder(copied)).names) == n + 20
    EditSession(RunFolder(copied))  # raises unless its labels and its tree fit each other


def test_the_folder_of_the_run_with_pictures_added(trained, jule, tmp_path):
    shutil.copytree(
        trained.folder / "photos",
        tmp_path / "photos",
        symlinks=True,
        ignore=lambda *_: {"pipe.jpg"},
    )
    done = jule("cluster", "photos", "-k", "3", "--rounds", "1", "--out", "run", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    for number, image in enumerate(trained.images[130:136]):
        Image.fromarray(image).save(tmp_path / "photos" / f"00{number}-new.png")
    before = read_results(RunFolder(tmp_path / "run"))
    done = jule("update", "run", "photos", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    assert "6 pictures added to run" in done.stdout
    after = read_results(RunFolder(tmp_path / "run"))
    np.testing.assert_array_equal(after.result.labels[: len(before.names)], before.result.labels)
    assert read_again(RunFolder(tmp_path / "run")).names == after.names
    done = jule("update", "run", "photos", cwd=tmp_path)
    assert "0 pictures added to run" in done.stdout
    skipped = skipped_in(tmp_path / "run")
    assert "cut.png" in skipped
    assert len(skipped) == len(set(skipped))
    Image.fromarray(trained.images[140]).save(tmp_path / "photos" / "cut.png")
    assert jule("update", "run", "photos", cwd=tmp_path).exit_code == 0
    assert sorted(skipped_in(tmp_path / "run")) == sorted(set(skipped) - {"cut.png"})
    done = jule("report", "run", cwd=tmp_path)
    assert done.exit_code == 0, done.output


def skipped_in(run):
    return [path for path, _ in read_skipped(RunFolder(run))]


def test_a_model_that_was_saved_keeps_its_pictures(trained, jule, tmp_path):
    from jule import JULE

    model = JULE(3, rounds=1, settings={"min_images": 100, "n_periods": 1})
    model.fit(trained.images[:60]).save(tmp_path / "run")
    np.savez(tmp_path / "more.npz", images=trained.images[60:70])
    done = jule("update", tmp_path / "run", tmp_path / "more.npz")
    assert done.exit_code == 0, done.output
    assert JULE.load(tmp_path / "run").predict(trained.images[:2]).shape == (2,)
    assert len(read_again(RunFolder(tmp_path / "run"))) == 70


def test_runs_of_strangers_stay_untrusted(copied, trained, jule, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    done = jule("update", copied, trained.folder / "new")
    assert done.exit_code == 0, done.output
    assert RunFolder(copied).about()["signature"] == ""


def test_bad_input_is_refused(copied, refused, tmp_path):
    assert "does not exist" in refused("update", copied, tmp_path / "nowhere")
    (tmp_path / "void").mkdir()
    assert "no pictures" in refused("update", copied, tmp_path / "void")
