"""Clustering on hand-crafted features: measured on digits, rendered beside the paper's numbers."""

import pytest

from jule.images import Dataset, load_dataset
from jule.paper import features, pyramid
from jule.paper.driver import run_experiment
from jule.paper.experiment import Request
from jule.paper.features import DESCRIPTORS, Features
from jule.paper.records import read_record, write_record

METHODS = ("SC-LS on HOG", "AC-PIC on LBP", "AC-PIC on spatial pyramid")


def run(folder, **options):
    lines = []
    request = Request(datasets=("digits",), **options)
    run_experiment(Features(), request, results=folder, runs=folder / "runs", say=lines.append)
    return lines


def test_methods_find_digits_from_descriptors(tmp_path, monkeypatch):
    pytest.importorskip("skimage")
    monkeypatch.setattr(pyramid, "MAX_DESCRIPTORS", 2000)
    monkeypatch.setattr(features, "_described", {})
    lines = run(tmp_path, methods=METHODS, seeds=1)
    assert len(lines) == 3
    folder = tmp_path / "features"
    found = {
        name: read_record(folder / name / "digits-0.json")
        for name in ("hog/sc-ls", "lbp/ac-pic", "spatial-pyramid/ac-pic")
    }
    for record in found.values():
        assert record["scores"]["nmi"] > 0.6
        assert record["seconds"] > 0
        assert record["samples"] == 1797
    assert found["lbp/ac-pic"]["seed"] is None, "nothing is random"
    assert found["spatial-pyramid/ac-pic"]["seed"] == 0, "the vocabulary is"
    assert found["spatial-pyramid/ac-pic"]["dimensions"] == 21 * 200
    assert found["hog/sc-ls"]["settings"]["descriptor"] == "HOG"
    assert run(tmp_path, methods=METHODS, seeds=1) == lines
    command = found["hog/sc-ls"]["command"]
    assert command == (
        "jule reproduce features --datasets digits --methods 'SC-LS on HOG' --seeds 1"
    )


def test_descriptors_are_computed_once_for_all_methods(tmp_path, monkeypatch):
    pytest.importorskip("skimage")
    calls = []

    def hog(images, progress):
        calls.append(len(images))
        return features.lbp(images, progress=progress)

    monkeypatch.setattr(features, "_described", {})
    monkeypatch.setattr(features, "hog", hog)
    run(tmp_path, methods=("SC-LS on HOG", "AC-PIC on HOG"), seeds=2)
    assert calls == [1797]


def test_every_descriptor_is_clustered_by_every_method_and_random_ones_have_seeds():
    cells = Features().cells(Request())
    assert {cell.dataset for cell in cells} >= {"umist", "mnist-test", "coil100"}
    umist = [cell for cell in cells if cell.dataset == "umist"]
    names = {cell.method for cell in umist}
    methods = ("SC-LS", "N-Cuts", "AC-PIC")
    # Other forms are measured where the paper has that descriptor: for faces, LBP.
    described = set(DESCRIPTORS) - {"HOG (one block)", "spatial pyramid (four levels)"}
    assert names == {f"{method} on {one}" for method in methods for one in described}
    # The linkage of descriptors that are not random has one cell instead of three.
    assert len(umist) == 12 * 3 - 3 * 2
    assert len({cell.path for cell in cells}) == len(cells)


def test_other_forms_of_a_descriptor_can_be_asked_for():
    cells = Features().cells(Request(datasets=("coil100",)))
    forms = {cell.method for cell in cells if "(" in cell.method}
    assert forms == {
        f"{method} on spatial pyramid (four levels)" for method in ("SC-LS", "N-Cuts", "AC-PIC")
    }
    asked = ("AC-PIC on HOG (one block)", "AC-PIC on LBP (whole image)")
    found = Features().cells(Request(datasets=("coil100",), methods=asked))
    assert {cell.method for cell in found} == set(asked)


def test_pyramids_can_have_four_levels(tmp_path, monkeypatch):
    digits = load_dataset("digits")
    few = Dataset("digits", digits.images[:200], digits.labels[:200])
    monkeypatch.setattr(pyramid, "MAX_DESCRIPTORS", 2000)
    monkeypatch.setattr(features, "_described", {})
    monkeypatch.setattr(features, "_load", lambda _: few)
    run(tmp_path, methods=("AC-PIC on spatial pyramid (four levels)",), seeds=1)
    folder = tmp_path / "features" / "spatial-pyramid-four-levels"
    record = read_record(folder / "ac-pic" / "digits-0.json")
    assert record["dimensions"] == 85 * 200
    assert record["scores"]["nmi"] > 0.5


def test_frgc_is_measured_where_its_file_is(monkeypatch):
    monkeypatch.setattr(features, "has_dataset", lambda name: name == "frgc")
    assert "frgc" in {cell.dataset for cell in Features().cells(Request())}


def test_other_settings_are_not_current():
    (cell,) = Features().cells(Request(datasets=("umist",), methods=("AC-PIC on LBP",)))
    settings = Features()._settings(cell)
    assert Features().is_current(cell, {"settings": settings})
    assert not Features().is_current(cell, {"settings": settings | {"preparation": "none"}})


def test_the_table_shows_pixels_and_descriptors_beside_the_papers_numbers(tmp_path):
    for seed, nmi in enumerate((0.7, 0.8)):
        scores = {"scores": {"nmi": nmi, "ac": 0.1}}
        write_record(
            tmp_path / "features" / "hog-one-block" / "sc-ls" / f"mnist-test-{seed}.json", scores
        )
    write_record(
        tmp_path / "clustering" / "raw" / "sc-ls" / "mnist-test-0.json",
        {"scores": {"nmi": 0.73, "ac": 0.7}},
    )
    header, _, *rows = Features().render(tmp_path)["features"].splitlines()
    assert header == "| NMI | SC-LS | paper | N-Cuts | paper | AC-PIC | paper |"
    assert rows == [
        "| MNIST-test, pixels | 0.730 | 0.756 | - | 0.386 | - | 0.853 |",
        "| MNIST-test, HOG (one block) | 0.750 ± 0.050 | 0.625 | - | 0.423 | - | 0.735 |",
    ]
    ((what, ours, papers, is_error),) = Features().comparisons(tmp_path)
    assert (what, papers, is_error) == ("MNIST-test, SC-LS on HOG (one block)", 0.625, False)
    assert ours == pytest.approx(0.75)
    assert Features().render(tmp_path / "nothing")["features"].count("\n") == 1
