"""Several processes that work on one run, on one machine or on many.

They are started by torchrun, or by anything else that sets its environment variables. Here is all
that jule uses of `torch.distributed`: one process, the first, tells the others what to do, and they
exchange arrays. Nothing is pickled. Importing this module loads neither torch nor numpy.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from jule.text import printable

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor
    from torch.distributed import ProcessGroup
    from torch.distributed.distributed_c10d import Store

JOIN_SECONDS = 180  # within which all processes must have started
# Only a lost machine ends a wait: the others wait for hours while the first one merges or decodes.
WAIT = timedelta(days=30)
COMPARED = ("torch", "numpy", "numba")  # packages that must have the same version, like jule
MOST_NAMED = 4  # missing processes in an error message


class LostRankError(ConnectionError):
    """Another process of the run has ended, or cannot be reached."""


class DisagreementError(ValueError):
    """The processes of a run were started with different data, versions or settings."""


@dataclass(eq=False)
class Ranks:
    """The processes of a run, as one of them sees them.

    Attributes
    ----------
    rank, size
        The number of this process, and how many there are.
    local_rank
        Its number among those on the same machine.
    hosts
        The machine of each process.
    """

    rank: int
    size: int
    local_rank: int = 0
    hosts: tuple[str, ...] = ()
    _group: ProcessGroup | None = field(default=None, repr=False)

    @property
    def is_first(self) -> bool:
        """Whether this process leads the others."""
        return self.rank == 0

    def name(self, rank: int | None = None) -> str:
        """Return how users know a process.

        Examples
        --------
        >>> Ranks(1, 4, hosts=("a", "a", "b", "b")).name(2)
        'rank 2 of 4 (b)'
        """
        number = self.rank if rank is None else rank
        return f"rank {number} of {self.size} ({printable(self.hosts[number])})"

    def tell(self, about: Mapping[str, Any], arrays: Sequence[NDArray] = ()) -> None:
        """Send something to all other processes, with arrays; `hear` receives it.

        Most often it is an order of the first process.
        """
        import numpy as np

        if self.size == 1:
            return
        shapes = [[array.dtype.str, list(array.shape)] for array in arrays]
        text = json.dumps({"about": dict(about), "arrays": shapes}).encode()
        self._broadcast(np.array([len(text)], np.int64), self.rank)
        self._broadcast(np.frombuffer(bytearray(text), np.uint8), self.rank)
        for array in arrays:
            self._broadcast(_writable(array), self.rank)

    def hear(self, teller: int = 0) -> tuple[dict[str, Any], list[NDArray]]:
        """Wait for what another process tells next, by default the first one."""
        import numpy as np

        length = np.zeros(1, np.int64)
        self._broadcast(length, teller)
        text = np.empty(int(length[0]), np.uint8)
        self._broadcast(text, teller)
        order = json.loads(text.tobytes())
        arrays = [np.empty(shape, np.dtype(dtype)) for dtype, shape in order["arrays"]]
        for array in arrays:
            self._broadcast(array, teller)
        return order["about"], arrays

    def _broadcast(self, array: NDArray, sender: int) -> None:
        import numpy as np
        import torch.distributed as dist

        if array.size:
            data = _as_tensor(array.reshape(-1).view(np.uint8))
            with _lost_ranks():
                dist.broadcast(data, sender, group=self._group)

    def gather_rows(self, part: NDArray, counts: Sequence[int]) -> NDArray | None:
        """Return the rows of all processes, in their order, to the first one; None to others.

        Parameters
        ----------
        part
            (counts[rank], ...) the rows of this process.
        counts
            How many rows each process has.
        """
        import numpy as np
        import torch.distributed as dist

        if self.size == 1:
            return part
        if not self.is_first:
            if part.size:
                with _lost_ranks():
                    dist.send(_as_tensor(_writable(part)), 0, group=self._group)
            return None
        rows = np.empty((sum(counts), *part.shape[1:]), part.dtype)
        rows[: counts[0]] = part
        start = counts[0]
        for rank in range(1, self.size):
            own = rows[start : start + counts[rank]]
            if own.size:
                with _lost_ranks():
                    dist.recv(_as_tensor(own), rank, group=self._group)
            start += counts[rank]
        return rows

    def exchange_rows(self, rows: NDArray, counts: Sequence[int]) -> NDArray:
        """Give every process the rows that it owns, as each of the processes has them.

        Parameters
        ----------
        rows
            (n, d): first those of process 0, then those of process 1, and so on.
        counts
            How many rows each process owns.

        Returns
        -------
        NDArray
            (size, counts[rank], d): the own rows, from every process.
        """
        import numpy as np
        import torch.distributed as dist

        own = counts[self.rank]
        found = np.empty((self.size * own, *rows.shape[1:]), rows.dtype)
        with _lost_ranks():
            dist.all_to_all_single(
                _as_tensor(found),
                _as_tensor(_writable(rows)),
                [own] * self.size,
                list(counts),
                group=self._group,
            )
        return found.reshape(self.size, own, *rows.shape[1:])

    def sum_(self, values: Tensor) -> Tensor:
        """Replace a tensor by its sum over all processes, in place; return it."""
        import torch.distributed as dist

        if self.size > 1:
            # A GPU's own group is faster; the processor's takes everything else.
            group = self._group if values.device.type == "cpu" else None
            with _lost_ranks():
                dist.all_reduce(values, group=group)
        return values

    def gather_texts(self, text: str) -> list[str]:
        """Return a text of every process, to every process."""
        import numpy as np
        import torch
        import torch.distributed as dist

        if self.size == 1:
            return [text]
        data = np.frombuffer(bytearray(text.encode("utf-8", "backslashreplace")), np.uint8)
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        with _lost_ranks():
            dist.all_gather(lengths, torch.tensor([len(data)]), group=self._group)
        longest = max(1, *(int(length) for length in lengths))
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(data)] = _as_tensor(data) if len(data) else padded[:0]
        texts = [torch.zeros(longest, dtype=torch.uint8) for _ in range(self.size)]
        with _lost_ranks():
            dist.all_gather(texts, padded, group=self._group)
        return [
            each[: int(length)].numpy().tobytes().decode()
            for each, length in zip(texts, lengths, strict=True)
        ]


ALONE = Ranks(0, 1)


def launched() -> tuple[int, int]:
    """Return the rank of this process and the number of processes, as torchrun set them.

    Examples
    --------
    >>> launched()
    (0, 1)
    """
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return 0, 1
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except ValueError:
        rank, size = 0, 0
    if not 0 <= rank < size:
        raise ValueError(
            f"the environment has RANK={os.environ['RANK']} and "
            f"WORLD_SIZE={os.environ['WORLD_SIZE']}: start the processes with torchrun"
        )
    return rank, size


def is_helper() -> bool:
    """Return whether torchrun started this process, and another one leads.

    Examples
    --------
    >>> is_helper()
    False
    """
    try:
        return launched()[0] > 0
    except ValueError:  # whoever joins the others will say so
        return False


@contextmanager
def existing_ranks() -> Iterator[Ranks]:
    """Use the process group that the caller made, if there is one; all its processes call this.

    Examples
    --------
    >>> with existing_ranks() as ranks:
    ...     ranks.size
    1
    """
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        yield ALONE
        return
    with _lost_ranks():
        # A group of our own: the caller's may be for GPUs only, and may not wait long enough.
        group = dist.new_group(backend="gloo", timeout=WAIT)
    ranks = Ranks(dist.get_rank(), dist.get_world_size(), _local_rank(), (), group)
    yield _with_hosts(ranks, [json.loads(one) for one in ranks.gather_texts(_introduction())])
    dist.destroy_process_group(group)  # not after an error: others may not answer any more


@contextmanager
def started_ranks() -> Iterator[Ranks]:
    """Join the processes that torchrun started, and leave them at the end.

    Raises
    ------
    LostRankError
        If not all of them start within a few minutes, or if the port is in use.
    DisagreementError
        If they have different versions of jule or of what it computes with.

    Examples
    --------
    >>> with started_ranks() as ranks:
    ...     ranks.size
    1
    """
    rank, size = launched()
    if size == 1:
        yield ALONE
        return
    import torch
    import torch.distributed as dist

    if not dist.is_available():
        raise ImportError("this build of torch has no torch.distributed: install another one")
    store = _open_store(rank, size)
    people = _introduce(store, rank, size)
    ranks = _with_hosts(Ranks(rank, size, _local_rank()), people)
    if torch.cuda.is_available():
        torch.cuda.set_device(ranks.local_rank % torch.cuda.device_count())
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with _lost_ranks():
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=WAIT)
    with _terminated_as_error(ranks):
        yield ranks
    # Not after an error: others may not answer any more, and `end_process` does without it.
    dist.destroy_process_group()


def end_process(code: int) -> NoReturn:
    """End this process, at once if an error has left a process group open.

    The threads of an open group abort a process that ends in the ordinary way, sometimes, when the
    others have ended before it. Its exit code is then that of a crash.

    Parameters
    ----------
    code
        The exit code of the process.
    """
    distributed = sys.modules.get("torch.distributed")  # not loaded by most commands
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


def _introduction() -> str:
    """Return what a process says about itself to the others."""
    from importlib.metadata import version

    from jule import __version__

    versions = {"jule": __version__} | {name: version(name) for name in COMPARED}
    return json.dumps({"host": socket.gethostname(), "versions": versions})


def _with_hosts(ranks: Ranks, people: Sequence[Mapping[str, Any]]) -> Ranks:
    """Return the ranks with the names of their machines, after comparing their versions."""
    ranks.hosts = tuple(str(person["host"]) for person in people)
    first = people[0]["versions"]
    for number, person in enumerate(people):
        for name, theirs in person["versions"].items():
            if theirs != first[name]:
                raise DisagreementError(
                    f"{ranks.name(number)} has {name} {theirs}, and {ranks.name(0)} has "
                    f"{first[name]}: install the same versions on all machines"
                )
    return ranks


def _open_store(rank: int, size: int) -> Store:
    from torch.distributed.rendezvous import rendezvous

    where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
    try:
        store: Store = next(rendezvous("env://", timeout=timedelta(seconds=JOIN_SECONDS)))[0]
    except ValueError as error:  # a variable is missing
        raise ValueError(
            f"{error}: start the processes with torchrun, which sets all variables"
        ) from None
    except (RuntimeError, OSError) as error:
        if "EADDRINUSE" in str(error) or "in use" in str(error):
            raise LostRankError(
                f"the port of {where} is in use: choose another one (--master-port), or start "
                "torchrun with --standalone on a single machine"
            ) from None
        raise LostRankError(
            f"rank {rank} of {size} cannot reach {where} ({_first_line(error)}): check "
            "--master-addr, --master-port and firewalls"
        ) from None
    return store


def _introduce(store: Store, rank: int, size: int) -> list[dict[str, Any]]:
    """Tell all processes about this one, and return what each of them tells."""
    store.set(f"jule/{rank}", _introduction())
    keys = [f"jule/{other}" for other in range(size)]
    try:
        store.wait(keys, timedelta(seconds=JOIN_SECONDS))
        return [json.loads(store.get(key)) for key in keys]
    except (RuntimeError, OSError):
        missing = [other for other, key in enumerate(keys) if not _is_there(store, key)]
        names = ", ".join(map(str, missing[:MOST_NAMED])) + ", ..." * (len(missing) > MOST_NAMED)
        raise LostRankError(
            f"rank {names or '0'} of {size} did not start within {JOIN_SECONDS} s: look at its "
            "output, and start all machines with the same command"
        ) from None


def _is_there(store: Store, key: str) -> bool:
    try:
        return bool(store.check([key]))
    except RuntimeError:
        return False


@contextmanager
def _lost_ranks() -> Iterator[None]:
    """Turn the errors of torch.distributed into one that says what to do."""
    try:
        yield
    except LostRankError:
        raise
    except RuntimeError as error:
        raise LostRankError(
            "another process of the run has ended or cannot be reached "
            f"({_first_line(error)}): its own output says why"
        ) from None


def _first_line(error: BaseException) -> str:
    """Return the first sentence of an error of torch, without the place in its source."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    line = line.rpartition("] ")[2] if line.startswith("[") else line
    return line.partition(". ")[0]


@contextmanager
def _terminated_as_error(ranks: Ranks) -> Iterator[None]:
    """Let the first process say why it ends when the launcher ends it, as after a death."""
    if not ranks.is_first or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one error is enough
        raise LostRankError(
            "the launcher ended this process, as it does when another process of the run has "
            "ended: its own output says why"
        )

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except BaseException:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is ending already
        raise
    signal.signal(signal.SIGTERM, previous)


def _writable(array: NDArray) -> NDArray:
    """Return a contiguous array that torch accepts; one that is read-only is copied."""
    import numpy as np

    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else array.copy()


def _as_tensor(array: NDArray[np.generic]) -> torch.Tensor:
    import torch

    return torch.from_numpy(array)
