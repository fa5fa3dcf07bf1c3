"""A folder of pictures and its subfolders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jule.images.sources.base import (
    NOT_UTF8,
    OTHER_KIND,
    Skipped,
    escape_name,
    is_hidden,
    is_picture_name,
    is_utf8,
)
from jule.images.sources.files import FileSource

RUN_FILES = {"config.json", "labels.csv"}  # a folder with these holds results, not pictures


def open_folder(folder: Path, *, labels_from_folders: bool = False) -> FileSource:
    """Open a folder and all its subfolders, sorted by name.

    Hidden files, hidden folders and the results of earlier runs are ignored. Links to files are
    followed; links to folders are not, because they may form a loop.

    Parameters
    ----------
    folder
        The folder to list.
    labels_from_folders
        Whether to use the folder of each picture as its true class, for evaluation.
    """
    names: list[str] = []
    skipped: list[Skipped] = []
    for name in sorted(_names_below(folder, skipped)):
        if not is_utf8(name):
            skipped.append(Skipped(escape_name(name), NOT_UTF8, is_picture_name(name)))
        elif not is_picture_name(name):
            skipped.append(Skipped(name, OTHER_KIND, is_picture=False))
        else:
            names.append(name)
    labels = None
    if labels_from_folders:
        labels = np.array([os.path.dirname(name) for name in names], str)
    return FileSource(str(folder), [folder / name for name in names], names, labels, skipped)


def _names_below(folder: Path, skipped: list[Skipped]) -> Iterator[str]:
    """Yield the relative path of every file, and add unreadable folders to `skipped`."""

    def skip_folder(error: OSError) -> None:
        if error.filename == os.fspath(folder):
            raise error
        below = os.path.relpath(error.filename, folder).replace(os.sep, "/")
        reason = f"this folder cannot be opened ({error.strerror})"
        skipped.append(Skipped(escape_name(below), reason))

    for root, folders, files in os.walk(folder, onerror=skip_folder):
        below = os.path.relpath(root, folder)
        if below != "." and set(files) >= RUN_FILES:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not is_hidden(name)]
        for name in files:
            if not is_hidden(name):
                path = name if below == "." else os.path.join(below, name)
                yield path.replace(os.sep, "/")
