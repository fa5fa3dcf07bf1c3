"""The driver: cells are measured once, unless their settings change."""

import pytest

from jule.paper.driver import count_records, run_experiment
from jule.paper.experiment import Cell, Experiment, Request
from jule.paper.records import read_record, write_record
from jule.paper.registry import EXPERIMENTS, find_experiment


class Squares(Experiment):
    """Square the seed; fail at a chosen one, leaving unfinished work behind."""

    name = "squares"
    title = "Table 0"
    datasets = ("usps", "digits")
    options = ("datasets", "seeds")

    def __init__(self, fails_at=None, power=2):
        self.fails_at, self.power = fails_at, power
        self.measured = []

    def cells(self, request):
        return [
            Cell(f"squares/{name}-{seed}.json", name, seed=seed)
            for name in request.datasets or self.datasets
            for seed in range(request.seeds or 2)
        ]

    def is_current(self, cell, record):
        return record["settings"] == {"power": self.power, "seed": cell.seed}

    def measure(self, cell, context):
        context.progress("squaring", 0.5)
        resumed = context.folder.exists()
        context.folder.mkdir(parents=True, exist_ok=True)
        if cell.seed == self.fails_at:
            raise KeyboardInterrupt
        self.measured.append(cell.title)
        settings = {"power": self.power, "seed": cell.seed}
        return {"settings": settings, "value": cell.seed**self.power, "resumed": resumed}

    def summary(self, record):
        return f"{record['value']}"

    def tables(self):
        return {"squares": lambda results: f"{len(list(results.glob('squares/*.json')))} squares"}


@pytest.fixture
def run(tmp_path):
    def run(experiment, **options):
        lines = []
        run_experiment(
            experiment,
            Request(**options),
            results=tmp_path / "results",
            runs=tmp_path / "runs",
            say=lines.append,
        )
        return lines

    return run


def test_all_cells_are_measured_and_shown(run, tmp_path):
    squares = Squares()
    assert count_records(squares, tmp_path / "results") == (0, 4)
    assert run(squares) == ["0", "1", "0", "1"]
    assert count_records(squares, tmp_path / "results") == (4, 4)
    record = read_record(tmp_path / "results" / "squares" / "usps-1.json")
    assert record["experiment"] == "squares"
    assert record["command"] == "jule reproduce squares --datasets usps --seeds 2"
    assert squares.render(tmp_path / "results") == {"squares": "4 squares"}
    assert list((tmp_path / "runs").iterdir()) == []


def test_only_what_was_asked_for_is_measured(run):
    squares = Squares()
    run(squares, datasets=("USPS",), seeds=3)
    assert squares.measured == ["usps, seed 0", "usps, seed 1", "usps, seed 2"]


def test_records_with_the_same_settings_are_kept(run, tmp_path):
    run(Squares())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    again = Squares()
    assert run(again) == ["0", "1", "0", "1"]
    assert again.measured == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == before


def test_records_with_other_settings_are_measured_again(run, tmp_path):
    run(Squares(), datasets=("usps",))
    cubes = Squares(power=3)
    run(cubes, datasets=("usps",))
    assert cubes.measured == ["usps, seed 0", "usps, seed 1"]
    assert read_record(tmp_path / "results" / "squares" / "usps-1.json")["settings"]["power"] == 3


def test_an_interrupted_cell_keeps_its_work_and_is_resumed(run, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Squares(fails_at=1), datasets=("usps",))
    records = tmp_path / "results" / "squares"
    assert [path.name for path in records.iterdir()] == ["usps-0.json"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["squares-usps-1"]
    squares = Squares()
    run(squares, datasets=("usps",))
    assert squares.measured == ["usps, seed 1"]
    assert read_record(records / "usps-1.json")["resumed"]
    assert list((tmp_path / "runs").iterdir()) == []


def test_unknown_options_are_refused(run):
    with pytest.raises(ValueError, match=r"squares has no option --preset; it has --datasets, --s"):
        run(Squares(), preset="paper")


def test_unknown_data_sets_are_refused_before_anything_is_measured(run, tmp_path):
    with pytest.raises(ValueError, match=r"unknown data set 'mnits'\. Did you mean 'mnist'"):
        run(Squares(), datasets=("usps", "mnits"))
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_is_not_understood_is_named_and_kept(run, tmp_path):
    path = tmp_path / "results" / "squares" / "usps-0.json"
    write_record(path, {"value": 7})
    with pytest.raises(ValueError, match=r"usps-0\.json has settings that are not understood"):
        run(Squares())
    assert read_record(path)["value"] == 7


def test_experiments_are_found_by_name():
    assert find_experiment("Raw_GDL") is EXPERIMENTS["raw-gdl"]
    with pytest.raises(ValueError, match=r"unknown experiment 'jiont'\. Did you mean 'joint'"):
        find_experiment("jiont")


def test_every_experiment_has_a_name_and_tables_of_its_own():
    assert all(name == each.name and each.title for name, each in EXPERIMENTS.items())
    tables = [name for each in EXPERIMENTS.values() for name in each.tables()]
    assert len(set(tables)) == len(tables)
