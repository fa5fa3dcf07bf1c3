"""The tables of a run folder, as CSV: labels, skipped files, exact duplicates.

A sample is identified by its `index`, its position in the source: several may have one name. Text
that a spreadsheet would take for a formula is written with a leading apostrophe, which is removed
again on reading. A table is accepted as a whole or not at all.
"""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jule.runs.plain_tables import split_plain
from jule.text import RUN_BY_SPREADSHEETS, defuse, undefuse

if TYPE_CHECKING:
    from jule.images import Skipped

Columns = dict[str, list]

LABEL_HEAD = ("path", "cluster", "confidence", "rank", "name", "by_hand", "index")
SKIPPED_HEAD = ("path", "reason")
DUPLICATE_HEAD = ("path", "same_as", "index", "same_as_index")
TEXT = ("path", "name", "reason", "same_as")  # columns of text that comes from outside
MOST_INDEX = 2**31 - 1  # samples are numbered in 32 bits
FIRST = f"'{RUN_BY_SPREADSHEETS}"  # of cells that are changed on writing or on reading
QUOTED = '",\r\n'  # signs in cells that need quotes
REPEATED = ("cluster", "confidence", "rank", "by_hand")  # columns in which few values differ
_reading = threading.Lock()  # the limit of the csv module belongs to the whole process


@dataclass(frozen=True, eq=False)
class LabelTable:
    """The content of labels.csv.

    Attributes
    ----------
    names
        One path or name per sample.
    labels
        (n,) clusters; -1 for the shelf.
    confidence
        (n,) fraction of each sample's affinity that belongs to its cluster, from 0 to 1.
    cluster_names
        The names of the clusters that have one.
    by_hand
        (n,) whether each sample was moved by hand.
    indices
        (n,) position of each sample in its source.
    """

    names: list[str]
    labels: NDArray[np.int32]
    confidence: NDArray[np.float64]
    cluster_names: dict[int, str]
    by_hand: NDArray[np.bool_]
    indices: NDArray[np.int64]


def ranks_in_clusters(
    labels: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Rank the samples of each cluster by distance from its centre; the nearest has rank 1.

    Examples
    --------
    >>> ranks_in_clusters(np.array([0, 1, 0]), np.array([0.8, 0.5, 0.1])).tolist()
    [2, 1, 1]
    """
    order = np.lexsort((distances, labels))
    ordered, places = labels[order], np.arange(len(labels))
    is_first = np.ones(len(labels), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    ranks = np.empty(len(labels), np.int64)
    ranks[order] = places - np.maximum.accumulate(np.where(is_first, places, 0)) + 1
    return ranks


def label_columns(
    names: Sequence[str],
    labels: NDArray[np.integer],
    confidence: NDArray[np.floating],
    distances: NDArray[np.floating],
    cluster_names: Mapping[int, str] | None = None,
    indices: NDArray[np.integer] | None = None,
) -> Columns:
    """Return the columns of a table of labels.

    Parameters
    ----------
    names, labels, confidence
        One entry per sample.
    distances
        (n,) distance of each sample from the centre of its cluster, for the ranks.
    cluster_names
        The names of the clusters that have one.
    indices
        (n,) position of each sample in its source; 0, 1, ... by default.

    Examples
    --------
    >>> columns = label_columns(["a"], np.array([0]), np.ones(1), np.zeros(1), {0: "cats"})
    >>> list(columns), columns["name"]
    (['path', 'cluster', 'confidence', 'rank', 'name', 'index'], ['cats'])
    """
    known = cluster_names or {}
    listed = labels.tolist()
    shown = {label: known.get(label, "") for label in set(listed)}
    return {
        "path": list(names),
        "cluster": listed,
        "confidence": np.round(confidence, 4).tolist(),
        "rank": ranks_in_clusters(labels, distances).tolist(),
        "name": list(map(shown.__getitem__, listed)),
        "index": (np.arange(len(names)) if indices is None else indices).tolist(),
    }


def position_columns(positions: NDArray[np.floating]) -> Columns:
    """Return the columns of positions on a map: x, y and z, or x1, x2, ... beyond three dimensions.

    Examples
    --------
    >>> position_columns(np.array([[0.5, 1 / 3]]))
    {'x': [0.5], 'y': [0.3333]}
    >>> list(position_columns(np.zeros((1, 4))))
    ['x1', 'x2', 'x3', 'x4']
    """
    width = positions.shape[1]
    heads = "xyz"[:width] if width <= 3 else [f"x{number}" for number in range(1, width + 1)]
    rounded = np.round(positions.astype(np.float64), 4)
    return {head: rounded[:, axis].tolist() for axis, head in enumerate(heads)}


# ---- writing


def csv_text(columns: Mapping[str, Sequence[object]]) -> str:
    r"""Return columns as CSV that no spreadsheet takes for formulas.

    Examples
    --------
    >>> csv_text({"path": ["=1.jpg"], "confidence": [1.0]})
    "path,confidence\r\n'=1.jpg,1.0000\r\n"
    """
    cells = [list(_cells(name, column)) for name, column in columns.items()]
    wide, n_rows = 2 * len(cells), len(cells[0])
    # Cells and what is between them in one list: joined once, not row by row.
    parts = [","] * (wide * n_rows)
    for place, column in enumerate(cells):
        parts[2 * place :: wide] = column
    parts[wide - 1 :: wide] = ["\r\n"] * n_rows
    return "".join([",".join(columns), "\r\n", *parts])


def _cells(name: str, column: Sequence[Any]) -> Iterable[str]:
    """Return the cells of a column as they are written."""
    if name in TEXT:
        return _quote(_each(defuse, map(str, column)))
    if name not in REPEATED:
        return map(str, column)
    show = "{:.4f}".format if name == "confidence" else str
    shown = {value: show(value) for value in set(column)}
    return map(shown.__getitem__, column)


def _quote(cells: list[str]) -> list[str]:
    """Return cells with quotes around those that need them, as the csv module would."""
    together = "".join(cells)
    if not any(sign in together for sign in QUOTED):
        return cells
    return [
        '"' + cell.replace('"', '""') + '"' if any(sign in cell for sign in QUOTED) else cell
        for cell in cells
    ]


def _each(change: Callable[[str], str], cells: Iterable[str]) -> list[str]:
    """Return changed cells; only those that begin like a formula need a look."""
    return [change(cell) if cell and cell[0] in FIRST else cell for cell in cells]


def labels_csv(columns: Columns, by_hand: NDArray[np.bool_] | None = None) -> bytes:
    r"""Return a table of labels as the content of a CSV file; `by_hand` adds that column.

    Examples
    --------
    >>> columns = label_columns(["a"], np.array([0]), np.ones(1), np.zeros(1))
    >>> labels_csv(columns, np.array([True]))
    b'path,cluster,confidence,rank,name,by_hand,index\r\na,0,1.0000,1,,1,0\r\n'
    """
    if by_hand is not None:
        index = {"index": columns["index"]}  # remains the last column
        columns = {**columns, "by_hand": by_hand.astype(int).tolist()}
        columns = {name: column for name, column in columns.items() if name != "index"} | index
    return _encode(csv_text(columns))


def positions_csv(
    names: Sequence[str], positions: NDArray[np.floating], indices: NDArray[np.integer]
) -> bytes:
    r"""Return the table of positions on a map.

    Examples
    --------
    >>> positions_csv(["a"], np.array([[0.5, 2.0]]), np.array([0]))
    b'path,x,y,index\r\na,0.5,2.0,0\r\n'
    """
    columns = {"path": list(names), **position_columns(positions), "index": indices.tolist()}
    return _encode(csv_text(columns))


def skipped_csv(skipped: Iterable[Skipped]) -> bytes:
    r"""Return the table of files that could not be read, and why.

    Examples
    --------
    >>> from jule.images import Skipped
    >>> skipped_csv([Skipped("a.jpg", "it is empty")])
    b'path,reason\r\na.jpg,it is empty\r\n'
    """
    listed = list(skipped)
    columns = {"path": [one.name for one in listed], "reason": [one.reason for one in listed]}
    return _encode(csv_text(columns))


def duplicates_csv(
    names: Sequence[str],
    first_copies: NDArray[np.integer],
    indices: NDArray[np.integer] | None = None,
) -> bytes:
    r"""Return the table of exact copies and their originals.

    Parameters
    ----------
    names
        One path or name per sample.
    first_copies
        (n,) the original of each sample among the samples; itself if it is not a copy.
    indices
        (n,) position of each sample in its source; 0, 1, ... by default.

    Examples
    --------
    >>> duplicates_csv(["a", "b"], np.array([0, 0]))
    b'path,same_as,index,same_as_index\r\nb,a,1,0\r\n'
    """
    positions = np.arange(len(names)) if indices is None else indices
    copies = np.flatnonzero(first_copies != np.arange(len(first_copies)))
    originals = first_copies[copies]
    columns = {
        "path": [names[copy] for copy in copies.tolist()],
        "same_as": [names[original] for original in originals.tolist()],
        "index": positions[copies].tolist(),
        "same_as_index": positions[originals].tolist(),
    }
    return _encode(csv_text(columns))


def _encode(text: str) -> bytes:
    # A name may be any Python string; bytes that are not UTF-8 are lone surrogates in it.
    return text.encode("utf-8", "surrogatepass")


# ---- reading


def parse_labels(content: bytes, name: str) -> LabelTable:
    r"""Read the content of labels.csv.

    Parameters
    ----------
    content
        The bytes of the file.
    name
        The file, for error messages.

    Raises
    ------
    ValueError
        If any cell is not what `labels_csv` writes.

    Examples
    --------
    >>> table = parse_labels(
    ...     b"path,cluster,confidence,rank,name,by_hand,index\r\na,0,1.0000,1,cats,0,7\r\n",
    ...     "labels.csv",
    ... )
    >>> table.names, table.cluster_names, table.indices.tolist()
    (['a'], {0: 'cats'}, [7])
    """
    try:
        return _plain_labels(content) or _any_labels(content)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{name} is damaged: {error}") from error


def _plain_labels(content: bytes) -> LabelTable | None:
    """Read a table without quotes and without mistakes; return None for any other."""
    table = split_plain(content, ",".join(LABEL_HEAD).encode())
    if table is None:
        return None
    n = len(table)
    places = [LABEL_HEAD.index(name) for name in ("rank", "by_hand", "index")]
    ranks, by_hand, indices = (table.whole_numbers(place) for place in places)
    labels = table.cluster_numbers(LABEL_HEAD.index("cluster"))
    confidence = table.fractions(LABEL_HEAD.index("confidence"))
    if labels is None or ranks is None or by_hand is None or indices is None or confidence is None:
        return None
    if ranks.max() > n or by_hand.max() > 1 or (np.diff(indices) <= 0).any():
        return None
    named = {}
    if not table.is_empty(LABEL_HEAD.index("name")):
        texts = _each(undefuse, table.texts(LABEL_HEAD.index("name")))
        named = _cluster_names(labels.tolist(), texts)
    return LabelTable(
        _each(undefuse, table.texts(LABEL_HEAD.index("path"))),
        labels.astype(np.int32),
        confidence,
        named,
        by_hand.astype(bool),
        indices,
    )


def _any_labels(content: bytes) -> LabelTable:
    columns = _columns(content, LABEL_HEAD)
    n = len(columns["path"])
    if n == 0:
        raise ValueError("it has no rows")
    _whole_numbers(columns, "rank", n + 1)
    labels = _cluster_numbers(columns["cluster"])
    return LabelTable(
        columns["path"],
        labels.astype(np.int32),
        _fractions(columns, "confidence"),
        _cluster_names(labels.tolist(), columns["name"]),
        _whole_numbers(columns, "by_hand", 2).astype(bool),
        _distinct(columns, "index"),
    )


def parse_skipped(content: bytes, name: str) -> list[tuple[str, str]]:
    r"""Read the content of skipped.csv: (path, reason) of the files that could not be read.

    Examples
    --------
    >>> parse_skipped(b"path,reason\r\na.jpg,it is empty\r\n", "skipped.csv")
    [('a.jpg', 'it is empty')]
    """
    try:
        columns = _columns(content, SKIPPED_HEAD)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{name} is damaged: {error}") from error
    return list(zip(columns["path"], columns["reason"], strict=True))


def parse_first_copies(
    content: bytes, indices: NDArray[np.integer], name: str
) -> NDArray[np.int64]:
    r"""Read the content of duplicates.csv.

    Parameters
    ----------
    content
        The bytes of the file.
    indices
        (n,) position of each sample of the run in its source.
    name
        The file, for error messages.

    Returns
    -------
    first_copies
        (n,) the original of each sample among the samples; itself if it is not a copy.

    Examples
    --------
    >>> content = duplicates_csv(["a", "a"], np.array([0, 0]), np.array([3, 5]))
    >>> parse_first_copies(content, np.array([3, 5]), "duplicates.csv").tolist()
    [0, 0]
    """
    found = np.arange(len(indices))
    try:
        columns = _columns(content, DUPLICATE_HEAD)
        copies = _samples(_distinct(columns, "index"), indices)
        originals = _samples(_whole_numbers(columns, "same_as_index"), indices)
        found[copies] = originals
        if (copies == originals).any() or (found[originals] != originals).any():
            raise ValueError("a copy is listed as an original")
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{name} is damaged: {error}") from error
    return found


def _columns(content: bytes, head: Sequence[str]) -> dict[str, list[str]]:
    plain = split_plain(content, ",".join(head).encode())
    if plain is None:
        columns = _csv_columns(content.decode("utf-8", "surrogatepass"), head)
    else:
        columns = {name: plain.texts(place) for place, name in enumerate(head)}
    return {
        name: _each(undefuse, column) if name in TEXT else column
        for name, column in columns.items()
    }


def _csv_columns(text: str, head: Sequence[str]) -> dict[str, list[str]]:
    """Split any table into its columns; raise ValueError if it is not one."""
    with _reading:
        limit = csv.field_size_limit(max(len(text), csv.field_size_limit()))
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        finally:
            csv.field_size_limit(limit)
    if not rows or rows[0] != list(head):
        raise ValueError(f"its columns must be {', '.join(head)}")
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(head):
            raise ValueError(f"row {number} has {len(row)} cells instead of {len(head)}")
    cells = zip(*rows[1:], strict=True) if len(rows) > 1 else [()] * len(head)
    return {name: list(column) for name, column in zip(head, cells, strict=True)}


def _whole_numbers(
    columns: Mapping[str, Sequence[str]], name: str, end: int = MOST_INDEX + 1
) -> NDArray[np.int64]:
    """Return a column of whole numbers from 0 to below `end`."""
    together = "".join(columns[name])
    if together.isascii() and together.isdigit() and all(columns[name]):
        with suppress(OverflowError):  # what is wrong is said below
            found = np.array(list(map(int, columns[name])), np.int64)
            if found.max() < end:
                return found
    numbers = np.empty(len(columns[name]), np.int64)
    for place, cell in enumerate(columns[name]):
        plain = cell.isascii() and cell.isdigit() and len(cell) <= 10
        if not plain or int(cell) >= end:
            raise ValueError(f"{name} {cell[:40]!r} is not a whole number from 0 to {end - 1}")
        numbers[place] = int(cell)
    return numbers


def _cluster_numbers(cells: Sequence[str]) -> NDArray[np.int64]:
    """Return a column of numbers of clusters; -1 is the shelf."""
    is_shelf = np.array([cell == "-1" for cell in cells])
    plain = ["0" if shelved else cell for shelved, cell in zip(is_shelf, cells, strict=True)]
    return np.where(is_shelf, -1, _whole_numbers({"cluster": plain}, "cluster"))


def _distinct(columns: Mapping[str, Sequence[str]], name: str) -> NDArray[np.int64]:
    numbers = _whole_numbers(columns, name)
    is_sorted = bool((np.diff(numbers) > 0).all())  # as most are
    if not is_sorted and len(np.unique(numbers)) != len(numbers):
        raise ValueError(f"a sample is listed twice: its {name} must be its own")
    return numbers


def _fractions(columns: Mapping[str, Sequence[str]], name: str) -> NDArray[np.float64]:
    numbers = np.array([float(cell) for cell in columns[name]])
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers <= 1)))  # NaN is neither
    if len(wrong):
        raise ValueError(f"{name} {columns[name][wrong[0]][:40]!r} is not between 0 and 1")
    return numbers


def _cluster_names(labels: Sequence[int], names: Sequence[str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for label, name in sorted(set(zip(labels, names, strict=True))):
        if found.setdefault(label, name) != name:
            raise ValueError(f"cluster {label} has two names")
    return {label: name for label, name in found.items() if name}


def _samples(wanted: NDArray[np.int64], indices: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the samples that have these positions in the source."""
    order = np.argsort(indices, kind="stable")
    places = np.searchsorted(indices, wanted, sorter=order).clip(max=len(indices) - 1)
    samples: NDArray[np.int64] = order[places]
    if (indices[samples] != wanted).any():
        raise ValueError("it lists a sample that is not in the run")
    return samples
