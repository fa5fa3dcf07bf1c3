"""`jule info`: what a source holds, before anything starts."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from jule.cli.errors import friendly
from jule.cli.reading import (
    AspectOption,
    CacheOption,
    ColourOption,
    Size,
    Source,
    counted,
    reading_bar,
    say,
    tell_left_out,
    wanted_look,
)

if TYPE_CHECKING:
    from jule.images import ImageSource
    from jule.images.survey import Seen

MOST_BAD = 10


@friendly
def info(
    source: Source,
    n_clusters: Annotated[
        int | None, typer.Option("-k", "--clusters", help="For the estimate: how many clusters.")
    ] = None,
    size: Size = None,
    aspect: AspectOption = "crop",
    colour: ColourOption = "auto",
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Decode every picture, not a sample; the next run need not do it again."
        ),
    ] = False,
    cache: CacheOption = None,
) -> None:
    """Say what a source holds, what would be skipped, and how long clustering would take.

    A sample of the pictures is looked at; with --full all of them are, to the last byte.

    Examples:

      jule info photos

      jule info photos.zip --size 96 --full
    """
    from jule.images import open_source, read_images
    from jule.images.pipeline import cores
    from jule.images.survey import survey

    console = Console()
    opened = open_source(source)
    kind = type(opened).__name__.removesuffix("Source").lower()
    say(console, f"{source}: {counted(len(opened), 'picture')} ({kind} source)")
    start = time.perf_counter()
    with console.status("looking at some of them"):
        seen = survey(opened) if len(opened) else None
    taken = time.perf_counter() - start
    if seen is not None and seen.sizes:
        _tell_sizes(console, seen)
    if full and len(opened):
        look = wanted_look(opened, size, aspect, colour)
        with reading_bar(source) as show:
            where = Path(cache) if cache else None
            data = read_images(opened, look, cache=where, progress=show)
        tell_left_out(console, data)
        n_images = len(data)
    else:
        _tell_sample(console, opened, seen)
        n_images = len(opened)
    if seen is None or not seen.sizes:
        raise ValueError(f"there is nothing in {source} that can be clustered")
    a_picture = 0.0 if full else taken / (len(seen.sizes) + len(seen.bad)) / cores()
    _tell_estimate(console, opened, (size, aspect, colour), n_images, a_picture, n_clusters)


def _tell_sizes(console: Console, seen: Seen) -> None:
    formats = ", ".join(f"{count} {name}" for name, count in seen.formats.most_common())
    widths, heights = zip(*seen.sizes, strict=True)
    middle = f"{statistics.median(widths):g} x {statistics.median(heights):g}"
    say(console, f"of {len(seen.sizes)} looked at: {formats}; {seen.coloured:.0%} with colour")
    if len(set(seen.sizes)) == 1:
        say(console, f"all are {middle} pixels")
    else:
        small, large = min(seen.sizes, key=_area), max(seen.sizes, key=_area)
        say(
            console,
            f"sizes from {small[0]} x {small[1]} to {large[0]} x {large[1]} pixels, "
            f"in the middle {middle}",
        )


def _area(size: tuple[int, int]) -> int:
    return size[0] * size[1]


def _tell_sample(console: Console, opened: ImageSource, seen: Seen | None) -> None:
    bad = [(one.name, one.reason) for one in opened.left_out if one.picture]
    others = len(opened.left_out) - len(bad)
    bad += seen.bad if seen is not None else []
    if bad:
        say(console, "would be skipped, of those looked at:")
        for name, reason in bad[:MOST_BAD]:
            say(console, f"  {name}: {reason}")
        if len(bad) > MOST_BAD:
            say(console, f"  and {len(bad) - MOST_BAD:,} more")
    if others:
        say(console, f"{counted(others, 'file')} of other kinds would be passed over")


def _tell_estimate(
    console: Console,
    opened: ImageSource,
    options: tuple[str | None, str, str],
    n_images: int,
    a_picture: float,
    n_clusters: int | None,
) -> None:
    from jule.estimate import estimate_run
    from jule.joint import Config

    look = wanted_look(opened, *options)
    array = opened.array()
    if look is not None:
        say(console, f"all would be brought to {look}")
    shape = look.shape if look is not None else () if array is None else array.shape[1:]
    reading = 0.0 if look is None else n_images * a_picture
    with console.status("trying a few steps of training"):
        needed = estimate_run(n_images, shape, Config(n_clusters=n_clusters))
    say(
        console,
        f"clustering would take about {_words(needed.seconds)} on this machine as busy as it is, "
        f"reading the pictures {_words(reading)}, and {needed.memory / 1e9:.1f} GB of memory",
    )


def _words(seconds: float) -> str:
    """Say a time the way people do.

    Examples
    --------
    >>> _words(0.4), _words(75), _words(9000)
    ('1 s', '75 s', '2.5 hours')
    """
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
