"""`jule demo`: cluster real handwritten digits, and compare with K-means and raw linkage."""

from __future__ import annotations

import sys
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from jule.cli.cluster import LOADING
from jule.cli.errors import friendly

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path("jule-demo")


@friendly
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to create.")] = FOLDER,
    show: Annotated[
        bool | None, typer.Option("--open/--no-open", help="Open the page. Default: on a terminal.")
    ] = None,
) -> None:
    """Cluster real handwritten digits, and compare with K-means and raw graph degree linkage.

    True labels are used to score the clusters, never to find them.

    Example: jule demo
    """
    console = Console()
    console.print("Clustering 1,797 handwritten digits (8 x 8 pixels) without their labels.")
    with Console(stderr=True).status(LOADING):
        import numpy as np
        from rich.table import Table
        from sklearn.cluster import KMeans

        from jule.cli.report import write_report
        from jule.cli.show import print_clusters
        from jule.evaluation import accuracy, nmi
        from jule.forward import agglomerate, default_min_cluster_size, prepare
        from jule.images import fingerprint, load_dataset
        from jule.joint import preset
        from jule.progress import progress_bars
        from jule.report import Report
        from jule.runs.execute import execute
        from jule.runs.folder import create_run

        data = load_dataset("digits")
        vectors = prepare(data.images, "l2")
        agglomerate(vectors[:100]).cut(2, min_cluster_size=2)  # compiles the kernels, once
    k = data.n_clusters
    images = out / "digits.npz"
    run = create_run(
        out,
        preset("default", n_clusters=k),
        fingerprint(data.images),
        source=str(images.resolve()),
        overwrite=out == FOLDER,  # a new demo replaces the last one
    )
    np.savez_compressed(images, images=data.images, labels=data.labels)
    with progress_bars("digits") as bars:
        results = execute(run, data.images, labels=data.labels, progress=bars)

    def linkage() -> NDArray:
        return agglomerate(vectors).cut(k, default_min_cluster_size(len(data), k))

    def kmeans() -> NDArray:
        found: NDArray = KMeans(k, n_init=10, random_state=0).fit_predict(vectors)
        return found

    print_clusters(console, results, data.labels)
    rows: list[tuple[str, NDArray, float]] = [
        ("K-means on pixels, best of 10", *_timed(kmeans)),
        ("graph degree linkage on pixels", *_timed(linkage)),
        ("joint learning", results.result.labels, results.seconds),
    ]
    table = Table("method", "NMI", "AC", "seconds")
    for name, labels, seconds in rows:
        scores = f"{nmi(data.labels, labels):.3f}", f"{accuracy(data.labels, labels):.3f}"
        table.add_row(name, *scores, f"{seconds:.1f}")
    console.print(table)
    console.print("This is one run; scores vary with the random seed.")
    console.print(f"The network, labels and tree are in {out}", markup=False, highlight=False)
    page = write_report(
        run, lambda bars: Report.of_run(run, data.images, results=results, progress=bars)
    )
    if sys.stdout.isatty() if show is None else show:
        webbrowser.open(page.resolve().as_uri())


def _timed(work: Callable[[], NDArray]) -> tuple[NDArray, float]:
    start = time.perf_counter()
    labels = work()
    return labels, time.perf_counter() - start
