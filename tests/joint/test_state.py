"""States on disk: whole or not at all, and never mistaken for those of another run."""

import os
from dataclasses import fields, replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from jule.joint.state import Period, State, load_state, save_state

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
        seconds=1.5 * periods,
        network={"weight": np.arange(6.0, dtype=np.float32).reshape(2, 3), "count": np.array(7)},
        history=(PERIOD,) * periods,
    )


def assert_same(one, other):
    arrays = ("labels", "network", "representation")
    for field in fields(State):
        if field.name not in arrays:
            assert getattr(one, field.name) == getattr(other, field.name), field.name
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.network.keys() == other.network.keys()
    for name in one.network:
        np.testing.assert_array_equal(one.network[name], other.network[name])
        assert one.network[name].dtype == other.network[name].dtype


def test_a_state_is_loaded_as_it_was_saved(tmp_path):
    save_state(tmp_path, state(), IDENTITY)
    found = load_state(tmp_path, IDENTITY)
    assert_same(found, state())
    assert found.representation is None


def test_the_newest_state_is_loaded_and_two_are_kept(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for periods in (1, 2, 3):
        save_state(tmp_path, state(periods), IDENTITY)
    assert load_state(tmp_path, IDENTITY).n_periods == 3
    assert sorted(os.listdir(tmp_path)) == [
        "notes.txt",
        "state-0002.safetensors",
        "state-0003.safetensors",
    ]


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
    with pytest.warns(UserWarning, match=r"state-0002\.safetensors is damaged"):
        found = load_state(tmp_path, IDENTITY)
    assert_same(found, state(1))


@pytest.mark.filterwarnings("ignore:.*is damaged")
def test_only_damaged_states_are_an_error(tmp_path):
    damage_truncate(save_state(tmp_path, state(1), IDENTITY))
    with pytest.raises(ValueError, match="none of the 1 states"):
        load_state(tmp_path, IDENTITY)


@pytest.mark.parametrize("name", ["data", "config"])
def test_the_state_of_another_run_is_refused(tmp_path, name):
    save_state(tmp_path, state(), IDENTITY)
    with pytest.raises(ValueError, match=f"different {name}"):
        load_state(tmp_path, {**IDENTITY, name: {"else": 1}})


def test_a_state_of_the_same_period_is_replaced(tmp_path):
    save_state(tmp_path, state(1), IDENTITY)
    changed = replace(state(1), network={"weight": np.zeros((2, 3), np.float32)})
    save_state(tmp_path, changed, IDENTITY)
    assert load_state(tmp_path, IDENTITY).network["weight"].sum() == 0
