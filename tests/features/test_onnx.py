"""Encoders in ONNX files: real files, run by onnxruntime."""

import copy
import json
import os

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

from jule.features import OnnxEncoder, Preprocessing, open_encoder  # noqa: E402
from jule.features.onnx import read_preprocessing  # noqa: E402

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)
PLAIN = Preprocessing(8, 8, mean=(0.0,) * 3, std=(1.0,) * 3)
TIMM = {"input_size": [3, 8, 8], "mean": [0.0] * 3, "std": [1.0] * 3}


def mean_colour(path, *, shape=("n", 3, 8, 8), kind=TensorProto.FLOAT, tokens=False):
    """Write a model whose vector is the mean colour; as tokens, the first token is."""
    nodes = [
        helper.make_node("ReduceMean", ["x", "axes"], ["y" if not tokens else "m"], keepdims=0)
    ]
    initial = [helper.make_tensor("axes", TensorProto.INT64, [2], [2, 3])]
    out = ("n", 3)
    if tokens:
        initial.append(helper.make_tensor("one", TensorProto.INT64, [1], [1]))
        nodes.append(helper.make_node("Unsqueeze", ["m", "one"], ["u"]))
        nodes.append(helper.make_node("Neg", ["u"], ["v"]))
        nodes.append(helper.make_node("Concat", ["u", "v"], ["y"], axis=1))
        out = ("n", 2, 3)
    graph = helper.make_graph(
        nodes,
        "mean",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, out)],
        initial,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)
    return path


EXPECTED = IMAGES.mean(axis=(1, 2)) / 255


@pytest.mark.parametrize("shape", [("n", 3, 8, 8), (1, 3, 8, 8), ("n", 3, "h", "w")])
@pytest.mark.parametrize("tokens", [False, True])
def test_pictures_become_vectors(tmp_path, shape, tokens):
    encoder = OnnxEncoder(mean_colour(tmp_path / "net.onnx", shape=shape, tokens=tokens), PLAIN)
    np.testing.assert_allclose(encoder.encode(IMAGES), EXPECTED, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("config.json", TIMM),
        ("config.json", {"pretrained_cfg": TIMM}),
        (
            "preprocessor_config.json",
            {"image_mean": [0.0] * 3, "image_std": [1.0] * 3, "size": {"height": 8, "width": 8}},
        ),
        (
            "preprocessor_config.json",
            {"image_mean": [0] * 3, "image_std": [1] * 3, "size": 9, "crop_size": 8},
        ),
        (
            "preprocessor_config.json",
            {"image_mean": [0] * 3, "image_std": [1] * 3, "size": {"shortest_edge": 8}},
        ),
    ],
)
def test_the_scaling_is_read_from_beside_the_file(tmp_path, name, config):
    (tmp_path / name).write_text(json.dumps(config))
    encoder = open_encoder(f"onnx:{mean_colour(tmp_path / 'net.onnx')}")
    assert encoder.preprocessing == PLAIN
    np.testing.assert_allclose(encoder.encode(IMAGES), EXPECTED, atol=1e-5)


def test_without_a_scaling_nothing_is_guessed(tmp_path):
    path = mean_colour(tmp_path / "net.onnx")
    with pytest.raises(
        ValueError, match=r"does not say how pictures are scaled: put the .* beside"
    ):
        OnnxEncoder(path)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"input_size": 3}', '{"image_mean": 1}'])
def test_damaged_configurations_are_named(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"config.json does not say how pictures are scaled"):
        read_preprocessing(tmp_path, "net.onnx")


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        (("n", 3, 16, 16), TensorProto.FLOAT),
        (("n", 1, 8, 8), TensorProto.FLOAT),
        (("n", 3, 8, 8), TensorProto.DOUBLE),
        ((4, 3, 8, 8), TensorProto.FLOAT),
    ],
)
def test_other_inputs_are_refused(tmp_path, shape, kind):
    path = mean_colour(tmp_path / "net.onnx", shape=shape, kind=kind)
    with pytest.raises(ValueError, match=r"pictures are float32 of shape \(n, 3, 8, 8\)"):
        OnnxEncoder(path, PLAIN)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x09" * 50])
def test_what_is_not_onnx_is_refused(tmp_path, content):
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is not an ONNX file that can be used"):
        OnnxEncoder(path, PLAIN)


def two_inputs(path):
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 3, 8, 8)) for name in "xz"
    ]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "z"], ["y"])],
        "two",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 3, 8, 8))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)
    return path


def test_models_with_several_inputs_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must have one input, the pictures, but it has x, z"):
        OnnxEncoder(two_inputs(tmp_path / "net.onnx"), PLAIN)


def test_models_with_weights_in_other_files_are_refused(tmp_path):
    model = onnx.load(mean_colour(tmp_path / "net.onnx"))
    weights = onnx.numpy_helper.from_array(np.ones(2000, np.float32), "unused")
    model.graph.initializer.append(weights)
    onnx.save(
        model,
        tmp_path / "outside.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=100,
    )
    with pytest.raises(ValueError, match=r"keeps its weights in other files"):
        OnnxEncoder(tmp_path / "outside.onnx", PLAIN)


def test_encoders_can_be_copied(tmp_path):
    path = mean_colour(tmp_path / "net.onnx")
    encoder = OnnxEncoder(path, PLAIN)
    again = copy.deepcopy(encoder)
    np.testing.assert_array_equal(again.encode(IMAGES), encoder.encode(IMAGES))
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ValueError, match=r"has changed"):
        copy.deepcopy(encoder)


@pytest.mark.skipif(os.name == "nt", reason="makes links")
def test_links_of_model_hubs_are_followed(tmp_path):
    mean_colour(tmp_path / "blob")
    (tmp_path / "net.onnx").symlink_to("blob")
    assert OnnxEncoder(tmp_path / "net.onnx", PLAIN).name == f"onnx:{tmp_path / 'net.onnx'}"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.onnx"):
        open_encoder(f"onnx:{tmp_path / 'none.onnx'}")


@pytest.mark.parametrize("name", ["", "photo", "onnx:", "torch:vit"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match=r"choose pixels, photos, onnx:FILE, timm:MODEL"):
        open_encoder(name)
