"""Print to the terminal: the only module of the command line that does.

File names are not trusted. Nothing in them is interpreted: control characters are shown as escapes,
and brackets are never markup.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.console import Console, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from jule.ranks import is_helper, launched
from jule.text import one_line, printable

BYTES = ("utf-8", "surrogateescape")  # names that are not UTF-8 keep their bytes


class ClosedError(Exception):
    """The reader of the output, such as `head`, has closed it."""


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise ClosedError  # instead of ending the process


@contextmanager
def _open() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ClosedError from None


def say(text: str, *, err: bool = False) -> None:
    r"""Print one line.

    Examples
    --------
    >>> say("[red]\x1b[2J.jpg")
    [red]\x1b[2J.jpg
    """
    _line(text, err=err)


def warn(message: str) -> None:
    """Print one line to standard error, in yellow: something is not as it should be."""
    _line(f"jule: {one_line(message)}", err=True, colour="yellow")


def fail(message: str) -> None:
    """Print one line to standard error, in red: the command has failed."""
    where = f"rank {launched()[0]} on {socket.gethostname()}: " if is_helper() else ""
    _line(f"jule: {where}{one_line(message)}", err=True, colour="red")


def _line(text: str, *, err: bool, colour: str | None = None) -> None:
    if is_helper() and colour != "red":
        return
    stream = sys.stderr if err else sys.stdout
    shown = _encodable(printable(text), stream.encoding)
    with _open():
        typer.echo(shown if colour is None else typer.style(shown, fg=colour), err=err)


def _encodable(text: str, encoding: str | None) -> str:
    """Return text with escapes instead of characters that an encoding does not have."""
    known = encoding or "utf-8"
    return text.encode(known, "backslashreplace").decode(known)


def say_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text(_encodable(printable(cell), sys.stdout.encoding)) for cell in row))
    _render(table, soft_wrap=False)


def say_link(title: str, url: str) -> None:
    """Print an address; terminals with hyperlinks open it on a click.

    Examples
    --------
    >>> say_link("page", "file:///run/report.html")
    page: file:///run/report.html
    """
    shown = printable(url)
    _render(Text(f"{title}: ").append(shown, Style(link=shown)), soft_wrap=True)


def _render(content: RenderableType, *, soft_wrap: bool) -> None:
    with _open():
        _Console().print(content, soft_wrap=soft_wrap)


def write_csv(text: str) -> None:
    """Write CSV to standard output: exactly as it is, or with escapes if that is a terminal."""
    lines = _unix_lines(text)
    if sys.stdout.isatty():
        for line in lines:
            say(line)
        return
    with _open():
        sys.stdout.flush()
        sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode(*BYTES))
        sys.stdout.flush()


def _unix_lines(text: str) -> list[str]:
    r"""Split CSV into its rows; line breaks inside of a cell stay.

    Examples
    --------
    >>> _unix_lines('path\r\n"a\r\nb"\r\n')
    ['path', '"a\r\nb"']
    """
    cells = re.split(r'("[^"]*")', text)
    rows = [""]
    for place, part in enumerate(cells):
        if place % 2:
            rows[-1] += part
            continue
        first, *others = part.split("\r\n")
        rows[-1] += first
        rows += others
    return rows[:-1]


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show a line with a spinner on standard error during the block, if it is a terminal.

    Like all output except errors, it is left to the first of several processes.

    Examples
    --------
    >>> with status("loading"):
    ...     pass
    """
    if is_helper():
        yield
        return
    with _Console(stderr=True).status(Text(printable(text))):
        yield


def ask(question: str) -> bool:
    """Ask a yes-or-no question; return False where nobody can be asked.

    Examples
    --------
    >>> ask("Read them?")
    False
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    typer.echo(f"{printable(one_line(question))} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
