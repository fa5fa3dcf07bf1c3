"""What a run found, as a plain dict: the page and report.json are made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.evaluation import accuracy, nmi
from jule.forward import Digraph
from jule.forward.assign import label_confidence
from jule.joint import choose_n_clusters
from jule.joint.clustering import View, view
from jule.report.source import labels_id, run_id
from jule.runs import Finished
from jule.snapshots import Snapshot

FORMAT = "jule-report-1"
TYPICAL, DOUBTFUL, NEAREST = 12, 6, 3
MOST_DOUBTS = 200
MOST_SUGGESTIONS = 5


def summarize(
    finished: Finished,
    images: NDArray | None = None,
    *,
    seen: View | None = None,
    labels: NDArray | None = None,
    scores: Mapping[str, Mapping[str, float]] | None = None,
    cluster_names: Mapping[int, str] | None = None,
    skipped: Sequence[tuple[str, str]] = (),
    duplicates: Sequence[Sequence[str]] = (),
    seconds: float | None = None,
    snapshots: Sequence[Snapshot] = (),
    edited: bool = False,
    title: str = "",
    no_pictures: str = "",
) -> dict[str, Any]:
    """Say what a run found: a dict of numbers, texts and lists that JSON can hold.

    Parameters
    ----------
    finished
        The run.
    images
        Its images (n, h, w[, c]); vectors and None have no pictures.
    seen
        The graph of the embedding, where it is already known.
    labels
        True classes, to score by; `scores` are those already known.
    cluster_names
        Names that somebody gave to clusters.
    skipped
        (path, reason) of the files that were left out.
    duplicates
        Groups of paths that are exact copies.
    seconds
        How long the run took; left out: the sum of its periods.
    snapshots
        How the samples lay after each period.
    edited
        Whether somebody changed the labels since the run.
    title, no_pictures
        What was clustered, and why there are no pictures, if so.

    Examples
    --------
    >>> summarize(finished)["clusters"]  # doctest: +SKIP
    10
    """
    result = finished.result
    seen = seen or view(result.embedding, finished.config)
    if seconds is None:
        seconds = sum(sum(period.seconds.values()) for period in finished.history)
    found = {"labels": result.labels, "sf": result.labels_sf, "rc": result.labels_rc}
    if labels is not None:
        scores = {
            name: {"nmi": nmi(labels, which), "ac": accuracy(labels, which)}
            for name, which in found.items()
        }
    has_pictures = images is not None and images.ndim > 2
    return {
        "format": FORMAT,
        "run": run_id(finished),
        "labels": labels_id(result.labels),
        "title": title,
        "images": len(result.labels),
        "image_shape": list(images.shape[1:]) if images is not None else None,
        "pictures": has_pictures,
        "no_pictures": "" if has_pictures else no_pictures or "these are vectors, not pictures",
        "clusters": len(np.unique(result.labels)),
        "clusters_sf": len(np.unique(result.labels_sf)),
        "clusters_rc": len(np.unique(result.labels_rc)),
        "chosen": result.chosen,
        "edited": edited,
        "agreement": _agreement(result.labels_sf, result.labels_rc),
        "sureness": float(result.confidence.mean()),
        "scores": {name: dict(score) for name, score in scores.items()} if scores else None,
        "seconds": float(seconds),
        "suggestions": suggestions(finished, seen.graph),
        "groups": groups(finished, seen.graph, cluster_names or {}),
        "doubts": doubts(finished, seen.graph),
        "skipped": [{"path": path, "reason": reason} for path, reason in skipped],
        "duplicates": [list(group) for group in duplicates],
        "history": [asdict(period) for period in finished.history],
        "stages": [
            {"period": shot.period, "clusters": shot.n_clusters} for shot in stages(snapshots)
        ],
        "settings": finished.config.to_json(),
    }


def _agreement(one: NDArray, other: NDArray) -> float:
    """Give the share of samples on which SF and RC agree, clusters matched one to one."""
    return float(accuracy(one, other))


def suggestions(finished: Finished, graph: Digraph) -> list[dict[str, float]]:
    """Give the numbers of clusters that the tree suggests, best first, with their scores.

    Examples
    --------
    >>> suggestions(finished, graph)[0]  # doctest: +SKIP
    {'k': 10, 'score': 0.7}
    """
    tree = finished.result.tree
    choice = finished.result.choice
    if choice is None:
        if tree.n_samples < 4 or tree.n_clusters > 1:
            return []
        choice = choose_n_clusters(tree, graph)
    likely = [(k, score) for k, score in choice.candidates if score > 0]
    return [{"k": k, "score": float(score)} for k, score in likely[:MOST_SUGGESTIONS]]


def groups(finished: Finished, graph: Digraph, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Describe every cluster: size, sureness, typical and doubtful samples, nearest clusters.

    Examples
    --------
    >>> groups(finished, graph, {})[0]["size"]  # doctest: +SKIP
    178
    """
    result = finished.result
    clusters = np.unique(result.labels)
    centres = np.stack([result.embedding[result.labels == c].mean(axis=0) for c in clusters])
    apart = ((centres[:, None] - centres[None]) ** 2).sum(axis=2)
    described = []
    for place, cluster in enumerate(clusters.tolist()):
        members = np.flatnonzero(result.labels == cluster)
        distance = ((result.embedding[members] - centres[place]) ** 2).sum(axis=1)
        typical = members[np.argsort(distance, kind="stable")][:TYPICAL]
        unsure = members[np.lexsort((-distance, result.confidence[members]))]
        near = [int(clusters[i]) for i in np.argsort(apart[place], kind="stable") if i != place]
        described.append(
            {
                "cluster": cluster,
                "name": names.get(cluster, ""),
                "size": len(members),
                "sureness": float(result.confidence[members].mean()),
                "typical": typical.tolist(),
                "doubtful": [i for i in unsure.tolist() if i not in set(typical)][:DOUBTFUL],
                "nearest": near[:NEAREST],
            }
        )
    return described


def doubts(finished: Finished, graph: Digraph) -> list[dict[str, Any]]:
    """Name the samples whose neighbours are mostly in another cluster, the worst first.

    Examples
    --------
    >>> doubts(finished, graph)[0]["looks_like"]  # doctest: +SKIP
    3
    """
    result = finished.result
    order = np.argsort(result.confidence, kind="stable")[:MOST_DOUBTS]
    found = []
    for sample in order[result.confidence[order] < 0.5].tolist():
        around = np.bincount(
            result.labels[graph.indices[sample]], graph.weights[sample], result.labels.max() + 1
        )
        around[result.labels[sample]] = -1.0
        found.append(
            {
                "image": sample,
                "path": finished.names[sample],
                "cluster": int(result.labels[sample]),
                "looks_like": int(around.argmax()),
                "confidence": float(result.confidence[sample]),
            }
        )
    return found


def stages(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Choose the first, a middle and the final snapshot, as in the paper's Fig. 1.

    The middle one has a number of clusters as far from the first as from the last, by ratio.

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


def confidence_of(finished: Finished, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Say how sure other labels of a run's samples are.

    Examples
    --------
    >>> confidence_of(finished, tree.cut(7))  # doctest: +SKIP
    """
    return label_confidence(view(finished.result.embedding, finished.config).graph, labels)
