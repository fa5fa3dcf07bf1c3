"""The rows of hash tables against dictionaries, with keys that collide and rows nearly full."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward import tables
from jule.forward.linkage_state import CLUSTER, SAMPLE
from jule.forward.tables import ENTRY, NO_KEY, capacity_with_spare
from jule.forward.tables import add as add_to_key
from jule.forward.tables import capacity_for as least_capacity
from jule.forward.tables import find as find_key
from jule.forward.tables import remove_at as remove
from jule.forward.tables import reserve as reserve_more
from jule.jit import njit

# The inner kernels, compiled afresh for arrays of rows.


@njit(error_model="numpy")
def find(entries, rows, r, key):
    return find_key(entries, rows[r], key)


@njit(error_model="numpy")
def add(entries, rows, r, key, first, second):
    add_to_key(entries, rows[r], key, first, second)


@njit(error_model="numpy")
def remove_at(entries, rows, r, place):
    remove(entries, rows[r], place)


@njit(error_model="numpy")
def reserve(entries, rows, r, counts, more):
    reserve_more(entries, rows[r], counts, more)


@njit(error_model="numpy")
def capacity_for(keys):
    return least_capacity(keys), capacity_with_spare(keys)


def home(key, places):
    """Where the search for a key begins, in Python's whole numbers."""
    return (key * 2654435769 % 2**32) * places // 2**32


def keys_at(places, place, count):
    """The first keys whose home is the given place."""
    return [key for key in range(100 * places) if home(key, places) == place][:count]


class Table:
    """A table of the kernels, and the dictionaries that it should be equal to."""

    def __init__(self, places, record=CLUSTER):
        self.rows = np.zeros(len(places), record)
        self.rows["capacity"] = places
        self.rows["start"] = np.cumsum([0, *places[:-1]])
        self.counts = np.array([0, sum(places)])
        self.entries = np.zeros(sum(places), ENTRY)
        tables.clear(self.entries, 0, len(self.entries))
        self.expected = [{} for _ in places]

    def has_room(self, r, key):
        return key in self.expected[r] or self.rows[r]["used"] < self.rows[r]["capacity"] - 1

    def add(self, r, key, first, second):
        add(self.entries, self.rows, r, key, first, second)
        old = self.expected[r].get(key, (0.0, 0.0))
        self.expected[r][key] = (old[0] + first, old[1] + second)

    def remove(self, r, key):
        remove_at(self.entries, self.rows, r, find(self.entries, self.rows, r, key))
        del self.expected[r][key]

    def reserve(self, r, more):
        """As merging does it: all rows move to a larger array when the end is reached."""
        needed = self.counts[1] + capacity_for(self.rows[r]["used"] + more)[1]
        if needed > len(self.entries):
            self.move(needed)
        reserve(self.entries, self.rows, r, self.counts, more)

    def move(self, length):
        larger = np.full(length, 77, ENTRY)
        tables.copy_rows(self.entries, larger, self.rows, self.counts)
        self.entries = larger

    def contents(self, r):
        start, places = self.rows[r]["start"], self.rows[r]["capacity"]
        row = self.entries[start : start + places]
        return sorted(row[row["key"] != NO_KEY].tolist())

    def check(self, keys):
        for r, expected in enumerate(self.expected):
            assert self.rows[r]["used"] == len(expected)
            assert self.contents(r) == sorted((key, *two) for key, two in expected.items())
            for key in keys:
                place = find(self.entries, self.rows, r, key)
                if key not in expected:
                    assert place == -1
                    continue
                entry = self.entries[place]
                assert entry["key"] == key
                assert (entry["first"], entry["second"]) == expected[key]


def steps(keys, names):
    """Sequences of steps: what, in which of three rows, with which key, with what values."""
    number = st.integers(-8, 8).map(float)
    step = st.tuples(
        st.sampled_from(names), st.integers(0, 2), st.sampled_from(keys), number, number
    )
    return st.lists(step, max_size=60)


# Keys of one home, of the homes beside it, of the last place (whose searches go round), and any.
ROW = 7
KEYS = [*keys_at(ROW, 3, 4), *keys_at(ROW, 4, 2), *keys_at(ROW, 6, 4), *keys_at(ROW, 0, 2)]
MANY = [*range(12), 1000, 2**31 - 1, 2**31 - 2, *keys_at(23, 22, 10)]


@pytest.mark.parametrize("record", [CLUSTER, SAMPLE], ids=["clusters", "samples"])
@given(steps=steps(KEYS, ["add", "add", "remove"]))
@settings(max_examples=50, deadline=None)
def test_rows_of_fixed_size_that_fill_up_with_colliding_keys(record, steps):
    table = Table([ROW, ROW, ROW], record)
    for name, r, key, first, second in steps:
        if name == "add" and table.has_room(r, key):
            table.add(r, key, first, second)
        elif name == "remove" and key in table.expected[r]:
            table.remove(r, key)
        table.check(KEYS)
    assert len(table.entries) == 3 * ROW


@given(
    steps=steps(MANY, ["add", "add", "add", "remove", "room", "move"]),
    places=st.tuples(*[st.sampled_from([0, 1, 2, 5])] * 3),
)
@settings(max_examples=50, deadline=None)
def test_rows_that_grow_and_move(steps, places):
    table = Table(list(places))
    for name, r, key, first, second in steps:
        if name == "add":
            table.reserve(r, 1)
            table.add(r, key, first, second)
        elif name == "remove" and key in table.expected[r]:
            table.remove(r, key)
        elif name == "room":
            table.reserve(r, key % 10)
        elif name == "move":
            table.move(len(table.entries) + key % 10)
        table.check(MANY)


@pytest.mark.parametrize("place", range(ROW))
@pytest.mark.parametrize("gone", range(ROW - 1))
def test_taking_a_key_out_of_a_full_cluster_of_one_home(place, gone):
    keys = keys_at(ROW, place, ROW - 1)
    table = Table([ROW])
    for key in keys:
        table.add(0, key, float(key), 0.5)
    table.remove(0, keys[gone])
    table.check(keys)


@given(order=st.permutations(KEYS), going=st.permutations(KEYS))
@settings(max_examples=50, deadline=None)
def test_a_full_row_is_emptied_in_any_order(order, going):
    table = Table([ROW])
    for key in order[: ROW - 1]:
        table.add(0, key, float(key), 1.0)
    for key in going:
        if key in table.expected[0]:
            table.remove(0, key)
            table.check(KEYS)
    assert table.contents(0) == []


def test_adding_to_a_key_adds_both_numbers_and_uses_no_place():
    table = Table([4])
    table.add(0, 9, 1.0, 10.0)
    table.add(0, 9, 0.5, -4.0)
    assert table.contents(0) == [(9, 1.5, 6.0)]
    assert table.rows[0]["used"] == 1


def test_a_key_that_is_added_again_starts_from_zero():
    table = Table([4])
    table.add(0, 9, 1.0, 10.0)
    table.remove(0, 9)
    table.add(0, 9, 2.0, 3.0)
    assert table.contents(0) == [(9, 2.0, 3.0)]


def test_nothing_is_found_in_a_row_without_places():
    table = Table([0, 3])
    table.add(1, 5, 1.0, 1.0)
    assert find(table.entries, table.rows, 0, 5) == -1


def test_what_goes_on_in_a_row_leaves_its_neighbours_as_they_are():
    table = Table([ROW, ROW, ROW])
    for r in (0, 2):
        for key in keys_at(ROW, 6, ROW - 1):
            table.add(r, key, float(r), float(key))
    before = table.entries.copy(), table.rows.copy()
    for key in keys_at(ROW, 6, ROW - 1):
        table.add(1, key, 1.0, 1.0)
    for key in keys_at(ROW, 6, ROW - 1):
        table.remove(1, key)
    for part in (slice(0, ROW), slice(2 * ROW, 3 * ROW)):
        np.testing.assert_array_equal(table.entries[part], before[0][part])
    np.testing.assert_array_equal(table.rows[[0, 2]], before[1][[0, 2]])


def test_room_that_is_there_already_moves_nothing():
    table = Table([tables.capacity_for(4), 3])
    table.add(0, 1, 1.0, 1.0)
    rows, counts = table.rows.copy(), table.counts.copy()
    reserve(table.entries, table.rows, 0, table.counts, 3)
    np.testing.assert_array_equal(table.rows, rows)
    np.testing.assert_array_equal(table.counts, counts)


def test_a_row_that_outgrows_its_places_goes_to_the_end():
    table = Table([3, 3])
    table.add(0, 1, 1.0, 2.0)
    table.add(0, 2, 3.0, 4.0)
    table.entries = np.concatenate([table.entries, np.zeros(50, ENTRY)])
    reserve(table.entries, table.rows, 0, table.counts, 5)
    assert table.rows[0]["start"] == 6
    assert table.rows[0]["capacity"] >= tables.capacity_for(2 + 5)
    assert table.counts[1] == 6 + table.rows[0]["capacity"]
    table.check(range(10))


def test_moving_rows_closes_the_gaps_between_them():
    table = Table([3, 5, 4])
    for r, key in [(0, 1), (0, 2), (1, 1), (1, 7), (2, 3)]:
        table.add(r, key, float(r), float(key))
    table.entries = np.concatenate([table.entries, np.zeros(100, ENTRY)])
    reserve(table.entries, table.rows, 1, table.counts, 6)
    grown = int(table.rows[1]["capacity"])
    table.move(200)
    assert table.rows["start"].tolist() == [0, 3, 3 + grown]
    assert table.counts[1] == 3 + grown + 4
    table.check(range(10))


def test_there_is_always_an_empty_place():
    for keys in range(2000):
        places, with_spare = capacity_for(keys)
        assert keys < places <= with_spare
        assert 3 * places >= 5 * keys  # two in five are empty
    assert capacity_for(2**30)[0] > 2**30
