"""The numbers that the page works with in the browser, as arrays of plain types."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jule.forward import MergeTree
from jule.joint.clustering import View
from jule.report.layout import as_int16, coordinates, umap_map
from jule.report.summary import stages
from jule.runs import Finished
from jule.snapshots import Snapshot

NEIGHBORS = 8  # shown for an image, and asked how sure a cut of the tree is
BROWSER_TYPES = {
    "uint8": "Uint8Array",
    "uint16": "Uint16Array",
    "int16": "Int16Array",
    "int32": "Int32Array",
    "float32": "Float32Array",
}


def page_arrays(
    finished: Finished, seen: View, snapshots: Sequence[Snapshot] = (), *, umap: bool = True
) -> dict[str, NDArray]:
    """Gather what the page needs of every sample: labels, tree, neighbours, positions.

    `umap` adds a second map where umap-learn is installed.

    Examples
    --------
    >>> page_arrays(finished, seen)["neighbors"].shape  # doctest: +SKIP
    (1797, 8)
    """
    result = finished.result
    arrays: dict[str, NDArray] = {
        "labels": result.labels.astype(np.int32),
        "confidence": np.round(255 * result.confidence).astype(np.uint8),
        "merges": result.tree.merges.astype(np.int32),
        "affinities": result.tree.affinities.astype(np.float32),
        "neighbors": seen.neighbors.indices[:, :NEIGHBORS].astype(np.int32),
        "coords": as_int16(coordinates(result.embedding)),
    }
    seed = finished.config.seed
    better = umap_map(result.embedding, seen.neighbors, seed) if umap else None
    if better is not None:
        arrays["umap"] = as_int16(better - (better.min(axis=0) + better.max(axis=0)) / 2)
    for place, shot in enumerate(stages(snapshots)):
        arrays[f"stage{place}_samples"] = shot.samples
        arrays[f"stage{place}_positions"] = as_int16(shot.positions)
        arrays[f"stage{place}_labels"] = shot.labels
    return arrays


def leaf_order(tree: MergeTree) -> NDArray[np.int64]:
    """Give the samples from left to right in the tree: those of any cluster side by side.

    Examples
    --------
    >>> leaf_order(MergeTree(3, np.array([[0, 2], [1, 3]]), np.array([0.5, 0.1]))).tolist()
    [1, 0, 2]
    """
    n, merges = tree.n_samples, tree.merges.tolist()
    sizes = [1] * n
    for left, right in merges:
        sizes.append(sizes[left] + sizes[right])
    starts = [-1] * len(sizes)
    free = 0
    for node in range(len(sizes) - 1, -1, -1):
        if starts[node] < 0:  # a root
            starts[node] = free
            free += sizes[node]
        if node >= n:
            left, right = merges[node - n]
            starts[left] = starts[node]
            starts[right] = starts[node] + sizes[left]
    return np.argsort(np.array(starts[:n], np.int64), kind="stable")


def for_browser(array: NDArray) -> dict[str, str]:
    """Encode an array for a typed array of the browser, little-endian.

    Examples
    --------
    >>> for_browser(np.array([1, 2], np.uint8))
    {'type': 'Uint8Array', 'base64': 'AQI='}
    """
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "type": BROWSER_TYPES[array.dtype.name],
        "base64": base64.b64encode(plain.tobytes()).decode("ascii"),
    }
