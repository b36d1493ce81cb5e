"""Every capacity at once against replays, one capacity at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from kvtier.simulate import lossless, requests, reuse
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LRU
from kvtier.workload import synthetic

PROPERTY = settings(max_examples=150, derandomize=True, deadline=None, database=None)


def listed(turns, capacity):
    """Hits of each turn of the lossless reading, from the list of blocks itself."""
    context = turns.context_blocks.tolist()
    sessions, read_before, hits = [], False, []
    prefix = list(range(turns.prefix_blocks))

    def blocks(session):
        return range(turns.first_block[session], turns.first_block[session] + context[session])

    for session, growth in zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True):
        held = [*(prefix if read_before else []), *(block for other in sessions for block in blocks(other))][:capacity]
        hits.append(len({*prefix, *blocks(session)} & {*held}))
        context[session] += growth
        sessions = [session, *(other for other in sessions if other != session)]
        read_before = True
    return hits


def spread(turns, count=20):
    """Capacities from none to more than everything, the smallest ones included."""
    whole = int(turns.first_block[-1])
    return sorted({0, 1, 2, 3, *np.linspace(0, whole + 2, count).astype(int).tolist()})


def test_distances_by_hand(make_turns):
    """Session 0 grows by two at turn 0; session 1 is met once between, as large as it has become."""
    found = reuse.distances(make_turns([0, 1, 1, 2, 0, 0], [1, 2, 5], prefix=3, decode=[32, 16, 16, 0, 0, 16]))
    assert found.prefix == 3
    assert found.own.tolist() == [1, 2, 3, 5, 3, 3]
    assert found.between.tolist() == [-1, -1, 0, -1, 9, 0]
    assert found.previous.tolist() == [-1, 3, 3, 4, 5, 3]


def test_curves_by_hand(make_turns):
    """Turn 1 reads 2 + 3 blocks with nothing between: by requests the prefix needs 5 and so does the session; losslessly each block one."""
    turns = make_turns([0, 0], [3], prefix=2)
    steps, ramps = reuse.hit_curve(turns, "requests"), reuse.hit_curve(turns, "lossless")
    assert steps.at(range(8)).tolist() == [0, 0, 0, 0, 0, 5, 5, 5]
    assert ramps.at(range(8)).tolist() == [0, 1, 2, 3, 4, 5, 5, 5]
    assert ramps.capacity_blocks.tolist() == [0, 2, 5]


def test_nothing_counted_is_nothing_hit(make_turns):
    for turns in (make_turns([], [1]), make_turns([0], [1], prefix=1)):
        assert reuse.hits(turns, [0, 5]).tolist() == [0, 0]
    assert reuse.hits(make_turns([0, 0, 0], [4]), [4], counted_from=2).tolist() == [4]


def test_refusals(make_turns):
    with pytest.raises(ValueError, match="semantics 'exact': expected one of requests, lossless"):
        reuse.hits(make_turns([0], [1]), [1], "exact")
    with pytest.raises(ValueError, match="capacity -1 blocks: expected none or more"):
        reuse.hits(make_turns([0], [1]), [3, -1])
    with pytest.raises(ValueError, match="capacity_blocks -1: expected 0 or more"):
        reuse.turn_hits(make_turns([0], [1]), -1)


@PROPERTY
@given(st.data())
def test_requests_equal_a_replay(workloads, data):
    turns = data.draw(workloads())
    counted_from = data.draw(st.integers(0, len(turns.session)))
    capacities = spread(turns)
    replays = [requests.replay(turns, LRU, capacity) for capacity in capacities]
    for capacity, expected in zip(capacities, replays, strict=True):
        assert reuse.turn_hits(turns, capacity).tolist() == expected.tolist()
    found = reuse.hits(turns, capacities, "requests", counted_from)
    assert found.tolist() == [int(expected[counted_from:].sum()) for expected in replays]


@PROPERTY
@given(st.data())
def test_lossless_equals_the_list(workloads, data):
    turns = data.draw(workloads())
    counted_from = data.draw(st.integers(0, len(turns.session)))
    capacities = spread(turns)
    replays = [listed(turns, capacity) for capacity in capacities]
    for capacity, expected in zip(capacities, replays, strict=True):
        assert reuse.turn_hits(turns, capacity, "lossless").tolist() == expected
    found = reuse.hits(turns, capacities, "lossless", counted_from)
    assert found.tolist() == [sum(expected[counted_from:]) for expected in replays]


@PROPERTY
@given(st.data())
def test_lossless_equals_the_simulator(workloads, data):
    turns = data.draw(workloads())
    for capacity in spread(turns):
        assert reuse.turn_hits(turns, capacity, "lossless").tolist() == lossless.simulate(turns, LRU, capacity).hits.tolist()


@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_generated_workloads(kind):
    shape = synthetic.Shape(sessions=50, turns=250, prefix_tokens=80, context_tokens=(16, 700), decode_tokens=(0, 64))
    turns = synthetic.generate(kind, 6, shape)
    for capacity in spread(turns):
        assert reuse.turn_hits(turns, capacity).tolist() == requests.replay(turns, LRU, capacity).tolist()
        assert reuse.turn_hits(turns, capacity, "lossless").tolist() == listed(turns, capacity)


@njit
def compiled_lru(asked, blocks, capacity):
    """Hits of LRU, request by request: a ring from the oldest block to the newest through the number `blocks`."""
    newer, older = np.full(blocks + 1, -1), np.full(blocks + 1, -1)
    newer[blocks] = older[blocks] = blocks
    held = hits = 0
    for block in asked:
        if newer[block] >= 0:
            hits += 1
            newer[older[block]], older[newer[block]] = newer[block], older[block]
        elif held < capacity:
            held += 1
        else:
            oldest = newer[blocks]
            newer[blocks], older[newer[oldest]], newer[oldest] = newer[oldest], blocks, -1
        newest = older[blocks]
        newer[newest], older[block], newer[block], older[blocks] = block, newest, blocks, block
    return hits


def test_published_workload_request_by_request():
    """4,894,608 requests at 20 capacities and the published budgets."""
    turns = synthetic.generate("zipf", 1)
    asked, whole = turns.requests, int(turns.first_block[-1])
    capacities = [*np.linspace(1, whole, 20).astype(int).tolist(), *map(capacity_blocks, (8, 16, 32, 64, 128))]
    assert reuse.hits(turns, capacities).tolist() == [compiled_lru(asked, whole, capacity) for capacity in capacities]


def test_published_workload_losslessly():
    """The list of sessions in full, at 20 capacities; blocks enter by their number alone."""
    turns = synthetic.generate("zipf", 1)
    whole, prefix = int(turns.first_block[-1]), turns.prefix_blocks
    capacities = np.linspace(0, whole, 20).astype(int)
    context, sessions, hits = turns.context_blocks.copy(), [], np.zeros(len(capacities), dtype=np.int64)
    for turn, session in enumerate(turns.session.tolist()):
        if turn:
            hits += np.minimum(capacities, prefix)
        if session in sessions:
            above = prefix + sum(int(context[other]) for other in sessions[: sessions.index(session)])
            hits += np.clip(capacities - above, 0, context[session])
            sessions.remove(session)
        context[session] += turns.growth_blocks[turn]
        sessions.insert(0, session)
    assert reuse.hits(turns, capacities, "lossless").tolist() == hits.tolist()
    assert hits[:3].tolist() == [int(lossless.simulate(turns, LRU, capacity).hits.sum()) for capacity in capacities[:3].tolist()]


def test_golden_hits(golden_requests):
    assert reuse.hits(golden_requests.turns, [golden_requests.hbm_blocks]).tolist() == [golden_requests.hits[LRU]]
