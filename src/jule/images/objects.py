"""Data sets of other libraries, as objects: torch's, Hugging Face's, or any sequence of images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jule.images.batch import Picture, read_file
from jule.images.decode import BadPictureError
from jule.images.source import ImageSource

IMAGE_KEYS = ("image", "img", "images", "pixels")
LABEL_KEYS = ("label", "labels", "fine_label")


class DatasetSource(ImageSource):
    """A `torch.utils.data.Dataset`, or anything with a length and items.

    An item is an image, or begins with one as (image, class), or has one under `image`; an image
    is a Pillow image, an array (h, w[, c]) or a tensor (c, h, w). Classes are left alone: to ask
    for them all would mean to load every image twice.

    Examples
    --------
    >>> source = DatasetSource([(np.zeros((4, 4), np.uint8), 0)])
    >>> len(source), source.picture(0).shape
    (1, (4, 4))
    """

    def __init__(self, dataset: Any, where: str = "a data set") -> None:
        super().__init__(where, [str(number) for number in range(len(dataset))])
        self._dataset = dataset

    def picture(self, number: int) -> Picture:
        """Ask the data set for one item and take the image out of it."""
        try:
            return image_of(self._dataset[number])
        except BadPictureError:
            raise
        except Exception as error:  # another's code may raise anything for one bad item
            raise BadPictureError(f"its data set cannot give it ({error})") from error


def image_of(item: Any) -> Picture:
    """Take the image out of an item of a data set.

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
    array = _array_of(item)
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    return array


def _array_of(item: Any) -> NDArray:
    if hasattr(item, "detach"):
        item = item.detach().cpu()
    return np.asarray(item)


class HuggingFaceSource(ImageSource):
    """A split of a Hugging Face data set with a column of images.

    Examples
    --------
    >>> HuggingFaceSource(datasets.load_from_disk("birds"))  # doctest: +SKIP
    """

    def __init__(self, dataset: Any, where: str = "a Hugging Face data set") -> None:
        columns = [name for name, kind in dataset.features.items() if _is_image(kind)]
        if not columns:
            known = ", ".join(dataset.features)
            raise ValueError(f"{where} has no column of images among {known}")
        import datasets

        self._column = columns[0]
        # Undecoded: the bytes go to our own decoder, on all cores.
        self._dataset = dataset.cast_column(self._column, datasets.Image(decode=False))
        classes = [name for name in LABEL_KEYS if name in dataset.features]
        labels = np.asarray(dataset[classes[0]][:]) if classes else None
        names = [str(number) for number in range(len(dataset))]
        super().__init__(where, names, labels if labels is not None and labels.ndim == 1 else None)

    def picture(self, number: int) -> bytes:
        """Give one image's bytes, or those of the file it names."""
        found = self._dataset[number][self._column]
        if found is None:
            raise BadPictureError("it is missing in its data set")
        if found["bytes"] is not None:
            content: bytes = found["bytes"]
            return content
        return read_file(Path(found["path"]))

    def identity(self) -> Iterator[str]:
        """Give the fingerprint that the library keeps."""
        yield str(self._dataset._fingerprint)


def _is_image(kind: Any) -> bool:
    return type(kind).__name__ == "Image"


def open_hugging_face(what: str) -> HuggingFaceSource:
    """Open `hf:name` or `hf:name:split`, or a folder that `save_to_disk` wrote.

    Examples
    --------
    >>> open_hugging_face("hf:beans:train")  # doctest: +SKIP
    """
    try:
        import datasets
    except ImportError as error:
        raise ImportError('Hugging Face data sets need: pip install "jule[hf]"') from error
    if not what.startswith("hf:"):
        try:
            saved = datasets.load_from_disk(what)
        except Exception as error:  # the library lets through whatever its own libraries raise
            raise ValueError(
                f"{what} cannot be read as a Hugging Face data set: {error}"
            ) from error
        return _one_split(saved, what, None)
    name, _, split = what.removeprefix("hf:").partition(":")
    return _one_split(datasets.load_dataset(name), what, split or None)


def _one_split(found: Any, where: str, split: str | None) -> HuggingFaceSource:
    if not isinstance(found, dict):
        return HuggingFaceSource(found, where)
    if split is None and len(found) == 1:
        split = next(iter(found))
    if split not in found:
        which = f"{where}:NAME" if where.startswith("hf:") else f"{where}/NAME"
        raise ValueError(f"{where} has the splits {', '.join(found)}: say which, {which}")
    return HuggingFaceSource(found[split], where)
