"""The lossless simulator against blocks in dictionaries, by hand, and at full size."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import lossless, revision2
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LFU, LRU, Policy, ema
from kvtier.workload import synthetic

LFU_PERSISTENT = Policy("lfu", persistent=True)
POLICIES = (LRU, LFU, LFU_PERSISTENT, *(ema(alpha, persistent=kept) for alpha in (0.5, 0.15, 0.01) for kept in (False, True)))

GOLDEN = {
    LRU: (1_244_667, "37.20"),
    LFU: (1_490_568, "44.55"),
    LFU_PERSISTENT: (1_541_246, "46.06"),
    ema(0.15): (1_360_649, "40.66"),
    ema(0.15, persistent=True): (1_379_535, "41.23"),
    ema(0.01): (1_518_488, "45.38"),
    ema(0.01, persistent=True): (1_569_313, "46.90"),
}
"""Hits and hit rate of turns 1,250 to 2,499: zipf, seed 1, 32 GiB."""


def by_blocks(turns, policy, hbm_blocks):
    """Counts (hits, misses, evictions, streamed) of each turn and victims (turn, session, position), one block at a time."""
    key, state, last_turn, context = {}, {}, {}, turns.context_blocks.tolist()
    counts, victims = [], []

    def touch(block, turn):
        last_turn[block] = turn
        if policy.name == "lru":
            return turn
        if policy.name == "lfu":
            state[block] = state.get(block, 0) + 1
            return state[block]
        score, touched = state.get(block, (0.0, turn))
        score = policy.alpha + (1 - policy.alpha) * (score * (1 - policy.alpha) ** (turn - touched))
        state[block] = (score, turn)
        return math.log(score) + turn * -math.log(1 - policy.alpha)

    for turn, (session, growth) in enumerate(zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True)):
        read = [("prefix", depth) for depth in range(turns.prefix_blocks)] + [(session, depth) for depth in range(context[session])]
        context[session] += growth
        pinned = read + [(session, depth) for depth in range(context[session] - growth, context[session])]
        hits = [block for block in read if block in key]
        streamed = pinned[hbm_blocks:]
        assert not set(streamed) & set(hits)
        evicted = 0
        for block in hits + [block for block in pinned if block not in hits and block not in streamed]:
            key[block] = touch(block, turn)
            while len(key) > hbm_blocks:
                _, _, _, victim = min((key[b], last_turn[b], -b[1], b) for b in key if b not in pinned)
                del key[victim]
                if not policy.persistent:
                    state.pop(victim, None)
                victims.append((turn, *victim))
                evicted += 1
        if policy.persistent:
            for block in streamed:
                touch(block, turn)
        counts.append((len(hits), len(read) - len(hits), evicted, len(streamed)))
        for one in range(len(context)):
            depths = sorted(depth for owner, depth in key if owner == one)
            assert depths == list(range(len(depths))), "a session's resident part has a hole"
    return counts, victims


def trail(turns, policy, hbm_blocks):
    """Counts and victims of the simulator, in the form of `by_blocks`; what leaves a session in one run is told as one."""
    victims = []

    def note(turn, session, first, stop):
        assert first < stop
        assert not victims or victims[-1] != (turn, session, stop), "one run of victims told as two"
        victims.extend((turn, session, depth) for depth in reversed(range(first, stop)))

    found = lossless.simulate(turns, policy, hbm_blocks, note)
    return list(zip(*(part.tolist() for part in (found.hits, found.misses, found.evictions, found.streamed)), strict=True)), victims


@settings(max_examples=1000, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_equals_blocks_on_random_workloads(workloads, policies, data):
    turns = data.draw(workloads())
    policy = data.draw(policies())
    hbm_blocks = data.draw(st.integers(0, int(turns.first_block[-1]) + 1))
    assert trail(turns, policy, hbm_blocks) == by_blocks(turns, policy, hbm_blocks)


@pytest.mark.parametrize("policy", POLICIES)
def test_equals_blocks_on_many_small_workloads(policy, make_turns):
    """Two hundred for each policy, a third of them without growth, where scores of whole sessions tie."""
    rng = np.random.default_rng(5)
    for case in range(200):
        contexts = rng.integers(0, 8, size=rng.integers(1, 7)).tolist()
        session = rng.integers(0, len(contexts), size=40).tolist()
        decode = (16 * (case % 3) * rng.integers(0, 2, size=40)).tolist()
        turns = make_turns(session, contexts, prefix=int(rng.integers(0, 4)), decode=decode)
        for hbm_blocks in (int(turns.read_blocks.max()), int(rng.integers(0, turns.first_block[-1] + 1))):
            assert trail(turns, policy, hbm_blocks) == by_blocks(turns, policy, hbm_blocks)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_equals_blocks_on_generated_workloads(kind, policy):
    """Contexts of tens of blocks that grow: segments pile up, are covered for long and lose their deeper parts."""
    shape = synthetic.Shape(sessions=45, turns=130, prefix_tokens=80, context_tokens=(16, 400), decode_tokens=(0, 64))
    turns = synthetic.generate(kind, 6, shape)
    for hbm_blocks in (1, 30, 120):
        assert trail(turns, policy, hbm_blocks) == by_blocks(turns, policy, hbm_blocks)


def test_larger_than_hbm_is_streamed(make_turns):
    """HBM of four, prefix of one. Session 1 needs six: the other leaves, three of its blocks stay, the deeper two are read through."""
    turns = make_turns([0, 1, 1, 0], [2, 5], prefix=1)
    for policy in POLICIES:
        counts, victims = trail(turns, policy, 4)
        assert counts == [(0, 3, 0, 0), (1, 5, 2, 2), (4, 2, 0, 2), (1, 2, 2, 0)]
        assert victims == [(1, 0, 1), (1, 0, 0), (3, 1, 2), (3, 1, 1)]
        assert lossless.simulate(turns, policy, 4).over_budget_turns == 2


def test_what_is_generated_can_be_streamed(make_turns):
    """Read once it is part of the context, and a miss then."""
    counts, _ = trail(make_turns([0, 0], [2], prefix=1, decode=[32, 0]), LRU, 4)
    assert counts == [(0, 3, 0, 1), (4, 1, 0, 1)]


def test_a_prefix_larger_than_hbm_fills_it(make_turns):
    counts, victims = trail(make_turns([0, 1, 0], [2, 2], prefix=5), LRU, 3)
    assert counts == [(0, 7, 0, 4), (3, 4, 0, 4), (3, 4, 0, 4)]
    assert victims == []


def test_what_was_streamed_once_is_never_admitted():
    """Contexts only grow. That is why the simulator keeps no state of streamed blocks, persistent or not; `by_blocks` does keep it."""
    turns = synthetic.generate("zipf", 3, synthetic.Shape(sessions=40, turns=300))
    hbm_blocks = 700
    streams = turns.prefix_blocks + turns.context_blocks > hbm_blocks
    assert lossless.simulate(turns, LRU, hbm_blocks).over_budget_turns > 0
    for turn, session in enumerate(turns.session.tolist()):
        over = turns.read_blocks[turn] + turns.growth_blocks[turn] > hbm_blocks
        assert over or not streams[session]
        streams[session] |= over


@pytest.mark.parametrize("policy", POLICIES)
def test_renumbering_sessions_changes_nothing(policy):
    turns = synthetic.generate("zipf", 4, synthetic.Shape(sessions=40, turns=200))
    number = np.random.default_rng(1).permutation(40)
    counts, victims = trail(turns, policy, 1500)
    assert victims
    renumbered = [(turn, int(number[session]), depth) for turn, session, depth in victims]
    assert trail(turns.renumbered(number), policy, 1500) == (counts, renumbered)


@pytest.mark.parametrize("policy", GOLDEN)
def test_golden_counts(policy):
    turns = synthetic.generate("zipf", 1)
    counts = lossless.simulate(turns, policy, capacity_blocks(32))
    hits = int(counts.hits[1250:].sum())
    assert (hits, f"{100 * hits / turns.read_blocks[1250:].sum():.2f}") == GOLDEN[policy]
    assert (counts.over_budget_turns, int(counts.streamed.sum())) == (165, 213_964)
    assert (counts.hits + counts.misses).tolist() == turns.read_blocks.tolist()


def test_equals_revision2_where_all_fits():
    """Without evictions the two semantics are one."""
    turns = synthetic.generate("zipf", 1, synthetic.Shape(sessions=40, turns=200))
    for policy in (LRU, LFU, ema(0.15)):
        counts = lossless.simulate(turns, policy, int(turns.first_block[-1]))
        assert counts.hits.tolist() == revision2.simulate(turns, policy, int(turns.first_block[-1]), 0).hits.tolist()
        assert not counts.evictions.any()


def test_no_turns(make_turns):
    counts = lossless.simulate(make_turns([], [3]), LRU, 4)
    assert counts.hits.tolist() == counts.streamed.tolist() == []
    assert counts.over_budget_turns == 0


def test_other_policies_and_negative_capacities_are_refused(make_turns):
    turns = make_turns([0], [1])
    with pytest.raises(ValueError, match="policy 'fifo': expected one of lru, lfu, ema"):
        lossless.simulate(turns, SimpleNamespace(name="fifo", persistent=False), 4)
    with pytest.raises(ValueError, match="hbm_blocks -1: expected 0 or more"):
        lossless.simulate(turns, LRU, -1)
