"""Decoding in processes of its own.

Most of the time that a small picture takes is spent in Python, which only runs on one core a
process; and a decoder that crashes on damaged bytes then takes a worker with it, not the program.

Both sides speak in frames: 8 bytes that give the length of a text, the text (JSON), then the bytes
that the text announces.
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

from jule.images.batch import Batch, Picture, decode_chunk
from jule.images.decode import DIGEST, Look

# The worker finds its modules where this process does, whatever was done to the path since.
BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jule.images.worker import serve; serve()"
)
PIPE = 2**20  # bytes: a whole chunk, so that nobody waits for the other to read
CRASHED = "its decoder crashed"


class Worker:
    """A process that decodes chunks of pictures, started when it is first needed.

    Examples
    --------
    >>> worker = Worker(Look(2, 2, 1))
    >>> worker.decode({7: b"no image"}).skipped
    {7: 'it is not an image'}
    >>> worker.close()
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._process: subprocess.Popen[bytes] | None = None

    def decode(self, chunk: dict[int, Picture | Path | str]) -> Batch:
        """Decode a chunk; a picture on which the decoder crashes is skipped like any bad one."""
        if not all(isinstance(item, bytes | Path | str) for item in chunk.values()):
            return decode_chunk(chunk, self._look)  # pixels already: no need to send them around
        found = self._ask(chunk)
        if found is not None:
            return found
        if len(chunk) > 1:  # one of them did it: halves find out which, at the cost of a few starts
            numbers = list(chunk)
            half = len(numbers) // 2
            parts = (numbers[:half], numbers[half:])
            return joined([self.decode({n: chunk[n] for n in part}) for part in parts])
        again = self._ask(chunk)  # somebody else may have ended the process
        return again or decode_chunk(dict.fromkeys(chunk, CRASHED), self._look)

    def _ask(self, chunk: dict[int, Picture | Path | str]) -> Batch | None:
        """Let the process decode a chunk; None if that was its end."""
        process = self._process or self._start()
        if process is None:  # where no process can be started, this one does the work
            return decode_chunk(chunk, self._look)
        try:
            return self._exchange(process, chunk)
        except (EOFError, BrokenPipeError):
            self.close()
            return None

    def _exchange(
        self, process: subprocess.Popen[bytes], chunk: dict[int, Picture | Path | str]
    ) -> Batch:
        assert process.stdin is not None
        assert process.stdout is not None
        contents = [item for item in chunk.values() if isinstance(item, bytes)]
        asked = {"look": self._look.to_json(), "items": [_announced(*one) for one in chunk.items()]}
        _send(process.stdin, asked, contents)
        found = _receive(process.stdout)
        numbers = found["numbers"]
        digests = _exactly(process.stdout, len(numbers) * DIGEST)
        shape = (len(numbers), *self._look.shape)
        pixels = _exactly(process.stdout, int(np.prod(shape)))
        return Batch(
            np.frombuffer(pixels, np.uint8).reshape(shape),
            numbers,
            [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)],
            {int(number): reason for number, reason in found["skipped"]},
        )

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start the process and wait for its first word; None where that cannot be."""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", BEGIN, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what decoders say of damaged files
                pipesize=PIPE,
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


def joined(batches: Sequence[Batch]) -> Batch:
    """Give several batches as one.

    Examples
    --------
    >>> empty = Batch(np.empty((0, 2, 2), np.uint8), [], [], {3: "it is empty"})
    >>> joined([empty, empty]).skipped
    {3: 'it is empty'}
    """
    return Batch(
        np.concatenate([batch.images for batch in batches]),
        [number for batch in batches for number in batch.numbers],
        [digest for batch in batches for digest in batch.digests],
        {number: why for batch in batches for number, why in batch.skipped.items()},
    )


def _announced(number: int, item: Picture | Path | str) -> list[Any]:
    if isinstance(item, Path):
        return [number, "path", str(item)]
    if isinstance(item, str):
        return [number, "reason", item]
    assert isinstance(item, bytes)
    return [number, "bytes", len(item)]


def serve() -> None:
    """Decode what comes in until nothing does: the other side of `Worker`.

    Examples
    --------
    >>> serve()  # doctest: +SKIP
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks
    warnings.simplefilter("ignore")
    gc.freeze()  # what is loaded by now stays; to look through it again and again is in vain
    gc.set_threshold(10_000)
    source, answer = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        _send(answer, "ready", [])
        while True:
            asked = _receive(source)
            chunk = {number: _item(source, kind, rest) for number, kind, rest in asked["items"]}
            batch = decode_chunk(chunk, Look(**asked["look"]))
            about = {"numbers": batch.numbers, "skipped": list(batch.skipped.items())}
            _send(answer, about, [*batch.digests, np.ascontiguousarray(batch.images).data])


def _item(source: IO[bytes], kind: str, rest: Any) -> Picture | Path | str:
    if kind == "bytes":
        return _exactly(source, rest)
    return Path(rest) if kind == "path" else str(rest)


def _send(to: IO[bytes], about: Any, contents: Sequence[bytes | memoryview]) -> None:
    text = json.dumps(about).encode()
    to.write(len(text).to_bytes(8, "little") + text)
    for content in contents:
        to.write(content)
    to.flush()


def _receive(source: IO[bytes]) -> Any:
    length = int.from_bytes(_exactly(source, 8), "little")
    return json.loads(_exactly(source, length))


def _exactly(source: IO[bytes], count: int) -> bytes:
    content = source.read(count)
    if len(content) < count:
        raise EOFError
    return content
