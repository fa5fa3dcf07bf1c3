"""Corrections from a spreadsheet: a table of pictures with the cluster or name they belong to."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jule.corrections.apply import SHELF, SHELF_NAME, Corrected
from jule.corrections.editor import Editor
from jule.corrections.edits import Edit, checked_name
from jule.text import undefuse

DELIMITERS = ",;\t"
MENTIONED = 5  # problems in an error message


@dataclass(frozen=True)
class Row:
    """A row of a table of corrections.

    Attributes
    ----------
    line
        Its line in the file, from 1.
    path
        The path of the picture.
    index
        Its position in the source of the run; None if the table does not say.
    cluster
        The number of its cluster, as in labels.csv, -1 if unsure; None if the table does not
        say.
    name
        The name of its cluster; empty if the table does not say.
    """

    line: int
    path: str
    index: int | None
    cluster: int | None
    name: str


def parse_corrections(content: bytes, where: str) -> list[Row]:
    r"""Read a table of corrections: CSV with commas, semicolons or tabs, as spreadsheets write it.

    It needs a column ``path`` and a column ``name`` or ``cluster``, and may have a column
    ``index``; other columns are not read.

    Parameters
    ----------
    content
        The bytes of the file, in UTF-8, with or without a byte order mark.
    where
        The file, for error messages.

    Raises
    ------
    ValueError
        If the table is not like that; the message names the first lines that are wrong.

    Examples
    --------
    >>> parse_corrections(b"\xef\xbb\xbfpath;name\r\na.jpg;cats\r\n", "labels.csv")
    [Row(line=2, path='a.jpg', index=None, cluster=None, name='cats')]
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{where} is not UTF-8 (line {line}): save it as 'CSV UTF-8' in the spreadsheet"
        ) from None
    first = text.split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    wrong: list[str] = []
    try:
        head = [cell.strip().lower() for cell in next(reader, [])]
        _check_head(head, where)
        for cells in reader:
            if any(cell.strip() for cell in cells):  # spreadsheets leave empty rows
                _add_row(rows, wrong, reader.line_num, head, cells)
    except csv.Error as error:
        raise ValueError(f"{where}, line {reader.line_num}: {error}") from None
    if wrong:
        more = "; ..." if len(wrong) > MENTIONED else ""
        raise ValueError(f"{where} is not applied: {'; '.join(wrong[:MENTIONED])}{more}")
    return rows


def _check_head(head: Sequence[str], where: str) -> None:
    if "path" not in head or not {"name", "cluster"} & set(head):
        shown = ", ".join(head)[:100] or "nothing"
        raise ValueError(
            f"{where}, line 1: the columns must be path, and name or cluster, got {shown}"
        )
    twice = [name for name in ("path", "name", "cluster", "index") if head.count(name) > 1]
    if twice:
        raise ValueError(f"{where}, line 1: the column {twice[0]} is there twice")


def _add_row(
    rows: list[Row], wrong: list[str], line: int, head: Sequence[str], cells: Sequence[str]
) -> None:
    """Add a row of the table, or what is wrong with it."""
    if len(cells) != len(head):
        wrong.append(f"line {line} has {len(cells)} cells instead of {len(head)}")
        return
    values = dict(zip(head, cells, strict=True))
    numbers: dict[str, int | None] = {}
    for name in ("index", "cluster"):
        cell = values.get(name, "").strip()
        if name == "cluster" and cell == str(SHELF):
            numbers[name] = SHELF
            continue
        if cell and not (cell.isascii() and cell.isdigit() and len(cell) <= 10):
            wrong.append(f"line {line}: {name} {cell[:40]!r} is not a whole number")
            return
        numbers[name] = int(cell) if cell else None
    try:
        name = checked_name(undefuse(values.get("name", "").strip()))
    except ValueError as error:
        wrong.append(f"line {line}: {error}")
        return
    path = undefuse(values["path"])
    rows.append(Row(line, path, numbers["index"], numbers["cluster"], name))


def rows_as_edits(
    editor: Editor, rows: Sequence[Row], indices: NDArray[np.int64], where: str
) -> list[Edit]:
    """Turn a table of corrections into edits, and apply them.

    Where a row gives another name than its picture's cluster has, the picture goes to the cluster
    of that name. If none has it, and most pictures of a cluster are given that name, the cluster
    is named; otherwise these pictures become a new cluster. Where a row gives no name, or the one
    that the cluster has, its number counts: numbers are those of labels.csv, -1 is the shelf, and
    numbers that no cluster has make new clusters. What is on the shelf and called so needs none.

    Parameters
    ----------
    editor
        The clustering; the edits are added to it.
    rows
        The table.
    indices
        (n,) position of each picture in the source of the run.
    where
        The file, for error messages.

    Returns
    -------
    edits
        The edits that were added.
    """
    samples = _find(editor, rows, indices, where)
    labels, names = editor.state.labels, {**editor.state.names, SHELF: SHELF_NAME}
    known = set(editor.state.numbers.tolist())
    by_name: dict[str, list[int]] = {}
    by_number: dict[int, list[int]] = {}
    for row, sample in zip(rows, samples, strict=True):
        number = int(labels[sample])
        if row.name and row.name != names.get(number, ""):
            by_name.setdefault(row.name, []).append(sample)
        elif row.name == SHELF_NAME and row.cluster not in known:
            continue  # tables of earlier versions have a number of its own for the shelf
        elif row.cluster is not None and row.cluster != number:
            by_number.setdefault(row.cluster, []).append(sample)
    before = editor.log.done
    for name in sorted(by_name):
        _to_name(editor, name, by_name[name])
    for number in sorted(by_number):
        editor.add(_to_number(editor, number, by_number[number], known))
    return list(editor.log.in_effect[before:])


def _find(editor: Editor, rows: Sequence[Row], indices: NDArray[np.int64], where: str) -> list[int]:
    """Return the samples that the rows are about; raise, with line numbers, if one is not there."""
    paths = editor.base.pictures.paths
    by_index = {int(index): place for place, index in enumerate(indices)}
    by_path: dict[str, list[int]] = {}
    for place, path in enumerate(paths):
        by_path.setdefault(path, []).append(place)
    found: list[int] = []
    wrong: list[str] = []
    seen: dict[int, int] = {}
    for row in rows:
        sample: int | str = _sample(row, paths, by_index, by_path)
        if isinstance(sample, str):
            wrong.append(f"line {row.line}: {sample}")
        elif sample in seen:
            wrong.append(f"line {row.line}: {row.path[:80]} is in line {seen[sample]} already")
        else:
            seen[sample] = row.line
            found.append(sample)
    if wrong:
        more = "; ..." if len(wrong) > MENTIONED else ""
        raise ValueError(f"{where} is not applied: {'; '.join(wrong[:MENTIONED])}{more}")
    return found


def _sample(
    row: Row,
    paths: Sequence[str],
    by_index: Mapping[int, int],
    by_path: Mapping[str, list[int]],
) -> int | str:
    """Return the sample of a row, or what is wrong with it."""
    if row.index is not None:
        sample = by_index.get(row.index, -1)
        if sample >= 0 and paths[sample] == row.path:
            return sample
        return f"the run has no picture {row.path[:80]!r} with index {row.index}"
    found = by_path.get(row.path, [])
    if len(found) == 1:
        return found[0]
    if found:
        return f"{len(found)} pictures are called {row.path[:80]!r}: add the column index"
    return f"the run has no picture {row.path[:80]!r}"


def _to_name(editor: Editor, name: str, samples: list[int]) -> None:
    """Put pictures into the cluster of a name, which may have to be made."""
    if name.casefold() == SHELF_NAME:
        editor.add(editor.shelve(samples))
        return
    state = editor.state
    label = next((one for one, known in state.names.items() if known == name), None)
    if label is None:
        label = _mostly(state, samples)
        if label is None:
            editor.add(editor.move(samples, None))
            label = int(editor.state.labels[samples[0]])
        editor.add(editor.name(label, name))
    others = [one for one in samples if editor.state.labels[one] != label]
    if others:
        editor.add(editor.move(others, label))


def _mostly(state: Corrected, samples: list[int]) -> int | None:
    """Return the cluster most of whose pictures are among these, or None."""
    labels = state.labels[samples]
    labels = labels[labels != SHELF]
    if len(labels) == 0:
        return None
    label = int(np.bincount(labels).argmax())
    inside = int((labels == label).sum())
    return label if 2 * inside > int((state.labels == label).sum()) else None


def _to_number(editor: Editor, number: int, samples: list[int], known: Set[int]) -> Edit:
    """Return the edit that puts pictures into the cluster of a number, if the table knew it."""
    if number == SHELF:
        return editor.shelve(samples)
    is_there = number in known and (editor.state.labels == number).any()
    return editor.move(samples, number if is_there else None)
