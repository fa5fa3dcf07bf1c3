"""OURS-SF and OURS-RC: joint learning on the paper's data sets, several seeds each."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from jule.evaluation import scores
from jule.images import fingerprint, load_dataset
from jule.joint import Config, preset
from jule.joint.config import Preset
from jule.paper.raw_gdl import FACES
from jule.paper.records import read_record, write_record
from jule.runs import Run, create_run, go

FOLDER = "joint"
DATASETS = ("mnist-test", "usps", "mnist", "umist", "cmu-pie", "coil20", "coil100")
ETA_OF_FACES = 0.2  # in the paper preset; the default needs no rate for a kind of image


def config_for(dataset: str, which: Preset, n_clusters: int, seed: int) -> Config:
    """Give the settings of one run: the preset, and for the paper's its rate for faces.

    Examples
    --------
    >>> config_for("umist", "paper", 20, 0).eta, config_for("usps", "paper", 10, 0).eta
    (0.2, 0.9)
    """
    changes = {"eta": ETA_OF_FACES} if which == "paper" and dataset in FACES else {}
    return preset(which, n_clusters=n_clusters, seed=seed, **changes)


def record_path(results: Path, dataset: str, which: Preset, seed: int) -> Path:
    """Give the place of one run's result.

    Examples
    --------
    >>> record_path(Path("results"), "usps", "default", 0).as_posix()
    'results/joint/default/usps-0.json'
    """
    return results / FOLDER / which / f"{dataset}-{seed}.json"


def measure(
    dataset: str,
    which: Preset,
    seed: int,
    results: Path,
    runs: Path,
    progress: Callable[[str, float], None] | None = None,
) -> dict[str, Any]:
    """Run one data set with one seed, or read what an earlier run found; write its result.

    A run that was interrupted is gone on with; its folder is removed when the result is written.

    Examples
    --------
    >>> measure("usps", "default", 0, Path("results"), Path("runs"))  # doctest: +SKIP
    """
    path = record_path(results, dataset, which, seed)
    data = load_dataset(dataset)
    config = config_for(dataset, which, data.n_clusters, seed)
    if path.exists():
        record = read_record(path)
        if record["settings"] == config.to_json():
            return record
    folder = runs / f"{dataset}-{which}-{seed}"
    run = _resumable(folder, config, fingerprint(data.images))
    start = time.perf_counter()
    finished = go(run, data.images, labels=data.labels, progress=progress)
    result = finished.result
    found = {"sf": result.labels_sf, "rc": result.labels_rc, "labels": result.labels}
    record = {
        "experiment": FOLDER,
        "command": f"jule reproduce joint --datasets {dataset} --preset {which}",
        "dataset": dataset,
        "preset": which,
        "samples": len(data),
        "clusters": data.n_clusters,
        "seed": seed,
        "threads": torch.get_num_threads(),
        "settings": config.to_json(),
        "nmi": "geometric",
        "scores": {name: scores(data.labels, labels) for name, labels in found.items()},
        "chosen": result.chosen,
        "images trained on": sum(period.images for period in finished.history),
        "seconds of the periods": sum(sum(p.seconds.values()) for p in finished.history),
        "seconds since started or resumed": time.perf_counter() - start,
        "history": [asdict(period) for period in finished.history],
    }
    write_record(path, record)
    shutil.rmtree(folder)
    return record


def _resumable(folder: Path, config: Config, data: dict[str, Any]) -> Run:
    """Open the folder of the same run, or make it anew."""
    run = Run(folder)
    if folder.exists() and run.about()["data"] == data and run.config() == config:
        return run
    return create_run(folder, config, data, overwrite=True)
