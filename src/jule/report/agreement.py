"""Draw how much clusterings of the same samples agree."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CELL, MARGIN = 0.55, 2.4  # inches per clustering, and for names and the colour bar
DARK = 0.55  # ARI from which numbers are written in white


def agreement_png(names: Sequence[str], matrix: NDArray[np.floating]) -> bytes:
    """Draw a matrix of adjusted Rand indices, and return it as the content of a PNG file.

    Parameters
    ----------
    names
        One name per clustering.
    matrix
        (m, m) their adjusted Rand indices.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> agreement_png(["K-means", "AC-GDL"], np.array([[1.0, 0.4], [0.4, 1.0]]))[1:4]
    b'PNG'
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "jule[plot]"') from error
    side = CELL * len(names) + MARGIN
    figure = Figure(figsize=(side + 0.6, side), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(np.clip(matrix, 0.0, 1.0), cmap="Blues", vmin=0.0, vmax=1.0)
    places = np.arange(len(names))
    axes.set_xticks(places, names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, names)
    axes.set_xticks(places[1:] - 0.5, minor=True)
    axes.set_yticks(places[1:] - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    for (row, column), value in np.ndenumerate(matrix):
        colour = "white" if value > DARK else "black"
        axes.text(
            column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8
        )  # fmt: skip
    figure.colorbar(image, ax=axes, shrink=0.7, label="adjusted Rand index: 1 is the same clusters")
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format="png")
    return content.getvalue()
