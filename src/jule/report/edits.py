"""What somebody changed on the page, taken back into the run: names and moved images."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.joint.clustering import cut
from jule.joint.state import write_whole
from jule.report.source import AUTO, NAMES, labels_id, run_id
from jule.report.summary import confidence_of
from jule.runs import Finished, Run, read_results
from jule.sheets import read_labels, write_labels

FORMAT = "jule-edits-1"
NAMES_FORMAT = "jule-names-1"
KEYS = {"format", "run", "labels", "k", "names", "moves", "clusters"}
LONGEST_NAME = 200


@dataclass(frozen=True)
class Edits:
    """Changes to one clustering of a run.

    Attributes
    ----------
    run
        Which run they belong to; see `run_id`.
    labels
        Which labels of it they start from; None where they start from a cut of its tree ...
    k
        ... into so many clusters.
    names
        Names by cluster.
    moves
        (image, path, cluster) of every image that was moved.
    """

    run: str
    labels: str | None
    k: int | None
    names: dict[int, str]
    moves: tuple[tuple[int, str, int], ...]


@dataclass(frozen=True, eq=False)
class Applied:
    """Labels after somebody's changes, and the names of the clusters."""

    labels: NDArray[np.int32]
    names: dict[int, str]
    n_moved: int


def read_edits(path: Path) -> Edits:
    """Read the JSON file that the page downloads, and refuse anything else.

    Examples
    --------
    >>> read_edits(Path("edits.json"))  # doctest: +SKIP
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    try:
        return parse_edits(value)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse_edits(value: Any) -> Edits:
    """Check what a file of changes says.

    Examples
    --------
    >>> edits = {"format": "jule-edits-1", "run": "5f3a9c01", "k": 4, "names": {"0": "cats"}}
    >>> parse_edits(edits).names
    {0: 'cats'}
    """
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError(f"not a file of changes: its format is not {FORMAT!r}")
    unknown = sorted(set(value) - KEYS)
    if unknown:
        raise ValueError(f"{', '.join(map(repr, unknown))} is not known in a file of changes")
    run, labels, k = value.get("run"), value.get("labels"), value.get("k")
    if not isinstance(run, str):
        raise ValueError("'run' must say which run the changes belong to")
    if k is not None and (not _is_whole(k) or k < 1):
        raise ValueError(f"'k' must be a number of clusters or null, got {k!r}")
    if (k is None) == (labels is None) or not isinstance(labels, str | None):
        raise ValueError("one of 'k' and 'labels' must say what the changes start from")
    names, moves = value.get("names", {}), value.get("moves", [])
    if not isinstance(names, dict):
        raise ValueError("'names' must be an object: a name for every cluster number")
    if not isinstance(moves, list):
        raise ValueError("'moves' must be a list")
    return Edits(run, labels, k, _names(names), tuple(_move(move) for move in moves))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _names(names: Mapping[str, Any]) -> dict[int, str]:
    for cluster, name in names.items():
        if not cluster.isascii() or not cluster.isdigit():
            raise ValueError(f"'names' has {cluster!r} where a cluster number is expected")
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
            raise ValueError(
                f"the name of cluster {cluster} must be a text of 1 to {LONGEST_NAME} characters"
            )
    return {int(cluster): name.strip() for cluster, name in names.items()}


def _move(move: Any) -> tuple[int, str, int]:
    if not isinstance(move, dict) or set(move) != {"image", "path", "cluster"}:
        raise ValueError(f"a move has image, path and cluster, got {move!r}")
    image, path, cluster = move["image"], move["path"], move["cluster"]
    if not _is_whole(image) or not isinstance(path, str) or not _is_whole(cluster):
        raise ValueError(f"a move needs two whole numbers and a path, got {move!r}")
    return image, path, cluster


def change(edits: Edits, finished: Finished, start: NDArray[np.int32]) -> Applied:
    """Move the images and name the clusters; clusters left empty go, and the others close up.

    Examples
    --------
    >>> change(edits, finished, finished.result.labels).n_moved  # doctest: +SKIP
    3
    """
    labels = start.copy()
    first_new = next_cluster = int(labels.max()) + 1
    for image, path, cluster in edits.moves:
        if not 0 <= image < len(labels):
            raise ValueError(f"image {image} ({path}) is not one of the run's {len(labels)}")
        if finished.names[image] != path:
            raise ValueError(f"image {image} is {finished.names[image]} in the run, not {path}")
        next_cluster = max(next_cluster, cluster + 1)
        labels[image] = cluster
    used = set(np.unique(labels).tolist())
    wrong = {cluster for cluster in used if cluster < 0}
    wrong |= set(range(first_new, next_cluster)) - used  # new clusters have no gaps between them
    wrong |= {cluster for cluster in edits.names if cluster >= next_cluster}
    if wrong:
        raise ValueError(
            f"cluster {min(wrong)} is not one of the {first_new} clusters, nor one that the "
            "moves make"
        )
    kept, closed = np.unique(labels, return_inverse=True)
    places = {int(cluster): place for place, cluster in enumerate(kept)}
    names = {places[cluster]: name for cluster, name in edits.names.items() if cluster in places}
    return Applied(closed.astype(np.int32), names, len(edits.moves))


def apply_edits(run: Run, edits: Edits) -> Applied:
    """Write labels.csv anew with the changes, and cluster_names.json.

    What the machine had found stays in labels_auto.csv.

    Examples
    --------
    >>> apply_edits(Run(Path("faces")), read_edits(Path("edits.json")))  # doctest: +SKIP
    """
    finished = read_results(run, device="cpu")
    if edits.run != run_id(finished):
        raise ValueError(f"these changes were made on the page of another run than {run.folder}")
    applied = change(edits, finished, _start(run, edits, finished))
    if not run.path(AUTO).exists():
        write_whole(run.path(AUTO), run.path("labels.csv").read_bytes())
    names = {"format": NAMES_FORMAT, "names": {str(c): name for c, name in applied.names.items()}}
    write_whole(run.path(NAMES), (json.dumps(names, indent=2) + "\n").encode())
    confidence = confidence_of(finished, applied.labels)
    write_labels(run.path("labels.csv"), finished.names, applied.labels, confidence)
    return applied


def _start(run: Run, edits: Edits, finished: Finished) -> NDArray[np.int32]:
    """Give the labels that the changes start from: the page may be older than the last change."""
    if edits.k is not None:
        return cut(finished.result.tree, edits.k, finished.config)
    known = [finished.result.labels]
    if run.path(AUTO).exists():
        known.append(read_labels(run.path(AUTO))[1])
    for labels in known:
        if labels_id(labels) == edits.labels:
            return labels
    raise ValueError(
        "these changes were made on a page that is older than the run's labels: make a new page "
        f"with jule report {run.folder}"
    )
