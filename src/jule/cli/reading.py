"""Reading pictures for a command: options, a bar with pictures a second, and what was left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from jule.images import ImageSource, Look, Samples

MOST_REASONS = 5

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder of pictures; or a .zip, .tar, .npz, .npy, .h5 or IDX file, a list of paths "
        "(.txt, .csv), a pattern in quotes, hf:NAME.",
        show_default=False,
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        help="Pixels of the larger side, or WIDTHxHEIGHT; left out: 64, or what the pictures have."
    ),
]
AspectOption = Annotated[
    str,
    typer.Option(help="Pictures of another shape: crop, fit (black around them) or stretch."),
]
ColourOption = Annotated[str, typer.Option(help="auto, grey or rgb, for all pictures alike.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop if any picture cannot be read.")]
CacheOption = Annotated[
    str | None,
    typer.Option(
        "--cache", help="Where decoded pictures are kept; left out: $JULE_CACHE, or your cache."
    ),
]


def wanted_look(source: ImageSource, size: str | None, aspect: str, colour: str) -> Look | None:
    """Give the look that the options ask for, or None for an array that stays as it is.

    Examples
    --------
    >>> wanted_look(open_source("photos"), "64x48", "crop", "auto")  # doctest: +SKIP
    """
    from jule.images import look_of
    from jule.images.survey import sides

    untouched = size is None and colour == "auto"
    if len(source) == 0 or (source.array() is not None and untouched):
        return None
    given: Any = None
    if size is not None:
        numbers = list(sides(size))
        given = numbers[0] if len(numbers) == 1 else tuple(numbers)
    return look_of(source, size=given, aspect=aspect, colour=colour)


def absolute(what: str) -> str:
    """Give a source so that it can be found from any folder.

    Examples
    --------
    >>> absolute("hf:beans")
    'hf:beans'
    """
    return what if what.startswith("hf:") else os.path.abspath(os.path.expanduser(what))


@contextmanager
def reading_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far the reading of pictures is, and how fast, on a terminal.

    Examples
    --------
    >>> with reading_bar("photos") as show:
    ...     show(10, 100)
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        task = bars.add_task(f"{what}: reading", total=None, speed="")

        def show(done: int, total: int) -> None:
            speed = bars.tasks[0].speed
            rate = f"{speed:,.0f} images/s" if speed else ""
            bars.update(task, completed=done, total=total, speed=rate)

        yield show


def tell_left_out(console: Console, data: Samples, where: str = "") -> None:
    """Say what was skipped, by reason, and how many exact duplicates there are.

    Examples
    --------
    >>> tell_left_out(Console(), read_images("photos"))  # doctest: +SKIP
    """
    bad = Counter(one.reason for one in data.skipped if one.picture)
    others = sum(not one.picture for one in data.skipped)
    if bad:
        listed = f", listed in {where}" if where else ""
        say(console, f"{counted(bad.total(), 'picture')} left out{listed}:")
        for reason, count in bad.most_common(MOST_REASONS):
            say(console, f"  {count:,} x {reason}")
        if len(bad) > MOST_REASONS:
            say(console, f"  and {len(bad) - MOST_REASONS} other reasons")
    if others:
        say(console, f"{counted(others, 'file')} of other kinds passed over")
    copies = int((data.first_copies != range(len(data))).sum())
    if copies:
        say(console, f"{counted(copies, 'exact duplicate')}, which keep one label with the others")


def counted(count: int, what: str) -> str:
    """Say how many there are of something.

    Examples
    --------
    >>> counted(1, "file"), counted(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def say(console: Console, text: str) -> None:
    """Print a line as it is: names of files are no markup.

    Examples
    --------
    >>> say(Console(), "[red].jpg")
    [red].jpg
    """
    console.print(text, markup=False, highlight=False, soft_wrap=True)
