"""States on disk: whole or not at all, and never mistaken for those of another run."""

import contextlib
import json
import os
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save, save_file

from jule.joint.state import Period, State, _checksum, load_state, save_state

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


def test_a_state_of_an_ensemble_is_loaded_as_it_was_saved(tmp_path):
    history = (PERIOD, replace(PERIOD, member=1))
    saved = replace(state(2), member=1, history=history)
    save_state(tmp_path, saved, IDENTITY)
    assert_same(load_state(tmp_path, IDENTITY), saved)


def test_a_state_of_an_older_version_has_one_network(tmp_path):
    """It has no `member`, and its settings lack those that were added since."""
    older = asdict(PERIOD)
    del older["member"]
    stored(tmp_path, periods=1, member="left out", history=[older])
    config = IDENTITY["config"] | {"ensemble": 1}
    found = load_state(tmp_path, IDENTITY | {"config": config})
    assert (found.member, found.history[0].member) == (0, 0)
    with pytest.raises(ValueError, match="different config"):
        load_state(tmp_path, IDENTITY | {"config": config | {"ensemble": 3}})


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


# Damage that a checksum does not show


def stored(folder, *, periods=2, tensors=None, **about):
    """Save a state whose content was changed before its checksum was made."""
    changed = state(periods)
    path = save_state(folder, changed, IDENTITY)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    values = json.loads(metadata["about"]) | about
    arrays = load(content) | (tensors or {})
    text = json.dumps({name: value for name, value in values.items() if value != "left out"})
    metadata |= {"about": text, "checksum": str(_checksum(arrays, text))}
    path.write_bytes(save(arrays, metadata))
    return path


BAD_PERIOD = asdict(PERIOD) | {"steps": "many"}


@pytest.mark.parametrize(
    "changes",
    [
        {"round": -1},
        {"round": "left out"},
        {"member": -1},
        {"member": None},
        {"number": 1.5},
        {"step": True},
        {"step": 10**30},
        {"eta": float("nan")},
        {"eta": 2.0},
        {"seconds": "long"},
        {"warp": 1},
        {"ended": None},
        {"history": {}},
        {"history": [None]},
        {"history": [BAD_PERIOD]},
        {"identity": None},
        {"identity": "left out"},
        {"tensors": {"labels": np.array([0, 1, 0, 2, 2], np.int32)}},
        {"tensors": {"labels": np.array([0, 1, 0, 3, 3, 1], np.int32)}},
        {"tensors": {"labels": np.array([0, -1, 0, 1, 1, 1], np.int32)}},
        {"tensors": {"labels": np.array([0, 1, 0, 2, 2, 1], np.int64)}},
        {"tensors": {"labels": np.zeros((6, 1), np.int32)}},
        {"tensors": {"labels": np.zeros(0, np.int32)}},
        {"tensors": {"network.weight": np.full((2, 3), np.nan, np.float32)}},
        {"tensors": {"network.weight": np.zeros((3, 2), np.float32)}},
        {"tensors": {"network.weight": np.zeros((2, 3), np.float64)}},
        {"tensors": {"network.more": np.zeros(1, np.float32)}},
    ],
)
def test_a_state_that_cannot_be_one_of_the_run_is_not_used(tmp_path, changes):
    save_state(tmp_path, state(1), IDENTITY)
    stored(tmp_path, **changes)
    with pytest.warns(UserWarning, match=r"state-0002\.safetensors is damaged"):
        found = load_state(tmp_path, IDENTITY, network=state(1).network)
    assert_same(found, state(1))


def test_a_state_that_was_stored_again_is_used(tmp_path):
    stored(tmp_path)
    assert_same(load_state(tmp_path, IDENTITY, network=state(1).network), state(2))


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
@pytest.mark.filterwarnings("ignore:.*is damaged")
def test_links_are_not_followed(tmp_path):
    folder, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    path = save_state(elsewhere, state(1), IDENTITY)
    (folder / path.name).symlink_to(path)
    with pytest.raises(ValueError, match="none of the 1 states"):
        load_state(folder, IDENTITY)
    (tmp_path / "link").symlink_to(elsewhere)
    assert load_state(tmp_path / "link", IDENTITY) is None


@pytest.mark.filterwarnings("ignore:.*is damaged")
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_damage_is_noticed(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    path = save_state(folder, state(1), IDENTITY)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    path.write_bytes(bytes(content))
    with contextlib.suppress(ValueError):
        assert_same(load_state(folder, IDENTITY), state(1))


# Periods from a file


def test_a_period_survives_json():
    assert Period.from_json(json.loads(json.dumps(asdict(PERIOD)))) == PERIOD


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round": None}, "round must be a whole number"),
        ({"steps": True}, "steps must be a whole number"),
        ({"images": -1}, "images must be a whole number"),
        ({"loss_last": "low"}, "loss_last must be a number"),
        ({"nmi": [1]}, "nmi must be a number"),
        ({"seconds": 3.0}, "seconds must be an object"),
        ({"seconds": {"train": None}}, "train must be a finite number"),
        ({"colour": "red"}, "unknown entries: colour"),
    ],
)
def test_a_damaged_period_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Period.from_json(asdict(PERIOD) | changes)


@pytest.mark.parametrize("value", [None, 3, "text", []])
def test_a_period_that_is_no_object_is_refused(value):
    with pytest.raises(ValueError, match="a period must be an object"):
        Period.from_json(value)
