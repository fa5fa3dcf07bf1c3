"""Which methods there are, which run unasked, and how an estimator is made."""

import numpy as np

from jule.baselines import METHODS
from jule.comparison.methods import (
    MOST_SAMPLES,
    MOST_VALUES,
    choose_quick,
    fit_values,
    is_random,
    known_methods,
    make_estimator,
)
from tests.comparison.made import Dice, Halves, OwnNumber, Positive


def test_all_methods_of_the_paper_are_known():
    assert set(METHODS) <= set(known_methods())


def test_every_limit_is_that_of_a_method_with_a_name():
    known = known_methods()
    assert (MOST_SAMPLES.keys() | MOST_VALUES.keys()) <= known.keys()
    for name, most in MOST_SAMPLES.items():
        assert name in choose_quick(known, most + 1, 1)[1]
    for name, most in MOST_VALUES.items():
        assert name in choose_quick(known, 10, most // 10)[0]
        assert name in choose_quick(known, 10, most // 10 + 1)[1]


def test_slow_methods_are_left_out_of_many_samples():
    known = {"quick": Halves, "AC-Link": Halves, "DEC": Halves}
    assert choose_quick(known, 100, 2) == (["quick", "AC-Link"], ["DEC"])
    assert choose_quick(known, 10**6, 2) == (["quick"], ["AC-Link", "DEC"])


def test_an_estimator_is_given_only_what_it_takes():
    assert make_estimator(Dice, 3, 7).random_state == 7
    assert make_estimator(Halves, 3, 7).n_clusters == 3
    assert isinstance(make_estimator(OwnNumber, 3, 7), OwnNumber)
    assert (is_random(Dice), is_random(Halves)) == (True, False)


def test_negative_values_are_shifted_only_for_methods_that_refuse_them():
    vectors = np.array([[-1.0, 2.0], [1.0, 5.0]])
    assert fit_values(Halves, vectors) is vectors
    assert fit_values(Positive, vectors).tolist() == [[0.0, 0.0], [2.0, 3.0]]
    assert fit_values(Positive, vectors + 1).tolist() == [[0.0, 3.0], [2.0, 6.0]]
