"""The encoder of a run: recorded, opened again, and no other one accepted."""

import numpy as np
import pytest
from sklearn.base import clone
from torch import nn

from jule import JULE, Run
from jule.features import ModuleEncoder, Preprocessing
from jule.files import checked_json, parse_checked_json
from jule.runs.encoding import as_encoder, encoder_of
from jule.runs.folder import RunFolder
from jule.runs.manifest import DamagedError
from jule.runs.names import CONFIG

SETTINGS = {"min_images": 200}


def coloured(n=60, side=20, seed=0):
    """Pictures of three colours, with noise."""
    rng = np.random.default_rng(seed)
    colours = np.array([[200, 40, 40], [40, 200, 40], [40, 40, 200]])
    classes = np.arange(n) % 3
    noise = rng.normal(0, 25, (n, side, side, 3))
    return (colours[classes][:, None, None] + noise).clip(0, 255).astype(np.uint8), classes


def an_encoder(std=1.0):
    return ModuleEncoder(nn.AvgPool2d(4), Preprocessing(8, 8, mean=(0.0,) * 3, std=(std,) * 3))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    images, classes = coloured()
    model = JULE(3, features=an_encoder(), settings=SETTINGS).fit(images)
    folder = tmp_path_factory.mktemp("saved") / "run"
    model.save(folder)
    return folder, model, images, classes


def test_a_model_on_an_encoder_finds_the_colours(saved):
    _, model, images, classes = saved
    assert len({(a, b) for a, b in zip(model.labels_, classes, strict=True)}) == 3
    np.testing.assert_array_equal(model.predict(images), model.labels_)
    assert model.transform(images[:4]).shape == (4, 12)
    assert model.network_.mean.abs().max() == 0  # vectors of an encoder are not standardised


def test_a_saved_model_needs_the_same_encoder(saved):
    folder, model, images, _ = saved
    with pytest.raises(ValueError, match=r"made with your own encoder \(module:AvgPool2d\)"):
        JULE.load(folder)
    with pytest.raises(ValueError, match=r"other weights or another scaling"):
        JULE.load(folder, features=an_encoder(std=2.0))
    loaded = JULE.load(folder, features=an_encoder())
    np.testing.assert_array_equal(loaded.predict(images), model.labels_)
    run = Run(folder, features=an_encoder())
    np.testing.assert_array_equal(run.predict(images).labels, model.labels_)
    assert run.features()["encoder"] == "module:AvgPool2d"


def test_several_heads_are_trained_on_the_same_vectors(saved, tmp_path):
    _, single, images, classes = saved
    model = JULE(3, features=an_encoder(), ensemble=2, settings=SETTINGS).fit(images)
    assert len({(a, b) for a, b in zip(model.labels_, classes, strict=True)}) == 3
    found = model.transform(images[:4])
    assert found.shape == (4, 24)
    first = found[:, :12] * np.sqrt(2)
    np.testing.assert_allclose(first, single.transform(images[:4]), atol=1e-6)
    model.save(tmp_path / "run")
    loaded = JULE.load(tmp_path / "run", features=an_encoder())
    np.testing.assert_array_equal(loaded.predict(images), model.predict(images))


def test_results_can_be_read_without_the_encoder(saved):
    folder, model, _, _ = saved
    run = Run(folder)
    np.testing.assert_array_equal(run.labels, model.labels_)
    assert run.report().summary["encoder"] == "the module AvgPool2d"
    assert "first described by the module AvgPool2d" in run.report().html


def test_the_page_of_pixels_names_no_encoder(tmp_path):
    images, _ = coloured(30)
    model = JULE(3, rounds=1, settings=SETTINGS).fit(images)
    assert model.report().summary["encoder"] == ""
    assert "first described by" not in model.report().html
    model.save(tmp_path / "run")
    assert encoder_of(RunFolder(tmp_path / "run")) is None
    with pytest.raises(ValueError, match=r"made from pixels"):
        encoder_of(RunFolder(tmp_path / "run"), an_encoder())


@pytest.mark.parametrize("entry", [3, [], {}, {"encoder": "photos"}, {"encoder": 1, "digest": "0"}])
def test_a_damaged_entry_is_refused(saved, tmp_path, entry):
    folder, *_ = saved
    about = parse_checked_json((folder / CONFIG).read_bytes())
    (tmp_path / CONFIG).write_bytes(checked_json(about | {"features": entry}))
    with pytest.raises(DamagedError, match=r"'features' is wrong"):
        RunFolder(tmp_path).features()


def test_a_strangers_encoder_is_not_opened(saved, tmp_path):
    """A run from somebody else may name any file."""
    folder, *_ = saved
    about = parse_checked_json((folder / CONFIG).read_bytes())
    features = about["features"] | {"encoder": f"onnx:{tmp_path / 'secret'}"}
    # The signature of the run is valid for its own encoder only.
    (tmp_path / CONFIG).write_bytes(checked_json(about | {"features": features}))
    with pytest.raises(ValueError, match=r"not made by you .* not opened"):
        encoder_of(RunFolder(tmp_path))


def test_an_encoder_with_a_name_of_its_own_must_be_passed(tmp_path):
    images, _ = coloured(30)
    named = ModuleEncoder(nn.AvgPool2d(4), Preprocessing(8, 8), name="dino")
    JULE(3, features=named, settings=SETTINGS).fit(images).save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"made with your own encoder \(dino\)"):
        encoder_of(RunFolder(tmp_path / "run"))


def test_estimators_with_an_encoder_can_be_cloned():
    model = clone(JULE(3, features=an_encoder(), settings=SETTINGS))
    assert model.fit(coloured(30)[0]).n_clusters_ == 3


@pytest.mark.parametrize("features", [3, nn.Flatten(), object()])
def test_what_is_not_an_encoder_is_refused(features):
    with pytest.raises(ValueError, match=r"a name, such as 'photos', or an Encoder.*ModuleEncoder"):
        as_encoder(features)


@pytest.mark.parametrize("images", [np.zeros((9, 5)), np.zeros((9, 8, 8), np.float32)])
def test_vectors_and_floats_have_no_encoder(images):
    with pytest.raises(ValueError, match=r"needs pictures, uint8"):
        JULE(3, features=an_encoder()).fit(
            images + np.arange(9).reshape(-1, *[1] * (images.ndim - 1))
        )


def test_the_paper_preset_has_no_encoder():
    with pytest.raises(ValueError, match=r"the preset 'paper' trains on pixels"):
        JULE(3, features=an_encoder(), preset="paper").fit(coloured(9)[0])


def test_suggested_clusters_and_other_cuts_work_on_an_encoder():
    images, _ = coloured()
    model = JULE(features=an_encoder(), settings=SETTINGS).fit(images)
    assert model.choice_ is not None
    assert model.recut(5).max() == 4
