"""Pictures and files that several tests write."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

from jule.images.sources.base import ImageSource


def pixels(seed=0, height=24, width=32, channels=3):
    """Smooth pixels, different for every seed, that survive lossy formats about as they are."""
    rows, columns = np.mgrid[0:height, 0:width]
    waves = np.random.default_rng(seed).uniform(0.05, 0.3, (channels, 3))
    layers = [np.sin(rows * a + columns * b + 9 * c) for a, b, c in waves]
    image = np.round(127 + 120 * np.stack(layers, axis=-1)).astype(np.uint8)
    return image[..., 0] if channels == 1 else image


def file_of(image, kind="PNG", **options):
    """The bytes of a picture's file."""
    if not isinstance(image, Image.Image):
        image = Image.fromarray(image)
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def png_of_rows(width, height, rows, *, depth=8, kind=2, interlaced=False):
    """A PNG file with any content: `rows` is what it unpacks to, with the filter of each row."""

    def chunk(name, content):
        check = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    palette = chunk(b"PLTE", bytes(range(6))) if kind == 3 else b""
    body = palette + chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body + chunk(b"IEND", b"")


def png_that_promises(width, height):
    """A small PNG file that announces many pixels, and has none."""
    return png_of_rows(width, height, b"")


def write_pictures(folder, images, name="{:03}.png"):
    """Write each image as a file; return the names in order."""
    names = [name.format(number) for number in range(len(images))]
    for one, image in zip(names, images, strict=True):
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        (folder / one).write_bytes(file_of(image))
    return names


class NoSource(ImageSource):
    """A source with an identity that must not be asked for a picture."""

    def __init__(self, like):
        super().__init__(like.where, like.names, like.labels, like.skipped)
        self._like = like

    def picture(self, index):
        raise AssertionError(f"picture {index} was read, but it is in the cache")

    def identity(self):
        return self._like.identity()
