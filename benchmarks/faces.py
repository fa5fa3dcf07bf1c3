"""Why a network trained on clusters verifies faces less accurately than one trained on people.

`python -m benchmarks.faces` (Table 7) learns from all frames of YouTube Faces, as the experiment
does, and asks what the clusters hold: people, or videos of people. The network is then fine-tuned
with a softmax layer on its clusters, on the videos and on the people, and verifies pairs of LFW. A
network is also trained on the true labels of some of the people, and of some of the frames of
everybody. The difference shows what more people are worth at the same number of frames. True labels
are used for these controls only. Runs are kept in the folder `--runs`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import get_num_threads

from benchmarks.common import write
from jule.backward import Embedder, embed
from jule.evaluation import scores
from jule.images import Dataset, Pairs, load_dataset, load_pairs
from jule.images.datasets import load_videos
from jule.joint.config import Config
from jule.joint.loop import init_network
from jule.paper.experiment import Cell
from jule.paper.faces import (
    SOFTMAX_IMAGES,
    fine_tune,
    frames_of_everybody,
    joint_config,
    verify,
)
from jule.paper.joint import learn
from jule.runs.folder import RunFolder
from jule.runs.results import read_network

NAME = "ytf-frames"
SEEDS = 3
SHARES = (0.25, 0.5, 1.0)  # of the people, or of the frames of everybody
SUPERVISED_IMAGES = 96_000  # as many as the network of all frames has seen in the table


def accuracy_of(network: Embedder, pairs: Pairs) -> float:
    return float(verify(embed(network, pairs.images), pairs)["accuracy"])


def by_labels(data: Dataset, pairs: Pairs, config: Config, runs: Path) -> dict[str, Any]:
    """Compare clusters with people and videos, and fine-tune on each."""
    folder = runs / f"learned-{data.name}-{len(data)}-{config.seed}"
    result = learn(data, config, folder).result
    videos = load_videos()
    n_videos = int(videos.max()) + 1
    fine = result.tree.cut(n_videos)
    agreement = {
        "clusters with people": scores(data.labels, result.labels),
        "clusters with videos": scores(videos, result.labels),
        "as many clusters as videos, with people": scores(data.labels, fine),
        "as many clusters as videos, with videos": scores(videos, fine),
    }
    labels: dict[str, NDArray] = {
        "clusters": result.labels,
        "videos": videos,
        "people": data.labels,
    }
    accuracy = {}
    for name, each in labels.items():
        network = read_network(RunFolder(folder))
        fine_tune(network, data.images, each, SOFTMAX_IMAGES, seed=config.seed)
        accuracy[name] = accuracy_of(network, pairs)
    return {"videos": n_videos, "agreement": agreement, "accuracy": accuracy}


def by_people(data: Dataset, pairs: Pairs, config: Config) -> list[dict[str, Any]]:
    """Train on the true labels of some people, and of some frames of everybody; verify LFW."""
    people = np.random.default_rng(config.seed).permutation(data.n_clusters)
    found = []
    for share in SHARES:
        kept = np.isin(data.labels, people[: round(share * len(people))])
        some = Dataset(data.name, data.images[kept], data.labels[kept])
        parts = [some] if share == 1 else [some, frames_of_everybody(data, share, config.seed)]
        for part in parts:
            network = init_network(part.images, config)
            fine_tune(network, part.images, part.labels, SUPERVISED_IMAGES, seed=config.seed)
            found.append(
                {
                    "share": share,
                    "people": part.n_clusters,
                    "frames": len(part),
                    "accuracy": accuracy_of(network, pairs),
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where runs are kept")
    given = parser.parse_args()
    data, pairs = load_dataset(NAME), load_pairs()
    settings = {
        "seeds": SEEDS,
        "images for fine-tuning": SOFTMAX_IMAGES,
        "images for supervised training": SUPERVISED_IMAGES,
        "threads": get_num_threads(),
    }
    measured: dict[str, list[Any]] = {"labels": [], "people": []}
    for seed in range(SEEDS):
        config = joint_config(Cell("", NAME, seed=seed), data.n_clusters)
        measured["labels"].append(by_labels(data, pairs, config, given.runs))
        measured["people"].append(by_people(data, pairs, config))
        print(f"seed {seed}", measured["labels"][-1]["accuracy"], measured["people"][-1])
        write("faces", "python -m benchmarks.faces", settings, measured)


if __name__ == "__main__":
    main()
