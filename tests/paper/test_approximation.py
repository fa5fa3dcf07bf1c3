"""Approximated merging: the exact variant is the linkage itself, and times come from one run."""

import pytest

from jule.evaluation import scores
from jule.forward import agglomerate, default_min_cluster_size, prepare
from jule.images import load_dataset
from jule.paper import approximation
from jule.paper.approximation import VARIANTS, Approximation
from jule.paper.driver import run_experiment
from jule.paper.experiment import Request
from jule.paper.records import read_record, write_record
from jule.paper.registry import EXPERIMENTS


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder, lines = tmp_path_factory.mktemp("approximation"), []
    patch = pytest.MonkeyPatch()
    patch.setattr(approximation, "SECONDS", 0.0)
    request = Request(datasets=("digits",))
    run_experiment(Approximation(), request, results=folder, runs=folder / "runs", say=lines.append)
    patch.undo()
    return read_record(folder / "approximation" / "digits.json"), lines


def labels_of(variant):
    digits = load_dataset("digits")
    vectors = prepare(digits.images, "center-l2")
    tree = agglomerate(vectors, n_near=1, update=variant.update, alpha=variant.alpha)
    return digits, tree


@pytest.mark.parametrize("variant", VARIANTS[::3], ids=lambda variant: variant.name)
def test_scores_are_those_of_the_forward_pass(measured, variant):
    record, _ = measured
    digits, tree = labels_of(variant)
    row = record["rows"][variant.name]
    assert row["scores"] == scores(digits.labels, tree.cut(10, 1))
    size = default_min_cluster_size(len(digits), 10)
    assert row["scores, tiny clusters absorbed"] == scores(digits.labels, tree.cut(10, size))
    assert record["first clusters"] == tree.n_initial


def test_every_variant_is_timed_and_shown(measured):
    record, lines = measured
    assert list(record["rows"]) == [variant.name for variant in VARIANTS]
    assert [variant.alpha for variant in VARIANTS[2:]] == [-0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.5]
    assert all(0 < row["seconds of the processor"] < 60 for row in record["rows"].values())
    assert len(lines) == len(VARIANTS)
    assert "time 1.00" in lines[0]


def test_variants_differ(measured):
    record, _ = measured
    assert len({row["scores"]["nmi"] for row in record["rows"].values()}) > 2


def test_other_settings_are_not_current(measured):
    record, _ = measured
    (cell,) = Approximation().cells(Request(datasets=("digits",)))
    assert Approximation().is_current(cell, record)
    changed = record["settings"] | {"variants": []}
    assert not Approximation().is_current(cell, record | {"settings": changed})


def test_the_fastest_of_several_turns_counts(monkeypatch):
    clock = iter([*range(100)])
    times = {"fast": iter([50, 3, 1, 2]), "slow": iter([50, 9, 8, 7])}
    now = [0.0]

    def call(name):
        now[0] += next(times[name])
        return name, name

    monkeypatch.setattr(approximation.time, "process_time", lambda: now[0])
    monkeypatch.setattr(approximation.time, "perf_counter", lambda: 1000.0 * next(clock))
    seen = []
    calls = {name: lambda name=name: call(name) for name in times}
    found = approximation._time_in_turn(calls, seen.append)
    assert {name: seconds for name, (_, _, seconds) in found.items()} == {"fast": 1, "slow": 7}
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def record(dataset, nmi, seconds):
    rows = {
        variant.name: {
            "seconds of the processor": seconds if variant.update == "exact" else seconds / 2,
            "scores": {"nmi": nmi, "ac": nmi / 2},
            "scores, tiny clusters absorbed": {"nmi": nmi + 0.1, "ac": nmi / 2},
        }
        for variant in VARIANTS
    }
    return {"dataset": dataset, "seconds of the neighbour search": 2.0, "rows": rows}


def test_tables_and_the_figure_show_all_sets(tmp_path):
    folder = tmp_path / "approximation"
    write_record(folder / "usps.json", record("usps", 0.8, 0.4))
    write_record(folder / "coil20.json", record("coil20", 0.9, 0.1))
    tables = Approximation().render(tmp_path)
    header, _, *rows = tables["approximation nmi"].splitlines()
    assert header.startswith("| NMI | the paper's AC-GDL | exact | ratio | α = -0.2 |")
    assert rows[0].startswith("| COIL-20 | 0.945 | 0.900 | 0.900 |")
    assert rows[1].startswith("| USPS | 0.854 | 0.800 |")
    assert "| USPS | 0.867 | 0.400 |" in tables["approximation ac"]
    assert "| USPS | 0.854 | 0.900 |" in tables["approximation absorbed"]
    assert "| USPS | 0.400 s | 0.50 |" in tables["approximation time"]
    pytest.importorskip("matplotlib")
    ((path, draw),) = Approximation().files(tmp_path).items()
    assert path == "approximation/approximation.svg"
    text = draw()
    for shown in ("COIL-20", "USPS", "NMI", "time of merging / exact", "-0.2"):
        assert shown in text


def test_nothing_measured_has_no_figure(tmp_path):
    assert Approximation().files(tmp_path) == {}
    assert Approximation().render(tmp_path)["approximation nmi"].count("\n") == 1


def test_supplied_sets_are_measured_where_the_files_are(monkeypatch):
    monkeypatch.setattr(approximation, "has_dataset", lambda name: name == "ytf")
    assert [cell.dataset for cell in EXPERIMENTS["approximation"].cells(Request())] == [
        *Approximation.datasets,
        "ytf",
    ]
