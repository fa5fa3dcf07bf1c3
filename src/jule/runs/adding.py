"""Add pictures to a finished run: each is placed in a cluster, and nothing else changes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.corrections.apply import SHELF, Corrected
from jule.corrections.editor import Editor
from jule.corrections.edits import Edit, EditLog
from jule.corrections.joins import Moved
from jule.files import array_bytes, arrays_bytes, checked_json
from jule.forward import Neighbors
from jule.forward.assign import count_votes, neighbor_votes
from jule.forward.extend import extend_neighbors, extend_tree
from jule.images import Samples, Skipped
from jule.images.sources.arrays import row_blocks
from jule.joint.clustering import count_neighbors
from jule.joint.result import Result, with_labels
from jule.locks import hold
from jule.progress import Progress
from jule.runs.corrected import base_of, constraints_of, correct, log_bytes, without_shelf
from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder
from jule.runs.names import (
    CONFIG,
    DIGESTS,
    DUPLICATES,
    EDITS,
    IMAGES,
    LABELS,
    LABELS_AUTO,
    SKIPPED,
    SNAPSHOTS,
)
from jule.runs.reading import read_run_array
from jule.runs.results import RunResults, identify, read_network, read_results, result_files
from jule.runs.tables import duplicates_csv, labels_csv, parse_skipped, skipped_csv
from jule.runs.trust import is_signed, sign

if TYPE_CHECKING:
    from jule.joint.lowdim import Map

_Grown = tuple[RunResults, EditLog]


@dataclass(frozen=True)
class Added:
    """What `add_pictures` did.

    Attributes
    ----------
    results
        The run with the new pictures.
    n_new
        How many were added.
    n_known
        How many were in the run already, by their content.
    counts
        How many were added to each cluster.
    """

    results: RunResults
    n_new: int
    n_known: int
    counts: tuple[int, ...]


def only_new(run_digests: NDArray[np.uint8] | None, data: Samples) -> NDArray[np.int64]:
    """Return the places of the pictures that a run does not have yet, by their content.

    Examples
    --------
    >>> from jule.images import read_images
    >>> data = read_images(np.eye(3))
    >>> only_new(data.digests[:2], data).tolist()
    [2]
    """
    if run_digests is None:
        return np.arange(len(data))
    known = {digest.tobytes() for digest in run_digests}
    return np.array(
        [place for place, digest in enumerate(data.digests) if digest.tobytes() not in known],
        np.int64,
    )


def add_pictures(
    run: RunFolder,
    data: Samples,
    new: NDArray[np.int64],
    vectors: NDArray,
    *,
    source: str,
    device: str = "auto",
    progress: Progress | None = None,
) -> Added:
    """Place new pictures in the clusters of a finished run, without training.

    Each new picture goes to the cluster that its neighbours vote for, as in `predict`, with all
    corrections in effect; unsure pictures do not vote. In the tree it joins the nearest of
    these neighbours. Clusters, their numbers and their names stay as they are, and so do the
    pictures that were in the run before. How the new pictures look before learning is not compared
    with the others, so their confidence follows from the learned representation alone.

    Parameters
    ----------
    run
        A finished run.
    data
        Pictures, read at the size of the run (`jule.runs.predict.read_for_run`).
    new
        Those of them that are added; see `only_new`.
    vectors
        What the network sees of those: the pictures, or the vectors of the run's encoder.
    source
        Where they are, to read them again.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    progress
        Called with the name of a stage and the fraction of it that is done.
    """
    from jule.backward import embed
    from jule.backward.mapper import place
    from jule.runs.maps import read_map

    with hold(run.home):
        session = EditSession(run)
        found = session.found
        if len(new) == 0:
            return Added(session.results(), 0, len(data), ())
        embedder = read_network(run, device=device)
        show = None if progress is None else lambda share: progress("embedding", share)
        embedding = embed(embedder, vectors, progress=show)
        grown, log = grow(found, session.editor, data, new, embedding)
        learned_map = read_map(run, found, device)
        if learned_map is not None:
            both = np.concatenate([learned_map.positions, place(learned_map.mapper, embedding)])
            learned_map = replace(learned_map, positions=both)
            grown = replace(grown, positions=both)
        _write(run, grown, log, data, new, source, embedder, learned_map)
        results = read_results(run)
        counts = np.bincount(results.result.labels[-len(new) :])
        return Added(results, len(new), len(data) - len(new), tuple(counts.tolist()))


def grow(
    found: RunResults,
    editor: Editor,
    data: Samples,
    new: NDArray[np.int64],
    embedding: NDArray[np.float32],
) -> _Grown:
    """Return results with new pictures, and edits that put each where its neighbours vote for it.

    Parameters
    ----------
    found
        The results as they were found.
    editor
        Their corrections.
    data, new
        Pictures, and the places of the new ones among them.
    embedding
        (m, d) representation of the new ones.
    """
    state = editor.state
    if len(state.numbers) == 0:
        raise ValueError(
            "all pictures are unsure, so new ones have no cluster to join: undo that first"
        )
    result = found.result
    n, m = len(result.labels), len(new)
    k = count_neighbors(n, found.config)
    may_vote = np.flatnonzero(state.labels >= 0)
    nearest, weights = neighbor_votes(
        embedding, result.embedding[may_vote], sigma2=result.sigma2, n_neighbors=k
    )
    nearest = may_vote[nearest]
    closed = np.searchsorted(state.numbers, state.labels.clip(min=state.numbers[0]))
    voted = count_votes(nearest, weights, closed).argmax(axis=1)
    first = _first_copies(data, new)
    voted = voted[first]  # exact copies go together
    agrees = closed[nearest] == voted[:, None]
    sure = np.minimum((weights * agrees * result.confidence[nearest]).sum(axis=1), 1.0)
    # A picture that a person moved says nothing of the automatic labels.
    odds = np.where(agrees, weights + 1.0, 0.0) + agrees * ~state.by_hand[nearest] * 2.0
    partners = nearest[np.arange(m), odds.argmax(axis=1)][first]
    copies = np.concatenate([found.first_copies, n + first])
    names = [*found.names, *(data.names[one] for one in new)]
    offset = int(found.indices.max()) + 1
    grown = Result(
        labels=np.concatenate([result.labels, result.labels[partners]]),
        labels_sf=np.concatenate([result.labels_sf, result.labels_sf[partners]]),
        labels_rc=np.concatenate([result.labels_rc, result.labels_rc[partners]]),
        chosen=result.chosen,
        confidence=np.concatenate([result.confidence, sure]),
        tree=extend_tree(result.tree, partners, first),
        embedding=np.concatenate([result.embedding, embedding]),
        neighbors=extend_neighbors(result.neighbors, result.embedding, embedding),
        sigma2=result.sigma2,
        suggestions=result.suggestions,
        choice=result.choice,
        evidence=result.evidence,
        input_sigma2=result.input_sigma2,
        member_trees=tuple(extend_tree(tree, partners, first) for tree in result.member_trees),
    )
    grown = replace(grown, input_neighbors=_inputs(result, grown.neighbors))
    more = replace(
        found,
        id=identify(grown.tree, names),
        earlier=(*found.earlier, found.id),
        names=names,
        result=grown,
        scores=None,
        by_hand=np.zeros(n + m, bool),
        first_copies=copies,
        indices=np.concatenate([found.indices, offset + data.indices[new]]),
        digests=None
        if found.digests is None
        else np.concatenate([found.digests, data.digests[new]]),
    )
    return _with_places(editor, more, state.numbers[voted].astype(np.int32))


def _first_copies(data: Samples, new: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place among the new pictures of the original of each."""
    place = np.full(len(data), -1)
    place[new] = np.arange(len(new))
    first = place[data.first_copies[new]]
    return np.where(first < 0, np.arange(len(new)), first)


def _inputs(before: Result, neighbors: Neighbors) -> Neighbors | None:
    """Return the neighbours before learning, with the learned ones for the new pictures."""
    old = before.input_neighbors
    if old is None:
        return None
    n = len(before.labels)
    # At a distance that gives edges the weight that they have in the learned graph.
    scale = before.input_sigma2 / before.sigma2 if before.sigma2 > 0 else 1.0
    return Neighbors(
        np.concatenate([old.indices, neighbors.indices[n:]]),
        np.concatenate([old.distances, neighbors.distances[n:] * scale]),
    )


def _write(
    run: RunFolder,
    grown: RunResults,
    log: EditLog,
    data: Samples,
    new: NDArray[np.int64],
    source: str,
    embedder: Any,
    learned_map: Map | None,
) -> None:
    """Write the grown run, all at once."""
    corrected = correct(grown, log) if log.done else grown
    about = run.about()
    files = result_files(grown, embedder, learned_map)
    automatic = files[LABELS]
    files[LABELS] = labels_csv(corrected.columns(), corrected.by_hand)
    manifest = run.manifest()
    if log.edits or EDITS in manifest:
        files[EDITS], files[LABELS_AUTO] = log_bytes(log), automatic
    files[DUPLICATES] = duplicates_csv(grown.names, grown.first_copies, grown.indices)
    if grown.digests is not None:
        files[DIGESTS] = array_bytes(grown.digests)
    if SKIPPED in manifest:
        places = {about["source"], *(one["source"] for one in about.get("more", []))}
        before = [Skipped(*one) for one in parse_skipped(run.read(SKIPPED), SKIPPED)]
        files[SKIPPED] = skipped_csv(_skipped_with(before, data, source in places))
    added = data.samples[new]
    if IMAGES in manifest:
        both = np.concatenate([read_run_array(run), added])
        files[IMAGES] = arrays_bytes(images=both)
    else:
        offset = int(grown.indices[-len(new)] - data.indices[new[0]])
        about["more"] = [
            *about.get("more", []),
            {"source": source, "count": len(new), "offset": offset},
        ]
    trusted = is_signed(run.about())
    about["data"] = _data_with(about["data"], added)
    about["signature"] = ""
    if trusted:  # what a stranger's run calls its source is not trusted after an update either
        about["signature"] = sign(
            about["source"], about["data"], about.get("features"), about.get("more", ())
        )
    files[CONFIG] = checked_json(about)
    # Their samples are not those of the run any more.
    stale = tuple(name for name in manifest if name.startswith(f"{SNAPSHOTS}/"))
    run.update(files, remove=stale)


def _skipped_with(before: list[Skipped], data: Samples, is_known: bool) -> list[Skipped]:
    """Return the files that were skipped, each once.

    What was said before of a place that is read again (`is_known`) may not be true any more.
    """
    now = {*data.names, *(one.name for one in data.skipped)} if is_known else set()
    return [*(one for one in before if one.name not in now), *data.skipped]


def _data_with(data: dict[str, Any], added: NDArray) -> dict[str, Any]:
    """Return the fingerprint of samples with more samples after them."""
    checksum = data["checksum"]
    for block in row_blocks(added):
        checksum = zlib.crc32(block.data, checksum)
    shape = [data["shape"][0] + len(added), *data["shape"][1:]]
    return {**data, "shape": shape, "checksum": checksum}


def _with_places(before: Editor, grown: RunResults, voted: NDArray[np.int32]) -> _Grown:
    """Return the run and its edits, with those that put new pictures where they belong."""
    log = before.log
    editor = Editor(base_of(grown, grown.result), grown.result.embedding, log)
    wanted = np.concatenate([before.state.labels, voted])
    wrong_now = (editor.state.labels != wanted) & (wanted >= 0)
    edits: list[Edit] = []
    for label in np.unique(wanted[wrong_now]).tolist():
        wrong = np.flatnonzero(wrong_now & (wanted == label))
        edits.append(Edit("place", editor.pictures(wrong), before.typical(label), run=grown.id))
    editor.load(log.add(*edits) if edits else log)
    if _has(editor.state, wanted, before.state):
        return grown, editor.log
    return _begin_again(before, grown, wanted)


def _has(state: Corrected, labels: NDArray[np.int32], before: Corrected) -> bool:
    """Return whether a run has the wanted labels, and the names that it had."""
    same = np.array_equal(state.labels, labels)
    return same and dict(state.names) == dict(before.names)


def _begin_again(before: Editor, grown: RunResults, wanted: NDArray[np.int32]) -> _Grown:
    """Return the run with the wanted clusters as its own, and edits that keep what was corrected.

    Another number of clusters, which a person has chosen, is a cut of the tree of all pictures; of
    more pictures, the same cut may be another one. Then the clusters as they are become those
    that edits start from. Names, links, and what was moved, merged or separated by hand, are said
    again.
    """
    state = before.state
    n_new = len(wanted) - len(state.labels)
    units = np.concatenate([state.units, grown.first_copies[-n_new:]])
    by_hand = np.concatenate([state.by_hand, np.zeros(n_new, bool)])
    now = replace(state, labels=wanted, by_hand=by_hand, units=units, joins=None, different=())
    labels = without_shelf(now, grown.result.labels)
    labels = np.searchsorted(now.numbers, labels).astype(np.int32)
    result = with_labels(
        grown.result,
        labels,
        grown.config,
        first_copies=units,
        constraints=constraints_of(now),
    )
    result = replace(result, chosen=grown.result.chosen)
    numbers = tuple(now.numbers.tolist())
    grown = replace(
        grown,
        result=result,
        id=identify(result.tree, grown.names),
        numbers=(),
        found_numbers=() if numbers == tuple(range(len(numbers))) else numbers,
    )
    editor = Editor(base_of(grown, result), result.embedding)
    shelved = wanted == SHELF
    if shelved.any():
        editor.add(editor.shelve(np.flatnonzero(shelved)))
    for move in () if state.joins is None else state.joins.moves:
        _move_again(editor, move, wanted)
    for label in numbers:
        moved = np.flatnonzero((wanted == label) & by_hand & ~editor.state.by_hand)
        if len(moved):
            editor.add(editor.move(moved, label))
    merged = [] if state.joins is None else state.joins.examples(~state.by_hand)
    said = [
        Edit("merge", editor.pictures(one), editor.pictures(other), run=grown.id)
        for one, other in merged
    ]
    for edit in (*state.links, *said):
        editor.add(edit)
    for one, other in state.different_pairs:
        editor.add(editor.refuse(int(state.labels[one]), int(state.labels[other])))
    for label, name in state.names.items():
        editor.add(editor.name(label, name))
    return grown, replace(editor.log, revision=before.log.revision + 1)


def _move_again(editor: Editor, moved: Moved, wanted: NDArray[np.int32]) -> None:
    """Say again that pictures were moved, with those that stand for the cluster in that edit."""
    homes = np.array(moved.homes, np.int64)
    samples = np.array(moved.samples, np.int64)
    for label in np.unique(wanted[samples]).tolist():
        here = homes[wanted[homes] == label]
        if label == SHELF or len(here) == 0:
            continue
        named = homes if 2 * len(here) > len(homes) else here  # a cut may have divided them
        inside = samples[wanted[samples] == label]
        edit = Edit("move", editor.pictures(inside), editor.pictures(named), run=editor.base.run)
        editor.add(edit)
