"""Names and moves made on the page, and taking them back into the run."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from jule.joint.result import with_labels
from jule.report import Report
from jule.runs.edits import apply_edits, read_edits
from jule.runs.results import read_results
from tests.report.made import labels_in, name_field, page_of, rename, results_of, run_of


def download(page, button, path):
    with page.expect_download() as saved:
        page.click(button)
    saved.value.save_as(path)
    return path


def move(page, image, label):
    page.evaluate(f"jule.open({image})")
    page.select_option("#image-dialog select", label=label)
    page.evaluate("document.getElementById('image-dialog').close()")


@pytest.fixture(scope="module")
def random_results():
    """Clusters of noise: many images lie between them."""
    return results_of(np.random.default_rng(0).uniform(0, 1, (200, 6, 6)), 4)


def test_naming_moving_and_taking_it_back_into_the_run(visit, images, tmp_path, keep_picture):
    run = run_of(tmp_path / "run", images[:200], 4, names=[f"{i}.png" for i in range(200)])
    Report.of_run(run, umap=False).write(run)
    with visit(run.path("report.html")) as shown:
        before = labels_in(shown)
        rename(shown, 1, "ones, “1” <b>")
        assert shown.locator("[data-link='1'] span").first.inner_text() == "ones, “1” <b>"
        pic = shown.locator("#cluster-0 .pic").first
        image = int(pic.get_attribute("data-image"))
        pic.click()
        assert shown.inner_text("#image-dialog-title") == f"{image}.png"
        assert shown.locator("#image-dialog .around .pic").count() == 8
        keep_picture(shown, "test-image")
        shown.select_option("#image-dialog select", label="ones, “1” <b>")
        assert labels_in(shown)[image] == 1
        assert "1 image was moved" in shown.inner_text("#edits-said")
        shown.evaluate("document.getElementById('image-dialog').close()")
        other = int(np.flatnonzero((before == 0) & (np.arange(200) != image))[0])
        shown.click("#cluster-0 .open")
        shown.click("#group-dialog button:has-text('Select')")
        shown.click(f"#group-dialog .pic[data-image='{other}']")
        shown.select_option("#selection-bar select", label="a new cluster")
        assert labels_in(shown)[other] == 4
        assert "200 images in 5 clusters" in shown.inner_text("h1")
        assert "2 images were moved" in shown.inner_text("#edits-said")
        edits = download(shown, "#save-json", tmp_path / "edits.json")
        table = download(shown, "#save-csv", tmp_path / "clusters.csv")
        after = labels_in(shown)
        shown.click("#fewer")  # moves belong to one number of clusters
        assert "moved" not in shown.inner_text("#edits-said")
        shown.click("#back")
        assert "2 images were moved" in shown.inner_text("#edits-said")
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["cluster"]) for row in rows] == after.tolist()
    assert rows[image]["name"] == "ones, “1” <b>"
    apply_edits(run, read_edits(edits))
    results = read_results(run)
    assert results.result.labels.tolist() == after.tolist()
    assert results.cluster_names == {1: "ones, “1” <b>"}
    assert np.flatnonzero(results.by_hand).tolist() == sorted([image, other])
    Report.of_run(run, umap=False).write(run)
    with visit(run.path("report.html")) as shown:
        np.testing.assert_array_equal(labels_in(shown), after)
        assert name_field(shown, 1).input_value() == "ones, “1” <b>"
        shown.evaluate(f"jule.open({image})")
        assert "by hand" in shown.inner_text("#image-dialog .dialog-head")


def test_another_number_of_clusters_is_applied_with_its_names(visit, images, tmp_path):
    run = run_of(tmp_path / "run", images[:200], 4)
    Report.of_run(run, umap=False).write(run)
    with visit(run.path("report.html")) as shown:
        rename(shown, 2, "twos")
        shown.evaluate("jule.show(7)")
        numbers = shown.evaluate("jule.numbers")
        created = max(numbers)
        rename(shown, created, "new")
        expected = labels_in(shown)
        edits = json.loads(download(shown, "#save-json", tmp_path / "edits.json").read_text())
        shown.evaluate("jule.show(4)")
        assert "1 cluster has a name" in shown.inner_text("#edits-said")
    assert edits["format"] == "jule-page-edits-3"
    assert edits["k"] == 7
    named = {expected[edit["cluster"]]: edit["name"] for edit in edits["edits"]}
    assert named == {numbers.index(2): "twos", numbers.index(created): "new"}
    apply_edits(run, read_edits(tmp_path / "edits.json"))
    results = read_results(run)
    assert results.labels.tolist() == [numbers[group] for group in expected]
    assert results.recut()[1] == {2: "twos", created: "new"}


def test_a_name_that_was_cleared_is_removed_from_the_run(visit, random_results, tmp_path):
    named = replace(random_results, cluster_names={0: "cats", 1: "dogs"})
    with visit(page_of(tmp_path, named)) as shown:
        assert shown.is_disabled("#undo")
        rename(shown, 0, "")
        edits = json.loads(download(shown, "#save-json", tmp_path / "edits.json").read_text())
        clusters = labels_in(shown)
        assert [(clusters[edit["cluster"]], edit["name"]) for edit in edits["edits"]] == [
            (0, ""),
            (1, "dogs"),
        ]
        assert edits["labels"] == shown.evaluate("JSON.parse(run.textContent).summary.labels")
        shown.click("#undo")
        assert name_field(shown, 0).input_value() == "cats"


def test_a_new_name_outside_the_download_is_mentioned(visit, random_results, tmp_path):
    with visit(page_of(tmp_path, random_results)) as shown:
        shown.evaluate("jule.show(30)")
        number = max(shown.evaluate("jule.numbers"))
        rename(shown, number, "far down")
        shown.evaluate("jule.show(4)")
        assert "1 new name belongs to a cluster that" in shown.inner_text("#edits-said")
        rename(shown, 0, "")  # nothing changes
        download(shown, "#save-json", tmp_path / "edits.json")
        shown.evaluate("jule.show(30)")
        download(shown, "#save-json", tmp_path / "edits.json")
        shown.evaluate("jule.show(4)")
        assert "new name" not in shown.inner_text("#edits-said")


def test_a_number_is_never_used_again(visit, random_results, tmp_path):
    with visit(page_of(tmp_path, random_results)) as shown:
        own = f"Cluster {labels_in(shown)[10]}"
        move(shown, 10, "a new cluster")
        move(shown, 11, "a new cluster")
        assert labels_in(shown)[[10, 11]].tolist() == [4, 5]
        move(shown, 10, own)
        assert labels_in(shown)[11] == 4
        edits = json.loads(download(shown, "#save-json", tmp_path / "edits.json").read_text())
        assert [edit["edit"] for edit in edits["edits"]] == ["move"] * 3
        assert [one["cluster"] for one in edits["clusters"]] == [0, 1, 2, 3, 5]


def test_copies_move_together(visit, images, tmp_path):
    firsts = np.arange(120)
    firsts[[7, 40]] = 99
    samples = images[:120].copy()
    samples[[7, 40]] = samples[99]
    results = results_of(samples, 3, first_copies=firsts)
    with visit(page_of(tmp_path, results, samples)) as shown:
        assert "99 = 7 = 40" in shown.inner_text("#duplicates")
        before = labels_in(shown)
        assert len(set(before[[7, 40, 99]])) == 1
        move(shown, 40, "a new cluster")
        assert labels_in(shown)[[7, 40, 99]].tolist() == [3, 3, 3]
        assert (labels_in(shown) == 3).sum() == 3
        assert "3 images were moved" in shown.inner_text("#edits-said")


def doubts_in(page):
    page.wait_for_timeout(250)
    return [int(pic.get_attribute("data-image")) for pic in page.locator(".doubt .pic").all()]


def test_the_page_shows_the_lists_of_the_summary(visit, random_results, tmp_path):
    path = page_of(tmp_path, random_results)
    with visit(path) as shown:
        summary = shown.evaluate("JSON.parse(run.textContent).summary")
        assert doubts_in(shown) == [doubt["image"] for doubt in summary["doubts"]][:36]
        assert shown.inner_text("#doubts-hint").startswith(f"{summary['n_doubts']} images are")
        for group in summary["groups"]:
            shown.evaluate(
                f"document.getElementById('cluster-{group['cluster']}').scrollIntoView()"
            )
            shown.wait_for_selector(f"#cluster-{group['cluster']} .pic")
            found = shown.evaluate(
                f"[...document.querySelectorAll('#cluster-{group['cluster']} .pic')]"
                ".map((e) => Number(e.dataset.image))"
            )
            assert found == group["typical"] + group["doubtful"]


def test_a_doubtful_image_is_moved_at_once_and_not_doubted_again(visit, random_results, tmp_path):
    with visit(page_of(tmp_path, random_results)) as shown:
        before = labels_in(shown)
        image, *others = doubts_in(shown)
        shown.locator(".doubt .quiet").first.click()
        assert labels_in(shown)[image] != before[image]
        assert doubts_in(shown)[: len(others)] == others
        shown.click("#undo")
        np.testing.assert_array_equal(labels_in(shown), before)
        assert doubts_in(shown)[0] == image


def test_the_page_says_where_images_went_and_takes_them_back(
    visit, random_results, tmp_path, keep_picture
):
    with visit(page_of(tmp_path, random_results)) as page:
        before = labels_in(page)
        tile = page.locator(".doubt").first
        image = int(tile.locator(".pic").get_attribute("data-image"))
        own, other = tile.locator(".group-link").all_inner_texts()
        tile.locator("button:text-is('Move')").click()
        name = page.inner_text("#message-text bdi")
        assert page.inner_text("#message-text") == f"{name} moved from {own} to {other}. Undo"
        keep_picture(page, "test-moved")
        page.click("#message-text button")
        assert labels_in(page).tolist() == before.tolist()
        assert page.is_hidden("#message")
        some = [int(one) for one in np.flatnonzero(before == before[image])[:3]]
        page.evaluate(f"jule.select({some})")
        page.select_option("#selection-bar select", label="a new cluster")
        assert page.inner_text("#message-text").endswith(" and 2 others moved to Cluster 4. Undo")
        page.evaluate(f"jule.select({some})")
        page.select_option("#selection-bar select", label="Cluster 4")
        assert page.inner_text("#message-text") == "No picture had to move."
        page.evaluate("jule.show(6)")
        assert page.inner_text("#which").endswith("without the changes made there")


def test_an_image_is_explained_by_the_pictures_beside_it(
    visit, random_results, tmp_path, keep_picture
):
    with visit(page_of(tmp_path, random_results)) as page:
        assert "(by all their neighbours" in page.inner_text("#doubts-hint")
        for image in doubts_in(page)[:5]:
            page.evaluate(f"jule.open({image})")
            beside = page.locator("#image-dialog .around:not(.pictures .pictures) .pic")
            places = [
                beside.nth(at).get_attribute("aria-label").split(", in ")[1]
                for at in range(beside.count())
            ]
            said = page.inner_text("#image-dialog h3:text-is('Most like it') + .hint")
            counts = {
                place: int(n) for n, place in (part.split(" in ") for part in said.split(", "))
            }
            assert counts == {place: places.count(place) for place in places}
            assert list(counts.values()) == sorted(counts.values(), reverse=True)
            assert "Otherwise it is most like" in page.inner_text("#image-dialog .image-facts")
        keep_picture(page, "test-explained")


def test_what_was_decided_in_the_run_is_not_doubted_at_any_number(visit, random_results, tmp_path):
    labels = random_results.result.labels
    by_hand = np.arange(200) < 100
    other = np.where(by_hand, (labels + 1) % 4, labels).astype(np.int32)
    result = with_labels(random_results.result, other, random_results.config, by_hand=by_hand)
    with visit(page_of(tmp_path, replace(random_results, result=result, by_hand=by_hand))) as shown:
        for k in (4, 9):
            shown.evaluate(f"jule.show({k})")
            assert min(doubts_in(shown)) >= 100
        assert "with the changes made by hand" not in shown.inner_text("#which")
        shown.click("#back")
        assert "with the changes made by hand" in shown.inner_text("#which")
