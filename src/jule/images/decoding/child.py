"""The process that decodes: it answers requests until its standard input is closed.

It is started by `Worker`. Messages in both directions have three parts: the length of a JSON text
in 8 bytes, the text, and the bytes that the text announces. This module imports little, so that a
worker starts quickly.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from jule.images.decoding.decode import Item, decode_to_bytes, known_formats, read_item
from jule.images.decoding.examine import examine_chunk
from jule.images.decoding.spec import ImageSpec
from jule.images.sources.content import BadPictureError
from jule.memory import own_address_space

IDLE_SECONDS = 10  # without requests, after which the process ends by itself


def serve() -> None:
    """Answer requests from standard input until it is closed, or none has come for a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the main process
    warnings.simplefilter("ignore")  # Pillow's warnings on odd files; errors become reasons
    known_formats()  # loads the decoders before any limit
    gc.freeze()  # modules stay loaded, so searching them for garbage is wasted time
    gc.set_threshold(10_000)
    # Some decoders print messages, which must not end up among the answers.
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError):
        send(replies, "ready", [])
        while _is_asked(requests):
            request = receive(requests)
            chunk = {
                index: _receive_item(requests, kind, rest) for index, kind, rest in request["items"]
            }
            _answer(replies, request, chunk)


def _is_asked(requests: IO[bytes]) -> bool:
    """Wait for a request; return False if none comes."""
    if sys.platform == "win32":  # pipes cannot be waited for
        return True
    return bool(select.select([requests], [], [], IDLE_SECONDS)[0])


def _answer(replies: IO[bytes], request: dict[str, Any], chunk: dict[int, Item]) -> None:
    memory = request["memory"]
    if request["task"] == "examine":
        with limited_memory(memory):
            examined = examine_chunk(chunk, request["colour"], memory)
        send(replies, list(examined.items()), [])
        return
    spec = ImageSpec(**request["spec"])
    decoded: dict[int, tuple[bytes, bytes]] = {}
    skipped: list[tuple[int, str]] = []
    with limited_memory(memory):
        for index, item in chunk.items():
            try:
                decoded[index] = decode_to_bytes(read_item(item), spec, memory)
            except BadPictureError as error:
                skipped.append((index, str(error)))
    digests = [digest for _, digest in decoded.values()]
    pixels = [pixels for pixels, _ in decoded.values()]
    send(replies, {"indices": list(decoded), "skipped": skipped}, digests + pixels)


@contextmanager
def limited_memory(n_bytes: int) -> Iterator[None]:
    """Let this process use at most `n_bytes` more than now, where the system can limit that.

    Examples
    --------
    >>> with limited_memory(2**30):
    ...     pass
    """
    try:
        import resource

        used = own_address_space()
        old = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError):  # not Linux
        yield
        return
    most = min((limit for limit in old if limit != resource.RLIM_INFINITY), default=sys.maxsize)
    resource.setrlimit(resource.RLIMIT_AS, (min(used + n_bytes, most), old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)


def _receive_item(requests: IO[bytes], kind: str, rest: Any) -> Item:
    if kind == "bytes":
        return read_exactly(requests, rest)
    return Path(rest) if kind == "path" else str(rest)


def send(pipe: IO[bytes], message: Any, contents: Sequence[bytes | memoryview]) -> None:
    """Send a message, and the bytes that it announces."""
    text = json.dumps(message).encode()
    pipe.write(len(text).to_bytes(8, "little") + text)
    for content in contents:
        pipe.write(content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Receive a message; raise EOFError if the other side has ended."""
    length = int.from_bytes(read_exactly(pipe, 8), "little")
    return json.loads(read_exactly(pipe, length))


def read_exactly(pipe: IO[bytes], count: int) -> bytes:
    """Read bytes that were announced; raise EOFError if the other side has ended."""
    content = pipe.read(count)
    if len(content) < count:
        raise EOFError
    return content
