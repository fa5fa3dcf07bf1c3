"""Figures of experiments: the same text every time, and left out where matplotlib is missing."""

import sys
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from jule.cli import app
from jule.paper import registry
from jule.paper.figures import Curve, add_legend, draw_curves, line_chart, svg
from tests.paper.test_driver import Squares

CURVES = [
    Curve("USPS", [5, 20, 100], [0.80, 0.90, 0.85], spread=[0.01, 0.02, 0.0], paper=[(20, 0.88)]),
    Curve("UMist", [5, 20], [0.70, 0.75]),
]
LABELS = {"title": "NMI & K_s", "x_label": "K_s", "y_label": "NMI"}


class DrawnSquares(Squares):
    """An experiment with a figure and another file."""

    def files(self, results):
        curve = Curve("squares", [0, 1, 2], [0, 1, 4])
        chart = {"title": "Squares", "x_label": "x", "y_label": "y"}
        return {
            "squares/squares.svg": lambda: line_chart([curve], **chart),
            "squares/squares.txt": "0 1 4",
        }


@pytest.fixture
def no_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Render the tables of one experiment in a checkout with one page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "EXPERIMENTS", {"squares": DrawnSquares()})
    (tmp_path / "README.md").write_text("<!-- results: squares -->\n<!-- end -->\n")
    (tmp_path / "results").mkdir()
    return lambda: CliRunner().invoke(app, ["reproduce", "tables"])


def texts(drawn):
    """Return all texts of a figure; fails if the figure is not XML."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(drawn).iter()]


def test_a_chart_holds_its_texts_and_is_the_same_every_time():
    pytest.importorskip("matplotlib")
    drawn = line_chart(CURVES, **LABELS)
    for text in ("NMI & K_s", "K_s", "NMI", "USPS", "USPS, paper", "UMist"):
        assert text in texts(drawn)
    assert "UMist, paper" not in texts(drawn)
    assert line_chart(CURVES, **LABELS) == drawn
    assert "date" not in drawn.lower()


def test_settings_of_the_user_change_nothing_and_stay():
    matplotlib = pytest.importorskip("matplotlib")
    drawn = line_chart(CURVES, **LABELS)
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30}):
        assert line_chart(CURVES, **LABELS) == drawn
        assert matplotlib.rcParams["font.size"] == 30


def test_the_papers_points_and_the_spread_are_drawn():
    pytest.importorskip("matplotlib")
    seen = []

    def draw(figure):
        axes = figure.add_subplot()
        draw_curves(axes, CURVES, is_log_x=True, y_limits=(0.5, 1.0), **LABELS)
        add_legend(figure)
        seen.append(axes)

    svg(draw)
    (axes,) = seen
    points = {line.get_label(): line for line in axes.lines}
    assert points["USPS, paper"].get_xydata().tolist() == [[20, 0.88]]
    assert points["USPS, paper"].get_color() == points["USPS"].get_color()
    assert points["USPS, paper"].get_linestyle() == "None"
    assert points["USPS"].get_marker() != points["UMist"].get_marker()
    (band,) = axes.collections
    assert band.get_datalim(axes.transData).intervaly.tolist() == pytest.approx([0.79, 0.92])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "20", "100"]
    assert axes.get_ylim() == (0.5, 1.0)


def test_panels_share_one_legend_with_every_name_once():
    pytest.importorskip("matplotlib")

    def draw(figure):
        for axes in figure.subplots(1, 2):
            draw_curves(axes, CURVES, **LABELS)
        add_legend(figure)

    assert [text for text in texts(svg(draw)) if text == "UMist"] == ["UMist"]


def test_figures_are_written_and_kept_if_they_are_the_same(tables, tmp_path):
    pytest.importorskip("matplotlib")
    written = (
        "wrote README.md\nwrote results/squares/squares.svg\nwrote results/squares/squares.txt\n"
    )
    assert tables().output == written
    assert "Squares" in (tmp_path / "results" / "squares" / "squares.svg").read_text()
    assert tables().output == "all tables are up to date\n"


def test_without_matplotlib_everything_but_the_figures_is_rendered(tables, tmp_path, no_matplotlib):
    done = tables()
    assert done.exit_code == 0
    assert done.output == (
        "left out results/squares/squares.svg: figures need matplotlib: pip install "
        '"jule[plot]"\nwrote README.md\nwrote results/squares/squares.txt\n'
    )
    assert not (tmp_path / "results" / "squares" / "squares.svg").exists()
    assert "0 squares" in (tmp_path / "README.md").read_text()
