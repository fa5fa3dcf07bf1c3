"""The interface of all sources: a length, names, labels, and the raw content of each picture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import NDArray

from jule.images.sources.content import RawImage, reason_of
from jule.text import one_line, printable

SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".gif",
    ".avif", ".ppm", ".pgm", ".heic", ".heif",
)  # fmt: skip
NOT_UTF8 = "its name is not UTF-8: rename it"
OTHER_KIND = "it is not a picture file"
LONGEST_NAME = 4096  # characters; no system has longer paths
TOO_LONG = f"its name has more than {LONGEST_NAME:,} characters"


@dataclass(frozen=True)
class Skipped:
    """A file that was skipped, and why.

    Attributes
    ----------
    name
        The name to print, which may differ from the name to open.
    reason
        Why it was skipped.
    is_picture
        Whether the file was meant to be a picture. Other files are listed too, but do not raise an
        error with ``strict=True``.
    """

    name: str
    reason: str
    is_picture: bool = True


class ImageSource(ABC):
    """Base class of all sources of pictures.

    A source knows how many pictures it has and how to read each of them; it does not decode.

    Parameters
    ----------
    where
        Where the pictures are, for messages; usually the user's input.
    names
        The name of each picture.
    labels
        True classes, if the source has them; for evaluation only.
    skipped
        Files that were found but will not be read.
    """

    def __init__(
        self,
        where: str,
        names: list[str],
        labels: NDArray | None = None,
        skipped: list[Skipped] | None = None,
    ) -> None:
        self.where = where
        self.names = names
        self.labels = labels
        self.skipped = skipped or []

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def picture(self, index: int) -> RawImage:
        """Return one picture without decoding it: the bytes of its file, or pixels.

        Raises OSError or BadPictureError if the picture cannot be read.
        """

    def picture_or_reason(self, index: int) -> RawImage | str:
        """Return one picture, or, as a string, the reason why it cannot be read."""
        try:
            return self.picture(index)
        except OSError as error:
            return reason_of(error)
        except ValueError as error:  # bad pictures, and names that no file can have
            return str(error)

    def array(self) -> NDArray | None:
        """Return all pictures as one array, if the source is an array."""
        return None

    def path(self, index: int) -> Path | None:
        """Return the path of a picture, if it is a file of its own."""
        del index
        return None

    def identity(self) -> Iterator[str] | None:
        """Return strings that change when the content changes; None if that is unknown."""
        return None


def is_picture_name(name: str) -> bool:
    """Return whether a file has the suffix of a picture.

    Examples
    --------
    >>> is_picture_name("a/IMG_1.JPG"), is_picture_name("notes.txt")
    (True, False)
    """
    return Path(name).suffix.lower() in SUFFIXES


def is_hidden(name: str) -> bool:
    """Return whether a path in a folder or an archive is hidden or a system file.

    Examples
    --------
    >>> is_hidden(".thumbs/a.jpg"), is_hidden("__MACOSX/a.jpg"), is_hidden("b/a.jpg")
    (True, True, False)
    """
    return any(
        (part.startswith(".") and part != "..") or part == "__MACOSX" for part in Path(name).parts
    )


def escape_name(name: str) -> str:
    """Return a file name as valid UTF-8, with other bytes escaped.

    Examples
    --------
    >>> escape_name("caf\\udce9.jpg")
    'caf\\\\udce9.jpg'
    """
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def shorten_name(name: str) -> str:
    """Return a file name for a message: without control characters, and not too long.

    Examples
    --------
    >>> shorten_name("a.jpg"), len(shorten_name("a" * 10_000))
    ('a.jpg', 203)
    """
    shown = printable(name)
    return shown if len(shown) <= 203 else f"{shown[:100]}...{shown[-100:]}"


def error_text(error: BaseException) -> str:
    """Return the message of an error on one line; the name of its type if it has none.

    Examples
    --------
    >>> error_text(ValueError("a\\nb")), error_text(EOFError())
    ('a b', 'EOFError')
    """
    return one_line(str(error)) or type(error).__name__


def is_utf8(name: str) -> bool:
    """Return whether a file name is valid UTF-8.

    Examples
    --------
    >>> is_utf8("café.jpg"), is_utf8("caf\\udce9.jpg")
    (True, False)
    """
    return escape_name(name) == name
