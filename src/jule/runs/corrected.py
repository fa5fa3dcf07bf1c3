"""The results of a run with the corrections in its edits.json."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.corrections.apply import SHELF, SHELF_NAME, Base, Corrected
from jule.corrections.editor import Editor
from jule.corrections.edits import EditLog
from jule.corrections.joins import joined_first
from jule.files import parse_json
from jule.forward.assign import centre_distances
from jule.forward.constraints import Constraints
from jule.forward.tree import MergeTree
from jule.joint.config import Config
from jule.joint.result import Result, recut, recut_numbers, with_labels
from jule.runs.tables import Columns, label_columns

if TYPE_CHECKING:
    from jule.runs.results import RunResults


def log_bytes(log: EditLog) -> bytes:
    """Return the content of edits.json: one line per edit, which is written and compared fast.

    Examples
    --------
    >>> parse_log(log_bytes(EditLog(revision=3))).revision
    3
    """
    edits = ",\n".join(f"  {edit.line}" for edit in log.edits)
    head = json.dumps(replace(log, edits=(), done=0).to_json() | {"done": log.done}, indent=1)
    head = head.removesuffix(',\n "edits": []\n}')
    return f'{head},\n "edits": [\n{edits}\n ]\n}}\n'.encode()


def parse_log(content: bytes) -> EditLog:
    """Parse the content of edits.json; raise ValueError if it is damaged."""
    value: Mapping[str, Any] = parse_json(content)
    return EditLog.from_json(value)


def base_of(results: RunResults, automatic: Result) -> Base:
    """Return what the edits of a run start from.

    Parameters
    ----------
    results
        The run.
    automatic
        Its result without edits.
    """
    config = results.config

    def other_number(now: Corrected, k: int) -> tuple[NDArray[np.int32], dict[int, str]]:
        return _recut(automatic, config, now, k)

    return Base(
        automatic.labels,
        automatic.tree,
        results.pictures,
        results.first_copies,
        results.id,
        frozenset(results.earlier),
        other_number,
        results.found_numbers,
    )


def _recut(
    automatic: Result, config: Config, now: Corrected, k: int
) -> tuple[NDArray[np.int32], dict[int, str]]:
    """Cut the tree of corrected labels at another number of clusters; numbers stay if they can."""
    if len(now.numbers) == 0:  # everything is on the shelf
        return now.labels, {}
    shelf = len(now.numbers) if now.has_shelf else None
    edited = edited_result(automatic, config, now)
    k = min(max(k, edited.tree.fewest - now.has_shelf), most_clusters(edited, shelf))
    own = (*now.numbers.tolist(), *([SHELF] if now.has_shelf else []))
    branches = recut_numbers(edited, k, config, shelf)
    numbers = numbers_of_branches(branches, own, now.next_label)
    cut = numbers[recut(edited, k, config, shelf)[now.units]]
    return cut, {label: name for label, name in now.names.items() if label in numbers}


def most_clusters(result: Result, shelf: int | None = None) -> int:
    """Return the most clusters of a cut that separates nothing of what is kept together.

    Parameters
    ----------
    result
        A result with corrected labels.
    shelf
        The last of its clusters, if it is the shelf, which does not count.
    """
    tree = result.tree
    if shelf is None:
        return tree.n_different
    return len(np.unique(tree.cut(tree.n_different)[result.labels != shelf]))


def warn_of_another_number(
    k: int, asked: int, first_copies: NDArray[np.integer], shelved: NDArray[np.bool_]
) -> None:
    """Warn if there are not as many clusters as were asked for, and say why.

    Parameters
    ----------
    k, asked
        How many there are, and how many were asked for, from 1 up.
    first_copies
        (n,) index of the original of each sample.
    shelved
        (n,) whether each sample is on the shelf.

    Examples
    --------
    >>> warn_of_another_number(3, 3, np.arange(9), np.zeros(9, bool))
    """
    if k == 0:
        warnings.warn(
            f"no clusters instead of {asked}: all images are {SHELF_NAME}",
            UserWarning,
            stacklevel=3,
        )
    elif k != asked:
        reason = "corrections keep this many apart"
        if k < asked:
            reason = "more would separate what corrections keep together"
            if k == len(np.unique(first_copies[~shelved])):
                unsure = f" that are not {SHELF_NAME}" if shelved.any() else ""
                reason = f"there are only {k} different samples{unsure}"
        clusters = "cluster" if k == 1 else "clusters"
        warnings.warn(f"{k} {clusters} instead of {asked}: {reason}", UserWarning, stacklevel=3)


def numbers_of_branches(
    branches: NDArray[np.int32], own: Sequence[int], next_number: int
) -> NDArray[np.int32]:
    """Return the numbers of clusters as people see them, from those of `recut_numbers`.

    Parameters
    ----------
    branches
        What `recut_numbers` returned.
    own
        The numbers of the clusters that were cut anew.
    next_number
        The first number that was never used.

    Examples
    --------
    >>> numbers_of_branches(np.array([1, 2, 0], np.int32), [4, 7], 9).tolist()
    [7, 9, 4]
    """
    known = np.array(own, np.int32)
    new = next_number + branches - len(known)
    own_ones = known[branches.clip(max=len(known) - 1)]
    return np.where(branches < len(known), own_ones, new).astype(np.int32)


def edited_result(
    automatic: Result, config: Config, state: Corrected, by_hand: NDArray[np.bool_] | None = None
) -> Result:
    """Return the result of a run with corrected labels, whose tree keeps what a person has said.

    No cut of the tree separates what was put together or joins what was separated by hand.
    """
    labels, _ = state.numbered()
    together = state.together
    edited = with_labels(
        automatic,
        labels,
        config,
        by_hand=by_hand,
        first_copies=together,
        constraints=constraints_of(state),
    )
    if together is state.units:
        return edited
    return _with_tree(edited, joined_first(edited.tree, automatic.tree, together))


def _with_tree(result: Result, tree: MergeTree) -> Result:
    """Return a result with another tree."""
    found = replace(result, tree=tree)
    vars(found).update(graph=result.graph, graphs=result.graphs)  # they do not depend on the tree
    return found


def constraints_of(state: Corrected) -> Constraints | None:
    """Return what is kept together and apart in corrected labels; None if nothing is kept apart."""
    if not state.kept_apart:
        return None
    return Constraints(state.together, np.array(state.kept_apart, np.int64))


def without_shelf(now: Corrected, automatic: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return labels in which pictures on the shelf are with most of their automatic cluster."""
    if len(now.numbers) == 0:
        return automatic[now.units]
    labels, shelved = now.labels.copy(), now.labels == SHELF
    for cluster in np.unique(automatic[shelved]).tolist():
        inside = labels[(automatic == cluster) & ~shelved]
        label = np.bincount(inside).argmax() if len(inside) else now.numbers[0]
        labels[shelved & (automatic == cluster)] = label
    return labels[now.units]  # pictures with a must-link may come from several clusters


def correct(results: RunResults, log: EditLog) -> RunResults:
    """Return the results of a run with edits, from those without.

    Edits that are not possible are left out; on the run that they were made on, all are.
    """
    editor = Editor(base_of(results, results.result), results.result.embedding, log)
    return with_state(results, editor.state, log)


def with_state(results: RunResults, state: Corrected, log: EditLog) -> RunResults:
    """Return the results of a run with corrected labels, from those without edits."""
    labels, names = state.numbered()
    result = results.result
    # The tree of the run knows nothing of what a person keeps together or apart.
    says_more = state.kept_apart or (state.together != results.first_copies).any()
    if _differs(result, labels, state):
        result = edited_result(result, results.config, state, state.by_hand)
    elif says_more:  # the clusters are as they were found, and so is the confidence in them
        result = _with_tree(result, edited_result(result, results.config, state).tree)
    edited = replace(
        results,
        result=result,
        cluster_names=names,
        by_hand=state.by_hand,
        edits=log,
        shelf=len(state.numbers) if state.has_shelf else None,
        numbers=(*state.numbers.tolist(), *([SHELF] if state.has_shelf else [])),
        next_number=state.next_label,
        apart=state.kept_apart,
    )
    vars(edited).update(pictures=results.pictures)  # they do not depend on labels
    return edited


def corrected_columns(results: RunResults, state: Corrected) -> Columns:
    """Return the table of corrected labels, without arranging a tree for them.

    Parameters
    ----------
    results
        The run as it was found.
    state
        Its labels with edits.
    """
    labels, _ = state.numbered()
    result = results.result
    confidence = result.confidence
    if _differs(result, labels, state):
        confidence = result.confidence_in(labels, state.by_hand)
    distances = centre_distances(result.embedding, labels)
    names = {**state.names, SHELF: SHELF_NAME}
    return label_columns(results.names, state.labels, confidence, distances, names, results.indices)


def _differs(result: Result, labels: NDArray[np.int32], state: Corrected) -> bool:
    return bool(state.by_hand.any()) or not np.array_equal(labels, result.labels)
