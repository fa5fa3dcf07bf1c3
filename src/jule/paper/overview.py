"""All experiments beside the paper at a glance: how many numbers agree, and which do not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jule.paper.experiment import Comparison, Experiment
from jule.paper.records import naming_results
from jule.paper.tables import markdown

CLOSE = 0.02  # larger differences need an explanation
ROUNDING = 0.0005  # the paper prints three digits


def overview(experiments: Iterable[Experiment], results: Path) -> str:
    """Render one row per experiment that shares numbers with the paper.

    Examples
    --------
    >>> print(overview([], Path("results")).splitlines()[0].count("|"))
    7
    """
    rows = []
    for experiment in experiments:
        with naming_results(experiment.name):
            found = experiment.comparisons(results)
        if found:
            rows.append([experiment.title, *_counts(found), _worst(found)])
    header = ["", "numbers", "at least the paper's", f"up to {CLOSE} worse", "even worse"]
    return markdown([*header, "the worst"], rows)


def count_reached(found: list[Comparison]) -> tuple[int, int]:
    """Return how many numbers are at least as good as the paper's, and how many there are.

    Examples
    --------
    >>> count_reached([Comparison("USPS, RC", 0.967, 0.913), Comparison("USPS, SF", 0.8, 0.858)])
    (1, 2)
    """
    return sum(one.gain >= -ROUNDING for one in found), len(found)


def _counts(found: list[Comparison]) -> list[str]:
    """Return how many numbers there are in all, as good as the paper's, close, and others."""
    good, _ = count_reached(found)
    near = sum(one.gain >= -CLOSE - ROUNDING for one in found)
    return [f"{count}" for count in (len(found), good, near - good, len(found) - near)]


def _worst(found: list[Comparison]) -> str:
    """Return the number that is worse than the paper's by most."""
    worst = min(found, key=lambda one: one.gain)
    if worst.gain >= -ROUNDING:
        return "-"
    return f"{worst.what}: {worst.ours:.3f} ({worst.papers:.3f})"
