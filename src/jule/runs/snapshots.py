"""Positions of the samples after each period: the stages of the paper's Fig. 1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.files import write_arrays

MOST_SAMPLES = 2000  # more points only hide each other
FEW_AXES = 512
NAME = re.compile(r"snapshot-(\d{4})\.npz")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The samples of a run after a number of periods.

    Attributes
    ----------
    period
        The number of periods; 0 means raw pixels and initial clusters.
    samples
        (m,) int32: indices of the samples shown; all samples if there are few.
    positions
        (m, 3) float32: their first three principal components.
    labels
        (m,) int32: their clusters at that time.
    n_clusters
        The number of clusters of all samples at that time.
    """

    period: int
    samples: NDArray[np.int32]
    positions: NDArray[np.float32]
    labels: NDArray[np.int32]
    n_clusters: int


def shown_samples(n_samples: int) -> NDArray[np.int32]:
    """Return the indices of the samples in snapshots: all, or 2,000 evenly spaced ones.

    Examples
    --------
    >>> shown_samples(4).tolist(), len(shown_samples(70_000))
    ([0, 1, 2, 3], 2000)
    """
    count = min(n_samples, MOST_SAMPLES)
    return (np.arange(count) * n_samples // count).astype(np.int32)


def take_snapshot(
    period: int, vectors: NDArray[np.floating], labels: NDArray[np.integer]
) -> Snapshot:
    """Return a snapshot of a run after a number of periods.

    Parameters
    ----------
    period
        The number of periods so far.
    vectors
        (m, ...) raw or learned vectors of the `shown_samples`.
    labels
        (n,) clusters of all samples.

    Examples
    --------
    >>> take_snapshot(0, np.eye(4), np.array([0, 0, 1, 1])).positions.shape
    (4, 3)
    """
    samples = shown_samples(len(labels))
    positions = principal_components(vectors, 3).astype(np.float32)
    shown = labels[samples].astype(np.int32)
    return Snapshot(period, samples, positions, shown, int(labels.max()) + 1)


def principal_components(vectors: NDArray[np.floating], count: int) -> NDArray[np.float64]:
    """Project vectors onto their first principal axes, (n, count); missing axes give zeros.

    The sign of an axis is arbitrary. Its largest entry is made positive, so that the snapshots of a
    run are not mirrored.

    Examples
    --------
    >>> principal_components(np.array([[0.0, 1.0], [2.0, 1.0]]), 3).tolist()
    [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    flat = np.asarray(vectors, np.float64).reshape(len(vectors), -1)
    centred = flat - flat.mean(axis=0)
    axes = _first_axes(centred, min(count, *centred.shape))
    largest = np.abs(axes).argmax(axis=0)
    axes *= np.where(axes[largest, np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    found = np.zeros((len(flat), count))
    found[:, : axes.shape[1]] = centred @ axes
    return found


def _first_axes(centred: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the first principal axes, (d, count), from the smaller of both Gram matrices."""
    n, width = centred.shape
    small = centred.T @ centred if width <= n else centred @ centred.T
    if len(small) <= FEW_AXES:
        values, vectors = np.linalg.eigh(small)
        values, vectors = values[-count:], vectors[:, -count:]
    else:
        from scipy.linalg import eigh  # slow to import, but far faster for a few axes of many

        values, vectors = eigh(small, subset_by_index=(len(small) - count, len(small) - 1))
    found = vectors[:, ::-1]
    if width <= n:
        return np.ascontiguousarray(found)
    lengths = np.sqrt(np.maximum(values[::-1], 0.0))
    axes: NDArray[np.float64] = (centred.T @ found) / np.where(lengths > 0, lengths, 1.0)
    return axes


def save_snapshot(folder: Path, snapshot: Snapshot) -> Path:
    """Write a snapshot, atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"snapshot-{snapshot.period:04d}.npz"
    write_arrays(
        path,
        period=np.int64(snapshot.period),
        samples=snapshot.samples,
        positions=snapshot.positions,
        labels=snapshot.labels,
        n_clusters=np.int64(snapshot.n_clusters),
    )
    return path


def load_snapshots(folder: Path) -> list[Snapshot]:
    """Read all snapshots in a folder, in order; return an empty list if it does not exist.

    Examples
    --------
    >>> load_snapshots(Path("nowhere"))
    []
    """
    if not folder.is_dir():
        return []
    paths = sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))
    return [_read(path) for path in paths]


def _read(path: Path) -> Snapshot:
    with np.load(path, allow_pickle=False) as archive:
        return Snapshot(
            int(archive["period"]),
            archive["samples"],
            archive["positions"],
            archive["labels"],
            int(archive["n_clusters"]),
        )
