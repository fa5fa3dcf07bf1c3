"""Read what decorates the page and the figures of a run. What is damaged is left out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from numpy.typing import NDArray

from jule.runs.folder import RunFolder
from jule.runs.manifest import read_manifest
from jule.runs.names import SKIPPED, SNAPSHOTS
from jule.runs.reading import read_again, trusted_source
from jule.runs.snapshots import Snapshot, load_snapshots
from jule.runs.tables import parse_skipped


def read_run_images(run: RunFolder, source: str | Path | None = None) -> tuple[NDArray | None, str]:
    """Read the images of a run again.

    Parameters
    ----------
    run
        The run.
    source
        Where the images are, if they have been moved since the run.

    Returns
    -------
    images
        The images; None if they cannot be read or differ from those of the run.
    problem
        The reason if there are no images, otherwise an empty string.
    """
    try:
        data = read_again(run, None if source is None else str(source))
        if data.fingerprint != run.about()["data"]:
            return None, f"{source or trusted_source(run)} has changed since the run"
    except Exception as error:  # a page without pictures is better than none
        return None, str(error) or type(error).__name__
    return data.samples, ""


def is_trusted(run: RunFolder) -> bool:
    """Return whether the folder that a run calls its source may be looked at."""
    try:
        return bool(trusted_source(run))
    except ValueError:
        return False


def read_snapshots(run: RunFolder, n_samples: int) -> list[Snapshot]:
    """Read the positions of the samples of a run after each period."""
    return load_snapshots(run.read, _listed(run, f"{SNAPSHOTS}/"), n_samples)


def read_skipped(run: RunFolder) -> list[tuple[str, str]]:
    """Read (path, reason) of the files that could not be read for a run."""
    try:
        found = [parse_skipped(run.read(name), name) for name in _listed(run, SKIPPED)]
    except Exception as error:
        warnings.warn(f"left out: {error}", stacklevel=2)  # which names the file
        return []
    return [one for table in found for one in table]


def _listed(run: RunFolder, beginning: str) -> list[str]:
    return sorted(name for name in read_manifest(run.folder) or {} if name.startswith(beginning))


def originals_url(source: str | Path, names: Sequence[str]) -> str | None:
    """Return the URL of the folder with the images; None if they are not in a folder.

    Examples
    --------
    >>> originals_url("digits.npz", ["0", "1"]) is None
    True
    """
    folder = Path(source)
    try:
        if source and names and folder.is_dir() and (folder / names[0]).is_file():
            return folder.resolve().as_uri() + "/"
    except (OSError, ValueError):
        pass  # a name that no file can have
    return None
