"""The files of the map of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from jule.files import array_bytes
from jule.runs.arrays import parse_array
from jule.runs.folder import RunFolder
from jule.runs.manifest import Manifest, damaged, read_listed
from jule.runs.names import MAP, MAP_NETWORK, MAP_TABLE
from jule.runs.tables import positions_csv

if TYPE_CHECKING:
    from jule.joint.lowdim import Map
    from jule.runs.results import RunResults


def map_files(learned: Map, names: Sequence[str], indices: NDArray[np.integer]) -> dict[str, bytes]:
    """Return the files of a map by name: positions as a table and as an array, and the network."""
    return {
        MAP_TABLE: positions_csv(names, learned.positions, indices),
        MAP: array_bytes(learned.positions),
        MAP_NETWORK: save(learned.mapper.weights()),
    }


def read_positions(run: RunFolder, manifest: Manifest, n: int) -> NDArray[np.float32] | None:
    """Read the positions of the n samples of a run on its map; None if it has none."""
    if MAP not in manifest:
        return None
    content = read_listed(run.folder, MAP, manifest)
    found: NDArray[np.float32] = parse_array(content, run.path(MAP), shape=(n, None), kind="f")
    return found


def read_map(run: RunFolder, results: RunResults, device: str = "auto") -> Map | None:
    """Load the map of a run, with the network that places samples; None if it has none.

    Parameters
    ----------
    run, results
        A finished run and its results.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """
    from jule.backward.embedder import best_device
    from jule.backward.mapper import Mapper
    from jule.joint.lowdim import Map

    if results.positions is None:
        return None
    path, content = run.path(MAP_NETWORK), run.read(MAP_NETWORK)
    try:
        mapper = Mapper.from_weights(load(content))
    except Exception as error:  # safetensors raises anything for damaged files
        raise damaged(path, error) from error
    width, outputs = results.result.embedding.shape[1], results.positions.shape[1]
    if mapper.shape != (width, outputs):
        raise damaged(path, f"it maps {mapper.shape[0]} numbers to {mapper.shape[1]}")
    return Map(mapper.to(best_device(device)), results.positions)
