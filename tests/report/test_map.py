"""The map of the page: names that can be read, and a frame that is never empty."""

from dataclasses import replace

import numpy as np
import pytest

from tests.report.made import page_of, results_of
from tests.report.waiting import draw


def labels_of(page):
    draw(page)
    return page.evaluate("jule.map.labels")


def n_in_view(page):
    draw(page)
    return page.evaluate(
        "jule.map.xs.filter((x, i) => x >= 0 && x <= jule.map.width"
        " && jule.map.ys[i] >= 0 && jule.map.ys[i] <= jule.map.height).length"
    )


@pytest.mark.parametrize("width", [1300, 360])
def test_names_neither_overlap_nor_leave_the_frame(visit, images, tmp_path, width):
    results = results_of(images, 12)
    names = {cluster: f"a rather long name {cluster}" for cluster in range(12)}
    path = page_of(tmp_path, replace(results, cluster_names=names), images)
    with visit(path, width=width) as shown:
        for k in (12, 40, 3):
            shown.evaluate(f"jule.show({k})")
            labels = labels_of(shown)
            assert 1 <= len(labels) <= k
            frame = shown.evaluate("[jule.map.width, jule.map.height]")
            for i, one in enumerate(labels):
                assert one["left"] >= 0
                assert one["top"] >= 0
                assert one["right"] <= frame[0]
                assert one["bottom"] <= frame[1]
                for other in labels[:i]:
                    apart_x = one["left"] >= other["right"] or other["left"] >= one["right"]
                    apart_y = one["top"] >= other["bottom"] or other["top"] >= one["bottom"]
                    assert apart_x or apart_y
        sizes = np.bincount(np.array(shown.evaluate("Array.from(jule.labels)")))
        largest = shown.evaluate("jule.numbers")[int(sizes.argmax())]
        assert labels[0]["text"].startswith(f"a rather long name {largest}"[:23])


def test_the_frame_is_never_empty(visit, page):
    with visit(page) as shown:
        canvas = shown.locator("#map-canvas")
        canvas.focus()
        for _ in range(60):
            shown.keyboard.press("ArrowLeft")
        assert n_in_view(shown) > 0
        shown.keyboard.press("0")
        for _ in range(12):
            shown.keyboard.press("+")
            shown.keyboard.press("ArrowDown")
            shown.keyboard.press("ArrowRight")
        assert n_in_view(shown) > 0
        box = canvas.bounding_box()
        shown.mouse.move(box["x"] + 3, box["y"] + 3)
        for _ in range(20):
            shown.mouse.wheel(0, -500)
        assert n_in_view(shown) > 0
        shown.click("#map-views button:has-text('3-D')")
        for _ in range(10):
            shown.click("#zoom-in")
        canvas.focus()
        for _ in range(10):
            shown.keyboard.press("ArrowLeft")
        assert n_in_view(shown) > 0


def test_a_line_around_points_selects_them(visit, page, keep_picture):
    with visit(page) as shown:
        shown.click("#map-modes button:has-text('Select')")
        canvas = shown.locator("#map-canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        corners = [(0.05, 0.05), (0.6, 0.05), (0.6, 0.95), (0.05, 0.95)]
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
        shown.mouse.move(*places[0])
        shown.mouse.down()
        for place in places[1:]:
            shown.mouse.move(*place, steps=4)
        shown.mouse.up()
        assert shown.is_visible("#selected .pic")
        assert 0 < int(shown.inner_text("#selection-bar span").split()[0]) < 400
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
        draw(shown)
        assert canvas.screenshot() != before
        for key in ("+", "+", "-", "0"):
            shown.keyboard.press(key)
        shown.click("#map-views button:has-text('PCA')")
        draw(shown)
        box = canvas.bounding_box()
        x, y = shown.evaluate("[jule.map.xs[0], jule.map.ys[0]]")
        shown.mouse.move(box["x"] + x, box["y"] + y)
        assert shown.is_visible("#map-tip .picture")


def test_a_learned_map_is_shown_first(visit, images, tmp_path):
    places = np.random.default_rng(0).normal(5, 1, (len(images), 2)).astype(np.float32)
    path = page_of(tmp_path, replace(results_of(images, 8), positions=places), images)
    with visit(path) as shown:
        assert shown.inner_text("#map-views button[aria-pressed=true]") == "Learned"
        at = np.array(shown.evaluate("Array.from(jule.map.xs)"))
        assert np.corrcoef(at, places[:, 0])[0, 1] > 0.999
        shown.click("#map-views button:has-text('PCA')")
        draw(shown)
        assert np.corrcoef(shown.evaluate("Array.from(jule.map.xs)"), at)[0, 1] < 0.9
        assert len(labels_of(shown)) > 0
