"""A text or CSV file that lists pictures, and patterns such as photos/**/*.jpg."""

from __future__ import annotations

import csv
import glob
import io
import os
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images.files import FileSource
from jule.images.source import NOT_TEXT, Skipped, is_hidden, is_picture_name, is_text, shown

SUFFIXES = (".txt", ".lst", ".csv", ".tsv")
PATH_COLUMNS = ("path", "file", "filename", "file_name", "image", "image_path", "name")
LABEL_COLUMNS = ("label", "class", "target")


def open_list(path: Path) -> FileSource:
    """Open a list of pictures: one path a line, or a CSV with a column of paths.

    Paths are taken from the folder of the list. The column is called path, file, filename, image
    or name; where there is no such column, the first one is taken. A column label, class or target
    holds true classes, to score the result by.

    Examples
    --------
    >>> open_list(Path("photos.csv"))  # doctest: +SKIP
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a list in UTF-8: {error}") from error
    if path.suffix.lower() in (".csv", ".tsv"):
        try:
            names, labels = _of_table(text, "\t" if path.suffix.lower() == ".tsv" else ",")
        except csv.Error as error:
            raise ValueError(f"{path} cannot be read as a table: {error}") from error
    else:
        names, labels = [line.strip() for line in text.splitlines() if line.strip()], None
    if not names:
        raise ValueError(f"{path} lists nothing: one path a line is expected")
    return FileSource(str(path), [path.parent / name for name in names], names, labels)


def _of_table(text: str, delimiter: str) -> tuple[list[str], NDArray | None]:
    # Not line by line: a name in quotes may have a newline in it.
    table = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = [row for row in table if any(cell.strip() for cell in row)]
    head = [cell.strip().lower() for cell in rows[0]] if rows else []
    known = [head.index(name) for name in PATH_COLUMNS if name in head]
    if known or not (head and is_picture_name(rows[0][0])):
        rows = rows[1:]
    column = known[0] if known else 0
    rows = [row for row in rows if len(row) > column]
    names = [row[column].strip() for row in rows]
    classes = [head.index(name) for name in LABEL_COLUMNS if name in head]
    if not classes or not known:
        return names, None
    return names, np.array([row[classes[0]] if len(row) > classes[0] else "" for row in rows], str)


def open_pattern(pattern: str) -> FileSource:
    """Open all pictures that a pattern finds: * and ? for letters, ** for folders.

    Names begin where the pattern does, after its last plain folder.

    Examples
    --------
    >>> open_pattern("photos/2024-*/**/*.jpg")  # doctest: +SKIP
    """
    names, left_out = [], []
    for name in sorted(glob.glob(os.path.expanduser(pattern), recursive=True)):
        if is_hidden(os.path.basename(name)) or os.path.isdir(name) or not is_picture_name(name):
            continue
        if is_text(name):
            names.append(name)
        else:
            left_out.append(Skipped(shown(name), NOT_TEXT))
    if not names:
        raise FileNotFoundError(f"no picture is found by the pattern {pattern!r}")
    plain = plain_folder(os.path.expanduser(pattern))
    return FileSource(
        pattern,
        [Path(name) for name in names],
        [os.path.relpath(name, plain).replace(os.sep, "/") for name in names],
        None,
        left_out,
    )


def plain_folder(pattern: str) -> str:
    """Give the folder that all files of a pattern lie below.

    Examples
    --------
    >>> plain_folder("photos/2024-*/a.jpg"), plain_folder("*.jpg")
    ('photos', '.')
    """
    before = re.split(r"[*?\[]", pattern)[0]
    return os.path.dirname(before) or ("/" if before.startswith("/") else ".")
