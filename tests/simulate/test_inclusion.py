"""Which policies include: a smaller cache holds a part of what a larger one holds. And which do not: a larger one that serves less."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import requests, revision2
from kvtier.simulate.policies import FIFO, LFU, LRU, MIN, S3FIFO, SIEVE, Policy, ema

PROPERTY = settings(max_examples=50, derandomize=True, deadline=None, database=None)

PERSISTENT = (Policy("lfu", persistent=True), *(ema(alpha, persistent=True) for alpha in (0.5, 0.15, 0.01, 0.001)))


def capacities(turns):
    return range(int(turns.first_block[-1]) + 2)


@pytest.mark.parametrize("policy", [LRU, MIN, *PERSISTENT])
@PROPERTY
@given(st.data())
def test_request_by_request_these_include(workloads, policy, data):
    """At every capacity and after every request; so a block that hits goes on hitting as the cache grows."""
    turns = data.draw(workloads(most_turns=16, most_sessions=4))
    caches = [requests.cache(policy, capacity, turns.requests) for capacity in capacities(turns)]
    for turn, (reads, grown) in enumerate(zip(turns.read_blocks.tolist(), turns.growth_blocks.tolist(), strict=True)):
        start = int((turns.read_blocks + turns.growth_blocks)[:turn].sum())
        for block in turns.requests[start : start + reads + grown].tolist():
            hits = [resident.request(block, turn)[0] for resident in caches]
            assert hits == sorted(hits)
            for smaller, larger in pairwise(caches):
                assert smaller.resident.keys() <= larger.resident.keys()


@pytest.mark.parametrize(
    ("policy", "trace", "smaller", "hits"),
    [
        (FIFO, "abcdabeabcde", 3, (3, 2)),
        (LFU, "abcabdcdcd", 2, (3, 2)),
        (ema(0.15), "aabbcacdbdb", 2, (5, 4)),
        (SIEVE, "ababcdc", 2, (3, 2)),
        (S3FIFO, "abcadad", 2, (2, 1)),
    ],
)
def test_a_larger_cache_that_serves_less(make_turns, policy, trace, smaller, hits):
    """One more block, one hit less; no request can be left out. The trace of FIFO is the one of Belady et al. (CACM 12, 1969)."""

    def served(trace, capacity):
        sessions = ["abcde".index(letter) for letter in trace]
        return int(requests.replay(make_turns(sessions, [1] * 5), policy, capacity).sum())

    assert (served(trace, smaller), served(trace, smaller + 1)) == hits
    for i in range(len(trace)):
        shorter = trace[:i] + trace[i + 1 :]
        assert served(shorter, smaller) <= served(shorter, smaller + 1)


def replayed(turns, policy, hbm_blocks, cxl_blocks):
    """Hits of each turn under Revision 2, and what HBM holds after it."""
    evicted = [set() for _ in turns.session]
    counts = revision2.simulate(turns, policy, hbm_blocks, cxl_blocks, lambda turn, victim: evicted[turn].add(victim))
    context, resident, held = turns.context_blocks + turns.first_block[:-1], set(), []
    for session, growth, victims in zip(turns.session.tolist(), turns.growth_blocks.tolist(), evicted, strict=True):
        context[session] += growth
        # A block is evicted at most once a turn, and not admitted again in it.
        resident = (resident | {*range(turns.prefix_blocks), *range(turns.first_block[session], context[session])}) - victims
        held.append(resident)
    return counts.hits.tolist(), held


@pytest.mark.parametrize("policy", PERSISTENT)
@PROPERTY
@given(st.data())
def test_revision2_includes_if_its_state_persists(workloads, policy, data):
    """A turn touches each of its blocks once at any capacity, and keeps the highest keys of all blocks seen: fetched in any order."""
    turns = data.draw(workloads(most_turns=16, most_sessions=4))
    sizes = data.draw(st.lists(st.integers(0, 20), min_size=2, max_size=2))
    hbm_blocks = data.draw(st.integers(0, int(turns.first_block[-1])))
    hits, held = replayed(turns, policy, hbm_blocks, sizes[0])
    more_hits, more_held = replayed(turns, policy, hbm_blocks + 1, sizes[1])
    assert all(fewer <= more for fewer, more in zip(hits, more_hits, strict=True))
    assert all(fewer <= more for fewer, more in zip(held, more_held, strict=True))


def test_revision2_lru_does_not_include(make_turns):
    """Blocks 0, 1 are the prefix, 2, 3 session 1; session 0 has none. The turn of four blocks outgrows both HBMs.

    Hits are touched before misses are admitted, so what hits at turn 1 leaves first. HBM of two finds 2, 3 and keeps 0, 1; HBM of three
    finds 1, 2, 3 too and keeps 2, 3, 0, so that turn 2 finds one block of the prefix and not both. Counted from turn 2 the larger HBM
    serves less, counted from the start as much. A search found none that reads fewer blocks and does this.
    """
    turns = make_turns([1, 1, 0], [0, 2], prefix=2)
    hits, held = replayed(turns, LRU, 2, 0)
    assert (hits, held) == ([0, 2, 2], [{2, 3}, {0, 1}, {0, 1}])
    hits, held = replayed(turns, LRU, 3, 0)
    assert (hits, held) == ([0, 3, 1], [{1, 2, 3}, {0, 2, 3}, {0, 1, 3}])


def test_revision2_that_forgets_does_not_include(make_turns):
    """EMA: one more block, one hit less, counted from the start."""
    turns = make_turns([1, 2, 1, 2, 3, 3, 0, 3, 2, 0, 3], [1, 1, 1, 1])
    assert [int(revision2.simulate(turns, ema(0.15), hbm_blocks, 0).hits.sum()) for hbm_blocks in (1, 2)] == [3, 2]
