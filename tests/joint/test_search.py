"""Whether neighbours are searched exactly or approximately."""

import pytest

from jule.joint import Config
from jule.joint.clustering import MOST_EXACT, search_method
from jule.joint.state import Period


def test_exact_up_to_a_size_and_approximate_beyond():
    assert search_method(MOST_EXACT, Config()) == "exact"
    assert search_method(MOST_EXACT + 1, Config()) == "approximate"
    assert search_method(MOST_EXACT + 1, Config(neighbors="exact")) == "exact"
    assert search_method(2, Config(neighbors="approximate")) == "approximate"


def test_another_search_is_refused():
    with pytest.raises(ValueError, match=r"unknown neighbors 'fast': choose one of auto, exact"):
        Config(neighbors="fast")


def test_older_histories_were_searched_exactly():
    names = ("round", "number", "clusters_before", "clusters_after", "steps", "images")
    period = {**dict.fromkeys(names, 1), "seconds": {}}
    assert Period.from_json(period).recall == 1.0
    assert Period.from_json({**period, "recall": 0.97}).recall == 0.97
