"""Edits as the page downloads them, in the format "jule-page-edits-3".

They are turned into edits that name pictures (`jule.corrections`), which any run understands. Names
and moves by numbers of clusters are what other programs may write.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.corrections.editor import Editor
from jule.corrections.edits import LONGEST_NAME, Edit, checked_name, without_unlinked
from jule.corrections.requests import Request, by_pictures, make_edit
from jule.joint.result import Result, recut, recut_names
from jule.runs.corrected import base_of
from jule.runs.results import RunResults

FORMAT = "jule-page-edits-3"
EARLIER_FORMATS = ("jule-edits-1", "jule-edits-2")  # `k` of the last counted the shelf
KEYS = {"format", "run", "labels", "k", "names", "moves", "edits", "clusters"}


@dataclass(frozen=True)
class PageEdits:
    """Edits to one clustering of a run.

    Attributes
    ----------
    run
        The run they belong to; see `RunResults.id`.
    labels
        The labels that the page was made from; see `labels_id`.
    k
        The number of clusters shown on the page when the edits were made, without the shelf.
    names
        Names by cluster; an empty name removes the old one.
    moves
        (image, path, cluster) of every image that was moved. The cluster after the others is the
        shelf, if there is one; those after it are new.
    requests
        Edits in their order, after these moves and names; see `jule.corrections.requests`. A
        cluster is given by one of its images.
    """

    run: str
    labels: str
    k: int
    names: dict[int, str]
    moves: tuple[tuple[int, str, int], ...]
    requests: tuple[Request, ...] = ()


def parse_page_edits(value: Mapping[str, Any]) -> PageEdits:
    """Parse and check edits in the format of the page.

    Examples
    --------
    >>> edits = {"format": "jule-page-edits-3", "run": "5f3a", "labels": "0b", "k": 4}
    >>> parse_page_edits({**edits, "names": {"0": "cats"}}).names
    {0: 'cats'}
    """
    unknown = sorted(set(value) - KEYS)
    if unknown:
        raise ValueError(f"unknown entries in a file of edits: {', '.join(map(repr, unknown))}")
    run, labels, k = value.get("run"), value.get("labels"), value.get("k", 0)
    if not isinstance(run, str):
        raise ValueError("'run' must be the identifier of the run that the edits belong to")
    if not isinstance(labels, str):
        raise ValueError("'labels' must be the identifier of the labels that the edits start from")
    if not _is_whole(k) or k < 0:
        raise _wrong_k(k)
    names, moves = value.get("names", {}), value.get("moves", [])
    if not isinstance(names, dict):
        raise ValueError("'names' must be an object that maps cluster numbers to names")
    if not isinstance(moves, list):
        raise ValueError("'moves' must be a list")
    requests = value.get("edits", [])
    if not isinstance(requests, list) or not all(isinstance(one, dict) for one in requests):
        raise ValueError("'edits' must be a list of objects")
    return PageEdits(
        run,
        labels,
        k,
        _parse_names(names),
        tuple(_parse_move(move) for move in moves),
        tuple(requests),
    )


def _wrong_k(k: Any) -> ValueError:
    return ValueError(f"'k' must be the number of clusters that were shown, got {k!r}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _parse_names(names: Mapping[str, Any]) -> dict[int, str]:
    for cluster, name in names.items():
        if not cluster.isascii() or not cluster.isdigit():
            raise ValueError(f"'names' has {cluster!r} where a cluster number is expected")
        if not isinstance(name, str) or not _is_name(name):
            raise ValueError(
                f"the name of cluster {cluster} must be a string of at most {LONGEST_NAME} "
                "characters"
            )
    return {int(cluster): name.strip() for cluster, name in names.items()}


def _is_name(name: str) -> bool:
    try:
        checked_name(name)
    except ValueError:
        return False
    return True


def _parse_move(move: Any) -> tuple[int, str, int]:
    if not isinstance(move, dict) or set(move) != {"image", "path", "cluster"}:
        raise ValueError(f"a move must have image, path and cluster, got {move!r}")
    image, path, cluster = move["image"], move["path"], move["cluster"]
    if not _is_whole(image) or not isinstance(path, str) or not _is_whole(cluster):
        raise ValueError(
            f"a move needs whole numbers (image, cluster) and a string (path), got {move!r}"
        )
    return image, path, cluster


def page_as_edits(
    edits: PageEdits, results: RunResults, automatic: Result, where: object
) -> tuple[list[Edit], int]:
    """Return edits of a page as edits that name pictures, and the number of pictures that move.

    Parameters
    ----------
    edits
        The edits of the page.
    results
        The run as it is now.
    automatic
        Its result without any edits.
    where
        The run folder, for error messages.
    """
    if edits.run != results.id:
        raise ValueError(
            f"these edits do not belong to {where}: they were made on the page of another run"
        )
    base, names = _shown(edits, results, automatic, where)
    # Of more clusters than there are different images, some have only copies; they become empty.
    shelf = results.shelf if base is results.result else None
    shown = recut(base, edits.k, results.config, shelf)[results.first_copies]
    moved = _moved(edits, results, shown)
    editor = Editor(base_of(results, automatic), automatic.embedding, results.edits)
    is_older = base is not results.result
    # The same file may have been applied before: then its edits are there, in the same order. What
    # moves nothing leaves the labels, and so the page, as they were.
    before = list(editor.log.in_effect) if is_older else []
    said = {
        edit
        for edit in without_unlinked(editor.log.in_effect)
        if edit.is_link or edit.kind == "refuse"
    }
    found: list[Edit] = []

    def add(edit: Edit) -> None:
        if edit in before:
            del before[: before.index(edit) + 1]
        elif is_older or edit not in said:
            editor.add(edit)
            found.append(edit)

    def rename(inside: NDArray[np.int64], name: str) -> None:
        label = editor.label_of(inside)
        free = _free_name(name, {one for at, one in editor.state.names.items() if at != label})
        if free != editor.state.names.get(label, ""):
            add(editor.name(label, free))

    n_clusters = base.n_clusters if shelf is None else shelf
    if edits.k != n_clusters:
        add(editor.cut(edits.k))
    changed = np.flatnonzero(moved != shown)
    place = None if shelf is None else int(shown.max())  # of the shelf, after the clusters
    for cluster in np.unique(moved[changed]).tolist():
        joining = changed[moved[changed] == cluster]
        if cluster == place:
            add(editor.shelve(joining))
            continue
        stays = np.flatnonzero((moved == cluster) & (shown == cluster))
        others = editor.pictures(editor.typical_of(stays)) if len(stays) else ()
        add(Edit("move", editor.pictures(joining), others, run=results.id))
    for cluster, name in edits.names.items():
        inside = np.flatnonzero(moved == cluster)
        if len(inside) == 0 or name == names.get(cluster):
            continue
        rename(inside, name)
    seen = _editor_of_page(edits, editor, n_clusters) if is_older else editor
    for number, request in enumerate(edits.requests, 1):
        try:
            asked = by_pictures(seen, request)
            edit = make_edit(seen, asked)
            if edit.kind == "name":
                rename(np.flatnonzero(seen.state.labels == asked["cluster"]), edit.name)
            else:
                add(edit)
                if is_older:
                    seen.add(edit)
        except ValueError as error:
            raise ValueError(f"edit {number}: {error}") from None
    moving = {one for edit in found if edit.kind in ("move", "shelve") for one in edit.pictures}
    return found, len(moving)


def _editor_of_page(edits: PageEdits, editor: Editor, n_clusters: int) -> Editor:
    """Return the clustering that a page showed that was made before any edits."""
    seen = Editor(editor.base, editor.vectors)
    if edits.k != n_clusters:
        seen.add(seen.cut(edits.k))
    return seen


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that no other cluster has: no two may have the same."""
    free, number = name, 2
    while free and free in taken:
        free, number = f"{name[: LONGEST_NAME - 8]} ({number})", number + 1
    if free != name:
        warnings.warn(
            f"two clusters are called {name!r}, so one is called {free!r} now", stacklevel=4
        )
    return free


def _shown(
    edits: PageEdits, results: RunResults, automatic: Result, where: object
) -> tuple[Result, dict[int, str]]:
    """Return the result that the page was made from, and the names of the clusters it showed.

    The page may be older, made from the labels before they were edited.
    """
    if labels_id(results.result.labels) == edits.labels:
        base, names, shelf = results.result, results.cluster_names, results.shelf
    elif labels_id(automatic.labels) == edits.labels:
        base, names, shelf = automatic, {}, None
    else:
        raise ValueError(
            "these edits were made on a page that is older than the run's labels: make the page "
            f"again with jule report {where}"
        )
    if edits.k == 0 and shelf != 0:  # all images are on the shelf of a page without clusters
        raise _wrong_k(edits.k)
    return base, recut_names(base, names, edits.k, results.config, shelf)


def _moved(edits: PageEdits, results: RunResults, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return labels after the moves, with the clusters numbered as on the page."""
    moved, paths, copies = labels.copy(), results.names, results.first_copies
    n_before = n_after = int(labels.max()) + 1
    for image, path, cluster in edits.moves:
        if not 0 <= image < len(labels):
            raise ValueError(f"image {image} ({path}) is not one of the run's {len(labels)} images")
        if paths[image] != path:
            raise ValueError(f"image {image} of the run is {paths[image]}, not {path}")
        if not 0 <= cluster < n_before + len(edits.moves):  # a move creates at most one cluster
            raise _no_such_cluster(cluster, n_before)
        n_after = max(n_after, cluster + 1)
        moved[copies == copies[image]] = cluster
    # New clusters are numbered without gaps.
    wrong = set(range(n_before, n_after)) - set(np.unique(moved).tolist())
    wrong |= {cluster for cluster in edits.names if cluster >= n_after}
    if wrong:
        raise _no_such_cluster(min(wrong), n_before)
    return moved


def _no_such_cluster(cluster: int, n_before: int) -> ValueError:
    return ValueError(f"cluster {cluster} is neither one of the {n_before} clusters nor a new one")


def labels_id(labels: NDArray[np.integer]) -> str:
    """Return a checksum that identifies labels.

    Examples
    --------
    >>> labels_id(np.array([0, 1])) == labels_id(np.array([1, 0]))
    False
    """
    return f"{zlib.crc32(labels.astype('<i4').tobytes()):08x}"
