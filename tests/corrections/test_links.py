"""Links between pictures: removed, they no longer hold, and nothing moves."""

import numpy as np
import pytest

from jule.corrections import EditError, replay
from jule.corrections.constraints import constraints_from
from tests.corrections.made import base_of, editor_of


def test_a_link_that_is_removed_holds_no_longer_and_moves_nothing():
    editor = editor_of(3)
    before = editor.state
    a, b, c = (int(np.flatnonzero(before.labels == label)[0]) for label in (0, 1, 2))
    editor.add(editor.must_link([a, b]))
    editor.add(editor.must_link([b, c]))
    editor.add(editor.cannot_link([a], [9]))
    with pytest.raises(EditError, match="cannot be kept apart"):
        editor.add(editor.cannot_link([a], [c]))
    labels = editor.state.labels
    editor.add(editor.unlink([b, c]))
    np.testing.assert_array_equal(editor.state.labels, labels)
    units = editor.state.units
    assert units[a] == units[b] != units[c]
    assert editor.state.apart == ((a, 9),)
    editor.add(editor.unlink([a], [9]))
    editor.add(editor.move([9], int(labels[a])))  # which the link had forbidden
    editor.undo()
    assert [link.kind for link in editor.state.links] == ["must-link"]
    with pytest.raises(EditError, match="no link that could be removed"):
        editor.unlink([b, c])


def test_a_new_run_does_not_obey_links_that_were_removed():
    editor = editor_of(1, copies=False)
    editor.add(editor.must_link([0, 5]))
    editor.add(editor.unlink([0, 5]))
    base = base_of(2, run="two", copies=False)
    found = constraints_from(editor.log.in_effect, base.pictures, base.first_copies)
    assert found.units.tolist() == list(range(len(base.labels)))
    state, ignored = replay(base, editor.log.in_effect)
    assert (state.links, ignored) == ((), ())


def test_samples_that_become_a_cluster_are_split_off_if_they_are_a_branch():
    editor = editor_of(4)
    label = int(np.bincount(editor.state.labels).argmax())
    whole = editor.split(label)
    expected = editor_of(4)
    expected.add(whole)
    leaving = np.flatnonzero(expected.state.labels == expected.state.next_label - 1)
    assert editor.split_off(label, leaving) == whole
    inside = np.flatnonzero(editor.state.labels == label)
    scattered = [int(inside[0]), int(inside[-1])]
    kinds = {editor.split_off(label, [one]).kind for one in inside}
    assert "split" in kinds
    assert editor.split_off(label, inside).kind == "move"
    assert editor.split_off(label, scattered).kind in ("move", "split")
