"""The served page in a real browser: corrections are there after a reload and elsewhere."""

import threading

import numpy as np
import pytest

import jule.report.sample
import jule.serve.desk
from jule.images import load_dataset
from jule.report import Report
from jule.runs.edits import EditSession, apply_edits, read_edits
from jule.runs.results import read_results
from jule.serve import Desk
from tests.report.conftest import browser, keep_picture, visit  # noqa: F401
from tests.report.made import HOSTILE, labels_in, name_field, rename, run_of
from tests.report.waiting import rest


@pytest.fixture(scope="module")
def images():
    return load_dataset("digits").images[:200]


def partition(labels):
    return {tuple(np.flatnonzero(labels == one)) for one in set(labels)}


def press(page, images, text):
    """Select images, and press a button of the bar that appears."""
    page.evaluate(f"jule.select({[int(image) for image in images]})")
    page.click(f"#selection-bar button:text-is('{text}')")


def numbers_in(page):
    """The number of the cluster of every image, as the page shows it."""
    return page.evaluate("Array.from(jule.labels, (group) => jule.numbers[group])")


def confirm_split(page):
    """Look at the parts of a split and make it; return how many images each of them has."""
    sides = page.locator("#split-dialog[open] .same-side")
    sides.nth(1).wait_for()
    sizes = [int(text.split()[0]) for text in sides.locator(".hint").all_inner_texts()]
    shown = [sides.nth(side).locator(".pic").count() for side in (0, 1)]
    assert shown == [min(12, size) for size in sizes]
    page.click("#split-dialog button:text-is('Split')")
    return sizes


def link_and_shelve(page, labels):
    """Link images of different clusters, be refused, remove a link, and use the shelf."""
    first, second = sorted(set(labels))[:2]
    a, b, c = (*np.flatnonzero(labels == first)[[5, 6]], np.flatnonzero(labels == second)[5])
    press(page, (a, c), "Belong together")
    assert labels_in(page)[c] == labels_in(page)[a] == first
    assert page.inner_text("#message-text") == (
        f"{c} moved from Cluster {second} to Cluster {first}. They stay in one cluster from now on."
        " Undo"
    )
    press(page, (a, c), "Do not belong together")
    assert "cannot be kept apart" in page.inner_text("#message")
    press(page, (b, c), "Do not belong together")
    assert len({*labels_in(page)[[a, b]]}) == 2
    assert page.locator("#links .link-row").count() == 2
    apart = page.locator("#links .link-row:has-text('do not belong')")
    apart.locator("button:text-is('Remove')").click()
    page.keyboard.press("Control+z")
    assert apart.count() == 1
    page.keyboard.press("Control+y")
    assert apart.count() == 0
    press(page, (b, c), "Do not belong together")
    page.evaluate(f"jule.select([{b}, {c}])")
    page.select_option("#selection-bar select", label=f"Cluster {second}")
    assert "do not belong together" in page.inner_text("#message")
    page.evaluate(f"jule.select([{b}])")
    page.select_option("#selection-bar select", label="unsure: it fits nowhere")
    assert page.locator("#cluster--1").get_attribute("aria-label") == "unsure, 1 image"


def saved(page, revision):
    """Wait until the page has an answer to its last edit, and what follows from it."""
    for _ in range(400):  # the policy of the page forbids wait_for_function
        if page.evaluate(f"jule.revision === {revision} && jule.settled"):
            return
        page.wait_for_timeout(50)
    raise AssertionError(page.evaluate("[jule.revision, jule.settled]"))


def answered(page, revision):
    """Wait until the page has an answer to its last edit."""
    for _ in range(400):
        if page.evaluate(f"jule.revision === {revision}"):
            return
        page.wait_for_timeout(50)
    raise AssertionError(page.evaluate("jule.revision"))


@pytest.fixture
def open_page(browser):  # noqa: F811
    """Open windows on a served page, which must not complain or ask anybody else."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    context.set_default_timeout(20_000)
    complaints, asked = [], []

    def opened(address):
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector(".card .pic")
        return page

    yield opened
    context.close()
    assert [one for one in complaints if "409" not in one] == []
    origin = asked[0].split("/")[2]
    assert [
        url for url in asked if not url.startswith((f"http://{origin}/", "data:", "blob:"))
    ] == []


def test_how_sure_is_right_before_the_server_has_computed_it(
    serve, open_page, images, tmp_path, monkeypatch
):
    run = run_of(tmp_path / "run", images, 6)
    Report.of_run(run, images, umap=False).write(run)
    with serve(run) as client:
        page = open_page(client.address)
        saved(page, 0)
        may_answer = threading.Event()
        compute = Desk.clusters
        monkeypatch.setattr(Desk, "clusters", lambda desk: may_answer.wait(60) and compute(desk))
        page.locator("#cards .split").first.click()
        confirm_split(page)
        answered(page, 1)
        image = int(np.flatnonzero(labels_in(page) == 0)[0])
        page.evaluate(f"jule.select([{image}])")
        page.select_option("#selection-bar select", label="Cluster 2")
        answered(page, 2)
        exact = read_results(run).result.confidence
        found = np.array(page.evaluate("Array.from(jule.confidence)"))
        np.testing.assert_allclose(found, exact, atol=0.01)
        said = page.inner_text("#sureness")
        may_answer.set()
        saved(page, 2)
        assert page.inner_text("#sureness") == said
        page.close()  # what it asked for after the first edit may still be on its way


def test_corrections_made_with_keys_are_there_after_a_reload(
    serve,
    open_page,
    images,
    tmp_path,
    keep_picture,  # noqa: F811
):
    names = [*HOSTILE[:5], *(f"{i}.png" for i in range(5, 200))]
    run = run_of(tmp_path / "run", images, 6, names)
    Report.of_run(run, images, umap=False).write(run)
    with serve(run) as client:
        page = open_page(client.address)
        page.wait_for_selector("#same-open:not([hidden])")
        page.click("#same-open")
        pair = page.evaluate("jule.pair")
        page.keyboard.press("y")
        saved(page, 1)
        assert page.inner_text("h1") == "200 images in 5 clusters"
        page.keyboard.press("n")
        page.keyboard.press("n")  # of the next pair
        saved(page, 3)
        page.click("#same-open")
        merged = EditSession(run).state
        assert pair[1] not in merged.numbers
        edits = read_results(run).edits.edits
        assert [edit.kind for edit in edits] == ["merge", "refuse", "refuse"]
        assert edits[1] != edits[2]

        page.locator("#cards .split").first.click()
        page.wait_for_selector("#split-dialog[open]")
        page.keyboard.press("Escape")  # nothing has happened yet
        assert EditSession(run).revision == 3
        page.locator("#cards .split").first.click()
        page.wait_for_selector("#split-dialog[open]")
        page.keyboard.press("Enter")
        saved(page, 4)
        assert page.inner_text("h1") == "200 images in 6 clusters"
        page.keyboard.press("Control+z")
        saved(page, 5)
        np.testing.assert_array_equal(labels_in(page), merged.numbered()[0])
        page.keyboard.press("Control+Shift+Z")
        saved(page, 6)
        assert page.is_disabled("#step-forward")
        number = page.evaluate("jule.numbers[0]")
        rename(page, number, HOSTILE[0])
        saved(page, 7)
        for card in (0, 1):
            page.locator("#cards .card").nth(card).scroll_into_view_if_needed()
            pic = page.locator("#cards .card").nth(card).locator(".pic").nth(3)
            pic.click(modifiers=["Control"])
        page.click("#selection-bar button:text-is('Belong together')")
        saved(page, 8)
        [link] = EditSession(run).state.links
        assert link.kind == "must-link"
        moved = link.pictures[1].path
        assert page.inner_text("#message-text").startswith(f"{moved} moved from ")
        assert page.inner_text("#message-text bdi") == moved

        image = int(page.locator("#cards .pic").first.get_attribute("data-image"))
        page.locator("#cards .pic").first.click()
        page.wait_for_selector("#image-dialog .large img")
        page.select_option("#image-dialog select", label="unsure: it fits nowhere")
        saved(page, 9)
        assert "by hand" in page.inner_text("#image-dialog .dialog-head")
        assert page.inner_text("#image-dialog #message-text").endswith(" to unsure. Undo")
        page.keyboard.press("Escape")
        keep_picture(page, "test-served")

        before = labels_in(page)
        page.reload()
        page.wait_for_selector(".card .pic")
        np.testing.assert_array_equal(labels_in(page), before)
        assert name_field(page, number).input_value() == HOSTILE[0]
        assert page.locator("#cluster--1").get_attribute("aria-label") == "unsure, 1 image"
        assert EditSession(run).state.labels[image] == -1
        assert page.locator("#links .link-row").count() == 1

        second = open_page(client.address)  # two windows
        rename(second, number, "")
        saved(second, 10)
        rename(page, number, "too late")
        page.wait_for_selector("#message:not([hidden])")
        assert "in another window" in page.inner_text("#message")
        saved(page, 10)
        assert name_field(page, number).input_value() == ""

        page.evaluate("jule.show(3)")  # other cuts are only looked at, until they are chosen
        assert page.locator("#cards .split:visible").count() == 0
        assert page.inner_text("h1") == "200 images in 3 clusters and 1 unsure image"
        shown = numbers_in(page)
        page.click("#use")
        saved(page, 11)
        assert numbers_in(page) == shown
        assert page.inner_text("h1") == "200 images in 3 clusters and 1 unsure image"
        assert page.input_value("#k") == "3"
        assert page.inner_text("#which").startswith("3 clusters and 1 unsure image, as in the run")
        assert read_results(run).columns()["cluster"] == shown  # what labels.csv will have
        assert page.evaluate("window.hacked") is None


def test_a_merge_stays_when_more_clusters_are_used(
    serve,
    open_page,
    images,
    tmp_path,
    visit,  # noqa: F811
    keep_picture,  # noqa: F811
):
    run = run_of(tmp_path / "run", images, 6)
    Report.of_run(run, images, umap=False).write(run)
    with serve(run) as client:
        page = open_page(client.address)
        page.wait_for_selector("#same-open:not([hidden])")
        page.click("#same-open")
        inside = np.isin(numbers_in(page), page.evaluate("jule.pair"))
        page.keyboard.press("y")
        saved(page, 1)
        assert len(set(np.array(numbers_in(page))[inside])) == 1
        page.keyboard.press("n")
        saved(page, 2)
        page.click("#same-open")
        refused = read_results(run).apart[0]
        for k, revision in ((6, 3), (9, 4), (4, 5), (12, 6)):
            page.fill("#k", str(k))
            page.press("#k", "Enter")
            shown = np.array(numbers_in(page))
            assert len(set(shown)) == k
            assert len(set(shown[inside])) == 1  # to look at, and then in use
            assert len(set(shown[list(refused)])) == 2
            page.click("#use")
            saved(page, revision)
            np.testing.assert_array_equal(numbers_in(page), shown)
            np.testing.assert_array_equal(EditSession(run).state.labels, shown)
            rest(page)  # what joins next never joins the two
            assert page.locator("#dendrogram .joint").count() == k - 2
        keep_picture(page, "test-merged-and-cut")
        page.fill("#k", "1")
        page.press("#k", "Enter")
        assert page.inner_text("#which") == (
            "1 is not possible: 2 clusters instead (corrections keep this many apart)"
        )
        page.fill("#k", "199")
        page.press("#k", "Enter")
        assert "more would separate what corrections keep together" in page.inner_text("#which")
    apply_edits(run)
    Report.of_run(run, images, umap=False).write(run)
    with visit(run.path("report.html")) as page:  # the same, as a file
        for k in (3, 13, 40):
            page.evaluate(f"jule.show({k})")
            labels = labels_in(page)
            assert (len(set(labels)), len(set(labels[inside]))) == (k, 1)
            assert len(set(labels[list(refused)])) == 2


def test_a_large_run_is_looked_through_and_edited_part_by_part(
    serve,
    open_page,
    images,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setattr(jule.report.sample, "WHOLE_MOST", 10_000)
    monkeypatch.setattr(jule.report.sample, "SAMPLE_MOST", 8000)
    monkeypatch.setattr(jule.report.sample, "MOST_GROUPS", 10)
    monkeypatch.setattr(jule.serve.desk, "AT_ONCE", 20)
    run = run_of(tmp_path / "run", images, 4, [f"{i}.png" for i in range(200)])
    Report.of_run(run, images, umap=False).write(run)
    before = read_results(run).result.labels
    with serve(run) as client:
        page = open_page(client.address)
        shown = page.evaluate("jule.labels.length")
        assert shown < 130
        cluster = int(np.bincount(before).argmax())
        size = int((before == cluster).sum())
        page.evaluate(f"document.getElementById('cluster-{cluster}').scrollIntoView()")
        page.click(f"#cluster-{cluster} .open")
        page.locator("#group-dialog .pic").nth(size - 1).wait_for()  # all of them
        assert page.locator("#group-dialog .pic").count() == size
        guest = page.evaluate("jule.labels.length") - 1
        page.click(f"#group-dialog .pic[data-image='{guest}']")
        name = page.inner_text("#image-dialog-title")
        page.wait_for_selector("#image-dialog .large img")
        page.select_option("#image-dialog select", label="a new cluster")
        saved(page, 1)
        assert page.inner_text("h1") == "200 images in 5 clusters"
        page.reload()
        page.wait_for_selector("#cluster-4", state="attached")
        assert page.locator("#cluster-4").get_attribute("aria-label") == "Cluster 4, 1 image"
        page.evaluate("document.getElementById('cluster-4').scrollIntoView()")
        assert page.locator("#cluster-4 .pic").get_attribute("aria-label") == name
        page.evaluate(f"document.getElementById('cluster-{cluster}').scrollIntoView()")
        page.locator(f"#cluster-{cluster} .split").first.click()
        sizes = confirm_split(page)
        saved(page, 2)
        state = EditSession(run).state
        assert sizes == [(state.labels == one).sum() for one in (cluster, state.numbers[-1])]
        assert page.inner_text("h1") == f"200 images in {len(state.numbers)} clusters"
        for number in state.numbers:
            assert (
                page.locator(f"#cluster-{number}")
                .get_attribute("aria-label")
                .endswith(
                    f", {(state.labels == number).sum()} image"
                    + ("s" if (state.labels == number).sum() > 1 else "")
                )
            )
        page.keyboard.press("Control+z")
        page.keyboard.press("Control+z")
        saved(page, 4)
        assert page.inner_text("h1") == "200 images in 4 clusters"


def test_the_page_as_a_file_splits_merges_and_undoes(visit, images, tmp_path):  # noqa: F811
    images = images.copy()
    images[11] = images[10]
    images[11, 0, 0] += 1
    run = run_of(tmp_path / "run", images, 5)
    Report.of_run(run, images, umap=False).write(run)
    session = EditSession(run)
    with visit(run.path("report.html")) as page:
        before = labels_in(page)
        page.evaluate(f"document.getElementById('cluster-{before[10]}').scrollIntoView()")
        page.click(f"#cluster-{before[10]} .open")  # near-duplicates are one picture
        stack = page.locator("#group-dialog .pic[data-stack]").first
        top = int(stack.get_attribute("data-image"))
        assert (top in (10, 11), stack.get_attribute("data-stack")) == (True, "2")
        assert page.locator(f"#group-dialog .pic[data-image='{21 - top}']").count() == 0
        stack.click(modifiers=["Control"])
        assert "2 images selected" in page.inner_text("#selection-bar")
        bar = page.locator("#selection-bar").bounding_box()
        around = page.locator("dialog[open]").bounding_box()
        assert around["x"] <= bar["x"]
        assert bar["x"] + bar["width"] <= around["x"] + around["width"]
        stack.click(modifiers=["Control"])
        stack.click()
        near = page.locator("#image-dialog .image-facts .pic")
        assert near.get_attribute("data-image") == str(21 - top)
        page.keyboard.press("Escape")
        page.click("#group-dialog button:has-text('Stacks')")
        assert page.locator(f"#group-dialog .pic[data-image='{21 - top}']").count() == 1
        page.keyboard.press("Escape")
        page.evaluate("document.getElementById('cluster-1').scrollIntoView()")
        page.locator("#cluster-1 .split").first.click()
        sizes = confirm_split(page)
        split = labels_in(page)
        assert sizes == [(split == 1).sum(), (split == 5).sum()]
        session.editor.add(session.editor.split(1))
        np.testing.assert_array_equal(split, session.editor.state.labels)  # the same rule
        page.click("#step-back")
        np.testing.assert_array_equal(labels_in(page), before)
        [found] = page.evaluate("JSON.parse(run.textContent).summary.strangers")
        page.evaluate(f"document.getElementById('cluster-{found['cluster']}').scrollIntoView()")
        page.click(f"#cluster-{found['cluster']} .split:has-text('off {found['size']}')")
        assert confirm_split(page)[1] == found["size"]
        other = EditSession(run).editor
        other.add(other.split(found["cluster"], found["branch"]))
        np.testing.assert_array_equal(labels_in(page), other.state.labels)
        page.keyboard.press("Control+z")
        page.locator("#cluster-1 .split").first.click()
        confirm_split(page)
        np.testing.assert_array_equal(labels_in(page), split)
        page.keyboard.press("Control+z")
        page.keyboard.press("Control+y")
        np.testing.assert_array_equal(labels_in(page), split)
        page.click("#same-open")
        one, other = page.evaluate("jule.pair")
        page.keyboard.press("y")
        merged = np.where(split == other, one, split)
        np.testing.assert_array_equal(labels_in(page), merged)
        page.click("#same-open")
        link_and_shelve(page, merged)
        shown, numbers = labels_in(page), numbers_in(page)
        assert page.inner_text("h1").endswith(
            f" {len(set(numbers)) - 1} clusters and 1 unsure image"
        )
        with page.expect_download() as kept:
            page.click("#save-json")
        kept.value.save_as(tmp_path / "edits.json")
        assert "jule serve" in page.inner_text("#keep")
    apply_edits(run, read_edits(tmp_path / "edits.json"))
    after = read_results(run)
    assert partition(after.result.labels) == partition(shown)
    assert after.labels.tolist() == numbers  # with gaps, and -1 for the shelf
    kinds = ["split", "merge", "must-link", "cannot-link", "unlink", "cannot-link", "shelve"]
    assert [edit.kind for edit in after.edits.edits] == kinds
    assert after.cluster_names == {after.shelf: "unsure"}
    apply_edits(run, read_edits(tmp_path / "edits.json"))  # again: nothing is repeated
    assert len(read_results(run).edits.edits) == len(kinds)
