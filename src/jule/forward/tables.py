"""Sparse tables for the kernels: every row is a small hash table from a key to two numbers.

All rows of a table share one array of entries. The record that owns a row stores the first slot of
the row, the number of its slots and how many of them are used (`start`, `capacity`, `used`).
Collisions are resolved by linear probing: a search begins at the home slot of the key and wraps
around at the end of the row, until it finds the key or an empty slot.
"""

from __future__ import annotations

import numpy as np

from jule.jit import njit

# The kernels never divide by zero; the numpy error model omits the checks for it.
kernel = njit(cache=True, error_model="numpy")
inner_kernel = njit(cache=True, error_model="numpy", forceinline=True)
parallel_kernel = njit(cache=True, error_model="numpy", parallel=True)

NO_KEY = -1


def record(*fields: tuple[str, str]) -> np.dtype:
    """Return a record type whose fields are attributes, with and without compilation.

    A field must not be named like an attribute of numpy scalars (size, sum, ...): without
    compilation the attribute would hide it.
    """
    return np.dtype((np.record, np.dtype(list(fields), align=True)))


ENTRY = record(("key", "i4"), ("first", "f8"), ("second", "f8"))


@inner_kernel
def home_slot(key, capacity):
    """Return the slot where the search for a key begins, by multiplicative hashing."""
    return (np.int64(key) * 2654435769 & 0xFFFFFFFF) * np.int64(capacity) >> 32


@inner_kernel
def find(entries, row, key):
    """Return the slot of a key in a row, or -1."""
    start, capacity = row.start, np.int64(row.capacity)
    if capacity == 0:
        return np.int64(-1)
    at = home_slot(key, capacity)
    while True:
        found = entries[start + at].key
        if found == key:
            return start + at
        if found == NO_KEY:
            return np.int64(-1)
        at = _next_slot(at, capacity)


@inner_kernel
def add(entries, row, key, first, second):
    """Add two numbers to those of a key; the row must have an empty slot for a new key."""
    start, capacity = row.start, np.int64(row.capacity)
    at = home_slot(key, capacity)
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
        at = _next_slot(at, capacity)


@inner_kernel
def remove_at(entries, row, slot):
    """Empty a slot and move later keys back, so that every search still finds its key."""
    start, capacity = row.start, np.int64(row.capacity)
    row.used -= 1
    gap = slot - start
    at = gap
    entries[slot].key = NO_KEY
    while True:
        at = _next_slot(at, capacity)
        entry = entries[start + at]
        if entry.key == NO_KEY:
            return
        home = home_slot(entry.key, capacity)
        # A key whose search passes the gap moves into it.
        if _slots_between(home, at, capacity) >= _slots_between(gap, at, capacity):
            hole = entries[start + gap]
            hole.key = entry.key
            hole.first = entry.first
            hole.second = entry.second
            entry.key = NO_KEY
            gap = at


@inner_kernel
def _next_slot(at, capacity):
    return at + 1 if at + 1 < capacity else np.int64(0)


@inner_kernel
def _slots_between(start, stop, capacity):
    """Count the slots from one slot of a row to another, wrapping around."""
    return stop - start if stop >= start else stop - start + capacity


@inner_kernel
def capacity_for(keys):
    """Return the slots needed for a number of keys: two fifths stay empty, and at least one."""
    return np.int64(keys) * 5 // 3 + 1


@inner_kernel
def capacity_with_spare(keys):
    """Return the slots for a row that has to grow, with spare ones so that it seldom does."""
    return capacity_for(keys + keys // 2 + 1)


@kernel
def clear(entries, start, stop):
    """Mark slots as empty."""
    for slot in range(start, stop):
        entries[slot].key = NO_KEY


@kernel
def reserve(entries, row, counts, more):
    """Reserve slots for more keys; a row that has to grow moves to the end of the array."""
    if capacity_for(row.used + more) <= row.capacity:
        return
    capacity = capacity_with_spare(row.used + more)
    old_start, old_stop = row.start, row.start + row.capacity
    row.start = counts[1]
    row.capacity = capacity
    row.used = 0
    counts[1] += capacity
    clear(entries, row.start, counts[1])
    for slot in range(old_start, old_stop):
        entry = entries[slot]
        if entry.key != NO_KEY:
            add(entries, row, entry.key, entry.first, entry.second)


@kernel
def copy_rows(entries, larger, rows, counts):
    """Copy all rows into a larger array, without the gaps between them."""
    end = np.int64(0)
    for r in range(rows.shape[0]):
        row = rows[r]
        for offset in range(row.capacity):
            larger[end + offset] = entries[row.start + offset]
        row.start = end
        end += row.capacity
    counts[1] = end
