"""`jule demo`: real handwritten digits, clustered before your eyes."""

from __future__ import annotations

import time

from jule.cli.errors import friendly

DIGITS = "scikit-learn's 1,797 handwritten digits, 8x8 pixels"


@friendly
def demo() -> None:
    """Cluster real handwritten digits and compare with K-means.

    Labels are used to score the clusters, never to find them.

    Example: jule demo
    """
    import numpy as np
    from rich.console import Console
    from rich.table import Table
    from sklearn.cluster import KMeans

    from jule.cli.progress import progress_bars
    from jule.evaluation import accuracy, nmi
    from jule.forward import agglomerate, default_min_cluster_size, prepare
    from jule.images import load_dataset

    console = Console()
    data = load_dataset("digits")
    k = data.n_clusters
    console.print(f"Clustering {DIGITS}, into {k} clusters, without their labels.")
    vectors = prepare(data.images, "l2")
    with console.status("compiling the kernels: only the first run waits for this"):
        agglomerate(vectors[:100]).cut(2, min_cluster_size=2)
    with progress_bars("digits") as show:
        start = time.perf_counter()
        tree = agglomerate(vectors, progress=show)
        labels = tree.cut(k, default_min_cluster_size(len(data), k))
        linkage_seconds = time.perf_counter() - start
    start = time.perf_counter()
    rival = KMeans(k, n_init=10, random_state=0).fit_predict(vectors)
    kmeans_seconds = time.perf_counter() - start

    table = Table("method", "NMI", "AC", "seconds")
    for name, found, taken in (
        ("graph degree linkage", labels, linkage_seconds),
        ("K-means, best of 10", rival, kmeans_seconds),
    ):
        scores = f"{nmi(data.labels, found):.3f}", f"{accuracy(data.labels, found):.3f}"
        table.add_row(name, *scores, f"{taken:.2f}")
    console.print(table)
    console.print(f"{tree.n_first} first clusters were merged; what each of the {k} holds:")
    holds = Table("cluster", "images", "digits in it")
    for cluster in range(k):
        digits, counts = np.unique(data.labels[labels == cluster], return_counts=True)
        order = np.argsort(-counts)
        shown = ", ".join(f"{counts[i]} x {digits[i]}" for i in order[:4])
        more = ", ..." if len(order) > 4 else ""
        holds.add_row(str(cluster), str(counts.sum()), shown + more)
    console.print(holds)
