"""Transfer: a network learned on one set of real digits clusters another one."""

from dataclasses import replace

import numpy as np
import pytest

from jule.backward.embedder import as_images, build_embedder
from jule.images import Dataset, load_dataset
from jule.joint.config import Config
from jule.paper import learned, transfer
from jule.paper.driver import run_experiment
from jule.paper.experiment import Request
from jule.paper.joint import learn
from jule.paper.records import read_record, write_record
from jule.paper.transfer import (
    LAYERS,
    Transfer,
    TransferCoil,
    TransferDigits,
    cluster,
    layer_output,
    layers_of,
    match_channels,
)

QUICK = Config(n_clusters=10, rounds=1, n_periods=2, min_images=300, epochs=0.1)


class Tiny(Transfer):
    """Between grey and larger RGB digits."""

    name = "tiny"
    title = "Table 0"
    datasets = ("grey", "rgb")
    expected = "seconds"


@pytest.fixture
def tiny(monkeypatch):
    """Two parts of the digits: 8 x 8 grey, and 28 x 28 RGB."""
    digits = load_dataset("digits")
    enlarged = digits.images[400:700].repeat(3, axis=1).repeat(3, axis=2)
    framed = np.pad(enlarged, ((0, 0), (2, 2), (2, 2)))[..., None].repeat(3, axis=3)
    sets = {
        "grey": Dataset("grey", digits.images[:400], digits.labels[:400]),
        "rgb": Dataset("rgb", framed, digits.labels[400:700]),
    }
    monkeypatch.setattr(transfer, "_load", sets.__getitem__)
    monkeypatch.setattr(learned, "config_for", lambda cell, _k: replace(QUICK, seed=cell.seed))
    return Tiny()


def test_each_set_is_clustered_by_the_network_of_the_other(tiny, tmp_path):
    lines = []
    results, runs = tmp_path / "results", tmp_path / "runs"
    run_experiment(tiny, Request(seeds=1), results=results, runs=runs, say=lines.append)
    assert sorted(path.name for path in runs.iterdir()) == ["learned-grey-0", "learned-rgb-0"]
    to_rgb, to_grey = (
        read_record(results / "tiny" / f"{pair}-0.json") for pair in ("grey-to-rgb", "rgb-to-grey")
    )
    assert list(to_rgb["layers"]) == ["data", "top", "top-1"]  # one convolution for 16 x 16
    assert list(to_grey["layers"]) == list(LAYERS)
    assert to_rgb["layers"]["data"]["features"] == 16 * 16
    assert to_grey["layers"]["data"]["features"] == 28 * 28 * 3
    assert to_grey["layers"]["top"]["features"] == 160
    assert to_rgb["command"] == "jule reproduce tiny --datasets grey,rgb --seeds 1"
    for record in (to_rgb, to_grey):
        found = [layer["scores"]["nmi"] for layer in record["layers"].values()]
        assert all(0.5 < nmi < 1 for nmi in found)
    assert lines[0].startswith("grey to rgb")
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    run_experiment(tiny, Request(seeds=1), results=results, runs=runs, say=lines.append)
    assert lines[2:] == lines[:2]
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before


def test_every_direction_has_three_seeds():
    cells = TransferDigits().cells(Request())
    assert [cell.title for cell in cells[2:4]] == [
        "mnist-test to usps, seed 2",
        "usps to mnist-test, seed 0",
    ]
    assert len(cells) == 6
    with pytest.raises(ValueError, match="transfer-coil needs two data sets or more"):
        TransferCoil().cells(Request(datasets=("coil20",)))


def test_channels_are_repeated_or_averaged():
    grey = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    rgb = match_channels(grey, 3)
    assert rgb.shape == (2, 2, 2, 3)
    np.testing.assert_array_equal(match_channels(rgb, 1), grey)
    np.testing.assert_array_equal(match_channels(rgb, 3), rgb)
    with pytest.raises(ValueError, match="3 channels cannot be given to a network for 2"):
        match_channels(rgb, 2)


def test_the_data_layer_is_what_the_network_is_given():
    images = load_dataset("digits").images[:30]
    network = build_embedder(images, min_side=16)
    pixels = layer_output(network, images, "data")
    assert pixels.shape == (30, 1, 16, 16)
    scaled = (pixels - network.mean.numpy()) / network.std.numpy()
    np.testing.assert_allclose(
        scaled[:, 0], network.scaled(as_images(images))[:, 0].numpy(), atol=1e-4
    )
    assert layers_of(network, images) == ["data", "top", "top-1"]


def test_vectors_are_clustered_as_joint_learning_does_in_the_end(tmp_path):
    digits = load_dataset("digits")
    data = Dataset("digits", digits.images[:300], digits.labels[:300])
    done = learn(data, QUICK, tmp_path / "run")
    labels = cluster(done.result.embedding, QUICK)
    np.testing.assert_array_equal(labels, done.result.labels_rc)


def fake(nmi):
    return {"layers": {layer: {"scores": {"nmi": nmi}} for layer in ("data", "top", "top-1")}}


def test_tables_show_means_beside_the_papers_numbers(tmp_path):
    for seed, nmi in enumerate((0.8, 0.9)):
        write_record(tmp_path / "transfer-digits" / f"usps-to-mnist-test-{seed}.json", fake(nmi))
    write_record(
        tmp_path / "joint" / "default" / "mnist-test-0.json", {"scores": {"rc": {"nmi": 0.94}}}
    )
    assert TransferDigits().render(tmp_path)["transfer-digits"].splitlines()[2:] == [
        "| USPS → MNIST-test | 0.850 (0.872) | 0.850 ± 0.050 (0.873) | 0.850 ± 0.050 (0.886) | - "
        "| 0.940 (0.915) | 2 |"
    ]
