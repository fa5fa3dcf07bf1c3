"""Tables as Parquet files, read back."""

import os
import sys

import numpy as np
import pytest

from jule.export.parquet import write_parquet

pytest.importorskip("pyarrow")
from pyarrow import parquet


def test_columns_come_back(tmp_path):
    path = tmp_path / "labels.parquet"
    write_parquet(
        path,
        {
            "path": ["a.jpg", "b/猫.jpg", "c\n.jpg"],
            "cluster": np.array([0, 1, 0], np.int32),
            "confidence": np.array([0.5, 1.0, 0.25]),
            "rank": [1, 1, 2],
        },
    )
    table = parquet.read_table(path)
    assert table.to_pydict() == {
        "path": ["a.jpg", "b/猫.jpg", "c\n.jpg"],
        "cluster": [0, 1, 0],
        "confidence": [0.5, 1.0, 0.25],
        "rank": [1, 1, 2],
    }
    assert [str(field.type) for field in table.schema] == ["string", "int32", "double", "int64"]
    assert [file.name for file in tmp_path.iterdir()] == ["labels.parquet"]


def test_file_names_that_are_not_utf8_are_escaped(tmp_path):
    write_parquet(tmp_path / "x", {"path": ["caf\udce9.jpg", "\ud800"]})
    found = parquet.read_table(tmp_path / "x").to_pydict()
    assert found == {"path": ["caf\\udce9.jpg", "\\ud800"]}


@pytest.mark.skipif(os.name == "nt", reason="needs links and permissions of POSIX")
def test_the_file_follows_the_umask_and_no_link(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "x").symlink_to(tmp_path / "victim")
    before = os.umask(0o022)
    try:
        write_parquet(tmp_path / "x", {"path": ["a"]})
    finally:
        os.umask(before)
    assert (tmp_path / "victim").read_text() == "mine"
    assert (tmp_path / "x").lstat().st_mode & 0o777 == 0o644
    assert parquet.read_table(tmp_path / "x").num_rows == 1


def test_no_rows(tmp_path):
    write_parquet(tmp_path / "x", {"path": [], "cluster": np.empty(0, np.int32)})
    table = parquet.read_table(tmp_path / "x")
    assert table.num_rows == 0
    assert str(table.schema.field("cluster").type) == "int32"


def test_columns_of_two_lengths_are_refused(tmp_path):
    with pytest.raises(ValueError, match="equal lengths"):
        write_parquet(tmp_path / "x", {"path": ["a"], "cluster": []})
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_way_to_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "jule\[parquet\]"'):
        write_parquet(tmp_path / "x", {"path": ["a"]})
