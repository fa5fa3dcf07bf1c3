"""Keep workers for reuse: starting a process takes longer than decoding a few pictures.

An idle worker ends by itself after some seconds.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager

from jule.images.decoding.worker import Limits, Worker

_idle: list[Worker] = []


class Crew:
    """The workers of one task, which are borrowed one by one, in any thread.

    Examples
    --------
    >>> crew = Crew(Limits(2**30))
    >>> with crew.borrow() as worker:
    ...     worker.examine({0: b""}, colour=1)
    {0: 'it is empty'}
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._busy: set[Worker] = set()
        self._is_stopped = False

    @contextmanager
    def borrow(self) -> Iterator[Worker]:
        """Lend a worker until the end of the block."""
        worker = _take(self._limits)
        self._busy.add(worker)
        if self._is_stopped:
            worker.stop()
        try:
            yield worker
        except BaseException:
            self._busy.discard(worker)
            worker.close()
            raise
        self._busy.discard(worker)
        if self._is_stopped:
            worker.close()
        else:
            _idle.append(worker)

    def stop(self) -> None:
        """End all work at once, because the results are no longer needed."""
        self._is_stopped = True
        for worker in list(self._busy):
            worker.stop()


def _take(limits: Limits) -> Worker:
    try:
        worker = _idle.pop()
    except IndexError:
        return Worker(limits)
    worker.limits = limits
    return worker


@atexit.register
def close_idle_workers() -> None:
    """End the processes that wait for work.

    Examples
    --------
    >>> close_idle_workers()
    """
    while _idle:
        _idle.pop().close()


if hasattr(os, "register_at_fork"):
    # Two processes must not talk to one worker.
    os.register_at_fork(after_in_child=_idle.clear)
