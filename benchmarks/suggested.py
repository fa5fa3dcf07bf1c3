"""The number of clusters that is suggested if none is given.

`python -m benchmarks.suggested [SET ...]` runs joint learning with default settings and without a
number of clusters, three seeds per set. It takes hours. The runs are kept in the folder `--runs`,
so that they are not repeated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.trust import learn_set, load, measure_sets
from jule.evaluation import accuracy, nmi


def measure(name: str, seed: int, runs: Path) -> dict[str, Any]:
    """Return what one seed suggests on one set, and how good the clusters are."""
    classes, opened = load(name)[1], learn_set(name, seed, None, runs)
    assert opened.result.choice is not None
    return {
        "suggested": [number for number, _ in opened.result.choice.candidates],
        "nmi": nmi(classes, opened.result.labels),
        "ac": accuracy(classes, opened.result.labels),
        "seconds": opened.seconds,
    }


def main() -> None:
    measure_sets("suggested", __doc__.partition("\n")[0], measure)


if __name__ == "__main__":
    main()
