"""Read the samples of a run again, and write the tables of skipped and duplicate files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from numpy.typing import NDArray

from jule.files import write_atomic
from jule.images import ArraySource, ImageSource, Samples, open_source, read_images
from jule.runs.arrays import parse_arrays
from jule.runs.folder import RunFolder
from jule.runs.manifest import read_manifest
from jule.runs.names import DUPLICATES, IMAGES, SKIPPED
from jule.runs.tables import duplicates_csv, skipped_csv
from jule.runs.trust import is_signed


class UntrustedSourceError(ValueError):
    """The source of a run is not read, because somebody else made the run.

    Attributes
    ----------
    source
        Where the run says its images are.
    """

    def __init__(self, run: RunFolder, source: str) -> None:
        super().__init__(
            f"{run.home} was not made by you on this machine, so its images are not read from "
            f"{source}: pass their source (source=, or --source) to allow it"
        )
        self.source = source


def trusted_source(run: RunFolder) -> str:
    """Return where the images of a run are, as far as the run can be trusted to say so.

    Raises
    ------
    UntrustedSourceError
        If the run was made by another user and its images are not among its files.
    ValueError
        If the run does not say where its images are.
    """
    if _has_images(run):
        return str(run.path(IMAGES))
    about = run.about()
    source: str = about["source"]
    if not source:
        raise ValueError(
            f"{run.home} does not say where its images are: pass their source "
            "(source=, or --source)"
        )
    if not is_signed(about):
        raise UntrustedSourceError(run, source)
    return source


def _has_images(run: RunFolder) -> bool:
    """Return whether the images are a file of the run, as for a model that was saved."""
    return IMAGES in (read_manifest(run.folder) or {})


def open_run_source(run: RunFolder, source: str | None = None) -> ImageSource:
    """Open the images of a run: from `source`, from the run itself, or from where it says."""
    if source is None and _has_images(run):
        path = run.path(IMAGES)
        return ArraySource(read_run_array(run), where=str(path))
    where = source or trusted_source(run)
    return open_source(where, labels_from_folders=run.about()["folder_classes"])


def read_run_array(run: RunFolder) -> NDArray:
    """Read the images that were saved with a run."""
    return parse_arrays(run.read(IMAGES), run.path(IMAGES), {"images": "fiu"})["images"]


def read_again(
    run: RunFolder,
    source: str | None = None,
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Samples:
    """Read the samples of a run again, from the original source or from a new one."""
    opened = open_run_source(run, source)
    spec = None if run.about()["image_spec"] is None else run.image_spec()
    return read_images(opened, spec, cache=cache, progress=progress)


def write_reading(run: RunFolder, data: Samples) -> None:
    """Write the tables of skipped files and of exact duplicates."""
    write_atomic(run.path(SKIPPED), skipped_csv(data.skipped))
    duplicates = duplicates_csv(data.names, data.first_copies, data.indices)
    write_atomic(run.path(DUPLICATES), duplicates)
