"""`jule apply` without typer: what it understands, what it leaves to typer, and what it loads."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from jule.cli import quick
from jule.cli.quick import Applied, parse_apply, run_quickly
from jule.report import Report
from jule.report.page import BEGIN, END
from jule.runs.edits import EditSession
from jule.runs.names import LABELS, PAGE, SUMMARY
from jule.runs.results import read_results
from jule.runs.tables import labels_csv
from tests.report.made import blobs, run_of

PLAIN = [
    ["apply", "run"],
    ["apply", "run", "edits.json"],
    ["apply", "run", "--no-page"],
    ["apply", "--no-page", "run", "edits.json"],
    ["apply", "run", "--no-page", "edits.json", "--page"],
    ["apply", "a folder/run", "b=c.json", "--no-page", "--no-page"],
]
UNUSUAL = [
    [],
    ["apply"],
    ["apply", "--no-page"],
    ["apply", "run", "a", "b"],
    ["apply", "run", "--help"],
    ["apply", "run", "--debug"],
    ["apply", "run", "--page=yes"],
    ["apply", "--", "-run"],
    ["apply", "run", ""],
    ["--debug", "apply", "run"],
    ["cut", "run"],
]


@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
def test_it_understands_what_typer_would_understand(jule, monkeypatch, arguments):
    asked = []
    monkeypatch.setattr("jule.cli.apply.apply_to_run", asked.append)
    assert jule(*arguments).exit_code == 0
    assert parse_apply(arguments) == asked[0]
    assert isinstance(asked[0], Applied)


@pytest.mark.parametrize("arguments", UNUSUAL, ids=" ".join)
def test_anything_else_is_left_to_typer(arguments):
    assert run_quickly(arguments) is None


def test_errors_and_warnings_are_one_line(monkeypatch, capsys, tmp_path):
    assert run_quickly(["apply", str(tmp_path)]) == 1
    assert "has no run in it yet" in capsys.readouterr().err

    def interrupted(_):
        quick.say("begun")
        raise KeyboardInterrupt

    monkeypatch.setattr(quick, "apply_to_run", interrupted)
    assert run_quickly(["apply", "run"]) == 130
    assert capsys.readouterr() == ("begun\n", "jule: stopped; finished parts are kept\n")


PROGRAM = """
import json, sys
from jule.cli import main
sys.argv = ["jule", "apply", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    heavy = {"typer", "rich", "pydantic", "PIL", "torch", "scipy", "numba"}
    heavy |= {"concurrent.futures", "numpy.ma", "threadpoolctl"}
    if "--no-page" in sys.argv:
        heavy.add("jinja2")
    print(json.dumps([ended.code, sorted(heavy & set(sys.modules))]))
"""


@pytest.mark.parametrize("page", ["--page", "--no-page"])
def test_it_loads_nothing_heavy(tmp_path, page):
    images = np.round(255 * blobs(600, (5, 5))).astype(np.uint8)  # kernels would be compiled
    run = run_of(tmp_path / "run", images, 3)
    Report.of_run(run, images, umap=False).write(run)
    session = EditSession(run)
    session.add(session.editor.split(1), session.editor.move([0, 1], 0))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(run.folder), page],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [0, []], done.stderr


def parts_of(run):
    """The page without its data, its data without the places of the thumbnails, and these."""
    before, _, rest = run.read(PAGE).decode().partition(BEGIN)
    text, _, after = rest.partition(END)
    data = json.loads(text)
    return before + after, data, [data.pop("pictures"), data["arrays"].pop("places")]


@pytest.mark.parametrize("n", [40, 2100], ids=["thumbnails in the page", "beside it"])
def test_the_page_is_the_one_that_is_made_from_scratch(tmp_path, n):
    images = np.round(255 * blobs(n, (5, 5))).astype(np.uint8)
    names = [f"<a> & é {number}.png" for number in range(n)]
    run = run_of(tmp_path / "run", images, 3, names)
    results = read_results(run)  # with another confidence than would be computed now
    unlike = replace(results.result, confidence=np.full(n, 0.25))
    run.update({LABELS: labels_csv(replace(results, result=unlike).columns(), results.by_hand)})
    Report.of_run(run, images, umap=False).write(run)
    session = EditSession(run)
    editor = session.editor
    for edits in (
        lambda: [editor.name(0, "cats & dogs")],
        lambda: [editor.refuse(0, 1)],
        lambda: [editor.split(1), editor.move([0, 1, 2], 0), editor.shelve([5])],
        lambda: [editor.must_link([7, 9]), editor.cannot_link([11], [13]), editor.merge(0, 2)],
    ):
        session.add(*edits())
        changed = editor.state.labels.tolist()
        assert run_quickly(["apply", str(run.folder)]) == 0
        whole, applied, table = run.read(PAGE), parts_of(run), run.read(LABELS)
        summary = run.read(SUMMARY)
        Report.of_run(run, images, umap=False).write(run)
        scratch = parts_of(run)
        assert applied[:2] == scratch[:2]  # thumbnails stay where they were
        assert summary == run.read(SUMMARY)
        if editor.log.done == 1:  # a name moves nothing
            assert whole == run.read(PAGE)
        assert run_quickly(["apply", str(run.folder), "--no-page"]) == 0
        assert run.read(LABELS) == table
        assert [int(line.split(",")[1]) for line in table.decode().splitlines()[1:]] == changed
