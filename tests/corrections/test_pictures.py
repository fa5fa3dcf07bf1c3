"""Pictures are found by content, then by path."""

import numpy as np

from jule.corrections import Picture, PictureIndex

DIGESTS = np.zeros((4, 16), np.uint8)
DIGESTS[:, 0] = [1, 2, 2, 3]
DIGESTS[3, 15] = 0  # ends with zeros, as the others do


def test_content_decides_and_the_path_between_copies():
    index = PictureIndex(["a", "b", "copy of b", "c"], DIGESTS)
    for sample in range(4):
        assert index.find(index.picture(sample)) == sample
    assert index.find(Picture("elsewhere/a", index.picture(0).hash)) == 0
    assert index.find(Picture("elsewhere/b", index.picture(1).hash)) == 1


def test_a_picture_changed_in_place_is_found_by_its_path():
    index = PictureIndex(["a", "b", "7", "b"], DIGESTS)
    other = "ff" * 16
    assert index.find(Picture("a", other)) == 0
    assert index.find(Picture("7", other)) == -1  # only a position in an array
    assert index.find(Picture("b", other)) == -1  # which of them?
    assert index.find(Picture("7")) == 2
    for wrong in ("zz", "01", "x" * 32):
        assert index.find(Picture("nowhere", wrong)) == -1
    assert PictureIndex(["a"]).find(Picture("a", other)) == 0
    assert index.find_all([Picture("a"), Picture("gone")]).tolist() == [0]


def test_checksums_are_compared_as_a_whole():
    digests = np.zeros((4, 16), np.uint8)
    digests[[1, 3], 8:] = 1  # the same beginning as those of the others
    index = PictureIndex(["a", "b", "c", "d"], digests)
    assert index.find(Picture("gone", digests[1].tobytes().hex())) == 1
    assert index.find(Picture("d", digests[1].tobytes().hex())) == 3
    assert index.find(Picture("gone", digests[2].tobytes().hex())) == 0
    for wrong in ("00" * 8, "00" * 32, "00" * 15 + "02", "no"):
        assert index.find(Picture("gone", wrong)) == -1
