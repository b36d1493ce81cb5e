"""The hash index of the table: open addressing, linear probing, one int32 a place.

A record's place is found from the two int64 that its identity is made of. Places hold row numbers, or :data:`EMPTY`. A removal closes the
gap that it leaves, so there are no tombstones, and a search ends at the first empty place. At least one place must be empty.
"""

from __future__ import annotations

import numpy as np

from kvtier.simulate.compiled import compiled, compiled_inline

EMPTY = -1


@compiled_inline
def home(high, low, places):
    """Place where the search for an identity starts: the upper bits of a multiplicative mix (as in MurmurHash3's finaliser)."""
    mixed = np.uint64(high) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(low)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64(((mixed >> np.uint64(33)) * np.uint64(places)) >> np.uint64(31))


@compiled
def find(index, words, high, low):
    """Row of an identity, or EMPTY.

    Parameters
    ----------
    index : ndarray of int32, shape (places,)
    words : ndarray of int64, shape (rows, 8)
        The records; an identity is the first two words.
    high, low : int
        The identity sought.
    """
    place = home(high, low, len(index))
    while index[place] != EMPTY:
        row = index[place]
        if words[row, 0] == high and words[row, 1] == low:
            return row
        place = place + 1 if place + 1 < len(index) else 0
    return EMPTY


@compiled
def insert(index, words, first, stop):
    """Enter rows `first` to ``stop - 1``, whose identities the index does not have."""
    for row in range(first, stop):
        place = home(words[row, 0], words[row, 1], len(index))
        while index[place] != EMPTY:
            place = place + 1 if place + 1 < len(index) else 0
        index[place] = row


@compiled
def remove(index, words, row, last):
    """Take a row out of the index and of the table: the `last` row takes its number, so that rows stay without gaps."""
    place = home(words[row, 0], words[row, 1], len(index))
    while index[place] != row:
        place = place + 1 if place + 1 < len(index) else 0
    gap = place
    while True:
        place = place + 1 if place + 1 < len(index) else 0
        if index[place] == EMPTY:
            break
        start = home(words[index[place], 0], words[index[place], 1], len(index))
        # An entry may move back to the gap unless its search starts after the gap, in the ring.
        if (place - start) % len(index) >= (place - gap) % len(index):
            index[gap] = index[place]
            gap = place
    index[gap] = EMPTY
    if row != last:
        place = home(words[last, 0], words[last, 1], len(index))
        while index[place] != last:
            place = place + 1 if place + 1 < len(index) else 0
        index[place] = row
        words[row] = words[last]
