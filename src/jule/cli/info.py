"""`jule info`: show the contents of a source, and estimate the cost of clustering it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.cluster import EnsembleOption
from jule.cli.numbers import whole
from jule.cli.output import counted, say
from jule.cli.reading import (
    AspectOption,
    CacheOption,
    ColourOption,
    Size,
    Source,
    check_reading_options,
    choose_features,
    is_unchanged_array,
    open_not_empty,
    print_skipped,
    requested_spec,
)
from jule.features.registry import PIXELS
from jule.progress import reading_bar

if TYPE_CHECKING:
    from jule.images import ImageSource, ImageSpec
    from jule.images.decoding.survey import Survey
    from jule.joint.config import Config

MOST_BAD = 10
PHOTO_SIDE = 224  # pixels, at which the encoder for photographs takes pictures


def info(
    source: Source,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--clusters",
            parser=whole(1),
            metavar="INTEGER",
            help="Number of clusters, for the estimate.",
        ),
    ] = None,
    size: Size = None,
    aspect: AspectOption = "crop",
    colour: ColourOption = "auto",
    ensemble: EnsembleOption = 1,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Decode all pictures instead of a few. The next command finds them in the cache.",
        ),
    ] = False,
    cache: CacheOption = None,
) -> None:
    """Show what a source contains, what will be skipped, and how long clustering will take.

    Only the headers of some pictures and the pixels of a few are read. With --full, all pictures
    are decoded.

    Examples:

      jule info photos

      jule info photos.zip --size 96 --full
    """
    from jule.joint.config import preset

    check_reading_options(size, aspect, colour)
    opened = open_not_empty(source)
    say(f"{source}: {counted(len(opened), 'picture')}")
    spec, features = _describe(opened, size, aspect, colour)
    n_images = len(opened)
    reading = 0.0
    if full:
        n_images = _read_all(opened, spec, cache)
    elif spec is not None:
        from jule.images.decoding.pipeline import time_decoding

        reading = n_images * time_decoding(opened, spec)
    settings = partial(preset, "default", n_clusters=n_clusters, ensemble=ensemble)
    _print_estimate(opened, spec, n_images, reading, settings, features)


def _describe(
    opened: ImageSource, size: str | None, aspect: str, colour: str
) -> tuple[ImageSpec | None, str]:
    """Survey the source, print the findings; return the ImageSpec and what clustering will see."""
    from jule.images import ImageSpec
    from jule.images.decoding.survey import survey

    array = opened.array()
    if array is not None and is_unchanged_array(opened, size, colour):
        shape = " x ".join(map(str, array.shape[1:]))
        say(f"an array of {array.dtype}, {shape} per sample")
        return None, PIXELS
    surveyed = survey(opened)
    if surveyed.sizes:
        _print_sizes(surveyed)
    _print_bad(opened, surveyed)
    if not surveyed.sizes:
        raise ValueError(f"none of the pictures in {opened.where} can be read")
    features, _ = choose_features(opened, size, colour, surveyed)
    spec = requested_spec(opened, size, aspect, colour, surveyed)
    if features != PIXELS:
        spec = ImageSpec(PHOTO_SIDE, PHOTO_SIDE, 3, aspect)  # type: ignore[arg-type]
    say(f"all will be decoded to {spec}")
    return spec, features


def _print_sizes(surveyed: Survey) -> None:
    formats = ", ".join(f"{count} {name}" for name, count in surveyed.formats.most_common())
    colour = "with colour" if surveyed.has_colour else "grey"
    say(f"{counted(len(surveyed.sizes), 'picture')} examined: {formats}; {colour}")
    widths, heights = zip(*surveyed.sizes, strict=True)
    median = f"{statistics.median(widths):.0f} x {statistics.median(heights):.0f}"
    if len(set(surveyed.sizes)) == 1:
        say(f"all are {median} pixels")
    else:
        small, large = min(surveyed.sizes, key=_area), max(surveyed.sizes, key=_area)
        say(
            f"sizes from {small[0]} x {small[1]} to {large[0]} x {large[1]} pixels, "
            f"median {median}",
        )


def _area(size: tuple[int, int]) -> int:
    return size[0] * size[1]


def _print_bad(opened: ImageSource, surveyed: Survey) -> None:
    bad = [(one.name, one.reason) for one in opened.skipped if one.is_picture]
    others = len(opened.skipped) - len(bad)
    bad += surveyed.bad
    if bad:
        say("of the files examined, these will be skipped:")
        for name, reason in bad[:MOST_BAD]:
            say(f"  {name}: {reason}")
        if len(bad) > MOST_BAD:
            say(f"  and {len(bad) - MOST_BAD:,} more")
    if others:
        say(f"{counted(others, 'file')} of other kinds will be ignored")


def _read_all(opened: ImageSource, spec: ImageSpec | None, cache: str | None) -> int:
    """Read all pictures, print which were skipped, and return how many could be read."""
    from jule.images import read_images

    with reading_bar(opened.where) as show:
        data = read_images(opened, spec, cache=Path(cache) if cache else None, progress=show)
    print_skipped(data)
    return len(data)


def _print_estimate(
    opened: ImageSource,
    spec: ImageSpec | None,
    n_images: int,
    reading: float,
    settings: Callable[..., Config],
    features: str,
) -> None:
    from jule.joint.config import kind_of
    from jule.runs.cost import estimate_cost

    array = opened.array()
    shape = spec.shape if spec is not None else () if array is None else array.shape[1:]
    is_encoded = features != PIXELS
    config = settings(of=kind_of(shape, encoded=is_encoded))
    cost = estimate_cost(n_images, shape, config, encoded=is_encoded)
    estimate = (
        f"clustering will take about {_duration(cost.seconds)} on this machine and "
        f"{cost.memory / 1e9:.1f} GB of memory"
    )
    say(estimate + (f"; reading the pictures {_duration(reading)}" if reading else ""))


def _duration(seconds: float) -> str:
    """Return a duration as text, in a suitable unit.

    Examples
    --------
    >>> _duration(0.4), _duration(75), _duration(9000)
    ('1 s', '75 s', '2.5 hours')
    """
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
