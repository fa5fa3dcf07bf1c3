"""A folder of pictures, with all that lies in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jule.images.files import FileSource
from jule.images.source import (
    NOT_TEXT,
    OTHER_KIND,
    Skipped,
    is_hidden,
    is_picture_name,
    is_text,
    shown,
)

RUN_FILES = {"config.json", "labels.csv"}  # a folder with these holds results, not pictures


def open_folder(folder: Path, *, labels_from_folders: bool = False) -> FileSource:
    """Open a folder and everything below it, in the order of the names.

    Hidden files and folders are passed over, and so are the results of earlier runs. Links to
    files are followed, links to folders are not: they may lead in a circle.

    Parameters
    ----------
    folder
        Where to look.
    labels_from_folders
        Take the folder that a picture lies in as its true class, to score the result by.

    Examples
    --------
    >>> open_folder(Path("photos"))  # doctest: +SKIP
    """
    names: list[str] = []
    left_out: list[Skipped] = []
    for name in sorted(_names_below(folder, left_out)):
        if not is_text(name):
            left_out.append(Skipped(shown(name), NOT_TEXT, is_picture_name(name)))
        elif not is_picture_name(name):
            left_out.append(Skipped(name, OTHER_KIND, picture=False))
        else:
            names.append(name)
    labels = None
    if labels_from_folders:
        labels = np.array([os.path.dirname(name) for name in names], str)
    return FileSource(str(folder), [folder / name for name in names], names, labels, left_out)


def _names_below(folder: Path, left_out: list[Skipped]) -> Iterator[str]:
    """Give the path of every file below a folder, with / between; closed folders are left out."""

    def refuse(error: OSError) -> None:
        if error.filename == os.fspath(folder):
            raise error
        below = os.path.relpath(error.filename, folder).replace(os.sep, "/")
        left_out.append(Skipped(shown(below), f"this folder cannot be opened ({error.strerror})"))

    for root, folders, files in os.walk(folder, onerror=refuse):
        below = os.path.relpath(root, folder)
        if below != "." and set(files) >= RUN_FILES:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not is_hidden(name)]
        for name in files:
            if not is_hidden(name):
                path = name if below == "." else os.path.join(below, name)
                yield path.replace(os.sep, "/")
