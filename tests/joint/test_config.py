"""Settings: checked when made, and the same after JSON."""

import json
from dataclasses import fields

import pytest

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
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be 1 or more"),
        ({"n_clusters": -3}, "n_clusters must be 1 or more"),
        ({"rounds": 0}, "rounds must be 1 or more"),
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
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Config(**settings)


def test_unknown_presets_are_refused():
    with pytest.raises(ValueError, match="choose 'default' or 'paper'"):
        preset("fast")
