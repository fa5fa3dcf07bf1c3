"""Corrections of a person on real photographs: an update, a new run, an interrupted run."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from jule.corrections import Picture
from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder
from jule.runs.results import read_results
from tests.report.made import blobs, run_of

CLASSES, EACH = 3, 16


@pytest.fixture(scope="module")
def flowers(data_folder, tmp_path_factory):
    """Photographs of flowers in one flat folder, and a few more in another."""
    folder = tmp_path_factory.mktemp("flowers")
    for name in ("photos", "more"):
        (folder / name).mkdir()
    for number in range(1, CLASSES + 1):
        pictures = sorted((Path(data_folder) / "flowers17" / f"{number:02d}").glob("*.jpg"))
        for place, path in enumerate(pictures[: EACH + 4]):
            shutil.copy(path, folder / ("photos" if place < EACH else "more") / path.name)
    return folder


def cluster(jule, folder, *options, out="run", source="photos"):
    done = jule(
        "cluster", source, "--features", "pixels", "--size", "32", "--rounds", "1", *options,
        "--out", out, cwd=folder,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return done, read_results(RunFolder(folder / out))


def together(results, pictures):
    """The clusters of pictures, by path."""
    places = [results.names.index(picture) for picture in pictures]
    return results.result.labels[places].tolist()


def test_corrections_hold_in_an_update_and_in_a_new_run(flowers, jule, tmp_path):
    shutil.copytree(flowers, tmp_path, dirs_exist_ok=True)
    _, first = cluster(jule, tmp_path, "-k", "3")
    run = RunFolder(tmp_path / "run")
    session = EditSession(run)
    editor = session.editor
    inside = [np.flatnonzero(session.state.labels == label).tolist() for label in range(3)]
    names = first.names
    for label in range(3):
        session.add(editor.name(label, f"flower {label}"))
    session.add(editor.must_link([inside[0][0], inside[1][0]]))
    session.add(editor.cannot_link([inside[0][1]], [inside[0][2]]))
    session.add(editor.move([inside[2][0]], 0))
    session.add(editor.shelve([inside[2][1]]))
    linked = [names[inside[0][0]], names[inside[1][0]]]
    apart = [names[inside[0][1]], names[inside[0][2]]]

    done = jule("update", "run", "more", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    updated = read_results(run)
    assert len(updated.names) == CLASSES * (EACH + 4)

    shutil.move(tmp_path / "photos" / names[0], tmp_path / "more" / f"renamed-{names[0]}")
    for path in (tmp_path / "more").iterdir():
        shutil.move(path, tmp_path / "photos" / path.name)
    done, again = cluster(jule, tmp_path, "-k", "5", "--edits", "run/edits.json", out="new")
    assert all(name in done.stdout for name in ("name", "flower 0", "flower 1", "unsure"))
    assert "7 corrections taken over: new/edits.json" in done.stdout
    assert {f"flower {label}" for label in range(3)} <= set(again.cluster_names.values())
    one, other = together(again, [f"renamed-{one}" if one == names[0] else one for one in linked])
    assert one == other
    renamed = [f"renamed-{one}" if one == names[0] else one for one in apart]
    assert len(set(together(again, renamed))) == 2
    assert again.shelf is not None
    # Each name is with most of the pictures that stood for it, where links have not moved them.
    for edit in session.editor.log.in_effect[:3]:
        places = EditSession(RunFolder(tmp_path / "new")).editor.base.pictures.find_all(
            edit.pictures
        )
        assert len(places) == len(edit.pictures)
        kept = places[~again.by_hand[places]]
        most = int(np.bincount(again.result.labels[kept]).argmax())
        assert again.cluster_names[most] == edit.name
    automatic = EditSession(RunFolder(tmp_path / "new")).found.result.labels
    assert len(set(automatic[[again.names.index(one) for one in renamed]].tolist())) == 2


def test_a_run_that_is_replaced_hands_on_its_corrections(flowers, jule, tmp_path):
    shutil.copytree(flowers, tmp_path, dirs_exist_ok=True)
    cluster(jule, tmp_path, "-k", "3")
    session = EditSession(RunFolder(tmp_path / "run"))
    session.add(session.editor.name(1, "daffodils"))
    session.add(session.editor.move([0], 2))
    session.add(session.editor.cut(5))
    (tmp_path / "photos" / session.found.names[0]).unlink()
    done, results = cluster(jule, tmp_path, "-k", "4", "--overwrite")
    assert "the corrections in run/edits.json are kept" in done.stdout
    assert "1 correction taken over, 1 left out: run/edits.json" in done.stdout
    assert "daffodils" in results.cluster_names.values()


def test_a_run_of_unsure_images_is_not_cut(jule, refused, tmp_path):
    run = run_of(tmp_path / "run", blobs(40, (5, 5)), 3)
    session = EditSession(run)
    session.add(session.editor.shelve(range(40)))
    message = refused("cut", "run", "-k", "3", cwd=tmp_path)
    assert "all images of this run are unsure, so there is nothing to cut" in message
    assert not list(run.folder.glob("labels-*.csv"))
    session.undo()
    assert jule("cut", "run", "-k", "3", cwd=tmp_path).exit_code == 0


def test_contradictions_and_files_of_a_page_are_refused_in_one_line(flowers, refused, tmp_path):
    shutil.copytree(flowers, tmp_path, dirs_exist_ok=True)
    names = sorted(path.name for path in (tmp_path / "photos").iterdir())[:2]
    pair = [Picture(name).to_json() for name in names]
    log = {
        "format": "jule-edits-3",
        "edits": [
            {"edit": "must-link", "pictures": pair},
            {"edit": "cannot-link", "pictures": pair[:1], "others": pair[1:]},
        ],
    }
    options = ["photos", "-k", "3", "--features", "pixels", "--out", "run", "--edits", "edits.json"]
    (tmp_path / "edits.json").write_text(json.dumps(log))
    message = refused("cluster", *options, cwd=tmp_path)
    assert f"{names[0]} and {names[1]} have a cannot-link, but must-links" in message
    assert not (tmp_path / "run" / "manifest.json").exists()
    page = {"format": "jule-page-edits-3", "run": "0", "labels": "0", "k": 3}
    (tmp_path / "edits.json").write_text(json.dumps(page))
    assert "apply it there first" in refused("cluster", *options, cwd=tmp_path)
    (tmp_path / "edits.json").write_text("{")
    assert "is not JSON" in refused("cluster", *options, cwd=tmp_path)


def test_an_interrupted_run_obeys_its_corrections_when_it_is_resumed(
    flowers, jule, tmp_path, monkeypatch
):
    shutil.copytree(flowers, tmp_path, dirs_exist_ok=True)
    _, first = cluster(jule, tmp_path, "-k", "3")
    session = EditSession(RunFolder(tmp_path / "run"))
    a, b = np.flatnonzero(session.state.labels == 0)[:2].tolist()
    session.add(session.editor.cannot_link([a], [b]))
    from jule.runs import execute

    real, calls = execute._save, []

    def once(*args):
        real(*args)
        calls.append(1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(execute, "_save", once)
        done = jule(
            "cluster", "photos", "--features", "pixels", "--size", "32", "--rounds", "1", "-k",
            "2", "--edits", "run/edits.json", "--out", "again", cwd=tmp_path,
        )  # fmt: skip
        assert done.exit_code == 130
    done = jule("resume", "again", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    results = read_results(RunFolder(tmp_path / "again"))
    names = [first.names[a], first.names[b]]
    assert len(set(together(results, names))) == 2
    assert calls == [1]
