"""Render the tables of the benchmarks that compare with other methods and libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.common import mean_and_spread, read_measured
from jule.paper.records import read_record
from jule.paper.tables import markdown

PEER = "scikit-learn"
PROCESSOR = "seconds of the processor"
KINDS = ("classes", "clusters of K-means")


def peers(results: Path) -> str:
    """Render one row per method and peer: seconds, their ratio, and the scores of both."""
    record = read_record(results / "benchmarks" / "peers.json")

    def both(values: dict[str, float], digits: int = 3) -> list[str]:
        return [f"{values[side]:.{digits}f}" for side in ("peer", "jule")]

    rows = []
    for found in record["measured"]:
        iterations = f", {found['iterations']} iterations" if "iterations" in found else ""
        row = [f"{found['method']}{iterations}", found["peer"]]
        row += [f"{found['data']}, {found['samples']:,}", *both(found["seconds"], 2)]
        row += [f"{found['peer / jule']:.1f}", *both(found["nmi"]), *both(found["ac"])]
        rows.append([*row, f"{found['nmi of both']:.3f}"])
    header = ["method", "peer", "samples", "seconds, peer", "jule", "peer / jule"]
    header += ["NMI, peer", "jule", "AC, peer", "jule", "NMI between the two"]
    return markdown(header, rows)


def spectral(results: Path) -> str:
    """Render one row per method and data set: scores and seconds beside those of the peer."""
    rows = []
    for name, data in read_measured(results, "spectral")["sets"].items():
        runs = {method: [seed[method] for seed in data["seeds"]] for method in data["seeds"][0]}
        for method in runs:
            if method.startswith(PEER):
                continue
            peer = f"{PEER}, discretize" if method == "N-Cuts" else f"{PEER}, kmeans"
            sides = runs[peer], runs[method]
            seconds = [np.median([run[PROCESSOR] for run in side]) for side in sides]
            row = [
                f"{name}, {data['samples']:,}",
                method,
                *(mean_and_spread(s, "nmi") for s in sides),
            ]
            row += [*(f"{taken:.2f}" for taken in seconds), f"{seconds[0] / seconds[1]:.1f}"]
            rows.append(row)
    header = ["data", "method", "NMI, scikit-learn", "jule", "seconds, scikit-learn", "jule"]
    return markdown([*header, "scikit-learn / jule"], rows)


def stages(results: Path) -> str:
    """Render where the time of the spectral methods goes, in seconds of the processor."""
    found = next(v for k, v in read_measured(results, "spectral").items() if k.startswith("stages"))
    header = list(next(iter(found.values())))
    rows = [[name, *(f"{of[stage]:.2f}" for stage in header)] for name, of in found.items()]
    return markdown(["seconds", *header], rows)


def memory(results: Path) -> str:
    """Render the peak memory of the paper's methods on MNIST-full."""
    found = read_measured(results, "rival_memory")
    rows = [
        [name, *(f"{of[kind]:,.0f} MiB" for kind in ("MiB in all", "MiB above the samples"))]
        for name, of in found.items()
    ]
    return markdown(["MNIST-full", "peak of the process", "above the samples"], rows)


def deep(results: Path) -> str:
    """Render one row per method and data set: scores, seconds, and their ratio to JULE's."""
    rows = []
    for dataset, methods in read_measured(results, "deep").items():
        joint = np.mean([run["seconds"] for run in methods["JULE"]])
        for name, runs in methods.items():
            # Of the processor where that was measured, because the machine was shared then.
            taken = np.mean([run.get("seconds of the processor", run["seconds"]) for run in runs])
            scores = [mean_and_spread(runs, score) for score in ("nmi", "ac")]
            rows.append([dataset, name, *scores, f"{taken:,.0f}", f"{taken / joint:.1f}"])
    return markdown(["data", "method", "NMI", "AC", "seconds", "seconds / JULE's"], rows)


def rounder(results: Path) -> str:
    """Render the NMI of methods and of independent implementations on learned representations."""
    rows = []
    for name, trainings in read_measured(results, "rounder").items():
        for training, seeds in trainings.items():
            runs = list(seeds.values())
            for method in runs[0]["methods"]:
                found = [run["methods"][method] for run in runs]
                kinds = ("nmi", "nmi of the other", "nmi between the two")
                rows.append([name, training, method, *(mean_and_spread(found, k) for k in kinds)])
                rows[-1].append(f"{len(found)}")
    header = ["data", "training", "method", "NMI", "independent", "between the two", "seeds"]
    return markdown(header, rows)


def scatter(results: Path) -> str:
    """Render the scatter of the classes and of the clusters that K-means finds."""
    rows = []
    for training, seeds in read_measured(results, "rounder")["cmu-pie"].items():
        shares = [
            {kind: run["scatter"][kind] / run["scatter"]["all"] for kind in KINDS}
            for run in seeds.values()
        ]
        rows.append([training, *(mean_and_spread(shares, kind) for kind in KINDS)])
    return markdown(["share of the scatter of all images", *KINDS], rows)


RIVALS: dict[str, Callable[[Path], str]] = {
    "peers": peers,
    "spectral": spectral,
    "spectral stages": stages,
    "rival memory": memory,
    "deep": deep,
    "rounder": rounder,
    "rounder scatter": scatter,
}
