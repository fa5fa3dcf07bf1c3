"""Where pixels come from."""

from jule.images.arrays import ArraySource, as_samples, check_labels, fingerprint
from jule.images.datasets import Dataset, dataset_names, load_dataset
from jule.images.decode import BadPictureError, Look
from jule.images.hdf5 import read_authors_hdf5
from jule.images.read import Samples, look_of, read_images
from jule.images.resolve import open_source
from jule.images.source import ImageSource, Skipped

__all__ = [
    "ArraySource",
    "BadPictureError",
    "Dataset",
    "ImageSource",
    "Look",
    "Samples",
    "Skipped",
    "as_samples",
    "check_labels",
    "dataset_names",
    "fingerprint",
    "load_dataset",
    "look_of",
    "open_source",
    "read_authors_hdf5",
    "read_images",
]
