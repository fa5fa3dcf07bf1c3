"""The page in a real browser: it opens from a file, answers, and does nothing it should not."""

import csv
import io
import json

import numpy as np
import pytest
from PIL import Image

from jule.forward import MergeTree, default_min_cluster_size
from jule.images import load_dataset
from jule.report import Report
from jule.report.edits import apply_edits, read_edits
from jule.report.source import cluster_names
from jule.runs import read_results
from tests.report.made import HOSTILE, blobs, finished_of, run_of


@pytest.fixture(scope="module")
def images():
    return load_dataset("digits").images[:600]


@pytest.fixture(scope="module")
def run(images, tmp_path_factory):
    made = run_of(tmp_path_factory.mktemp("runs") / "run", images, 8)
    made.report().write(made)
    return made


@pytest.fixture(scope="module")
def page(run):
    return run.path("report.html")


def write(folder, finished, images=None, **about):
    path = folder / "page.html"
    Report.of_results(finished, images, umap=False, **about).write_html(path)
    return path


def labels_in(page):
    return np.array(page.evaluate("Array.from(jule.labels)"))


def n_cards(page):
    return page.locator(".card").count()


def test_opens_with_the_runs_own_labels(visit, page, run, keep_picture):
    with visit(page) as shown:
        assert n_cards(shown) == 8
        np.testing.assert_array_equal(labels_in(shown), read_results(run).result.labels)
        assert "the run’s own result" in shown.inner_text("#which")
        assert "600 images in 8 clusters" in shown.inner_text("h1")
        assert not shown.is_visible("#back")
        assert shown.locator("#stages canvas").count() == 3
        assert shown.locator("#charts figure").count() == 3
        shown.wait_for_selector(".leaves .pic")
        assert shown.locator(".leaves li").count() == 8
        keep_picture(shown, "test-desktop-light")


@pytest.mark.parametrize("k", [1, 2, 7, 9, 50, 300])
def test_the_slider_gives_exactly_k_cards_and_the_labels_of_python(visit, page, run, k):
    tree = read_results(run).result.tree
    expected = tree.cut(k, default_min_cluster_size(600, k))
    with visit(page) as shown:
        shown.fill("#k", str(k))
        shown.press("#k", "Enter")
        assert n_cards(shown) == k
        np.testing.assert_array_equal(labels_in(shown), expected)
        assert "the merge tree, cut here" in shown.inner_text("#which")
        shown.click("#back")
        assert n_cards(shown) == 8
        np.testing.assert_array_equal(labels_in(shown), read_results(run).result.labels)


def test_the_slider_goes_by_key_by_button_and_by_mouse(visit, page):
    with visit(page) as shown:
        shown.focus("#slider")
        shown.keyboard.press("ArrowRight")
        assert n_cards(shown) == 9
        shown.keyboard.press("ArrowLeft")
        shown.keyboard.press("ArrowLeft")
        assert n_cards(shown) == 7
        shown.click("#more")
        assert n_cards(shown) == 8
        assert shown.get_attribute("#slider", "aria-valuetext") == "8 clusters"
        box = shown.locator("#slider").bounding_box()
        shown.mouse.click(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
        assert n_cards(shown) > 250
        shown.fill("#k", "9999")
        shown.press("#k", "Enter")
        assert n_cards(shown) == 300
        chip = shown.locator("#suggested .chip").first
        chip.click()
        assert n_cards(shown) == int(chip.inner_text())


def random_tree(rng, n):
    alive, merges = list(range(n)), []
    while len(alive) > 1:
        # Mostly the oldest with another one, so that there are combs and outliers.
        a = alive.pop(0 if rng.random() < 0.5 else int(rng.integers(len(alive))))
        b = alive.pop(int(rng.integers(len(alive))))
        merges.append((a, b))
        alive.insert(int(rng.integers(len(alive) + 1)), n + len(merges) - 1)
    return MergeTree(n, np.array(merges), np.zeros(n - 1))


def test_any_tree_is_cut_as_in_python(visit, page):
    rng = np.random.default_rng(0)
    with visit(page) as shown:
        for n in (2, 3, 5, 17, 60, 200, 500):
            for _ in range(5):
                tree = random_tree(rng, n)
                ks = sorted({1, 2, n, *rng.integers(1, n + 1, 6).tolist()})
                found = shown.evaluate(
                    "([n, merges, ks]) => ks.map("
                    "(k) => Array.from(jule.cutOther(n, Int32Array.from(merges), k)))",
                    [n, tree.merges.ravel().tolist(), ks],
                )
                for k, labels in zip(ks, found, strict=True):
                    expected = tree.cut(k, default_min_cluster_size(n, k))
                    np.testing.assert_array_equal(labels, expected)


def test_every_picture_is_the_right_one(visit, page, images):
    with visit(page) as shown:
        shown.locator(".card .pic").first.wait_for()
        for button in shown.locator(".card .pic").all()[:40:7]:
            pixels = Image.open(io.BytesIO(button.screenshot())).convert("L")
            seen = np.asarray(pixels.resize((8, 8), Image.Resampling.BOX), float).ravel()
            alike = [np.corrcoef(seen, image.ravel())[0, 1] for image in images.astype(float)]
            assert int(np.argmax(alike)) == int(button.get_attribute("data-image"))


def test_pictures_of_a_large_run_lie_beside_the_page(visit, tmp_path):
    many = np.round(255 * blobs(2300, (10, 10), k=4)).astype(np.uint8)
    path = write(tmp_path, finished_of(many, 4), many)
    assert len(list((tmp_path / "page_pictures").iterdir())) >= 1
    with visit(path) as shown:
        shown.wait_for_timeout(300)
        assert any("page_pictures/" in url for url in shown.asked)
        for _ in range(4):
            shown.click("#zoom-in")  # near enough, the map draws pictures
        shown.wait_for_timeout(300)
        shown.locator(".card .open").first.click()
        assert shown.locator("#group-dialog .pic").count() == 300
        assert shown.locator("#group-dialog .more").count() == 1
        shown.locator("#group-dialog .more").scroll_into_view_if_needed()
        shown.locator("#group-dialog .pic").nth(500).wait_for(state="attached")


def test_naming_moving_and_taking_it_back_into_the_run(visit, images, tmp_path, keep_picture):
    run = run_of(tmp_path / "run", images[:200], 4, names=[f"{i}.png" for i in range(200)])
    run.report().write(run)
    with visit(run.path("report.html")) as shown:
        before = labels_in(shown)
        shown.fill("#group-1 .name", "ones, “1” <b>")
        shown.press("#group-1 .name", "Enter")
        assert shown.locator("[data-link='1'] span").first.inner_text() == "ones, “1” <b>"
        pic = shown.locator("#group-0 .pic").first
        image = int(pic.get_attribute("data-image"))
        pic.click()
        assert shown.inner_text("#image-dialog-title") == f"{image}.png"
        assert shown.locator("#image-dialog .around .pic").count() == 8
        keep_picture(shown, "test-image")
        shown.select_option("#image-dialog select", label="ones, “1” <b>")
        assert labels_in(shown)[image] == 1
        other = int(np.flatnonzero(before == 0)[np.flatnonzero(before == 0) != image][0])
        shown.evaluate("document.getElementById('image-dialog').close()")
        shown.evaluate("document.getElementById('sort').focus()")
        shown.click("#group-0 .open")
        shown.click("#group-dialog button:has-text('Select')")
        shown.click(f"#group-dialog .pic[data-image='{other}']")
        shown.select_option("#selection-bar select", label="a new cluster")
        assert n_cards(shown) == 5
        assert labels_in(shown)[other] == 4
        assert "2 images were moved" in shown.inner_text("#edits-said")
        with shown.expect_download() as saved:
            shown.click("#save-json")
        saved.value.save_as(tmp_path / "edits.json")
        with shown.expect_download() as saved:
            shown.click("#save-csv")
        saved.value.save_as(tmp_path / "clusters.csv")
        after = labels_in(shown)
        shown.click("#fewer")  # another view has its own changes
        assert "unchanged" in shown.inner_text("#edits-said")
        shown.click("#back")
        assert "2 images were moved" in shown.inner_text("#edits-said")
    with open(tmp_path / "clusters.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["cluster"]) for row in rows] == after.tolist()
    assert rows[image]["name"] == "ones, “1” <b>"
    apply_edits(run, read_edits(tmp_path / "edits.json"))
    assert read_results(run).result.labels.tolist() == after.tolist()
    assert cluster_names(run) == {1: "ones, “1” <b>"}
    run.report().write(run)
    with visit(run.path("report.html")) as shown:
        assert shown.input_value("#group-1 .name") == "ones, “1” <b>"


def test_a_doubtful_image_is_moved_at_once_and_changes_are_forgotten(visit, tmp_path):
    rng = np.random.default_rng(0)
    finished = finished_of(rng.uniform(0, 1, (200, 6, 6)).astype(np.float32), 4)
    path = write(tmp_path, finished, rng.uniform(0, 1, (200, 6, 6)))
    with visit(path) as shown:
        before = labels_in(shown)
        move = shown.locator(".doubt .quiet").first
        image = int(shown.locator(".doubt .pic").first.get_attribute("data-image"))
        move.click()
        assert labels_in(shown)[image] != before[image]
        shown.click("#undo")
        np.testing.assert_array_equal(labels_in(shown), before)


def test_drawing_around_points_selects_them_in_the_gallery(visit, page, keep_picture):
    with visit(page) as shown:
        shown.click("#map-modes button:has-text('Select')")
        shown.locator("#map-canvas").scroll_into_view_if_needed()
        box = shown.locator("#map-canvas").bounding_box()
        corners = [(0.05, 0.05), (0.6, 0.05), (0.6, 0.95), (0.05, 0.95)]
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
        shown.mouse.move(*places[0])
        shown.mouse.down()
        for place in places[1:]:
            shown.mouse.move(*place, steps=4)
        shown.mouse.up()
        assert shown.is_visible("#selected .pic")
        assert "selected" in shown.inner_text("#selection-bar")
        assert 0 < int(shown.inner_text("#selection-bar span").split()[0]) < 600
        keep_picture(shown, "test-selection")
        shown.keyboard.press("Escape")
        assert not shown.is_visible("#selection-bar")


def test_the_map_can_be_turned_zoomed_and_pointed_at(visit, page):
    with visit(page) as shown:
        shown.click("#map-views button:has-text('3-D')")
        canvas = shown.locator("#map-canvas")
        canvas.focus()
        before = canvas.screenshot()
        shown.keyboard.press("ArrowLeft")
        shown.wait_for_timeout(100)
        assert canvas.screenshot() != before
        for key in ("+", "+", "-", "0"):
            shown.keyboard.press(key)
        shown.click("#map-views button:has-text('PCA')")
        shown.wait_for_timeout(100)
        box = canvas.bounding_box()
        for step in range(60):
            shown.mouse.move(box["x"] + 5 * step + 20, box["y"] + 4 * step + 20)
            if shown.is_visible("#map-tip"):
                break
        assert shown.is_visible("#map-tip .picture")


def test_hostile_names_do_nothing(visit, images, tmp_path):
    names = HOSTILE + [f"{i}.png" for i in range(len(HOSTILE), 60)]
    finished = finished_of(images[:60], 3, names=names)
    path = write(
        tmp_path,
        finished,
        images[:60],
        title=HOSTILE[0],
        skipped=[(HOSTILE[0], HOSTILE[1])],
        duplicates=[HOSTILE[:3]],
        cluster_names={0: HOSTILE[1], 1: HOSTILE[0]},
    )
    with visit(path) as shown:
        assert shown.inner_text(".source") == HOSTILE[0]
        assert HOSTILE[0] in shown.inner_text("#skipped")
        assert shown.input_value("#group-0 .name") == HOSTILE[1]
        for image, name in enumerate(names[: len(HOSTILE)]):
            shown.evaluate(f"jule.open({image})")
            if "\t" not in name and "\udce9" not in name:
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
    with open(tmp_path / "clusters.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[3][0] == "'" + HOSTILE[2]  # no formula where a spreadsheet opens it
    assert rows[5][0] == HOSTILE[4]
    edits = json.loads((tmp_path / "edits.json").read_text())
    kept = {name for cluster in edits["clusters"] for name in cluster["images"]}
    assert kept == set(names)  # exactly, whatever bytes they are


EDGES = {
    "one cluster": lambda: (finished_of(blobs(40), 1), None, 1),
    "two samples": lambda: (finished_of(blobs(2), 2), None, 2),
    "two samples, one cluster": lambda: (finished_of(blobs(2), 1), None, 1),
    "as many clusters as samples": lambda: (finished_of(blobs(9), 9), None, 9),
    "vectors": lambda: (finished_of(blobs(50), 3), blobs(50), 3),
    "float images": lambda: (finished_of(blobs(50, (6, 7)), 3), blobs(50, (6, 7)) - 0.5, 3),
    "colour": lambda: (
        finished_of(blobs(50, (70, 40, 3)), 3),
        np.round(255 * blobs(50, (70, 40, 3))).astype(np.uint8),
        3,
    ),
    "identical images": lambda: (finished_of(blobs(30), 3), np.ones((30, 5, 5), np.uint8), 3),
}


@pytest.mark.parametrize("make", EDGES.values(), ids=EDGES.keys())
def test_edges(visit, tmp_path, make):
    finished, samples, k = make()
    with visit(write(tmp_path, finished, samples)) as shown:
        assert n_cards(shown) == k
        shown.locator(".card").first.scroll_into_view_if_needed()
        for other in {1, 2, len(finished.names)}:
            shown.evaluate(f"jule.show({other})")
            assert n_cards(shown) == other
        shown.locator(".card .pic").first.click()
        assert shown.is_visible("#image-dialog")
        if samples is None or samples.ndim == 2:
            assert shown.locator(".card .word").first.inner_text().isdigit()
            assert "No pictures" in shown.inner_text(".chosen")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_scrolling_sideways(visit, page, scheme, keep_picture):
    with visit(page, width=375, height=760, scheme=scheme) as shown:
        shown.evaluate("jule.show(30)")
        shown.wait_for_timeout(200)
        assert shown.evaluate("document.documentElement.scrollWidth") <= 375
        keep_picture(shown, f"test-phone-{scheme}")
        shown.locator(".card").first.scroll_into_view_if_needed()
        shown.locator(".card .pic").first.click()
        assert shown.evaluate("document.documentElement.scrollWidth") <= 375


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
    path.write_text("<meta charset='utf-8'>" + run.report()._repr_html_(), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.frame_locator("iframe").locator(".card .pic").first.wait_for()
    page.close()
