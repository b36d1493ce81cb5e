"""Counts to rates and times, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import revision2
from kvtier.simulate.metrics import DECODE_S, FETCH_S, RECOMPUTE_S, TurnCounts, capacity_blocks, summarise
from kvtier.simulate.policies import LRU


@pytest.mark.parametrize(("gib", "blocks"), [(0, 0), (0.004, 0), (0.005, 1), (8, 1638), (32, 6553), (128, 26_214), (512, 104_857)])
def test_capacity_is_whole_blocks(gib, blocks):
    assert capacity_blocks(gib) == blocks


def test_costs_are_the_published_ones():
    """81.92 us over 64 GB/s and 0.3 us; 2.24 TFLOP at 125 TFLOP/s; 35 GB at 3.35 TB/s."""
    assert pytest.approx((82.22e-6, 17.92e-3, 10.4477612e-3)) == (FETCH_S, RECOMPUTE_S, DECODE_S)


def counts_of(hits, fetched, recomputed, evictions=(0, 0, 0), from_read_set=(0, 0, 0)):
    return TurnCounts(*(np.array(part, dtype=np.int64) for part in (hits, fetched, recomputed, evictions, from_read_set)))


COUNTS = counts_of((0, 6, 1), (0, 3, 4000), (10, 1, 1), (5, 7, 11), (1, 2, 3))


def test_cold_counts_all_turns(make_turns):
    summary = summarise(COUNTS, make_turns([0, 0, 0], [10]), 0)
    assert summary["turns"] == 3
    assert (summary["hits"], summary["fetched"], summary["recomputed"]) == (7, 4003, 12)
    assert summary["hit_rate"] == 100 * 7 / 4022
    assert (summary["evictions"], summary["evictions_from_read_set"]) == (23, 6)


def test_warm_counts_later_turns_and_every_eviction(make_turns):
    """Turn 1 on: 7 hits, 4,003 fetched, 2 recomputed; times are means over the two counted turns."""
    summary = summarise(COUNTS, make_turns([0, 0, 0], [10]), 1)
    assert summary["turns"] == 2
    assert (summary["hits"], summary["fetched"], summary["recomputed"]) == (7, 4003, 2)
    assert summary["cold_rate"] == 100 * 2 / 4012
    assert summary["fetch_ms"] == pytest.approx(4003 * 0.08222 / 2)
    assert summary["recompute_ms"] == pytest.approx(17.92)
    assert summary["stall_ms"] == summary["fetch_ms"] + summary["recompute_ms"]
    assert (summary["evictions"], summary["evictions_from_read_set"]) == (23, 6)


def test_overlap_hides_a_turns_own_fetches_only(make_turns):
    """Two steps of decode (20.9 ms) hide the 0.25 ms of turn 1 whole; what is left over does not help turn 2 (328.88 − 10.45 ms)."""
    turns = make_turns([0, 0, 0], [10], decode=[500, 2, 1])
    exposed, hidden = (summarise(COUNTS, turns, 1, overlap=overlap) for overlap in (False, True))
    assert hidden["fetch_ms"] == pytest.approx((4000 * 0.08222 - 10.4477612) / 2)
    assert hidden["recompute_ms"] == exposed["recompute_ms"]
    assert hidden["hit_rate"] == exposed["hit_rate"]


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_rates_sum_and_overlap_never_adds_stall(workloads, policies, capacities, data):
    turns = data.draw(workloads())
    turns = replace(turns, prefix_blocks=turns.prefix_blocks + 1)
    counts = revision2.simulate(turns, data.draw(policies()), *data.draw(capacities(turns)))
    first = data.draw(st.integers(0, len(turns.session) - 1))
    exposed, hidden = (summarise(counts, turns, first, overlap=overlap) for overlap in (False, True))
    assert exposed["hits"] + exposed["fetched"] + exposed["recomputed"] == turns.read_blocks[first:].sum()
    assert exposed["hit_rate"] + exposed["cxl_rate"] + exposed["cold_rate"] == pytest.approx(100, abs=1e-9)
    assert 0 <= hidden["fetch_ms"] <= exposed["fetch_ms"]
    assert hidden["stall_ms"] <= exposed["stall_ms"]
    assert {**hidden, "stall_ms": 0, "fetch_ms": 0} == {**exposed, "stall_ms": 0, "fetch_ms": 0}


def test_generated_blocks_are_no_accesses(make_turns):
    turns = make_turns([0, 0], [4], decode=[32, 0])
    summary = summarise(revision2.simulate(turns, LRU, 99, 0), turns, 0)
    assert (summary["hits"], summary["recomputed"]) == (6, 4)
