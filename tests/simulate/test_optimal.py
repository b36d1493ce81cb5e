"""The optimum against exhaustive search, and against every simulator that it bounds."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import engine, lossless, optimal, requests, revision1, revision2
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LFU, LRU, PUBLISHED, Policy, ema
from kvtier.workload import synthetic

ASKED_REQUEST_BY_REQUEST = (LRU, LFU, ema(0.15), *map(Policy, ("fifo", "sieve", "s3fifo", "min")))


def steps(turns):
    """What each turn reads, and what it leaves that could be kept: sets of blocks."""
    context = turns.context_blocks.tolist()
    for session, growth in zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True):
        read = {("prefix", depth) for depth in range(turns.prefix_blocks)} | {(session, depth) for depth in range(context[session])}
        context[session] += growth
        yield read, read | {(session, depth) for depth in range(context[session])}


def by_search(turns, hbm_blocks, counted_from):
    """Most counted hits of all ways to choose, after each turn, what stays: every set of blocks that fills HBM, or all that there is."""
    best = {frozenset(): 0}
    for turn, (read, known) in enumerate(steps(turns)):
        following = {}
        for resident, hits in best.items():
            hits += len(read & resident) * (turn >= counted_from)
            offered = sorted(resident | known, key=str)
            for stay in combinations(offered, min(hbm_blocks, len(offered))):
                stay = frozenset(stay)
                following[stay] = max(following.get(stay, 0), hits)
        best = following
    return max(best.values())


def assert_optimal(turns, hbm_blocks, counted_from):
    found = optimal.turn_hits(turns, hbm_blocks, counted_from)
    assert not found[:counted_from].any()
    assert (found <= turns.read_blocks).all()
    assert found.sum() == by_search(turns, hbm_blocks, counted_from)


def every_order(sessions, turns):
    """Sequences of sessions in which new ones come in ascending order: others are these renumbered."""
    for order in product(range(sessions), repeat=turns):
        first_seen = list(dict.fromkeys(order))
        if first_seen == list(range(len(first_seen))):
            yield list(order)


@pytest.mark.parametrize("contexts", [[1], [3], [1, 1], [2, 1], [1, 2], [3, 2], [1, 1, 1], [1, 2, 1], [2, 1, 3]], ids=str)
def test_equals_exhaustive_search_without_growth(contexts, make_turns):
    """All orders of up to five turns, prefix of none or one, every capacity, every first counted turn."""
    for order in every_order(len(contexts), 5):
        for prefix in (0, 1):
            turns = make_turns(order, contexts, prefix)
            for hbm_blocks in range(prefix + sum(contexts) + 1):
                for counted_from in range(5):
                    assert_optimal(turns, hbm_blocks, counted_from)


@pytest.mark.parametrize("contexts", [[0], [1], [0, 0], [1, 0], [0, 1], [1, 1], [0, 0, 0], [1, 0, 1]], ids=str)
def test_equals_exhaustive_search_with_growth(contexts, make_turns):
    """All orders of four turns, each turn generating a block or not."""
    for order in every_order(len(contexts), 4):
        for decode in product((0, 16), repeat=3):
            turns = make_turns(order, contexts, 1, [*decode, 0])
            for hbm_blocks in range(1, 5):
                for counted_from in (0, 2, 3):
                    assert_optimal(turns, hbm_blocks, counted_from)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_equals_exhaustive_search_on_random_workloads(make_turns, data):
    contexts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    session = data.draw(st.lists(st.integers(0, len(contexts) - 1), min_size=1, max_size=5))
    turns = make_turns(session, contexts, data.draw(st.integers(0, 1)), [16 * data.draw(st.integers(0, 1)) for _ in session])
    assert_optimal(turns, data.draw(st.integers(0, 4)), data.draw(st.integers(0, len(session))))


def test_counted_turns_alone_are_worth_keeping_for(make_turns):
    """HBM of one. Turn 2 reads session 0 again, turn 4 session 1: kept for turn 2 alone, or for turn 4 if it alone counts."""
    turns = make_turns([0, 1, 0, 2, 1], [1, 1, 1])
    assert optimal.turn_hits(turns, 1).tolist() == [0, 0, 1, 0, 0]
    assert optimal.turn_hits(turns, 1, counted_from=3).tolist() == [0, 0, 0, 0, 1]


def test_may_refuse_the_newest(make_turns):
    """With bypass, a session that is read once does not push out what returns."""
    turns = make_turns([0, 1, 0], [2, 2])
    assert optimal.turn_hits(turns, 2).tolist() == [0, 0, 2]
    assert optimal.turn_hits(turns, 0).tolist() == [0, 0, 0]


MORE_THAN_MIN = {
    # The second generated block ties with the first, is the lower, and so its own victim; MIN would have had to admit it.
    "lfu refuses the newest": (LFU, [1, 0, 1], [0, 0], 0, [16, 16, 0], 1),
    # The last block of the context is found before the first is admitted in its place.
    "lru looks up before it admits": (LRU, [0, 0], [0], 1, [16, 0], 1),
    "lfu, room for two": (LFU, [1, 0, 1], [0, 1], 0, [16, 16, 0], 2),
    "lru, room for two": (LRU, [0, 0, 1], [1, 0], 1, [16, 0, 0], 2),
}
"""Policy, turns and capacity: of one block the smallest workloads, by requests, on which Revision 2 has more hits than MIN."""


@pytest.mark.parametrize("case", MORE_THAN_MIN)
def test_revision2_can_have_more_hits_than_min(case, make_turns):
    policy, session, contexts, prefix, decode, hbm_blocks = MORE_THAN_MIN[case]
    turns = make_turns(session, contexts, prefix, decode)
    of_revision2 = revision2.simulate(turns, policy, hbm_blocks, 0).hits.sum()
    assert of_revision2 == requests.replay(turns, Policy("min"), hbm_blocks).sum() + 1
    assert of_revision2 <= optimal.turn_hits(turns, hbm_blocks).sum() == by_search(turns, hbm_blocks, 0)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_bounds_every_simulator(workloads, policies, data):
    turns = data.draw(workloads())
    hbm_blocks, first = data.draw(st.integers(0, int(turns.first_block[-1]) + 1)), data.draw(st.integers(0, len(turns.session)))
    policy = data.draw(policies())
    most = optimal.turn_hits(turns, hbm_blocks, first).sum()
    assert revision2.simulate(turns, policy, hbm_blocks, 5).hits[first:].sum() <= most
    assert lossless.simulate(turns, policy, hbm_blocks).hits[first:].sum() <= most
    for asked in ASKED_REQUEST_BY_REQUEST:
        assert requests.replay(turns, asked, hbm_blocks)[first:].sum() <= most


@settings(max_examples=50, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_bounds_revision1(workloads, policies, data):
    turns = data.draw(workloads(growing=False))
    policy = data.draw(policies(persistence=False))
    hbm_blocks = data.draw(st.integers(0, int(turns.first_block[-1]) + 1))
    arrays = (turns.first_block, turns.context_blocks, turns.session)
    counts = revision1.simulate(turns.prefix_blocks, *arrays, policy.name, policy.alpha, hbm_blocks, 5)
    assert sum(hits for hits, _, _ in counts) <= optimal.turn_hits(turns, hbm_blocks).sum()


@pytest.mark.parametrize(("gib", "most"), [(8, 619_006), (32, 1_971_882), (128, 3_152_261)])
def test_golden_counts(gib, most):
    """Zipf, seed 1, turns from 1,250: golden, above all four policies and below what all could hit at best."""
    turns = synthetic.generate("zipf", 1)
    found = optimal.turn_hits(turns, capacity_blocks(gib), 1250)
    assert found.sum() == most
    for policy in PUBLISHED:
        assert engine.simulate(turns, policy, capacity_blocks(gib), 0).hits[1250:].sum() < most
    assert optimal.turn_hits(turns, 10**6, 1250).sum() == (turns.read_blocks - turns.compulsory_blocks)[1250:].sum()


def test_renumbering_sessions_changes_nothing():
    turns = synthetic.generate("scan", 4, synthetic.Shape(sessions=40, turns=200))
    number = np.random.default_rng(1).permutation(40)
    assert optimal.turn_hits(turns.renumbered(number), 900, 50).tolist() == optimal.turn_hits(turns, 900, 50).tolist()


@pytest.mark.parametrize(
    ("turn", "upcoming", "message"),
    [
        (0, 3, "turn 2 reads session 0; its table of next turns has session None there"),
        (0, 4, "turn 2 reads session 0; its table of next turns has session None there"),
        (1, 2, "turn 2 reads session 0; its table of next turns has session 1 there"),
        (1, 9, "turn 3 reads session 1; its table of next turns has session None there"),
        (3, 4, "turn 4 reads session 2; its table of next turns has session 1 there"),
    ],
)
def test_a_next_turn_that_contradicts_the_trace_is_refused(turn, upcoming, message, make_turns):
    turns = make_turns([0, 1, 0, 1, 2], [1, 1, 1])
    assert turns.next_turn.tolist() == [2, 3, 5, 5, 5]
    turns.next_turn[turn] = upcoming
    with pytest.raises(ValueError, match=message):
        optimal.turn_hits(turns, 2)


def test_negative_capacities_are_refused(make_turns):
    with pytest.raises(ValueError, match="hbm_blocks -1: expected 0 or more"):
        optimal.turn_hits(make_turns([0], [1]), -1)
