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
    """Render the accuracy after training on true labels, by the numbers of people and frames."""
    runs = read_measured(results, "faces")["people"]
    rows = []
    for same in zip(*runs, strict=True):  # the same part, of all seeds
        frames = sum(run["frames"] for run in same) / len(same)
        accuracy = mean_and_spread(list(same), "accuracy")
        rows.append([f"{same[0]['people']}", f"{frames:,.0f}", accuracy])
    return markdown(["people", "frames", "accuracy, trained on true labels"], rows)


FACES: dict[str, Callable[[Path], str]] = {"faces labels": labels, "faces people": people}
