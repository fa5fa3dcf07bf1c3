"""Joint learning by several processes, all of which get the result."""

import numpy as np
import pytest

import jule.forward.exact
from jule.backward.embedder import get_weights
from jule.images import load_dataset
from jule.joint import Config, finish, init_network
from jule.joint.sharing import learn_together
from jule.ranks import ALONE, LostRankError
from tests.made_ranks import together

CONFIG = Config(n_clusters=5, rounds=2, n_periods=2, ensemble=2, min_images=300, max_epochs=1.0)


@pytest.fixture
def images(monkeypatch):
    monkeypatch.setattr(jule.forward.exact, "BLOCK", 64)
    monkeypatch.setattr(jule.forward.exact, "WIDTH", 128)
    data = load_dataset("digits")
    return data.images[data.labels < 5][:150]


def test_every_process_gets_the_whole_result(images):
    def work(ranks):
        embedder = init_network(images, CONFIG)
        state = learn_together(ranks, images, embedder, CONFIG)
        return state, finish(state, CONFIG), get_weights(embedder)

    (first, result, weights), *others = together(2, work)
    alone = work(ALONE)[0]
    assert len(first.history) == len(alone.history) == 9  # 2 networks x 2 x 2, and both together
    np.testing.assert_array_equal(
        first.inputs.neighbors.distances, alone.inputs.neighbors.distances
    )  # fmt: skip
    assert first.history[0].loss_first == pytest.approx(alone.history[0].loss_first, 1e-3)
    for state, their_result, their_weights in others:
        assert state.history == first.history
        for name in ("labels", "labels_sf", "labels_rc", "confidence", "embedding"):
            np.testing.assert_array_equal(getattr(their_result, name), getattr(result, name))
        np.testing.assert_array_equal(their_result.tree.merges, result.tree.merges)
        for name, value in weights.items():
            np.testing.assert_array_equal(their_weights[name], value)


def test_an_error_of_the_first_process_ends_the_others(images):
    errors = {}

    def work(ranks):
        try:
            embedder = init_network(images, CONFIG)
            learn_together(ranks, images[:1], embedder, CONFIG)  # too few to be clustered
        except Exception as error:
            errors[ranks.rank] = error

    together(2, work)
    assert isinstance(errors[1], LostRankError)
    assert "at least 2 samples" in str(errors[0])
