"""Images from folders, archives, arrays and data sets."""

from jule.images.datasets import Dataset, dataset_names, load_dataset
from jule.images.decoding.decode import ImageSpec
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
    "Samples",
    "Skipped",
    "as_samples",
    "check_labels",
    "dataset_names",
    "fingerprint",
    "load_dataset",
    "open_source",
    "read_authors_hdf5",
    "read_images",
    "spec_for",
]
