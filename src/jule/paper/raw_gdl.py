"""AC-GDL on image intensities: the row of the paper's two tables that has no learning in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jule.evaluation import scores
from jule.forward import agglomerate, default_min_cluster_size, prepare
from jule.forward.prepare import Preparation
from jule.images import load_dataset
from jule.paper.records import write_record

FOLDER = "raw-gdl"
FACES = ("umist", "frgc", "cmu-pie", "ytf")
DATASETS = ("coil20", "coil100", "usps", "mnist-test", "mnist", "umist", "cmu-pie")


@dataclass(frozen=True)
class Setting:
    """One way of clustering the intensities."""

    name: str
    preparation: Preparation
    n_near: int
    min_cluster_size: int | None


def settings(dataset: str) -> list[Setting]:
    """Give the settings measured on a data set.

    ``paper``: what the paper's numbers were made with: the plain criterion, the mean image
    subtracted but for faces. ``plain``: L2 alone, tiny clusters absorbed. ``local``: the same with
    the paper's own criterion, K_c = 5, which is how JULE begins.

    Examples
    --------
    >>> [setting.name for setting in settings("umist")]
    ['paper', 'plain', 'local']
    """
    preparation: Preparation = "l2" if dataset in FACES else "center-l2"
    return [
        Setting("paper", preparation, n_near=1, min_cluster_size=1),
        Setting("plain", "l2", n_near=1, min_cluster_size=None),
        Setting("local", "l2", n_near=5, min_cluster_size=None),
    ]


def measure(
    name: str, results: Path, progress: Callable[[str, float], None] | None = None
) -> dict[str, Any]:
    """Cluster one data set in every setting, and write the scores to results/raw-gdl/.

    Nothing is random here, so there is one run and no spread.

    Examples
    --------
    >>> measure("umist", Path("results"))  # doctest: +SKIP
    """
    data = load_dataset(name)
    k = data.n_clusters
    rows: dict[str, Any] = {}
    for setting in settings(name):
        start = time.perf_counter()
        vectors = prepare(data.images, setting.preparation)
        tree = agglomerate(vectors, n_near=setting.n_near, progress=progress)
        size = setting.min_cluster_size or default_min_cluster_size(len(data), k)
        labels = tree.cut(k, size)
        rows[setting.name] = {
            "settings": asdict(setting) | {"n_neighbors": 20, "a": 1.0, "lam": 1.0},
            "seconds": time.perf_counter() - start,
            "first clusters": tree.n_first,
            "scores": scores(data.labels, labels),
        }
    record = {
        "experiment": FOLDER,
        "command": f"jule reproduce raw-gdl --datasets {name}",
        "dataset": name,
        "samples": len(data),
        "clusters": k,
        "seeds": "none: nothing is random",
        "nmi": "geometric",
        "rows": rows,
    }
    write_record(results / FOLDER / f"{name}.json", record)
    return record
