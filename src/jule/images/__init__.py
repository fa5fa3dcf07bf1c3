"""Images from folders, archives, arrays and data sets.

Names are loaded when first used: a worker process that decodes pictures needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jule.images.datasets import Dataset, Pairs, dataset_names, load_dataset, load_pairs
    from jule.images.decoding.spec import ImageSpec
    from jule.images.read import Samples, read_images, spec_for
    from jule.images.sources.arrays import ArraySource, as_samples, check_labels, fingerprint
    from jule.images.sources.base import ImageSource, Skipped
    from jule.images.sources.content import BadPictureError
    from jule.images.sources.hdf5 import read_authors_hdf5
    from jule.images.sources.resolve import open_source

__all__ = [
    "ArraySource",
    "BadPictureError",
    "Dataset",
    "ImageSource",
    "ImageSpec",
    "Pairs",
    "Samples",
    "Skipped",
    "as_samples",
    "check_labels",
    "dataset_names",
    "fingerprint",
    "load_dataset",
    "load_pairs",
    "open_source",
    "read_authors_hdf5",
    "read_images",
    "spec_for",
]

_HOMES = {
    "ArraySource": "sources.arrays",
    "BadPictureError": "sources.content",
    "Dataset": "datasets",
    "ImageSource": "sources.base",
    "ImageSpec": "decoding.spec",
    "Pairs": "datasets",
    "Samples": "read",
    "Skipped": "sources.base",
    "as_samples": "sources.arrays",
    "check_labels": "sources.arrays",
    "dataset_names": "datasets",
    "fingerprint": "sources.arrays",
    "load_dataset": "datasets",
    "load_pairs": "datasets",
    "open_source": "sources.resolve",
    "read_authors_hdf5": "sources.hdf5",
    "read_images": "read",
    "spec_for": "read",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"jule.images.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'jule.images' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
