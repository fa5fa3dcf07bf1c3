"""The arrays that the page works with in the browser."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from jule.corrections.suggest import near_duplicates
from jule.forward import Digraph
from jule.report.layout import as_int16, centred, coordinates, umap_map
from jule.report.sample import FEWEST_NEIGHBORS, Sample, neighbors_shown
from jule.report.summary import stages
from jule.runs.results import RunResults
from jule.runs.snapshots import Snapshot

FULL_CONFIDENCE = 65_535
FULL_AFFINITY = 255
BROWSER_TYPES = {
    "uint8": "Uint8Array",
    "uint16": "Uint16Array",
    "int16": "Int16Array",
    "int32": "Int32Array",
    "float32": "Float32Array",
}


def page_arrays(
    results: RunResults,
    snapshots: Sequence[Snapshot] = (),
    *,
    umap: bool = True,
    positions: Mapping[str, NDArray] | None = None,
    sample: Sample | None = None,
) -> dict[str, NDArray]:
    """Collect labels, confidence, tree, neighbours and positions of all samples, or of some.

    Parameters
    ----------
    results
        The results of the run.
    snapshots
        The positions of the samples after each period.
    umap
        Whether to add a UMAP map where umap-learn is installed.
    positions
        The positions of an earlier page, which are used as they are.
    sample
        The samples that the page shows; None for all. Of a sample, there are neither a UMAP map nor
        stacks nor votes of several networks.
    """
    if sample is not None:
        return _sampled_arrays(results, snapshots, positions, sample)
    result = results.result
    arrays: dict[str, NDArray] = {
        **cluster_arrays(results),
        **_graph_arrays(result.graphs, neighbors_shown(results)),
        **(_positions(results, umap=umap) if positions is None else positions),
    }
    for number, tree in enumerate(result.member_trees):
        arrays[f"member{number}_merges"] = tree.merges.astype(np.int32)
    if (results.indices != np.arange(len(results.indices))).any():
        arrays["indices"] = results.indices.astype(np.int32)
    if (results.first_copies != np.arange(len(results.first_copies))).any():
        arrays["copies"] = results.first_copies.astype(np.int32)
    tops = stack_tops(results)
    if (tops != np.arange(len(tops))).any():
        arrays["stacks"] = tops
    if results.positions is not None and results.positions.shape[1] == 2:
        arrays["map"] = as_int16(centred(results.positions))
    for place, shot in enumerate(stages(snapshots)):
        arrays[f"stage{place}_samples"] = shot.samples
        arrays[f"stage{place}_positions"] = as_int16(shot.positions)
        arrays[f"stage{place}_labels"] = shot.labels
    return arrays


def _sampled_arrays(
    results: RunResults,
    snapshots: Sequence[Snapshot],
    positions: Mapping[str, NDArray] | None,
    sample: Sample,
) -> dict[str, NDArray]:
    result, rows, stands_for = results.result, sample.rows, sample.stands_for
    if positions is None:
        positions = {"coords": as_int16(coordinates(result.embedding[rows]))}
    arrays: dict[str, NDArray] = {
        "rows": rows.astype(np.int32),
        "counts": sample.counts,
        **cluster_arrays(results, sample),
        **_graph_arrays(result.graphs, FEWEST_NEIGHBORS, sample),
        **positions,
    }
    if (results.indices != np.arange(len(results.indices))).any():
        arrays["indices"] = results.indices[rows].astype(np.int32)
    _, first, inverse = np.unique(
        results.first_copies[rows], return_index=True, return_inverse=True
    )
    if len(first) < len(rows):
        arrays["copies"] = first[inverse.reshape(-1)].astype(np.int32)
    if results.positions is not None and results.positions.shape[1] == 2:
        arrays["map"] = as_int16(centred(results.positions))[rows]
    for place, shot in enumerate(stages(snapshots)):
        arrays[f"stage{place}_samples"] = stands_for[shot.samples]
        arrays[f"stage{place}_positions"] = as_int16(shot.positions)
        arrays[f"stage{place}_labels"] = shot.labels
    return arrays


def _graph_arrays(
    graphs: Sequence[Digraph], count: int, sample: Sample | None = None
) -> dict[str, NDArray]:
    """Return the nearest neighbours and codes of their affinity, as learned and before learning.

    Of a sample, the image that stands for a neighbour is in its place.
    """
    some = slice(None) if sample is None else sample.rows
    arrays: dict[str, NDArray] = {}
    for kind, graph in zip(("", "input_"), graphs, strict=False):
        near = graph.indices[some, :count]
        arrays[f"{kind}neighbors"] = (near if sample is None else sample.stands_for[near]).astype(
            np.int32
        )
        # Codes of the roots: those of small affinities are far enough apart.
        codes = np.round(FULL_AFFINITY * np.sqrt(graph.weights[some, :count]))
        arrays[f"{kind}affinity_codes"] = codes.astype(np.uint8)
    return arrays


def stack_tops(results: RunResults) -> NDArray[np.int32]:
    """Return the sample on top of each one's stack of near-duplicates; itself if it has none."""
    result = results.result
    neighbors = result.neighbors if result.input_neighbors is None else result.input_neighbors
    tops = np.arange(len(result.labels), dtype=np.int32)
    for stack in near_duplicates(neighbors, result.labels):
        tops[stack] = stack[0]
    return tops


def cluster_arrays(results: RunResults, sample: Sample | None = None) -> dict[str, NDArray]:
    """Collect the arrays that change when clusters are edited."""
    result = results.result
    some = slice(None) if sample is None else sample.rows
    arrays: dict[str, NDArray] = {
        "labels": result.labels[some].astype(np.int32),
        "confidence": np.round(FULL_CONFIDENCE * result.confidence[some]).astype(np.uint16),
        "merges": result.tree.merges.astype(np.int32),
        "affinities": result.tree.affinities.astype(np.float32),
        "fixed": _fixed_merges(results, sample),
    }
    if sample is not None:
        arrays |= {name: getattr(sample, name) for name in ("merges", "affinities", "sizes")}
    if results.by_hand.any():
        arrays["by_hand"] = results.by_hand[some].astype(np.uint8)
    return arrays


def _fixed_merges(results: RunResults, sample: Sample | None = None) -> NDArray[np.int32]:
    """Return how many merges no cut undoes, at the beginning, and how many none makes, at the end.

    The first ones join exact copies and what a person has put together, the last ones what a person
    keeps apart.
    """
    tree = results.result.tree if sample is None else sample
    return np.array([tree.n_copies, tree.n_forced], np.int32)


def _positions(results: RunResults, *, umap: bool) -> dict[str, NDArray]:
    result = results.result
    arrays: dict[str, NDArray] = {"coords": as_int16(coordinates(result.embedding))}
    found = umap_map(result.embedding, result.neighbors, results.config.seed) if umap else None
    if found is not None:
        arrays["umap"] = as_int16(centred(found))
    return arrays


def for_browser(array: NDArray) -> dict[str, str]:
    """Encode an array for a typed array of the browser, little-endian.

    Examples
    --------
    >>> for_browser(np.array([1, 2], np.uint8))
    {'type': 'Uint8Array', 'base64': 'AQI='}
    """
    kind, content = browser_bytes(array)
    return {"type": kind, "base64": content.decode("ascii")}


def browser_bytes(array: NDArray) -> tuple[str, bytes]:
    """Return the type of an array in the browser, and its content in base64, little-endian.

    Examples
    --------
    >>> browser_bytes(np.array([1, 2], np.uint8))
    ('Uint8Array', b'AQI=')
    """
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return BROWSER_TYPES[array.dtype.name], base64.b64encode(plain.data)
