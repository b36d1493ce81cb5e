"""The optimum under lossless residency against exhaustive search, and against every policy that pins."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import lossless, optimal, pinned_optimum
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LFU, LRU, Policy, ema
from kvtier.workload import synthetic


def steps(turns):
    """The path of each turn, in order, before and after it generates."""
    context = turns.context_blocks.tolist()
    prefix = [("prefix", depth) for depth in range(turns.prefix_blocks)]
    for session, growth in zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True):
        read = [*prefix, *((session, depth) for depth in range(context[session]))]
        context[session] += growth
        yield session, read, [*prefix, *((session, depth) for depth in range(context[session]))]


def by_search(turns, hbm_blocks, counted_from):
    """Most counted hits of all ways to choose which blocks of other sessions stay beside the path of each turn."""
    best = {frozenset(): 0}
    for turn, (session, read, path) in enumerate(steps(turns)):
        pinned, following = path[:hbm_blocks], {}
        for resident, hits in best.items():
            hits += len(resident.intersection(read)) * (turn >= counted_from)
            others = sorted((block for block in resident if block[0] not in ("prefix", session)), key=str)
            for stay in combinations(others, min(hbm_blocks - len(pinned), len(others))):
                kept = frozenset((*pinned, *stay))
                following[kept] = max(following.get(kept, -1), hits)
        best = following
    return max(best.values())


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_equals_exhaustive_search(make_turns, data):
    """Up to eight blocks and ten turns, generated blocks included."""
    contexts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    session = data.draw(st.lists(st.integers(0, len(contexts) - 1), min_size=1, max_size=10))
    prefix, room = data.draw(st.integers(0, 1)), 8
    decode = []
    for _ in session:
        grows = prefix + sum(contexts) + sum(decode) // 16 < room and data.draw(st.booleans())
        decode.append(16 if grows else 0)
    turns = make_turns(session, contexts, prefix, decode)
    hbm_blocks, counted_from = data.draw(st.integers(0, 8)), data.draw(st.integers(0, len(session)))
    assert pinned_optimum.turn_hits(turns, hbm_blocks, counted_from)[counted_from:].sum() == by_search(turns, hbm_blocks, counted_from)


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_no_policy_that_pins_has_more_hits(workloads, policies, data):
    turns = data.draw(workloads())
    hbm_blocks, counted_from = data.draw(st.integers(0, 40)), data.draw(st.integers(0, len(turns.session)))
    most = pinned_optimum.turn_hits(turns, hbm_blocks, counted_from)[counted_from:].sum()
    assert lossless.simulate(turns, data.draw(policies()), hbm_blocks).hits[counted_from:].sum() <= most
    assert pinned_optimum.turn_hits(turns, hbm_blocks, counted_from, window=data.draw(st.integers(0, 9)))[counted_from:].sum() <= most
    assert most <= optimal.turn_hits(turns, hbm_blocks, counted_from).sum()


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_window_of_none_is_lru_and_of_all_is_the_optimum(workloads, data):
    turns = data.draw(workloads())
    hbm_blocks = data.draw(st.integers(0, 40))
    blind, sighted = (pinned_optimum.turn_hits(turns, hbm_blocks, window=window) for window in (0, len(turns.session)))
    assert blind.tolist() == lossless.simulate(turns, LRU, hbm_blocks).hits.tolist()
    assert sighted.tolist() == pinned_optimum.turn_hits(turns, hbm_blocks).tolist()


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_window_by_looking_ahead(workloads, data):
    """The same policy written down: known returns latest first, after all that is not known, oldest first."""
    turns = data.draw(workloads())
    hbm_blocks, window = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 6))
    session, room = turns.session.tolist(), max(hbm_blocks - turns.prefix_blocks, 0)
    resident, last, victims = {}, {}, []

    for turn, (own, _, path) in enumerate(steps(turns)):
        keeps = min(len(path) - turns.prefix_blocks, room)
        resident.pop(own, None)
        while sum(resident.values()) + keeps > room:

            def rank(other, turn=turn):
                ahead = session[turn + 1 : turn + window + 1]
                return (1, -ahead.index(other)) if other in ahead else (0, last[other])

            other = min(resident, key=rank)
            first = max(resident[other] - (sum(resident.values()) + keeps - room), 0)
            victims.append((turn, other, first, resident[other]))
            resident[other] = first
            if not first:
                del resident[other]
        last[own] = turn
        if keeps:
            resident[own] = keeps
    found = []
    pinned_optimum.turn_hits(turns, hbm_blocks, window=window, on_evict=lambda *interval: found.append(interval))
    assert found == victims


def test_published_size():
    """zipf, seed 1, 32 GiB, warm: the optimum is some points above LFU that forgets and EMA, far below what Revision 2's EMA reports."""
    turns = synthetic.generate("zipf", 1)
    read = turns.read_blocks[1250:].sum()
    rate = {
        window: 100 * pinned_optimum.turn_hits(turns, capacity_blocks(32), 1250, window=window)[1250:].sum() / read
        for window in (None, 0, 1, 4, 16, 64)
    }
    assert round(rate[None], 2) == 48.44
    assert round(rate[0], 2) == 37.20
    assert list(rate.values())[1:] == sorted(list(rate.values())[1:])
    for policy in (LFU, ema(0.01), Policy("lfu", persistent=True), ema(0.01, persistent=True)):
        assert 100 * lossless.simulate(turns, policy, capacity_blocks(32)).hits[1250:].sum() / read < rate[None]


@pytest.mark.parametrize(("hbm_blocks", "window"), [(-1, None), (1, -1)])
def test_negative_numbers_are_refused(hbm_blocks, window, make_turns):
    with pytest.raises(ValueError, match="expected 0 or more"):
        pinned_optimum.turn_hits(make_turns([0], [1]), hbm_blocks, window=window)


def test_shared_prefix_is_always_there(make_turns):
    turns = make_turns([0, 1, 0], [2, 2], prefix=3)
    assert pinned_optimum.turn_hits(turns, 5).tolist() == [0, 3, 3]
    assert pinned_optimum.turn_hits(turns, 7).tolist() == [0, 3, 5]
    assert np.array_equal(pinned_optimum.turn_hits(turns, 2), [0, 2, 2])
