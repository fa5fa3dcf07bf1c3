"""Why training on clusters verifies fewer faces than training on people does (Table 7).

`python -m benchmarks.faces` learns from all frames of YouTube Faces, as the experiment does, and
asks what the clusters hold: people, or videos of people. The network is then fine-tuned with a
softmax layer on its clusters, on the videos and on the people, and verifies pairs of LFW. Networks
that are trained on the true labels of a part of the people show what more people are worth. True
labels are used for these controls only. Runs are kept in the folder `--runs`.
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
from jule.paper.faces import SOFTMAX_IMAGES, joint_config, softmax_settings, verify
from jule.paper.joint import learn
from jule.paper.softmax import train_softmax
from jule.runs.folder import RunFolder
from jule.runs.results import read_network

NAME = "ytf-frames"
SEEDS = 3
SHARES = (0.25, 0.5, 1.0)  # of the people
SUPERVISED_IMAGES = 96_000  # as many as the network of all frames has seen in the table


def tuned(
    network: Embedder, images: NDArray, labels: NDArray, n_images: int, pairs: Pairs, seed: int
) -> float:
    """Train a network with a softmax layer on labels, and return its accuracy on LFW."""
    settings = softmax_settings()
    numbers = np.unique(labels, return_inverse=True)[1]
    steps = -(-n_images // settings.batch_size)
    train_softmax(network, images, numbers, n_steps=steps, settings=settings, seed=seed)
    return float(verify(embed(network, pairs.images), pairs)["accuracy"])


def by_labels(data: Dataset, pairs: Pairs, config: Config, runs: Path) -> dict[str, Any]:
    """Compare clusters with people and videos, and fine-tune on each."""
    folder = runs / f"learned-{data.name}-{len(data)}-{config.seed}"
    result = learn(data, config, folder).result
    videos = load_videos()
    fine = result.tree.cut(int(videos.max()) + 1)
    labels: dict[str, NDArray] = {
        "clusters": result.labels,
        "videos": videos,
        "people": data.labels,
    }
    agreement = {
        "clusters with people": scores(data.labels, result.labels),
        "clusters with videos": scores(videos, result.labels),
        "as many clusters as videos, with people": scores(data.labels, fine),
        "as many clusters as videos, with videos": scores(videos, fine),
    }
    accuracy = {
        name: tuned(
            read_network(RunFolder(folder)), data.images, each, SOFTMAX_IMAGES, pairs, config.seed
        )
        for name, each in labels.items()
    }
    return {"videos": len(np.unique(videos)), "agreement": agreement, "accuracy": accuracy}


def by_people(data: Dataset, pairs: Pairs, config: Config) -> dict[str, Any]:
    """Train on the true labels of a part of the people, and verify other people."""
    people = np.random.default_rng(config.seed).permutation(data.n_clusters)
    found = {}
    for share in SHARES:
        chosen = people[: round(share * len(people))]
        kept = np.isin(data.labels, chosen)
        images, labels = data.images[kept], data.labels[kept]
        network = init_network(images, config)
        found[str(len(chosen))] = {
            "frames": len(images),
            "accuracy": tuned(network, images, labels, SUPERVISED_IMAGES, pairs, config.seed),
        }
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
