"""Change several files of a run at once: all of them or none, even if the process is killed.

New files are first written to a folder of their own, and last of all the manifest that lists the
files of the run after the change. From that moment the change is decided: whoever opens the run
next completes it. Until then it is as if nothing had happened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from jule.files import (
    is_leftover,
    make_folder,
    mode_of,
    read_regular,
    remove_parts,
    remove_tree,
    sync_folder,
    write_atomic,
    write_new,
)
from jule.locks import hold
from jule.runs.manifest import (
    DamagedError,
    Manifest,
    describe,
    manifest_bytes,
    own_files,
    read_manifest,
)
from jule.runs.names import (
    ERRORS,
    FOLDERS,
    MANIFEST,
    NEXT,
    SNAPSHOTS,
    STATES,
    UPDATE,
    is_own_name,
)

MOST_SNAPSHOT = 2**24  # bytes; it has at most 2,000 samples
PATIENCE = 30.0  # seconds to wait for a process that is completing a change


def update_files(folder: Path, files: Mapping[str, bytes], *, remove: Iterable[str] = ()) -> None:
    """Write and remove files of a run, all at once, together with its manifest.

    Parameters
    ----------
    folder
        The folder of a run. If it has no manifest yet, the run is finished by this update.
    files
        The content of each file, by its name in the folder.
    remove
        Names of files to remove, if they exist.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     update_files(Path(folder), {"config.json": b"{}", "labels.csv": b"path"})
    ...     sorted(os.listdir(folder))
    ['config.json', 'labels.csv', 'manifest.json']
    """
    with hold(folder):
        recover(folder)
        after = _manifest_now(folder)
        for name in remove:
            after.pop(name, None)
        _check_targets(folder, files)
        staged = folder / UPDATE
        try:
            _stage(staged, files, after)
        except BaseException:
            if not _is_decided(staged):
                with suppress(OSError):  # gives back the space of a full disk
                    remove_tree(staged)
            raise
        _complete(staged, folder)


def _stage(staged: Path, files: Mapping[str, bytes], manifest: Manifest) -> None:
    """Write files to a folder of their own, and last of all the manifest with them added."""
    remove_tree(staged)
    make_folder(staged)
    for name, content in files.items():
        make_folder((staged / name).parent)
        write_new(staged / name, content, mode=mode_of(staged.parent / name))
        manifest[name] = describe(content)
    _sync(staged)
    write_atomic(staged / MANIFEST, manifest_bytes(manifest))


def _manifest_now(folder: Path) -> Manifest:
    manifest = read_manifest(folder)
    if manifest is not None:
        return manifest
    found = {}
    for name in own_files(folder) - {MANIFEST, ERRORS}:
        if name.startswith(f"{SNAPSHOTS}/"):
            with suppress(ValueError):  # only decoration: a link or a pipe is not part of the run
                found[name] = describe(read_regular(folder / name, MOST_SNAPSHOT))
        elif not name.startswith(f"{STATES}/"):
            found[name] = describe(read_regular(folder / name))
    return found


def _check_targets(folder: Path, names: Iterable[str]) -> None:
    """Raise if a file cannot be put in its place, before anything is decided."""
    for name in names:
        path = folder / name
        if not is_own_name(name):
            raise ValueError(f"{name!r} is not a file of a run")
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError(f"{path} is a folder where a file is needed: remove it")
        if path.parent != folder and (path.parent.is_symlink() or path.parent.is_file()):
            raise NotADirectoryError(
                f"{path.parent} is a link or a file where a folder is needed: remove it"
            )


def _complete(staged: Path, folder: Path) -> None:
    """Move staged files into place; a process that is killed meanwhile can repeat it."""
    after = read_manifest(staged)
    assert after is not None  # its existence is what decided the change
    kept = {MANIFEST, ERRORS} if staged.name == UPDATE else {MANIFEST}
    for name in sorted(own_files(folder) - set(after) - kept):
        (folder / name).unlink(missing_ok=True)
    for name in sorted(after):
        if os.path.lexists(staged / name):
            if "/" in name:
                make_folder((folder / name).parent)
            os.replace(staged / name, folder / name)
    _sync(folder)
    os.replace(staged / MANIFEST, folder / MANIFEST)
    sync_folder(folder)
    remove_tree(staged)
    for below in FOLDERS:
        with suppress(OSError):  # it does not exist, or has files of the user
            (folder / below).rmdir()


def _sync(folder: Path) -> None:
    for below in FOLDERS:
        if (folder / below).is_dir() and not (folder / below).is_symlink():
            sync_folder(folder / below)
    sync_folder(folder)


def recover(folder: Path) -> None:
    """Complete a change of a run that was decided but not completed, if there is one.

    Examples
    --------
    >>> recover(Path("nowhere"))
    """
    following = folder / NEXT
    if _is_decided(following / UPDATE):
        with hold(folder, wait=PATIENCE):
            if _is_decided(following / UPDATE):
                _complete(following / UPDATE, following)
    for staged in (folder / UPDATE, following):
        if _is_decided(staged):
            with hold(folder, wait=PATIENCE):
                if _is_decided(staged):
                    _complete(staged, folder)


def _is_decided(staged: Path) -> bool:
    # Links could lead to files of others, which would be moved.
    folders = (staged, *(staged / below for below in FOLDERS))
    if any(folder.is_symlink() for folder in folders):
        return False
    if staged.parent.name == NEXT and staged.parent.is_symlink():
        return False
    try:
        return read_manifest(staged) is not None
    except DamagedError:
        return False


def replace_run(folder: Path) -> None:
    """Replace the run in a folder with the finished one in its folder `.jule-next`."""
    with hold(folder):
        recover(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left in a run folder, except for a run that can be resumed."""
    with hold(folder):
        recover(folder)
        remove_tree(folder / UPDATE)
        for below in ("", *FOLDERS):
            remove_parts(folder / below)


def is_empty(folder: Path) -> bool:
    """Return whether a folder does not exist, or has nothing but leftovers in it.

    Examples
    --------
    >>> is_empty(Path("nowhere"))
    True
    """
    if not folder.exists():
        return True
    return all(is_leftover(name) or name == UPDATE for name in os.listdir(folder))
