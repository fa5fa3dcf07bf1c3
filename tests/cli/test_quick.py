"""`jule apply` without typer: what it understands, what it leaves to typer, and what it loads."""

import json
import subprocess
import sys

import numpy as np
import pytest

from jule.cli import quick
from jule.cli.quick import Applied, parse_apply, run_quickly
from jule.report import Report
from jule.runs.edits import EditSession
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
    heavy = {"typer", "rich", "pydantic", "PIL", "torch", "scipy", "numba"} & set(sys.modules)
    print(json.dumps([ended.code, sorted(heavy)]))
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
