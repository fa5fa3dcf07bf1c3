"""One picture as it comes, to one size and one kind of pixel."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

Aspect = Literal["crop", "fit", "stretch"]

# Formats with a decoder that only decodes: Pillow also knows some that run other programs.
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "BMP", "DIB", "TIFF", "GIF", "AVIF", "PPM", "HEIF")
ORIENTATION = 0x0112  # the EXIF tag
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDEWAYS = (5, 6, 7, 8)
DIGEST = 16  # bytes


class BadPictureError(ValueError):
    """A picture that cannot be decoded; the message is the reason, in words."""


@dataclass(frozen=True)
class Look:
    """What all pictures are brought to.

    Attributes
    ----------
    height, width
        In pixels.
    channels
        1 grey, 3 colour.
    aspect
        What happens to a picture of another shape: ``"crop"`` keeps its middle, ``"fit"`` keeps
        all of it with black around, ``"stretch"`` distorts it.

    Examples
    --------
    >>> Look(48, 64, 3).shape, Look(48, 64, 1).shape
    ((48, 64, 3), (48, 64))
    """

    height: int
    width: int
    channels: int
    aspect: Aspect = "crop"

    def __post_init__(self) -> None:
        if self.height < 1 or self.width < 1:
            raise ValueError(f"pictures need a size of 1 x 1 at least, got {self}")
        if self.channels not in (1, 3):
            raise ValueError(f"pictures are grey (1) or colour (3), got {self.channels} channels")
        if self.aspect not in get_args(Aspect):
            choices = ", ".join(get_args(Aspect))
            raise ValueError(f"unknown aspect {self.aspect!r}: choose one of {choices}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one picture as an array."""
        return (self.height, self.width, 3) if self.channels == 3 else (self.height, self.width)

    @property
    def mode(self) -> Literal["RGB", "L"]:
        """Pillow's name for the kind of pixel."""
        return "RGB" if self.channels == 3 else "L"

    def to_json(self) -> dict[str, Any]:
        """Give the look as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        kind = "colour" if self.channels == 3 else "grey"
        return f"{self.width} x {self.height} pixels, {kind}, {self.aspect}"


def decode(picture: bytes | Image.Image | NDArray, look: Look) -> tuple[NDArray[np.uint8], bytes]:
    """Bring one picture to the look; gives its pixels and a digest of what it was.

    Orientation in the EXIF data is followed, transparency becomes white, a film gives its first
    frame, 16 bits become 8, and JPEGs are scaled down while they are decoded.

    Raises
    ------
    BadPictureError
        With the reason: damaged, cut off, not an image, too large.

    Examples
    --------
    >>> pixels, _ = decode(np.full((2, 4), 7, np.uint8), Look(2, 2, 1))
    >>> pixels.tolist()
    [[7, 7], [7, 7]]
    """
    try:
        # Here too: an open picture that nobody has decoded yet may turn out to be damaged.
        digest = sha256(_content(picture)).digest()[:DIGEST]  # most processors have it built in
        if _fits_already(picture, look):
            return np.asarray(picture), digest
        image = _brought_to(look, open_picture(picture))
        # Quicker than numpy's own way, which asks the image for more than its bytes.
        return np.frombuffer(image.tobytes(), np.uint8).reshape(look.shape), digest
    except BadPictureError:
        raise
    except Image.DecompressionBombError as error:
        raise BadPictureError(f"it is too large to be decoded safely ({error})") from error
    except Exception as error:  # damaged bytes make decoders raise anything at all
        raise BadPictureError(f"it is damaged ({error or type(error).__name__})") from error


def _fits_already(picture: bytes | Image.Image | NDArray, look: Look) -> bool:
    return (
        isinstance(picture, np.ndarray)
        and picture.shape == look.shape
        and picture.dtype == np.uint8
    )


def _content(picture: bytes | Image.Image | NDArray) -> bytes:
    if isinstance(picture, bytes):
        return picture
    if isinstance(picture, Image.Image):
        return f"{picture.mode} {picture.size}".encode() + picture.tobytes()
    return f"{picture.dtype} {picture.shape}".encode() + picture.tobytes()


def open_picture(picture: bytes | Image.Image | NDArray) -> Image.Image:
    """Give a picture as Pillow sees it, pixels not yet decoded.

    Examples
    --------
    >>> open_picture(np.zeros((2, 3), np.uint8)).size
    (3, 2)
    """
    if isinstance(picture, Image.Image):
        return picture
    if isinstance(picture, np.ndarray):
        return Image.fromarray(_as_uint8(picture))
    if not picture:
        raise BadPictureError("it is empty")
    try:
        return Image.open(io.BytesIO(picture), formats=known_formats())
    except UnidentifiedImageError:
        raise BadPictureError(_not_an_image(picture)) from None


def _not_an_image(content: bytes) -> str:
    if content[4:8] == b"ftyp" and content[8:11] in (b"hei", b"mif", b"msf", b"hev"):
        return 'it is a HEIF photograph: pip install "jule[heif]"'
    return "it is not an image"


@cache
def known_formats() -> tuple[str, ...]:
    """Give the formats that can be decoded here.

    Examples
    --------
    >>> "JPEG" in known_formats()
    True
    """
    try:
        from pillow_heif import register_heif_opener

        register_heif_opener()
    except ImportError:
        pass
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _as_uint8(pixels: NDArray) -> NDArray[np.uint8]:
    """Give an array of pixels as 8 bits: floats up to 1 and 16 bits are scaled."""
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)):
        raise BadPictureError(f"an array of shape {pixels.shape} is not a picture")
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels)
    if pixels.dtype == np.bool_:
        return pixels.astype(np.uint8) * 255
    if pixels.dtype.kind not in "fiu":
        raise BadPictureError(f"an array of {pixels.dtype} is not a picture")
    if not np.isfinite(pixels).all():
        raise BadPictureError("it has NaN or infinity in it")
    largest = float(pixels.max(initial=0))
    if pixels.dtype.kind == "f" and largest <= 1:
        scale = 255.0
    else:
        scale = 1.0 if largest <= 255 else 1 / 257  # 16 bits: 65,535 becomes 255
    return (np.clip(pixels * scale, 0, 255) + 0.5).astype(np.uint8)


def turn_of(image: Image.Image) -> int:
    """Give the EXIF orientation, 1 (upright) where there is none or it is damaged.

    Examples
    --------
    >>> turn_of(Image.new("L", (2, 2)))
    1
    """
    if image.format == "TIFF":  # Pillow turns these itself while it decodes them
        return 1
    if image.format == "JPEG" and "exif" not in image.info:
        return 1
    try:
        turn = image.getexif().get(ORIENTATION, 1)
    except Exception:  # what stands beside the pixels must not cost the picture
        return 1
    return turn if turn in UPRIGHT else 1


def _brought_to(look: Look, image: Image.Image) -> Image.Image:
    turn = turn_of(image)
    size = (look.width, look.height)
    # All is done on the picture as it lies; only the small result is turned upright.
    size = size[::-1] if turn in SIDEWAYS else size
    image.draft(look.mode, size)
    image = _plain(image)
    image = image if image.mode == look.mode else image.convert(look.mode)
    image = _resized(image, size, look.aspect)
    return image if turn == 1 else image.transpose(UPRIGHT[turn])


def _plain(image: Image.Image) -> Image.Image:
    """Give 8-bit grey or colour pixels, with nothing transparent left."""
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_of_many_bits(image))
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "La", "RGBa"):
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _of_many_bits(image: Image.Image) -> NDArray[np.uint8]:
    pixels = np.asarray(image)
    if image.mode.startswith("F"):
        return _as_uint8(pixels)
    return ((np.clip(pixels.astype(np.int64), 0, 65535) + 128) // 257).astype(np.uint8)


def _resized(image: Image.Image, size: tuple[int, int], aspect: Aspect) -> Image.Image:
    if image.size == size:
        image.load()
        return image
    if aspect == "fit":
        inside = _within(image.size, size)
        canvas = Image.new(image.mode, size)
        corner = ((size[0] - inside[0]) // 2, (size[1] - inside[1]) // 2)
        canvas.paste(_scaled(image, inside, None), corner)
        return canvas
    return _scaled(image, size, _middle(image.size, size) if aspect == "crop" else None)


def _scaled(
    image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float] | None
) -> Image.Image:
    return image.resize(size, Image.Resampling.BILINEAR, box, reducing_gap=2.0)


def _within(image: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """Give the largest size of the image's shape inside `size`.

    Examples
    --------
    >>> _within((400, 200), (64, 64))
    (64, 32)
    """
    scale = min(size[0] / image[0], size[1] / image[1])
    return max(1, round(image[0] * scale)), max(1, round(image[1] * scale))


def _middle(image: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Give the largest box of the shape of `size` in the middle of the image.

    Examples
    --------
    >>> _middle((400, 200), (64, 64))
    (100.0, 0.0, 300.0, 200.0)
    """
    scale = min(image[0] / size[0], image[1] / size[1])
    width, height = scale * size[0], scale * size[1]
    left, top = (image[0] - width) / 2, (image[1] - height) / 2
    right, bottom = min(float(image[0]), left + width), min(float(image[1]), top + height)
    return max(0.0, left), max(0.0, top), right, bottom
