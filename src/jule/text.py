"""Show untrusted text safely: in a terminal, and in tables that a spreadsheet may open."""

from __future__ import annotations

import re
import unicodedata

RUN_BY_SPREADSHEETS = "=+-@\t\r"
_RUNS = re.compile(rf"'*[{re.escape(RUN_BY_SPREADSHEETS)}]")


def printable(text: str) -> str:
    r"""Return text with escapes instead of characters that a terminal would obey or hide.

    These are control characters, line breaks and tabs, characters that change the direction of
    writing or have no width, and bytes of a name that are not UTF-8.

    Examples
    --------
    >>> printable("a\nb\x1b[2J.jpg")
    'a\\nb\\x1b[2J.jpg'
    >>> printable("\u202egpj.exe"), printable("Zürich 東京.jpg")
    ('\\u202egpj.exe', 'Zürich 東京.jpg')
    """
    if text.isprintable():
        return text
    return "".join(letter if _is_shown(letter) else _escaped(letter) for letter in text)


def _is_shown(letter: str) -> bool:
    # Python calls wide and no-break spaces unprintable; terminals show them as spaces.
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def defuse(cell: str) -> str:
    """Return a cell of a CSV file so that no spreadsheet takes it for a formula.

    A cell that a spreadsheet would run gets a leading apostrophe. So does one that would be such a
    cell without its apostrophes, so that `undefuse` always returns the original.

    Examples
    --------
    >>> defuse("=1+2"), defuse("'=1+2"), defuse("cats")
    ("'=1+2", "''=1+2", 'cats')
    """
    return f"'{cell}" if _RUNS.match(cell) else cell


def undefuse(cell: str) -> str:
    """Return the original of a cell that `defuse` returned.

    Examples
    --------
    >>> undefuse("'=1+2"), undefuse("'tis")
    ('=1+2', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _RUNS.match(cell) else cell
