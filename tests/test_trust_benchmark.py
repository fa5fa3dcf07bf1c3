"""Sets of `benchmarks.trust` with classes of unequal sizes."""

import numpy as np
from benchmarks.trust import RATIO, purities, unequal_classes


def test_the_sizes_of_unequal_classes_fall_geometrically():
    classes = np.tile([4, 7, 9], 64)
    rows = unequal_classes(classes)
    sizes = np.sort(np.unique(classes[rows], return_counts=True)[1])
    assert sizes.tolist() == [64 // RATIO, round(64 / RATIO**0.5), 64]
    assert (np.diff(rows) > 0).all()


def test_tiny_classes_keep_two_images():
    assert len(unequal_classes(np.repeat([0, 1], 3))) == 3 + 2


def test_purity_is_the_share_of_the_most_frequent_class_of_a_cluster():
    found = purities(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 2 / 3, 1.0])
