"""Text and CSV files that list pictures, and patterns such as photos/**/*.jpg."""

from __future__ import annotations

import csv
import glob
import io
import os
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images.sources.base import (
    LONGEST_NAME,
    NOT_UTF8,
    TOO_LONG,
    Skipped,
    escape_name,
    is_hidden,
    is_picture_name,
    is_utf8,
    shorten_name,
)
from jule.images.sources.files import FileSource
from jule.memory import check_memory

SUFFIXES = (".txt", ".lst", ".csv", ".tsv")
PATH_COLUMNS = ("path", "file", "filename", "file_name", "image", "image_path", "name")
LIST_MEMORY = 12  # bytes of memory per byte of a list: text, names and paths
LABEL_COLUMNS = ("label", "class", "target")


def open_list(path: Path) -> FileSource:
    """Open a list of pictures: one path per line, or a CSV file with a column of paths.

    Paths are relative to the folder of the list. The column of paths is called path, file,
    filename, image or name; otherwise the first column is used. A column label, class or target
    contains true classes, for evaluation.
    """
    check_memory(LIST_MEMORY * path.stat().st_size, f"the list {path}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a list in UTF-8: {error}") from None
    if path.suffix.lower() in (".csv", ".tsv"):
        try:
            names, labels = _parse_table(text, "\t" if path.suffix.lower() == ".tsv" else ",")
        except csv.Error as error:
            raise ValueError(f"{path} cannot be read as a table: {error}") from error
    else:
        names, labels = [line.strip() for line in text.splitlines() if line.strip()], None
    if not names:
        raise ValueError(f"{path} lists no pictures: expected one path per line")
    short = [index for index, name in enumerate(names) if len(name) <= LONGEST_NAME]
    skipped = [Skipped(shorten_name(n), TOO_LONG) for n in names if len(n) > LONGEST_NAME]
    names = [names[index] for index in short]
    labels = None if labels is None else labels[short]
    return FileSource(str(path), [path.parent / name for name in names], names, labels, skipped)


def _parse_table(text: str, delimiter: str) -> tuple[list[str], NDArray | None]:
    """Return the paths of a table, and the true classes if it has them."""
    # Not line by line: a quoted name may contain a newline.
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
    """Open all pictures that match a pattern: * and ? for characters, ** for folders.

    Names are relative to the last folder of the pattern that has no wildcard.
    """
    names, skipped = [], []
    for name in sorted(glob.glob(os.path.expanduser(pattern), recursive=True)):
        if is_hidden(os.path.basename(name)) or os.path.isdir(name) or not is_picture_name(name):
            continue
        if is_utf8(name):
            names.append(name)
        else:
            skipped.append(Skipped(escape_name(name), NOT_UTF8))
    if not names:
        raise FileNotFoundError(f"no picture matches the pattern {pattern!r}")
    base = base_folder(os.path.expanduser(pattern))
    return FileSource(
        pattern,
        [Path(name) for name in names],
        [os.path.relpath(name, base).replace(os.sep, "/") for name in names],
        None,
        skipped,
    )


def base_folder(pattern: str) -> str:
    """Return the folder that contains everything a pattern can match.

    Examples
    --------
    >>> base_folder("photos/2024-*/a.jpg"), base_folder("*.jpg")
    ('photos', '.')
    """
    before = re.split(r"[*?\[]", pattern)[0]
    return os.path.dirname(before) or ("/" if before.startswith("/") else ".")
