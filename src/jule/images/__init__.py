"""Where pixels come from."""

from jule.images.arrays import Samples, as_samples, check_labels, fingerprint, read_samples
from jule.images.datasets import Dataset, dataset_names, load_dataset, read_authors_hdf5

__all__ = [
    "Dataset",
    "Samples",
    "as_samples",
    "check_labels",
    "dataset_names",
    "fingerprint",
    "load_dataset",
    "read_authors_hdf5",
    "read_samples",
]
