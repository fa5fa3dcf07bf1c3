"""Write the results of a finished run, and read them without loading the network."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from jule.corrections.apply import SHELF
from jule.corrections.edits import EditLog
from jule.corrections.pictures import PictureIndex
from jule.files import array_bytes, arrays_bytes, json_bytes, parse_json
from jule.forward import MergeTree, Neighbors
from jule.forward.assign import centre_distances
from jule.forward.init import cluster_means
from jule.joint.choose import Choice, read_evidence, read_suggestions
from jule.joint.config import Config
from jule.joint.result import Result, recut, recut_numbers
from jule.joint.state import Period
from jule.runs.arrays import parse_array, parse_arrays
from jule.runs.corrected import (
    correct,
    most_clusters,
    numbers_of_branches,
    parse_log,
    warn_of_another_number,
)
from jule.runs.folder import FORMAT, RunFolder
from jule.runs.manifest import (
    DamagedError,
    Manifest,
    damaged,
    read_listed,
    read_listed_large,
    read_manifest,
)
from jule.runs.maps import map_files, read_positions
from jule.runs.names import (
    DIGESTS,
    DUPLICATES,
    EDITS,
    EMBEDDING,
    HISTORY,
    INPUT_NEIGHBORS,
    LABELS,
    LABELS_AUTO,
    LABELS_RC,
    LABELS_SF,
    NEIGHBORS,
    NETWORK,
    RESULT,
    TREE,
    member_tree,
)
from jule.runs.tables import (
    Columns,
    LabelTable,
    label_columns,
    labels_csv,
    parse_first_copies,
    parse_labels,
)
from jule.runs.update import replace_run

if TYPE_CHECKING:
    from torch import nn

    from jule.backward import Embedder
    from jule.joint.lowdim import Map

Scores = Mapping[str, Mapping[str, float]]
MOST_NUMBER = 10**7  # of a cluster: memory grows with the largest one


@dataclass(frozen=True, eq=False)
class RunResults:
    """The results of a finished run.

    Attributes
    ----------
    id
        Identifier of the run: a checksum of its merge tree and names.
    config
        The settings.
    names
        One path or name per sample.
    result
        Labels, merge tree, embedding and more.
    history
        The periods.
    seconds
        The wall time of the run, including the time before it was resumed.
    scores
        NMI and AC of ``"labels"``, ``"sf"`` and ``"rc"``; None without true classes.
    agreement
        Fraction of samples on which SF and RC agree, with clusters matched one to one.
    cluster_names
        The names of the clusters that have one.
    by_hand
        (n,) whether each sample was moved by hand.
    first_copies
        (n,) index of the original of each sample; its own index if it is not a copy.
    indices
        (n,) position of each sample in its source, which identifies it: names may repeat.
    positions
        (n, d) place of each sample on the map of the run; None if it has none.
    digests
        (n, 16) checksums of the content of each sample; None in older runs.
    edits
        The corrections by a person, which `result`, `cluster_names` and `by_hand` contain.
    shelf
        The last cluster, if it has the pictures that fit nowhere; None if there are none.
    numbers
        The number of every cluster as people see it, on the page and in labels.csv: it stays as
        long as the cluster exists, so there may be gaps. The shelf has -1.
    next_number
        The number of the next new cluster.
    found_numbers
        The numbers of the clusters as they were found; empty for 0, 1, ...
    earlier
        Identifiers of the run before pictures were added to it.
    apart
        Pairs of samples whose clusters a person keeps apart.
    """

    id: str
    config: Config
    names: list[str] = field(repr=False)
    result: Result = field(repr=False)
    history: tuple[Period, ...] = field(repr=False)
    seconds: float
    scores: Scores | None
    agreement: float
    cluster_names: dict[int, str]
    by_hand: NDArray[np.bool_] = field(repr=False)
    first_copies: NDArray[np.int64] = field(repr=False)
    indices: NDArray[np.int64] = field(repr=False)
    positions: NDArray[np.float32] | None = field(default=None, repr=False)
    digests: NDArray[np.uint8] | None = field(default=None, repr=False)
    edits: EditLog = field(default_factory=EditLog, repr=False)
    shelf: int | None = None
    numbers: tuple[int, ...] = field(default=(), repr=False)
    next_number: int = 0
    found_numbers: tuple[int, ...] = field(default=(), repr=False)
    earlier: tuple[str, ...] = ()
    apart: tuple[tuple[int, int], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.numbers:
            numbers = self.found_numbers or tuple(range(self.result.n_clusters))
            object.__setattr__(self, "numbers", numbers)
            object.__setattr__(self, "next_number", max(numbers) + 1)

    @property
    def edited(self) -> bool:
        """Whether the labels have been edited since they were found."""
        return self.edits.done > 0 or self.result.chosen == "edited"

    @property
    def n_clusters(self) -> int:
        """The number of clusters, without the shelf."""
        return self.result.n_clusters if self.shelf is None else self.shelf

    @property
    def labels(self) -> NDArray[np.int32]:
        """(n,) the number of the cluster of every sample; see `numbers`."""
        return np.array(self.numbers, np.int32)[self.result.labels]

    @cached_property
    def centres(self) -> NDArray[np.floating]:
        """(k, d) the mean vector of every cluster."""
        return cluster_means(self.result.embedding, self.result.labels)

    @cached_property
    def distances(self) -> NDArray[np.float64]:
        """(n,) squared distance of every sample from the centre of its cluster."""
        return centre_distances(self.result.embedding, self.result.labels, self.centres)

    @cached_property
    def pictures(self) -> PictureIndex:
        """The pictures of the run, as edits name them."""
        return PictureIndex(self.names, self.digests)

    def recut(self, k: int | None = None) -> tuple[NDArray[np.int32], dict[int, str]]:
        """Return labels and names by number, optionally for a different number of clusters.

        A cluster keeps its number as on the page: where clusters join, that of the larger one;
        where one splits, that of the larger part. The shelf, which is not one of them, has -1.
        """
        known = {self.numbers[place]: name for place, name in self.cluster_names.items()}
        if k is None or k == self.n_clusters > 0:
            return self.labels, known
        k = self.possible(k)
        if self.n_clusters == 0:
            return self.labels, known
        cut = recut(self.result, k, self.config, self.shelf)
        branches = recut_numbers(self.result, k, self.config, self.shelf)
        numbers = numbers_of_branches(branches, self.numbers, self.next_number)
        names = {number: known[number] for number in numbers.tolist() if number in known}
        return numbers[cut], names

    def possible(self, k: int) -> int:
        """Return k, or the largest number of clusters if that is smaller, with a warning.

        Raises
        ------
        ValueError
            If no tree of as many samples has a cut into k clusters.
        """
        self.result.tree.check_cut(k)
        most = k
        if self.shelf is not None or self.edits.done:
            most = min(k, most_clusters(self.result, self.shelf))
            shelved = self.labels == SHELF
            warn_of_another_number(most, k, self.first_copies, shelved)
        return most

    def columns(self, k: int | None = None) -> Columns:
        """Return the table of labels, optionally for a different number of clusters."""
        labels, names = self.recut(k)
        confidence, distances = self.result.confidence, self.distances
        if k is not None and k != self.n_clusters:
            places = np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int32)
            confidence = self.result.confidence_in(places, self.by_hand)
            distances = centre_distances(self.result.embedding, places)
        return label_columns(self.names, labels, confidence, distances, names, self.indices)


def new_results(
    config: Config,
    result: Result,
    history: tuple[Period, ...],
    *,
    names: Sequence[str] | None = None,
    seconds: float = 0.0,
    true_labels: NDArray | None = None,
    first_copies: NDArray[np.int64] | None = None,
    indices: NDArray[np.int64] | None = None,
    learned_map: Map | None = None,
) -> RunResults:
    """Return the results of a run that has just ended; `true_labels` are only used to score it."""
    from jule.evaluation import accuracy, nmi  # loads scipy, which reading results does not need

    n = len(result.labels)
    scores = None
    if true_labels is not None:
        found = {"labels": result.labels, "sf": result.labels_sf, "rc": result.labels_rc}
        scores = {
            name: {"nmi": nmi(true_labels, which), "ac": accuracy(true_labels, which)}
            for name, which in found.items()
        }
    listed = [str(number) for number in range(n)] if names is None else list(names)
    return RunResults(
        id=identify(result.tree, listed),
        config=config,
        names=listed,
        result=result,
        history=history,
        seconds=seconds,
        scores=scores,
        agreement=float(accuracy(result.labels_sf, result.labels_rc)),
        cluster_names={},
        by_hand=np.zeros(n, bool),
        first_copies=np.arange(n) if first_copies is None else first_copies,
        indices=np.arange(n) if indices is None else indices,
        positions=None if learned_map is None else learned_map.positions,
    )


def identify(tree: MergeTree, names: Sequence[str]) -> str:
    """Return the identifier of a run: a checksum of its merge tree and names.

    Examples
    --------
    >>> identify(MergeTree(2, np.array([[0, 1]]), np.array([0.5])), ["a", "b"])
    '40214ea1'
    """
    listed = "\0".join([*names, ""]).encode("utf-8", "surrogatepass")
    return f"{zlib.crc32(listed, zlib.crc32(tree.merges.astype('<i8').tobytes())):08x}"


def write_results(
    run: RunFolder, results: RunResults, embedder: Embedder, learned_map: Map | None = None
) -> None:
    """Write all files of a finished run at once; a run that replaces another takes its place."""
    run.update(result_files(results, embedder, learned_map))
    if run.folder != run.home:
        replace_run(run.home)


def result_files(
    results: RunResults, embedder: Embedder, learned_map: Map | None = None
) -> dict[str, bytes]:
    """Return the files of a finished run by name, without those of its data."""
    from jule.backward.description import describe
    from jule.backward.embedder import get_weights

    result = results.result
    # A single entry, because safetensors writes several in random order.
    about = {"format": FORMAT, "network": describe(embedder)}
    metadata = {"jule": json.dumps(about, sort_keys=True)}
    numbers = {
        "id": results.id,
        "n_samples": len(result.labels),
        "n_clusters": result.n_clusters,
        "sizes": np.bincount(result.labels).tolist(),
        "chosen": result.chosen,
        "sigma2": result.sigma2,
        "suggestions": result.suggestions,
        "choice": None if result.choice is None else asdict(result.choice),
        "evidence": result.evidence,
        "input_sigma2": result.input_sigma2,
        "seconds": results.seconds,
        "scores": results.scores,
        "agreement": results.agreement,
        **({"earlier": list(results.earlier)} if results.earlier else {}),
        **({"numbers": list(results.found_numbers)} if results.found_numbers else {}),
    }
    files = {NEIGHBORS: result.neighbors}
    if result.input_neighbors is not None:
        files[INPUT_NEIGHBORS] = result.input_neighbors
    return {
        **{
            name: arrays_bytes(indices=found.indices, distances=found.distances)
            for name, found in files.items()
        },
        HISTORY: json_bytes([asdict(period) for period in results.history]),
        LABELS: labels_csv(results.columns(), results.by_hand),
        LABELS_SF: array_bytes(result.labels_sf),
        LABELS_RC: array_bytes(result.labels_rc),
        EMBEDDING: array_bytes(result.embedding),
        TREE: result.tree.to_bytes(),
        **{member_tree(number): tree.to_bytes() for number, tree in enumerate(result.member_trees)},
        NETWORK: save(get_weights(embedder), metadata),
        RESULT: json_bytes(numbers),
        **({} if learned_map is None else map_files(learned_map, results.names, results.indices)),
    }


def check_finished(run: RunFolder) -> None:
    """Raise if a run is not finished."""
    run.manifest()


def read_results(run: RunFolder) -> RunResults:
    """Read the results of a finished run."""
    while True:
        before = _manifest_now(run)
        try:
            return _read_results(run, run.manifest())
        except DamagedError:
            if _manifest_now(run) == before:
                raise
            # Another process has changed the run since: read it again.


def _manifest_now(run: RunFolder) -> Manifest | None:
    try:
        return read_manifest(run.folder)
    except DamagedError:
        return None


def _read_results(run: RunFolder, manifest: Manifest) -> RunResults:
    log = read_log(run, manifest)
    results = _read_found(run, manifest)
    return correct(results, log) if log.done else replace(results, edits=log)


def read_log(run: RunFolder, manifest: Manifest) -> EditLog:
    """Read the corrections of a finished run; a run without any has an empty list."""
    if EDITS not in manifest:
        if LABELS_AUTO in manifest:
            raise ValueError(
                f"{run.folder} was edited by an earlier version of jule: run jule cluster again"
            )
        return EditLog()
    content = read_listed(run.folder, EDITS, manifest)
    try:
        return parse_log(content)
    except ValueError as error:
        raise damaged(run.path(EDITS), error) from error


def read_found(run: RunFolder) -> RunResults:
    """Read the results of a finished run as they were found, without later edits."""
    return _read_found(run, run.manifest())


def _read_found(run: RunFolder, manifest: Manifest) -> RunResults:
    table = _read_labels(run, LABELS_AUTO if LABELS_AUTO in manifest else LABELS, manifest)
    first_copies = np.arange(len(table.labels))
    if DUPLICATES in manifest:
        content = read_listed(run.folder, DUPLICATES, manifest)
        first_copies = parse_first_copies(content, table.indices, str(run.path(DUPLICATES)))
    found = _read_numbers(run, manifest)
    table = replace(table, labels=_places(run, table.labels, found["numbers"]))
    result = _read_result(run, found, table, manifest)
    if len(table.labels) != result.tree.n_samples:
        raise damaged(run.path(LABELS), "it has a different number of samples than other files")
    if identify(result.tree, table.names) != found["id"]:
        raise damaged(run.path(LABELS), "its rows are not those of the run, in its order")
    digests = None  # older runs have no such file
    if DIGESTS in manifest:
        content = read_listed(run.folder, DIGESTS, manifest)
        shape = (len(table.labels), 16)
        digests = parse_array(content, run.path(DIGESTS), shape=shape, kind="u")
    return RunResults(
        id=found["id"],
        config=run.config(),
        names=table.names,
        result=result,
        history=_read_history(run, manifest),
        seconds=found["seconds"],
        scores=found["scores"],
        agreement=found["agreement"],
        cluster_names={},
        by_hand=np.zeros(len(table.labels), bool),
        first_copies=first_copies,
        indices=table.indices,
        positions=read_positions(run, manifest, len(table.labels)),
        digests=digests,
        found_numbers=found["numbers"],
        earlier=found["earlier"],
    )


def _places(
    run: RunFolder, labels: NDArray[np.int32], numbers: tuple[int, ...]
) -> NDArray[np.int32]:
    """Return the place of every sample's cluster among the numbers of the clusters."""
    found, _ = np.unique(labels, return_counts=True)  # without the counts, it loads numpy.ma
    known = np.array(numbers or range(len(found)), np.int32)
    if not np.array_equal(found, known):
        what = "those in result.json" if numbers else "0, 1, ... without a gap"
        raise damaged(run.path(LABELS), f"its clusters are not numbered {what}")
    return np.searchsorted(known, labels).astype(np.int32)


def _read_labels(run: RunFolder, name: str, manifest: Manifest) -> LabelTable:
    return parse_labels(read_listed(run.folder, name, manifest), str(run.path(name)))


def _read_history(run: RunFolder, manifest: Manifest) -> tuple[Period, ...]:
    path = run.path(HISTORY)
    content = read_listed(run.folder, HISTORY, manifest)
    try:
        return tuple(Period.from_json(period) for period in parse_json(content))
    except (ValueError, TypeError) as error:
        raise damaged(path, error) from error


def _read_numbers(run: RunFolder, manifest: Manifest) -> dict[str, Any]:
    """Read result.json, with every entry checked."""
    content = read_listed(run.folder, RESULT, manifest)
    try:
        found = parse_json(content)
        choice = found["choice"]
        return {
            "id": str(found["id"]),
            "chosen": _choice_of(found["chosen"]),
            "sigma2": _number(found["sigma2"]),
            "suggestions": read_suggestions(found["suggestions"]),
            "choice": None if choice is None else Choice.from_json(choice),
            "evidence": read_evidence(found.get("evidence", [])),  # not in runs of version 0.1
            "input_sigma2": _number(found.get("input_sigma2", 0.0)),
            "seconds": _number(found["seconds"]),
            "agreement": _number(found["agreement"]),
            "scores": None if found["scores"] is None else _scores(found["scores"]),
            "earlier": tuple(str(one) for one in found.get("earlier", ())),
            "numbers": _numbers(found.get("numbers", [])),
        }
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise damaged(run.path(RESULT), error) from error


def _choice_of(value: Any) -> str:
    if value not in ("sf", "rc", "linkage"):
        raise ValueError(f"{str(value)[:60]!r} is not the origin of labels")
    return str(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not np.isfinite(number := float(value)) or number < 0:
        raise ValueError(f"{value!r} is not a number from 0 up")
    return number


def _numbers(values: Any) -> tuple[int, ...]:
    whole = isinstance(values, list) and all(type(one) is int for one in values)
    if not whole or any(not 0 <= one <= MOST_NUMBER for one in values):
        raise ValueError(f"the numbers of its clusters are not between 0 and {MOST_NUMBER}")
    return tuple(values)


def _scores(values: Mapping[str, Mapping[str, Any]]) -> Scores:
    return {
        which: {name: _number(values[which][name]) for name in ("nmi", "ac")}
        for which in ("labels", "sf", "rc")
    }


def _read_result(
    run: RunFolder, found: Mapping[str, Any], table: LabelTable, manifest: Manifest
) -> Result:
    n = len(table.labels)

    def content(name: str) -> bytes:
        return read_listed(run.folder, name, manifest)

    def labels(name: str) -> NDArray[np.int32]:
        array = parse_array(content(name), run.path(name), shape=(n,), kind="iu")
        if array.min() < 0 or array.max() >= n:
            raise damaged(run.path(name), f"its clusters are not between 0 and {n - 1}")
        return array.astype(np.int32, copy=False)

    def tree(name: str) -> MergeTree:
        try:
            return MergeTree.from_bytes(content(name), n)
        except DamagedError:
            raise
        except ValueError as error:
            raise damaged(run.path(name), error) from error

    n_members = run.config().ensemble
    embedding = read_listed_large(run.folder, EMBEDDING, manifest)
    neighbors = _neighbors(content(NEIGHBORS), run.path(NEIGHBORS), n)
    before = None  # older runs have no such file
    if INPUT_NEIGHBORS in manifest:
        before = _neighbors(content(INPUT_NEIGHBORS), run.path(INPUT_NEIGHBORS), n)
        if before.indices.shape != neighbors.indices.shape:
            raise damaged(run.path(INPUT_NEIGHBORS), f"its shape is {before.indices.shape}")
    return Result(
        labels=table.labels,
        labels_sf=labels(LABELS_SF),
        labels_rc=labels(LABELS_RC),
        chosen=found["chosen"],
        confidence=table.confidence,
        tree=tree(TREE),
        embedding=parse_array(embedding, run.path(EMBEDDING), shape=(n, None), kind="f"),
        neighbors=neighbors,
        sigma2=found["sigma2"],
        suggestions=found["suggestions"],
        choice=found["choice"],
        evidence=found["evidence"],
        input_neighbors=before,
        input_sigma2=found["input_sigma2"],
        member_trees=tuple(
            tree(member_tree(number)) for number in range(n_members if n_members > 1 else 0)
        ),
    )


def _neighbors(content: bytes, path: Path, n: int) -> Neighbors:
    arrays = parse_arrays(content, path, {"indices": "iu", "distances": "f"})
    indices, distances = arrays["indices"], arrays["distances"]
    is_table = indices.ndim == 2 and len(indices) == n and indices.shape[1] >= min(1, n - 1)
    if not is_table or distances.shape != indices.shape:
        raise damaged(path, f"its arrays have the shapes {indices.shape} and {distances.shape}")
    if indices.size and (indices.min() < 0 or indices.max() >= n or distances.min() < 0):
        raise damaged(path, "a neighbour is not a sample of the run, or a distance is negative")
    try:
        return Neighbors(indices, distances)
    except ValueError as error:
        raise damaged(path, error) from error


def read_network(run: RunFolder, body: nn.Module | None = None, device: str = "auto") -> Embedder:
    """Load the trained network of a run.

    Parameters
    ----------
    run
        A finished run.
    body
        An instance of the user's own module, if the run was made with one.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """
    from jule.backward.description import rebuild
    from jule.backward.embedder import best_device, set_weights

    content = run.read(NETWORK)
    try:
        description, weights = _network_description(content), load(content)
    except Exception as error:  # safetensors raises anything for damaged files
        raise damaged(run.path(NETWORK), error) from error
    try:
        embedder = rebuild(description, body)
        set_weights(embedder, weights)
    except ValueError as error:
        raise ValueError(f"{run.path(NETWORK)} cannot be used: {error}") from error
    return embedder.to(best_device(device))


def _network_description(content: bytes) -> Any:
    """Return the description of a network in the header of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    header = parse_json(content[8 : 8 + length])
    return parse_json(header["__metadata__"]["jule"].encode())["network"]
