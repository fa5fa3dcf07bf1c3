"""Read the samples of a run again, and write the tables of skipped and duplicate files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from jule.files import array_bytes, write_atomic
from jule.runs.arrays import parse_arrays
from jule.runs.folder import RunFolder
from jule.runs.manifest import read_manifest
from jule.runs.names import DIGESTS, DUPLICATES, IMAGES, LABELS, SKIPPED
from jule.runs.tables import duplicates_csv, parse_labels, skipped_csv
from jule.runs.trust import is_signed

if TYPE_CHECKING:
    from jule.images import ImageSource, Samples
    from jule.images.decoding.shared import SharedDecoding

GONE = "it is no longer there"
UNCLEAR = "it cannot be told apart from others with its name, because the source has changed"


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
    from jule.images import ArraySource, open_source  # loads Pillow

    if source is None and _has_images(run):
        path = run.path(IMAGES)
        return ArraySource(read_run_array(run), where=str(path))
    where, about = source or trusted_source(run), run.about()
    more = about.get("more", [])
    opened = open_source(where, labels_from_folders=about["folder_classes"] and not more)
    return _with_added(run, opened, more, everywhere=source is not None) if more else opened


def _with_added(
    run: RunFolder, first: ImageSource, more: list[dict[str, Any]], *, everywhere: bool
) -> ImageSource:
    """Return the pictures of a run to which others were added, in its order.

    `everywhere` means that the first source has all of them.
    """
    from jule.images import open_source
    from jule.images.sources.selected import SelectedSource

    table = parse_labels(run.read(LABELS), str(run.path(LABELS)))
    sources, places = [first], []
    counts = [len(table.names) - sum(one["count"] for one in more), *(one["count"] for one in more)]
    offsets = [0, *(one["offset"] for one in more)]
    done = 0
    for number, (count, offset) in enumerate(zip(counts, offsets, strict=True)):
        if number and not everywhere:
            sources.append(open_source(more[number - 1]["source"]))
        names = table.names[done : done + count]
        indices = (table.indices[done : done + count] - offset).tolist()
        for name, place in zip(names, find_again(sources[-1], names, indices), strict=True):
            if isinstance(place, str):
                raise ValueError(f"{name} is not in {sources[-1].where}: {place}")
            places.append((len(sources) - 1, place))
        done += count
    return SelectedSource(sources, places)


def find_again(
    source: ImageSource, names: Sequence[str], indices: Sequence[int]
) -> list[int | str]:
    """Find the pictures of a run in its source, which may have changed since.

    Parameters
    ----------
    source
        The source as it is now.
    names, indices
        The name of each picture of the run, and its position in the source then.

    Returns
    -------
    places
        The position of each picture now, or, as a string, why it is missing.

    Examples
    --------
    >>> from jule.images import ArraySource
    >>> source = ArraySource([[[1]], [[2]], [[3]]], names=["a", "a", "b"])
    >>> find_again(source, ["a", "a", "b"], [0, 1, 2])
    [0, 1, 2]
    >>> find_again(source, ["b", "c"], [0, 1])
    [2, 'it is no longer there']
    """
    n = len(source)
    if source.names == list(names):
        return list(range(n))
    if all(i < n and source.names[i] == name for i, name in zip(indices, names, strict=True)):
        return list(indices)
    # Positions have changed, so only names are left, and a repeated name identifies no picture.
    found: dict[str, list[int]] = {}
    for number, name in enumerate(source.names):
        found.setdefault(name, []).append(number)
    times = Counter(names)
    return [_by_name(source, found.get(name, []), times[name]) for name in names]


def _by_name(source: ImageSource, numbers: Sequence[int], times: int) -> int | str:
    if not numbers:
        return GONE
    files = {source.path(number) for number in numbers}
    is_one_file = len(files) == 1 and None not in files  # a list may name a file several times
    if is_one_file or (len(numbers) == 1 and times == 1):
        return numbers[0]
    return UNCLEAR


def read_run_array(run: RunFolder) -> NDArray:
    """Read the images that were saved with a run."""
    return parse_arrays(run.read(IMAGES), run.path(IMAGES), {"images": "fiu"})["images"]


def read_again(
    run: RunFolder,
    source: str | None = None,
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    shared: SharedDecoding | None = None,
) -> Samples:
    """Read the samples of a run again, from the original source or from a new one."""
    from jule.images import read_images

    opened = open_run_source(run, source)
    spec = None if run.about()["image_spec"] is None else run.image_spec()
    return read_images(opened, spec, cache=cache, progress=progress, shared=shared)


def write_reading(run: RunFolder, data: Samples) -> None:
    """Write the tables of skipped files and of exact duplicates, and the checksums of content."""
    write_atomic(run.path(SKIPPED), skipped_csv(data.skipped))
    duplicates = duplicates_csv(data.names, data.first_copies, data.indices)
    write_atomic(run.path(DUPLICATES), duplicates)
    write_atomic(run.path(DIGESTS), array_bytes(data.digests))
