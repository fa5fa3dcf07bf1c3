"""Data sets of other libraries: torch, Hugging Face, or any sequence of images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from jule.images.sources.base import ImageSource
from jule.images.sources.content import BadPictureError, RawImage, read_file, to_numpy

IMAGE_KEYS = ("image", "img", "images", "pixels")
LABEL_KEYS = ("label", "labels", "fine_label")


class DatasetSource(ImageSource):
    """A `torch.utils.data.Dataset`, or any object with a length and items.

    An item is an image, a tuple (image, class), or a dict with the key `image`. An image is a
    Pillow image, an array (h, w[, c]) or a tensor (c, h, w). Classes are not read: that would load
    every image twice.

    Examples
    --------
    >>> source = DatasetSource([(np.zeros((4, 4), np.uint8), 0)])
    >>> len(source), source.picture(0).shape
    (1, (4, 4))
    """

    def __init__(self, dataset: Any, where: str = "a data set") -> None:
        super().__init__(where, [str(index) for index in range(len(dataset))])
        self._dataset = dataset

    def picture(self, index: int) -> RawImage:
        """Return the image of one item."""
        try:
            return image_of(self._dataset[index])
        except BadPictureError:
            raise
        except Exception as error:  # the code of a data set may raise anything for a bad item
            raise BadPictureError(f"its data set cannot load it ({error})") from error


def image_of(item: Any) -> RawImage:
    """Return the image in an item of a data set.

    Examples
    --------
    >>> image_of((np.zeros((3, 8, 8), np.uint8), 7)).shape
    (8, 8, 3)
    """
    if isinstance(item, dict):
        keys = [key for key in IMAGE_KEYS if key in item]
        if not keys:
            raise BadPictureError(f"its item has no {' or '.join(IMAGE_KEYS)}")
        item = item[keys[0]]
    elif isinstance(item, tuple | list):
        item = item[0]
    if isinstance(item, bytes | Image.Image):
        return item
    array = to_numpy(item)
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    return array


class HuggingFaceSource(ImageSource):
    """One split of a Hugging Face data set that has a column of images."""

    def __init__(self, dataset: Any, where: str = "a Hugging Face data set") -> None:
        columns = [name for name, kind in dataset.features.items() if _is_image(kind)]
        if not columns:
            known = ", ".join(dataset.features)
            raise ValueError(f"{where} has no column of images, only {known}")
        import datasets

        self._column = columns[0]
        # Without decoding: jule decodes the bytes on all cores.
        self._dataset = dataset.cast_column(self._column, datasets.Image(decode=False))
        classes = [name for name in LABEL_KEYS if name in dataset.features]
        labels = np.asarray(dataset[classes[0]][:]) if classes else None
        names = [str(index) for index in range(len(dataset))]
        super().__init__(where, names, labels if labels is not None and labels.ndim == 1 else None)

    def picture(self, index: int) -> bytes:
        """Return the bytes of one image, or of the file it refers to."""
        found = self._dataset[index][self._column]
        if found is None:
            raise BadPictureError("it is missing in its data set")
        if found["bytes"] is not None:
            content: bytes = found["bytes"]
            return content
        return read_file(Path(found["path"]))

    def identity(self) -> Iterator[str]:
        """Yield the fingerprint that the library computes."""
        yield str(self._dataset._fingerprint)


def _is_image(kind: Any) -> bool:
    return type(kind).__name__ == "Image"


def open_hugging_face(name: str) -> HuggingFaceSource:
    """Open `hf:NAME` or `hf:NAME:SPLIT`, or a folder written by `save_to_disk`."""
    try:
        import datasets
    except ImportError as error:
        raise ImportError('Hugging Face data sets need: pip install "jule[hf]"') from error
    if not name.startswith("hf:"):
        try:
            saved = datasets.load_from_disk(name)
        except Exception as error:  # the library passes on whatever its dependencies raise
            raise ValueError(
                f"{name} cannot be read as a Hugging Face data set: {error}"
            ) from error
        return _open_split(saved, name, None)
    repository, _, split = name.removeprefix("hf:").partition(":")
    if not repository.strip():
        raise ValueError(f"{name!r} names no data set: write hf:NAME or hf:NAME:SPLIT")
    return _open_split(datasets.load_dataset(repository), name, split or None)


def _open_split(found: Any, where: str, split: str | None) -> HuggingFaceSource:
    if not isinstance(found, dict):
        return HuggingFaceSource(found, where)
    if split is None and len(found) == 1:
        split = next(iter(found))
    if split not in found:
        which = f"{where}:NAME" if where.startswith("hf:") else f"{where}/NAME"
        raise ValueError(f"{where} has the splits {', '.join(found)}: choose one with {which}")
    return HuggingFaceSource(found[split], where)
