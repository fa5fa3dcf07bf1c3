"""Decode one picture to a given size and colour mode."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from typing import Any, BinaryIO, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from jule.images.sources.content import BadPictureError, RawImage

Aspect = Literal["crop", "fit", "stretch"]

# Only formats whose decoder runs inside Pillow; for some others it starts external programs.
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "BMP", "DIB", "TIFF", "GIF", "AVIF", "PPM", "HEIF")
ORIENTATION = 0x0112  # the EXIF tag
TRANSPOSITIONS = {
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


def decode(raw: RawImage, spec: ImageSpec) -> tuple[NDArray[np.uint8], bytes]:
    """Decode one picture to a size and colour mode; return its pixels and a digest of `raw`.

    The EXIF orientation is applied, transparency becomes white, an animation is reduced to its
    first frame, and 16 bits become 8. JPEGs are scaled down while they are decoded.

    Raises
    ------
    BadPictureError
        If the picture is damaged, cut off, not an image or too large; the message is the reason.

    Examples
    --------
    >>> pixels, _ = decode(np.full((2, 4), 7, np.uint8), ImageSpec(2, 2, 1))
    >>> pixels.tolist()
    [[7, 7], [7, 7]]
    """
    with bad_picture_errors():
        # Inside the block: hashing a lazily opened Pillow image decodes it.
        digest = sha256(_content(raw)).digest()[:DIGEST]
        if _fits_already(raw, spec):
            return np.asarray(raw), digest
        image = to_spec(open_picture(raw), spec)
        # Faster than np.asarray(image).
        return np.frombuffer(image.tobytes(), np.uint8).reshape(spec.shape), digest


@contextmanager
def bad_picture_errors() -> Iterator[None]:
    """Turn every error of a decoder into a BadPictureError with a reason.

    Examples
    --------
    >>> with bad_picture_errors():
    ...     pass
    """
    try:
        yield
    except BadPictureError:
        raise
    except Image.DecompressionBombError as error:
        raise BadPictureError(f"it is too large to be decoded safely ({error})") from error
    except Exception as error:  # decoders raise anything for damaged bytes
        raise BadPictureError(f"it is damaged ({error or type(error).__name__})") from error


def _fits_already(raw: RawImage, spec: ImageSpec) -> bool:
    return isinstance(raw, np.ndarray) and raw.shape == spec.shape and raw.dtype == np.uint8


def _content(raw: RawImage) -> bytes:
    if isinstance(raw, bytes):
        return raw
    if isinstance(raw, Image.Image):
        return f"{raw.mode} {raw.size}".encode() + raw.tobytes()
    return f"{raw.dtype} {raw.shape}".encode() + raw.tobytes()


def open_picture(raw: RawImage) -> Image.Image:
    """Open a picture as a Pillow image; the pixels of a file are not decoded yet.

    Examples
    --------
    >>> open_picture(np.zeros((2, 3), np.uint8)).size
    (3, 2)
    """
    if isinstance(raw, Image.Image):
        return raw
    if isinstance(raw, np.ndarray):
        return Image.fromarray(to_uint8(raw))
    return open_encoded(io.BytesIO(raw))


def open_encoded(file: BinaryIO) -> Image.Image:
    """Open a picture file as a Pillow image, without decoding its pixels.

    Examples
    --------
    >>> open_encoded(io.BytesIO(b"P5 2 3 255 123456")).size
    (2, 3)
    """
    try:
        return Image.open(file, formats=known_formats())
    except UnidentifiedImageError:
        file.seek(0)
        raise BadPictureError(_why_not_an_image(file.read(16))) from None


def _why_not_an_image(head: bytes) -> str:
    if not head:
        return "it is empty"
    if head[4:8] == b"ftyp" and head[8:11] in (b"hei", b"mif", b"msf", b"hev"):
        return 'it is a HEIF photograph: pip install "jule[heif]"'
    return "it is not an image"


@cache
def known_formats() -> tuple[str, ...]:
    """Return the formats that can be decoded in this environment.

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


def to_uint8(pixels: NDArray) -> NDArray[np.uint8]:
    """Convert the pixels of one image to 8 bits; floats up to 1 and 16 bits are scaled.

    Examples
    --------
    >>> to_uint8(np.array([[0.0, 1.0]])).tolist()
    [[0, 255]]
    """
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
        raise BadPictureError("it contains NaN or infinity")
    largest = float(pixels.max(initial=0))
    if pixels.dtype.kind == "f" and largest <= 1:
        scale = 255.0
    else:
        scale = 1.0 if largest <= 255 else 1 / 257  # 16 bits: 65,535 becomes 255
    return (np.clip(pixels * scale, 0, 255) + 0.5).astype(np.uint8)


def exif_orientation(image: Image.Image) -> int:
    """Return the EXIF orientation; 1 (upright) if there is none or it is damaged.

    Examples
    --------
    >>> exif_orientation(Image.new("L", (2, 2)))
    1
    """
    if image.format == "TIFF":  # Pillow applies it while decoding
        return 1
    if image.format == "JPEG" and "exif" not in image.info:
        return 1
    try:
        orientation = image.getexif().get(ORIENTATION, 1)
    except Exception:  # damaged metadata is no reason to skip the picture
        return 1
    return orientation if orientation in TRANSPOSITIONS else 1


def to_spec(image: Image.Image, spec: ImageSpec) -> Image.Image:
    """Decode an open image and convert it to a size and colour mode.

    Examples
    --------
    >>> to_spec(Image.new("RGB", (40, 20)), ImageSpec(8, 8, 1)).size
    (8, 8)
    """
    orientation = exif_orientation(image)
    size = (spec.width, spec.height)
    # Everything is done before rotation, so that only the small result is rotated.
    size = size[::-1] if orientation in SIDEWAYS else size
    image.draft(spec.mode, size)
    image = _to_8_bits(image)
    image = image if image.mode == spec.mode else image.convert(spec.mode)
    image = _resize(image, size, spec.aspect)
    return image if orientation == 1 else image.transpose(TRANSPOSITIONS[orientation])


def _to_8_bits(image: Image.Image) -> Image.Image:
    """Convert to 8-bit grey or RGB, with transparency over white."""
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_reduce_depth(image))
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "La", "RGBa"):
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _reduce_depth(image: Image.Image) -> NDArray[np.uint8]:
    pixels = np.asarray(image)
    if image.mode.startswith("F"):
        return to_uint8(pixels)
    return ((np.clip(pixels.astype(np.int64), 0, 65535) + 128) // 257).astype(np.uint8)


def _resize(image: Image.Image, size: tuple[int, int], aspect: Aspect) -> Image.Image:
    if image.size == size:
        image.load()
        return image
    if aspect == "fit":
        inside = _fitted_size(image.size, size)
        canvas = Image.new(image.mode, size)
        corner = ((size[0] - inside[0]) // 2, (size[1] - inside[1]) // 2)
        canvas.paste(_scale(image, inside, None), corner)
        return canvas
    return _scale(image, size, _center_box(image.size, size) if aspect == "crop" else None)


def _scale(
    image: Image.Image, size: tuple[int, int], box: tuple[float, float, float, float] | None
) -> Image.Image:
    return image.resize(size, Image.Resampling.BILINEAR, box, reducing_gap=2.0)


def _fitted_size(image: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """Return the largest size inside `size` that keeps the image's aspect ratio.

    Examples
    --------
    >>> _fitted_size((400, 200), (64, 64))
    (64, 32)
    """
    scale = min(size[0] / image[0], size[1] / image[1])
    return max(1, round(image[0] * scale)), max(1, round(image[1] * scale))


def _center_box(image: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Return the largest centred box of an image that has the aspect ratio of `size`.

    Examples
    --------
    >>> _center_box((400, 200), (64, 64))
    (100.0, 0.0, 300.0, 200.0)
    """
    scale = min(image[0] / size[0], image[1] / size[1])
    width, height = scale * size[0], scale * size[1]
    left, top = (image[0] - width) / 2, (image[1] - height) / 2
    right, bottom = min(float(image[0]), left + width), min(float(image[1]), top + height)
    return max(0.0, left), max(0.0, top), right, bottom
