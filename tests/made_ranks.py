"""Processes for tests: threads that exchange tensors and arrays as processes do."""

import json
import threading

import numpy as np

from jule.ranks import Ranks


class Threads(Ranks):
    """One of several threads that stand for processes."""

    def __init__(self, rank, shared):
        super().__init__(rank, shared.parties, 0, ("here",) * shared.parties)
        self.shared = shared

    def _all(self, value):
        """The values of all threads, in their order."""
        self.shared.board[self.rank] = value
        self._wait()
        found = [self.shared.board[rank] for rank in range(self.size)]
        self._wait()
        return found

    def _wait(self):
        # One thread computes at a time: not all thread pools may be used by several.
        self.shared.turn.release()
        try:
            self.shared.wait()
        finally:
            self.shared.turn.acquire()

    def tell(self, about, arrays=()):
        self._all((json.loads(json.dumps(about)), [array.copy() for array in arrays]))

    def hear(self, teller=0):
        return self._all(None)[teller]

    def gather_texts(self, text):
        return self._all(text)

    def sum_(self, values):
        total = sum(self._all(values.clone()))
        return values.copy_(total)

    def exchange_rows(self, rows, counts):
        first = sum(counts[: self.rank])
        return np.stack([each[first : first + counts[self.rank]] for each in self._all(rows)])

    def gather_rows(self, part, counts):
        found = self._all(part)
        return np.concatenate(found) if self.is_first else None


def together(size, work):
    """Call `work(ranks)` in `size` threads, and return what each returns."""
    shared = threading.Barrier(size)
    shared.board, shared.turn = {}, threading.Lock()
    found, errors = {}, []

    def run(rank):
        try:
            with shared.turn:
                found[rank] = work(Threads(rank, shared))
        except BaseException as error:
            errors.append(error)
            shared.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [found[rank] for rank in range(size)]
