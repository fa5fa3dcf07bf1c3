"""A short run of joint learning on real digits, which tests of several experiments share."""

import shutil
from dataclasses import replace

import pytest

from jule.images import load_dataset
from jule.joint.config import Config
from jule.paper import learned
from jule.paper.joint import learn

QUICK = Config(n_clusters=10, rounds=1, n_periods=2, min_images=500, epochs=0.1)


@pytest.fixture(scope="session")
def learned_digits(tmp_path_factory):
    """The folder of a finished run, as experiments keep it."""
    folder = tmp_path_factory.mktemp("runs") / "learned-digits-0"
    learn(load_dataset("digits"), QUICK, folder)
    return folder


@pytest.fixture
def runs(learned_digits, tmp_path, monkeypatch):
    """A folder of runs that has the one on digits; further ones are short, too."""
    monkeypatch.setattr(learned, "config_for", lambda cell, _k: replace(QUICK, seed=cell.seed))
    shutil.copytree(learned_digits, tmp_path / "runs" / learned_digits.name)
    return tmp_path / "runs"
