"""Cells of plain tables, without a Python object for each of them.

A run of 70,000 pictures has half a million cells in labels.csv, and nearly all of them are numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COMMA, RETURN, NEWLINE, QUOTE, POINT, ZERO, MINUS = b',\r\n".0-'
MOST_DIGITS = 9  # of a whole number, so that it fits 32 bits
FRACTION = 6  # characters of a confidence, such as 0.1234


class PlainTable:
    """The cells of a table without quotes, as places in its bytes.

    Parameters
    ----------
    content
        The bytes of the file.
    starts, stops
        (rows, columns) where each cell begins and ends.
    """

    def __init__(self, content: bytes, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        self.content = content
        self.starts, self.stops = starts, stops
        self._bytes = np.frombuffer(content, np.uint8)

    def __len__(self) -> int:
        return len(self.starts)

    def is_empty(self, column: int) -> bool:
        """Return whether a column has no text at all."""
        return bool((self.starts[:, column] == self.stops[:, column]).all())

    def texts(self, column: int) -> list[str]:
        """Return the cells of a column as text."""
        bounds = zip(self.starts[:, column].tolist(), self.stops[:, column].tolist(), strict=True)
        if self.content.isascii():
            text = self.content.decode("ascii")
            return [text[start:stop] for start, stop in bounds]
        return [self.content[a:b].decode("utf-8", "surrogatepass") for a, b in bounds]

    def whole_numbers(self, column: int) -> NDArray[np.int64] | None:
        """Return a column of whole numbers; None if a cell is anything else."""
        return self._unsigned(self.starts[:, column], self.stops[:, column])

    def _unsigned(
        self, starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        lengths = stops - starts
        if lengths.min() < 1 or lengths.max() > MOST_DIGITS:
            return None
        numbers = np.zeros(len(self), np.int64)
        for place in range(int(lengths.max())):
            digits = self._bytes[np.minimum(starts + place, len(self._bytes) - 1)] - np.uint8(ZERO)
            inside = place < lengths
            if (digits[inside] > 9).any():
                return None
            numbers = np.where(inside, 10 * numbers + digits, numbers)
        return numbers

    def cluster_numbers(self, column: int) -> NDArray[np.int64] | None:
        """Return a column of numbers of clusters, -1 for the shelf; None if a cell is not one."""
        starts, stops = self.starts[:, column], self.stops[:, column]
        is_shelf = (self._bytes[starts] == MINUS) & (stops - starts == 2)
        numbers = self._unsigned(starts + is_shelf, stops)
        if numbers is None or (numbers[is_shelf] != 1).any():
            return None
        return np.where(is_shelf, -1, numbers)

    def fractions(self, column: int) -> NDArray[np.float64] | None:
        """Return a column of numbers from 0 to 1 with four decimals; None if a cell is not one."""
        starts, lengths = self.starts[:, column], self.stops[:, column] - self.starts[:, column]
        if (lengths != FRACTION).any():
            return None
        letters = self._bytes[starts[:, None] + np.arange(FRACTION)]
        digits = letters[:, [0, 2, 3, 4, 5]] - np.uint8(ZERO)
        if (letters[:, 1] != POINT).any() or (digits > 9).any():
            return None
        numbers = digits @ np.array([10_000, 1000, 100, 10, 1])
        return None if numbers.max() > 10_000 else numbers / 10_000


def split_plain(content: bytes, head: bytes) -> PlainTable | None:
    """Return the cells of a table without quotes that ends as it should; None for any other.

    Parameters
    ----------
    content
        The bytes of the file.
    head
        Its first line, without the end of the line.

    Examples
    --------
    >>> table = split_plain(b"path,index\\r\\na.jpg,12\\r\\n", b"path,index")
    >>> table.texts(0), table.whole_numbers(1).tolist()
    (['a.jpg'], [12])
    """
    if QUOTE in content or not content.startswith(head + b"\r\n") or content[-2:] != b"\r\n":
        return None
    first = len(head) + 2
    letters = np.frombuffer(content, np.uint8)
    n_rows = content.count(b"\n") - 1  # the first line is the head
    width = head.count(b",") + 1
    found = np.flatnonzero((letters[first:] == COMMA) | (letters[first:] == NEWLINE))
    if n_rows == 0 or len(found) != width * n_rows:
        return None
    stops = found.reshape(-1, width)
    stops += first
    starts = np.empty_like(stops)
    starts[0, 0] = first
    starts[:, 1:] = stops[:, :-1] + 1
    starts[1:, 0] = stops[:-1, -1] + 1
    ends = stops[:, -1]
    if (letters[ends] != NEWLINE).any() or (letters[ends - 1] != RETURN).any():
        return None
    if content.count(b"\r") != n_rows + 1:
        return None
    ends -= 1
    return PlainTable(content, starts, stops)
