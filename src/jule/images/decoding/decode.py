"""Decode one picture to a given size and colour mode.

A worker process imports this module, so it imports numpy only where pixels need it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from PIL import Image, UnidentifiedImageError

from jule.images.decoding.png import check_png_head, check_png_rows
from jule.images.decoding.spec import Aspect, ImageSpec
from jule.images.sources.content import BadPictureError, RawImage, read_file, reason_of
from jule.memory import format_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A picture to decode: its content, its path, or the reason why it could not be read.
Item: TypeAlias = "RawImage | Path | str"

# Only formats whose decoder runs inside Pillow; for some others it starts external programs.
FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "BMP", "DIB", "TIFF", "GIF", "AVIF", "PPM", "HEIF")
PLUGINS = ("Jpeg", "Mpo", "Png", "WebP", "Bmp", "Tiff", "Gif", "Avif", "Ppm")
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
HEAD = 64  # bytes at the beginning of a file that say what it is
PIXEL_BYTES = {"1": 1, "L": 1, "P": 1}  # of a decoded image by mode; 4 for the others
WEBP_BYTES = 12  # per pixel: its decoder keeps two canvases and makes a third
BLOCK_PIXELS = 2**20  # reduced to 8 bits at a time


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
    >>> import numpy as np
    >>> pixels, _ = decode(np.full((2, 4), 7, np.uint8), ImageSpec(2, 2, 1))
    >>> pixels.tolist()
    [[7, 7], [7, 7]]
    """
    import numpy as np

    if isinstance(raw, np.ndarray) and raw.shape == spec.shape and raw.dtype == np.uint8:
        return raw, content_digest(raw)
    pixels, digest = decode_to_bytes(raw, spec)
    return np.frombuffer(pixels, np.uint8).reshape(spec.shape), digest


def decode_to_bytes(
    raw: RawImage, spec: ImageSpec, memory: int | None = None
) -> tuple[bytes, bytes]:
    """Decode one picture as `decode` does, and return its pixels as bytes, with the digest.

    `memory` is the number of bytes that the decoder may use, if it is limited.

    Examples
    --------
    >>> decode_to_bytes(b"P5 2 1 255 ab", ImageSpec(1, 2, 1))[0]
    b'ab'
    """
    with bad_picture_errors(memory):
        # Inside the block: hashing a lazily opened Pillow image decodes it.
        digest = content_digest(raw)
        image = open_picture(raw, memory)
        if isinstance(raw, bytes) and image.format == "PNG":
            image.load()
            check_png_rows(raw, image)
        pixels = to_spec(image, spec).tobytes()
        if len(pixels) != spec.height * spec.width * spec.channels:
            raise BadPictureError("it is damaged (its pixels are not of the size it announces)")
        return pixels, digest


def read_item(item: Item) -> RawImage:
    """Return the content of an item; raise BadPictureError if it cannot be read.

    Examples
    --------
    >>> read_item(b"abc")
    b'abc'
    """
    if isinstance(item, str):
        raise BadPictureError(item)
    if not isinstance(item, Path):
        return item
    try:
        return read_file(item)
    except OSError as error:
        raise BadPictureError(reason_of(error)) from error
    except ValueError as error:  # bad pictures, and names that no file can have
        raise BadPictureError(str(error)) from error


@contextmanager
def bad_picture_errors(memory: int | None = None) -> Iterator[None]:
    """Turn every error of a decoder into a BadPictureError with a reason.

    `memory` is the number of bytes that the decoder may use, if it is limited.

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
        if isinstance(error, MemoryError) or "memory" in str(error).lower():
            raise BadPictureError(needs_memory(memory)) from None
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadPictureError(f"it is damaged ({reason})") from error


def needs_memory(memory: int | None) -> str:
    """Return the reason to skip a picture that needs more than `memory` bytes.

    Examples
    --------
    >>> needs_memory(1_200_000_000)
    'it needs more memory than the 1.2 GB that a decoder may use'
    """
    if memory is None:
        return "it needs more memory than there is"
    return f"it needs more memory than the {format_bytes(memory)} that a decoder may use"


def content_digest(raw: RawImage) -> bytes:
    """Return the checksum that identifies a picture by its content: of its file, or its pixels.

    Examples
    --------
    >>> content_digest(b"")[:4].hex()
    'e3b0c442'
    """
    if isinstance(raw, bytes):
        content = raw
    elif isinstance(raw, Image.Image):
        content = f"{raw.mode} {raw.size}".encode() + raw.tobytes()
    else:
        content = f"{raw.dtype} {raw.shape}".encode() + raw.tobytes()
    return sha256(content).digest()[:DIGEST]


def open_picture(raw: RawImage, memory: int | None = None) -> Image.Image:
    """Open a picture as a Pillow image; the pixels of a file are not decoded yet.

    `memory` is the number of bytes that its decoder may use, if it is limited.

    Examples
    --------
    >>> open_picture(b"P5 2 3 255 123456").size
    (2, 3)
    """
    if isinstance(raw, bytes):
        return open_encoded(io.BytesIO(raw), len(raw), memory)
    return raw if isinstance(raw, Image.Image) else Image.fromarray(to_uint8(raw))


def open_encoded(file: BinaryIO, n_bytes: int, memory: int | None = None) -> Image.Image:
    """Open a picture file of `n_bytes` as a Pillow image, without decoding its pixels.

    Raises
    ------
    BadPictureError
        If its header alone shows that it is not an image, that pixels are missing, or that its
        decoder would need more than `memory` bytes.

    Examples
    --------
    >>> open_encoded(io.BytesIO(b"P5 2 3 255 123456"), 17).size
    (2, 3)
    """
    head = file.read(HEAD)
    file.seek(0)
    _check_webp_head(head, memory)
    try:
        image = Image.open(file, formats=known_formats())
    except UnidentifiedImageError:
        raise BadPictureError(_why_not_an_image(head)) from None
    if image.format == "PNG":
        check_png_head(head, n_bytes)
    if memory is not None and _least_memory(image) > memory:
        raise BadPictureError(needs_memory(memory))
    return image


def _least_memory(image: Image.Image) -> int:
    """Return how many bytes the decoder of an image needs at least."""
    width, height = image.size
    if image.format in ("JPEG", "MPO"):  # scaled down while decoded, unless it is progressive
        return width * height * 2 * len(image.getbands()) * ("progressive" in image.info)
    per_pixel = 2 if image.mode.startswith("I;16") else PIXEL_BYTES.get(image.mode, 4)
    return width * height * per_pixel + 8 * height  # 8: Pillow has a pointer to each row


def _check_webp_head(head: bytes, memory: int | None) -> None:
    """Raise if a WebP file is too large; opening it would already need much of the memory."""
    if memory is None or head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return
    kind, data = head[12:16], head[20:30]
    if kind == b"VP8X":
        width, height = (1 + int.from_bytes(data[at : at + 3], "little") for at in (4, 7))
    elif kind == b"VP8L":
        bits = int.from_bytes(data[1:5], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    else:
        width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (6, 8))
    if width * height * WEBP_BYTES > memory:
        raise BadPictureError(needs_memory(memory))


def _why_not_an_image(head: bytes) -> str:
    if not head:
        return "it is empty"
    is_heif = head[4:8] == b"ftyp" and head[8:11] in (b"hei", b"mif", b"msf", b"hev")
    if is_heif and "HEIF" not in known_formats():
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
    for name in PLUGINS:  # Image.init() would load forty others
        with suppress(ImportError):
            import_module(f"PIL.{name}ImagePlugin")
    return tuple(name for name in FORMATS if name in Image.OPEN)


def to_uint8(pixels: NDArray) -> NDArray[np.uint8]:
    """Convert the pixels of one image to 8 bits; floats up to 1 and 16 bits are scaled.

    Examples
    --------
    >>> import numpy as np
    >>> to_uint8(np.array([[0.0, 1.0]])).tolist()
    [[0, 255]]
    """
    import numpy as np

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
    image.load()  # before its size is used: that of a rotated TIFF changes here
    image = _to_8_bits(image)
    image = image if image.mode == spec.mode else image.convert(spec.mode)
    image = _resize(image, size, spec.aspect)
    return image if orientation == 1 else image.transpose(TRANSPOSITIONS[orientation])


def _to_8_bits(image: Image.Image) -> Image.Image:
    """Convert to 8-bit grey or RGB, with transparency over white."""
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_reduce_depth(image))
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "La", "RGBa"):
        image = image if image.mode == "RGBA" else image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image if image.mode in ("L", "RGB") else image.convert("RGB")


def _reduce_depth(image: Image.Image) -> NDArray[np.uint8]:
    import numpy as np

    pixels = np.asarray(image)
    if image.mode.startswith("F"):
        return to_uint8(pixels)
    reduced = np.empty(pixels.shape, np.uint8)
    rows = max(1, BLOCK_PIXELS // pixels.shape[1])
    for start in range(0, len(pixels), rows):
        block = pixels[start : start + rows].astype(np.int64)
        reduced[start : start + rows] = (np.clip(block, 0, 65535) + 128) // 257
    return reduced


def _resize(image: Image.Image, size: tuple[int, int], aspect: Aspect) -> Image.Image:
    if image.size == size:
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
