"""Read the samples of a run again, and write the tables of skipped and duplicate files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jule.images import ImageSpec, Samples, open_source, read_images
from jule.runs.folder import DUPLICATES, SKIPPED, RunFolder
from jule.runs.tables import write_duplicates, write_skipped


def read_again(
    run: RunFolder,
    source: str | None = None,
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Samples:
    """Read the samples of a run again, from the original source or from a new one."""
    about = run.about()
    where = source or about["source"]
    if not where:
        raise ValueError(
            f"{run.folder} does not say where its images are: pass their source (--source)"
        )
    opened = open_source(where, labels_from_folders=bool(about["folder_classes"]))
    spec = None if about["image_spec"] is None else ImageSpec(**about["image_spec"])
    return read_images(opened, spec, cache=cache, progress=progress)


def write_reading(run: RunFolder, data: Samples) -> None:
    """Write the tables of skipped files and of exact duplicates."""
    write_skipped(run.path(SKIPPED), data.skipped)
    write_duplicates(run.path(DUPLICATES), data.names, data.first_copies)
