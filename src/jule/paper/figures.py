"""Draw figures as SVG text, which is the same to the last byte if the data is the same.

An experiment returns its figures from `Experiment.files` as functions without arguments, which are
called when the files are written. If matplotlib is missing, they are left out and everything else
is rendered.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = {
    "svg.hashsalt": "jule",  # otherwise the names inside the file are random
    "svg.fonttype": "none",  # text stays text: small files, and changes that can be read
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
# Colours that people with colour blindness can tell apart (Okabe and Ito), and a second cue.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31"),
    "#7f7f7f",
)
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "<", ">")


@dataclass(frozen=True)
class Curve:
    """A curve of a line chart.

    Attributes
    ----------
    name
        Name in the legend.
    x, y
        The points, in the order in which they are connected.
    spread
        Half the width of the band around the curve, such as the standard deviation over seeds.
    paper
        Points that the paper prints, drawn as separate markers.
    style
        Number of the colour and marker; by default the position among the curves.
    is_dashed
        Whether the line is dashed, to tell two curves of one colour apart.

    Examples
    --------
    >>> Curve("USPS", [1, 2], [0.5, 0.6]).paper
    ()
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    paper: Sequence[tuple[float, float]] = ()
    style: int | None = None
    is_dashed: bool = False


def svg(
    draw: Callable[[Figure], None], width: float = 7.0, height: float = 4.2, dpi: float = 100.0
) -> str:
    """Return the SVG text of a figure.

    Parameters
    ----------
    draw
        Called with an empty figure, which it fills.
    width, height
        Size in inches.
    dpi
        Resolution of what is drawn with ``rasterized=True``, such as thousands of points.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> text = svg(lambda figure: figure.suptitle("Stages"))
    >>> "<svg" in text, "Stages" in text, "date" in text
    (True, True, False)
    """
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "jule[plot]"') from error
    content = io.StringIO()
    with style.context(["default", STYLE]):  # not the settings of the user
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        # Without metadata, which holds the date and the version of matplotlib.
        figure.savefig(content, format="svg", dpi=dpi, metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in content.getvalue().splitlines())


def draw_curves(
    axes: Axes,
    curves: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    y_label: str,
    is_log_x: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> None:
    """Draw curves into one panel of a figure, without a legend.

    Parameters
    ----------
    axes
        The panel.
    curves
        The curves. The paper's points have the colour of their curve, and are larger and hollow.
    title, x_label, y_label
        Texts.
    is_log_x
        Whether the horizontal axis is logarithmic; its ticks are then the values of x.
    y_limits
        Limits of the vertical axis; by default they fit the curves.
    """
    for position, curve in enumerate(curves):
        style = position if curve.style is None else curve.style
        colour, marker = COLOURS[style % len(COLOURS)], MARKERS[style % len(MARKERS)]
        line: dict[str, Any] = {"color": colour, "linestyle": "--" if curve.is_dashed else "-"}
        axes.plot(curve.x, curve.y, marker=marker, markersize=4, label=curve.name, **line)
        if curve.spread is not None:
            below = [y - by for y, by in zip(curve.y, curve.spread, strict=True)]
            above = [y + by for y, by in zip(curve.y, curve.spread, strict=True)]
            axes.fill_between(curve.x, below, above, color=colour, alpha=0.15, linewidth=0)
        if curve.paper:
            x, y = zip(*curve.paper, strict=True)
            hollow: dict[str, Any] = {
                "markerfacecolor": "none",
                "markersize": 9,
                "linestyle": "none",
            }
            axes.plot(x, y, color=colour, marker=marker, label=f"{curve.name}, paper", **hollow)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    if y_limits is not None:
        axes.set_ylim(*y_limits)
    if is_log_x:
        axes.set_xscale("log")
        values = sorted({x for curve in curves for x in curve.x})
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()


def add_legend(figure: Figure) -> None:
    """Add one legend to the right of all panels, with every name once.

    Examples
    --------
    >>> def draw(figure):
    ...     figure.add_subplot().plot([0.8, 0.9], label="SF")
    ...     add_legend(figure)
    >>> "SF" in svg(draw)
    True
    """
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside right center", frameon=False)


def line_chart(
    curves: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    y_label: str,
    is_log_x: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> str:
    """Return the SVG text of a line chart with a legend; see `draw_curves`.

    Examples
    --------
    >>> curve = Curve("USPS", [10, 20], [0.8, 0.9], paper=[(20, 0.85)])
    >>> text = line_chart([curve], title="Robustness", x_label="K_s", y_label="NMI")
    >>> all(word in text for word in ("Robustness", "K_s", "NMI", "USPS, paper"))
    True
    """

    def draw(figure: Figure) -> None:
        draw_curves(
            figure.add_subplot(),
            curves,
            title=title,
            x_label=x_label,
            y_label=y_label,
            is_log_x=is_log_x,
            y_limits=y_limits,
        )
        add_legend(figure)

    return svg(draw)
