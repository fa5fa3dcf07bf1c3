"""What edits ask of another run: never a contradiction, and what was said last counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.corrections import Edit, Picture, PictureIndex
from jule.corrections.constraints import constraints_from
from jule.forward.constraints import ContradictionError
from tests.corrections.made import editor_of
from tests.corrections.test_properties import step, take

A, B, C, D, E, F = (Picture(name) for name in "abcdef")


def found(*edits):
    constraints = constraints_from(edits, PictureIndex("abcdef"), np.arange(6))
    return constraints.units.tolist(), constraints.apart.tolist()


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 50), st.lists(step, max_size=25))
def test_edits_of_one_run_never_contradict_each_other(seed, steps):
    editor = editor_of(seed)
    for one in steps:
        take(editor, *one)
    base, state = editor.base, editor.state
    constraints = constraints_from(editor.log.in_effect, base.pictures, base.first_copies)
    assert not constraints.broken_by(constraints.units).any()
    for unit in np.unique(state.units):  # must-links and copies are kept as they are
        inside = np.flatnonzero(state.units == unit)
        assert len(set(constraints.units[inside].tolist())) == 1
    for one, other in state.apart:
        assert constraints.units[one] != constraints.units[other]


def test_pictures_that_stand_for_a_cluster_stay_together_and_names_keep_apart():
    units, apart = found(Edit("name", (A, B), name="x"), Edit("name", (C, D), name="y"))
    assert units == [0, 0, 2, 2, 4, 5]
    assert len(apart) == 1
    assert {units[sample] for sample in apart[0]} == {0, 2}


def test_what_was_moved_no_longer_stands_for_its_old_cluster():
    units, _ = found(
        Edit("name", (A, B), name="x"), Edit("name", (C, D), name="y"), Edit("move", (B,), (C,))
    )
    assert units == [0, 1, 1, 1, 4, 5]


def test_what_a_link_has_moved_does_not_join_two_names():
    units, apart = found(
        Edit("name", (A, B), name="x"),
        Edit("name", (C, D), name="y"),
        Edit("must-link", (A, C)),
    )
    assert units == [0, 1, 0, 3, 4, 5]
    assert apart == [[3, 1]]
    units, apart = found(Edit("name", (A, B, C), name="x"), Edit("cannot-link", (A,), (B,)))
    assert units == [0, 1, 0, 3, 4, 5]
    assert apart == [[0, 1]]


def test_of_two_moves_the_last_counts_and_the_shelf_undoes_them():
    units, _ = found(Edit("move", (A,), (B,)), Edit("move", (A,), (C,)))
    assert units == [0, 1, 0, 3, 4, 5]
    units, _ = found(Edit("move", (A,), (B,)), Edit("shelve", (A,)))
    assert units == [0, 1, 2, 3, 4, 5]


def test_a_merge_after_a_split_counts_and_a_new_name_replaces_the_old_one():
    units, apart = found(Edit("split", (A,), (B,)), Edit("merge", (A,), (B,)))
    assert (units[:2], apart) == ([0, 0], [])
    units, apart = found(Edit("name", (A,), name="x"), Edit("name", (B,), name="y", was="x"))
    assert apart == []


def test_a_cannot_link_is_stronger_than_any_cluster():
    units, apart = found(Edit("cannot-link", (A,), (B,)), Edit("merge", (A, C), (B, D)))
    assert units[0] != units[1]
    assert apart == [[0, 1]]


def test_contradictions_are_noticed():
    with pytest.raises(ContradictionError, match="samples 0 and 2"):
        found(Edit("must-link", (A, B)), Edit("must-link", (B, C)), Edit("cannot-link", (A,), (C,)))


def test_pictures_that_are_gone_ask_nothing():
    gone = Picture("gone")
    assert found(Edit("merge", (gone,), (A,)), Edit("must-link", (gone, B))) == found()
