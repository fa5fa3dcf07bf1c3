"""Figures of a run: each kind is drawn, and a wrong request says what to do."""

import pytest
from PIL import Image

from jule.report.plots import KINDS, plot_run

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
    with pytest.raises(ValueError, match="use --source"):
        plot_run(run, "gallery", tmp_path / "figure.png", source=tmp_path / "nowhere")
