"""Sparse tables for the kernels: every row is a small hash map from a number to two numbers.

All rows of a table lie in one array of entries. The record that owns a row says where it starts,
how many places it has and how many are used (`start`, `places`, `used`). A key is searched from
its home place on, going round at the end of the row, until it or an empty place is found.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Division by zero does not happen in the kernels; without its error path they are smaller.
kernel = njit(cache=True, error_model="numpy")
inner_kernel = njit(cache=True, error_model="numpy", forceinline=True)
parallel_kernel = njit(cache=True, error_model="numpy", parallel=True)

NO_KEY = -1


def record(*fields: tuple[str, str]) -> np.dtype:
    """Make the type of a record whose fields are attributes, compiled or not.

    Uncompiled, a name that every numpy scalar has (size, sum, ...) cannot be a field's.
    """
    return np.dtype((np.record, np.dtype(list(fields), align=True)))


ENTRY = record(("key", "i4"), ("first", "f8"), ("second", "f8"))


@inner_kernel
def home(key, places):
    """Say where the search for a key begins: the high bits of a multiplicative hash."""
    return (np.int64(key) * 2654435769 & 0xFFFFFFFF) * np.int64(places) >> 32


@inner_kernel
def find(entries, row, key):
    """Give the place of a key in a row, or -1."""
    start, places = row.start, np.int64(row.places)
    if places == 0:
        return np.int64(-1)
    at = home(key, places)
    while True:
        found = entries[start + at].key
        if found == key:
            return start + at
        if found == NO_KEY:
            return np.int64(-1)
        at = _after(at, places)


@inner_kernel
def add(entries, row, key, first, second):
    """Add two numbers to those of a key in a row that has room for it."""
    start, places = row.start, np.int64(row.places)
    at = home(key, places)
    while True:
        entry = entries[start + at]
        if entry.key == key:
            entry.first += first
            entry.second += second
            return
        if entry.key == NO_KEY:
            entry.key = key
            entry.first = first
            entry.second = second
            row.used += 1
            return
        at = _after(at, places)


@inner_kernel
def remove_at(entries, row, place):
    """Empty a place and pull the keys behind it forward, so that every search still ends right."""
    start, places = row.start, np.int64(row.places)
    row.used -= 1
    gap = place - start
    at = gap
    entries[place].key = NO_KEY
    while True:
        at = _after(at, places)
        entry = entries[start + at]
        if entry.key == NO_KEY:
            return
        # It may stay where it is if its home lies, going round, behind the gap.
        if _steps(home(entry.key, places), at, places) >= _steps(gap, at, places):
            hole = entries[start + gap]
            hole.key = entry.key
            hole.first = entry.first
            hole.second = entry.second
            entry.key = NO_KEY
            gap = at


@inner_kernel
def _after(at, places):
    return at + 1 if at + 1 < places else np.int64(0)


@inner_kernel
def _steps(start, stop, places):
    """Count the steps from one place of a row to another, going round."""
    return stop - start if stop >= start else stop - start + places


@inner_kernel
def places_for(keys):
    """Give the number of places for so many keys: two in five of them empty, and one at least."""
    return np.int64(keys) * 5 // 3 + 1


@inner_kernel
def places_with_spare(keys):
    """Give the number of places for a row that has outgrown its own, so that it seldom does."""
    return places_for(keys + keys // 2 + 1)


@kernel
def clear(entries, start, stop):
    for place in range(start, stop):
        entries[place].key = NO_KEY


@kernel
def make_room(entries, row, counts, more):
    """Make room for more keys in a row, at the end of an array that is long enough."""
    if places_for(row.used + more) <= row.places:
        return
    wanted = places_with_spare(row.used + more)
    old_start, old_stop = row.start, row.start + row.places
    row.start = counts[1]
    row.places = wanted
    row.used = 0
    counts[1] += wanted
    clear(entries, row.start, counts[1])
    for place in range(old_start, old_stop):
        entry = entries[place]
        if entry.key != NO_KEY:
            add(entries, row, entry.key, entry.first, entry.second)


@kernel
def move_rows(entries, larger, rows, counts):
    """Copy the rows in use into a larger array."""
    end = np.int64(0)
    for r in range(rows.shape[0]):
        row = rows[r]
        for offset in range(row.places):
            larger[end + offset] = entries[row.start + offset]
        row.start = end
        end += row.places
    counts[1] = end
