"""`jule demo`: real handwritten digits, clustered before your eyes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly

FOLDER = Path("jule-demo")
DIGITS = "scikit-learn's 1,797 handwritten digits, 8x8 pixels"


@friendly
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to make.")] = FOLDER,
) -> None:
    """Cluster real handwritten digits, beside K-means and raw graph degree linkage.

    Labels are used to score the clusters, never to find them.

    Example: jule demo
    """
    import numpy as np
    from rich.console import Console
    from rich.table import Table
    from sklearn.cluster import KMeans

    from jule.progress import progress_bars
    from jule.cli.report import make_report
    from jule.cli.show import show_clusters
    from jule.evaluation import accuracy, nmi
    from jule.forward import agglomerate, default_min_cluster_size, prepare
    from jule.images import fingerprint, load_dataset
    from jule.joint import preset
    from jule.runs import create_run, go

    console = Console()
    data = load_dataset("digits")
    k = data.n_clusters
    images = out / "digits.npz"
    run = create_run(
        out,
        preset("default", n_clusters=k),
        fingerprint(data.images),
        source=str(images.resolve()),
        overwrite=out == FOLDER,  # nobody minds another demo in the place of the last one
    )
    np.savez_compressed(images, images=data.images, labels=data.labels)
    console.print(f"Clustering {DIGITS}, into {k} clusters, without their labels.")
    vectors = prepare(data.images, "l2")
    with console.status("compiling the kernels: only the first run waits for this"):
        agglomerate(vectors[:100]).cut(2, min_cluster_size=2)
    with progress_bars("digits") as show:
        start = time.perf_counter()
        result = go(run, data.images, labels=data.labels, progress=show).result
        joint_seconds = time.perf_counter() - start
    start = time.perf_counter()
    linkage = agglomerate(vectors).cut(k, default_min_cluster_size(len(data), k))
    linkage_seconds = time.perf_counter() - start
    start = time.perf_counter()
    kmeans = KMeans(k, n_init=10, random_state=0).fit_predict(vectors)
    kmeans_seconds = time.perf_counter() - start

    show_clusters(console, result, data.labels)
    table = Table("method", "NMI", "AC", "seconds")
    for name, found, taken in (
        ("joint learning", result.labels, joint_seconds),
        ("graph degree linkage on pixels", linkage, linkage_seconds),
        ("K-means on pixels, best of 10", kmeans, kmeans_seconds),
    ):
        scores = f"{nmi(data.labels, found):.3f}", f"{accuracy(data.labels, found):.3f}"
        table.add_row(name, *scores, f"{taken:.2f}")
    console.print(table)
    console.print(f"The network, labels and tree are in {out}", markup=False, highlight=False)
    make_report(run)
