"""No sequence of edits loses a picture, breaks a constraint or gives two clusters one name."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.corrections import Edit, EditError, replay
from jule.corrections.apply import SHELF
from jule.runs.corrected import log_bytes, parse_log
from tests.corrections.made import base_of, editor_of

number = st.integers(0, 10**6)
step = st.tuples(
    st.sampled_from(
        [
            "name", "move", "new", "split", "merge", "refuse", "must", "cannot", "shelve", "undo",
            "redo", "unlink",
        ]
    ),
    number,
    number,
    st.sampled_from(["", "cats", "dogs", "birds"]),
)  # fmt: skip


def wanted(editor, kind, a, b, name):
    """The edit that a step asks for, with its numbers folded into what there is."""
    labels, n = editor.state.numbers, len(editor.state.labels)
    one, other = int(labels[a % len(labels)]), int(labels[b % len(labels)])
    i, j = a % n, b % n
    make = {
        "name": lambda: editor.name(one, name),
        "move": lambda: editor.move([i, (i + 3) % n], other),
        "new": lambda: editor.move([i, j], None),
        "split": lambda: editor.split(one),
        "merge": lambda: editor.merge(one, other),
        "refuse": lambda: editor.refuse(one, other),
        "must": lambda: editor.must_link([i, j]),
        "cannot": lambda: editor.cannot_link([i], [j]),
        "shelve": lambda: editor.shelve([i]),
        "unlink": lambda: unlink(editor, a),
    }
    return make[kind]()


def unlink(editor, a):
    """The edit that removes one of the links."""
    links = editor.state.links
    if not links:
        raise EditError("there are no links")
    link = links[a % len(links)]
    return Edit("unlink", link.pictures, link.others, run=editor.base.run)


def take(editor, kind, a, b, name):
    """Take a step if it is possible; return whether it was."""
    if (kind == "undo" and editor.log.done == 0) or (
        kind == "redo" and editor.log.done == len(editor.log.edits)
    ):
        return False
    try:
        if kind in ("undo", "redo"):
            getattr(editor, kind)()
        else:
            editor.add(wanted(editor, kind, a, b, name))
    except EditError:
        return False
    return True


def check_sound(base, state):
    """What must be true of every clustering, whatever was edited."""
    assert state.labels.shape == base.labels.shape
    assert (state.labels >= SHELF).all()
    assert (state.labels < state.next_label).all()
    np.testing.assert_array_equal(state.labels[state.units], state.labels)
    np.testing.assert_array_equal(state.labels[base.first_copies], state.labels)
    for one, other in state.apart:
        assert state.labels[one] != state.labels[other] or state.labels[one] == SHELF
    names = list(state.names.values())
    assert len(set(names)) == len(names)
    assert set(state.names) <= set(state.numbers.tolist())
    numbered, names = state.numbered()
    assert np.unique(numbered).tolist() == list(range(numbered.max() + 1))
    assert set(names) <= set(numbered.tolist())


def same(one, other):
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.by_hand, other.by_hand)
    np.testing.assert_array_equal(one.units, other.units)
    return (dict(one.names), one.apart, one.next_label) == (
        dict(other.names), other.apart, other.next_label,
    )  # fmt: skip


@settings(deadline=None, max_examples=120)
@given(st.integers(0, 50), st.lists(step, max_size=25))
def test_any_sequence_of_edits_is_sound_and_the_same_when_read_again(seed, steps):
    editor = editor_of(seed)
    for one in steps:
        before = editor.state
        if not take(editor, *one):
            assert editor.state is before  # a refused edit changes nothing
        check_sound(editor.base, editor.state)
    log = parse_log(log_bytes(editor.log))
    assert log == editor.log
    again, ignored = replay(editor.base, log.in_effect)
    assert ignored == ()
    assert same(again, editor.state)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 50), st.lists(step, max_size=12), step)
def test_undo_is_the_inverse_of_an_edit_and_redo_of_undo(seed, steps, last):
    editor = editor_of(seed)
    for one in steps:
        take(editor, *one)
    before = editor.state
    if last[0] in ("undo", "redo") or not take(editor, *last):
        return
    after = editor.state
    editor.undo()
    assert same(editor.state, before)
    editor.redo()
    assert same(editor.state, after)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 50), st.lists(step, max_size=20), st.integers(0, 50), st.integers(2, 9))
def test_edits_are_sound_on_another_run_with_pictures_gone_and_added(seed, steps, other, k):
    editor = editor_of(seed)
    for one in steps:
        take(editor, *one)
    rng = np.random.default_rng(other)
    ids = np.concatenate([rng.permutation(22)[:18], 100 + np.arange(12)])
    base = base_of(other, n=30, k=k, ids=ids, run="other", copies=False)
    state, ignored = replay(base, editor.log.in_effect)
    check_sound(base, state)
    assert len(ignored) <= editor.log.done
    # What the other run can know of a must-link or a cannot-link, it keeps.
    for link in state.links:
        found = base.pictures.find_all(link.pictures)
        if link.kind == "must-link":
            assert len(set(state.units[found].tolist())) == 1
