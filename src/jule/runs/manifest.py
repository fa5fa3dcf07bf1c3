"""The manifest of a run: size and checksum of each of its files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from jule.files import MOST_JSON, checked_json, parse_checked_json, read_large, read_regular
from jule.runs.names import CONFIG, ERRORS, FOLDERS, MANIFEST, STATES, is_own_name

FORMAT = "jule-manifest-1"


class DamagedError(ValueError):
    """A file of a run is damaged or missing; the message names it."""


@dataclass(frozen=True)
class Entry:
    """Size and SHA-256 checksum of a file."""

    size: int
    sha256: str


Manifest = dict[str, Entry]
Content = TypeVar("Content", bytes, memoryview)


def describe(content: bytes | memoryview) -> Entry:
    """Return the entry of a file with the given content.

    Examples
    --------
    >>> describe(b"").size
    0
    """
    return Entry(len(content), hashlib.sha256(content).hexdigest())


def manifest_bytes(manifest: Mapping[str, Entry]) -> bytes:
    """Return a manifest as JSON with a checksum of its own.

    Examples
    --------
    >>> parse_manifest(manifest_bytes({"labels.csv": describe(b"")}))["labels.csv"].size
    0
    """
    files = {name: asdict(manifest[name]) for name in sorted(manifest)}
    return checked_json({"format": FORMAT, "files": files})


def parse_manifest(content: bytes) -> Manifest:
    """Parse a manifest; raise ValueError if it is damaged or lists files that no run has.

    Examples
    --------
    >>> parse_manifest(b"{}")
    Traceback (most recent call last):
    ...
    ValueError: its checksum is wrong
    """
    return dict(_parse(content))


@lru_cache(maxsize=2)  # a command reads the same manifest dozens of times
def _parse(content: bytes) -> Manifest:
    value = parse_checked_json(content)
    files = value.get("files")
    if value.get("format") != FORMAT or not isinstance(files, dict):
        raise ValueError(f"its format is not {FORMAT!r}")
    for name, entry in files.items():
        if not is_own_name(name) or not _is_entry(entry):
            raise ValueError(f"it lists {name!r}, which is not a file of a run")
    return {name: Entry(**entry) for name, entry in files.items()}


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == {"size", "sha256"}
        and type(entry["size"]) is int
        and isinstance(entry["sha256"], str)
    )


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a run; return None if there is none.

    Raises
    ------
    DamagedError
        If it cannot be read.

    Examples
    --------
    >>> read_manifest(Path("nowhere")) is None
    True
    """
    try:
        return parse_manifest(read_regular(folder / MANIFEST, MOST_JSON))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, OSError) as error:
        raise damaged(folder / MANIFEST, error) from error


def read_listed(folder: Path, name: str, manifest: Mapping[str, Entry]) -> bytes:
    """Return the content of a file of a run, after comparing it with the manifest."""
    return _read(folder, name, manifest, read_regular)


def read_listed_large(folder: Path, name: str, manifest: Mapping[str, Entry]) -> memoryview:
    """Return the content of a large file of a run; see `read_listed` and `read_large`."""
    return _read(folder, name, manifest, read_large)


def _read(
    folder: Path, name: str, manifest: Mapping[str, Entry], read: Callable[[Path, int], Content]
) -> Content:
    path = folder / name
    if name not in manifest:
        raise DamagedError(f"{path} is missing: {MANIFEST} does not list it")
    check_real_parent(folder, name)
    try:
        content = read(path, manifest[name].size)
    except FileNotFoundError:
        raise DamagedError(
            f"{path} is missing: copy the run again, or make it again with jule cluster --overwrite"
        ) from None
    except (ValueError, OSError) as error:
        raise damaged(path, error) from error
    if describe(content) != manifest[name]:
        raise damaged(path, "it has changed since it was written")
    return content


def damaged(path: Path, reason: object) -> DamagedError:
    """Return an error that names a damaged file and says what to do.

    Examples
    --------
    >>> print(damaged(Path("run/labels.csv"), "it is empty"))
    run/labels.csv is damaged (it is empty): copy the run again, or run jule cluster --overwrite
    """
    if isinstance(reason, OSError) and reason.strerror:
        reason = reason.strerror
    text = " ".join(str(reason).split()) or type(reason).__name__
    text = text.removeprefix(f"{path} ").removeprefix("is ")
    return DamagedError(
        f"{path} is damaged ({text}): copy the run again, or run jule cluster --overwrite"
    )


def check_real_parent(folder: Path, name: str) -> None:
    """Raise if a file of a run is in a folder that is a link."""
    parent = (folder / name).parent
    if parent != folder and parent.is_symlink():
        raise DamagedError(f"{parent} is a link, not a folder of the run: remove it")


def own_files(folder: Path) -> set[str]:
    """Return the names of all files in a folder that belong to its run.

    They are listed in the manifest, except for states and the log of errors. Without a manifest the
    run is not finished, or was written by an earlier version, and its files are known by their
    names.

    Examples
    --------
    >>> own_files(Path("nowhere"))
    set()
    """
    found = {name for name in _names_in(folder) if is_own_name(name)}
    try:
        manifest = read_manifest(folder)
    except DamagedError:
        manifest = None
    if manifest is None:
        return found if CONFIG in found or MANIFEST in found else set()
    unlisted = {name for name in found if name.startswith(f"{STATES}/")} | {MANIFEST, ERRORS}
    return found & (set(manifest) | unlisted)


def _names_in(folder: Path) -> list[str]:
    names = []
    for below in ("", *FOLDERS):
        place = folder / below
        if place.is_dir() and not (below and place.is_symlink()):
            entries = [one for one in os.scandir(place) if not one.is_dir(follow_symlinks=False)]
            names += [f"{below}/{one.name}" if below else one.name for one in entries]
    return names
