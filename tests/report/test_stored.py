"""What is taken from an earlier page: thumbnails and positions, if they fit the run."""

import numpy as np
import pytest

from jule.report import Report
from jule.report.stored import read_stored
from jule.runs.edits import EditSession
from jule.runs.manifest import DamagedError
from jule.runs.names import PAGE, PAGE_PICTURES
from jule.runs.results import read_results
from tests.report.made import blobs, run_of


def run_with_page(folder, n):
    images = np.round(255 * blobs(n, (5, 5))).astype(np.uint8)
    run = run_of(folder / "run", images, 3)
    made = Report.of_run(run, images, umap=False)
    made.write(run)
    return run, made


@pytest.fixture(scope="module", params=[40, 2100], ids=["in the page", "beside it"])
def written(request, tmp_path_factory):
    return run_with_page(tmp_path_factory.mktemp("stored"), request.param)


def test_an_earlier_page_gives_all_its_thumbnails_and_positions_again(written):
    run, made = written
    results = read_results(run)
    stored = read_stored(run, results.id, len(results.names))
    assert list(stored.sheets.content) == list(made.sheets.content)
    assert stored.sheets.kind == made.sheets.kind
    np.testing.assert_array_equal(stored.sheets.places, made.sheets.places)
    np.testing.assert_array_equal(stored.positions["coords"], made.arrays["coords"])
    again = Report.of_run(run, results=results, stored=stored)
    assert again.summary["image_shape"] == [5, 5]
    assert again.html == made.html


def test_thumbnails_that_are_there_are_not_written_again(tmp_path):
    run, made = run_with_page(tmp_path, 2100)
    session = EditSession(run)
    session.add(session.editor.name(0, "cats"), session.editor.split(1))
    results = session.results()
    sheets = sorted((run.folder / PAGE_PICTURES).iterdir())
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in sheets]
    stored = read_stored(run, results.id, len(results.names))
    again = Report.of_run(run, results=results, stored=stored)
    again.write(run)
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in sheets] == before
    assert sorted((run.folder / PAGE_PICTURES).iterdir()) == sheets
    assert all(f"{PAGE_PICTURES}/{path.name}" in run.manifest() for path in sheets)
    # The order of the thumbnails is that of the page before; all else is as if made from nothing.
    scratch = Report.of_run(run, results=results, umap=False)
    assert again.summary == scratch.summary
    assert set(again.arrays) == set(scratch.arrays)
    for name, array in scratch.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    assert list(made.sheets.content) == list(again.sheets.content)


def test_a_damaged_thumbnail_is_named_and_the_page_is_kept(tmp_path):
    run, _ = run_with_page(tmp_path, 2100)
    results, page = read_results(run), run.read(PAGE)
    stored = read_stored(run, results.id, len(results.names))
    damaged = next((run.folder / PAGE_PICTURES).iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedError, match=damaged.name):
        Report.of_run(run, results=results, stored=stored).write(run)
    assert run.read(PAGE) == page


def change_page(run, old, new):
    content = run.read(PAGE)
    assert old in content
    run.update({PAGE: content.replace(old, new)})


def test_what_does_not_fit_the_run_is_not_taken(tmp_path):
    run, _ = run_with_page(tmp_path, 40)
    results = read_results(run)
    assert read_stored(run, "another", 40) is None
    assert read_stored(run, results.id, 41) is None
    whole = run.read(PAGE)
    for old, new in (
        (b"data:image/png;base64,", b"http://example.org/"),
        (b"data:image/png;base64,", b"report_pictures/sheet-0123456789abcdef.png#"),
        (b'"columns":', b'"columns":0'),
        (b'"coords":', b'"other":'),
        (b'id="run"', b'id="walk"'),
        (b'"pictures":{', b'"pictures":['),
    ):
        change_page(run, old, new)
        assert read_stored(run, results.id, 40) is None, old
        run.update({PAGE: whole})
    assert read_stored(run, results.id, 40) is not None
    run.path(PAGE).write_bytes(whole[:-9])  # damaged
    assert read_stored(run, results.id, 40) is None
