"""Decode pictures in separate processes, with limits on memory and time.

Most of the time for a small picture is spent in Python code, which runs on one core per process.
Besides, a decoder that crashes on damaged bytes, uses too much memory or never ends costs a worker,
not the program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Timer
from typing import Any, TypeVar

import numpy as np

from jule.images.decoding.batch import Batch, concatenate, decode_chunk, is_encoded
from jule.images.decoding.child import read_exactly, receive, send
from jule.images.decoding.decode import DIGEST, Item
from jule.images.decoding.examine import Examined, examine_chunk
from jule.images.decoding.spec import ImageSpec
from jule.memory import available_memory

# The worker uses this process's module path, which may have been changed at run time.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jule.images.decoding.child import serve; serve()"
)
PIPE_BYTES = 2**20  # a whole chunk, so that neither side waits for the other to read
CRASHED = "its decoder crashed"
LEAST_MEMORY = 2**30  # bytes per worker: enough for photographs of 100 megapixels
SECONDS = 60.0  # for a chunk, and for a picture alone

Chunk = dict[int, Item]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """What a decoder may use.

    Attributes
    ----------
    memory
        Bytes, beyond what the worker itself needs.
    seconds
        For one picture. A few together are first given the same time, then each its own.

    Examples
    --------
    >>> Limits(2**30).seconds
    60.0
    """

    memory: int
    seconds: float = SECONDS


def limits_for(n_workers: int) -> Limits:
    """Return the limits for each of several workers.

    Together they may use half of the available memory, but each at least `LEAST_MEMORY`.

    Examples
    --------
    >>> limits_for(2).memory >= LEAST_MEMORY
    True
    """
    return Limits(max(LEAST_MEMORY, available_memory() // 2 // n_workers))


class NoWorkerError(OSError):
    """No process for decoding can be started."""


class WorkerLostError(Exception):
    """The process of a worker ended while it was working; the message is the reason."""


class StoppedError(Exception):
    """The worker was stopped because its results are no longer needed."""


class Worker:
    """A process that decodes chunks of pictures; it is started when it is first needed.

    Examples
    --------
    >>> worker = Worker(Limits(2**30))
    >>> worker.decode({7: b"P5 4 4 255 0123456789abcdef"}, ImageSpec(2, 2, 1)).images.shape
    (1, 2, 2)
    >>> worker.close()
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def decode(self, chunk: Chunk, spec: ImageSpec) -> Batch:
        """Decode a chunk; a picture whose decoder fails in any way is skipped with the reason."""
        if not is_encoded(chunk):
            return decode_chunk(chunk, spec)  # pixels: nothing to decode

        def skip(index: int, reason: str) -> Batch:
            return decode_chunk({index: reason}, spec)

        return concatenate(self._try(chunk, lambda some: self._ask_to_decode(some, spec), skip))

    def examine(self, chunk: Chunk, colour: int) -> dict[int, Examined | str]:
        """Examine a chunk; see `examine_chunk`."""
        if not is_encoded(chunk):
            return examine_chunk(chunk, colour)

        def skip(index: int, reason: str) -> dict[int, Examined | str]:
            return {index: reason}

        def ask(some: Chunk) -> dict[int, Examined | str]:
            found = self._ask(some, {"task": "examine", "colour": colour}, lambda reply: reply)
            return {index: one if isinstance(one, str) else Examined(*one) for index, one in found}

        parts = self._try(chunk, ask, skip)
        return {index: one for part in parts for index, one in part.items()}

    def _try(
        self, chunk: Chunk, ask: Callable[[Chunk], Result], skip: Callable[[int, str], Result]
    ) -> list[Result]:
        """Process a chunk; if the worker is lost, process each of its pictures alone."""
        try:
            return [ask(chunk)]
        except WorkerLostError:
            if len(chunk) > 1:
                return [part for one in chunk.items() for part in self._try(dict([one]), ask, skip)]
        # Once more: the process may have been killed or stopped from outside.
        try:
            return [ask(chunk)]
        except WorkerLostError as error:
            return [skip(index, str(error)) for index in chunk]

    def _ask_to_decode(self, chunk: Chunk, spec: ImageSpec) -> Batch:
        def read(reply: dict[str, Any]) -> Batch:
            assert self._process is not None
            assert self._process.stdout is not None
            indices = reply["indices"]
            digests = read_exactly(self._process.stdout, len(indices) * DIGEST)
            shape = (len(indices), *spec.shape)
            pixels = read_exactly(self._process.stdout, int(np.prod(shape)))
            return Batch(
                np.frombuffer(pixels, np.uint8).reshape(shape),
                indices,
                [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)],
                {int(index): reason for index, reason in reply["skipped"]},
            )

        return self._ask(chunk, {"task": "decode", "spec": spec.to_json()}, read)

    def _ask(self, chunk: Chunk, task: dict[str, Any], read: Callable[[Any], Result]) -> Result:
        """Send a request and read the answer; raise WorkerLostError if the process ends."""
        if self._is_stopped:
            raise StoppedError
        if self._process is None or self._process.poll() is not None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        is_late = Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = Timer(self.limits.seconds, end)
        timer.daemon = True
        timer.start()
        try:
            request = {
                **task,
                "memory": self.limits.memory,
                "items": [_describe(*one) for one in chunk.items()],
            }
            send(process.stdin, request, [x for x in chunk.values() if isinstance(x, bytes)])
            answer = read(receive(process.stdout))
        except Exception:  # no answer, or one that makes no sense
            self.close()
            late = f"its decoder took more than {self.limits.seconds:g} s"
            raise WorkerLostError(late if is_late.is_set() else CRASHED) from None
        except BaseException:  # the answer is still to come and must not be taken for the next
            self.close()
            raise
        finally:
            timer.cancel()
        if is_late.is_set():  # ended after it had answered
            self.close()
        return answer

    def _start(self) -> None:
        """Start the process and wait until it is ready."""
        self.close()
        try:
            self._process = subprocess.Popen(
                # -P: modules in the current folder, which may be a stranger's, are not imported.
                [sys.executable, "-P", "-c", START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # messages of decoders on damaged files
                pipesize=PIPE_BYTES,
                # Threads for linear algebra would only take time and address space.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
            assert self._process.stdout is not None
            receive(self._process.stdout)
        except (OSError, EOFError, ValueError) as error:
            self.close()
            reason = str(error) or "it ended at once"
            raise NoWorkerError(
                f"pictures are decoded in a separate process, but {sys.executable} cannot be "
                f"started ({reason})"
            ) from error

    def stop(self) -> None:
        """End the process; what another thread waits for is no longer needed."""
        self._is_stopped = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()  # it has nothing to finish
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        process.wait()


def _describe(index: int, item: Item) -> list[Any]:
    if isinstance(item, Path):
        # A worker may have been started in another folder than the current one.
        return [index, "path", os.path.join(os.getcwd(), item)]
    if isinstance(item, str):
        return [index, "reason", item]
    assert isinstance(item, bytes)
    return [index, "bytes", len(item)]
