"""The state of a run between two periods, from which an interrupted run is resumed.

Each period is saved as one safetensors file: the weights of the network and the labels as tensors,
everything else as JSON in the header, with a checksum of all of it. The state of random generators
is not needed: every period seeds its own from the seed, the round and the period.
"""

from __future__ import annotations

import json
import re
import warnings
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from jule.files import parse_json, read_regular, write_atomic
from jule.forward import MergeTree
from jule.forward.constraints import Constraints
from jule.joint.clustering import Inputs, Representation
from jule.joint.config import Config
from jule.joint.values import finite_in, is_number, object_of, shortened, whole_in

FORMAT = "jule-state-2"
DEFAULTS = Config().to_json()
KEPT = 2  # the newest file, and one to fall back on
NAME = re.compile(r"state-(\d{4})\.safetensors")


@dataclass(frozen=True)
class Period:
    """One period of a run's history.

    Attributes
    ----------
    round, number
        The round and the period within it, both counted from 0.
    clusters_before, clusters_after
        The number of clusters before and after merging.
    steps, images
        The number of training batches, and the number of images in them.
    loss_first, loss_last
        The mean loss of the first and of the last tenth of the batches.
    affinity_first, affinity_last
        Affinity of the first and of the last merge (Eq. 12); None without merges.
    seconds
        The time of each stage: train, embed, neighbours, merge.
    nmi, ac
        The scores of the clusters after merging, where true classes were given.
    recall
        The share of the true neighbours that were found; 1 if they were searched exactly, and
        otherwise estimated on a thousand samples.
    member
        The network of an ensemble, counted from 0; their number, for the last period, which
        clusters the representations of all of them.
    """

    round: int
    number: int
    clusters_before: int
    clusters_after: int
    steps: int
    images: int
    loss_first: float | None
    loss_last: float | None
    affinity_first: float | None
    affinity_last: float | None
    seconds: dict[str, float]
    nmi: float | None = None
    ac: float | None = None
    recall: float = 1.0
    member: int = 0

    @classmethod
    def from_json(cls, value: Any) -> Period:
        """Build a period from a JSON object; raise ValueError if it is damaged.

        Examples
        --------
        >>> values = dict(round=0, number=0, clusters_before=9, clusters_after=3, steps=1, images=9)
        >>> Period.from_json({**values, "seconds": {"train": 1.0}}).clusters_after
        3
        """
        counts = ("round", "number", "clusters_before", "clusters_after", "steps", "images")
        scores = ("loss_first", "loss_last", "affinity_first", "affinity_last", "nmi", "ac")
        others = {"seconds", "member", "recall"}
        values = object_of(value, "a period", frozenset({*counts, *scores, *others}))
        seconds = object_of(values.get("seconds"), "seconds")
        # Losses and affinities may be infinite or NaN in a run that did not learn.
        for name in scores:
            if values.get(name) is not None and not is_number(values[name]):
                raise ValueError(f"{name} must be a number, got {shortened(values[name])}")
        checked: dict[str, Any] = {name: whole_in(values, name) for name in counts}
        checked["member"] = whole_in({"member": 0} | values, "member")  # 0 in older histories
        checked["recall"] = finite_in({"recall": 1.0} | values, "recall")
        checked |= {name: values.get(name) for name in scores}
        return cls(**checked, seconds={str(stage): finite_in(seconds, stage) for stage in seconds})


@dataclass(frozen=True, eq=False)
class State:
    """The state of a run between two periods.

    Attributes
    ----------
    member
        The network of an ensemble that is trained, counted from 0; their number, once all are
        trained and their representations are clustered side by side.
    round, number
        The round and the period that come next.
    eta
        The unrolling rate of this round.
    warp
        Whether training images are warped.
    labels
        (n,) int32: clusters 0, 1, ... without gaps.
    ended
        Whether the round has ended: K clusters are left.
    step
        The number of training batches so far.
    seconds
        The wall time so far, including the time before the run was resumed.
    network
        The weights of the network by name.
    history
        The periods so far.
    representation
        The learned representation; it is not saved, so it is None in a state read from a file.
    inputs
        The samples before learning, as they were clustered first; not saved either.
    member_trees
        The merge trees of the networks of an ensemble, after its last period; not saved either.
    constraints
        What all clusterings must obey; given again when a run is resumed.
    """

    member: int = 0
    round: int = 0
    number: int = 0
    eta: float = 0.0
    warp: bool = False
    labels: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    ended: bool = False
    step: int = 0
    seconds: float = 0.0
    network: dict[str, NDArray] = field(default_factory=dict)
    history: tuple[Period, ...] = ()
    representation: Representation | None = field(default=None, repr=False)
    inputs: Inputs | None = field(default=None, repr=False)
    member_trees: tuple[MergeTree, ...] | None = field(default=None, repr=False)
    constraints: Constraints | None = field(default=None, repr=False)

    @property
    def n_clusters(self) -> int:
        """The current number of clusters."""
        return int(self.labels.max()) + 1

    @property
    def n_periods(self) -> int:
        """The number of periods so far."""
        return len(self.history)


def save_state(folder: Path, state: State, identity: dict[str, Any]) -> Path:
    """Save a state and remove all but the two newest.

    `identity` holds the data and settings; `load_state` checks that they are unchanged.
    """
    tensors = {"labels": state.labels}
    tensors |= {f"network.{name}": value for name, value in state.network.items()}
    about = {
        "member": state.member,
        "round": state.round,
        "number": state.number,
        "eta": state.eta,
        "warp": state.warp,
        "ended": state.ended,
        "step": state.step,
        "seconds": state.seconds,
        "history": [asdict(period) for period in state.history],
        "identity": identity,
    }
    text = json.dumps(about, sort_keys=True)
    metadata = {"format": FORMAT, "about": text, "checksum": str(_checksum(tensors, text))}
    path = folder / f"state-{state.n_periods:04d}.safetensors"
    write_atomic(path, save(tensors, metadata))
    for old in _states(folder)[:-KEPT]:
        with suppress(OSError):  # an extra state does no harm
            old.unlink()
    return path


def load_state(
    folder: Path, identity: dict[str, Any], network: Mapping[str, NDArray] | None = None
) -> State | None:
    """Read the newest valid state in a folder; return None if there are no states.

    A damaged file is reported in a warning, and the state before it is used. Links are not
    followed.

    Parameters
    ----------
    folder
        The folder of the states.
    identity
        The data and settings of the run; ``identity["data"]["shape"]`` is the shape of the samples.
    network
        Weights of the network that the state is for; those of a state must have the same names and
        shapes.

    Raises
    ------
    ValueError
        If every state is damaged, or belongs to other data or settings.

    Examples
    --------
    >>> load_state(Path("nowhere"), {}) is None
    True
    """
    found = _states(folder)
    for path in reversed(found):
        try:
            about, tensors = _read_state(path)
            its_identity = about.pop("identity", None)
            if not isinstance(its_identity, dict):
                raise ValueError("it does not say which data it belongs to")
            _check_identity(path, its_identity, identity)
            return _parse_state(about, tensors, identity, network)
        except OtherRunError:
            raise
        except Exception as error:  # damaged files raise almost anything
            warnings.warn(f"{path} is damaged ({error}): resuming one period earlier", stacklevel=2)
    if found:
        raise ValueError(
            f"none of the {len(found)} states in {folder} can be read: start the run again"
        )
    return None


class OtherRunError(ValueError):
    """A state belongs to other data or settings."""


def _states(folder: Path) -> list[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def _read_state(path: Path) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return what a file says about a state, and its arrays; only the checksum is verified."""
    content = read_regular(path)
    length = int.from_bytes(content[:8], "little")
    if length > len(content) - 8:
        raise ValueError("it is incomplete")
    metadata = parse_json(content[8 : 8 + length]).get("__metadata__", {})
    if metadata.get("format") != FORMAT:
        raise ValueError(f"its format is {shortened(metadata.get('format'))}, not {FORMAT!r}")
    tensors = load(content)
    if str(_checksum(tensors, metadata["about"])) != metadata["checksum"]:
        raise ValueError("its checksum is wrong")
    about = parse_json(metadata["about"].encode())
    if not isinstance(about, dict):
        raise ValueError("it does not describe a state")
    return about, tensors


def _check_identity(path: Path, its: dict[str, Any], identity: dict[str, Any]) -> None:
    for name, value in identity.items():
        found = its.get(name)
        if name == "config" and isinstance(found, dict):
            # Settings that an older version did not have are at their defaults.
            found = {key: DEFAULTS[key] for key in value.keys() & DEFAULTS.keys()} | found
        if found != value:
            raise OtherRunError(
                f"{path} belongs to a run with different {name}: resume with the same data and "
                "settings, or start again in another folder"
            )


def _parse_state(
    about: dict[str, Any],
    tensors: dict[str, NDArray],
    identity: dict[str, Any],
    network: Mapping[str, NDArray] | None,
) -> State:
    """Build a state from what a file says; raise ValueError if it cannot be one of this run."""
    labels = tensors.pop("labels")
    _check_labels(labels, identity)
    weights = {name.removeprefix("network."): value for name, value in tensors.items()}
    _check_weights(weights, network)
    if not all(isinstance(about.get(name), bool) for name in ("warp", "ended")):
        raise ValueError("warp and ended must be true or false")
    eta = finite_in(about, "eta")
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must be from 0 to 1, got {eta}")
    history = about.get("history")
    if not isinstance(history, list):
        raise ValueError("it has no history")
    return State(
        member=whole_in({"member": 0} | about, "member"),  # 0 in older states
        round=whole_in(about, "round"),
        number=whole_in(about, "number"),
        eta=eta,
        warp=about["warp"],
        labels=labels,
        ended=about["ended"],
        step=whole_in(about, "step"),
        seconds=max(0.0, finite_in(about, "seconds")),
        network=weights,
        history=tuple(Period.from_json(period) for period in history),
    )


def _check_labels(labels: NDArray, identity: dict[str, Any]) -> None:
    if labels.dtype != np.int32 or labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"its labels are {labels.dtype} of shape {labels.shape}")
    n = identity.get("data", {}).get("shape", [len(labels)])[0]
    if len(labels) != n:
        raise ValueError(f"it has {len(labels)} labels for {n} samples")
    if not np.array_equal(np.unique(labels), np.arange(labels.max() + 1)):
        raise ValueError("its clusters are not numbered 0, 1, ... without a gap")


def _check_weights(weights: dict[str, NDArray], network: Mapping[str, NDArray] | None) -> None:
    for name, value in weights.items():
        if not np.isfinite(value).all():
            raise ValueError(f"the weights {shortened(name)} are not finite")
    if network is None:
        return
    shapes = {name: (value.shape, value.dtype) for name, value in network.items()}
    if {name: (value.shape, value.dtype) for name, value in weights.items()} != shapes:
        raise ValueError("its weights belong to a different network")


def _checksum(tensors: dict[str, NDArray], text: str) -> int:
    value = zlib.crc32(text.encode())
    for name in sorted(tensors):
        value = zlib.crc32(tensors[name].tobytes(), zlib.crc32(name.encode(), value))
    return value
