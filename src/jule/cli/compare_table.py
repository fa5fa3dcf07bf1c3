"""Print the table of `jule compare`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jule.cli.output import say, say_table

if TYPE_CHECKING:
    from jule.cli.compare_input import Input
    from jule.comparison.scores import Row

UNKNOWN = "-"
TITLES = {"nmi": "NMI", "ac": "AC", "silhouette": "silhouette", "modularity": "modularity"}


def print_rows(data: Input, rows: Sequence[Row], seeds: int) -> None:
    """Print the table, why methods failed, and what the columns mean."""
    names = ("nmi", "ac") if data.labels is not None else ("silhouette", "modularity")
    cells = [
        [
            row.method,
            _clusters(row),
            *(_score_text(row, name, seeds) for name in names),
            UNKNOWN if math.isnan(row.seconds) else f"{row.seconds:,.1f}",
            _memory(row.memory),
        ]
        for row in rows
    ]
    columns = ["method", "clusters", *(TITLES[name] for name in names), "seconds", "memory"]
    say_table(columns, _aligned(cells))
    for row in rows:
        if row.reason:
            say(f"{row.method} failed: {row.reason}")
    say(_legend(data, rows, seeds))


def _clusters(row: Row) -> str:
    if row.labels is None:
        return "failed"
    least, most = row.n_clusters
    text = f"{most:,}" if least == most else f"{least:,}-{most:,}"
    return text if row.noise == 0 else f"{text} + {row.noise:.0%} noise"


def _score_text(row: Row, name: str, seeds: int) -> str:
    mean, spread = row.scores.get(name, (math.nan, 0.0))
    if math.isnan(mean):
        return UNKNOWN
    several = f" ± {spread:.3f}" if row.seeds > 1 else " " * 8 if seeds > 1 else ""
    return f"{mean:.3f}{several}"


def _memory(n_bytes: int | None) -> str:
    """Format an amount of memory in MB, so that all methods have the same unit.

    Examples
    --------
    >>> _memory(1_234_567_890), _memory(None)
    ('1,235 MB', '-')
    """
    return UNKNOWN if n_bytes is None else f"{n_bytes / 1e6:,.0f} MB"


def _aligned(cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """Pad all cells but the first of each row on the left, so that numbers are right-aligned.

    Examples
    --------
    >>> _aligned([["a", "7"], ["b", "12"]])
    [['a', ' 7'], ['b', '12']]
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        [row[0], *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        for row in cells
    ]


def _legend(data: Input, rows: Sequence[Row], seeds: int) -> str:
    if data.labels is not None:
        scores = (
            "NMI and AC (accuracy of the best matching) compare the clusters with the true classes "
            "and are at most 1."
        )
    else:
        from jule.comparison.scores import MOST_IN_SILHOUETTE

        n = min(len(data.names), MOST_IN_SILHOUETTE)
        scores = (
            f"Silhouette (Euclidean distances of {n:,} samples) and modularity (of the graph of "
            "nearest neighbours) are larger for better separated clusters. They favour methods "
            "that use the same distances or the same graph, so look at the clusters as well."
        )
    spread = f" Mean ± standard deviation of {seeds} seeds." if seeds > 1 else ""
    noise = " Noise counts as one more cluster." if any(row.noise for row in rows) else ""
    own = " The row JULE is the run itself, with its training." if data.own else ""
    return (
        f"{scores}{spread}{noise}{own} Seconds and peak memory are those of one fit, without "
        "loading libraries."
    )
