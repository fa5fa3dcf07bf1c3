"""Decode pictures in separate processes.

Most of the time for a small picture is spent in Python code, which runs on one core per process.
Besides, a decoder that crashes on damaged bytes ends only a worker, not the program.

Messages in both directions have three parts: the length of a JSON text in 8 bytes, the text, and
the bytes that the text announces.
"""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from jule.images.decoding.batch import Batch, Item, decode_chunk
from jule.images.decoding.decode import DIGEST, ImageSpec

# The worker uses this process's module path, which may have been changed at run time.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jule.images.decoding.worker import serve; serve()"
)
PIPE_BYTES = 2**20  # a whole chunk, so that neither side waits for the other to read
CRASHED = "its decoder crashed"


class Worker:
    """A process that decodes chunks of pictures; it is started when it is first needed.

    Examples
    --------
    >>> worker = Worker(ImageSpec(2, 2, 1))
    >>> worker.decode({7: np.zeros((4, 4), np.uint8)}).images.shape
    (1, 2, 2)
    >>> worker.close()
    """

    def __init__(self, spec: ImageSpec) -> None:
        self._spec = spec
        self._process: subprocess.Popen[bytes] | None = None

    def decode(self, chunk: dict[int, Item]) -> Batch:
        """Decode a chunk; a picture on which the decoder crashes is skipped."""
        if not all(isinstance(item, bytes | Path | str) for item in chunk.values()):
            return decode_chunk(chunk, self._spec)  # pixels: sending them would take longer
        found = self._ask(chunk)
        if found is not None:
            return found
        if len(chunk) > 1:  # the picture that crashes is found by bisection
            indices = list(chunk)
            half = len(indices) // 2
            parts = (indices[:half], indices[half:])
            return concatenate([self.decode({i: chunk[i] for i in part}) for part in parts])
        again = self._ask(chunk)  # the process may have been killed from outside
        return again or decode_chunk(dict.fromkeys(chunk, CRASHED), self._spec)

    def _ask(self, chunk: dict[int, Item]) -> Batch | None:
        """Decode a chunk in the process; return None if the process ended."""
        process = self._process or self._start()
        if process is None:  # no process can be started: decode in this one
            return decode_chunk(chunk, self._spec)
        try:
            return self._exchange(process, chunk)
        except (EOFError, BrokenPipeError):
            self.close()
            return None

    def _exchange(self, process: subprocess.Popen[bytes], chunk: dict[int, Item]) -> Batch:
        assert process.stdin is not None
        assert process.stdout is not None
        contents = [item for item in chunk.values() if isinstance(item, bytes)]
        request = {
            "spec": self._spec.to_json(),
            "items": [_describe(*one) for one in chunk.items()],
        }
        _send(process.stdin, request, contents)
        reply = _receive(process.stdout)
        indices = reply["indices"]
        digests = _read_exactly(process.stdout, len(indices) * DIGEST)
        shape = (len(indices), *self._spec.shape)
        pixels = _read_exactly(process.stdout, int(np.prod(shape)))
        return Batch(
            np.frombuffer(pixels, np.uint8).reshape(shape),
            indices,
            [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)],
            {int(index): reason for index, reason in reply["skipped"]},
        )

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start the process and wait until it is ready; return None if it cannot be started."""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # messages of decoders on damaged files
                pipesize=PIPE_BYTES,
            )
            assert self._process.stdout is not None
            _receive(self._process.stdout)
        except (OSError, EOFError, ValueError):
            self.close()
        return self._process

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.wait()


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Concatenate batches.

    Examples
    --------
    >>> empty = Batch(np.empty((0, 2, 2), np.uint8), [], [], {3: "it is empty"})
    >>> concatenate([empty, empty]).skipped
    {3: 'it is empty'}
    """
    return Batch(
        np.concatenate([batch.images for batch in batches]),
        [index for batch in batches for index in batch.indices],
        [digest for batch in batches for digest in batch.digests],
        {index: reason for batch in batches for index, reason in batch.skipped.items()},
    )


def _describe(index: int, item: Item) -> list[Any]:
    if isinstance(item, Path):
        return [index, "path", str(item)]
    if isinstance(item, str):
        return [index, "reason", item]
    assert isinstance(item, bytes)
    return [index, "bytes", len(item)]


def serve() -> None:
    """Decode requests from standard input until it is closed; runs in the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the main process
    warnings.simplefilter("ignore")
    gc.freeze()  # modules stay loaded, so searching them for garbage is wasted time
    gc.set_threshold(10_000)
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        _send(replies, "ready", [])
        while True:
            request = _receive(requests)
            chunk = {
                index: _receive_item(requests, kind, rest) for index, kind, rest in request["items"]
            }
            batch = decode_chunk(chunk, ImageSpec(**request["spec"]))
            reply = {"indices": batch.indices, "skipped": list(batch.skipped.items())}
            _send(replies, reply, [*batch.digests, np.ascontiguousarray(batch.images).data])


def _receive_item(requests: IO[bytes], kind: str, rest: Any) -> Item:
    if kind == "bytes":
        return _read_exactly(requests, rest)
    return Path(rest) if kind == "path" else str(rest)


def _send(pipe: IO[bytes], message: Any, contents: Sequence[bytes | memoryview]) -> None:
    text = json.dumps(message).encode()
    pipe.write(len(text).to_bytes(8, "little") + text)
    for content in contents:
        pipe.write(content)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    length = int.from_bytes(_read_exactly(pipe, 8), "little")
    return json.loads(_read_exactly(pipe, length))


def _read_exactly(pipe: IO[bytes], count: int) -> bytes:
    content = pipe.read(count)
    if len(content) < count:
        raise EOFError
    return content
