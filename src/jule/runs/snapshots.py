"""Positions of the samples after each period: the stages of the paper's Fig. 1."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from jule.files import make_folder, write_arrays

MOST_SAMPLES = 2000  # more points only hide each other
MOST_BYTES = 100_000  # of an array of a snapshot; the positions have 24,000 and a header
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
    path = make_folder(folder) / f"snapshot-{snapshot.period:04d}.npz"
    write_arrays(
        path,
        period=np.int64(snapshot.period),
        samples=snapshot.samples,
        positions=snapshot.positions,
        labels=snapshot.labels,
        n_clusters=np.int64(snapshot.n_clusters),
    )
    return path


def load_snapshots(
    read: Callable[[str], bytes], names: Iterable[str], n_samples: int
) -> list[Snapshot]:
    """Read the snapshots of a run, in the order of their periods.

    They only decorate the page: one that cannot be read or is damaged is left out with a warning.

    Parameters
    ----------
    read
        Returns the content of a file of the run.
    names
        Names of files of the run, such as ``"snapshots/snapshot-0001.npz"``; others are ignored.
    n_samples
        The number of samples of the run.

    Examples
    --------
    >>> load_snapshots(lambda name: b"", ["labels.csv"], 10)
    []
    """
    found = []
    for name in names:
        if not NAME.fullmatch(name.rpartition("/")[2]):
            continue
        try:
            found.append(parse_snapshot(read(name), n_samples))
        except Exception as error:  # zipfile, zlib and numpy raise anything for damaged bytes
            reason = str(error) or type(error).__name__
            named = reason if name in reason else f"{name} is damaged ({reason})"
            warnings.warn(f"left out: {named}", stacklevel=2)
    return sorted(found, key=lambda shot: shot.period)


def parse_snapshot(content: bytes, n_samples: int) -> Snapshot:
    """Read the content of a file that `save_snapshot` wrote.

    Raises
    ------
    Exception
        Of any kind, if the content is damaged.
    """
    with ZipFile(io.BytesIO(content)) as archive:
        largest = max((member.file_size for member in archive.infolist()), default=0)
    if largest > MOST_BYTES:  # before it is unpacked
        raise ValueError("it is too large for a snapshot")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        shot = Snapshot(
            int(arrays["period"][()]),
            arrays["samples"],
            arrays["positions"],
            arrays["labels"],
            int(arrays["n_clusters"][()]),
        )
    _check(shot, n_samples)
    return shot


def _check(shot: Snapshot, n_samples: int) -> None:
    m = len(shown_samples(n_samples))
    expected = ((shot.samples, np.int32, (m,)), (shot.labels, np.int32, (m,)))
    for array, dtype, shape in (*expected, (shot.positions, np.float32, (m, 3))):
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(f"it has {array.dtype} {array.shape} where {shape} is expected")
    if shot.period < 0 or not 0 < shot.n_clusters <= n_samples:
        raise ValueError("its numbers are out of range")
    if shot.samples.min() < 0 or shot.samples.max() >= n_samples:
        raise ValueError("it shows samples that are not in the run")
    if shot.labels.min() < 0 or shot.labels.max() >= shot.n_clusters:
        raise ValueError("its clusters are out of range")
    if not np.isfinite(shot.positions).all():
        raise ValueError("its positions are not finite")
