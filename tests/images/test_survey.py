"""A look at some pictures, and the look that is chosen for all of them."""

from collections import Counter

import numpy as np
import pytest
from PIL import Image

from jule.images import ArraySource, ImageSource, look_of, open_source
from jule.images.survey import Seen, choose_look, sides, survey
from tests.images.pictures import file_of, pixels, write_pictures


class Counted(ImageSource):
    """Arrays, of which those in `good` can be read; keeps what was asked for."""

    def __init__(self, n, good):
        super().__init__("here", [str(number) for number in range(n)])
        self.asked, self._good = [], good

    def picture(self, number):
        self.asked.append(number)
        if number not in self._good:
            raise OSError(5, "Input/output error")
        return pixels(number)


def seen(sizes, coloured=0.0):
    return Seen(sizes, Counter(), coloured, [])


def test_a_few_pictures_evenly_spread_are_looked_at():
    source = Counted(1000, range(1000))
    found = survey(source, most=11)
    assert len(found.sizes) == 11
    assert source.asked[0] == 0
    assert source.asked[-1] == 999
    gaps = np.diff(source.asked)
    assert gaps.max() - gaps.min() <= 1


def test_where_those_are_all_bad_others_are_looked_at_until_one_is_good():
    source = Counted(1000, {500, 501})
    found = survey(source, most=10)
    assert len(found.sizes) == 2
    assert len(source.asked) < 600
    assert len(set(source.asked)) == len(source.asked)


def test_where_all_are_bad_the_reasons_are_kept():
    source = Counted(25, ())
    found = survey(source, most=10)
    assert found.sizes == []
    assert sorted(source.asked) == list(range(25))
    assert found.bad[0][1] == "it cannot be read (Input/output error)"
    with pytest.raises(ValueError, match="none of 25 files in here can be read"):
        look_of(source)


def test_sizes_are_upright_and_formats_counted(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "a.jpg").write_bytes(file_of(pixels(), "JPEG", exif=exif.tobytes()))
    (tmp_path / "b.png").write_bytes(file_of(pixels()))
    (tmp_path / "c.tif").write_bytes(file_of(pixels(), "TIFF", exif=exif.tobytes()))
    (tmp_path / "d.png").write_bytes(b"")
    found = survey(open_source(tmp_path))
    assert found.sizes == [(24, 32), (32, 24), (24, 32)]
    assert found.formats == {"JPEG": 1, "PNG": 1, "TIFF": 1}
    assert found.bad == [("d.png", "it is empty")]


def test_a_few_coloured_pictures_make_a_coloured_set(tmp_path):
    grey = np.stack([pixels(channels=1)] * 3, axis=-1)
    write_pictures(tmp_path, [grey] * 40)
    assert look_of(open_source(tmp_path)).channels == 1
    assert look_of(open_source(tmp_path), colour="rgb").channels == 3
    write_pictures(tmp_path, [pixels(1), pixels(2)], "c{}.png")
    assert survey(open_source(tmp_path)).coloured == pytest.approx(2 / 42)
    assert look_of(open_source(tmp_path)).channels == 1
    write_pictures(tmp_path, [pixels(3)], "d{}.png")
    assert look_of(open_source(tmp_path)).channels == 3
    assert look_of(open_source(tmp_path), colour="grey").channels == 1


@pytest.mark.parametrize(
    ("sizes", "size", "expected"),
    [
        ([(400, 300)] * 3, None, (48, 64)),
        ([(20, 10)] * 3, None, (10, 20)),
        ([(20, 10)] * 3, 40, (20, 40)),
        ([(20, 10)] * 3, (7, 9), (9, 7)),
        ([(100, 200), (200, 100), (200, 200)], None, (64, 64)),
        ([(10_000, 1)] * 3, None, (1, 64)),
        ([(1, 1)], None, (1, 1)),
    ],
)
def test_the_shape_is_that_of_the_middle_picture(sizes, size, expected):
    look = choose_look(seen(sizes), size=size)
    assert (look.height, look.width) == expected


def test_unknown_colours_and_aspects_are_refused():
    with pytest.raises(ValueError, match="auto, grey, rgb"):
        choose_look(seen([(2, 2)]), colour="sepia")
    with pytest.raises(ValueError, match="crop, fit, stretch"):
        choose_look(seen([(2, 2)]), aspect="squeeze")


def test_arrays_can_be_surveyed_too():
    found = survey(ArraySource(np.stack([pixels()] * 2)))
    assert found.sizes == [(32, 24)] * 2
    assert found.formats == {"array": 2}
    assert found.coloured == 1.0


def test_nothing_to_survey():
    assert survey(Counted(0, ())).sizes == []


@pytest.mark.parametrize("text", ["64x48", "64X48", "64×48", "64 x 48"])
def test_a_size_as_people_write_it(text):
    assert list(sides(text)) == [64, 48]


@pytest.mark.parametrize("text", ["", "0", "64x", "x", "1x2x3", "-5", "6.5", "big", "0x9", "²"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="a size is written as 64"):
        sides(text)
