"""All that a run is between two periods: saved atomically, resumed exactly.

One safetensors file a period: the network's numbers and the labels as tensors, everything else as
JSON in the header, with a checksum over all of it. Chance needs no state: every period draws from
the seed, its round and its number.
"""

from __future__ import annotations

import json
import os
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

FORMAT = "jule-state-1"
KEPT = 2  # the newest file, and one to fall back on
NAME = re.compile(r"state-(\d{4})\.safetensors")


@dataclass(frozen=True)
class Period:
    """What one period did: part of a run's history.

    Attributes
    ----------
    round, number
        Which round, and which period of it, from 0.
    clusters_before, clusters_after
        How many clusters the network was trained on, and how many merging left.
    steps, images
        Batches of training, and batches times the batch size.
    loss_first, loss_last
        The mean loss of the first and of the last tenth of the batches.
    affinity_first, affinity_last
        A(C_a, C_b) of the first and of the last merge; NaN is null in JSON.
    seconds
        Time of each stage: train, embed, neighbours, merge.
    nmi, ac
        Of the labels after merging; only where labels were given, which nothing else uses.
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
    """A run between two periods.

    Attributes
    ----------
    round, number
        The period that comes next.
    eta
        The unrolling rate of this round.
    warp
        Whether training images are warped.
    labels
        (n,) int32 clusters, 0, 1, ... without a gap.
    ended
        Whether the labels are a round's last ones (K clusters are left).
    step
        Batches of training so far.
    network
        The network's numbers by name.
    history
        The periods so far.
    """

    round: int = 0
    number: int = 0
    eta: float = 0.0
    warp: bool = False
    labels: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    ended: bool = False
    step: int = 0
    network: dict[str, NDArray] = field(default_factory=dict)
    history: tuple[Period, ...] = ()

    @property
    def n_clusters(self) -> int:
        """How many clusters there are now."""
        return int(self.labels.max()) + 1

    @property
    def n_periods(self) -> int:
        """How many periods are done."""
        return len(self.history)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, whenever the power goes.

    Examples
    --------
    >>> write_whole(Path("labels.csv"), b"name,cluster")  # doctest: +SKIP
    """
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        _forget(part)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name itself must reach the disk, too
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _forget(path: Path) -> None:
    with suppress(OSError):  # what brought us here matters more
        path.unlink(missing_ok=True)


def save_state(folder: Path, state: State, identity: dict[str, Any]) -> Path:
    """Save a state, and forget all but the two newest.

    `identity` is what a resumed run must have in common with this one: data and settings.

    Examples
    --------
    >>> save_state(Path("run"), state, {"seed": 0})  # doctest: +SKIP
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
        "history": [asdict(period) for period in state.history],
        "identity": identity,
    }
    text = json.dumps(about, sort_keys=True)
    metadata = {"format": FORMAT, "about": text, "checksum": str(_checksum(tensors, text))}
    path = folder / f"state-{state.n_periods:04d}.safetensors"
    write_whole(path, save(tensors, metadata))
    for old in _states(folder)[:-KEPT]:
        _forget(old)
    return path


def load_state(folder: Path, identity: dict[str, Any]) -> State | None:
    """Read the newest good state of a folder; None where there is none at all.

    A damaged or foreign file is named in a warning, and the one before it is used.

    Raises
    ------
    ValueError
        When every state is damaged, or belongs to other data or settings.

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
            warnings.warn(f"{path} is not a good state ({error}): going back one", stacklevel=2)
            continue
        for name, value in identity.items():
            if its_identity.get(name) != value:
                raise ValueError(
                    f"{path} was made with other {name}: resume with the same data and settings, "
                    f"or start anew in another folder"
                )
        return state
    if found:
        raise ValueError(f"none of the {len(found)} states in {folder} can be read: start anew")
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
