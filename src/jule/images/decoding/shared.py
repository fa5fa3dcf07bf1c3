"""Decode the pictures of a source on several machines, each of which gets all of them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.images.decoding.batch import Batch
from jule.images.decoding.decode import DIGEST, content_digest, known_formats, read_item
from jule.images.decoding.pipeline import DECODED_BYTES, decode_blocks
from jule.images.decoding.spec import ImageSpec
from jule.images.sources.base import ImageSource, shorten_name
from jule.images.sources.content import BadPictureError
from jule.ranks import DisagreementError, Ranks

BLOCK = 32  # pictures that a machine decodes before the next one sends its own, at most
LISTENS = "listens"  # said by a process that leaves decoding to another one on its machine


class SharedDecoding:
    """The machines of a run, which decode the pictures of a source together.

    One process per machine decodes. The pictures are dealt to these in blocks, in turn, and each
    sends what it has decoded to all processes. Nothing is shared if a machine cannot read the
    source, has other pictures or decoders, or has decoded all pictures before: every machine then
    decodes alone. Names and sizes of all files are compared, and the content of the first picture
    of every block.

    Parameters
    ----------
    ranks
        All processes. Each of them calls `compare`, `decline` or `listen`.
    announce
        Called once before the first exchange: tells the others what to decode.

    Attributes
    ----------
    has_answered
        Whether the others know what this machine has.
    is_exchanging
        Whether the others wait for what this process exchanges with them.

    Examples
    --------
    >>> from jule.images.sources.arrays import ArraySource
    >>> from jule.ranks import ALONE
    >>> source = ArraySource(np.zeros((3, 8, 8), np.uint8))
    >>> SharedDecoding(ALONE).compare(source, ImageSpec(8, 8, 1), 0) is None
    True
    """

    def __init__(self, ranks: Ranks, announce: Callable[[], None] | None = None) -> None:
        self._ranks, self._announce = ranks, announce
        self._decoders: list[int] = []
        self._n, self._block = 0, BLOCK  # pictures in the source, and in a block
        self.has_answered = self.is_exchanging = False

    def compare(self, source: ImageSource, spec: ImageSpec, done: int) -> list[int] | None:
        """Return how many pictures each machine has decoded before; None if nothing is shared.

        Parameters
        ----------
        source, spec
            The pictures, as this machine sees them, and their target size and colour mode.
        done
            How many of them this machine has decoded before.
        """
        block = max(1, min(BLOCK, DECODED_BYTES // math.prod(spec.shape)))
        return self._exchange_counts([len(source), block, describe(source), done])

    def decline(self) -> None:
        """Tell the others that this machine cannot take part, or need not."""
        self._exchange_counts(None)

    def listen(self) -> None:
        """Take part in all exchanges without decoding, in a process that is not a decoder."""
        while (counts := self._exchange_counts(LISTENS)) is not None:
            if min(counts) == max(counts):
                for number in range(-(-(self._n - counts[0]) // self._block)):
                    self._ranks.hear(self._decoder_of(number))
                return

    def batches(
        self, source: ImageSource, spec: ImageSpec, start: int, workers: int | None = None
    ) -> Iterator[Batch]:
        """Yield the pictures from index `start` on, in order, decoded by this machine or others.

        Parameters
        ----------
        source, spec
            The pictures, and their target size and colour mode.
        start
            The first picture that is not decoded yet, the same on all machines.
        workers
            Number of processes that decode here; the number of cores by default.
        """
        n, size = len(source), self._block
        blocks = [range(i, min(i + size, n)) for i in range(start, n, size)]
        is_own = [self._decoder_of(number) == self._ranks.rank for number in range(len(blocks))]
        own = decode_blocks(source, spec, compress(blocks, is_own), workers)
        for number, block in enumerate(blocks):
            if is_own[number]:
                batch = next(own)
                digests = np.frombuffer(b"".join(batch.digests), np.uint8)
                skipped = sorted(batch.skipped.items())
                self._ranks.tell({"skipped": skipped}, [batch.images, digests])
            else:
                batch = _received(block, *self._ranks.hear(self._decoder_of(number)))
                check_first(batch, source)
            yield batch
        self.is_exchanging = False

    def _decoder_of(self, number: int) -> int:
        """Return which process decodes a block."""
        return self._decoders[number % len(self._decoders)]

    def _exchange_counts(self, own: list[Any] | str | None) -> list[int] | None:
        """Exchange what the machines have; return how many pictures, None if nothing is shared."""
        self.is_exchanging = True
        if self._announce is not None and not self.has_answered:
            self._announce()
        self.has_answered = True
        answers = [json.loads(text) for text in self._ranks.gather_texts(json.dumps(own))]
        self._decoders = [rank for rank, answer in enumerate(answers) if answer != LISTENS]
        found = [answers[rank] for rank in self._decoders]
        if len(found) > 1 and None not in found and len({tuple(one[:3]) for one in found}) == 1:
            self._n, self._block, _, _ = found[0]
            return [one[3] for one in found]
        self.is_exchanging = False
        return None


def describe(source: ImageSource) -> str:
    """Return a checksum of the names and sizes of all files, and of what can be decoded.

    Examples
    --------
    >>> from jule.images.sources.arrays import ArraySource
    >>> len(describe(ArraySource(np.zeros((3, 8, 8), np.uint8))))
    64
    """
    found = sha256(f"{known_formats()} {version('pillow')}".encode())
    for index, name in enumerate(source.names):
        path = source.path(index)
        size = 0
        if path is not None:
            with suppress(OSError, ValueError):  # a file that is gone is skipped when it is decoded
                size = os.stat(path).st_size
        found.update(f"{name}\0{size}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def check_first(batch: Batch, source: ImageSource) -> None:
    """Raise if the first picture of a batch from another machine is not the one that is here."""
    if not batch.indices:
        return
    index = batch.indices[0]
    try:
        own = content_digest(read_item(source.path(index) or source.picture_or_reason(index)))
    except BadPictureError as error:
        raise _other_picture(source, index, f" ({error})") from error
    if own != batch.digests[0]:
        raise _other_picture(source, index)


def _other_picture(source: ImageSource, index: int, why: str = "") -> DisagreementError:
    return DisagreementError(
        f"{shorten_name(source.names[index])} in {source.where} is not the picture that another "
        f"machine has{why}: copy the same files to all machines"
    )


def _received(block: range, about: dict[str, Any], arrays: list[NDArray]) -> Batch:
    """Return a batch that another machine has decoded."""
    skipped = {int(index): str(reason) for index, reason in about["skipped"]}
    images, digests = arrays
    return Batch(
        images,
        [index for index in block if index not in skipped],
        [row.tobytes() for row in digests.reshape(-1, DIGEST)],
        skipped,
    )
