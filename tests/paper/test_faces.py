"""Faces: the whole of Table 7 on real digits, which stand for people."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from jule.backward.embedder import build_embedder
from jule.backward.settings import Training
from jule.backward.training import TrainingFailedError
from jule.images import Dataset, Pairs, load_dataset
from jule.joint.config import Config
from jule.paper import faces
from jule.paper.driver import run_experiment
from jule.paper.experiment import Context, Request
from jule.paper.faces import Faces, frames_of_everybody
from jule.paper.records import read_record, write_record
from jule.paper.softmax import train_softmax

QUICK = Config(n_clusters=10, n_periods=2, min_images=300, epochs=0.1)


def pairs_of_digits(n_pairs=400):
    """Pairs of digits that training does not see, half of them of the same class."""
    digits = load_dataset("digits")
    images, labels = digits.images[1000:], digits.labels[1000:]
    rng = np.random.default_rng(0)
    first, other = rng.integers(0, len(labels), (2, n_pairs))
    same = np.arange(n_pairs) % 2 == 0
    for pair in np.flatnonzero(same):
        other[pair] = rng.choice(np.flatnonzero(labels == labels[first[pair]]))
    return Pairs(
        images,
        np.stack([first, other], axis=1),
        labels[first] == labels[other],
        np.arange(n_pairs) % 10,
    )


@pytest.fixture
def tiny(monkeypatch):
    digits = load_dataset("digits")
    data = Dataset("digits", digits.images[:300], digits.labels[:300])
    monkeypatch.setattr(faces, "load_dataset", lambda _: data)
    monkeypatch.setattr(faces, "load_pairs", pairs_of_digits)
    monkeypatch.setattr(faces, "config_for", lambda cell, _k: replace(QUICK, seed=cell.seed))
    monkeypatch.setattr(faces, "SHARES", (0.5, 1.0))
    monkeypatch.setattr(faces, "SOFTMAX_IMAGES", 600)


def test_grey_images_are_refused_before_training(monkeypatch, tmp_path):
    pairs = SimpleNamespace(images=np.zeros((2, 8, 8, 3), np.uint8))
    monkeypatch.setattr(faces, "load_pairs", lambda: pairs)
    (cell,) = Faces().cells(Request(datasets=("digits",), seeds=1))
    with pytest.raises(ValueError, match="faces needs images in colour; those of digits are grey"):
        Faces().measure(cell, Context(tmp_path / "cell", tmp_path, lambda *_: None))
    assert not any(tmp_path.iterdir())


def test_networks_with_and_without_labels_verify_pairs(tiny, tmp_path):
    lines = []
    where = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
    request = Request(datasets=("digits",), seeds=1)
    run_experiment(Faces(), request, **where, say=lines.append)
    record = read_record(tmp_path / "results" / "faces" / "digits-0.json")
    assert [size["frames"] for size in record["sizes"]] == [149, 300]
    assert record["folds"] == 10
    for size in record["sizes"]:
        assert size["images trained on"] == 2 * 300 + 600
        for name in ("supervised", "ours", "before fine-tuning"):
            assert 0.6 < size[name]["accuracy"] <= 1
            assert np.mean(size[name]["folds"]) == pytest.approx(size[name]["accuracy"])
    assert "300 frames  accuracy: supervised" in lines[-1]
    again = []
    run_experiment(Faces(), request, **where, say=again.append)
    assert again == lines
    assert read_record(tmp_path / "results" / "faces" / "digits-0.json") == record
    (cell,) = Faces().cells(request)
    settings = record["settings"] | {"shares": [1.0]}
    assert not Faces().is_current(cell, record | {"settings": settings})


def test_every_size_has_everybody():
    data = Dataset("x", np.arange(30, dtype=np.uint8).reshape(30, 1, 1), np.repeat([0, 1], 15))
    part = frames_of_everybody(data, 0.2, seed=0)
    assert part.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert (part.images.ravel() // 15 == part.labels).all()
    assert len(frames_of_everybody(data, 0.01, seed=0)) == 4  # a pair of each, to learn from
    whole = frames_of_everybody(data, 1.0, seed=0)
    np.testing.assert_array_equal(whole.images, data.images)
    other = frames_of_everybody(data, 0.2, seed=1)
    assert part.images.ravel().tolist() != other.images.ravel().tolist()


def test_softmax_learns_labels_and_repeats_itself():
    digits = load_dataset("digits")
    images, labels = digits.images[:300], digits.labels[:300]
    settings = Training(learning_rate=0.01)
    first, again = (
        train_softmax(build_embedder(images), images, labels, n_steps=30, settings=settings)
        for _ in range(2)
    )
    assert first == again
    assert np.mean(first[-5:]) < 0.5 * first[0]
    broken = Training(learning_rate=1e30)
    with pytest.raises(TrainingFailedError, match="the softmax loss became"):
        train_softmax(build_embedder(images), images, labels, n_steps=9, settings=broken)


def test_the_table_shows_means_over_the_seeds(tmp_path):
    for seed, accuracy in enumerate((0.6, 0.7)):
        size = {
            name: {"accuracy": accuracy} for name in ("supervised", "ours", "before fine-tuning")
        }
        size |= {"frames": 1042, "scores": {"nmi": 0.9}}
        record = {"pixels": {"accuracy": 0.61}, "sizes": [size] * 3}
        write_record(tmp_path / "faces" / f"ytf-frames-{seed}.json", record)
    tables = Faces().render(tmp_path)
    assert tables["faces"].splitlines()[2] == (
        "| 1,042 | 0.650 ± 0.050 | 0.650 ± 0.050 | 0.650 ± 0.050 | 0.610 | 0.900 ± 0.000 | 2 |"
    )
    assert (
        tables["faces paper"].splitlines()[3] == "| OURS | 0.728 | 0.743 | 0.750 | 0.762 | 0.767 |"
    )


def test_the_test_set_is_not_trained_on():
    with pytest.raises(ValueError, match="faces tests on lfw, so it cannot train on it"):
        Faces().cells(Request(datasets=("lfw",)))
