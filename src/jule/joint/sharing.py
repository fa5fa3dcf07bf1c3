"""Joint learning by the processes of a group, all of which get the result."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray

from jule.backward import Embedder
from jule.backward.embedder import set_weights
from jule.forward import MergeTree, Neighbors, affinity_graph
from jule.forward.constraints import Constraints
from jule.joint.clustering import Inputs, Representation
from jule.joint.config import Config
from jule.joint.loop import joint_learning
from jule.joint.state import Period, State
from jule.joint.team import Team, serve
from jule.progress import Progress
from jule.ranks import DisagreementError, LostRankError, Ranks


def check_agreement(ranks: Ranks, facts: Mapping[str, Any]) -> None:
    """Raise in all processes if what they are given differs.

    Parameters
    ----------
    ranks
        The processes; all of them call this.
    facts
        Plain values by name, such as settings and checksums.

    Examples
    --------
    >>> from jule.ranks import ALONE
    >>> check_agreement(ALONE, {"seed": 0})
    """
    if ranks.size == 1:
        return
    found = [json.loads(text) for text in ranks.gather_texts(json.dumps(dict(facts)))]
    for rank, theirs in enumerate(found):
        for name, value in theirs.items():
            if value != found[0][name]:
                raise DisagreementError(
                    f"{name} is {value} on {ranks.name(rank)} and {found[0][name]} on "
                    f"{ranks.name(0)}: all processes of a group fit the same samples with the same "
                    "settings"
                )


def learn_together(
    ranks: Ranks,
    samples: NDArray,
    embedder: Embedder,
    config: Config,
    *,
    labels: NDArray | None = None,
    constraints: Constraints | None = None,
    progress: Progress | None = None,
) -> State:
    """Run Algorithm 1 on all processes, and return its last state to each of them.

    Parameters
    ----------
    ranks
        The processes; all of them call this with the same samples and settings.
    samples, embedder, config, labels, constraints, progress
        As for `joint_learning`.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.joint import init_network
    >>> from jule.ranks import ALONE
    >>> points = np.random.default_rng(0).normal(size=(50, 2))
    >>> config = Config(n_clusters=2, min_images=200)
    >>> learn_together(ALONE, points, init_network(points, config), config).n_clusters
    2
    """
    if not ranks.is_first:
        if not serve(ranks, samples, embedder):
            raise LostRankError("rank 0 has failed: its own output says why")
        state = _hear_state(ranks, config, constraints)
        set_weights(embedder, state.network)
        return state
    team = Team(ranks)
    with team.leading():
        team.begin()
        with team.searching():
            states = joint_learning(
                samples,
                embedder,
                config,
                labels=labels,
                constraints=constraints,
                progress=progress,
                team=team,
            )
            state = deque(states, maxlen=1).pop()
    _tell_state(ranks, state)
    return state


def _tell_state(ranks: Ranks, state: State) -> None:
    """Send all that the result is made of: the last state, and what is not saved with it."""
    if ranks.size == 1:
        return
    learned, inputs, trees = state.representation, state.inputs, state.member_trees or ()
    assert learned is not None  # a period has just ended
    assert inputs is not None  # the state was not read from a file
    arrays = [state.labels, learned.vectors]
    for neighbors in (learned.neighbors, inputs.neighbors):
        arrays += [neighbors.indices, neighbors.distances]
    for tree in (inputs.tree, *trees):
        arrays += [tree.merges, tree.affinities]
    about = {
        "history": [asdict(period) for period in state.history],
        "recalls": [each.recall for each in (learned.neighbors, inputs.neighbors)],
        "forced": [tree.n_forced for tree in (inputs.tree, *trees)],
        "weights": list(state.network),
    }
    ranks.tell(about, [*arrays, *state.network.values()])


def _hear_state(ranks: Ranks, config: Config, constraints: Constraints | None) -> State:
    about, arrays = ranks.hear()
    rest = iter(arrays)
    labels, vectors = next(rest), next(rest)
    learned, given = (Neighbors(next(rest), next(rest), recall) for recall in about["recalls"])
    tree, *trees = (
        MergeTree(len(labels), next(rest), next(rest), n_forced=n_forced)
        for n_forced in about["forced"]
    )
    graphs = [affinity_graph(neighbors, config.a) for neighbors in (learned, given)]
    return State(
        labels=labels,
        network=dict(zip(about["weights"], rest, strict=True)),
        history=tuple(Period.from_json(period) for period in about["history"]),
        representation=Representation(vectors, learned, graphs[0], constraints),
        inputs=Inputs(given, graphs[1], tree),
        member_trees=tuple(trees) or None,
        constraints=constraints,
    )
