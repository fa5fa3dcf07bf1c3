"""The forward pass against numbers that are known: the paper's AC-GDL row."""

import pytest

from jule import load_dataset
from jule.forward import nearest_neighbor_components, nearest_neighbors, prepare
from jule.paper.experiment import Context, Request
from jule.paper.numbers import initial_clusters, paper_score
from jule.paper.raw_gdl import RawGDL


@pytest.mark.parametrize("name", ["coil20", "usps", "mnist-test", "umist", "cmu-pie"])
def test_the_papers_row_to_the_third_digit(name, tmp_path, data_folder):
    raw_gdl = RawGDL()
    (cell,) = raw_gdl.cells(Request(datasets=(name,)))
    record = raw_gdl.measure(cell, Context(tmp_path, tmp_path, lambda *_: None))
    found, paper = record["rows"]["paper"]["scores"], paper_score("AC-GDL", name)
    assert found["nmi"] == pytest.approx(paper.nmi, abs=0.002)
    assert found["ac"] == pytest.approx(paper.ac, abs=0.002)
    assert raw_gdl.is_current(cell, record)
    lines = raw_gdl.summary(record).splitlines()
    assert len(lines) == 3
    assert all(f"(paper {paper})" in line for line in lines)


def test_other_settings_are_not_current(tmp_path):
    raw_gdl = RawGDL()
    umist, usps = raw_gdl.cells(Request(datasets=("umist", "usps")))
    record = raw_gdl.measure(
        *raw_gdl.cells(Request(datasets=("digits",))),
        Context(tmp_path, tmp_path, lambda *_: None),
    )
    assert raw_gdl.is_current(usps, record)
    assert not raw_gdl.is_current(umist, record), "the mean image of faces is not subtracted"
    record["rows"]["local"]["settings"]["n_near"] = 4
    assert not raw_gdl.is_current(usps, record)


def test_the_initial_clusters_of_figure_1(data_folder):
    vectors = prepare(load_dataset("mnist-test").images, "l2")
    labels = nearest_neighbor_components(nearest_neighbors(vectors, 1))
    assert labels.max() + 1 == initial_clusters("mnist-test")
