"""Find PNG files whose pixels are not all there.

Pillow fills missing rows with zeros if the compressed data ends early but properly. In this way, a
file of 84 bytes can announce 89 million pixels.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from PIL import Image

from jule.images.sources.content import BadPictureError

HEAD = struct.Struct(">4xIIBBxxB")  # after the signature and the length: width, height, ...
HEAD_AT = 12
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
BEST_RATIO = 1032  # the most bytes that one byte of deflate can unpack to
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
          (0, 1, 1, 2))  # fmt: skip
BLOCK = 2**16
CUT_OFF = "it is cut off: not all of its rows are there"


def check_png_head(head: bytes, n_bytes: int) -> None:
    """Raise if a PNG file of `n_bytes` cannot hold the pixels that its head announces.

    Examples
    --------
    >>> check_png_head(b"not a PNG file", 14)
    """
    if unpacked_size(head) > BEST_RATIO * n_bytes:
        raise BadPictureError(CUT_OFF)


def check_png_rows(content: bytes, image: Image.Image) -> None:
    """Raise if rows of a decoded PNG file are missing.

    The data is only unpacked a second time if the last row is all zero, as a missing row would be,
    or if the rows are interlaced.

    Examples
    --------
    >>> check_png_rows(b"not a PNG file", Image.new("L", (2, 2)))
    """
    expected = unpacked_size(content)
    if expected and (_is_interlaced(content) or _ends_in_zeros(image)):
        found = 0
        for block in _unpack(content):
            found += len(block)
            if found >= expected:
                return
        raise BadPictureError(CUT_OFF)


def unpacked_size(head: bytes) -> int:
    """Return the number of unpacked bytes that the head of a PNG file announces.

    It is 0 for something else. Every row has one byte more than its pixels.

    Examples
    --------
    >>> unpacked_size(b"not a PNG file")
    0
    """
    if len(head) < HEAD_AT + HEAD.size or head[HEAD_AT : HEAD_AT + 4] != b"IHDR":
        return 0
    width, height, depth, kind, _ = HEAD.unpack_from(head, HEAD_AT)
    bits = depth * CHANNELS.get(kind, 1)
    if not _is_interlaced(head):
        return _rows_size(width, height, bits)
    sides = (
        (-((left - width) // right), -((top - height) // down)) for left, top, right, down in PASSES
    )
    return sum(_rows_size(wide, high, bits) for wide, high in sides if wide > 0)


def _rows_size(width: int, height: int, bits: int) -> int:
    return max(0, height) * (1 + (width * bits + 7) // 8)


def _is_interlaced(head: bytes) -> bool:
    return bool(HEAD.unpack_from(head, HEAD_AT)[4])


def _ends_in_zeros(image: Image.Image) -> bool:
    width, height = image.size
    return not any(image.crop((0, height - 1, width, height)).tobytes())


def _unpack(content: bytes) -> Iterator[bytes]:
    """Unpack the pixel data of a PNG file in blocks, as far as that is possible."""
    unpacker = zlib.decompressobj()
    at = 8
    try:
        while at + 8 <= len(content) and not unpacker.eof:
            length, kind = struct.unpack_from(">I4s", content, at)
            data = content[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
            while data and not unpacker.eof:
                yield unpacker.decompress(data, BLOCK)
                data = unpacker.unconsumed_tail
            at += 12 + length
    except zlib.error:
        return
