"""Several networks side by side, against single ones.

`python -m benchmarks.ensemble [SET ...]` takes single runs with default settings and the true
number of clusters from the folder `--runs`, or makes them as `benchmarks.trust` does. A network of
an ensemble is exactly that of the single run with its seed, so ensembles of three are formed from
single runs without training again. Where there are four runs, all four choices of three are
measured; they share networks, so they are not independent.

Two small networks are trained as one for comparison: half as many channels and outputs each, their
unit vectors side by side in one loss.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.common import RESULTS, write
from benchmarks.trust import PHOTOS, judge, learn_set, load
from jule.backward import Embedder, train
from jule.backward.networks import Ensemble
from jule.backward.networks.base import init_weights
from jule.backward.plan import CHANNELS, KERNEL, OUTPUTS, layer_plan
from jule.evaluation import accuracy, nmi, with_own_class
from jule.forward.assign import label_confidence
from jule.joint import Config, Result, State, finish, init_network, joint_learning, preset
from jule.joint.loop import join_members
from jule.runs.encoding import as_encoder, encode
from jule.runs.results import RunResults

MEMBERS = 3
SEEDS = {PHOTOS: 4, "usps": 4, "digits": 4}  # where runs are cheap
SETS = (*SEEDS, "umist", "mnist-test", "cmu-pie", "coil20", "coil100")
SMALL = ("usps", "digits")  # sets on which two small networks are trained as one
SMALL_SEEDS = 3
TIMED_STEPS, TURNS = 20, 3


def scores(classes: NDArray[np.integer], result: Result) -> dict[str, Any]:
    """Return how good labels are, and how well their confidence says so."""
    is_right = with_own_class(classes, result.labels)
    found = {
        "nmi": nmi(classes, result.labels),
        "ac": accuracy(classes, result.labels),
        "chosen": result.chosen,
        "with their class": float(is_right.mean()),
        "confidence": judge(result.confidence_in(result.labels), is_right),
    }
    for name, labels in (("sf", result.labels_sf), ("rc", result.labels_rc)):
        found[name] = {"nmi": nmi(classes, labels), "ac": accuracy(classes, labels)}
    if result.votes is not None:
        rules = other_confidences(result)
        found["other rules"] = {rule: judge(each, is_right) for rule, each in rules.items()}
    return found


def other_confidences(result: Result) -> dict[str, NDArray[np.float64]]:
    """Return confidences by other rules than the one in use."""
    assert result.votes is not None
    agree = (result.votes == result.labels).mean(axis=0)
    before = label_confidence(result.graphs[1:], result.labels)
    neighbors = label_confidence(result.graphs, result.labels)
    return {
        "neighbours": neighbors,
        "agreement": agree,
        "neighbours before learning, agreement": (before + agree) / 2,
        "neighbours, agreement": (neighbors + agree) / 2,
        "the smaller one": np.minimum(neighbors, agree),
        "their product": neighbors * agree,
    }


def joined(runs: list[RunResults], samples: NDArray) -> Result:
    """Return the result of the ensemble whose networks are those of single runs."""
    config = replace(runs[0].config, ensemble=len(runs))
    vectors = np.hstack([run.result.embedding for run in runs]) / np.sqrt(len(runs))
    state = join_members(State(), vectors.astype(np.float32), config)
    return finish(state, config, samples=samples)


class Small(nn.Module):
    """The paper's network for a size, with half as many channels and outputs."""

    def __init__(self, height: int, width: int, channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for pooled in layer_plan(height, width):
            layers += [nn.Conv2d(channels, CHANNELS // 2, KERNEL, bias=False)]
            layers += [nn.BatchNorm2d(CHANNELS // 2), nn.ReLU(inplace=True)]
            height, width, channels = height - KERNEL + 1, width - KERNEL + 1, CHANNELS // 2
            if pooled:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
                height, width = -(-height // 2), -(-width // 2)
        top = nn.Linear(channels * height * width, OUTPUTS // 2)
        self.layers = nn.Sequential(*layers, nn.Flatten(), top)
        init_weights(self)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n, c, h, w) to vectors (n, 80)."""
        found: Tensor = self.layers(x.to(memory_format=torch.channels_last))
        return found


def two_small(samples: NDArray, config: Config) -> Embedder:
    """Return a network that is two small ones, with the usual input scaling."""
    embedder = init_network(samples, config)
    assert embedder.size is not None
    shape = (*embedder.size, len(embedder.mean))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        parts = [Small(*shape) for _ in range(2)]
    embedder.body = nn.Sequential(Ensemble(parts))  # one network, which is trained as a whole
    return embedder


def small_pair(name: str) -> dict[str, Any]:
    """Train two small networks as one, and compare the time of a step with the usual one."""
    samples, classes, _ = load(name)
    k = len(np.unique(classes))
    found = {}
    for seed in range(SMALL_SEEDS):
        config = preset("default", n_clusters=k, seed=seed)
        states = joint_learning(samples, two_small(samples, config), config)
        found[str(seed)] = scores(classes, finish(deque(states, maxlen=1).pop(), config))
        print(name, "two small networks", seed, found[str(seed)], flush=True)
    config = preset("default", n_clusters=k)
    labels = np.arange(len(samples)) // 4
    variants = {"usual": init_network(samples, config), "small": two_small(samples, config)}
    taken: dict[str, list[float]] = {variant: [] for variant in variants}
    for _ in range(TURNS):
        for variant, embedder in variants.items():
            start = time.process_time()
            settings = config.training(warp=True)
            train(embedder, samples, labels, n_steps=TIMED_STEPS, settings=settings)
            taken[variant].append(time.process_time() - start)
    return {"seeds": found, "seconds / usual": min(taken["small"]) / min(taken["usual"])}


def measure(name: str, runs: Path) -> dict[str, Any]:
    """Return the scores of single runs on a set, and of all ensembles of three of them."""
    images, classes, features = load(name)
    samples = encode(as_encoder(features), images)
    k = len(np.unique(classes))
    single = [learn_set(name, seed, k, runs) for seed in range(SEEDS.get(name, MEMBERS))]
    found: dict[str, Any] = {"single": {}, "ensembles": {}}
    for seed, run in enumerate(single):
        found["single"][str(seed)] = scores(classes, run.result)
    for seeds in combinations(range(len(single)), MEMBERS):
        result = joined([single[seed] for seed in seeds], samples)
        found["ensembles"][" ".join(map(str, seeds))] = scores(classes, result)
        print(name, seeds, found["ensembles"][" ".join(map(str, seeds))], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where runs are kept")
    parser.add_argument("--small", action="store_true", help="train two small networks, too")
    given = parser.parse_args()
    settings = {"networks": MEMBERS, "threads": torch.get_num_threads()}
    path = RESULTS / "ensemble.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    measured = record["measured"] if record.get("settings") == settings else {}
    for name in given.sets or SETS:
        measured[name] = measured.get(name, {}) | measure(name, given.runs)
        if given.small and name in SMALL:
            measured[name]["two small networks"] = small_pair(name)
        write("ensemble", "python -m benchmarks.ensemble --small", settings, measured)


if __name__ == "__main__":
    main()
