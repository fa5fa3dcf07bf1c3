"""AC-GDL on image intensities: the method in Tables 3 and 10 that JULE builds on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jule.evaluation import scores
from jule.forward import agglomerate, default_min_cluster_size, prepare
from jule.forward.prepare import Preparation
from jule.images import load_dataset
from jule.paper.experiment import Cell, Context, Experiment, Renderer, Request
from jule.paper.numbers import DISPLAY, initial_clusters, paper_score
from jule.paper.records import Record, read_record
from jule.paper.tables import markdown

FACES = ("umist", "frgc", "cmu-pie", "ytf")


@dataclass(frozen=True)
class Setting:
    """One way of clustering the intensities."""

    name: str
    preparation: Preparation
    n_near: int
    min_cluster_size: int | None
    n_neighbors: int = 20
    a: float = 1.0
    lam: float = 1.0


def settings(dataset: str) -> list[Setting]:
    """Return the settings that are measured on a data set.

    ``paper``: reproduces the paper's numbers, with the plain criterion, and with the mean image
    subtracted unless the images are faces. ``plain``: L2 normalization alone, tiny clusters
    absorbed. ``local``: the same with the paper's own criterion, K_c = 5, which is how JULE starts.

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


class RawGDL(Experiment):
    """Graph degree linkage on raw intensities; nothing is random, so there is one run per set."""

    name = "raw-gdl"
    title = "AC-GDL on image intensities (Tables 3 and 10)"
    expected = "5 min"
    datasets = ("coil20", "coil100", "usps", "mnist-test", "mnist", "umist", "cmu-pie")

    def cells(self, request: Request) -> list[Cell]:
        names = request.datasets or self.datasets
        return [Cell(f"{self.name}/{name}.json", name) for name in names]

    def is_current(self, cell: Cell, record: Record) -> bool:
        measured = {name: row["settings"] for name, row in record["rows"].items()}
        return measured == {setting.name: asdict(setting) for setting in settings(cell.dataset)}

    def measure(self, cell: Cell, context: Context) -> Record:
        data = load_dataset(cell.dataset)
        k = data.n_clusters
        rows: dict[str, Any] = {}
        for setting in settings(cell.dataset):
            start = time.perf_counter()
            tree = agglomerate(
                prepare(data.images, setting.preparation),
                n_neighbors=setting.n_neighbors,
                a=setting.a,
                n_near=setting.n_near,
                lam=setting.lam,
                progress=context.progress,
            )
            size = setting.min_cluster_size or default_min_cluster_size(len(data), k)
            labels = tree.cut(k, size)
            rows[setting.name] = {
                "settings": asdict(setting),
                "seconds": time.perf_counter() - start,
                "first clusters": tree.n_initial,
                "scores": scores(data.labels, labels),
            }
        return {
            "dataset": cell.dataset,
            "samples": len(data),
            "clusters": k,
            "seeds": "none: nothing is random",
            "nmi": "geometric",
            "rows": rows,
        }

    def summary(self, record: Record) -> str:
        paper = paper_score("AC-GDL", record["dataset"])
        return "\n".join(
            f"{record['dataset']:11s} {name:6s} NMI {row['scores']['nmi']:.3f}  "
            f"AC {row['scores']['ac']:.3f}  (paper {paper})  {row['seconds']:.1f} s"
            for name, row in record["rows"].items()
        )

    def tables(self) -> Mapping[str, Renderer]:
        return {self.name: self._table}

    def _table(self, results: Path) -> str:
        rows = []
        for name in self.datasets:
            path = results / self.name / f"{name}.json"
            if not path.exists():
                continue
            found = read_record(path)["rows"]
            rows.append(
                [
                    DISPLAY[name],
                    str(paper_score("AC-GDL", name)),
                    *(_score(found[setting]) for setting in ("paper", "plain", "local")),
                    f"{found['paper']['first clusters']:,}",
                    f"{found['plain']['first clusters']:,}",
                    f"{initial_clusters(name):,}",
                ]
            )
        header = ["NMI / AC", "the paper's AC-GDL", "same setting", "plain", "local"]
        header += ["initial clusters, same setting", "L2", "paper"]
        return markdown(header, rows)


def _score(row: Record) -> str:
    return f"{row['scores']['nmi']:.3f} / {row['scores']['ac']:.3f}"
