"""The interface of the server: edits, two writers, pictures, and what makes no sense."""

import io
import shutil

import numpy as np
import pytest
from PIL import Image

from jule.report import Report
from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder
from jule.runs.results import read_results
from jule.serve import Desk
from jule.serve.server import listen
from tests.report.made import HOSTILE, blobs, run_of


def labels_of(state):
    return np.frombuffer(np.array(bytearray(_bytes(state["labels"]))), "<i4")


def _bytes(encoded):
    import base64

    return base64.b64decode(encoded["base64"])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of pictures in a folder, with its page; not to be changed."""
    folder = tmp_path_factory.mktemp("made")
    photos = folder / "photos"
    photos.mkdir()
    pixels = np.round(255 * blobs(40, (20, 30, 3), k=2)).astype(np.uint8)
    names = [f"{i:02}.{'tif' if i == 5 else 'png'}" for i in range(40)]
    for name, one in zip(names, pixels, strict=True):
        Image.fromarray(one).save(photos / name)
    run = run_of(folder / "run", pixels, 4, names, source=photos)
    Report.of_run(run, pixels, umap=False).write(run)
    return run


@pytest.fixture
def run(made, tmp_path):
    shutil.copytree(made.folder, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def test_every_edit_is_saved_at_once_and_can_be_undone(serve, run):
    with serve(run) as client:
        state = client.ask("state").json
        assert state["revision"] == 0
        assert state["numbers"] == [0, 1, 2, 3]
        before = labels_of(state)
        assert before.tolist() == read_results(run).result.labels.tolist()

        named = client.edit(0, "name", cluster=1, name="cats").json
        assert named["names"] == ["", "cats", "", ""]
        split = client.edit(1, "split", cluster=0).json
        assert split["numbers"] == [0, 1, 2, 3, 4]
        assert EditSession(run).revision == 2  # another process sees it
        merged = client.edit(2, "merge", cluster=1, other=3).json
        assert merged["numbers"] == [0, 1, 2, 4]
        assert (labels_of(merged) == 1).sum() == (before == 1).sum() + (before == 3).sum()
        shelved = client.edit(3, "shelve", images=[7]).json
        assert (shelved["numbers"][-1], shelved["names"][-1]) == (-1, "unsure")
        assert labels_of(shelved)[7] == 4
        moved = client.edit(4, "move", images=[8, 9], to=None).json
        assert len(moved["numbers"]) == 6
        assert (moved["undo"], moved["redo"]) == ("move", "")
        for revision in range(5, 10):
            undone = client.ask("undo", {"revision": revision}).json
        assert labels_of(undone).tolist() == before.tolist()
        assert (undone["undo"], undone["redo"]) == ("", "name")
        assert client.ask("undo", {"revision": 10}).status == 422
        again = client.ask("redo", {"revision": 10}).json
        assert again["names"] == ["", "cats", "", ""]
    assert read_results(run).cluster_names == {1: "cats"}


def test_the_page_and_its_clusters_follow_the_edits(serve, run):
    with serve(run) as client:
        client.edit(0, "split", cluster=2)
        clusters = client.ask("clusters").json
        page = client.ask().body.decode()
    expected = read_results(run)
    assert clusters["revision"] == 1
    assert clusters["summary"]["clusters"] == 5
    merges = np.frombuffer(_bytes(clusters["arrays"]["merges"]), "<i4")
    assert merges.tolist() == expected.result.tree.merges.ravel().tolist()
    assert "40 images in 5 clusters" in page


def test_the_parts_of_a_split_are_those_that_it_makes(serve, run):
    with serve(run) as client:
        asked = {"revision": 0, "cluster": 2}
        parts = client.ask("parts", asked).json
        assert client.ask("state").json["revision"] == 0
        labels = labels_of(client.edit(0, "split", cluster=2).json)
        assert parts["sizes"] == [(labels == 2).sum(), (labels == 4).sum()]
        for part, number in zip(parts["typical"], (2, 4), strict=True):
            assert part
            assert set(labels[part]) == {number}
        assert client.ask("parts", asked).status == 409
        assert client.ask("parts", {"revision": 1, "cluster": 99}).status == 422


def test_a_stale_revision_changes_nothing_and_shows_the_present_state(serve, run):
    with serve(run) as one, serve(run) as other:
        assert one.edit(0, "name", cluster=0, name="first").status == 200
        for client in (one, other):
            late = client.edit(0, "name", cluster=0, name="second")
            assert late.status == 409
            assert "another window" in late.json["problem"]
            assert late.json["state"]["revision"] == 1
            assert late.json["state"]["names"][0] == "first"
        assert one.ask("undo", {"revision": 0}).status == 409
        assert other.edit(1, "name", cluster=1, name="second").status == 200
        assert one.ask("state").json["names"][:2] == ["first", "second"]


NONSENSE = [
    {},
    {"edit": "name"},
    {"edit": "nothing"},
    {"edit": ["name"]},
    {"edit": "name", "cluster": 0, "name": 3},
    {"edit": "name", "cluster": 0, "name": "x" * 300},
    {"edit": "name", "cluster": 0, "name": "\ud800"},
    {"edit": "name", "cluster": 99, "name": "x"},
    {"edit": "name", "cluster": True, "name": "x"},
    {"edit": "name", "cluster": 0, "name": "unsure"},
    {"edit": "move", "images": [400], "to": 0},
    {"edit": "move", "images": [-1], "to": 0},
    {"edit": "move", "images": "photos/00.png", "to": 0},
    {"edit": "move", "images": [], "to": 0},
    {"edit": "move", "images": [0], "to": 2**70},
    {"edit": "merge", "cluster": 1, "other": 1},
    {"edit": "split", "cluster": -1},
    {"edit": "split", "cluster": 0, "branch": 10**9},
    {"edit": "cut", "k": 0},
    {"edit": "cut", "k": 1.5},
]


def test_nonsense_is_refused_in_words_and_nothing_is_saved(serve, run):
    with serve(run) as client:
        for edit in NONSENSE:
            reply = client.ask("edit", {"revision": 0, **edit})
            assert reply.status == 422, edit
            assert reply.json["problem"], edit
        for body in (
            "",
            "[]",
            "null",
            "{",
            '{"revision": "0", "edit": "cut", "k": 2}',
            "[" * 10**5,
        ):
            assert client.ask("edit", body or b" ").status == 422, body[:50]
        assert client.ask("state").json["revision"] == 0
    assert not run.path("edits.json").exists()


def test_originals_are_found_by_their_row_alone(serve, run):
    with serve(run) as client:
        png = client.ask("pictures/3")
        assert png.headers["content-type"] == "image/png"
        source = RunFolder(run.folder).about()["source"]
        with open(f"{source}/03.png", "rb") as file:
            assert png.body == file.read()
        tiff = client.ask("pictures/5")  # which browsers do not show
        assert tiff.headers["content-type"] == "image/jpeg"
        assert Image.open(io.BytesIO(tiff.body)).size == (30, 20)
        for path in ("pictures/40", "pictures/-1", "pictures/x", "pictures/03.png", "pictures/"):
            assert client.ask(path).status == 404
        for path in ("pictures/../../etc/passwd", "pictures/%2e%2e%2fconfig.json", "config.json"):
            assert client.ask(path).status == 404
        assert client.ask("sheets/0").body[:2] == b"\xff\xd8"
        assert client.ask("sheets/1").status == 404


def test_a_source_that_is_gone_leaves_the_thumbnails(serve, run, tmp_path):
    with serve(run, str(tmp_path / "gone")) as client:
        reply = client.ask("pictures/3")
        assert reply.status == 404
        assert "the original cannot be shown" in reply.json["problem"]
        assert client.ask("sheets/0").status == 200
        assert client.edit(0, "name", cluster=0, name="x").status == 200
    (tmp_path / "few").mkdir()
    Image.new("RGB", (5, 5)).save(tmp_path / "few" / "07.png")
    with serve(run, str(tmp_path / "few")) as client:
        assert "no longer there" in client.ask("pictures/3").json["problem"]
        assert client.ask("pictures/7").status == 200


def test_pictures_that_the_page_did_not_have_are_read_from_a_new_source(tmp_path):
    images = np.round(255 * blobs(30, (6, 6))).astype(np.uint8)
    run = run_of(tmp_path / "run", images, 3)
    Report.of_run(run, source="gone", umap=False).write(run)
    assert len(Desk(run).sheets) == 0
    assert len(Desk(run, str(tmp_path / "run.npz")).sheets) == 1


def test_hostile_names_are_only_text(serve, tmp_path):
    names = HOSTILE + [f"{i}.png" for i in range(len(HOSTILE), 40)]
    run = run_of(tmp_path / "run", blobs(40, (6, 6)), 3, names)
    with serve(run) as client:
        page = client.ask().body
        assert b"<img src=x" not in page
        assert page.count(b"</script>") == 2
        for revision, name in enumerate((HOSTILE[0], HOSTILE[1], "'=1+1")):
            state = client.edit(revision, "name", cluster=revision, name=name).json
            assert state["names"][revision] == name
        together = client.edit(3, "must-link", images=[0, 5, 9]).json
        assert together["revision"] == 4
        apart = client.edit(4, "cannot-link", images=[0], others=[5])
        assert apart.status == 422
        assert HOSTILE[0] in apart.json["problem"]


def test_suggestions_are_clusters_of_the_state(serve, run):
    with serve(run) as client:
        same = client.ask("suggestions").json["same"]
        assert same
        first = same[0]
        client.edit(0, "refuse", **first)
        after = client.ask("suggestions").json["same"]
        assert first not in after
        numbers = client.ask("state").json["numbers"]
    assert all({pair["cluster"], pair["other"]} <= set(numbers) for pair in after)


def test_what_was_just_separated_is_not_suggested(serve, run):
    with serve(run) as client:
        labels = labels_of(client.ask("state").json)
        biggest = int(np.bincount(labels).argmax())
        inside = np.flatnonzero(labels == biggest)
        client.edit(0, "split", cluster=biggest)
        moved = client.edit(1, "move", images=inside[::3].tolist(), to=None).json
        new = moved["numbers"][-2:]
        separated = [{biggest, number} for number in new]
        served = client.ask("suggestions").json["same"]
        summary = Report.of_run(run).summary
        numbers = [group["number"] for group in summary["groups"]]
        made = [{name: numbers[one] for name, one in pair.items()} for pair in summary["same"]]
    for pairs in (served, made):
        assert pairs
        assert not [pair for pair in pairs if set(pair.values()) in separated]


def test_the_end_writes_labels_and_page_if_there_was_an_edit(run):
    before = run.path("labels.csv").read_bytes()
    desk = Desk(run)
    assert not desk.finish()
    desk.edit({"revision": 0, "edit": "name", "cluster": 0, "name": "cats"})
    assert run.path("labels.csv").read_bytes() == before
    assert desk.finish()
    assert b"cats" in run.path("labels.csv").read_bytes()
    assert b'"name":"cats"' in run.path("report.html").read_bytes()
    run.update({"result.json": run.read("result.json") + b"\n"})  # by another command
    assert not desk.finish()


def test_the_end_can_be_interrupted_while_it_waits_for_an_edit(run, monkeypatch):
    desk, limits = Desk(run), []

    def wait_for(is_over, timeout=None):
        limits.append(timeout)
        return len(limits) > 1 and is_over()

    monkeypatch.setattr(desk._no_change, "wait_for", wait_for)
    assert not desk.finish()
    assert limits == [1, 1]  # without a limit, Windows does not interrupt a wait


def test_a_run_that_was_made_anew_is_not_edited(serve, run):
    with serve(run) as client:
        assert client.edit(0, "name", cluster=0, name="cats").status == 200
        run.update({"result.json": run.read("result.json") + b"\n"})
        for reply in (client.edit(1, "name", cluster=1, name="x"), client.ask("clusters")):
            assert reply.status == 410
            assert "start it again" in reply.json["problem"]
        assert client.ask().status == 500
        assert EditSession(run).revision == 1
        shutil.rmtree(run.folder)
        assert client.ask("state").status == 500
        assert "cannot be read" in client.ask("state").json["problem"]


def test_a_port_in_use_is_said_in_one_line(refused, run):
    with listen() as found:
        port = found.getsockname()[1]
        assert f"port {port} is in use" in refused("serve", run.folder, "--port", port)
    assert "a port is a number" in refused("serve", run.folder, "--port", 70_000)


def test_a_missing_package_is_said_in_one_line(refused, run, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert 'pip install "jule[serve]"' in refused("serve", run.folder)


def test_what_a_person_has_merged_is_not_said_to_be_strangers(serve, tmp_path):
    apart = np.concatenate([blobs(30, k=1, seed=0), blobs(30, k=1, seed=1)])
    images = np.round(255 * apart.reshape(60, 3, 4)).astype(np.uint8)
    with serve(run_of(tmp_path / "run", images, 2)) as client:
        client.edit(0, "merge", cluster=0, other=1)
        assert client.ask("suggestions").json["strangers"] == []
    with serve(run_of(tmp_path / "joined", images, 1)) as client:
        [found] = client.ask("suggestions").json["strangers"]
        assert found["size"] == 30
        split = client.edit(0, "split", cluster=0, branch=found["branch"]).json
        assert sorted(np.bincount(labels_of(split)).tolist()) == [30, 30]
