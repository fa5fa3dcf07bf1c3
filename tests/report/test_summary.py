"""The summary of a run: what it says is true, and JSON can hold it."""

import json

import numpy as np
import pytest

from jule.images import load_dataset
from jule.report import Report, summarize
from jule.report.source import (
    cluster_names,
    duplicate_files,
    identical_images,
    images_of,
    labels_id,
    run_id,
    skipped_files,
)
from jule.report.summary import stages
from jule.snapshots import Snapshot
from tests.report.made import HOSTILE, blobs, finished_of, run_of


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    few = data.labels < 5
    return data.images[few][:300], data.labels[few][:300]


@pytest.fixture(scope="module")
def finished(digits):
    return finished_of(digits[0], 5)


def test_numbers_of_the_headline(digits, finished):
    summary = summarize(finished, *digits[:1], labels=digits[1], title="digits.npz")
    assert summary["images"] == 300
    assert summary["clusters"] == 5
    assert summary["pictures"]
    assert summary["scores"]["rc"]["nmi"] > 0.7
    assert summary["agreement"] == 1.0  # both are cuts of one tree here
    assert summary["seconds"] == pytest.approx(1.6 * 2)
    json.dumps(summary, allow_nan=False)


def test_groups_hold_every_sample_once_and_their_own_only(finished):
    summary = summarize(finished)
    labels = finished.result.labels
    assert sum(group["size"] for group in summary["groups"]) == 300
    for group in summary["groups"]:
        for sample in group["typical"] + group["doubtful"]:
            assert labels[sample] == group["cluster"]
        assert not set(group["typical"]) & set(group["doubtful"])
        assert group["cluster"] not in group["nearest"]
        assert len(group["nearest"]) == 3
        inside = finished.result.confidence[labels == group["cluster"]]
        assert group["sureness"] == pytest.approx(inside.mean())


def test_doubts_are_the_least_sure_and_look_like_another_cluster(finished):
    found = summarize(finished)["doubts"]
    assert found == sorted(found, key=lambda doubt: doubt["confidence"])
    assert all(doubt["confidence"] < 0.5 for doubt in found)
    assert all(doubt["looks_like"] != doubt["cluster"] for doubt in found)


def test_numbers_of_clusters_are_suggested_even_where_one_was_given(finished):
    found = summarize(finished)["suggestions"]
    scores = [each["score"] for each in found]
    assert 1 <= len(found) <= 5
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("n", "k"), [(2, 1), (2, 2), (3, 3), (7, 7), (30, 1)], ids=lambda value: str(value)
)
def test_edges_of_size(n, k):
    finished = finished_of(blobs(n), k)
    report = Report.of_results(finished, blobs(n), umap=False)
    assert report.summary["clusters"] == k
    assert report.sheets is None
    assert "vectors" in report.summary["no_pictures"]
    assert report.html.startswith("<!DOCTYPE html>")


def test_images_that_are_all_identical(digits):
    same = np.repeat(digits[0][:1], 12, axis=0)
    distinct = finished_of(digits[0][:12], 2)
    report = Report.of_results(distinct, same, umap=False)
    assert report.summary["duplicates"] == [[str(i) for i in range(12)]]


def test_a_middle_stage_lies_between_by_ratio():
    def shot(period, clusters):
        none = np.zeros((0, 3), np.float32)
        return Snapshot(period, np.zeros(0, np.int32), none, np.zeros(0, np.int32), clusters)

    all_of_them = [shot(i, count) for i, count in enumerate((1000, 400, 90, 10))]
    assert [each.n_clusters for each in stages(all_of_them)] == [1000, 90, 10]
    assert len(stages(all_of_them[:2])) == 2


def test_identical_images_are_found(digits):
    images = digits[0][:20].copy()
    images[7] = images[19] = images[3]
    assert identical_images(images) == [[3, 7, 19]]
    assert identical_images(None) == []


def test_a_run_is_told_from_another(digits, finished):
    other = finished_of(digits[0], 5, names=[f"{i}.png" for i in range(300)])
    assert run_id(finished) != run_id(other)
    assert labels_id(finished.result.labels) == labels_id(finished.result.labels.astype(np.int64))


def test_what_lies_in_a_run_folder_is_read(tmp_path, digits):
    run = run_of(tmp_path / "run", digits[0][:40], 3)
    run.path("skipped.csv").write_text('path,reason\n"a, b.png",not an image\n')
    run.path("duplicates.csv").write_text("path,same_as\nb.png,a.png\nc.png,a.png\n")
    run.path("cluster_names.json").write_text('{"names": {"1": "ones"}}')
    assert skipped_files(run) == [("a, b.png", "not an image")]
    assert duplicate_files(run) == [["a.png", "b.png", "c.png"]]
    assert cluster_names(run) == {1: "ones"}
    summary = run.report().summary
    assert summary["skipped"] == [{"path": "a, b.png", "reason": "not an image"}]
    assert summary["duplicates"] == [["a.png", "b.png", "c.png"]]
    assert summary["groups"][1]["name"] == "ones"
    assert [stage["period"] for stage in summary["stages"]] == [0, 1, 2]
    run.path("cluster_names.json").write_text("[]")
    with pytest.raises(ValueError, match="damaged"):
        cluster_names(run)


def test_without_its_images_a_run_still_has_a_page(tmp_path, digits):
    run = run_of(tmp_path / "run", digits[0][:40], 3)
    source = tmp_path / "run.npz"
    np.savez(source, images=digits[0][40:80])
    images, problem = images_of(run)
    assert images is None
    assert "not what the run was made with" in problem
    source.unlink()
    report = run.report()
    assert report.sheets is None
    assert "is not there" in report.summary["no_pictures"]
    assert "is not there" in report.html


def test_a_report_writes_its_files(tmp_path, digits):
    run = run_of(tmp_path / "run", digits[0][:40], 3)
    report = run.report()
    assert report.write(run) == run.path("report.html")
    assert json.loads(run.path("report.json").read_text())["clusters"] == 3
    assert not run.path("report_pictures").exists()
    assert report._repr_html_().startswith("<iframe srcdoc=")


def test_hostile_names_stay_text_in_the_page(digits):
    names = HOSTILE + [f"{i}.png" for i in range(len(HOSTILE), 40)]
    finished = finished_of(digits[0][:40], 3, names=names)
    skipped = [(HOSTILE[0], HOSTILE[1])]
    page = Report.of_results(
        finished, digits[0][:40], umap=False, skipped=skipped, title=HOSTILE[1]
    ).html
    assert "onerror=window.hacked=1>" not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
