"""Decode the pictures of a source on several machines, each of which gets all of them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.images.decoding.batch import Batch
from jule.images.decoding.decode import DIGEST
from jule.images.decoding.pipeline import decode_blocks
from jule.images.decoding.spec import ImageSpec
from jule.images.sources.base import ImageSource
from jule.ranks import Ranks

BLOCK = 32  # pictures at most that a machine decodes before the next one sends its own
LISTENS = "listens"  # what a process says that does not decode, because another of its machine does


class SharedDecoding:
    """The machines of a run, which decode the pictures of a source together.

    One process per machine decodes. The pictures are dealt to these in blocks, in turn, and each
    sends what it has decoded to all processes. Nothing is shared if a machine cannot read the
    source, has other pictures, or has decoded all of them before: every machine then decodes alone.

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
    >>> SharedDecoding(ALONE).compare(ArraySource(np.zeros((3, 8, 8), np.uint8)), 0) is None
    True
    """

    def __init__(self, ranks: Ranks, announce: Callable[[], None] | None = None) -> None:
        self._ranks, self._announce = ranks, announce
        self._decoders: list[int] = []
        self._n = 0  # pictures in the source
        self.has_answered = self.is_exchanging = False

    def compare(self, source: ImageSource, done: int) -> list[int] | None:
        """Return how many pictures each machine has decoded before; None if nothing is shared.

        Parameters
        ----------
        source
            The pictures, as this machine sees them.
        done
            How many of them this machine has decoded before.
        """
        names = zlib.crc32("\0".join(source.names).encode("utf-8", "surrogateescape"))
        return self._exchange_counts([len(source), names, done])

    def decline(self) -> None:
        """Tell the others that this machine cannot take part, or need not."""
        self._exchange_counts(None)

    def listen(self) -> None:
        """Take part in all exchanges without decoding, in a process that is not a decoder."""
        while (counts := self._exchange_counts(LISTENS)) is not None:
            if min(counts) == max(counts):
                for number in range(-(-(self._n - counts[0]) // BLOCK)):
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
        n = len(source)
        blocks = [range(i, min(i + BLOCK, n)) for i in range(start, n, BLOCK)]
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
            yield batch
        self.is_exchanging = False

    def _decoder_of(self, number: int) -> int:
        """Return which process decodes a block."""
        return self._decoders[number % len(self._decoders)]

    def _exchange_counts(self, own: list[int] | str | None) -> list[int] | None:
        """Exchange what the machines have; return how much, or None if nothing can be shared."""
        if self._announce is not None and not self.has_answered:
            self._announce()
        self.has_answered = self.is_exchanging = True
        answers = [json.loads(text) for text in self._ranks.gather_texts(json.dumps(own))]
        self._decoders = [rank for rank, answer in enumerate(answers) if answer != LISTENS]
        found = [answers[rank] for rank in self._decoders]
        if len(found) > 1 and None not in found and len({tuple(one[:2]) for one in found}) == 1:
            self._n = found[0][0]
            return [one[2] for one in found]
        self.is_exchanging = False
        return None


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
