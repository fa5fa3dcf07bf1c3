"""Corrections from a spreadsheet, and keywords for other programs."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from jule.export.xmp import xmp_bytes
from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder
from jule.runs.import_labels import parse_corrections
from jule.runs.results import read_results


def rows_of(run):
    text = (run / "labels.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def written(path, rows, *, delimiter=",", bom=False, encoding="utf-8"):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.getvalue().encode(encoding))
    return path


def test_a_table_that_was_not_changed_changes_nothing(copied, jule):
    before = {path.name: path.read_bytes() for path in copied.iterdir() if path.is_file()}
    done = jule("import-labels", copied, copied / "labels.csv")
    assert done.exit_code == 0, done.output
    assert "121 rows, 0 edits, 3 clusters" in done.stdout
    assert {path.name: path.read_bytes() for path in copied.iterdir() if path.is_file()} == before


def test_the_table_of_a_run_with_a_shelf_changes_nothing(copied, jule):
    session = EditSession(RunFolder(copied))
    session.add(session.editor.name(2, "cats"))  # the last cluster
    session.add(session.editor.shelve([5, 6]))
    session.write_labels()
    shelved = [row for row in rows_of(copied) if row["cluster"] == "-1"]
    assert [row["name"] for row in shelved] == ["unsure", "unsure"]
    done = jule("import-labels", copied, copied / "labels.csv")
    assert done.exit_code == 0, done.output
    assert "0 edits" in done.stdout


@pytest.mark.parametrize(("delimiter", "bom"), [(",", False), (";", True), ("\t", True)])
def test_names_and_moves_of_a_spreadsheet(copied, jule, tmp_path, delimiter, bom):
    rows = rows_of(copied)
    labels = np.array([int(row["cluster"]) for row in rows])
    for row in rows:
        if row["cluster"] == "1":
            row["name"] = "ones"
    moved = np.flatnonzero(labels == 0)[:3].tolist()
    rows[moved[0]]["name"] = "ones"  # by name
    rows[moved[1]]["cluster"] = "2"  # by number
    rows[moved[2]]["name"] = "odd"  # a new cluster
    table = written(tmp_path / "mine.csv", rows, delimiter=delimiter, bom=bom)
    done = jule("import-labels", copied, table)
    assert done.exit_code == 0, done.output
    results = read_results(RunFolder(copied))
    names = results.cluster_names
    found = results.result.labels[moved].tolist()
    assert [names.get(found[0]), found[1], names.get(found[2])] == ["ones", 2, "odd"]
    assert results.result.n_clusters == 4
    assert (results.result.labels[labels == 1] == found[0]).all()
    session = EditSession(RunFolder(copied))
    while session.editor.log.done:
        session.undo()
    np.testing.assert_array_equal(session.state.labels, session.found.result.labels)


def test_a_table_of_ones_own_needs_two_columns(copied, jule, tmp_path):
    (tmp_path / "few.csv").write_text("Path, Name\n000.png, zeros\n\n001.png, unsure\n")
    done = jule("import-labels", copied, tmp_path / "few.csv")
    assert done.exit_code == 0, done.output
    results = read_results(RunFolder(copied))
    label = results.result.labels[results.names.index("000.png")]
    assert results.cluster_names[int(label)] == "zeros"
    assert results.result.labels[results.names.index("001.png")] == results.shelf


def test_a_number_that_no_cluster_has_is_not_that_of_a_name_in_the_same_table(
    copied, jule, tmp_path
):
    rows = [row for row in rows_of(copied) if row["cluster"] == "0"][:2]
    rows[0]["name"] = "dogs"  # the new cluster 3
    rows[1]["cluster"] = "3"  # of its own
    done = jule("import-labels", copied, written(tmp_path / "two.csv", rows))
    assert done.exit_code == 0, done.output
    after = {row["path"]: row for row in rows_of(copied)}
    assert [after[row["path"]]["name"] for row in rows] == ["dogs", ""]
    assert [after[row["path"]]["cluster"] for row in rows] == ["3", "4"]


def test_what_is_on_the_shelf_and_called_so_needs_no_number(copied, jule, tmp_path):
    session = EditSession(RunFolder(copied))
    session.add(session.editor.shelve([0, 1]))
    session.write_labels()
    rows = [row | {"name": "unsure"} for row in rows_of(copied)[:2]]
    for number, found in (("3", "-1"), ("", "-1"), ("2", "2")):
        rows[0]["cluster"] = number
        done = jule("import-labels", copied, written(tmp_path / "two.csv", rows))
        assert done.exit_code == 0, done.output
        assert [row["cluster"] for row in rows_of(copied)[:2]] == [found, "-1"]


BAD = {
    b"": "the columns must be path, and name or cluster, got nothing",
    b"path,rank\n": "line 1: the columns must be path, and name or cluster, got path, rank",
    b"path,name,name\n": "the column name is there twice",
    b"path,name\ngone.png,x\n": "line 2: the run has no picture 'gone.png'",
    b"path,cluster\n000.png,-2\n": "line 2: cluster '-2' is not a whole number",
    b"path,name\n000.png\n": "line 2 has 1 cells instead of 2",
    b"path,name\n000.png,a\n000.png,b\n": r"line 3: 000\.png is in line 2 already",
    b"path,name,index\n000.png,a,9\n": "no picture '000.png' with index 9",
    b"path,name\n000.png," + b"x" * 201 + b"\n": "line 2: the name of a cluster has at most 200",
    b"path,name\ncaf\xe9.png,x\n": r"not UTF-8 \(line 2\): save it as 'CSV UTF-8'",
    b'path,name\n"000.png,x\n': "unexpected end of data",
}


@pytest.mark.parametrize("content", BAD, ids=BAD.values())
def test_what_is_wrong_is_said_with_its_line_and_nothing_changes(
    copied, refused, tmp_path, content
):
    before = {path.name: path.read_bytes() for path in copied.iterdir() if path.is_file()}
    (tmp_path / "bad.csv").write_bytes(content)
    message = refused("import-labels", copied, tmp_path / "bad.csv")
    assert message.count("\n") == 1
    assert re.search(BAD[content], message), message
    assert {path.name: path.read_bytes() for path in copied.iterdir() if path.is_file()} == before


def test_two_pictures_of_one_name_need_an_index():
    (row,) = parse_corrections(b"path,cluster,index\na,3,7\n", "x")
    assert (row.cluster, row.index) == (3, 7)


# ---- tables and keywords for other programs


def test_tables_for_other_programs(copied, jule, tmp_path):
    session = EditSession(RunFolder(copied))
    session.add(session.editor.name(0, "=zeros"))
    done = jule(
        "export", copied, "--csv", tmp_path / "a.csv", "--json", tmp_path / "a.json"
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    clusters = json.loads((tmp_path / "a.json").read_text())
    assert [one["cluster"] for one in clusters] == [0, 1, 2]
    assert clusters[0]["name"] == "=zeros"
    assert sum(len(one["pictures"]) for one in clusters) == 121
    text = (tmp_path / "a.csv").read_text()
    assert ",'=zeros," in text  # no formula
    assert len(text.splitlines()) == 122


def test_keywords_are_written_beside_copies_only(copied, trained, jule, refused, tmp_path):
    session = EditSession(RunFolder(copied))
    session.add(session.editor.name(0, '<zeros> & "co"'))
    originals = sorted(path.name for path in (trained.folder / "photos").rglob("*"))
    done = jule("export", copied, "--to", tmp_path / "tagged", "--xmp")
    assert done.exit_code == 0, done.output
    pictures = list((tmp_path / "tagged").rglob("*.png"))
    assert len(pictures) == 121
    assert not any(path.is_symlink() for path in pictures)
    for path in pictures:
        beside = path.with_name(f"{path.name}.xmp")
        root = ElementTree.parse(beside).getroot()
        (keyword,) = root.findall(".//{*}subject/{*}Bag/{*}li")
        if "cluster-00" in path.parent.name:
            assert keyword.text == '<zeros> & "co"'
    assert sorted(path.name for path in (trained.folder / "photos").rglob("*")) == originals
    again = jule("export", copied, "--to", tmp_path / "tagged", "--xmp")
    assert again.exit_code == 0, again.output
    assert "beside copies" in refused("export", copied, "--xmp")
    message = refused("export", copied, "--to", tmp_path / "t", "--xmp", "--how", "link")
    assert "beside copies" in message


@pytest.mark.parametrize("text", ["\x00\x1b[2J", "\ud800", "]]>", "<!--", "a|b", "&amp;", "{x}"])
def test_any_keyword_is_well_formed(text):
    root = ElementTree.fromstring(xmp_bytes(text).decode().removeprefix("\ufeff"))
    assert len(root.findall(".//{*}subject/{*}Bag/{*}li")) == 1
