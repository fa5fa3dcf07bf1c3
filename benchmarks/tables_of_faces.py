"""Render the tables of the benchmark on faces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.common import mean_and_spread, read_measured
from jule.paper.tables import markdown


def labels(results: Path) -> str:
    """Render what the clusters agree with, and the accuracy after fine-tuning on each labelling."""
    runs = read_measured(results, "faces")["labels"]
    videos = runs[0]["videos"]

    def agreement(clusters: str) -> list[str]:
        return [
            mean_and_spread([run["agreement"][f"{clusters} with {whom}"] for run in runs], "ami")
            for whom in ("people", "videos")
        ]

    def accuracy(name: str) -> str:
        return mean_and_spread([run["accuracy"] for run in runs], name)

    rows = [
        ["clusters, as many as people", *agreement("clusters"), accuracy("clusters")],
        ["clusters, as many as videos", *agreement("as many clusters as videos,"), "-"],
        [f"the {videos:,} videos", "-", "-", accuracy("videos")],
        ["the people", "-", "-", accuracy("people")],
    ]
    header = ["", "AMI with the people", "AMI with the videos", "accuracy, fine-tuned on them"]
    return markdown(header, rows)


def people(results: Path) -> str:
    """Render the accuracy after training on the true labels of a part of the people."""
    runs = read_measured(results, "faces")["people"]
    rows = [
        [
            count,
            f"{sum(run[count]['frames'] for run in runs) / len(runs):,.0f}",
            mean_and_spread([run[count] for run in runs], "accuracy"),
        ]
        for count in runs[0]
    ]
    return markdown(["people", "frames", "accuracy, trained on true labels"], rows)


FACES: dict[str, Callable[[Path], str]] = {"faces labels": labels, "faces people": people}
