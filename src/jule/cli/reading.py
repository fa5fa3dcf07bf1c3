"""Read pictures for a command: options, a progress bar, and a list of skipped files."""

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
    from jule.images import ImageSource, ImageSpec, Samples
    from jule.images.decoding.survey import Survey

MOST_REASONS = 5

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder of pictures; or a .zip, .tar, .npz, .npy, .h5 or IDX file, a list of paths "
        "(.txt, .csv), a quoted pattern, or hf:NAME.",
        show_default=False,
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        help="Size of the images: pixels of the larger side, or WIDTHxHEIGHT. "
        "Default: 64, or the size of the pictures if that is smaller."
    ),
]
AspectOption = Annotated[
    str,
    typer.Option(
        help="How to treat pictures of another aspect ratio: crop, fit (black borders) or stretch."
    ),
]
ColourOption = Annotated[str, typer.Option(help="Colour mode of all images: auto, grey or rgb.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop if any picture cannot be read.")]
CacheOption = Annotated[
    str | None,
    typer.Option(
        "--cache",
        help="Folder for decoded pictures. Default: $JULE_CACHE, or your cache folder.",
    ),
]


def check_reading_options(size: str | None, aspect: str, colour: str) -> None:
    """Raise if an option is not valid, without loading a heavy package.

    Examples
    --------
    >>> check_reading_options("64x48", "crop", "auto")
    """
    from jule.images.decoding.decode import check_aspect
    from jule.images.decoding.survey import check_colour, parse_size

    if size is not None:
        parse_size(size)
    check_aspect(aspect)
    check_colour(colour)


def open_not_empty(source: str, *, folder_classes: bool = False) -> ImageSource:
    """Open a source; raise if it does not exist or has no pictures."""
    from jule.images import open_source
    from jule.images.read import check_not_empty

    opened = open_source(source, labels_from_folders=folder_classes)
    check_not_empty(opened)
    return opened


def requested_spec(
    source: ImageSource,
    size: str | None,
    aspect: str,
    colour: str,
    surveyed: Survey | None = None,
) -> ImageSpec | None:
    """Return the ImageSpec that the options ask for; None for an array that is not changed.

    The source is surveyed unless the result of a survey is given.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images import ArraySource
    >>> source = ArraySource(np.zeros((3, 8, 8), np.uint8))
    >>> requested_spec(source, None, "crop", "auto") is None
    True
    >>> requested_spec(source, "6x4", "crop", "auto").shape
    (4, 6)
    """
    from jule.images import spec_for
    from jule.images.decoding.survey import choose_spec, parse_size

    if is_unchanged_array(source, size, colour):
        return None
    wanted: dict[str, Any] = {
        "size": None if size is None else parse_size(size),
        "aspect": aspect,
        "colour": colour,
    }
    return spec_for(source, **wanted) if surveyed is None else choose_spec(surveyed, **wanted)


def is_unchanged_array(source: ImageSource, size: str | None, colour: str) -> bool:
    """Return whether a source is an array that no option asks to change.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images import ArraySource
    >>> is_unchanged_array(ArraySource(np.zeros((3, 8, 8), np.uint8)), None, "auto")
    True
    """
    return source.array() is not None and size is None and colour == "auto"


def absolute(source: str) -> str:
    """Return a source as an absolute path.

    Examples
    --------
    >>> absolute("hf:beans")
    'hf:beans'
    """
    return source if source.startswith("hf:") else os.path.abspath(os.path.expanduser(source))


@contextmanager
def reading_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress and speed of reading on standard error, if it is a terminal.

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
        task = bars.add_task(f"{title}: reading", total=None, speed="")

        def show(done: int, total: int) -> None:
            speed = bars.tasks[0].speed
            rate = f"{speed:,.0f} images/s" if speed else ""
            bars.update(task, completed=done, total=total, speed=rate)

        yield show


def print_skipped(console: Console, data: Samples, listed_in: str = "") -> None:
    """Print how many files were skipped and why, and how many exact duplicates there are.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images import read_images
    >>> print_skipped(Console(), read_images(np.zeros((3, 8, 8), np.uint8)))
    2 exact duplicates; copies share one label
    """
    bad = Counter(one.reason for one in data.skipped if one.is_picture)
    others = sum(not one.is_picture for one in data.skipped)
    if bad:
        where = f", listed in {listed_in}" if listed_in else ""
        say(console, f"{counted(bad.total(), 'picture')} skipped{where}:")
        for reason, count in bad.most_common(MOST_REASONS):
            say(console, f"  {count:,} x {reason}")
        if len(bad) > MOST_REASONS:
            say(console, f"  and {len(bad) - MOST_REASONS} other reasons")
    if others:
        say(console, f"{counted(others, 'file')} of other kinds ignored")
    copies = int((data.first_copies != range(len(data))).sum())
    if copies:
        say(console, f"{counted(copies, 'exact duplicate')}; copies share one label")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in the singular or plural.

    Examples
    --------
    >>> counted(1, "file"), counted(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def say(console: Console, text: str) -> None:
    """Print a line without markup, as file names may contain brackets.

    Examples
    --------
    >>> say(Console(), "[red].jpg")
    [red].jpg
    """
    console.print(text, markup=False, highlight=False, soft_wrap=True)
