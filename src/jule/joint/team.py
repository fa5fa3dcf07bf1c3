"""The processes that work on one run together.

The first process runs the ordinary program: it merges, decides, and alone writes the run folder. It
orders the others to train, to embed and to search neighbours with it. They keep nothing between two
orders except the samples: the weights and labels come with each order. A run can therefore be
resumed with any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.backward import Embedder, Training, embed, train
from jule.backward.batches import Pairs
from jule.backward.embedder import get_weights, set_weights
from jule.backward.training import EMBED_AT_ONCE
from jule.forward.cells import Cells, divide
from jule.forward.neighbors import Neighbors
from jule.forward.search import Method, search_alone, search_with
from jule.forward.sharded import (
    even_counts,
    is_worth_sharing,
    search_cells_together,
    search_together,
)
from jule.images.decoding.shared import SharedDecoding
from jule.ranks import ALONE, LostRankError, Ranks

Share = Callable[[float], None]

TRAIN, EMBED, SEARCH, CELLS, END = "train", "embed", "search", "cells", "end"


class Team:
    """The processes of a run, as the first of them sees them; often it is alone.

    Parameters
    ----------
    ranks
        The processes. The others must be in `serve` with the same samples.

    Examples
    --------
    >>> Team(ALONE).embed.__name__
    'embed'
    """

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self._is_listening = ranks.size > 1  # the others wait for what this one tells them
        self._is_serving = False

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Lead the others within this context: they are let go at its end, also after an error."""
        try:
            yield
        except BaseException:
            with suppress(LostRankError):  # they are gone already
                self.end(failed=True)
            raise
        self.end()

    def begin(self) -> None:
        """Order others from now on; they must be in `serve`."""
        self._is_serving = self.ranks.size > 1

    def end(self, *, failed: bool = False) -> None:
        """Let the others go, once."""
        # In the middle of an order they do not listen, but notice that this process ends.
        if self._is_listening:
            self.ranks.tell({"do": END, "failed": failed})
        self._is_listening = self._is_serving = False

    @contextmanager
    def decoding(self, order: dict[str, Any]) -> Iterator[SharedDecoding]:
        """Decode pictures together within this context, if this process has to decode any.

        Parameters
        ----------
        order
            What the others are told then: where the pictures are, and their target size.
        """
        shared = SharedDecoding(self.ranks, partial(self.ranks.tell, order))
        try:
            yield shared
        except BaseException:
            self._is_listening = not shared.is_exchanging
            raise

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Search neighbours together within this context."""
        with search_with(self.search if self._is_serving else None):
            yield

    @contextmanager
    def _order(self, do: str, about: dict[str, Any], arrays: list[NDArray]) -> Iterator[None]:
        self._is_listening = False
        self.ranks.tell({"do": do, **about}, arrays)
        yield
        self._is_listening = True  # not after an error

    def train(
        self,
        network: Embedder,
        samples: NDArray,
        labels: NDArray[np.integer],
        *,
        n_steps: int,
        first_step: int,
        settings: Training,
        seed: list[int],
        pairs: Pairs | None = None,
        progress: Share | None = None,
    ) -> list[float]:
        """Train a network together; see `jule.backward.train`."""
        how: dict[str, Any] = {"n_steps": n_steps, "first_step": first_step, "seed": seed}
        how_all = {**how, "settings": settings, "pairs": pairs, "progress": progress}
        work = partial(train, network, samples, labels, **how_all)
        if not self._is_serving:
            return work()
        about = {"network": _describe(network), "settings": asdict(settings), "how": how}
        given = [] if pairs is None else [pairs.together, pairs.apart]
        with self._order(TRAIN, about, [labels, *given, *get_weights(network).values()]):
            return work(ranks=self.ranks)

    def embed(
        self, network: Embedder, samples: NDArray, *, progress: Share | None = None
    ) -> NDArray[np.float32]:
        """Embed samples together, each process some of them; see `jule.backward.embed`."""
        if not self._is_serving or len(samples) < self.ranks.size:
            return embed(network, samples, progress=progress)
        about = {"network": _describe(network)}
        with self._order(EMBED, about, list(get_weights(network).values())):
            embedding = _embed_share(network, samples, self.ranks, progress)
        assert embedding is not None  # the first process gets all rows
        return embedding

    def search(
        self,
        vectors: NDArray[np.floating],
        k: int,
        method: Method,
        seed: int,
        progress: Share | None = None,
    ) -> Neighbors:
        """Search neighbours together; see `jule.forward.nearest_neighbors`."""
        if not self._is_serving:
            return search_alone(vectors, k, method, seed, progress)
        cells = divide(vectors, k, seed) if method == "approximate" else None
        if cells is not None:
            about = {"k": k, "n_searched": cells.n_searched}
            arrays: list[NDArray] = [vectors, cells.order, cells.bounds, cells.centres]
            with self._order(CELLS, about, arrays):
                found = search_cells_together(vectors, cells, k, self.ranks, progress)
        elif is_worth_sharing(len(vectors), k, self.ranks.size):
            with self._order(SEARCH, {"k": k}, [vectors]):
                found = search_together(vectors, k, self.ranks, progress)
        else:
            return search_alone(vectors, k, "exact", seed, progress)
        assert found is not None  # as above
        return found


SINGLE = Team(ALONE)


def serve(ranks: Ranks, samples: NDArray, embedder: Embedder) -> bool:
    """Do what the first process orders, until it lets this one go.

    Parameters
    ----------
    ranks
        The processes of the run, of which this one is not the first.
    samples
        The samples of the run.
    embedder
        A network like that of the first process; its weights are replaced by each order.

    Returns
    -------
    bool
        Whether the first process has finished its work, and not failed.
    """
    while True:
        about, arrays = ranks.hear()
        if about["do"] == END:
            return not about["failed"]
        if about["do"] == SEARCH:
            search_together(arrays[0], about["k"], ranks)
            continue
        if about["do"] == CELLS:
            vectors, order, bounds, centres = arrays
            cells = Cells(order, bounds, centres, about["n_searched"])
            search_cells_together(vectors, cells, about["k"], ranks)
            continue
        network = embedder.member(0) if about["network"]["is_member"] else embedder
        names = about["network"]["weights"]
        set_weights(network, dict(zip(names, arrays[-len(names) :], strict=True)))
        if about["do"] == TRAIN:
            settings = Training(**about["settings"])
            labels, *given = arrays[: -len(names)]
            pairs = Pairs(*given) if given else None
            how = {**about["how"], "settings": settings, "pairs": pairs}
            train(network, samples, labels, ranks=ranks, **how)
        else:
            _embed_share(network, samples, ranks)


def _describe(network: Embedder) -> dict[str, Any]:
    """Return which network the weights belong to: one of an ensemble, or all of it."""
    return {"is_member": len(network.members) == 1, "weights": list(get_weights(network))}


def _embed_share(
    network: Embedder, samples: NDArray, ranks: Ranks, progress: Share | None = None
) -> NDArray[np.float32] | None:
    """Embed the rows of this process, and return all rows to the first one."""
    # Whole batches, so that each sample is computed in the same batch as by a single process.
    is_large = len(samples) >= ranks.size * EMBED_AT_ONCE
    counts = even_counts(len(samples), ranks.size, EMBED_AT_ONCE if is_large else 1)
    first = sum(counts[: ranks.rank])
    rows = samples[first : first + counts[ranks.rank]]
    return ranks.gather_rows(embed(network, rows, progress=progress), counts)
