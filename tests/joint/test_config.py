"""Settings: checked when made, and the same after JSON."""

import contextlib
import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.backward import Training
from jule.joint import Config, preset


def test_the_paper_preset_trains_as_the_authors_did():
    config = preset("paper", n_clusters=10)
    assert (config.eta, config.epochs, config.batches, config.batch_size) == (
        0.9,
        20.0,
        "random",
        100,
    )
    assert (config.n_neighbors, config.a, config.n_near, config.lam) == (20, 1.0, 5, 1.0)
    assert (config.gamma, config.margin, config.negatives, config.n_negatives) == (
        1.0,
        0.2,
        "random",
        20,
    )
    assert (config.rounds, config.augment, config.max_side) == (1, False, None)


def test_steps_follow_the_epochs_between_both_bounds():
    config = Config(epochs=4, min_images=20_000, max_images=100_000, batch_size=100)
    assert config.steps_per_period(10_000) == 400
    assert config.steps_per_period(575) == 200
    assert config.steps_per_period(70_000) == 1000
    assert config.steps_per_period(200_000) == 2000  # never less than one epoch


def test_settings_survive_json():
    config = preset("paper", n_clusters=7, seed=3)
    assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="unknown settings: temperature"):
        Config.from_json({"temperature": 1})


def test_every_training_setting_comes_from_the_config():
    names = {field.name for field in fields(Training)}
    assert names - {"warp"} <= {field.name for field in fields(Config)}
    assert Config(momentum=0.5).training().momentum == 0.5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be 1 or more"),
        ({"n_clusters": -3}, "n_clusters must be 1 or more"),
        ({"rounds": 0}, "rounds must be 1 or more"),
        ({"ensemble": 0}, "ensemble must be 1 or more"),
        ({"ensemble": 101}, "at most 100"),
        ({"ensemble": 2.0}, "ensemble must be a whole number"),
        ({"ends_at": 0.5}, "ends_at must be 1 or more and finite, got 0.5"),
        ({"ends_at": float("inf")}, "ends_at must be 1 or more and finite"),
        ({"eta": 0.0}, "eta must be above 0 and at most 1"),
        ({"eta": 1.5}, "eta must be above 0 and at most 1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive"),
        ({"margin": -0.1}, "margin must be 0 or more"),
        ({"batch_size": 1}, "batch_size must be 2 or more"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"negatives": "hardest"}, "choose one of random, nearest"),
        ({"preparation": "whiten"}, "choose one of l2, center-l2, none"),
        ({"init": "ward"}, "choose one of nearest, kmeans"),
        ({"max_side": 0}, "max_side must be 1 or more"),
    ],
)
def test_bad_settings_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Config(**values)


def test_unknown_presets_are_refused():
    with pytest.raises(ValueError, match="choose 'default' or 'paper'"):
        preset("fast")


# Values of other types, as in a damaged file

WRONG = {
    "bool": ["yes", 1, 0.0, None, [True], {}],
    "int": [True, 2.0, "3", float("nan"), [1], {}, 10**30, -(10**30)],
    "float": [True, "0.5", [0.5], {}, float("nan"), float("inf"), -float("inf"), 10**400],
    "str": [3, True, ["l2"], {}, "none of these"],
}


def kind_of(field):
    kind = field.type.partition(" | ")[0]
    return kind if kind in WRONG else "str"


@pytest.mark.parametrize("field", fields(Config), ids=lambda field: field.name)
def test_values_of_other_types_are_refused_by_name(field):
    for value in WRONG[kind_of(field)]:
        if field.name == "network" and isinstance(value, str):
            continue  # any name; the networks are known only to jule.backward
        with pytest.raises(ValueError, match=field.name):
            Config.from_json({field.name: value})
    if "None" not in field.type:
        with pytest.raises(ValueError, match=field.name):
            Config.from_json({field.name: None})


@pytest.mark.parametrize("value", [None, 3, "text", [], [["seed", 1]], True, float("nan")])
def test_settings_that_are_no_object_are_refused(value):
    with pytest.raises(ValueError, match="settings must be an object"):
        Config.from_json(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    values=st.dictionaries(
        st.sampled_from([field.name for field in fields(Config)]) | st.text(), json_values
    )
)
@settings(max_examples=300, deadline=None)
def test_any_json_is_a_config_or_a_value_error(values):
    with contextlib.suppress(ValueError):
        config = Config.from_json(values)
        assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_settings_nested_too_deeply_are_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="seed must be a whole number"):
        Config.from_json({"seed": deep})


def test_numbers_of_numpy_are_stored_as_numbers():
    config = Config(n_clusters=np.int64(3), epochs=np.float32(2.5), augment=np.bool_(True))
    assert json.loads(json.dumps(config.to_json())) == config.to_json()


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_epochs_without_end_are_refused(value):
    with pytest.raises(ValueError, match=r"^epochs must be positive and finite, got"):
        preset(epochs=value)


def test_vectors_are_trained_gently():
    config = preset("default", of="encoded", n_clusters=7)
    assert (config.network, config.rounds, config.n_clusters) == ("residual", 1, 7)
    assert config.steps_per_period(80) == 2
    assert preset("default", of="vectors", rounds=3).rounds == 3
    assert preset("paper", of="vectors") == preset("paper")


@pytest.mark.parametrize(("n", "images"), [(2, 200), (80, 8000), (239, 23_900), (575, 24_000)])
def test_few_images_are_not_seen_hundreds_of_times(n, images):
    assert Config(batch_size=2).steps_per_period(n) == images // 2
