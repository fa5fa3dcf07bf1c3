"""Runs for the tests of the page: real clusters of real or made-up samples, without training."""

from itertools import pairwise

import numpy as np

from jule.files import write_atomic
from jule.forward import prepare
from jule.images import fingerprint
from jule.joint import Config, Period, State, finish, init_network, represent
from jule.joint.clustering import cut_tree, initial_clusters, merge_tree
from jule.report import Report
from jule.runs.folder import create_run
from jule.runs.names import DUPLICATES, SKIPPED, SNAPSHOTS
from jule.runs.results import new_results, write_results
from jule.runs.snapshots import save_snapshot, shown_samples, take_snapshot
from jule.runs.tables import duplicates_csv, skipped_csv

HOSTILE = [
    "<img src=x onerror=window.hacked=1>.jpg",
    "</script><script>window.hacked=1</script>",
    '=HYPERLINK("http://example.org").png',
    "' onmouseover=window.hacked=1 x='.png",
    'tab\tquote" comma, newline\n.png',
    "caf\udce9.png",  # a name that is not UTF-8, as Python reads it from the disk
    "<!--",
    "'=1+1",
    "''@x.png",
    "\ud800.png",  # half of a character
    "\u202egnp.exe",  # shown from right to left
    "x" * 200_000,
]


def periods(counts):
    """A history with these numbers of clusters before the first and after each period."""
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


def results_of(samples, k, names=None, *, true_labels=None, first_copies=None, indices=None):
    """Results of a run on these samples, with the prepared pixels as its representation."""
    config = Config(n_clusters=k)
    flat = samples.reshape(len(samples), -1)
    embedding = np.asarray(prepare(flat.astype(np.float32), "l2"), np.float32)
    representation = represent(embedding, config)
    tree = merge_tree(representation, initial_clusters(representation, config), config)
    state = State(labels=cut_tree(tree, k, config), representation=representation)
    return new_results(
        config,
        finish(state, config, samples=flat, first_copies=first_copies),
        periods([len(samples), max(k, len(samples) // 5), k]),
        names=names,
        seconds=3.2,
        true_labels=true_labels,
        first_copies=first_copies,
        indices=indices,
    )


def run_of(
    folder,
    samples,
    k,
    names=None,
    *,
    first_copies=None,
    indices=None,
    source=None,
    spec=None,
    skipped=(),
):
    """A run folder with all its files; its samples are beside it unless `source` has them."""
    results = results_of(samples, k, names, first_copies=first_copies, indices=indices)
    if source is None:
        source = folder.with_suffix(".npz")
        np.savez(source, images=samples)
    run = create_run(folder, results.config, fingerprint(samples), source=str(source), spec=spec)
    for period, clusters in enumerate((len(samples) // 3, len(samples) // 8, k)):
        shown = shown_samples(len(samples))
        cut = results.result.tree.cut(max(k, clusters))
        shot = take_snapshot(period, results.result.embedding[shown], cut)
        save_snapshot(run.path(SNAPSHOTS), shot)
    copies = duplicates_csv(results.names, results.first_copies, results.indices)
    write_atomic(run.path(DUPLICATES), copies)
    write_atomic(run.path(SKIPPED), skipped_csv(skipped))
    write_results(run, results, init_network(samples, results.config))
    return run


def page_of(folder, results, images=None, **options):
    """Write the page of results in memory."""
    return Report.of_results(results, images, umap=False, **options).write_html(
        folder / "page.html"
    )


def blobs(n, shape=(12,), k=3, seed=0):
    """Samples around k centres."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 1, (k, *shape))
    return np.clip(centres[np.arange(n) % k] + rng.normal(0, 0.05, (n, *shape)), 0, 1)


def labels_in(page):
    """The labels that a page shows."""
    return np.array(page.evaluate("Array.from(jule.labels)"))


def name_field(page, number):
    """The name of a cluster on its card, which is filled when it comes into sight."""
    page.evaluate(f"document.getElementById('cluster-{number}').scrollIntoView()")
    return page.locator(f"#cluster-{number} .name")


def rename(page, number, name):
    """Give a cluster a name on the page."""
    name_field(page, number).fill(name)
    name_field(page, number).press("Enter")
