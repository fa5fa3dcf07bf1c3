"""The estimate of what a run will need."""

from dataclasses import replace

import pytest

from jule.joint import Config, preset
from jule.runs.cost import GRAPH_BYTES, estimate_cost, products_per_second

CONFIG = Config(n_clusters=10)


@pytest.fixture(scope="module", autouse=True)
def _speed():
    """Measure the speed of this machine once: its load may change between two estimates."""
    rate = products_per_second()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jule.runs.cost.products_per_second", lambda: rate)
        yield


def test_more_images_take_longer_and_more_memory():
    few, many = (estimate_cost(n, (28, 28), CONFIG) for n in (1_000, 1_000_000))
    assert 0 < few.seconds < many.seconds
    assert many.memory - few.memory == (4 * 28 * 28 + GRAPH_BYTES) * (1_000_000 - 1_000)


def test_approximate_neighbours_take_less_time_with_many_images():
    exact, approximate = (
        estimate_cost(1_000_000, (28, 28), replace(CONFIG, neighbors=how)).seconds
        for how in ("exact", "approximate")
    )
    assert approximate < exact / 3


def test_colour_counts_in_memory():
    grey, colour = (estimate_cost(10_000, shape, CONFIG) for shape in ((32, 32), (32, 32, 3)))
    assert colour.memory - grey.memory == 4 * 10_000 * 32 * 32 * 2


def test_photographs_are_encoded_first():
    """The memory is that of `benchmarks.many_photos`, 1.6 GB, or a little more."""
    config = preset("default", of="encoded", n_clusters=50)
    few, many = (estimate_cost(n, (224, 224, 3), config, encoded=True) for n in (500, 50_000))
    assert few.seconds < many.seconds
    assert 1.6e9 < many.memory < 2e9


def test_one_cluster_needs_no_training():
    one, ten = (estimate_cost(1_000, (32, 32), Config(n_clusters=k)) for k in (1, 10))
    assert one.seconds < ten.seconds / 5


def test_an_ensemble_takes_as_many_times_as_long():
    one, three = (estimate_cost(2_000, (28, 28), Config(n_clusters=10, ensemble=n)) for n in (1, 3))
    assert 2.5 < three.seconds / one.seconds < 4
    large = Config(n_clusters=10, ensemble=10)
    assert estimate_cost(2_000, (28, 28), large).memory > one.memory


def test_vectors_have_an_estimate_too():
    assert estimate_cost(1_000, (7,), CONFIG).seconds > 0
