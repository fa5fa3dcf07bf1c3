"""The summary of a run: what it says is true, and JSON can hold it."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from jule.images import load_dataset, read_images
from jule.joint.result import with_labels
from jule.report import Report, summarize
from jule.report.arrays import page_arrays
from jule.report.inputs import originals_url, read_run_images
from jule.report.summary import stages
from jule.runs.folder import SKIPPED
from jule.runs.snapshots import Snapshot
from tests.report.made import HOSTILE, blobs, results_of, run_of


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
    found, graph, labels = summary["doubts"], results.result.graph, results.result.labels
    assert len(found) == summary["n_doubts"] > 0
    assert found == sorted(found, key=lambda doubt: doubt["confidence"])
    for doubt in found:
        around = labels[graph.indices[doubt["image"]]]
        weights = graph.weights[doubt["image"]]
        own = weights[around == doubt["cluster"]].sum()
        assert weights[around == doubt["looks_like"]].sum() > own


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
    assert 1 <= len(found) <= 5
    assert scores == sorted(scores, reverse=True)


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
    run = run_of(tmp_path / "run", digits[0][:40], 3)
    run.path(SKIPPED).write_text('path,reason\n"a, b.png",not an image\n')
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


def test_sheets_beside_the_page_replace_those_of_an_earlier_one(tmp_path):
    many = np.round(255 * blobs(2300, (10, 10), k=4)).astype(np.uint8)
    report = Report.of_results(results_of(many, 4), many, umap=False)
    folder = tmp_path / "page_pictures"
    folder.mkdir()
    (folder / "0999.png").touch()
    report.write_html(tmp_path / "page.html")
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"{i:04d}.png" for i in range(len(report.sheets.content))]


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
