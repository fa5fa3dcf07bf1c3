"""Where pixels come from."""

from jule.images.datasets import Dataset, dataset_names, load_dataset, read_authors_hdf5

__all__ = ["Dataset", "dataset_names", "load_dataset", "read_authors_hdf5"]
