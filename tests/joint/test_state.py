"""States on disk: whole or not at all, and never mistaken for another run's."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from jule.joint.state import Period, State, load_state, save_state, write_whole

PERIOD = Period(0, 0, 9, 3, 10, 1000, 0.2, 0.1, None, 0.5, {"train": 1.0}, 0.9, None)
IDENTITY = {"data": {"shape": [6, 2]}, "config": {"seed": 0}}


def state(periods=1):
    return State(
        round=0,
        number=periods,
        eta=0.5,
        warp=True,
        labels=np.array([0, 1, 0, 2, 2, 1], np.int32),
        ended=False,
        step=10 * periods,
        network={"weight": np.arange(6.0, dtype=np.float32).reshape(2, 3), "count": np.array(7)},
        history=(PERIOD,) * periods,
    )


def assert_same(one, other):
    assert (one.round, one.number, one.eta, one.warp, one.ended, one.step) == (
        other.round,
        other.number,
        other.eta,
        other.warp,
        other.ended,
        other.step,
    )
    assert one.history == other.history
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.network.keys() == other.network.keys()
    for name in one.network:
        np.testing.assert_array_equal(one.network[name], other.network[name])
        assert one.network[name].dtype == other.network[name].dtype


def test_what_is_saved_is_loaded(tmp_path):
    save_state(tmp_path, state(), IDENTITY)
    assert_same(load_state(tmp_path, IDENTITY), state())


def test_the_newest_state_is_loaded_and_two_are_kept(tmp_path):
    for periods in (1, 2, 3):
        save_state(tmp_path, state(periods), IDENTITY)
    assert load_state(tmp_path, IDENTITY).n_periods == 3
    assert sorted(os.listdir(tmp_path)) == ["state-0002.safetensors", "state-0003.safetensors"]


def test_no_state_is_none(tmp_path):
    assert load_state(tmp_path, IDENTITY) is None
    assert load_state(tmp_path / "nowhere", IDENTITY) is None


def damage_truncate(path):
    path.write_bytes(path.read_bytes()[:-5])


def damage_empty(path):
    path.write_bytes(b"")


def damage_one_bit(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))


def damage_foreign(path):
    save_file({"x": np.zeros(2)}, path)


def damage_text(path):
    path.write_text("not a state at all")


DAMAGES = [damage_truncate, damage_empty, damage_one_bit, damage_foreign, damage_text]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_named_and_the_one_before_it_is_used(tmp_path, damage):
    save_state(tmp_path, state(1), IDENTITY)
    damage(save_state(tmp_path, state(2), IDENTITY))
    with pytest.warns(UserWarning, match=r"state-0002\.safetensors is not a good state"):
        found = load_state(tmp_path, IDENTITY)
    assert_same(found, state(1))


@pytest.mark.filterwarnings("ignore:.*not a good state")
def test_only_damaged_states_are_an_error(tmp_path):
    damage_truncate(save_state(tmp_path, state(1), IDENTITY))
    with pytest.raises(ValueError, match="none of the 1 states"):
        load_state(tmp_path, IDENTITY)


@pytest.mark.parametrize("name", ["data", "config"])
def test_the_state_of_another_run_is_refused(tmp_path, name):
    save_state(tmp_path, state(), IDENTITY)
    with pytest.raises(ValueError, match=f"other {name}"):
        load_state(tmp_path, {**IDENTITY, name: {"else": 1}})


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for periods in (1, 2, 3):
        save_state(tmp_path, state(periods), IDENTITY)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_network_of_a_state_is_part_of_its_checksum(tmp_path):
    save_state(tmp_path, state(1), IDENTITY)
    changed = replace(state(1), network={"weight": np.zeros((2, 3), np.float32)})
    save_state(tmp_path, changed, IDENTITY)
    assert load_state(tmp_path, IDENTITY).network["weight"].sum() == 0


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from jule.joint.state import write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_whole(Path(sys.argv[1]), b"x" * 5000)
except OSError:
    print("refused")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits file sizes as POSIX does")
def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_half_written(tmp_path):
    target = tmp_path / "labels.csv"
    target.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, target], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\n"
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["labels.csv"]


def test_write_whole_replaces(tmp_path):
    write_whole(tmp_path / "a.json", json.dumps([1]).encode())
    write_whole(tmp_path / "a.json", json.dumps([2]).encode())
    assert json.loads((tmp_path / "a.json").read_text()) == [2]
