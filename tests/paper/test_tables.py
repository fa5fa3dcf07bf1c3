"""Tables: rendered from results/ alone, and the pages are up to date with them."""

from pathlib import Path

import pytest

from jule.paper import tables
from jule.paper.numbers import AC_GDL
from jule.paper.records import read_record, write_record

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_show_what_was_measured(page):
    text = page.read_text(encoding="utf-8")
    assert tables.fill(text, ROOT / "results") == text


def test_every_table_is_shown_somewhere():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in tables.TABLES:
        assert f"<!-- results: {name} -->" in text


def test_only_the_marked_place_changes(tmp_path):
    write_record(
        tmp_path / "benchmarks" / "neighbors.json",
        {
            "measured": {
                "seconds": {"ours": 2.0},
                "faiss / jule": 3.0,
                "jule / bare products all": 1.25,
                "jule / bare products once": 1.5,
            }
        },
    )
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results: neighbors -->\nold\n<!-- end -->\nafter\n")
    assert tables.fill_pages([page], tmp_path) == [page]
    text = page.read_text()
    assert text.startswith("before\n<!-- results: neighbors -->\n|")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "| faiss / jule | 3.00 |" in text
    assert "old" not in text
    assert tables.fill_pages([page], tmp_path) == []


def test_an_unknown_table_is_named(tmp_path):
    with pytest.raises(ValueError, match="no table is called 'speed'"):
        tables.fill("<!-- results: speed -->\n<!-- end -->", tmp_path)


def test_a_missing_result_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"linkage\.json is not there: run"):
        tables.fill("<!-- results: linkage -->\n<!-- end -->", tmp_path)


def test_a_damaged_result_is_named(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"x\.json is not a result file"):
        read_record(path)


def test_records_carry_versions_and_leave_no_part(tmp_path):
    write_record(tmp_path / "a" / "x.json", {"nmi": 0.5})
    record = read_record(tmp_path / "a" / "x.json")
    assert record["nmi"] == 0.5
    assert {"python", "numpy", "jule"} <= set(record["versions"])
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x.json"]


def test_the_papers_numbers_are_scores():
    assert all(0 <= value <= 1 for score in AC_GDL.values() for value in score)
