"""The experiment on low-dimensional embeddings, on digits with hardly any training."""

import json
from dataclasses import replace

import numpy as np
import pytest

from jule.paper import embedding, reducing
from jule.paper.driver import count_records, run_experiment
from jule.paper.embedding import Embedding, split
from jule.paper.experiment import Context, Request

TINY = {
    "PCA": {},
    "PCA (test images not centred)": {},
    "NCA": {"samples": 60, "iterations": 2},
    "Autoencoder": {"epochs": 1, "batch_size": 500},
    "Param. t-SNE": {"epochs": 1, "batch_size": 500},
    "OURS": {"epochs": 1, "side": 16},
    "OURS + neighbours": {"epochs": 1, "side": 16},
    "OURS + neighbours on PCA": {"epochs": 1, "side": 16},
}


@pytest.fixture
def tiny(monkeypatch):
    """The experiment with little to do: a few hundred digits, one epoch, two dimensions."""
    methods = tuple(
        replace(method, settings=method.settings | TINY[method.name], seeds=min(method.seeds, 1))
        for method in reducing.METHODS
    )
    data = split("digits")
    few = replace(
        data,
        train=data.train[:400],
        train_labels=data.train_labels[:400],
        test=data.test[:100],
        test_labels=data.test_labels[:100],
    )
    monkeypatch.setattr(embedding, "METHODS", methods)
    monkeypatch.setattr(reducing, "METHODS", methods)
    monkeypatch.setattr(embedding, "DIMENSIONS", (2,))
    monkeypatch.setattr(embedding, "split", lambda _: few)
    return Embedding()


def test_every_method_is_measured_once(tiny, tmp_path):
    said = []
    run = {"results": tmp_path / "results", "runs": tmp_path / "runs", "say": said.append}
    request = Request(datasets=("digits",))
    run_experiment(tiny, request, **run)
    assert len(said) == len(TINY)
    for method, line in zip(TINY, said, strict=True):
        assert method in line
        assert "(paper -)" in line, "the paper has other images"
    records = {path: json.loads(path.read_text()) for path in tmp_path.glob("results/**/*.json")}
    assert len(records) == len(TINY)
    for record in records.values():
        assert 0.0 < record["scores"]["error"] < 0.9
        assert 0.5 < record["scores"]["trustworthiness"] < 1.0
        assert len(record["shown"]["class"].split()) == 100
        assert (record["training images"], record["test images"]) == (400, 100)
    run_experiment(tiny, request, **run)
    assert {path: json.loads(path.read_text()) for path in records} == records
    (graph,) = (tmp_path / "runs").iterdir()  # that of the images, which is kept for other cells
    assert {path.name for path in graph.iterdir()} == {"tree.npz", "neighbors.npy", "about.json"}


def test_scores_on_mnist_are_shown_beside_the_papers():
    scores = {"error": 0.1, "trustworthiness": 0.9}
    record = {"method": "PCA", "dataset": "mnist", "dimensions": 2, "seconds": 1.0}
    shown = Embedding().summary(record | {"scores": scores})
    assert "1-NN error 0.100 (paper 0.782)  T(12) 0.900 (paper 0.744)" in shown


def test_the_graph_of_the_images_is_computed_once(tiny, tmp_path, monkeypatch):
    calls = []
    examine = reducing.examine_inputs
    monkeypatch.setattr(reducing, "examine_inputs", lambda *a: calls.append(1) or examine(*a))
    cells = tiny.cells(Request(datasets=("digits",), methods=("OURS", "OURS + neighbours")))
    for cell in cells:
        record = tiny.measure(cell, Context(tmp_path / "cell", tmp_path / "runs", lambda *_: None))
        assert record["stages"] > 5
    assert len(calls) == 1


def test_cells_and_their_settings():
    cells = Embedding().cells(Request())
    assert len({cell.path for cell in cells}) == len(cells)
    assert [cell.title for cell in cells[:3]] == [f"mnist, PCA, seed 0, {d}-d" for d in (2, 10, 30)]
    ours = Embedding().cells(Request(methods=("ours-neighbours",), seeds=2))
    assert len(ours) == 6
    assert ours[0].command("embedding") == (
        "jule reproduce embedding --datasets mnist --methods 'OURS + neighbours' --seeds 1"
    )
    method = reducing.find_method("OURS")
    assert Embedding().is_current(ours[0], {"settings": method.settings}) is False
    assert count_records(Embedding(), embedding.Path("nowhere")) == (0, len(cells))


def test_tables_show_the_paper_beside_ours(tmp_path):
    for seed, error in enumerate((0.05, 0.07)):
        path = tmp_path / f"embedding/ours-neighbours/mnist-2d-{seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        scores = {"error": error, "trustworthiness": 0.95}
        path.write_text(json.dumps({"scores": scores}))
    rendered = Embedding().render(tmp_path)
    errors = rendered["embedding error"].splitlines()
    assert errors[0] == "| 1-NN error | 2-d | 10-d | 30-d | seeds |"
    assert "| PCA | - (0.782) | - (0.430) | - (0.108) | - |" in errors
    assert "| OURS + neighbours | 0.060 ± 0.010 | - | - | 2 |" in errors
    assert "| OURS | - (0.768) |" in rendered["embedding trustworthiness"]


def test_the_figure_shows_a_panel_per_method(tmp_path):
    pytest.importorskip("matplotlib")
    assert Embedding().files(tmp_path) == {}
    rng = np.random.default_rng(0)
    for method in ("pca", "ours"):
        path = tmp_path / f"embedding/{method}/mnist-2d-0.json"
        path.parent.mkdir(parents=True)
        shown = embedding.shown_positions(rng.normal(size=(3000, 2)), rng.integers(10, size=3000))
        assert len(shown["x"].split()) == 2000
        path.write_text(json.dumps({"shown": shown}))
    (draw,) = Embedding().files(tmp_path).values()
    text = draw()
    assert text.count("<image") == 2
    assert text == draw()


def test_mnist_is_split_as_published(data_folder):
    data = split("mnist")
    assert (len(data.train), len(data.test)) == (60_000, 10_000)
    test = np.load(f"{data_folder}/mnist.npz")["split"] == 1
    assert test[60_000:].all()
    assert not test[:60_000].any()


def test_other_sets_are_split_at_random():
    data = split("digits")
    assert (len(data.train), len(data.test)) == (1497, 300)
    assert data.n_classes == 10
    train, test = data.intensities()
    assert train.dtype == test.dtype == np.float32
    assert train.max() == 1.0
