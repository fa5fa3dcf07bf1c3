"""Figures of a run: each kind is drawn, and a wrong request says what to do."""

import os

import pytest
from PIL import Image

from jule.report.plots import KINDS, plot_run
from tests.report.made import blobs, run_of

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn(run, tmp_path, kind):
    plot_run(run, kind, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as figure:
        assert min(figure.size) > 300
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


def test_the_suffix_is_the_format(run, tmp_path):
    plot_run(run, "history", tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_wrong_requests_say_what_to_do(run, tmp_path):
    with pytest.raises(ValueError, match="choose one of pca3d, map"):
        plot_run(run, "pie", tmp_path / "figure.png")
    with pytest.raises(ValueError, match="pass their source"):
        plot_run(run, "gallery", tmp_path / "figure.png", source=tmp_path / "nowhere")


def test_a_figure_in_the_run_belongs_to_its_manifest(run):
    plot_run(run, "history", run.path("history.png"))
    assert run.read("history.png").startswith(b"\x89PNG")
    plot_run(run, "history", run.path("my figure.png"))
    assert "my figure.png" not in run.manifest()
    assert run.path("my figure.png").read_bytes() == run.read("history.png")


@pytest.mark.skipif(os.name == "nt", reason="makes links")
def test_a_figure_replaces_a_link_and_not_its_target(run, tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "figure.png").symlink_to(tmp_path / "victim")
    plot_run(run, "history", tmp_path / "figure.png")
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "figure.png").is_symlink()


def test_damaged_snapshots_do_not_stop_a_figure(tmp_path):
    run = run_of(tmp_path / "run", blobs(40), 3)
    for path in run.path("snapshots").iterdir():
        path.write_bytes(b"")
    with pytest.warns(UserWarning, match="left out"):
        plot_run(run, "pca3d", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").exists()
