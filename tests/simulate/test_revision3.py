"""Revision 3 against the lossless simulator and the pinned optimum, its options, and the constraint that it enforces."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import eviction, lossless, pinned_optimum, revision3
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.metrics import capacity_blocks, summarise
from kvtier.simulate.policies import LRU, MIN, ema
from kvtier.workload import synthetic

EVERY = list(eviction.NAMES.values())


def edges(turns, named, hbm_blocks, **options):
    return revision3.replay_edges(turns, named.build(hbm_blocks, **revision3.trace_knowledge(turns)), hbm_blocks, **options)


def by_blocks(turns, residency):
    """Replay what is said to leave, block by block: sets of resident (session, position) as each turn begins, and after the last."""
    held, before = set(), []
    context = turns.context_blocks.tolist()
    evicted = {turn: [] for turn in range(len(turns.session))}
    for turn, session, first, stop in residency.evicted:
        evicted[turn].append((session, first, stop))
    for turn, session in enumerate(turns.session.tolist()):
        before.append(set(held))
        # What does not fit is streamed, whatever of it was there.
        held = {block for block in held if block[0] != session} | {(session, position) for position in range(residency.kept[turn])}
        for owner, first, stop in evicted[turn]:
            leaving = {(owner, position) for position in range(first, stop)}
            assert leaving <= held
            held -= leaving
        context[session] += int(turns.growth_blocks[turn])
    return [*before, held]


def assert_consistent(turns, residency, hbm_blocks, floor_blocks=0):
    """Hits, misses and what is streamed follow from what is resident; HBM is never over its capacity."""
    resident = by_blocks(turns, residency)
    context = turns.context_blocks.tolist()
    shared = min(turns.prefix_blocks, hbm_blocks - floor_blocks)
    for turn, session in enumerate(turns.session.tolist()):
        own = {position for owner, position in resident[turn] if owner == session}
        of_prefix = shared if turn else 0
        assert residency.hits[turn] == of_prefix + len(own)
        missing = {position for first, stop in residency.missing[turn] for position in range(first, stop)}
        assert missing == set(range(context[session])) - own
        length = next((position for position in range(context[session]) if position not in own), context[session])
        assert residency.prefix_hits[turn] == of_prefix + (length if of_prefix == turns.prefix_blocks else 0)
        assert len(resident[turn + 1]) + shared <= max(hbm_blocks - floor_blocks, shared)
        context[session] += int(turns.growth_blocks[turn])


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_keeps_what_it_reads_and_counts_what_it_keeps(workloads, policies, data):
    turns = data.draw(workloads())
    hbm_blocks = data.draw(st.integers(0, 45))
    policy = data.draw(st.one_of(policies(), st.just(MIN)))
    residency = revision3.replay(turns, policy, hbm_blocks)
    assert_consistent(turns, residency, hbm_blocks)
    evictions, own = residency.evictions(turns)
    assert not own.any()
    assert evictions.sum() == sum(stop - first for _, _, first, stop in residency.evicted)
    expected = pinned_optimum.turn_hits(turns, hbm_blocks) if policy == MIN else lossless.simulate(turns, policy, hbm_blocks).hits
    assert residency.hits.tolist() == expected.tolist()


@settings(max_examples=600, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_edges_keep_what_they_read_under_every_policy(workloads, data):
    turns = data.draw(workloads())
    hbm_blocks = data.draw(st.integers(0, 45))
    suffix_first, in_flight = data.draw(st.booleans()), data.draw(st.integers(1, 4))
    residency = edges(turns, data.draw(st.sampled_from(EVERY)), hbm_blocks, suffix_first=suffix_first, in_flight=in_flight)
    assert_consistent(turns, residency, hbm_blocks)
    assert not residency.evictions(turns)[1].any()
    for turn, session, _, _ in residency.evicted:
        assert session not in turns.session[max(turn - in_flight + 1, 0) : turn + 1]


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_chunked_reading_keeps_a_buffer_free(workloads, data):
    turns = data.draw(workloads())
    hbm_blocks = data.draw(st.integers(0, 45))
    floor_blocks = data.draw(st.integers(0, hbm_blocks))
    named = data.draw(st.sampled_from(EVERY))
    assert_consistent(turns, edges(turns, named, hbm_blocks, floor_blocks=floor_blocks), hbm_blocks, floor_blocks)


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_lru_and_the_optimum_do_not_care_where_state_is_kept(workloads, data):
    """All blocks of a session share last and next turn, so edges and blocks make one policy."""
    turns = data.draw(workloads())
    hbm_blocks = data.draw(st.integers(0, 45))
    assert edges(turns, eviction.NAMES["lru"], hbm_blocks).evicted == revision3.replay(turns, LRU, hbm_blocks).evicted
    farthest = edges(turns, eviction.NAMES["farthest"], hbm_blocks)
    assert farthest.hits.tolist() == pinned_optimum.turn_hits(turns, hbm_blocks).tolist()


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_order_inside_an_edge_moves_contiguous_hits_alone(workloads, data):
    """Which end goes first changes which blocks are there, not how many, as long as all paths fit."""
    turns = data.draw(workloads())
    hbm_blocks = int((turns.read_blocks + turns.growth_blocks).max()) + data.draw(st.integers(0, 10))
    named = data.draw(st.sampled_from(EVERY))
    suffix, prefix = (edges(turns, named, hbm_blocks, suffix_first=order) for order in (True, False))
    assert suffix.hits.tolist() == prefix.hits.tolist() == suffix.prefix_hits.tolist()
    assert (prefix.prefix_hits <= suffix.prefix_hits).all()


@pytest.mark.parametrize("named", EVERY, ids=lambda named: named.slug)
def test_session_numbers_decide_nothing(named):
    turns = synthetic.generate("zipf", 3, synthetic.Shape(sessions=60, turns=400))
    renumbered = turns.renumbered(np.random.default_rng(1).permutation(60))
    hbm_blocks = capacity_blocks(16)
    assert edges(turns, named, hbm_blocks).hits.tolist() == edges(renumbered, named, hbm_blocks).hits.tolist()


@pytest.mark.parametrize("named", EVERY, ids=lambda named: named.slug)
def test_no_capacity_and_all_capacity(named):
    turns = synthetic.generate("zipf", 2, synthetic.Shape(sessions=40, turns=200))
    assert not edges(turns, named, 0).hits.any()
    everything = edges(turns, named, 10**6)
    if "_demotes" not in named.slug:
        assert everything.hits.tolist() == (turns.read_blocks - turns.compulsory_blocks).tolist()
        assert not everything.evicted


def test_sessions_that_never_return_never_raise_the_hits_of_lru():
    turns = synthetic.generate("zipf", 1, synthetic.Shape(sessions=60, turns=400))
    hbm_blocks = capacity_blocks(16)
    alone = edges(turns, eviction.NAMES["lru"], hbm_blocks).hits.sum()
    once = np.arange(60, 160)
    at = np.sort(np.random.default_rng(2).choice(400, size=100, replace=False))
    crowded = replace(
        turns,
        context_blocks=np.concatenate([turns.context_blocks, np.full(100, 200)]),
        session=np.insert(turns.session, at, once),
        decode_tokens=np.insert(turns.decode_tokens, at, 0),
    )
    kept = np.isin(crowded.session, np.arange(60))
    found = edges(crowded, eviction.NAMES["lru"], hbm_blocks).hits[kept]
    assert found.sum() <= alone


def test_full_decay_is_lru():
    turns = synthetic.generate("zipf", 4, synthetic.Shape(sessions=60, turns=400))
    hbm_blocks = capacity_blocks(16)
    assert edges(turns, eviction.ema(0.9), hbm_blocks).evicted == edges(turns, eviction.NAMES["lru"], hbm_blocks).evicted


def test_no_decay_is_lfu():
    """Up to ties, which LFU breaks by the last turn: no victim was read more often than an edge that stays."""

    class Counted(eviction.Ema):
        def read(self, edge, turn, blocks):
            reads[edge] += 1
            super().read(edge, turn, blocks)

        def lost(self, edge, left):
            super().lost(edge, left)
            if not left:
                reads[edge] = 0

        def victim(self, pinned):
            edge = super().victim(pinned)
            assert reads[edge] == min(reads[other] for other in self.blocks if other not in pinned)
            victims.append(edge)
            return edge

    victims, reads = [], Counter()
    turns = synthetic.generate("zipf", 4, synthetic.Shape(sessions=60, turns=400))
    revision3.replay_edges(turns, Counted(capacity_blocks(16), 1e-6), capacity_blocks(16))
    assert len(victims) > 100


def test_published_size():
    """zipf, seed 1, 32 + 512 GiB, warm: what SPEC §9 D2 is about."""
    turns = synthetic.generate("zipf", 1)
    found = {}
    for policy in (LRU, ema(0.01), MIN):
        residency = revision3.replay(turns, policy, capacity_blocks(32), 1250)
        counts, below = revision3.with_tiers(turns, residency, [Tier("CXL", capacity_blocks(512))])
        assert (counts.hits + counts.fetched + counts.recomputed).tolist() == turns.read_blocks.tolist()
        assert counts.fetched.sum() == below.fetched.sum()
        found[policy.slug] = round(summarise(counts, turns, 1250)["hit_rate"], 2)
    assert found == {"lru": 37.20, "ema001": 45.38, "min": 48.44}
    assert int((revision3.over_budget_blocks(turns, capacity_blocks(32)) > 0).sum()) == 165


@pytest.mark.parametrize("options", [{"in_flight": 0}, {"floor_blocks": -1}, {"floor_blocks": 9}], ids=str)
def test_numbers_out_of_range_are_refused(options, make_turns):
    with pytest.raises(ValueError, match="expected sizes that fit"):
        edges(make_turns([0], [1]), eviction.NAMES["lru"], 8, **options)
