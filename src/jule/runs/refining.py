"""Continue training the network of a run, with its corrections as constraints."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jule.backward import embed
from jule.corrections.constraints import constraints_from
from jule.files import delay_interrupts
from jule.forward.constraints import Constraints
from jule.joint import finish, represent
from jule.joint.config import Config
from jule.joint.loop import begin_round, join_members, next_period
from jule.joint.state import Period, State
from jule.locks import hold
from jule.progress import Progress
from jule.runs.corrected import base_of, correct
from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder
from jule.runs.names import EDITS, LABELS, LABELS_AUTO, MAP, MAP_NETWORK, MAP_TABLE, SNAPSHOTS
from jule.runs.results import RunResults, new_results, read_network, result_files
from jule.runs.tables import labels_csv

if TYPE_CHECKING:
    from jule.backward import Embedder

DEFAULT_PERIODS = 2


@dataclass(frozen=True, eq=False)
class Refined:
    """A run after more training, which can be accepted or not.

    Attributes
    ----------
    before, after
        The results with all corrections, before and after.
    found
        The new results without them.
    embedder
        The network after training.
    """

    before: RunResults
    after: RunResults
    found: RunResults
    embedder: Embedder

    def changes(self) -> list[tuple[int, int, int, int]]:
        """Return (cluster, stayed, left, joined) of every cluster of before, by pictures.

        A cluster of before is compared with the one of after that has most of its pictures.
        """
        old, new = self.before.result.labels, self.after.result.labels
        listed = []
        for cluster in range(self.before.result.n_clusters):
            inside = old == cluster
            match = int(np.bincount(new[inside]).argmax())
            stayed = int((inside & (new == match)).sum())
            joined = int(((new == match) & ~inside).sum())
            listed.append((cluster, stayed, int(inside.sum()) - stayed, joined))
        return listed


def refine(
    run: RunFolder,
    samples: NDArray,
    *,
    periods: int = DEFAULT_PERIODS,
    device: str = "auto",
    progress: Progress | None = None,
) -> Refined:
    """Train the network of a finished run for a few more periods, with its corrections.

    It is one more round of joint learning, from the learned representation: clusters obey all
    must-links and cannot-links, so that pairs of the former are trained as positives and those of
    the latter as negatives, and it ends with as many clusters as the corrections have left. The
    corrections are then applied to the result, names included. The run is not changed; see
    `accept`.

    Parameters
    ----------
    run
        A finished run.
    samples
        What its network sees: the pictures of the run, or the vectors of its encoder.
    periods
        Number of periods.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    progress
        Called with the name of a stage and the fraction of it that is done.
    """
    started = time.perf_counter()
    session = EditSession(run)
    found, log = session.found, session.editor.log
    k = len(session.state.numbers)
    if k == 0:
        raise ValueError(f"all pictures of {run.folder} are unsure, in no cluster: undo that first")
    config = replace(found.config, n_clusters=k, rounds=1, n_periods=periods, eta=None)
    pictures = base_of(found, found.result).pictures
    constraints = constraints_from(log.in_effect, pictures, found.first_copies)
    embedder = read_network(run, device=device)
    state = _train_on(samples, embedder, config, found.history, constraints, progress)
    result = finish(
        state,
        config,
        samples=samples,
        first_copies=found.first_copies,
        progress=progress,
    )
    again = new_results(
        found.config,
        result,
        (*found.history, *state.history),
        names=found.names,
        seconds=found.seconds + time.perf_counter() - started,
        first_copies=found.first_copies,
        indices=found.indices,
    )
    again = replace(again, digests=found.digests)
    return Refined(session.results(), correct(again, log), again, embedder)


def _train_on(
    samples: NDArray,
    embedder: Embedder,
    config: Config,
    history: tuple[Period, ...],
    constraints: Constraints,
    progress: Progress | None,
) -> State:
    """Train each network for one more round, from its own representation; return the last state."""
    state = State(constraints=constraints)
    for member in range(config.ensemble):
        vectors = embed(embedder.member(member), samples)
        learned = represent(vectors, config, progress, constraints)
        # The learning rate falls with the batches that this network has been trained with.
        step = sum(period.steps for period in history if period.member == member)
        start = replace(state, member=member, round=-1, step=step)
        state = begin_round(start, learned, config)
        while not state.ended:
            state = next_period(state, samples, embedder, config, progress=progress)
    if config.ensemble == 1:
        return state
    return join_members(state, embed(embedder, samples), config, progress=progress)


def accept(run: RunFolder, refined: Refined) -> None:
    """Replace the results of a run by refined ones, all files at once; a map is removed.

    Raises
    ------
    ValueError
        If the run has changed since it was refined: edits, or added pictures.
    """
    with hold(run.home):
        now, before = EditSession(run), refined.before
        if (now.found.id, now.revision) != (before.id, before.edits.revision):
            raise ValueError(f"{run.folder} was changed meanwhile: run jule refine again")
        files = result_files(refined.found, refined.embedder)
        after = refined.after
        manifest = run.manifest()
        if EDITS in manifest:  # without edits, labels.csv has the labels as they were found
            files[LABELS_AUTO] = files[LABELS]
        files[LABELS] = labels_csv(after.columns(), after.by_hand)
        stale = [name for name in manifest if name.startswith(f"{SNAPSHOTS}/")]
        with delay_interrupts():
            run.update(files, remove=(*stale, MAP, MAP_TABLE, MAP_NETWORK))


def n_moved(refined: Refined) -> int:
    """Return how many pictures are no longer with most of their cluster."""
    return sum(left for _, _, left, _ in refined.changes())
