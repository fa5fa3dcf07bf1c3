"""Tables: rendered from results/ alone, and the pages are up to date with them."""

from pathlib import Path

import pytest
from benchmarks import tables as benchmarks

from jule.paper.records import read_record, write_record
from jule.paper.registry import EXPERIMENTS, experiment_tables
from jule.paper.tables import fill, fill_pages, has_tables, pages_of

ROOT = Path(__file__).parents[2]
PAGES = pages_of(ROOT)
KINDS = {"results": experiment_tables(), "benchmark": benchmarks.TABLES}


@pytest.mark.parametrize("word", KINDS)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_show_what_was_measured(page, word):
    text = page.read_text(encoding="utf-8")
    assert fill(text, word, KINDS[word], ROOT / "results") == text


@pytest.mark.parametrize("word", KINDS)
def test_every_table_is_shown_somewhere(word):
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in KINDS[word]:
        assert f"<!-- {word}: {name} -->" in text


def test_all_published_records_are_current():
    for experiment in EXPERIMENTS.values():
        for request in experiment.published:
            for cell in experiment.cells(experiment.check(request)):
                record = read_record(ROOT / "results" / cell.path)
                assert experiment.is_current(cell, record), f"{cell.path} has other settings"


def table(results):
    return f"| {(results / 'x').read_text()} |"


def test_only_the_marked_place_changes(tmp_path):
    (tmp_path / "x").write_text("new")
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    page.write_text(
        "before\n<!-- results: x -->\nold\n<!-- end -->\nafter\n<!-- benchmark: x -->\n"
    )
    assert has_tables(tmp_path, "results")
    assert fill_pages(tmp_path, "results", {"x": table}, tmp_path) == [page]
    assert page.read_text() == (
        "before\n<!-- results: x -->\n| new |\n<!-- end -->\nafter\n<!-- benchmark: x -->\n"
    )
    assert fill_pages(tmp_path, "results", {"x": table}, tmp_path) == []


def test_an_unknown_table_is_named(tmp_path):
    page = "<!-- benchmark: speed -->\n<!-- end -->"
    assert fill(page, "results", {}, tmp_path) == page
    with pytest.raises(ValueError, match="no benchmark table is called 'speed'; there are x"):
        fill(page, "benchmark", {"x": table}, tmp_path)


def test_a_missing_result_is_named(tmp_path):
    page = "<!-- benchmark: linkage -->\n<!-- end -->"
    with pytest.raises(FileNotFoundError, match=r"linkage\.json does not exist: run"):
        fill(page, "benchmark", benchmarks.TABLES, tmp_path)


def test_a_damaged_result_is_named(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"x\.json is not a result file"):
        read_record(path)


def test_records_carry_versions_and_leave_no_part(tmp_path):
    written = write_record(tmp_path / "a" / "x.json", {"nmi": 0.5})
    record = read_record(tmp_path / "a" / "x.json")
    assert record == written
    assert record["nmi"] == 0.5
    assert {"python", "numpy", "jule"} <= set(record["versions"])
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x.json"]


def test_benchmarks_before_and_after_are_shown_as_ratios(tmp_path):
    taken = {"before": 3.0, "after": 1.5, "before / after": 2.0}
    counts = {"neighbour searches": 9, "embeddings": 8}
    write_record(
        tmp_path / "benchmarks" / "once.json",
        {
            "settings": {"images": 10_000, "pictures": 80},
            "measured": {
                "large": {"jule cluster": taken},
                "small": {"jule --help": taken},
                "counts": {"jule cluster": {"before": counts, "after": counts}},
            },
        },
    )
    shown = benchmarks.once(tmp_path)
    assert "| `jule cluster`, 10,000 images of MNIST-test | 3.00 s | 1.50 s | 2.00 |" in shown
    assert "| `jule --help`, 80 pictures |" in shown
    assert "| `jule cluster` | 9 | 9 | 8 | 8 |" in benchmarks.once_counts(tmp_path)


def test_operations_of_a_step_are_shown_with_their_rates(tmp_path):
    operations = [
        {"name": "convolution 1, forward", "seconds": 0.2, "gflop": 10.0, "plain_rate": 25.0},
        {"name": "warping", "seconds": 0.3, "gflop": 0.0, "plain_rate": 0.0},
    ]
    profile = {
        "seconds of a step": 0.5,
        "GFLOP/s of matrix products": 100.0,
        "operations": operations,
    }
    record = {"measured": {"profiles": {"MNIST, 28 x 28": profile}}}
    write_record(tmp_path / "benchmarks" / "training.json", record)
    shown = benchmarks.training_profile(tmp_path)
    assert shown.startswith("| MNIST, 28 x 28 | share of the step |")
    assert "| convolution 1, forward | 40.0% | 50 | 50% | 25% |" in shown
    assert "| warping | 60.0% |  |  |  |" in shown
    assert "| a whole step | 100.0% | 20 | 20% |  |" in shown


def test_the_laws_of_growth_are_found_again(tmp_path):
    folder = tmp_path / "benchmarks"
    curve = [{"n": 10**6, "MiB above input": 1000.0}]
    write_record(folder / "growth.json", {"measured": {"curves": {"shifted mnist": curve}}})
    runs = [{"n": n, "stages": {"merge": n / 1e5}} for n in (10**4, 10**6, 10**7)]
    runs[0]["stages"]["merge"] = 50.0  # an exact search has other laws
    write_record(folder / "million.json", {"measured": {"rows": runs}})
    shown = benchmarks.TABLES["needs"](tmp_path)
    assert "| merge | 1.00 | 10,000,000 | 100 seconds | 17 minutes | 2.8 hours |" in shown
    assert "| pixels in the cache | 1 |  | 3 GB | 26 GB | 256 GB |" in shown


def test_whole_runs_are_shown_stage_by_stage(tmp_path):
    run = {
        "n": 1_050_000,
        "stages": {"train": 1200.0, "merge": 60.0},
        "processes": [{"MiB": 900.0}, {"MiB": 2500.0}],
        "scores": {"nmi": 0.9, "ac": 0.95},
        "recall": [0.993, 0.991],
    }
    measured = {"rows": [run], "exponents": {"train": 1.02, "merge": 1.2}}
    write_record(tmp_path / "benchmarks" / "million.json", {"measured": measured})
    shown = benchmarks.TABLES["million"](tmp_path)
    assert "| 1,050,000 | 1,200 | 60 | 21 | 2,500 | 0.900 / 0.950 | 0.991 |" in shown
    assert "| **exponent** | **1.02** | **1.20** |" in shown
