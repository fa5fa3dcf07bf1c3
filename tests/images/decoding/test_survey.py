"""The survey of some pictures, and the size and colour mode chosen for all of them."""

import io

import numpy as np
import pytest
from PIL import Image

from jule.images import ArraySource, ImageSource, open_source, spec_for
from jule.images.decoding import examine
from jule.images.decoding.survey import Survey, choose_spec, parse_size, survey
from tests.images.pictures import file_of, pixels, write_pictures


class Counted(ImageSource):
    """Arrays, of which those in `good` can be read; keeps what was asked for."""

    def __init__(self, n, good):
        super().__init__("here", [str(number) for number in range(n)])
        self.asked, self._good = [], good

    def picture(self, index):
        self.asked.append(index)
        if index not in self._good:
            raise OSError(5, "Input/output error")
        return pixels(index)


def test_a_few_pictures_evenly_spread_are_looked_at():
    source = Counted(1000, range(1000))
    found = survey(source, 11)
    assert len(found.sizes) == 11
    assert source.asked[0] == 0
    assert source.asked[-1] == 999
    gaps = np.diff(source.asked)
    assert gaps.max() - gaps.min() <= 1


def test_where_those_are_all_bad_others_are_looked_at_until_one_is_good():
    source = Counted(1000, {500, 501})
    found = survey(source, 10)
    assert len(found.sizes) == 2
    assert len(source.asked) < 600
    assert len(set(source.asked)) == len(source.asked)


def test_where_all_are_bad_the_reasons_are_kept():
    source = Counted(25, ())
    found = survey(source, 10)
    assert found.sizes == []
    assert sorted(source.asked) == list(range(25))
    assert found.bad[0][1] == "it cannot be read (Input/output error)"
    with pytest.raises(ValueError, match="none of 25 files in here can be read"):
        spec_for(source)


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
    assert spec_for(open_source(tmp_path)).channels == 1
    assert spec_for(open_source(tmp_path), colour="rgb").channels == 3
    write_pictures(tmp_path, [pixels(1), pixels(2)], "c{}.png")
    assert survey(open_source(tmp_path)).n_coloured == 2  # of 42
    assert spec_for(open_source(tmp_path)).channels == 1
    write_pictures(tmp_path, [pixels(3)], "d{}.png")
    assert spec_for(open_source(tmp_path)).channels == 3
    assert spec_for(open_source(tmp_path), colour="grey").channels == 1


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
    spec = choose_spec(Survey(sizes), size=size)
    assert (spec.height, spec.width) == expected


def test_unknown_colours_and_aspects_are_refused():
    with pytest.raises(ValueError, match="auto, grey, rgb"):
        choose_spec(Survey([(2, 2)]), colour="sepia")
    with pytest.raises(ValueError, match="crop, fit, stretch"):
        choose_spec(Survey([(2, 2)]), aspect="squeeze")


def test_arrays_can_be_surveyed_too():
    found = survey(ArraySource(np.stack([pixels()] * 2)))
    assert found.sizes == [(32, 24)] * 2
    assert found.formats == {"array": 2}
    assert found.has_colour


def cut_off(kind, image, **options):
    """A file whose header can be read and whose pixels cannot."""
    content = file_of(image, kind, **options)
    return content[: len(content) // 2]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "BMP"])
def test_sizes_and_grey_modes_come_from_the_header_alone(tmp_path, kind):
    name = f"a.{kind.lower()}"
    (tmp_path / name).write_bytes(cut_off(kind, pixels(height=120, width=160, channels=1)))
    found = survey(open_source(tmp_path))
    assert found.sizes == [(160, 120)]
    assert not found.has_colour


def test_a_cut_picture_is_reported_when_its_pixels_are_needed(tmp_path):
    (tmp_path / "a.jpg").write_bytes(cut_off("JPEG", pixels(height=120, width=160)))
    found = survey(open_source(tmp_path))
    assert found.bad[0][0] == "a.jpg"
    assert "damaged" in found.bad[0][1]
    assert survey(open_source(tmp_path), colour=False).sizes == [(160, 120)]


def test_no_more_pictures_are_decoded_than_it_takes(tmp_path, monkeypatch):
    names = write_pictures(tmp_path, [pixels(n) for n in range(41)])
    chunk = {number: tmp_path / name for number, name in enumerate(names)}
    decoded = []
    before = examine.to_spec
    monkeypatch.setattr(
        examine, "to_spec", lambda image, spec: decoded.append(image) or before(image, spec)
    )
    found = examine.examine_chunk(chunk, 3)
    assert [index for index, one in found.items() if one.has_colour] == [0, 1, 2]
    assert len(decoded) == 3
    examine.examine_chunk(chunk, 0)
    assert len(decoded) == 3
    assert survey(open_source(tmp_path)).n_coloured == 3  # one picture in twenty
    assert survey(open_source(tmp_path), colour=False).n_coloured == 0


def test_nothing_is_read_if_nothing_is_to_be_chosen():
    source = Counted(10, ())
    assert spec_for(source, size=(6, 4), colour="rgb").shape == (4, 6, 3)
    assert source.asked == []


def test_an_open_image_of_the_caller_keeps_its_size():
    image = Image.open(io.BytesIO(file_of(pixels(height=800, width=1000), "JPEG")))
    survey(open_source([image]))
    assert image.size == (1000, 800)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("scale", [1, 1 / 255])
def test_colour_of_arrays_comes_from_their_channels(channels, scale):
    images = np.stack([pixels(n, channels=channels) * scale for n in range(3)])
    assert survey(ArraySource(images)).has_colour == (channels == 3)
    assert not survey(ArraySource(np.stack([images[0, ..., :1]] * 3)), 2).has_colour


def test_nothing_to_survey():
    assert survey(Counted(0, ())).sizes == []


@pytest.mark.parametrize("text", ["64x48", "64X48", "64×48", "64 x 48"])
def test_a_size_as_people_write_it(text):
    assert parse_size(text) == (64, 48)


@pytest.mark.parametrize("text", ["", "0", "64x", "x", "1x2x3", "-5", "6.5", "big", "0x9", "²"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="a size is written as 64"):
        parse_size(text)
