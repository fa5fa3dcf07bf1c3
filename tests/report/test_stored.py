"""What is taken from an earlier page: thumbnails and positions, if they fit the run."""

import numpy as np
import pytest

from jule.report import Report
from jule.report.stored import read_stored
from jule.runs.names import PAGE
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
