"""Encoders of timm and open_clip, from weights that are on this machine."""

import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from jule.features import open_encoder

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 40, 40, 3), dtype=np.uint8)
CLIP = {
    "model_cfg": {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
        "text_cfg": {"context_length": 4, "vocab_size": 9, "width": 16, "heads": 2, "layers": 1},
    },
    "preprocess_cfg": {"mean": [0.5, 0.4, 0.5], "std": [0.5, 0.5, 0.3]},
}


# Without the packages


@pytest.mark.parametrize(
    ("name", "command"),
    [("timm:resnet18", "pip install timm"), ("open_clip:ViT-B-32", "pip install open_clip_torch")],
)
def test_a_missing_package_is_named(monkeypatch, name, command):
    monkeypatch.setitem(sys.modules, name.partition(":")[0], None)
    with pytest.raises(ImportError, match=rf"need the package: {command}$"):
        open_encoder(name)


@pytest.mark.parametrize(
    ("name", "config"), [("timm", "config.json"), ("open_clip", "open_clip_config.json")]
)
def test_folders_are_checked_first(tmp_path, name, config):
    with pytest.raises(ValueError, match=r"none is not a folder"):
        open_encoder(f"{name}:{tmp_path / 'none'}")
    with pytest.raises(ValueError, match=rf"has no {config}"):
        open_encoder(f"{name}:{tmp_path}")


@pytest.mark.parametrize("name", ["timm:", "open_clip:", "onnx:"])
def test_a_name_is_needed(name):
    with pytest.raises(ValueError, match=r"unknown features"):
        open_encoder(name)


def fake_timm(create_model):
    """The part of timm that is used, with one model."""
    config = SimpleNamespace(hf_hub_id="timm/tiny")
    return SimpleNamespace(
        is_model=lambda name: name == "tiny",
        models=SimpleNamespace(get_pretrained_cfg=lambda *_, **__: config),
        create_model=create_model,
    )


def test_weights_that_are_not_here_are_not_downloaded(monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    seen = []

    def create_model(*_):
        seen.append((os.environ["HF_HUB_OFFLINE"], hub.constants.HF_HUB_OFFLINE))
        hub.hf_hub_download("timm/no-such-encoder", "model.safetensors")

    monkeypatch.setitem(sys.modules, "timm", fake_timm(create_model))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(
        ValueError, match=r"not on this machine.*unasked.*create_model\('tiny', pre"
    ):
        open_encoder("timm:tiny")
    assert seen == [("1", True)]
    assert "HF_HUB_OFFLINE" not in os.environ
    assert not hub.constants.HF_HUB_OFFLINE
    with pytest.raises(ValueError, match=r"timm has no model 'large'"):
        open_encoder("timm:large")


def test_errors_of_the_package_are_one_line(monkeypatch):
    pytest.importorskip("huggingface_hub")

    def create_model(*_):
        raise RuntimeError("missing keys:\n  a\n  b" + "c" * 999)

    monkeypatch.setitem(sys.modules, "timm", fake_timm(create_model))
    with pytest.raises(
        ValueError, match=r"^timm:tiny cannot be used: RuntimeError: miss.*a b"
    ) as e:
        open_encoder("timm:tiny")
    assert len(str(e.value)) < 250


# With them


@pytest.fixture(scope="module")
def timm_folder(tmp_path_factory):
    timm = pytest.importorskip("timm")
    folder = tmp_path_factory.mktemp("timm") / "small"
    torch.manual_seed(0)
    network = timm.create_model("resnet10t", pretrained=False)
    timm.models.save_for_hf(network, folder, safe_serialization=True)
    return folder


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory):
    open_clip = pytest.importorskip("open_clip")
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("clip")
    torch.manual_seed(0)
    weights = open_clip.CLIP(**CLIP["model_cfg"]).state_dict()
    save_file(
        {name: value.contiguous() for name, value in weights.items()},
        folder / "open_clip_model.safetensors",
    )
    (folder / "open_clip_config.json").write_text(json.dumps(CLIP))
    return folder


def test_a_model_of_timm(timm_folder):
    import timm

    encoder = open_encoder(f"timm:{timm_folder}")
    assert encoder.name == f"timm:{timm_folder}"
    assert encoder.about == "the encoder small of timm"
    network = timm.create_model(f"local-dir:{timm_folder}", pretrained=True, num_classes=0).eval()
    config = timm.data.resolve_model_data_config(network)
    assert encoder.preprocessing.height == config["input_size"][1]
    assert encoder.preprocessing.mean == tuple(config["mean"])
    with torch.no_grad():
        expected = network(encoder.preprocessing.apply(IMAGES)).numpy()
    np.testing.assert_allclose(encoder.encode(IMAGES), expected, rtol=1e-4, atol=1e-5)
    assert open_encoder(f"timm:{timm_folder}").digest == encoder.digest


def test_a_model_of_open_clip(clip_folder):
    import open_clip

    encoder = open_encoder(f"open_clip:{clip_folder}")
    assert encoder.preprocessing.mean == (0.5, 0.4, 0.5)
    assert encoder.preprocessing.std == (0.5, 0.5, 0.3)
    network = open_clip.create_model(f"local-dir:{clip_folder}").eval()
    with torch.no_grad():
        expected = network.encode_image(encoder.preprocessing.apply(IMAGES)).numpy()
    np.testing.assert_allclose(encoder.encode(IMAGES), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("which", ["timm", "open_clip"])
def test_damaged_weights_and_pickles_are_refused(request, tmp_path, which):
    source = request.getfixturevalue("timm_folder" if which == "timm" else "clip_folder")
    for path in source.iterdir():
        content = path.read_bytes()
        is_config = path.suffix == ".json"
        (tmp_path / path.name).write_bytes(content if is_config else content[: len(content) // 2])
    name = f"{which}:{tmp_path}"
    with pytest.raises(ValueError, match=r"cannot be used: SafetensorError"):
        open_encoder(name)
    next(tmp_path.glob("*.safetensors")).unlink()
    with pytest.raises(ValueError, match=r"cannot be used"):
        open_encoder(name)

    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"weights": Hostile()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"can run code when it is opened"):
        open_encoder(name)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["timm:resnet18", "open_clip:ViT-B-32/openai"])
def test_names_without_weights_on_this_machine(monkeypatch, tmp_path, name):
    pytest.importorskip(name.partition(":")[0])
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=r"are not on this machine"):
        open_encoder(name)


def test_names_that_the_packages_do_not_know():
    pytest.importorskip("timm")
    pytest.importorskip("open_clip")
    with pytest.raises(ValueError, match=r"timm has no model 'none'"):
        open_encoder("timm:none")
    with pytest.raises(ValueError, match=r"Invalid pretrained tag"):
        open_encoder("timm:resnet18.none")
    with pytest.raises(ValueError, match=r"needs one of the weights of ViT-B-32.* openai"):
        open_encoder("open_clip:ViT-B-32")
    with pytest.raises(ValueError, match=r"open_clip has no model 'none'"):
        open_encoder("open_clip:none/openai")


def test_a_run_finds_its_encoder_again(jule, refused, timm_folder, tmp_path, monkeypatch):
    from tests.cli.test_features import write_pictures

    pictures, run = write_pictures(tmp_path / "pictures", per_colour=4), tmp_path / "run"
    done = jule("cluster", pictures, "-k", 3, "--features", f"timm:{timm_folder}", "-o", run)
    assert done.exit_code == 0, done.output
    assert "they are described by the encoder small of timm" in done.stdout
    assert jule("predict", run, pictures).exit_code == 0
    monkeypatch.setattr("jule.runs.encoding.is_signed", lambda _: False)
    assert "is not opened: pass it" in refused("predict", run, pictures)
    named = ["--features", f"timm:{timm_folder}"]
    assert jule("predict", run, pictures, *named).exit_code == 0
