"""The record of the campaigns, the page that shows it, and the command that runs them."""

from pathlib import Path

import pytest
from torture.campaign import Outcome
from torture.record import MOST_FAILURES, RECORD, ROOT, update_record
from torture.tables import MARKER, TABLES

from jule.paper.records import read_record
from jule.paper.tables import fill
from torture import __main__ as command

PAGE = ROOT / "docs" / "reliability.md"


class Counted:
    """A campaign whose every third case fails."""

    title = "counted cases"
    goal = 90
    promise = "Nothing."

    def __init__(self, name="counted"):
        self.name = name

    def run(self, n_cases, seed, progress):
        n_cases = n_cases or self.goal
        failures = [f"case {number} of seed {seed}" for number in range(0, n_cases, 3)]
        progress(n_cases, n_cases)
        return Outcome(
            n_cases, {"failed": len(failures), "held": n_cases - len(failures)}, failures
        )


class Stopped(Counted):
    def run(self, n_cases, seed, progress):
        raise KeyboardInterrupt


@pytest.fixture
def record(tmp_path, monkeypatch):
    """The command with other campaigns, in this process, and the record that it writes."""
    known = {"counted": Counted(), "other": Counted("other"), "stopped": Stopped("stopped")}
    monkeypatch.setattr(command, "CAMPAIGNS", known)
    monkeypatch.setattr(command, "load", known.get)
    monkeypatch.setattr(
        command, "run_alone", lambda name, n, seed: known[name].run(n, seed, lambda *_: None)
    )
    monkeypatch.setattr(command, "RECORD", tmp_path / "reliability.json")
    return tmp_path / "reliability.json"


def test_the_page_shows_what_was_counted():
    text = PAGE.read_text(encoding="utf-8")
    assert fill(text, MARKER, TABLES, ROOT / "results") == text


def test_every_campaign_has_reached_its_goal_without_a_failure():
    found = read_record(RECORD)["campaigns"]
    assert set(found) == set(command.CAMPAIGNS)
    for name in found:
        campaign = command.load(name)
        assert campaign.name == name
        assert found[name]["title"] == campaign.title
        assert found[name]["promise"] == campaign.promise
        assert found[name]["cases"] >= found[name]["goal"] == campaign.goal
        assert found[name]["failures"] == []


def test_the_command_records_what_failed_and_how_to_repeat_it(record, capsys):
    assert command.main(["counted", "--seed", "3"]) == 1
    entry = read_record(record)["campaigns"]["counted"]
    assert (entry["cases"], entry["n_failures"], entry["seed"]) == (90, 30, 3)
    assert len(entry["failures"]) == MOST_FAILURES
    assert entry["failures"][1] == "case 3 of seed 3"
    assert entry["counts"] == {"failed": 30, "held": 60}
    assert entry["command"] == "python -m torture counted --seed 3"
    assert {"jule", "python", "numpy", "torch", "pillow", "platform"} == set(entry["versions"])
    assert "90 cases, 30 failed" in capsys.readouterr().out


def test_other_entries_are_kept_and_ctrl_c_keeps_what_is_finished(record):
    command.main(["counted", "--cases", "3"])
    assert command.main(["other", "stopped"]) == 130
    found = read_record(record)["campaigns"]
    assert {name: entry["cases"] for name, entry in found.items()} == {"counted": 3, "other": 90}


def test_campaigns_are_listed_and_unknown_names_refused(record, capsys):
    assert command.main(["--list"]) == 0
    assert "counted           90  counted cases" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "no campaign is called nothing" in capsys.readouterr().err
    assert not record.exists()


def test_a_record_without_failures_is_a_success(tmp_path):
    path = tmp_path / "a.json"
    outcome = Outcome(2, {"held": 2}, [])
    entry = update_record(path, Counted(), outcome, seconds=1.0, seed=0, command="x")
    assert entry["failures"] == []
    assert read_record(path)["campaigns"]["counted"] == entry
    assert [one.name for one in Path(tmp_path).iterdir()] == ["a.json"]
