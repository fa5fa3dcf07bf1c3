"""The size and colour mode of the images of a run. This module loads neither numpy nor Pillow."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Aspect = Literal["crop", "fit", "stretch"]


@dataclass(frozen=True)
class ImageSpec:
    """Target size and colour mode of the images.

    Attributes
    ----------
    height, width
        In pixels.
    channels
        1 for grey, 3 for RGB.
    aspect
        How pictures with a different aspect ratio are treated: ``"crop"`` keeps the centre,
        ``"fit"`` keeps everything and adds black borders, ``"stretch"`` distorts.

    Examples
    --------
    >>> ImageSpec(48, 64, 3).shape, ImageSpec(48, 64, 1).shape
    ((48, 64, 3), (48, 64))
    """

    height: int
    width: int
    channels: int
    aspect: Aspect = "crop"

    def __post_init__(self) -> None:
        if self.height < 1 or self.width < 1:
            raise ValueError(f"images need at least 1 x 1 pixels, got {self}")
        if self.channels not in (1, 3):
            raise ValueError(f"images have 1 channel (grey) or 3 (RGB), got {self.channels}")
        check_aspect(self.aspect)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one image as an array."""
        return (self.height, self.width, 3) if self.channels == 3 else (self.height, self.width)

    @property
    def mode(self) -> Literal["RGB", "L"]:
        """Colour mode in Pillow's terms."""
        return "RGB" if self.channels == 3 else "L"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)

    def __str__(self) -> str:
        kind = "colour" if self.channels == 3 else "grey"
        return f"{self.width} x {self.height} pixels, {kind}, {self.aspect}"


def check_aspect(aspect: str) -> None:
    """Raise unless the aspect is crop, fit or stretch.

    Examples
    --------
    >>> check_aspect("crop")
    """
    if aspect not in get_args(Aspect):
        raise ValueError(f"unknown aspect {aspect!r}: choose one of {', '.join(get_args(Aspect))}")
