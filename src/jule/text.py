"""Show untrusted text safely, in terminals and spreadsheets, and match names that a user typed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

LONGEST = 1000  # characters of a message: what it quotes may be of any length
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


def one_line(message: str) -> str:
    r"""Return a message on one line, and cut off one that is very long.

    Examples
    --------
    >>> one_line("two\n  lines"), len(one_line("a" * 5000))
    ('two lines', 1003)
    """
    joined = re.sub(r"\s*[\r\n]+\s*", " ", message.strip())
    return joined if len(joined) <= LONGEST else joined[:LONGEST] + "..."


def match_name(given: str, known: Mapping[str, str], kind: str) -> str:
    """Return the known name that matches a given name or its other spelling.

    Case, hyphens and underscores do not matter.

    Parameters
    ----------
    given
        The name as typed.
    known
        Known names, each with an alternative spelling.
    kind
        The kind of name, for the error message.

    Examples
    --------
    >>> known = {"mnist": "MNIST-full", "usps": "USPS"}
    >>> match_name("mnist_full", known, "data set")
    'mnist'
    >>> match_name("mnits", known, "data set")
    Traceback (most recent call last):
        ...
    ValueError: unknown data set 'mnits'. Did you mean 'mnist'? The known ones are mnist, usps
    """
    names = {_plain(name): name for name in known}
    names |= {_plain(spelling): name for name, spelling in known.items()}
    plain = _plain(given)
    if plain in names:
        return names[plain]
    import difflib  # only for mistakes

    close = dict.fromkeys(names[match] for match in difflib.get_close_matches(plain, names))
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(f"unknown {kind} {given!r}.{hint} The known ones are {', '.join(known)}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
