"""The summary of a run: what it says is true, and JSON can hold it."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from PIL import Image

from jule.forward.assign import cluster_fractions
from jule.images import Skipped, load_dataset, read_images
from jule.joint.result import with_labels
from jule.report import Report, summarize
from jule.report.arrays import page_arrays
from jule.report.inputs import originals_url, read_run_images
from jule.report.summary import stages
from jule.runs.edits import EditSession
from jule.runs.names import PAGE, SUMMARY
from jule.runs.results import read_results
from jule.runs.snapshots import Snapshot
from tests.report.made import HOSTILE, blobs, page_of, results_of, run_of
from tests.report.waiting import rest

POSIX = pytest.mark.skipif(os.name == "nt", reason="needs links and permissions of POSIX")


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    few = data.labels < 5
    return data.images[few][:300], data.labels[few][:300]


@pytest.fixture(scope="module")
def results(digits):
    return results_of(digits[0], 5, true_labels=digits[1])


def edited(results, images, to):
    """Results after these images were moved by hand."""
    labels = results.result.labels.copy()
    labels[images] = to
    by_hand = np.isin(np.arange(len(labels)), images)
    result = with_labels(results.result, labels, results.config, by_hand=by_hand)
    return replace(results, result=result, by_hand=by_hand)


def test_numbers_of_the_headline(digits, results):
    summary = summarize(results, digits[0], title="digits.npz")
    assert summary["images"] == 300
    assert summary["clusters"] == 5
    assert summary["pictures"]
    assert summary["scores"]["rc"]["nmi"] > 0.7
    assert summary["agreement"] == 1.0  # both are cuts of one tree here
    assert summary["seconds"] == 3.2
    assert not summary["edited"]
    json.dumps(summary, allow_nan=False)


def test_groups_hold_every_sample_once_and_their_own_only(results):
    summary = summarize(results)
    labels = results.result.labels
    assert sum(group["size"] for group in summary["groups"]) == 300
    for group in summary["groups"]:
        for sample in group["typical"] + group["doubtful"]:
            assert labels[sample] == group["cluster"]
        assert not set(group["typical"]) & set(group["doubtful"])
        assert group["cluster"] not in group["nearest"]
        assert len(group["nearest"]) == 3
        inside = results.result.confidence[labels == group["cluster"]]
        assert group["sureness"] == pytest.approx(inside.mean())


def test_typical_samples_are_those_of_the_first_ranks(results):
    columns = results.columns()
    for group in summarize(results)["groups"]:
        assert [columns["rank"][sample] for sample in group["typical"]] == list(range(1, 13))


def test_nearest_clusters_are_nearest_by_their_means(results):
    embedding, labels = results.result.embedding, results.result.labels
    centres = np.stack([embedding[labels == cluster].mean(axis=0) for cluster in range(5)])
    for group in summarize(results)["groups"]:
        far = np.linalg.norm(centres - centres[group["cluster"]], axis=1)
        assert group["nearest"] == np.argsort(far)[1:4].tolist()


def test_doubts_have_more_affinity_to_another_cluster():
    results = results_of(np.random.default_rng(0).uniform(0, 1, (200, 6, 6)), 4)
    summary = summarize(results)
    found, graphs, labels = summary["doubts"], results.result.graphs, results.result.labels
    assert len(graphs) == 2
    assert len(found) == summary["n_doubts"] > 0
    assert found == sorted(found, key=lambda doubt: doubt["confidence"])
    for doubt in found:
        fractions = cluster_fractions(graphs, labels, np.array([doubt["image"]]))[0]
        assert doubt["looks_like"] == fractions.argmax() != doubt["cluster"]
        assert doubt["confidence"] == pytest.approx(fractions[doubt["cluster"]])


def test_nothing_is_like_what_is_unsure(visit, tmp_path):
    images = np.random.default_rng(0).uniform(0, 1, (200, 6, 6))
    session = EditSession(run_of(tmp_path / "run", images, 4))
    session.add(session.editor.shelve(range(0, 200, 2)))
    results = session.results()
    summary = summarize(results)
    graphs, labels = results.result.graphs, results.result.labels
    fractions = cluster_fractions(graphs, labels, np.arange(200))
    assert (fractions.argmax(axis=1) == results.shelf)[1::2].any()
    fractions[:, results.shelf] = 0
    expected = {i for i in range(1, 200, 2) if fractions[i].max() > fractions[i, labels[i]]}
    assert {doubt["image"] for doubt in summary["doubts"]} == expected
    for doubt in summary["doubts"]:
        assert doubt["looks_like"] == fractions[doubt["image"]].argmax()
    with visit(page_of(tmp_path, results, images)) as shown:
        for k in (4, 6):
            shown.evaluate(f"jule.show({k})")
            for image in range(1, 200, 8):
                shown.evaluate(f"jule.open({image})")
                said = shown.locator(".image-facts > .hint").all_inner_texts()
                assert "unsure" not in " ".join(said)
            shown.evaluate("document.querySelector('#image-dialog').close()")
            rest(shown)
            assert "like unsure" not in shown.inner_text("#doubt-tiles")


def test_what_was_decided_by_hand_is_not_doubted(results):
    unsure = [sample for group in summarize(results)["groups"] for sample in group["doubtful"]]
    wrong = edited(results, unsure, 0)
    summary = summarize(wrong)
    assert summary["edited"]
    assert summary["chosen"] == "edited"
    assert not {doubt["image"] for doubt in summary["doubts"]} & set(unsure)
    assert not set(summary["groups"][0]["doubtful"]) & set(unsure)
    assert page_arrays(wrong, umap=False)["by_hand"].sum() == len(unsure)
    assert "by_hand" not in page_arrays(results, umap=False)


def test_numbers_of_clusters_are_suggested_even_where_one_was_given(results):
    found = summarize(results)["suggestions"]
    scores = [each["score"] for each in found]
    assert 1 <= len(found) <= 3
    assert scores[1:] == sorted(scores[1:], reverse=True)
    assert scores[0] >= max(scores) - 0.02


@pytest.mark.parametrize(("n", "k"), [(2, 1), (2, 2), (3, 3), (7, 7), (30, 1)])
def test_edges_of_size(n, k):
    report = Report.of_results(results_of(blobs(n), k), blobs(n), umap=False)
    assert report.summary["clusters"] == k
    assert report.sheets is None
    assert "vectors" in report.summary["no_pictures"]
    assert report.html.startswith("<!DOCTYPE html>")


def test_exact_copies_are_listed_with_the_original_first(digits):
    firsts = np.arange(12)
    firsts[[3, 7]] = 5
    results = results_of(digits[0][:12], 2, first_copies=firsts)
    assert summarize(results)["duplicates"] == [["5", "3", "7"]]
    assert page_arrays(results, umap=False)["copies"].tolist() == firsts.tolist()
    assert "copies" not in page_arrays(results_of(digits[0][:12], 2), umap=False)


def test_a_middle_stage_lies_between_by_ratio():
    def shot(period, clusters):
        none = np.zeros((0, 3), np.float32)
        return Snapshot(period, np.zeros(0, np.int32), none, np.zeros(0, np.int32), clusters)

    all_of_them = [shot(i, count) for i, count in enumerate((1000, 400, 90, 10))]
    assert [each.n_clusters for each in stages(all_of_them)] == [1000, 90, 10]
    assert len(stages(all_of_them[:2])) == 2


def test_the_report_of_a_run_is_that_of_its_files(tmp_path, digits):
    skipped = [Skipped("a, b.png", "not an image")]
    run = run_of(tmp_path / "run", digits[0][:40], 3, skipped=skipped)
    report = Report.of_run(run)
    assert report.summary["skipped"] == [{"path": "a, b.png", "reason": "not an image"}]
    assert report.summary["title"] == "run.npz"
    assert report.summary["originals"] is None
    assert [stage["period"] for stage in report.summary["stages"]] == [0, 1, 2]
    assert report.write(run) == run.path("report.html")
    assert json.loads(run.path("report.json").read_text()) == report.summary
    assert not run.path("report_pictures").exists()
    assert not list(run.folder.glob("*.part"))
    assert report._repr_html_().startswith("<iframe srcdoc=")


def test_without_its_images_a_run_still_has_a_page(tmp_path, digits):
    run = run_of(tmp_path / "run", digits[0][:40], 3)
    source = tmp_path / "run.npz"
    np.savez(source, images=digits[0][40:80])
    images, problem = read_run_images(run)
    assert images is None
    assert "has changed since the run" in problem
    source.unlink()
    report = Report.of_run(run)
    assert report.sheets is None
    assert str(source) in report.summary["no_pictures"]
    assert Report.of_run(run, digits[0][:40]).sheets is not None


def test_the_images_of_a_folder_are_read_again(tmp_path, digits):
    folder = tmp_path / "photos"
    (folder / "a").mkdir(parents=True)
    for number, image in enumerate(digits[0][:30]):
        Image.fromarray((image * 15).astype(np.uint8)).save(folder / "a" / f"{number}.png")
    data = read_images(folder)
    run = run_of(tmp_path / "run", data.samples, 3, data.names, source=folder, spec=data.spec)
    report = Report.of_run(run, umap=False)
    assert report.sheets is not None
    assert report.summary["title"] == "photos"
    assert report.summary["originals"] == folder.as_uri() + "/"
    folder.rename(tmp_path / "moved")
    assert Report.of_run(run, umap=False).sheets is None
    moved = Report.of_run(run, source=tmp_path / "moved", umap=False)
    assert moved.sheets is not None
    assert moved.summary["originals"] == (tmp_path / "moved").as_uri() + "/"


def test_originals_are_named_only_where_they_lie_in_a_folder(tmp_path):
    folder = tmp_path / "my photos"
    folder.mkdir()
    (folder / "a.png").touch()
    assert originals_url(folder, ["a.png"]) == folder.as_uri() + "/"
    assert originals_url(folder, ["b.png"]) is None
    assert originals_url(folder / "a.png", ["a.png"]) is None
    assert originals_url("", ["a.png"]) is None
    for name in ("x" * 200_000, "\ud800", "\0"):
        assert originals_url(folder, [name]) is None
        assert originals_url(name, ["a.png"]) is None


# Writing


@pytest.fixture(scope="module")
def many():
    """More images than a page holds itself, and their report."""
    images = np.round(255 * blobs(2300, (10, 10), k=4)).astype(np.uint8)
    return images, Report.of_results(results_of(images, 4), images, umap=False)


def sheets_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_sheets_beside_the_page_replace_those_of_an_earlier_one(tmp_path, many):
    _, report = many
    folder = tmp_path / "page_pictures"
    folder.mkdir()
    (folder / f"sheet-{'0' * 16}.png").touch()
    for mine in ("photo.png", "0999.png", "sheet-1.png"):
        (folder / mine).write_text("mine")
    report.write_html(tmp_path / "page.html")
    made = [f"sheet-{sha256(one).hexdigest()[:16]}.png" for one in report.sheets.content]
    assert sheets_in(folder) == sorted([*made, "photo.png", "0999.png", "sheet-1.png"])
    text = (tmp_path / "page.html").read_text()
    assert all(f'"page_pictures/{name}"' in text for name in made)
    few = Report.of_results(results_of(blobs(9, (4, 4)), 2), blobs(9, (4, 4)), umap=False)
    few.write_html(tmp_path / "page.html")
    assert sheets_in(folder) == sorted(["photo.png", "0999.png", "sheet-1.png"])


def test_the_folder_of_sheets_goes_with_the_last_of_them(tmp_path, many):
    many[1].write_html(tmp_path / "page.html")
    few = Report.of_results(results_of(blobs(9, (4, 4)), 2), blobs(9, (4, 4)), umap=False)
    few.write_html(tmp_path / "page.html")
    assert sheets_in(tmp_path) == ["page.html"]


@POSIX
def test_a_page_that_is_shared_has_shared_pictures(tmp_path, many):
    before = os.umask(0o022)
    try:
        many[1].write_html(tmp_path / "page.html")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {0o644, 0o755}


@POSIX
def test_nothing_is_written_through_links_beside_a_page(tmp_path, many):
    photos, victim = tmp_path / "photos", tmp_path / "victim"
    photos.mkdir()
    mine = [f"sheet-{'0' * 16}.png", "0001.png"]
    for name in mine:
        (photos / name).write_text("mine")
    victim.write_text("mine")
    place = tmp_path / "out"
    place.mkdir()
    (place / "page_pictures").symlink_to(photos)
    with pytest.raises(NotADirectoryError, match="page_pictures is a link"):
        many[1].write_html(place / "page.html")
    assert not (place / "page.html").exists()
    few = Report.of_results(results_of(blobs(9, (4, 4)), 2), blobs(9, (4, 4)), umap=False)
    (place / "page.html").symlink_to(victim)
    (place / "page.html.part").symlink_to(victim)
    few.write_html(place / "page.html")
    assert sheets_in(photos) == sorted(mine)
    assert {path.read_text() for path in (*photos.iterdir(), victim)} == {"mine"}
    assert not (place / "page.html").is_symlink()


@pytest.fixture
def large_run(tmp_path, many):
    return run_of(tmp_path / "run", many[0], 4)


@POSIX
def test_nothing_is_written_through_links_in_a_run(tmp_path, many, large_run):
    photos, victim = tmp_path / "photos", tmp_path / "victim"
    photos.mkdir()
    for name in ("0001.png", f"sheet-{'0' * 16}.png"):
        (photos / name).write_text("mine")
    victim.write_text("mine")
    for name in ("report.json", "report.html"):
        large_run.path(name).symlink_to(victim)
        large_run.path(f"{name}.part").symlink_to(victim)
    large_run.path("report_pictures").symlink_to(photos)
    before = sorted(large_run.folder.iterdir())
    with pytest.raises(NotADirectoryError, match="report_pictures is a link"):
        many[1].write(large_run)
    assert sorted(large_run.folder.iterdir()) == before
    large_run.path("report_pictures").unlink()
    many[1].write(large_run)
    assert {path.read_text() for path in (*photos.iterdir(), victim)} == {"mine"}
    assert not large_run.path("report.html").is_symlink()
    assert json.loads(large_run.path("report.json").read_text()) == many[1].summary


def test_sheets_page_and_summary_belong_to_the_manifest(many, large_run):
    images, report = many
    report.write(large_run)
    listed = [name for name in large_run.manifest() if name.startswith("report")]
    made = [f"sheet-{sha256(one).hexdigest()[:16]}.png" for one in report.sheets.content]
    assert listed == sorted([*[f"report_pictures/{name}" for name in made], PAGE, SUMMARY])
    assert [large_run.read(f"report_pictures/{name}") for name in made] == report.sheets.content
    large_run.path("report_pictures/mine.txt").write_text("mine")
    other = Report.of_results(read_results(large_run), 255 - images, umap=False)
    replace(other, folder=large_run.folder).write_html(large_run.path(PAGE))
    found = sheets_in(large_run.path("report_pictures"))
    assert "mine.txt" in found
    assert not set(made) & set(found)
    assert large_run.read(PAGE).decode().count('"report_pictures/sheet-') == len(found) - 1


def test_a_report_that_cannot_be_written_leaves_the_old_one_whole(many, large_run, monkeypatch):
    images, report = many
    report.write(large_run)
    before = {path: path.read_bytes() for path in large_run.folder.rglob("*") if path.is_file()}
    other = Report.of_results(read_results(large_run), 255 - images, umap=False)
    real, calls = os.fsync, []

    def full(fd):
        calls.append(fd)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        real(fd)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        other.write(large_run)
    monkeypatch.undo()
    for path, content in before.items():
        assert path.read_bytes() == content
    other.write(large_run)
    assert json.loads(large_run.read(SUMMARY)) == other.summary


# Decoration that is damaged


def test_damaged_decoration_is_left_out_with_a_word(tmp_path, digits):
    run = run_of(tmp_path / "run", digits[0][:40], 3, skipped=[Skipped("a.png", "it is empty")])
    run.path("snapshots/snapshot-0001.npz").write_bytes(b"bad")
    run.path("snapshots/snapshot-0002.npz").unlink()
    run.path("skipped.csv").write_bytes(b"\0\0")
    with pytest.warns(UserWarning, match="left out") as caught:
        report = Report.of_run(run, umap=False)
    said = [str(one.message) for one in caught]
    for name in ("snapshot-0001.npz", "snapshot-0002.npz", "skipped.csv"):
        assert len([text for text in said if name in text and "left out" in text]) == 1
    assert len(said) == 3
    assert [stage["period"] for stage in report.summary["stages"]] == [0]
    assert report.summary["skipped"] == []
    assert report.sheets is not None


def test_images_that_make_no_thumbnails_leave_a_page_without(digits):
    results = results_of(digits[0][:40], 3)
    report = Report.of_results(results, digits[0][:40].astype("datetime64[s]"), umap=False)
    assert report.sheets is None
    assert "no thumbnails can be made" in report.summary["no_pictures"]
    assert not report.summary["pictures"]


def test_any_trouble_with_the_images_is_a_reason(tmp_path, digits, monkeypatch):
    run = run_of(tmp_path / "run", digits[0][:40], 3)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("jule.report.inputs.read_again", fail)
    assert read_run_images(run) == (None, "MemoryError")


def test_the_source_of_somebody_elses_run_is_not_looked_at(tmp_path, digits, monkeypatch):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, image in enumerate(digits[0][:30]):
        Image.fromarray((image * 15).astype(np.uint8)).save(folder / f"{number}.png")
    data = read_images(folder)
    run = run_of(tmp_path / "run", data.samples, 3, data.names, source=folder, spec=data.spec)
    for name in ("XDG_CONFIG_HOME", "APPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "another user"))
    report = Report.of_run(run, umap=False)
    assert report.sheets is None
    assert report.summary["originals"] is None
    assert "--source" in report.summary["no_pictures"]
    allowed = Report.of_run(run, source=folder, umap=False)
    assert allowed.sheets is not None
    assert allowed.summary["originals"] == folder.as_uri() + "/"


# Names


def test_positions_in_the_source_go_to_the_page(digits):
    results = results_of(digits[0][:40], 3, ["same.png"] * 40, indices=2 * np.arange(40))
    assert page_arrays(results, umap=False)["indices"].tolist() == list(range(0, 80, 2))
    assert "indices" not in page_arrays(results_of(digits[0][:40], 3), umap=False)


def test_hostile_names_stay_text_in_the_page(digits):
    names = HOSTILE + [f"{i}.png" for i in range(len(HOSTILE), 40)]
    results = results_of(digits[0][:40], 3, names=names)
    skipped = [(HOSTILE[0], HOSTILE[1])]
    page = Report.of_results(
        results, digits[0][:40], umap=False, skipped=skipped, source=HOSTILE[0]
    ).html
    assert "onerror=window.hacked=1>" not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2


def test_a_report_needs_no_torch(tmp_path, digits):
    run = run_of(tmp_path / "run", digits[0][:40], 3)
    code = (
        "import sys; from jule.report import Report; from jule.runs.folder import RunFolder;"
        f"Report.of_run(RunFolder({str(run.folder)!r}), umap=False);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_thumbnails_of_any_cluster_lie_side_by_side(digits, results):
    report = Report.of_results(results, digits[0], umap=False)
    for k in (2, 5, 30):
        labels = results.result.tree.cut(k)[np.argsort(report.sheets.places)]
        assert (np.diff(labels) != 0).sum() == k - 1
