"""Runs for the tests of the page: real clusters of real or made-up samples, without training."""

from itertools import pairwise

import numpy as np

from jule.forward import agglomerate, default_min_cluster_size, prepare
from jule.images import fingerprint
from jule.joint import Config, finish, first_network
from jule.joint.state import Period, State
from jule.runs import SNAPSHOTS, Finished, create_run, write_results
from jule.snapshots import save_snapshot, shown_samples, take_snapshot

HOSTILE = [
    "<img src=x onerror=window.hacked=1>.jpg",
    "</script><script>window.hacked=1</script>",
    '=HYPERLINK("http://example.org").png',
    "' onmouseover=window.hacked=1 x='.png",
    'tab\tquote" comma, newline\n.png',
    "caf\udce9.png",  # a name that is not UTF-8, as Python reads it from the disk
    "<!--",
]


def periods(counts):
    """A history of so many clusters after each period."""
    return tuple(
        Period(
            round=0,
            number=number,
            clusters_before=before,
            clusters_after=after,
            steps=10,
            images=1000,
            loss_first=0.2 / (number + 1),
            loss_last=0.1 / (number + 1),
            affinity_first=0.5,
            affinity_last=0.2,
            seconds={"train": 1.0, "embed": 0.2, "neighbours": 0.1, "merge": 0.3},
        )
        for number, (before, after) in enumerate(pairwise(counts))
    )


def finished_of(samples, k, names=None, n_neighbors=20):
    """Results of a run on these samples, with the prepared pixels as its representation."""
    config = Config(n_clusters=k, n_neighbors=n_neighbors)
    flat = samples.reshape(len(samples), -1)
    embedding = np.asarray(prepare(flat.astype(np.float32), "l2"), np.float32)
    tree = agglomerate(embedding, n_neighbors=min(n_neighbors, len(flat) - 1))
    state = State(labels=tree.cut(k, default_min_cluster_size(len(flat), k)))
    names = [str(i) for i in range(len(flat))] if names is None else names
    counts = [len(samples), max(k, len(samples) // 5), k]
    embedder = first_network(samples, config)
    return Finished(config, names, finish(embedding, state, config), periods(counts), embedder)


def run_of(folder, samples, k, names=None, labels=None):
    """A run folder with all its files, the samples beside it."""
    finished = finished_of(samples, k, names)
    source = folder.with_suffix(".npz")
    np.savez(source, images=samples)
    run = create_run(folder, finished.config, fingerprint(samples), source=str(source))
    write_results(run, finished, labels)
    for period, clusters in enumerate((len(samples) // 3, len(samples) // 8, k)):
        shown = shown_samples(len(samples))
        cut = finished.result.tree.cut(max(k, clusters))
        shot = take_snapshot(period, finished.result.embedding[shown], cut)
        save_snapshot(run.path(SNAPSHOTS), shot)
    return run


def blobs(n, shape=(12,), k=3, seed=0):
    """Samples around k centres."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 1, (k, *shape))
    return np.clip(centres[np.arange(n) % k] + rng.normal(0, 0.05, (n, *shape)), 0, 1)
