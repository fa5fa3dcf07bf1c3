"""Print to the terminal: the only module of the command line that does.

File names are not trusted. Nothing in them is interpreted: control characters are shown as escapes,
and brackets are never markup. Typer and rich take a while to load, so only what needs them imports
them.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from jule.ranks import is_helper, launched
from jule.text import one_line, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

BYTES = ("utf-8", "surrogateescape")  # names that are not UTF-8 keep their bytes


class ClosedError(Exception):
    """The reader of the output, such as `head`, has closed it."""


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
        if colour is not None and stream.isatty():
            import typer  # which knows the terminals of every system

            typer.echo(typer.style(shown, fg=colour), err=err)
        else:
            stream.write(f"{shown}\n")
            stream.flush()


def _encodable(text: str, encoding: str | None) -> str:
    """Return text with escapes instead of characters that an encoding does not have."""
    known = encoding or "utf-8"
    return text.encode(known, "backslashreplace").decode(known)


def say_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    from rich.table import Table
    from rich.text import Text

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
    if not sys.stdout.isatty():
        say(f"{title}: {url}")
        return
    from rich.style import Style
    from rich.text import Text

    shown = printable(url)
    _render(Text(f"{title}: ").append(shown, Style(link=shown)), soft_wrap=True)


def _render(content: RenderableType, *, soft_wrap: bool) -> None:
    with _open():
        _console().print(content, soft_wrap=soft_wrap)


def _console(*, stderr: bool = False) -> Console:
    """Return a console that does not end the process when nobody reads its output."""
    from rich.console import Console

    class Lasting(Console):
        def on_broken_pipe(self) -> NoReturn:
            raise ClosedError

    return Lasting(stderr=stderr)


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
    from rich.text import Text

    with _console(stderr=True).status(Text(printable(text))):
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
    sys.stderr.write(f"{printable(one_line(question))} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in the singular or plural.

    Examples
    --------
    >>> counted(1, "file"), counted(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def counted_clusters(n_clusters: int, n_shelved: int = 0) -> str:
    """Return the number of clusters, and that of images that fit nowhere, in none of them.

    Examples
    --------
    >>> counted_clusters(10), counted_clusters(10, 3)
    ('10 clusters', '10 clusters and 3 unsure images')
    """
    unsure = f" and {counted(n_shelved, 'unsure image')}" if n_shelved else ""
    return f"{counted(n_clusters, 'cluster')}{unsure}"
