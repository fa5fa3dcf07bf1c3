"""Table 7: face verification on LFW with networks trained on frames of YouTube Faces."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.evaluation import scores
from jule.forward import prepare
from jule.images import Dataset, Pairs, load_dataset, load_pairs
from jule.images.datasets import has_dataset
from jule.joint.config import Config
from jule.paper.experiment import Cell, Context, Experiment, Renderer, Request
from jule.paper.joint import SEEDS, config_for, learn
from jule.paper.numbers import paper_score
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown, mean_and_spread
from jule.paper.verification import cosine_similarity, verification_accuracy

if TYPE_CHECKING:
    from jule.backward import Embedder
    from jule.backward.settings import Training

SHARES = (0.25, 0.5, 1.0)  # of every person's frames, so that all sizes have the same people
TESTED_ON = "lfw"
ROUNDS = 1  # of joint learning, as in the paper
SOFTMAX_IMAGES = 24_000  # for fine-tuning, as many as in a period
SOFTMAX_RATE = 0.03  # the best of four on frames of YouTube Faces that were not trained on
PAPER_SIZES = ("10k", "20k", "30k", "50k", "100k")


class Faces(Experiment):
    """Softmax on predicted clusters, after joint learning, against softmax on true labels."""

    name = "faces"
    title = "Face verification on LFW, trained on YouTube Faces (Table 7)"
    expected = "1 h"
    datasets = ("ytf-frames", TESTED_ON)
    options = ("datasets", "seeds")
    published = (Request(datasets=("ytf-frames",)),)

    def cells(self, request: Request) -> list[Cell]:
        supplied = ("ytf",) if has_dataset("ytf") else ()
        trained_on = request.datasets or ("ytf-frames", *supplied)
        if TESTED_ON in trained_on:
            raise ValueError(f"{self.name} tests on {TESTED_ON}, so it cannot train on it")
        return [
            Cell(f"{self.name}/{dataset}-{seed}.json", dataset, seed=seed)
            for dataset in trained_on
            for seed in range(SEEDS if request.seeds is None else request.seeds)
        ]

    def is_current(self, cell: Cell, record: Record) -> bool:
        joint = Config.from_json(record["settings"]["joint"]).to_json()
        settings = record["settings"] | {"joint": joint}
        return bool(settings == settings_of(cell, record["people"]))

    def measure(self, cell: Cell, context: Context) -> Record:
        data, pairs = load_dataset(cell.dataset), load_pairs()
        if data.images.shape[3:] != pairs.images.shape[3:]:
            raise ValueError(f"{self.name} needs images in colour; those of {data.name} are grey")
        sizes = []
        for share in SHARES:
            part = frames_of_everybody(data, share, cell.seed or 0)
            sizes.append(_measure_size(part, pairs, cell, context))
        return {
            "dataset": cell.dataset,
            "people": data.n_clusters,
            "seed": cell.seed,
            "pairs": len(pairs),
            "folds": len(np.unique(pairs.fold)),
            "nmi": "geometric",
            "settings": settings_of(cell, data.n_clusters),
            "pixels": verify(prepare(pairs.images, "l2"), pairs),
            "sizes": sizes,
        }

    def summary(self, record: Record) -> str:
        lines = []
        for size in record["sizes"]:
            found = {name: size[name]["accuracy"] for name in ("supervised", "ours")}
            lines.append(
                f"{record['dataset']:11s} seed {record['seed']}  {size['frames']:6,} frames  "
                f"accuracy: supervised {found['supervised']:.3f}  ours {found['ours']:.3f}"
            )
        return "\n".join(lines)

    def tables(self) -> Mapping[str, Renderer]:
        return {self.name: self._table, "faces paper": _paper_table}

    def _table(self, results: Path) -> str:
        rows = []
        for dataset in ("ytf-frames", "ytf"):
            paths = sorted((results / self.name).glob(f"{dataset}-[0-9]*.json"))
            records = [read_record(path) for path in paths]
            for place in range(len(SHARES) if records else 0):
                sizes = [record["sizes"][place] for record in records]
                rows.append(
                    [
                        f"{sizes[0]['frames']:,}",
                        mean_and_spread([size["supervised"]["accuracy"] for size in sizes]),
                        mean_and_spread([size["ours"]["accuracy"] for size in sizes]),
                        mean_and_spread([size["before fine-tuning"]["accuracy"] for size in sizes]),
                        f"{records[0]['pixels']['accuracy']:.3f}",
                        mean_and_spread([size["scores"]["nmi"] for size in sizes]),
                        str(len(records)),
                    ]
                )
        header = ["frames", "supervised", "OURS", "OURS, before fine-tuning", "pixels"]
        return markdown([*header, "NMI of the clusters", "seeds"], rows)


def settings_of(cell: Cell, people: int) -> dict[str, Any]:
    """Return all settings of a cell, as plain values."""
    return {
        "shares": list(SHARES),
        "softmax images": SOFTMAX_IMAGES,
        "softmax": asdict(_softmax_settings()),
        "joint": joint_config(cell, people).to_json(),
    }


def joint_config(cell: Cell, people: int) -> Config:
    """Return the settings of joint learning: the defaults, with one round.

    Examples
    --------
    >>> joint_config(Cell("", "ytf-frames", seed=1), 347).rounds
    1
    """
    return replace(config_for(replace(cell, preset="default"), people), rounds=ROUNDS)


def _softmax_settings() -> Training:
    from jule.backward.settings import Training

    return Training(learning_rate=SOFTMAX_RATE, warp=1.0)


def frames_of_everybody(data: Dataset, share: float, seed: int) -> Dataset:
    """Draw a share of the frames of every person, at least two of them.

    Examples
    --------
    >>> part = frames_of_everybody(load_dataset("digits"), 0.1, seed=0)
    >>> len(part), part.n_clusters
    (179, 10)
    """
    rng = np.random.default_rng(seed)
    kept = []
    for person in np.unique(data.labels):
        frames = rng.permutation(np.flatnonzero(data.labels == person))
        kept.append(frames[: max(2, round(share * len(frames)))])
    chosen = np.sort(np.concatenate(kept))
    return Dataset(data.name, data.images[chosen], data.labels[chosen])


def verify(vectors: Any, pairs: Pairs) -> dict[str, Any]:
    """Return the accuracy on LFW: the mean over the folds, its standard error, and all folds."""
    similarity = cosine_similarity(vectors.reshape(len(vectors), -1), pairs.pairs)
    folds = verification_accuracy(similarity, pairs.same, pairs.fold)
    return {
        "accuracy": float(folds.mean()),
        "standard error": float(folds.std(ddof=1) / np.sqrt(len(folds))),
        "folds": folds.round(6).tolist(),
    }


def _measure_size(part: Dataset, pairs: Pairs, cell: Cell, context: Context) -> dict[str, Any]:
    """Learn from some frames, with their clusters and with their true labels."""
    from jule.backward import embed
    from jule.joint.loop import init_network
    from jule.runs.folder import RunFolder
    from jule.runs.results import read_network

    start = time.perf_counter()
    config = joint_config(cell, part.n_clusters)
    folder = context.runs / f"learned-{part.name}-{len(part)}-{cell.seed}"
    learned = learn(part, config, folder, context.progress)
    network = read_network(RunFolder(folder))
    before = verify(embed(network, pairs.images), pairs)
    images = sum(period.images for period in learned.history)
    clusters = learned.result.labels
    seed = cell.seed or 0
    show = partial(context.progress, "fine-tuning")
    ours = fine_tune(network, part.images, clusters, SOFTMAX_IMAGES, seed=seed, progress=show)
    fresh = init_network(part.images, config)
    # As many images in all as the network that was learned without labels has seen.
    in_all = images + SOFTMAX_IMAGES
    show = partial(context.progress, "supervised training")
    known = fine_tune(fresh, part.images, part.labels, in_all, seed=seed, progress=show)
    return {
        "frames": len(part),
        "scores": scores(part.labels, clusters),
        "images trained on": in_all,
        "ours": verify(embed(network, pairs.images), pairs) | ours,
        "before fine-tuning": before,
        "supervised": verify(embed(fresh, pairs.images), pairs) | known,
        "seconds": time.perf_counter() - start,
    }


def fine_tune(
    network: Embedder,
    images: NDArray,
    labels: NDArray,
    n_images: int,
    *,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Train a network in place with a softmax layer on labels; return its loss at the end.

    Parameters
    ----------
    network
        The network, trained or not.
    images, labels
        The images and their labels, which may be any numbers.
    n_images
        For how many images to train, each of which is seen several times.
    seed
        Random seed.
    progress
        Called with the fraction done.
    """
    from jule.paper.softmax import train_softmax

    settings = _softmax_settings()
    losses = train_softmax(
        network,
        images,
        np.unique(labels, return_inverse=True)[1],
        n_steps=-(-n_images // settings.batch_size),
        settings=settings,
        seed=seed,
        progress=progress,
    )
    return {"loss at the end": float(np.mean(losses[-max(1, len(losses) // 10) :]))}


def _paper_table(results: Path) -> str:
    """Render the paper's own table, which was measured on different frames."""
    del results  # nothing of it is ours
    rows = [
        [method, *(f"{paper_score(method, size, 'faces').ac:.3f}" for size in PAPER_SIZES)]
        for method in ("supervised", "OURS")
    ]
    return markdown(["paper, frames", *PAPER_SIZES], rows)
