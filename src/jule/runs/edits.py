"""Apply edits made on the page of a run to its labels: names and moved images."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.files import parse_json, read_regular
from jule.joint.result import Result, recut, recut_names, with_labels
from jule.locks import hold
from jule.runs.folder import RunFolder
from jule.runs.names import LABELS, LABELS_AUTO
from jule.runs.results import RunResults, read_automatic, read_results
from jule.runs.tables import labels_csv

FORMAT = "jule-edits-2"
KEYS = {"format", "run", "labels", "k", "names", "moves", "clusters"}
LONGEST_NAME = 200
MOST_BYTES = 2**28  # of a file of edits: a million moves have a tenth of it


@dataclass(frozen=True)
class Edits:
    """Edits to one clustering of a run.

    Attributes
    ----------
    run
        The run they belong to; see `RunResults.id`.
    labels
        The labels that the page was made from; see `labels_id`.
    k
        The number of clusters shown on the page when the edits were made.
    names
        Names by cluster; an empty name removes the old one.
    moves
        (image, path, cluster) of every image that was moved.
    """

    run: str
    labels: str
    k: int
    names: dict[int, str]
    moves: tuple[tuple[int, str, int], ...]


@dataclass(frozen=True, eq=False)
class EditedLabels:
    """Labels after edits.

    Attributes
    ----------
    labels
        (n,) clusters, without gaps.
    names
        The names of the clusters that have one.
    moved
        (n,) whether each sample was moved by these edits.
    """

    labels: NDArray[np.int32]
    names: dict[int, str]
    moved: NDArray[np.bool_]


def read_edits(path: Path) -> Edits:
    """Read the JSON file that the page downloads."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: download the JSON file on the page")
    if not path.is_file():
        raise ValueError(f"{path} is not a file: give the JSON file downloaded from the page")
    try:
        value = parse_json(read_regular(path.resolve(), MOST_BYTES))
    except ValueError as error:
        raise ValueError(
            f"{path} is not JSON ({error}): use the file of the button 'Download JSON' on the page"
        ) from error
    try:
        return parse_edits(value)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse_edits(value: Any) -> Edits:
    """Parse and check the content of a file of edits.

    Examples
    --------
    >>> edits = {"format": "jule-edits-2", "run": "5f3a", "labels": "0b", "k": 4}
    >>> parse_edits({**edits, "names": {"0": "cats"}}).names
    {0: 'cats'}
    """
    if isinstance(value, dict) and value.get("format") == "jule-edits-1":
        raise ValueError(
            "these edits were made on a page of an earlier version: make the page again with "
            "jule report, and edit there"
        )
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError(f"not a file of edits: its format is not {FORMAT!r}")
    unknown = sorted(set(value) - KEYS)
    if unknown:
        raise ValueError(f"unknown entries in a file of edits: {', '.join(map(repr, unknown))}")
    run, labels, k = value.get("run"), value.get("labels"), value.get("k", 0)
    if not isinstance(run, str):
        raise ValueError("'run' must be the identifier of the run that the edits belong to")
    if not isinstance(labels, str):
        raise ValueError("'labels' must be the identifier of the labels that the edits start from")
    if not _is_whole(k) or k < 1:
        raise ValueError(f"'k' must be the number of clusters that were shown, got {k!r}")
    names, moves = value.get("names", {}), value.get("moves", [])
    if not isinstance(names, dict):
        raise ValueError("'names' must be an object that maps cluster numbers to names")
    if not isinstance(moves, list):
        raise ValueError("'moves' must be a list")
    return Edits(run, labels, k, _parse_names(names), tuple(_parse_move(move) for move in moves))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _parse_names(names: Mapping[str, Any]) -> dict[int, str]:
    for cluster, name in names.items():
        if not cluster.isascii() or not cluster.isdigit():
            raise ValueError(f"'names' has {cluster!r} where a cluster number is expected")
        if not isinstance(name, str) or len(name) > LONGEST_NAME or not _is_text(name):
            raise ValueError(
                f"the name of cluster {cluster} must be a string of at most {LONGEST_NAME} "
                "characters"
            )
    return {int(cluster): name.strip() for cluster, name in names.items()}


def _is_text(name: str) -> bool:
    """Return whether a string can be written as UTF-8: a lone surrogate cannot."""
    return name.encode("utf-8", "replace").decode() == name


def _parse_move(move: Any) -> tuple[int, str, int]:
    if not isinstance(move, dict) or set(move) != {"image", "path", "cluster"}:
        raise ValueError(f"a move must have image, path and cluster, got {move!r}")
    image, path, cluster = move["image"], move["path"], move["cluster"]
    if not _is_whole(image) or not isinstance(path, str) or not _is_whole(cluster):
        raise ValueError(
            f"a move needs whole numbers (image, cluster) and a string (path), got {move!r}"
        )
    return image, path, cluster


def edit_labels(
    edits: Edits,
    paths: list[str],
    labels: NDArray[np.int32],
    names: Mapping[int, str],
    first_copies: NDArray[np.int64],
) -> EditedLabels:
    """Move images and name clusters; remove empty clusters and renumber the others.

    Parameters
    ----------
    edits
        The edits.
    paths
        The path of each sample, to check the moves.
    labels, names
        The clusters and names that the edits start from; names not mentioned are kept.
    first_copies
        (n,) index of the original of each sample; exact copies move together.

    Examples
    --------
    >>> edits = Edits("", "", 2, {1: "dogs"}, ((0, "a", 1),))
    >>> start = np.array([0, 0, 1], np.int32)
    >>> edited = edit_labels(edits, ["a", "b", "c"], start, {0: "cats"}, np.arange(3))
    >>> edited.labels.tolist(), edited.names
    ([1, 0, 1], {0: 'cats', 1: 'dogs'})
    """
    moved_labels, moved = labels.copy(), np.zeros(len(labels), bool)
    n_before = int(labels.max()) + 1
    n_after = n_before
    for image, path, cluster in edits.moves:
        if not 0 <= image < len(labels):
            raise ValueError(f"image {image} ({path}) is not one of the run's {len(labels)} images")
        if paths[image] != path:
            raise ValueError(f"image {image} of the run is {paths[image]}, not {path}")
        if not 0 <= cluster < n_before + len(edits.moves):  # a move creates at most one cluster
            raise _no_such_cluster(cluster, n_before)
        n_after = max(n_after, cluster + 1)
        copies = first_copies == first_copies[image]
        moved_labels[copies] = cluster
        moved |= copies
    _check_clusters(edits, moved_labels, n_before, n_after)
    used, closed = np.unique(moved_labels, return_inverse=True)
    index = {int(cluster): place for place, cluster in enumerate(used)}
    together = {**names, **edits.names}
    kept = {index[cluster]: name for cluster, name in together.items() if cluster in index and name}
    return EditedLabels(closed.reshape(-1).astype(np.int32), kept, moved)


def _check_clusters(edits: Edits, labels: NDArray[np.int32], n_before: int, n_after: int) -> None:
    # New clusters are numbered without gaps.
    wrong = set(range(n_before, n_after)) - set(np.unique(labels).tolist())
    wrong |= {cluster for cluster in edits.names if cluster >= n_after}
    if wrong:
        raise _no_such_cluster(min(wrong), n_before)


def _no_such_cluster(cluster: int, n_before: int) -> ValueError:
    return ValueError(f"cluster {cluster} is neither one of the {n_before} clusters nor a new one")


def apply_edits(run: RunFolder, edits: Edits) -> tuple[RunResults, int]:
    """Apply edits to labels.csv; return the new results and the number of moved images.

    The labels as they were found are kept in labels_auto.csv.
    """
    run.about()  # raises if there is no run
    with hold(run.home):
        return _apply_edits(run, edits)


def _apply_edits(run: RunFolder, edits: Edits) -> tuple[RunResults, int]:
    results = read_results(run)
    if edits.run != results.id:
        raise ValueError(
            f"these edits do not belong to {run.folder}: they were made on the page of another run"
        )
    automatic = read_automatic(run) if results.edited else results.result
    start, names, by_hand = _start(run, edits, results, automatic)
    edited = edit_labels(edits, results.names, start, names, results.first_copies)
    by_hand = by_hand | edited.moved
    result = with_labels(
        automatic,
        edited.labels,
        results.config,
        by_hand=by_hand,
        first_copies=results.first_copies,
    )
    after = replace(results, result=result, cluster_names=edited.names, by_hand=by_hand)
    files = {} if results.edited else {LABELS_AUTO: run.read(LABELS)}
    run.update({**files, LABELS: labels_csv(after.columns(), by_hand)})
    return after, int(edited.moved.sum())


def _start(
    run: RunFolder, edits: Edits, results: RunResults, automatic: Result
) -> tuple[NDArray[np.int32], dict[int, str], NDArray[np.bool_]]:
    """Return the labels, names and samples moved by hand that the edits start from.

    The page may be older, made from the labels before they were edited.
    """
    if labels_id(results.result.labels) == edits.labels:
        base, names, by_hand = results.result, results.cluster_names, results.by_hand
    elif labels_id(automatic.labels) == edits.labels:
        base, names = automatic, _names_by_overlap(results, automatic.labels)
        by_hand = np.zeros_like(results.by_hand)
        n_undone = int(results.by_hand.sum())
        if n_undone:
            warnings.warn(
                f"these edits were made on the first page of the run, so earlier moves "
                f"({n_undone}) are undone",
                stacklevel=3,
            )
    else:
        raise ValueError(
            "these edits were made on a page that is older than the run's labels: make the page "
            f"again with jule report {run.folder}"
        )
    # Of more clusters than there are different images, some have only copies; they become empty.
    labels = recut(base, edits.k, results.config)[results.first_copies]
    return labels, recut_names(base, names, edits.k, results.config), by_hand


def _names_by_overlap(results: RunResults, labels: NDArray[np.int32]) -> dict[int, str]:
    """Return names for other labels: each goes to the cluster with most of the named samples."""
    names = {}
    for cluster, name in results.cluster_names.items():
        counts = np.bincount(labels[results.result.labels == cluster])
        names[int(counts.argmax())] = name
    return names


def labels_id(labels: NDArray[np.integer]) -> str:
    """Return a checksum that identifies labels.

    Examples
    --------
    >>> labels_id(np.array([0, 1])) == labels_id(np.array([1, 0]))
    False
    """
    return f"{zlib.crc32(labels.astype('<i4').tobytes()):08x}"
