"""Execute a run: start or resume it, save its states, write the results; learn its map."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.backward import Embedder
from jule.backward.embedder import best_device, get_weights, set_weights
from jule.files import array_bytes, delay_interrupts, make_folder, write_atomic
from jule.forward import prepare
from jule.forward.constraints import Constraints
from jule.images import fingerprint
from jule.images.read import digests_of
from jule.joint import finish, init_network, joint_learning
from jule.joint.loop import begin
from jule.joint.lowdim import learn_map, requested_map
from jule.joint.state import State, load_state, save_state
from jule.joint.team import SINGLE, Team
from jule.locks import hold
from jule.progress import Progress
from jule.runs.folder import RunFolder
from jule.runs.maps import map_files
from jule.runs.names import DIGESTS, SNAPSHOTS, STATES
from jule.runs.results import RunResults, new_results, read_results, write_results
from jule.runs.snapshots import save_snapshot, shown_samples, take_snapshot
from jule.runs.update import remove_leftovers


def execute(
    run: RunFolder,
    samples: NDArray,
    *,
    names: Sequence[str] | None = None,
    indices: NDArray[np.int64] | None = None,
    labels: NDArray | None = None,
    first_copies: NDArray[np.int64] | None = None,
    data: dict[str, Any] | None = None,
    constraints: Constraints | None = None,
    device: str = "auto",
    embedder: Embedder | None = None,
    progress: Progress | None = None,
    team: Team = SINGLE,
) -> RunResults:
    """Start a run, or resume it where it stopped, and write all its results.

    The results of a run that is already finished are read.

    Parameters
    ----------
    run
        A folder that `create_run` made.
    samples
        The images or vectors it was created for.
    names
        One path or name per sample; numbers by default.
    indices
        (n,) position of each sample in its source; 0, 1, ... by default.
    labels
        True classes, used only to score the result.
    first_copies
        (n,) index of the original of each sample, for exact copies.
    data
        The `fingerprint` of the samples, if it is already known.
    constraints
        Samples that must and must not share a cluster; the same ones when a run is resumed.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    embedder
        The network to train; by default one is built for the samples.
    progress
        Called with the name of a stage and the fraction of it that is done.
    team
        The processes that train, embed and search together; see `jule.joint.team`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from jule.joint import Config
    >>> from jule.runs.folder import create_run
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> with TemporaryDirectory() as folder:
    ...     run = create_run(folder, Config(n_clusters=2, min_images=100), fingerprint(points))
    ...     execute(run, points).result.n_clusters
    2
    """
    with hold(run.home), team.searching():
        if run.is_finished:
            return read_results(run)
        started = time.perf_counter()
        remove_leftovers(run.folder)
        config = run.config()
        _check_same_data(run, run.about()["data"], data or fingerprint(samples))
        embedder = (embedder or init_network(samples, config)).to(best_device(device))
        if not run.path(DIGESTS).exists():
            write_atomic(run.path(DIGESTS), array_bytes(digests_of(samples)))
        state = _load_or_begin(run, samples, embedder, constraints, progress)
        before = state.seconds
        for after in joint_learning(
            samples,
            embedder,
            config,
            state=state,
            labels=labels,
            constraints=constraints,
            progress=progress,
            team=team,
        ):
            state = replace(after, seconds=before + time.perf_counter() - started)
            _save(run, state)
        set_weights(embedder, state.network)
        result = finish(
            replace(state, constraints=constraints),
            config,
            embedding=team.embed(embedder, samples) if state.representation is None else None,
            samples=samples,
            first_copies=first_copies,
            progress=progress,
        )
        learned_map = requested_map(result, config, device=device, progress=progress)
        results = new_results(
            config,
            result,
            state.history,
            names=names,
            seconds=before + time.perf_counter() - started,
            true_labels=labels,
            first_copies=first_copies,
            indices=indices,
            learned_map=learned_map,
        )
        with delay_interrupts():
            # This also removes the states: nothing is to resume.
            write_results(run, results, embedder, learned_map)
        return results


def make_map(
    run: RunFolder,
    n_components: int = 2,
    *,
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
) -> RunResults:
    """Learn a map of a finished run and write its files; return the results with the map.

    Nothing of the run itself changes, and an earlier map is replaced.

    Parameters
    ----------
    run
        A finished run.
    n_components
        Number of dimensions.
    seed
        Random seed.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    progress
        Called with the name of a stage and the fraction of it that is done.
    """
    with hold(run.home):
        results = read_results(run)
        learned = learn_map(
            results.result, n_components, seed=seed, device=device, progress=progress
        )
        with delay_interrupts():
            run.update(map_files(learned, results.names, results.indices))
        return replace(results, positions=learned.positions)


def _identity(run: RunFolder, constraints: Constraints | None) -> dict[str, Any]:
    """Return what the states of a run must fit."""
    identity = {"config": run.config().to_json(), "data": run.about()["data"]}
    if constraints is not None:
        identity["constraints"] = zlib.crc32(
            constraints.apart.tobytes(), zlib.crc32(constraints.units.tobytes())
        )
    return identity


def _load_or_begin(
    run: RunFolder,
    samples: NDArray,
    embedder: Embedder,
    constraints: Constraints | None,
    progress: Progress | None,
) -> State:
    """Return the last state that was saved, or the one before the first period."""
    make_folder(run.path(STATES))
    network = get_weights(embedder)
    state = load_state(run.path(STATES), _identity(run, constraints), network=network)
    if state is None:
        config = run.config()
        state = replace(begin(samples, config, progress, constraints), network=network)
        raw = prepare(samples[shown_samples(len(samples))], config.preparation)
        save_snapshot(run.path(SNAPSHOTS), take_snapshot(0, raw, state.labels))
    return state


def _save(run: RunFolder, state: State) -> None:
    """Save the state after a period, and a snapshot of it."""
    assert state.representation is not None  # a period has just ended
    vectors = state.representation.vectors
    vectors = vectors[shown_samples(len(vectors))]
    with delay_interrupts():
        # The snapshot first: a period whose state is saved is not repeated.
        shot = take_snapshot(state.n_periods, vectors, state.labels)
        save_snapshot(run.path(SNAPSHOTS), shot)
        save_state(run.path(STATES), state, _identity(run, state.constraints))


def _check_same_data(run: RunFolder, then: dict[str, Any], now: dict[str, Any]) -> None:
    if now != then:
        raise ValueError(
            f"the data differs from that of {run.folder} ({now['dtype']} {now['shape']} now, "
            f"{then['dtype']} {then['shape']} then, or different values): use the original data"
        )
