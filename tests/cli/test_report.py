"""report, apply and plot, through the installed command."""

import json

import numpy as np
import pytest
from PIL import Image

from jule.images import load_dataset
from jule.report.inputs import labels_id, run_id
from jule.runs import read_results
from tests.cli.test_cli import jule
from tests.report.made import run_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    images = load_dataset("digits").images[:200]
    return run_of(tmp_path_factory.mktemp("runs") / "run", images, 4)


def test_report_makes_the_page(run):
    done = jule("report", run.folder)
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    assert "200 images in 4 clusters" in run.path("report.html").read_text()
    assert json.loads(run.path("report.json").read_text())["images"] == 200


def test_report_says_when_the_images_are_gone_and_finds_them_elsewhere(run, tmp_path):
    source = run.folder.with_suffix(".npz")
    moved = tmp_path / "moved.npz"
    source.rename(moved)
    try:
        done = jule("report", run.folder)
        assert done.returncode == 0
        assert "no pictures" in done.stderr
        done = jule("report", run.folder, "--source", moved)
        assert done.stderr == ""
    finally:
        moved.rename(source)


def test_apply_takes_changes_back_and_refuses_bad_ones(run, tmp_path):
    finished = read_results(run)
    image = int(np.flatnonzero(finished.result.labels == 0)[0])
    edits = {
        "format": "jule-edits-1",
        "run": run_id(finished),
        "labels": labels_id(finished.result.labels),
        "k": None,
        "names": {"2": "twos"},
        "moves": [{"image": image, "path": str(image), "cluster": 1}],
    }
    path = tmp_path / "edits.json"
    path.write_text(json.dumps(edits))
    done = jule("apply", run.folder, path)
    assert done.returncode == 0, done.stderr
    assert "1 images moved, 1 clusters named" in done.stdout
    assert "twos" in run.path("report.html").read_text()
    path.write_text(json.dumps(edits | {"run": "another"}))
    done = jule("apply", run.folder, path)
    assert done.returncode == 1
    assert "another run" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["pca3d", "map", "gallery", "history"])
def test_plot_draws_a_figure(run, kind, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    out = tmp_path / "figure.png"
    done = jule("plot", run.folder, "--kind", kind, "--out", out)
    assert done.returncode == 0, done.stderr
    pixels = np.asarray(Image.open(out).convert("L"))
    assert min(pixels.shape) > 200
    assert pixels.std() > 3


def test_an_unknown_figure_is_refused(run):
    done = jule("plot", run.folder, "--kind", "pie")
    assert done.returncode == 1
    assert "pca3d, map, gallery, history" in done.stderr


def test_what_is_not_a_run_is_refused(tmp_path):
    for command in (["report", "."], ["plot", "."], ["apply", ".", "edits.json"]):
        done = jule(*command, cwd=tmp_path)
        assert done.returncode == 1
        assert "is not a run" in done.stderr


def test_help_has_examples():
    for command in ("report", "apply", "plot"):
        assert f"Example: jule {command}" in jule(command, "--help").stdout
