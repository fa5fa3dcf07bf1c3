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
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jule.files import write_atomic
from jule.joint.clustering import Representation

FORMAT = "jule-state-2"
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


@dataclass(frozen=True, eq=False)
class State:
    """The state of a run between two periods.

    Attributes
    ----------
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
    """

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


def load_state(folder: Path, identity: dict[str, Any]) -> State | None:
    """Read the newest valid state in a folder; return None if there are no states.

    A damaged file is reported in a warning, and the state before it is used.

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
            state, its_identity = _read_state(path)
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            warnings.warn(f"{path} is damaged ({error}): resuming one period earlier", stacklevel=2)
            continue
        for name, value in identity.items():
            if its_identity.get(name) != value:
                raise ValueError(
                    f"{path} belongs to a run with different {name}: resume with the same data and "
                    "settings, or start again in another folder"
                )
        return state
    if found:
        raise ValueError(
            f"none of the {len(found)} states in {folder} can be read: start the run again"
        )
    return None


def _states(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def _read_state(path: Path) -> tuple[State, dict[str, Any]]:
    with safe_open(path, framework="np") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != FORMAT:
            raise ValueError(f"its format is {metadata.get('format')!r}, not {FORMAT!r}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if str(_checksum(tensors, metadata["about"])) != metadata["checksum"]:
        raise ValueError("its checksum is wrong")
    about = json.loads(metadata["about"])
    identity = about.pop("identity")
    history = tuple(Period(**period) for period in about.pop("history"))
    labels = tensors.pop("labels")
    network = {name.removeprefix("network."): value for name, value in tensors.items()}
    return State(labels=labels, network=network, history=history, **about), identity


def _checksum(tensors: dict[str, NDArray], text: str) -> int:
    value = zlib.crc32(text.encode())
    for name in sorted(tensors):
        value = zlib.crc32(tensors[name].tobytes(), zlib.crc32(name.encode(), value))
    return value
