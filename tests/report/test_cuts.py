"""Cutting the tree in the browser: the same clusters, numbers and names as in Python."""

import numpy as np
import pytest

import jule.report.sample
from jule.corrections import replay
from jule.forward import MergeTree, default_min_cluster_size
from jule.forward.branches import branch_numbers
from jule.forward.tree import clusters_as_nodes
from jule.joint.clustering import min_size
from jule.joint.result import recut
from jule.runs.edits import EditSession
from jule.runs.results import read_results
from tests.report.made import labels_in, name_field, page_of, rename, run_of
from tests.report.waiting import rest

N = 400
KS = [1, 2, 7, 8, 9, 50, 300]


@pytest.fixture(scope="module")
def results(run):
    return read_results(run)


def cards(page):
    """The number and the colour of every cluster on the page."""
    return page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.card')].map("
        "(e) => [e.id.replace('cluster-', ''), e.style.getPropertyValue('--colour')]))"
    )


def test_every_number_of_clusters_has_the_labels_and_numbers_of_python(visit, page, results):
    tree = results.result.tree
    numbers = branch_numbers(tree, results.result.labels)
    with visit(page) as shown:
        for k in KS:
            shown.fill("#k", str(k))
            shown.press("#k", "Enter")
            np.testing.assert_array_equal(
                labels_in(shown), recut(results.result, k, results.config)
            )
            expected = list(range(8))
            if k != 8:
                nodes = clusters_as_nodes(tree, k, min_size(tree, k, results.config))
                expected = numbers[nodes].tolist()
            assert shown.evaluate("jule.numbers") == expected
            assert sorted(map(int, cards(shown))) == sorted(expected)
            plural = "" if k == 1 else "s"
            assert shown.inner_text("h1") == f"400 images in {k} cluster{plural}"
            assert shown.is_visible("#back") == (k != 8)
        shown.click("#back")
        np.testing.assert_array_equal(labels_in(shown), results.result.labels)


def test_every_number_of_clusters_has_the_confidence_of_python(visit, page, results):
    with visit(page) as shown:
        for k in KS:
            shown.evaluate(f"jule.show({k})")
            found = np.array(shown.evaluate("Array.from(jule.confidence)"))
            exact = np.array(results.columns(k)["confidence"])
            np.testing.assert_allclose(found, exact, atol=0.01)
            said = float(shown.inner_text("#sureness").rstrip("%"))
            assert said == pytest.approx(100 * exact.mean(), abs=0.6)


def test_the_shelf_stays_beside_every_number_of_clusters(visit, images, tmp_path):
    run = run_of(tmp_path / "run", images[:200], 6)
    session = EditSession(run)
    session.add(session.editor.merge(4, 1))  # leaves a gap
    session.add(session.editor.shelve([3, 4, 50, 51, 52, 90, 150]))
    session.add(session.editor.shelve(np.flatnonzero(session.state.labels == 0)[:15].tolist()))
    session.add(session.editor.split(2))
    results = session.results()
    assert results.numbers == (0, 2, 3, 4, 5, 6, -1)
    n_unsure = int((results.labels == -1).sum())
    merged, parts = results.labels == 4, [results.labels == 2, results.labels == 6]
    with visit(page_of(tmp_path, results, images[:200])) as shown:
        for k in (2, 3, 5, 6, 7, 30, 80):
            shown.evaluate(f"jule.show({k})")
            labels, _ = results.recut(k)
            assert len(set(labels.tolist()) - {-1}) == k
            assert len(set(labels[merged])) == 1
            assert not set(labels[parts[0]]) & set(labels[parts[1]])
            np.testing.assert_array_equal(labels == -1, results.labels == -1)
            found = shown.evaluate("Array.from(jule.labels, (group) => jule.numbers[group])")
            assert found == labels.tolist()
            exact = results.columns(k)["confidence"]
            found = shown.evaluate("Array.from(jule.confidence)")
            np.testing.assert_allclose(found, exact, atol=0.02)
            plural = "" if k == 1 else "s"
            assert shown.inner_text("h1") == (
                f"200 images in {k} cluster{plural} and {n_unsure} unsure images"
            )
            assert shown.input_value("#k") == str(k)
            cut = replay(session.editor.base, [*session.editor.log.edits, session.editor.cut(k)])
            np.testing.assert_array_equal(cut[0].labels, labels)
            assert "unsure" not in " ".join(shown.locator(".near").all_inner_texts())
        with shown.expect_download() as saved:
            shown.click("#save-csv")
        rows = saved.value.path().read_text(encoding="utf-8").splitlines()
        assert rows[4].split(",")[1:3] == ["-1", "unsure"]  # image 3; a number, not text


def test_moved_pictures_stay_with_their_cluster_at_every_number(visit, images, tmp_path):
    session = EditSession(run_of(tmp_path / "run", images[:200], 6))
    editor = session.editor
    homes = editor.typical_of(np.flatnonzero(session.state.labels == 4))
    moved = np.flatnonzero(session.state.labels == 1)[:3].tolist()
    session.add(editor.move(moved, 4))
    results = session.results()
    with visit(page_of(tmp_path, results, images[:200])) as shown:
        for k in (2, 4, 7, 12, 30):
            shown.evaluate(f"jule.show({k})")
            labels, _ = results.recut(k)
            found = shown.evaluate("Array.from(jule.labels, (group) => jule.numbers[group])")
            assert found == labels.tolist()
            assert len(set(labels[moved])) == 1
            assert labels[moved[0]] in labels[homes]


def test_the_confidence_does_not_jump_where_few_neighbours_are_on_the_page(
    visit, results, images, tmp_path, monkeypatch
):
    monkeypatch.setattr(jule.report.sample, "NEIGHBOR_MOST", 0)
    with visit(page_of(tmp_path, results, images)) as shown:
        own = np.array(shown.evaluate("Array.from(jule.confidence)"))
        np.testing.assert_allclose(own, results.result.confidence, atol=1e-4)
        for k in (6, 7, 9, 10, 20):
            shown.evaluate(f"jule.show({k})")
            found = np.array(shown.evaluate("Array.from(jule.confidence)"))
            assert abs(found.mean() - np.mean(results.columns(k)["confidence"])) < 0.03


def random_tree(rng, n, is_corrected=False):
    alive, merges = list(range(n)), []
    while len(alive) > 1:
        # Mostly the oldest with another one, so that there are combs and outliers.
        a = alive.pop(0 if rng.random() < 0.5 else int(rng.integers(len(alive))))
        b = alive.pop(int(rng.integers(len(alive))))
        merges.append((a, b))
        alive.insert(int(rng.integers(len(alive) + 1)), n + len(merges) - 1)
    fixed = rng.integers(0, n // 3 + 1, 2).tolist() if is_corrected else [0, 0]
    return MergeTree(n, np.array(merges), np.zeros(n - 1), *fixed)


def test_any_tree_is_cut_and_numbered_as_in_python(visit, page):
    rng = np.random.default_rng(0)
    with visit(page) as shown:
        for n in (2, 3, 5, 17, 60, 200, 500):
            for attempt in range(6):
                tree = random_tree(rng, n, is_corrected=attempt % 2 == 1)
                ks = sorted({1, 2, n, *rng.integers(1, n + 1, 6).tolist()})
                whole = MergeTree(n, tree.merges, tree.affinities)
                labels = [rng.permutation(k).astype(np.int32)[whole.cut(k)] for k in ks]
                found = shown.evaluate(
                    """([n, merges, ks, labels, fixed]) => {
                      const tree = Int32Array.from(merges);
                      return ks.map((k, i) => {
                        const { labels: cut, nodes } = jule.cutOther(n, tree, k, fixed);
                        const numbers = jule.numbersOther(n, tree, Int32Array.from(labels[i]));
                        return [Array.from(cut), nodes, Array.from(numbers)];
                      });
                    }""",
                    [
                        n,
                        tree.merges.ravel().tolist(),
                        ks,
                        [each.tolist() for each in labels],
                        [tree.n_copies, tree.n_forced],
                    ],
                )
                for k, of_run, (cut, nodes, numbers) in zip(ks, labels, found, strict=True):
                    size = default_min_cluster_size(n, k)
                    np.testing.assert_array_equal(cut, tree.cut(k, size))
                    np.testing.assert_array_equal(nodes, clusters_as_nodes(tree, k, size))
                    np.testing.assert_array_equal(numbers, branch_numbers(tree, of_run))
                    if tree.n_forced == 0:
                        assert len(set(np.array(numbers)[nodes].tolist())) == k


def test_colours_and_names_stay_with_their_branch(visit, page):
    with visit(page) as shown:
        before = cards(shown)
        rename(shown, 3, "threes")
        shown.evaluate("jule.show(9)")
        split = cards(shown)
        assert set(split) - set(before) == {"8"}  # the next number that was never used
        for k in (20, 4, 12, 8):
            shown.evaluate(f"jule.show({k})")
            now = cards(shown)
            assert all(now[number] == before[number] for number in now.keys() & before.keys())
            assert all(now[number] == split[number] for number in now.keys() & split.keys())
            if "3" in now:
                assert name_field(shown, 3).input_value() == "threes"
        assert cards(shown) == before


def leaves(page):
    rest(page)
    names = page.locator(".leaves .group-link span").all_inner_texts()
    sizes = page.locator(".leaves li > .hint").all_inner_texts()
    return dict(zip(names, map(int, sizes), strict=True)), len(names)


def test_what_joins_next_shows_the_clusters_that_are_shown(visit, page):
    with visit(page) as shown:
        for k in (8, 2, 40, 12):
            shown.evaluate(f"jule.show({k})")
            found, count = leaves(shown)
            assert count == k
            assert set(found) == {f"Cluster {number}" for number in cards(shown)}
            assert sum(found.values()) == N
            assert shown.locator(".joint").count() == k - 1
        shown.evaluate("jule.show(8)")
        shown.evaluate("jule.open(5)")
        shown.select_option("#image-dialog select", label="a new cluster")
        shown.keyboard.press("Escape")
        found, count = leaves(shown)
        assert count == 9
        assert found["Cluster 8"] == 1
        assert sum(found.values()) == N
        shown.locator(".joint").first.press("Enter")
        assert shown.evaluate("jule.shown") == 7
        shown.evaluate("jule.show(1)")
        rest(shown)
        assert not shown.is_visible("#merges")


def test_an_overlapping_press_goes_to_the_nearest_dot(visit, page):
    with visit(page, width=390, height=844, touch=True) as shown:
        shown.evaluate("jule.show(12)")
        shown.wait_for_selector(".joint >> nth=10")
        for place in (0, 4, 9):
            joint = shown.locator(".joint").nth(place)
            clusters = int(joint.get_attribute("data-clusters"))
            joint.scroll_into_view_if_needed()
            box = joint.bounding_box()
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            assert min(box["width"], box["height"]) >= 44
            shown.touchscreen.tap(x, y)
            assert shown.evaluate("jule.shown") == clusters
            shown.evaluate("jule.show(12)")
            rest(shown)


def test_the_slider_goes_by_key_by_button_and_by_mouse(visit, page):
    with visit(page) as shown:
        shown.focus("#slider")
        shown.keyboard.press("ArrowRight")
        assert len(cards(shown)) == 9
        shown.keyboard.press("ArrowLeft")
        shown.keyboard.press("ArrowLeft")
        assert len(cards(shown)) == 7
        shown.click("#more")
        assert len(cards(shown)) == 8
        assert shown.get_attribute("#slider", "aria-valuetext") == "8 clusters"
        box = shown.locator("#slider").bounding_box()
        shown.mouse.click(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
        assert len(cards(shown)) > 250
        scale = shown.locator("#scale span").all_inner_texts()
        assert scale == ["1", "2", "5", "10", "20", "50", "100", "200"]


def test_corrections_are_blamed_only_for_what_they_keep_together(visit, images, tmp_path):
    session = EditSession(run_of(tmp_path / "run", images[:80], 4))
    for edit, why in (
        (session.editor.name(0, "cats"), "the page shows 1 to 80"),
        (session.editor.merge(0, 1), "more would separate what corrections keep together"),
    ):
        session.add(edit)
        with visit(page_of(tmp_path, session.results(), images[:80])) as shown:
            shown.fill("#k", "90")
            shown.press("#k", "Enter")
            assert why in shown.inner_text("#which")


def test_a_wrong_number_is_corrected_visibly(visit, page):
    with visit(page) as shown:
        shown.fill("#k", "9999")
        shown.press("#k", "Enter")
        assert shown.input_value("#k") == "300"
        assert "9999 is not possible: 300 clusters" in shown.inner_text("#which")
        shown.fill("#k", "-3")
        shown.press("#k", "Tab")
        assert shown.input_value("#k") == "1"
        shown.fill("#k", "6")
        shown.press("#k", "Enter")
        assert "not possible" not in shown.inner_text("#which")
        for text in ("", "e"):
            shown.fill("#k", "")
            shown.type("#k", text)
            shown.press("#k", "Tab")
            assert shown.input_value("#k") == "6"
        assert len(cards(shown)) == 6


def test_the_suggestion_that_is_shown_is_marked(visit, page):
    with visit(page) as shown:
        chips = shown.locator("#suggested .chip")
        for chip in chips.all():
            chip.click()
            assert len(cards(shown)) == int(chip.inner_text())
            pressed = shown.locator("#suggested .chip[aria-pressed=true]").all_inner_texts()
            assert pressed == [chip.inner_text()]
