"""The page in a real browser: it opens from a file, answers, and does nothing it should not."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from jule.images.sources.base import is_utf8
from jule.report import Report
from jule.runs.results import read_results
from jule.text import defuse
from tests.report.made import HOSTILE, blobs, page_of, results_of
from tests.report.waiting import TIMEOUT, rest


def n_cards(page):
    return page.locator(".card").count()


def test_opens_with_the_labels_of_the_run(visit, page, run, keep_picture):
    with visit(page) as shown:
        assert n_cards(shown) == 8
        labels = shown.evaluate("Array.from(jule.labels)")
        assert labels == read_results(run).result.labels.tolist()
        assert shown.inner_text("#which") == "8 clusters, as in the run"
        assert shown.inner_text("h1") == "400 images in 8 clusters"
        assert shown.title() == "400 images in 8 clusters · run.npz"
        assert not shown.is_visible("#back")
        shown.wait_for_selector(".leaves .pic")
        keep_picture(shown, "test-desktop-light")


def test_how_it_was_computed_is_out_of_the_way(visit, page):
    with visit(page) as shown:
        for word in ("SF", "RC", "NMI", "loss"):
            assert word not in shown.inner_text(".headline")
        assert "estimated to be with their own kind" in shown.inner_text(".headline")
        assert "skipped" not in shown.inner_text(".headline")
        assert not shown.is_visible("#stages canvas")
        shown.click("#computed > summary")
        assert shown.locator("#stages canvas").count() == 3
        assert shown.is_visible("#stages canvas")
        assert shown.locator("#charts figure").count() == 3
        assert "SF and RC agree on" in shown.inner_text("#computed")
        assert "n_clusters" in shown.inner_text("#computed .settings")


def test_every_picture_is_the_right_one(visit, page, images):
    with visit(page) as shown:
        shown.locator(".card .pic").first.wait_for()
        for button in shown.locator(".card .pic").all()[:40:7]:
            pixels = Image.open(io.BytesIO(button.screenshot())).convert("L")
            seen = np.asarray(pixels.resize((8, 8), Image.Resampling.BOX), float).ravel()
            alike = [np.corrcoef(seen, image.ravel())[0, 1] for image in images.astype(float)]
            assert int(np.argmax(alike)) == int(button.get_attribute("data-image"))


def wait_until_asked(page, part):
    """Wait until the page has asked for an address with this part."""
    for _ in range(TIMEOUT // 20):
        if any(part in url for url in page.asked):
            return
        page.wait_for_timeout(20)
    raise AssertionError(page.asked)


def test_pictures_of_a_large_run_lie_beside_the_page(visit, tmp_path):
    many = np.round(255 * blobs(2300, (10, 10), k=4)).astype(np.uint8)
    path = page_of(tmp_path, results_of(many, 4), many)
    assert len(list((tmp_path / "page_pictures").iterdir())) >= 1
    with visit(path) as shown:
        wait_until_asked(shown, "page_pictures/")
        for _ in range(4):
            shown.click("#zoom-in")  # near enough, the map draws pictures
        rest(shown)
        shown.locator(".card .open").first.click()
        assert shown.locator("#group-dialog .pic").count() == 300
        assert shown.locator("#group-dialog .more").count() == 1
        shown.locator("#group-dialog .more").scroll_into_view_if_needed()
        shown.locator("#group-dialog .pic").nth(500).wait_for(state="attached")


def test_hostile_names_do_nothing(visit, images, tmp_path):
    names = HOSTILE + [f"{i}.png" for i in range(len(HOSTILE), 60)]
    firsts = np.arange(60)
    firsts[1:3] = 0
    indices = 3 + 2 * np.arange(60)
    results = results_of(images[:60], 3, names=names, first_copies=firsts, indices=indices)
    named = replace(results, cluster_names={0: HOSTILE[1], 1: HOSTILE[0]})
    path = page_of(
        tmp_path, named, images[:60], source=HOSTILE[0], skipped=[(HOSTILE[0], HOSTILE[1])]
    )
    with visit(path) as shown:
        assert shown.inner_text(".source") == HOSTILE[0]
        assert HOSTILE[0] in shown.inner_text("#skipped")
        assert shown.input_value("#cluster-0 .name") == HOSTILE[1]
        for image, name in enumerate(names[: len(HOSTILE)]):
            shown.evaluate(f"jule.open({image})")
            if "\t" not in name and is_utf8(name):
                assert shown.inner_text("#image-dialog-title") == name
        shown.keyboard.press("Escape")
        with shown.expect_download() as saved:
            shown.click("#save-csv")
        saved.value.save_as(tmp_path / "clusters.csv")
        with shown.expect_download() as saved:
            shown.click("#save-json")
        saved.value.save_as(tmp_path / "edits.json")
        assert shown.evaluate("window.hacked") is None
        assert shown.locator("img").count() == 0
    before = csv.field_size_limit(10**6)
    with open(tmp_path / "clusters.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    csv.field_size_limit(before)
    assert rows[0] == ["path", "cluster", "name", "confidence", "index"]
    assert rows[3][0] == "'" + HOSTILE[2]  # no formula where a spreadsheet opens it
    assert rows[5][0] == HOSTILE[4]
    for row, name, index in zip(rows[1:], names, indices, strict=True):
        assert row[0] == defuse(name) or not is_utf8(name)
        assert int(row[4]) == index
    edits = json.loads((tmp_path / "edits.json").read_text())
    kept = {name for cluster in edits["clusters"] for name in cluster["images"]}
    assert kept == set(names)  # exactly, whatever bytes they are
    kept = {index for cluster in edits["clusters"] for index in cluster["indices"]}
    assert kept == set(indices.tolist())


EDGES = {
    "one cluster": lambda: (results_of(blobs(40), 1), None, 1),
    "two samples": lambda: (results_of(blobs(2), 2), None, 2),
    "two samples, one cluster": lambda: (results_of(blobs(2), 1), None, 1),
    "as many clusters as samples": lambda: (results_of(blobs(9), 9), None, 9),
    "vectors": lambda: (results_of(blobs(50), 3), blobs(50), 3),
    "float images": lambda: (results_of(blobs(50, (6, 7)), 3), blobs(50, (6, 7)) - 0.5, 3),
    "colour": lambda: (
        results_of(blobs(50, (70, 40, 3)), 3),
        np.round(255 * blobs(50, (70, 40, 3))).astype(np.uint8),
        3,
    ),
    "identical images": lambda: (results_of(blobs(30), 3), np.ones((30, 5, 5), np.uint8), 3),
}


@pytest.mark.parametrize("make", EDGES.values(), ids=EDGES.keys())
def test_edges(visit, tmp_path, make):
    results, samples, k = make()
    with visit(page_of(tmp_path, results, samples)) as shown:
        assert n_cards(shown) == k
        shown.locator(".card").first.scroll_into_view_if_needed()
        for other in {1, 2, len(results.names)}:
            shown.evaluate(f"jule.show({other})")
            assert n_cards(shown) == other
        assert shown.inner_text("h1").endswith(f"in {other} cluster{'' if other == 1 else 's'}")
        shown.locator(".card .pic").first.click()
        assert shown.is_visible("#image-dialog")
        if samples is None or samples.ndim == 2:
            assert shown.locator(".card .word").first.inner_text().isdigit()
            assert "No pictures" in shown.inner_text(".remark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_scrolling_sideways(visit, page, scheme, keep_picture):
    with visit(page, width=360, height=760, scheme=scheme, touch=True) as shown:
        shown.evaluate("document.getElementById('computed').open = true")
        shown.evaluate("jule.show(30)")
        rest(shown)
        assert shown.evaluate("document.documentElement.scrollWidth") <= 360
        keep_picture(shown, f"test-phone-{scheme}")
        cards, map_top = shown.evaluate(
            "['cards', 'map'].map((id) => document.getElementById(id).getBoundingClientRect().top)"
        )
        assert cards < map_top  # pictures come first
        shown.locator(".card").first.scroll_into_view_if_needed()
        shown.locator(".card .pic").first.click()
        assert shown.evaluate("document.documentElement.scrollWidth") <= 360


def test_targets_are_large_enough_for_a_finger(visit, page):
    with visit(page, width=360, height=760, touch=True) as shown:
        shown.evaluate("jule.show(12)")
        shown.wait_for_selector(".joint")
        shown.locator(".card .pic").first.click()
        small = shown.evaluate(
            """[...document.querySelectorAll(
              'button, select, summary, input:not([type=checkbox])'
            )].filter((e) => e.checkVisibility()).map((e) => [e, e.getBoundingClientRect()])
              .filter(([, { width, height }]) => Math.min(width, height) < 43.5)
              .map(([e, box]) => `${e.tagName} ${e.className} ${box.width} ${box.height}`)"""
        )
        assert small == []


def folder_of(path, images):
    """Images as files with awkward names; only the first ones exist."""
    names = ["a b/100% #1?.png", "ü.png", *(f"gone/{i}.png" for i in range(2, len(images)))]
    (path / "a b").mkdir(parents=True)
    for name, image in zip(names[:2], images, strict=False):
        pixels = np.kron(image.astype(np.uint8) * 15, np.ones((30, 30), np.uint8))
        Image.fromarray(pixels).save(path / name)
    return names


def test_an_image_is_enlarged_from_its_original(visit, images, tmp_path, keep_picture):
    names = folder_of(tmp_path / "my photos", images[:40])
    results = results_of(images[:40], 3, names=names)
    path = page_of(tmp_path, results, images[:40], source=tmp_path / "my photos")
    with visit(path, missing="gone/") as shown:
        for image in (0, 1):
            shown.evaluate(f"jule.open({image})")
            shown.wait_for_selector("#image-dialog img")
            assert shown.evaluate("document.querySelector('#image-dialog img').naturalWidth") == 240
            assert shown.inner_text("#image-dialog-title") == names[image]
        keep_picture(shown, "test-original")
        with shown.expect_event("requestfailed"):
            shown.evaluate("jule.open(2)")
        rest(shown)
        assert shown.locator("#image-dialog img").count() == 0
        assert shown.is_visible("#image-dialog .large .picture")


@pytest.mark.parametrize("name", ["../secret.png", "/etc/a.png", "a/../../b.png", "./a.png"])
def test_no_name_leads_out_of_the_folder(visit, images, tmp_path, name):
    folder_of(tmp_path / "photos", images[:20])
    names = ["ü.png", name, *(f"{i}.png" for i in range(2, 20))]
    path = page_of(
        tmp_path, results_of(images[:20], 2, names=names), images[:20], source=tmp_path / "photos"
    )
    with visit(path) as shown:
        shown.evaluate("jule.open(1)")
        rest(shown)
        assert len(shown.asked) == 1 + sum(url.startswith("data:") for url in shown.asked)
        assert shown.locator("#image-dialog img").count() == 0


def test_by_keyboard_alone(visit, page):
    with visit(page) as shown:
        first = shown.locator(".card .typical").first
        first.locator(".pic").first.focus()
        shown.keyboard.press("ArrowRight")
        assert first.locator(".pic").nth(1).evaluate("e => e === document.activeElement")
        shown.keyboard.press("ArrowDown")
        assert first.locator(".pic").nth(7).evaluate("e => e === document.activeElement")
        shown.keyboard.press("Enter")
        assert shown.is_visible("#image-dialog")
        shown.keyboard.press("Escape")
        assert not shown.is_visible("#image-dialog")
        nameless = shown.evaluate(
            "[...document.querySelectorAll('button, input, select, canvas')].filter((e) =>"
            " !e.textContent.trim() && !e.getAttribute('aria-label') && !e.labels?.length).length"
        )
        assert nameless == 0


def test_print_shows_every_card(visit, page, keep_picture):
    with visit(page) as shown:
        shown.evaluate("jule.show(60)")
        shown.evaluate("dispatchEvent(new Event('beforeprint'))")
        shown.emulate_media(media="print")
        assert shown.locator(".card:not(:has(.pic))").count() == 0
        assert not shown.is_visible("#slider")


def test_a_notebook_shows_the_page(browser, run, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text("<meta charset='utf-8'>" + Report.of_run(run)._repr_html_(), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.frame_locator("iframe").locator(".card .pic").first.wait_for()
    page.close()
