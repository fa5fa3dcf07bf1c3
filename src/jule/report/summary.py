"""Summarize a run as a plain dict, from which the page and report.json are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.corrections import Base, Corrected, Edit
from jule.corrections.apply import SHELF, start
from jule.corrections.edits import without_unlinked
from jule.corrections.suggest import same_pairs, strangers
from jule.forward import Digraph
from jule.forward.assign import cluster_fractions, own_fractions
from jule.joint.result import Result
from jule.runs.corrected import base_of
from jule.runs.page_edits import labels_id
from jule.runs.results import RunResults
from jule.runs.snapshots import Snapshot

FORMAT = "jule-report-2"
TYPICAL, DOUBTFUL, NEAREST = 12, 6, 3
MOST_DOUBTS = 200
MOST_SUGGESTIONS = 50  # of each kind
BLOCK_CELLS = 2**22  # fractions that are computed at once


def summarize(
    results: RunResults,
    images: NDArray | None = None,
    *,
    skipped: Sequence[tuple[str, str]] = (),
    snapshots: Sequence[Snapshot] = (),
    title: str = "",
    no_pictures: str = "",
    originals: str | None = None,
    encoder: str = "",
    rows: NDArray[np.integer] | None = None,
) -> dict[str, Any]:
    """Summarize a run as a dict of numbers, strings and lists that can be written as JSON.

    Parameters
    ----------
    results
        The results of the run.
    images
        (n, h, w) or (n, h, w, c): the images. With vectors or None, there are no pictures.
    skipped
        (path, reason) of every file that could not be used.
    snapshots
        The positions of the samples after each period.
    title
        Title of the page: the name of the source.
    no_pictures
        The reason if there are no pictures.
    originals
        The URL of the folder that the names of the samples are relative to.
    encoder
        What the pretrained encoder is that described the pictures; empty for pixels.
    rows
        The samples that may be listed; by default all.
    """
    result = results.result
    has_pictures = images is not None and images.ndim > 2
    doubtful, n_doubts = doubts(results)
    return {
        "format": FORMAT,
        "run": results.id,
        "labels": labels_id(result.labels),
        "title": title,
        "images": len(result.labels),
        "image_shape": None if images is None else list(images.shape[1:]),
        "pictures": has_pictures,
        "no_pictures": "" if has_pictures else no_pictures or "these are vectors, not images",
        "originals": originals,
        "clusters": results.n_clusters,
        "asked": results.config.n_clusters,
        "clusters_sf": int(result.labels_sf.max()) + 1,
        "clusters_rc": int(result.labels_rc.max()) + 1,
        "encoder": encoder,
        "chosen": result.chosen,
        "counts_inputs": result.input_neighbors is not None,
        "edited": results.edited,
        "agreement": results.agreement,
        "sureness": float(result.confidence.mean()),
        "scores": results.scores and {name: dict(score) for name, score in results.scores.items()},
        "seconds": float(results.seconds),
        "suggestions": suggestions(results),
        "evidence": [list(entry) for entry in result.evidence],
        "groups": groups(results, rows),
        "shelf": results.shelf,
        "next_number": results.next_number,
        **suggested_edits(results),
        "doubts": doubtful,
        "n_doubts": n_doubts,
        "skipped": [{"path": path, "reason": reason} for path, reason in skipped],
        "duplicates": duplicates(results),
        "history": [asdict(period) for period in results.history],
        "stages": [
            {"period": shot.period, "clusters": shot.n_clusters} for shot in stages(snapshots)
        ],
        "settings": results.config.to_json(),
    }


def suggestions(results: RunResults) -> list[dict[str, float]]:
    """Return the numbers of clusters that the tree suggests, the suggestion first."""
    likely = [(k, score) for k, score in results.result.suggestions if score > 0]
    return [{"k": k, "score": score} for k, score in likely]


def groups(results: RunResults, rows: NDArray[np.integer] | None = None) -> list[dict[str, Any]]:
    """Describe every cluster: size, sureness, typical and doubtful samples, nearest clusters.

    Typical samples are nearest to the centre of their cluster; doubtful ones have the least
    confidence. Samples that were moved by hand are never doubtful. Only `rows` are listed, if they
    are given.
    """
    result = results.result
    may_be_listed = np.full(len(result.labels), rows is None)
    if rows is not None:
        may_be_listed[rows] = True
    centres = results.centres.astype(np.float64)
    norms = (centres**2).sum(axis=1)
    apart = norms[:, None] + norms - 2.0 * centres @ centres.T
    distances = results.distances
    ends = np.cumsum(np.bincount(result.labels))
    by_cluster = np.split(np.argsort(result.labels, kind="stable"), ends[:-1])
    described = []
    for cluster, members in enumerate(by_cluster):
        listed = members[may_be_listed[members]]
        typical = listed[np.argsort(distances[listed], kind="stable")][:TYPICAL]
        may_be_listed[typical] = False
        others = listed[may_be_listed[listed] & ~results.by_hand[listed]]
        unsure = others[np.lexsort((-distances[others], result.confidence[others]))]
        near = np.argsort(apart[cluster], kind="stable")
        described.append(
            {
                "cluster": cluster,
                "number": results.numbers[cluster],
                "name": results.cluster_names.get(cluster, ""),
                "size": len(members),
                "sureness": float(result.confidence[members].mean()),
                "typical": typical.tolist(),
                "doubtful": unsure[:DOUBTFUL].tolist(),
                "nearest": near[near != cluster][:NEAREST].tolist(),
            }
        )
    return described


def listed_rows(summary: Mapping[str, Any]) -> set[int]:
    """Return the samples that a summary lists, which a page of it must show."""
    listed = {doubt["image"] for doubt in summary["doubts"]}
    for group in summary["groups"]:
        listed.update(group["typical"], group["doubtful"])
    for link in summary["links"]:
        listed.update(link["images"], link["others"])
    return listed


def suggested_edits(results: RunResults) -> dict[str, list[dict[str, Any]]]:
    """List clusters that may be the same, branches that may be strangers, and the links."""
    base = replace(base_of(results, results.result), numbers=())  # the page counts from 0
    edits = results.edits.in_effect
    linked = links(without_unlinked(edits), base)
    state = replace(start(base), labels=_with_shelf(results), apart=results.apart)
    return {**suggest(results.result.graph, base, state, edits), "links": linked}


def links(edits: Iterable[Edit], base: Base) -> list[dict[str, Any]]:
    """Return must-links and cannot-links with the rows of their pictures."""
    return [
        {
            "edit": edit.kind,
            "images": base.pictures.find_all(edit.pictures).tolist(),
            "others": base.pictures.find_all(edit.others).tolist(),
        }
        for edit in edits
        if edit.is_link
    ]


def suggest(
    graph: Digraph, base: Base, state: Corrected, edits: Sequence[Edit]
) -> dict[str, list[dict[str, int]]]:
    """Return ``"same"`` and ``"strangers"`` as the page shows them, the most likely first.

    See `jule.corrections.suggest`. Of the branches, those that have more affinity to other clusters
    than to their own are returned, but not of clusters that a person has merged.
    """
    pairs = same_pairs(graph, base, state, edits, MOST_SUGGESTIONS)
    branches = strangers(graph, base, state, MOST_SUGGESTIONS)
    merged: set[int] = set()
    for edit in edits:
        if edit.kind == "merge":
            merged.update(state.labels[base.pictures.find_all(edit.pictures)].tolist())
    return {
        "same": [{"cluster": pair.label, "other": pair.other} for pair in pairs],
        "strangers": [
            {"cluster": one.label, "branch": one.branch, "size": one.size}
            for one in branches
            if one.share < 0.5 and one.label not in merged
        ],
    }


def _with_shelf(results: RunResults) -> NDArray[np.int32]:
    """Return the labels, with pictures that fit nowhere on the shelf."""
    labels = results.result.labels
    return labels if results.shelf is None else np.where(labels == results.shelf, SHELF, labels)


def doubts(results: RunResults) -> tuple[list[dict[str, Any]], int]:
    """List the samples with more affinity to another cluster than to their own, worst first.

    Samples that were moved by hand are never listed.

    Returns
    -------
    doubts
        The first 200 of them.
    count
        The total number of them.
    """
    result = results.result
    samples, others = doubtful_samples(result, results.shelf)
    is_open = ~results.by_hand[samples]
    found = [
        {
            "image": sample,
            "path": results.names[sample],
            "cluster": int(result.labels[sample]),
            "looks_like": other,
            "confidence": float(result.confidence[sample]),
        }
        for sample, other in zip(samples[is_open].tolist(), others[is_open].tolist(), strict=True)
    ]
    return found[:MOST_DOUBTS], len(found)


def doubtful_samples(
    result: Result, shelf: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the samples with more affinity to another cluster than to their own, and that cluster.

    The samples with the least confidence come first. The shelf is not another cluster.
    """
    # Another cluster can have more affinity than the own one only if that has less than half.
    own = own_fractions(result.graphs, result.labels, result.votes)
    unsure = np.flatnonzero(own < 0.5)
    unsure = unsure[np.argsort(result.confidence[unsure], kind="stable")]
    others = np.empty(len(unsure), np.int64)
    doubted = np.empty(len(unsure), bool)
    rows = max(1, BLOCK_CELLS // result.n_clusters)
    for first in range(0, len(unsure), rows):
        block = unsure[first : first + rows]
        fractions = cluster_fractions(result.graphs, result.labels, block, result.votes)
        in_own = np.take_along_axis(fractions, result.labels[block, None], axis=1)[:, 0]
        if shelf is not None:
            fractions[:, shelf] = 0.0
        others[first : first + rows] = fractions.argmax(axis=1)
        doubted[first : first + rows] = fractions.max(axis=1) > in_own
    return unsure[doubted], others[doubted]


def duplicates(results: RunResults) -> list[list[str]]:
    """Return the names of exact copies in groups, the original first."""
    copied = np.flatnonzero(results.first_copies != np.arange(len(results.first_copies)))
    found: dict[int, list[str]] = {}
    for copy, original in zip(copied.tolist(), results.first_copies[copied].tolist(), strict=True):
        found.setdefault(original, [results.names[original]]).append(results.names[copy])
    return list(found.values())


def stages(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Choose the first, a middle and the final snapshot, as in Fig. 1 of the paper.

    The middle one has the number of clusters nearest to the geometric mean of the other two.

    Examples
    --------
    >>> stages([])
    []
    """
    if len(snapshots) < 3:
        return list(snapshots)
    first, *between, last = snapshots
    middle = np.sqrt(float(first.n_clusters) * last.n_clusters)
    far = [abs(np.log(shot.n_clusters / middle)) for shot in between]
    return [first, between[int(np.argmin(far))], last]
