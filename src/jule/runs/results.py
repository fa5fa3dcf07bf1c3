"""Write the results of a finished run, and read them without loading the network."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jule.files import write_array, write_arrays, write_atomic, write_json
from jule.forward import MergeTree, Neighbors
from jule.forward.assign import centre_distances, label_confidence
from jule.joint.choose import Choice
from jule.joint.config import Config
from jule.joint.result import Result, recut, recut_names, with_labels
from jule.joint.state import Period
from jule.runs.folder import (
    DUPLICATES,
    EMBEDDING,
    FORMAT,
    HISTORY,
    LABELS,
    LABELS_AUTO,
    LABELS_RC,
    LABELS_SF,
    NEIGHBORS,
    NETWORK,
    RESULT,
    TREE,
    RunFolder,
)
from jule.runs.tables import (
    Columns,
    LabelTable,
    label_columns,
    read_first_copies,
    read_labels,
    write_labels,
)

if TYPE_CHECKING:
    from torch import nn

    from jule.backward import Embedder

Scores = Mapping[str, Mapping[str, float]]


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

    @property
    def edited(self) -> bool:
        """Whether the labels have been edited since they were found."""
        return self.result.chosen == "edited"

    def columns(self, k: int | None = None) -> Columns:
        """Return the table of labels, optionally for a different number of clusters."""
        result = self.result
        if k is None or k == result.n_clusters:
            labels, confidence, names = result.labels, result.confidence, self.cluster_names
        else:
            labels = recut(result, k, self.config)
            confidence = label_confidence(result.graph, labels)
            confidence[self.by_hand] = 1.0
            names = recut_names(result, self.cluster_names, k, self.config)
        distances = centre_distances(result.embedding, labels)
        return label_columns(self.names, labels, confidence, distances, names)


def new_results(
    config: Config,
    result: Result,
    history: tuple[Period, ...],
    *,
    names: Sequence[str] | None = None,
    seconds: float = 0.0,
    true_labels: NDArray | None = None,
    first_copies: NDArray[np.int64] | None = None,
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
        id=_identifier(result.tree, listed),
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
    )


def _identifier(tree: MergeTree, names: Sequence[str]) -> str:
    value = zlib.crc32(tree.merges.astype("<i8").tobytes())
    for name in names:
        value = zlib.crc32(name.encode("utf-8", "surrogateescape") + b"\0", value)
    return f"{value:08x}"


def write_results(run: RunFolder, results: RunResults, embedder: Embedder) -> None:
    """Write all files of a finished run, result.json last."""
    from jule.backward.embedder import describe, get_weights

    result = results.result
    write_json(run.path(HISTORY), [asdict(period) for period in results.history])
    write_labels(run.path(LABELS), results.columns(), results.by_hand)
    write_array(run.path(LABELS_SF), result.labels_sf)
    write_array(run.path(LABELS_RC), result.labels_rc)
    write_array(run.path(EMBEDDING), result.embedding)
    neighbors = result.neighbors
    write_arrays(run.path(NEIGHBORS), indices=neighbors.indices, distances=neighbors.distances)
    result.tree.save(run.path(TREE))
    metadata = {"format": FORMAT, "network": json.dumps(describe(embedder))}
    write_atomic(run.path(NETWORK), save(get_weights(embedder), metadata))
    write_json(
        run.path(RESULT),
        {
            "id": results.id,
            "n_samples": len(result.labels),
            "n_clusters": result.n_clusters,
            "sizes": np.bincount(result.labels).tolist(),
            "chosen": result.chosen,
            "sigma2": result.sigma2,
            "suggestions": result.suggestions,
            "choice": None if result.choice is None else asdict(result.choice),
            "seconds": results.seconds,
            "scores": results.scores,
            "agreement": results.agreement,
        },
    )


def check_finished(run: RunFolder) -> None:
    """Raise if a run is not finished."""
    run.about()
    if not run.is_finished:
        raise ValueError(f"{run.folder} is not finished: run jule resume {run.folder}")


def read_results(run: RunFolder) -> RunResults:
    """Read the results of a finished run."""
    config = run.config()
    check_finished(run)
    try:
        found = json.loads(run.path(RESULT).read_text(encoding="utf-8"))
        history = json.loads(run.path(HISTORY).read_text(encoding="utf-8"))
        table = read_labels(run.path(LABELS))
        automatic = read_labels(run.path(LABELS_AUTO)) if run.is_edited else table
        first_copies = read_first_copies(run.path(DUPLICATES), table.names)
        result = _read_result(run, found, automatic)
        if not len(table.labels) == len(result.embedding) == result.tree.n_samples:
            raise ValueError("its files have different lengths")
        if _identifier(result.tree, table.names) != found["id"]:
            raise ValueError(f"the rows of {LABELS} are not those of the run, in its order")
        if not np.array_equal(np.unique(table.labels), np.arange(table.labels.max() + 1)):
            raise ValueError(f"the clusters in {LABELS} are not numbered 0, 1, ... without a gap")
        if run.is_edited:
            result = with_labels(
                result, table.labels, config, by_hand=table.by_hand, first_copies=first_copies
            )
        return RunResults(
            id=str(found["id"]),
            config=config,
            names=table.names,
            result=result,
            history=tuple(Period(**period) for period in history),
            seconds=float(found["seconds"]),
            scores=found["scores"],
            agreement=float(found["agreement"]),
            cluster_names=table.cluster_names,
            by_hand=table.by_hand,
            first_copies=first_copies,
        )
    except (KeyError, TypeError, ValueError, EOFError, IndexError, BadZipFile, zlib.error) as error:
        raise ValueError(f"{run.folder} cannot be read: {error}") from error


def read_automatic(run: RunFolder) -> Result:
    """Read the result of a finished run without later edits."""
    check_finished(run)
    found = json.loads(run.path(RESULT).read_text(encoding="utf-8"))
    return _read_result(run, found, read_labels(run.path(LABELS_AUTO if run.is_edited else LABELS)))


def _read_result(run: RunFolder, found: Mapping[str, Any], table: LabelTable) -> Result:
    choice = found["choice"]
    with np.load(run.path(NEIGHBORS), allow_pickle=False) as archive:
        neighbors = Neighbors(archive["indices"], archive["distances"])
    return Result(
        labels=table.labels,
        labels_sf=np.load(run.path(LABELS_SF), allow_pickle=False),
        labels_rc=np.load(run.path(LABELS_RC), allow_pickle=False),
        chosen=str(found["chosen"]),
        confidence=table.confidence,
        tree=MergeTree.load(run.path(TREE)),
        embedding=np.load(run.path(EMBEDDING), allow_pickle=False),
        neighbors=neighbors,
        sigma2=float(found["sigma2"]),
        suggestions=_read_suggestions(found["suggestions"]),
        choice=None if choice is None else _read_choice(choice),
    )


def _read_choice(values: Mapping[str, Any]) -> Choice:
    candidates = _read_suggestions(values["candidates"])
    return Choice(int(values["k"]), float(values["sureness"]), candidates)


def _read_suggestions(values: Sequence[Any]) -> tuple[tuple[int, float], ...]:
    return tuple((int(k), float(score)) for k, score in values)


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
    from jule.backward.embedder import best_device, rebuild, set_weights

    check_finished(run)
    try:
        with safe_open(run.path(NETWORK), framework="np") as file:
            about = json.loads((file.metadata() or {})["network"])
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        embedder = rebuild(about, body)
        set_weights(embedder, weights)
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        raise ValueError(f"{run.path(NETWORK)} cannot be read: {error}") from error
    return embedder.to(best_device(device))
