"""The forward pass against numbers that cannot be argued with: the paper's AC-GDL row."""

import pytest

from jule import load_dataset
from jule.forward import nearest_neighbor_components, nearest_neighbors, prepare
from jule.paper import raw_gdl
from jule.paper.numbers import AC_GDL
from jule.paper.records import read_record


@pytest.mark.parametrize("name", ["coil20", "usps", "mnist-test", "umist", "cmu-pie"])
def test_the_papers_row_to_the_third_digit(name, tmp_path, data_folder):
    record = raw_gdl.measure(name, tmp_path)
    found = record["rows"]["paper"]["scores"]
    assert found["nmi"] == pytest.approx(AC_GDL[name].nmi, abs=0.002)
    assert found["ac"] == pytest.approx(AC_GDL[name].ac, abs=0.002)
    saved = read_record(tmp_path / "raw-gdl" / f"{name}.json")
    assert saved["rows"] == record["rows"]


def test_the_first_clusters_of_figure_1(data_folder):
    vectors = prepare(load_dataset("mnist-test").images, "l2")
    labels = nearest_neighbor_components(nearest_neighbors(vectors, 1))
    assert labels.max() + 1 == 1762
