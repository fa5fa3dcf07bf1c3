"""The page of a run that is too large for one page: a sample of its images."""

import numpy as np
import pytest

import jule.report.sample
from jule.forward import MergeTree
from jule.report import Report
from jule.report.sample import Sample, choose_rows, most_shown
from jule.report.stored import read_stored
from jule.runs.edits import EditSession, apply_edits, read_edits
from jule.runs.results import read_results
from tests.report.made import blobs, labels_in, results_of, run_of


@pytest.fixture
def few(monkeypatch):
    """Make pages of more than 100 images too large, so that they show about 60."""
    each = 4 * jule.report.sample.ARRAY_BYTES / 3 + 6
    monkeypatch.setattr(jule.report.sample, "WHOLE_MOST", 100 * each)
    monkeypatch.setattr(jule.report.sample, "SAMPLE_MOST", 60 * each)
    monkeypatch.setattr(jule.report.sample, "MOST_GROUPS", 20)


@pytest.fixture(scope="module")
def results():
    return results_of(blobs(400, (6, 6), k=7), 5)


def test_small_runs_are_shown_whole_and_large_ones_as_a_sample(results, few):
    assert 40 <= most_shown(results) <= 70
    small = results_of(blobs(90), 3)
    assert most_shown(small) == 90
    assert "rows" not in Report.of_results(small, umap=False).arrays


@pytest.mark.parametrize("count", [30, 100])
def test_the_tree_of_a_sample_is_cut_as_the_whole_one(results, count):
    tree, labels = results.result.tree, results.result.labels
    rows = choose_rows(results, count, [17, 3])
    assert {3, 17} <= set(rows.tolist())
    some = Sample.of(tree, labels, rows)
    assert some.counts.sum() == len(labels)
    np.testing.assert_array_equal(labels[rows[some.stands_for]], labels)
    assert some.stands_for[rows].tolist() == list(range(len(rows)))
    small = MergeTree(len(rows), some.merges, some.affinities.astype(float))
    for k in (1, 2, 5, 9, 20):
        cut, whole = small.cut(k), tree.cut(k)[rows]
        assert len({*zip(cut.tolist(), whole.tolist(), strict=True)}) == k
    # A node has the size of the largest node of the whole tree with the same samples of these.
    inside = [{row} for row in rows.tolist()]
    for left, right in some.merges.tolist():
        inside.append(inside[left] | inside[right])
    sizes = {}
    leaves = [{sample} for sample in range(len(labels))]
    for left, right in tree.merges.tolist():
        leaves.append(leaves[left] | leaves[right])
    for node in leaves:
        shown = frozenset(node & set(rows.tolist()))
        sizes[shown] = max(sizes.get(shown, 0), len(node))
    assert [sizes[frozenset(node)] for node in inside] == some.sizes.tolist()


def test_a_tree_that_is_never_joined_has_a_sample(results):
    tree = results.result.tree
    forest = MergeTree(tree.n_samples, tree.merges[:-1], tree.affinities[:-1])
    labels = forest.cut(2)
    some = Sample.of(forest, labels, np.array([0, 1, 2, 3, 50, 51]))
    assert len(some.merges) == 6 - len(set(labels[[0, 1, 2, 3, 50, 51]]))
    assert some.sizes[some.sizes > 0].max() == np.bincount(labels).max()


def test_the_page_of_a_sample_cuts_edits_and_says_what_it_is(visit, images, few, tmp_path):

    run = run_of(tmp_path / "run", images, 5)
    report = Report.of_run(run, images, umap=False)
    report.write(run)
    rows, results = report.sample.rows, read_results(run)
    with visit(run.path("report.html")) as page:
        said = page.inner_text("#sampled")
        assert f"{len(rows)} of the 400 images" in said
        np.testing.assert_array_equal(labels_in(page), results.result.labels[rows])
        sizes = np.bincount(results.result.labels)
        card = page.locator("#cluster-1")
        assert card.get_attribute("aria-label") == f"Cluster 1, {sizes[1]} images"
        for k in (2, 9):
            page.evaluate(f"jule.show({k})")
            whole = np.array(results.columns(k)["cluster"])[rows]
            assert len({*zip(labels_in(page).tolist(), whole.tolist(), strict=True)}) == k
            assert "about " in page.locator("#cards .card").first.get_attribute("aria-label")
        page.evaluate("jule.show(5)")
        assert page.locator("#cards .split").count() == 0
        page.evaluate("jule.select([0, 1])")
        page.select_option("#selection-bar select", label="a new cluster")
        card = page.locator("#cluster-5")
        assert card.get_attribute("aria-label") == "Cluster 5, 2 images"
        page.click("#same-open")
        one, other = page.evaluate("jule.pair")
        page.keyboard.press("y")
        page.wait_for_selector(f"#cluster-{one}")
        with page.expect_download() as kept:
            page.click("#save-json")
        kept.value.save_as(tmp_path / "edits.json")
    apply_edits(run, read_edits(tmp_path / "edits.json"))
    labels = read_results(run).result.labels
    before = results.result.labels
    assert labels[rows[0]] == labels[rows[1]] == labels.max()
    kept = np.setdiff1d(np.arange(400), rows[:2])
    merged = np.where(before == other, one, before)[kept]
    assert len({*zip(merged.tolist(), labels[kept].tolist(), strict=True)}) == 4


def test_the_page_of_a_sample_undoes_no_correction(visit, images, few, tmp_path):
    run = run_of(tmp_path / "run", images, 6)
    session = EditSession(run)
    session.add(session.editor.merge(0, 3))
    session.add(session.editor.refuse(1, 2))
    session.write_labels()
    report = Report.of_run(run, images, umap=False)
    report.write(run)
    rows, results = report.sample.rows, read_results(run)
    merged, refused = results.labels[rows] == 0, [results.labels[rows] == one for one in (1, 2)]
    with visit(run.path("report.html")) as page:
        for k in (2, 3, 8, 15):
            page.evaluate(f"jule.show({k})")
            labels = labels_in(page)
            whole = results.recut(k)[0][rows]
            assert len({*zip(labels.tolist(), whole.tolist(), strict=True)}) == k
            assert len(set(labels[merged])) == 1
            assert not set(labels[refused[0]]) & set(labels[refused[1]])
        page.evaluate("jule.show(1)")
        assert page.evaluate("jule.shown") == 2


def test_an_earlier_page_gives_its_sample_again(few, tmp_path):
    images = np.round(255 * blobs(300, (5, 5))).astype(np.uint8)
    run = run_of(tmp_path / "run", images, 3)
    made = Report.of_run(run, images, umap=False)
    made.write(run)
    stored = read_stored(run, read_results(run).id, 300)
    np.testing.assert_array_equal(stored.rows, made.sample.rows)
    again = Report.of_run(run, stored=stored)
    assert again.html == made.html
    assert read_stored(run, read_results(run).id, 200) is None
