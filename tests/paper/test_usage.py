"""Time and memory of long measurements: counted by stage, and over interruptions."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from jule.paper import usage
from jule.paper.records import read_record
from jule.paper.usage import Usage

MIB = 2**20


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A clock that goes on by 4 seconds whenever it is read, and 7 MiB more memory every time."""
    seconds, memory = itertools.count(0.0, 4.0), itertools.count(100 * MIB, 7 * MIB)
    monkeypatch.setattr(usage, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    monkeypatch.setattr(usage, "peak_memory", lambda: next(memory))
    monkeypatch.setattr(usage, "reset_peak_memory", lambda: None)
    return tmp_path / "usage.json"


def test_seconds_belong_to_the_stage_that_was_begun(path):
    seen = []
    counted = Usage(path, lambda *each: seen.append(each))
    counted.begin("codes")
    counted.report("codes of conv1", 0.5)
    counted.begin("features")
    counted.end()
    assert counted.seconds == {"codes": 8.0, "features": 4.0}
    assert counted.peaks == {"codes": 100, "features": 107}
    assert seen == [("codes of conv1", 0.5)]


def test_what_was_saved_before_an_interruption_is_counted(path):
    counted = Usage(path, lambda *_: None)
    counted.begin("features")
    for step in range(4):
        counted.report("features", step / 4)
    assert read_record(path)["seconds"] == {"features": 12.0}, "saved after more than 10 seconds"
    resumed = Usage(path, lambda *_: None)
    resumed.begin("features")
    resumed.end()
    assert resumed.seconds == {"features": 12.0 + 4.0}
    assert (
        resumed.peaks == read_record(path)["peak memory of the stages in MiB"] == {"features": 107}
    )


def test_the_memory_of_a_stage_is_the_largest_one_over_interruptions(path, monkeypatch):
    for used in (200, 300, 250):
        monkeypatch.setattr(usage, "peak_memory", lambda used=used: used * MIB)
        counted = Usage(path, lambda *_: None)
        counted.begin("svm")
        counted.end()
    assert counted.peaks == {"svm": 300}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can reset the peak")
def test_memory_of_an_earlier_stage_does_not_count(tmp_path):
    counted = Usage(tmp_path / "usage.json", lambda *_: None)
    counted.begin("large")
    large = np.ones(30 * 2**20)
    del large
    counted.begin("small")
    counted.end()
    assert counted.peaks["large"] - counted.peaks["small"] > 200


def test_nothing_is_counted_between_stages(path):
    counted = Usage(path, lambda *_: None)
    counted.report("reading", 0.0)
    counted.end()
    assert counted.seconds == {}


def test_memory_that_is_not_known_is_left_out(path, monkeypatch):
    monkeypatch.setattr(usage, "peak_memory", lambda: None)
    counted = Usage(path, lambda *_: None)
    counted.begin("codes")
    counted.end()
    assert counted.peaks == {}
