"""What a report needs beside a run's results: its images again, and what lies in its folder."""

from __future__ import annotations

import csv
import json
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images import fingerprint
from jule.images.read import first_of_equal
from jule.runs import Finished, Run, read_again

NAMES = "cluster_names.json"
AUTO = "labels_auto.csv"  # what the machine had found, once somebody changed it


def images_of(run: Run, source: str | Path | None = None) -> tuple[NDArray | None, str]:
    """Read the images of a run again; None and the reason where that cannot be done.

    Examples
    --------
    >>> images, problem = images_of(Run(Path("faces")))  # doctest: +SKIP
    """
    about = run.about()
    found = source or about["source"]
    if not found:
        return None, "the run does not say where its images are"
    try:
        images = read_again(run, str(found)).samples
    except (OSError, ValueError) as error:
        return None, str(error)
    if fingerprint(images) != about["data"]:
        return None, f"{found} is not what the run was made with any more"
    return images, ""


def skipped_files(run: Run) -> list[tuple[str, str]]:
    """Read which files were left out, and why.

    Examples
    --------
    >>> skipped_files(Run(Path("nowhere")))
    []
    """
    return [(row["path"], row["reason"]) for row in _rows(run.path("skipped.csv"))]


def duplicate_files(run: Run) -> list[list[str]] | None:
    """Read which files are exact copies of each other, the first copy first; None if nobody looked.

    Examples
    --------
    >>> duplicate_files(Run(Path("nowhere"))) is None
    True
    """
    if not run.path("duplicates.csv").exists():
        return None
    groups: dict[str, list[str]] = {}
    for row in _rows(run.path("duplicates.csv")):
        groups.setdefault(row["same_as"], [row["same_as"]]).append(row["path"])
    return list(groups.values())


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return list(csv.DictReader(file))


def identical_images(images: NDArray | None) -> list[list[int]]:
    """Find images that are equal in every pixel, as groups of their numbers.

    Examples
    --------
    >>> identical_images(np.array([[1, 2], [3, 4], [1, 2]]))
    [[0, 2]]
    """
    if images is None:
        return []
    rows = np.ascontiguousarray(images).reshape(len(images), -1).view(np.uint8)
    groups: dict[int, list[int]] = {}
    for number, first in enumerate(first_of_equal(rows).tolist()):
        groups.setdefault(first, []).append(number)
    return [group for group in groups.values() if len(group) > 1]


def cluster_names(run: Run) -> dict[int, str]:
    """Read the names that somebody gave to clusters.

    Examples
    --------
    >>> cluster_names(Run(Path("nowhere")))
    {}
    """
    path = run.path(NAMES)
    if not path.exists():
        return {}
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["names"]
        return {int(cluster): str(name) for cluster, name in names.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def run_id(finished: Finished) -> str:
    """Give what tells one run's results from another's: a checksum of its tree and its names.

    Examples
    --------
    >>> run_id(finished)  # doctest: +SKIP
    '5f3a9c01'
    """
    value = zlib.crc32(finished.result.tree.merges.astype("<i8").tobytes())
    for name in finished.names:
        value = zlib.crc32(name.encode("utf-8", "surrogateescape") + b"\0", value)
    return f"{value:08x}"


def labels_id(labels: NDArray[np.integer]) -> str:
    """Give what tells one clustering of a run from another.

    Examples
    --------
    >>> labels_id(np.array([0, 1])) == labels_id(np.array([1, 0]))
    False
    """
    return f"{zlib.crc32(labels.astype('<i4').tobytes()):08x}"
