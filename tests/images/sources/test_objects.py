"""Data sets as objects: torch's, Hugging Face's, sequences, and items that are bad."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

from jule.images import ImageSpec, open_source, read_images
from jule.images.sources.objects import image_of
from tests.images.pictures import file_of, pixels

SPEC = ImageSpec(24, 32, 3)
IMAGES = np.stack([pixels(n) for n in range(5)])


class Torch(Dataset):
    """A data set that returns its items in some form."""

    def __init__(self, form):
        self._form = form

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, number):
        return self._form(IMAGES[number])


FORMS = {
    "arrays": lambda image: image,
    "pairs": lambda image: (image, 3),
    "lists": lambda image: [image, "cat"],
    "dicts": lambda image: {"img": image, "label": 1},
    "Pillow images": Image.fromarray,
    "tensors": lambda image: torch.from_numpy(image).permute(2, 0, 1),
    "tensors 0..1": lambda image: torch.from_numpy(image).permute(2, 0, 1).float() / 255,
    "tensors with gradients": lambda image: (
        torch.from_numpy(image.copy()).permute(2, 0, 1).float().div(255).requires_grad_()
    ),
    "files": file_of,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_item_is_understood(form):
    found = read_images(Torch(FORMS[form]), SPEC)
    np.testing.assert_array_equal(found.samples, IMAGES)
    assert found.names == ["0", "1", "2", "3", "4"]
    assert found.labels is None


def test_a_tensor_dataset(tmp_path):
    data = TensorDataset(torch.from_numpy(IMAGES).permute(0, 3, 1, 2), torch.arange(5))
    np.testing.assert_array_equal(read_images(data).samples, IMAGES)


def test_grey_tensors():
    grey = pixels(channels=1)
    np.testing.assert_array_equal(image_of(torch.from_numpy(grey)[None])[..., 0], grey)
    assert image_of(np.zeros((24, 32, 1), np.uint8)).shape == (24, 32, 1)


def test_a_list_of_pillow_images_of_many_sizes():
    images = [Image.fromarray(pixels(n, height=10 + n, width=40)) for n in range(4)]
    assert read_images(images, SPEC).samples.shape == (4, 24, 32, 3)


def _raise(image):
    raise RuntimeError("the disk is on fire")


def _cut_off(image):
    content = file_of(pixels(height=100, width=100))
    return Image.open(io.BytesIO(content[: len(content) // 2]))


BAD = {
    "raises": (_raise, "the disk is on fire"),
    "nothing": (lambda image: None, "is not a picture"),
    "an empty pair": (lambda image: (), "cannot load"),
    "a dict without": (lambda image: {"text": 1}, "no image or img"),
    "a path": (lambda image: "a.jpg", "is not a picture"),
    "ragged": (lambda image: [[[1, 2], [3]], 0], ""),
    "cut off": (_cut_off, "damaged"),
    "a tensor that numpy does not know": (
        lambda image: torch.zeros(3, 4, 4, dtype=torch.bfloat16), "",
    ),
    "bad bytes": (lambda image: b"hello", "it is not an image"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_item_is_left_out_and_listed(case):
    form, reason = BAD[case]

    class Odd(Torch):
        def __getitem__(self, number):
            return form(IMAGES[number]) if number == 3 else IMAGES[number]

    found = read_images(Odd(None), SPEC)
    assert found.indices.tolist() == [0, 1, 2, 4]
    assert [one.name for one in found.skipped] == ["3"]
    assert reason in found.skipped[0].reason
    with pytest.raises(ValueError, match="1 of the pictures cannot be read: 3"):
        read_images(Odd(None), SPEC, strict=True)


def test_copies_in_a_data_set_are_found():
    found = read_images([Image.fromarray(pixels(n % 2)) for n in range(5)], SPEC)
    assert found.first_copies.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("what", [5, None, 3.5, iter([])])
def test_what_is_no_data_set_is_a_clear_error(what):
    with pytest.raises(ValueError, match="pictures cannot be read from a"):
        open_source(what)


def test_an_empty_data_set_is_a_clear_error():
    with pytest.raises(ValueError, match="no pictures in a data set"):
        read_images([])


# -- Hugging Face --------------------------------------------------------------------------------


@pytest.fixture
def birds(tmp_path):
    datasets = pytest.importorskip("datasets")
    items = {
        "image": [{"bytes": file_of(image), "path": None} for image in IMAGES],
        "label": [0, 1, 0, 1, 2],
    }
    kinds = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    return datasets.Dataset.from_dict(items, features=kinds)


def test_a_hugging_face_data_set_as_an_object(birds):
    found = read_images(birds, SPEC)
    np.testing.assert_array_equal(found.samples, IMAGES)
    assert found.labels.tolist() == [0, 1, 0, 1, 2]


def test_a_hugging_face_data_set_saved_to_disk(birds, tmp_path):
    birds.save_to_disk(str(tmp_path / "birds"))
    found = read_images(tmp_path / "birds", SPEC)
    np.testing.assert_array_equal(found.samples, IMAGES)
    assert found.labels.tolist() == [0, 1, 0, 1, 2]


def test_of_several_splits_one_must_be_named(birds, tmp_path):
    import datasets

    datasets.DatasetDict({"train": birds}).save_to_disk(str(tmp_path / "one"))
    assert len(open_source(tmp_path / "one")) == 5
    both = datasets.DatasetDict({"train": birds, "test": birds.select([0, 1])})
    both.save_to_disk(str(tmp_path / "both"))
    with pytest.raises(ValueError, match=r"the splits train, test: choose one with .*both/NAME"):
        open_source(tmp_path / "both")
    assert len(open_source(tmp_path / "both" / "test")) == 2
    with pytest.raises(ValueError, match="a dict of train, test: pass one of its values"):
        open_source(both)


def test_images_that_are_missing_or_only_named_are_treated_as_files(tmp_path):
    datasets = pytest.importorskip("datasets")
    (tmp_path / "a.png").write_bytes(file_of(IMAGES[0]))
    items = [str(tmp_path / "a.png"), None, str(tmp_path / "gone.png"), str(tmp_path)]
    data = datasets.Dataset.from_dict({"image": items}).cast_column("image", datasets.Image())
    found = read_images(data, SPEC)
    assert found.indices.tolist() == [0]
    reasons = {one.name: one.reason for one in found.skipped}
    assert reasons["1"] == "it is missing in its data set"
    assert reasons["2"] == "it does not exist"
    assert set(reasons) == {"1", "2", "3"}


def test_a_hugging_face_data_set_without_images_is_a_clear_error():
    datasets = pytest.importorskip("datasets")
    with pytest.raises(ValueError, match="no column of images, only text"):
        open_source(datasets.Dataset.from_dict({"text": ["a"]}))


def test_a_damaged_folder_of_hugging_face_is_a_clear_error(birds, tmp_path):
    birds.save_to_disk(str(tmp_path / "birds"))
    for path in (tmp_path / "birds").glob("*.arrow"):
        path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match="cannot be read as a Hugging Face data set"):
        open_source(tmp_path / "birds")
    (tmp_path / "birds" / "state.json").unlink()
    with pytest.raises(ValueError, match="cannot be read as a Hugging Face data set"):
        open_source(tmp_path / "birds")
