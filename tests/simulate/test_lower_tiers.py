"""Tiers by intervals against tiers block by block, and closed forms."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate.lower_tiers import Tier, replay


def by_blocks(turns, missing, leaving, tiers):
    """The same, one block at a time: fetched, recomputed, demoted, written as lists of rows."""
    held = [OrderedDict() for _ in tiers]
    count = len(turns.session)
    fetched, demoted, written = ([[0] * count for _ in tiers] for _ in range(3))
    recomputed = [0] * count
    for turn, session in enumerate(turns.session.tolist()):
        recomputed[turn] += turns.prefix_blocks if turn == 0 else 0
        for first, stop in missing[turn]:
            for block in range(first, stop):
                source = next((index for index in range(len(tiers)) if (session, block) in held[index]), None)
                if source is None:
                    recomputed[turn] += 1
                    continue
                fetched[source][turn] += 1
                if tiers[source].exclusive:
                    del held[source][session, block]
        for at, owner, first, stop in leaving:
            if at != turn:
                continue
            passed = [(owner, block) for block in range(stop - 1, first - 1, -1)]
            for index, tier in enumerate(tiers):
                for name in passed:
                    demoted[index][turn] += 1
                    written[index][turn] += name not in held[index]
                    held[index][name] = None
                    held[index].move_to_end(name)
                passed = [held[index].popitem(last=False)[0] for _ in range(len(held[index]) - tier.capacity_blocks)]
    return fetched, recomputed, demoted, written


@st.composite
def moves(draw, workloads):
    """A workload, what HBM is said to miss, what is said to leave it, and tiers; HBM itself need not exist."""
    turns = draw(workloads())
    blocks = turns.final_blocks.tolist()

    def part_of(session):
        first = draw(st.integers(0, blocks[session]))
        return first, draw(st.integers(first, blocks[session]))

    missing = [[interval for interval in (part_of(session),) if interval[0] < interval[1]] for session in turns.session.tolist()]
    leaving = [
        (turn, session, first, stop)
        for turn in range(len(turns.session))
        for session in draw(st.lists(st.integers(0, len(blocks) - 1), max_size=3))
        for first, stop in (part_of(session),)
        if first < stop
    ]
    tiers = [Tier(str(level), draw(st.integers(0, 12)), draw(st.booleans())) for level in range(draw(st.integers(0, 3)))]
    return turns, missing, leaving, tiers


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_equals_tiers_block_by_block(workloads, data):
    turns, missing, leaving, tiers = data.draw(moves(workloads))
    found = replay(turns, missing, leaving, tiers)
    fetched, recomputed, demoted, written = by_blocks(turns, missing, leaving, tiers)
    assert found.recomputed.tolist() == recomputed
    for counts, expected in ((found.fetched, fetched), (found.demoted, demoted), (found.written, written)):
        assert counts.tolist() == expected


def test_inclusive_copy_moves_once_and_exclusive_moves_each_time(make_turns):
    """One session goes down and comes back twice: a copy that stays is written once (SPEC §8)."""
    turns = make_turns([0, 0, 0], [4])
    missing, leaving = [[(0, 4)]] * 3, [(turn, 0, 0, 4) for turn in range(3)]
    inclusive, exclusive = (replay(turns, missing, leaving, [Tier("CXL", 10, exclusive)]) for exclusive in (False, True))
    assert inclusive.fetched.tolist() == exclusive.fetched.tolist() == [[0, 4, 4]]
    assert inclusive.demoted.tolist() == exclusive.demoted.tolist() == [[4, 4, 4]]
    assert inclusive.written.tolist() == [[4, 0, 0]]
    assert exclusive.written.tolist() == [[4, 4, 4]]


def test_what_a_full_tier_drops_goes_to_the_next(make_turns):
    turns = make_turns([0, 1, 0], [4, 4])
    missing, leaving = [[(0, 4)], [(0, 4)], [(0, 4)]], [(0, 0, 0, 4), (1, 1, 0, 4)]
    counts = replay(turns, missing, leaving, [Tier("DRAM", 5), Tier("NVMe", 2)])
    # The deepest three of session 0 were the oldest; NVMe keeps the two that came last.
    assert counts.demoted.tolist() == [[4, 4, 0], [0, 3, 0]]
    assert counts.fetched.tolist() == [[0, 0, 1], [0, 0, 2]]
    assert counts.recomputed.tolist() == [4, 4, 1]


def test_negative_capacity_is_refused():
    with pytest.raises(ValueError, match="tier NVMe: capacity_blocks -1: expected 0 or more"):
        Tier("NVMe", -1)


def test_without_tiers_all_that_is_missing_is_recomputed(make_turns):
    turns = make_turns([0, 0], [3], prefix=2)
    counts = replay(turns, [[(0, 3)], [(1, 3)]], [], [])
    assert counts.recomputed.tolist() == [5, 2]
    assert counts.fetched.shape == (0, 2)
    assert np.array_equal(counts.demoted, counts.written)
