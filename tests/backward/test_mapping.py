"""Maps: clusters apart, neighbours together, the same network from its weights."""

import numpy as np
import pytest
import torch

from jule.backward import TrainingFailedError
from jule.backward.mapper import Mapper, build_mapper, place
from jule.backward.mapping import train_map
from jule.backward.settings import MapTraining
from jule.forward import nearest_neighbors


def curves(n=90):
    """Three bent lines in eight dimensions, the lines, and the places on them."""
    rng = np.random.default_rng(0)
    line, along = np.arange(n) % 3, rng.uniform(0, 1, n)
    axes = rng.normal(size=(3, 3, 8))
    bent = np.stack([np.ones(n), along, along**2], axis=1)
    points = np.einsum("na,nad->nd", bent * [3.0, 2.0, 2.0], axes[line])
    return points.astype(np.float32), line, along


def learned(points, lines, n_steps=150, **settings):
    near = nearest_neighbors(points, 6).indices
    mapper = build_mapper(points, 2)
    stages = [np.arange(len(points)) // 2, lines]
    losses = train_map(
        mapper, points, stages, near, n_steps=n_steps, settings=MapTraining(**settings)
    )
    return mapper, losses


def spread_along(positions, lines, along):
    """How well positions keep the order on each line: mean distance of the next, in ranks."""
    gaps = []
    for line in np.unique(lines):
        order = np.argsort(along[lines == line])
        at = positions[lines == line][order]
        apart = np.linalg.norm(at[:, None] - at[None], axis=2)
        gaps += [(apart[i] < apart[i, i + 1]).sum() for i in range(len(at) - 1)]
    return np.mean(gaps)


def test_a_map_keeps_clusters_apart_and_the_order_within_them():
    points, lines, along = curves()
    mapper, losses = learned(points, lines)
    positions = place(mapper, points)
    assert positions.shape == (90, 2)
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
    nearest = nearest_neighbors(positions, 1).indices.ravel()
    assert (lines[nearest] == lines).mean() > 0.95
    plain = place(learned(points, lines, within=0.0)[0], points)
    assert spread_along(positions, lines, along) < spread_along(plain, lines, along)


def test_the_same_seed_gives_the_same_map():
    points, lines, _ = curves(30)
    first, second = (place(learned(points, lines, 5)[0], points) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_new_samples_are_placed_alone_as_among_others():
    points, lines, _ = curves()
    mapper, _ = learned(points, lines, 20)
    alone = np.concatenate([place(mapper, points[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(alone, place(mapper, points)[:5], atol=1e-4)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("within", [0.0, 1.0])
def test_few_samples_can_be_mapped(n, within):
    points = np.eye(n, 4, dtype=np.float32)
    near = nearest_neighbors(points, 1).indices
    stages = [np.arange(n), np.zeros(n, int)]
    mapper = build_mapper(points, 2)
    settings = MapTraining(within=within)
    assert len(train_map(mapper, points, stages, near, n_steps=3, settings=settings)) == 3
    assert np.isfinite(place(mapper, points)).all()


def test_more_stages_than_steps_are_allowed():
    points = np.random.default_rng(0).normal(size=(20, 3))
    near = nearest_neighbors(points, 2).indices
    stages = [np.arange(20) // size for size in range(1, 11)]
    assert len(train_map(build_mapper(points, 2), points, stages, near, n_steps=3)) == 3


def test_a_loss_that_is_not_finite_stops_the_training():
    points = np.random.default_rng(0).normal(size=(20, 3))
    near = nearest_neighbors(points, 2).indices
    mapper = build_mapper(points, 2)
    with torch.no_grad():
        mapper.layers[-1].weight.fill_(torch.nan)
    with pytest.raises(TrainingFailedError, match="loss of the map became nan"):
        train_map(mapper, points, [np.arange(20) // 2], near, n_steps=3)


# Weights


def test_a_map_is_built_again_from_its_weights():
    points, lines, _ = curves()
    mapper, _ = learned(points, lines, 5)
    again = Mapper.from_weights(mapper.weights())
    assert again.shape == (8, 2)
    np.testing.assert_array_equal(place(again, points), place(mapper, points))


def damaged(name, change):
    weights = Mapper(4, 2, hidden=3).weights()
    weights[name] = change(weights[name])
    return weights


@pytest.mark.parametrize(
    "weights",
    [
        {},
        {"layers.0.weight": np.zeros(3)},
        damaged("layers.6.bias", lambda x: x[:1]),
        damaged("layers.0.weight", lambda x: x * np.nan),
        damaged("std", lambda x: x * 0),
        {**Mapper(4, 2, hidden=3).weights(), "more": np.zeros(1)},
    ],
)
def test_other_weights_are_refused(weights):
    with pytest.raises(ValueError, match="its weights are not"):
        Mapper.from_weights(weights)
