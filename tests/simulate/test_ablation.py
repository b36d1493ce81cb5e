"""Six mechanisms in one replay: equal to the replays that have four of them, block by block with the other two, and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import ablation, eviction, revision3
from kvtier.simulate.ablation import ANCHOR_BLOCKS, FACTORS
from kvtier.simulate.factorial import cells
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.metrics import capacity_blocks
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape

ALPHA = 0.05
WITHOUT = sorted(cells(["persistence", "ema", "suffix_first", "exclusive"]), key=sorted)


def apart(turns, on, hbm_blocks, tier_blocks):
    """The same by the replays in which HBM decides and the tier follows."""
    policy = eviction.Ema(hbm_blocks, ALPHA, "persistence" in on) if "ema" in on else eviction.Lru(hbm_blocks)
    residency = revision3.replay_edges(turns, policy, hbm_blocks, suffix_first="suffix_first" in on)
    return residency, revision3.with_tiers(turns, residency, [Tier("CXL", tier_blocks, "exclusive" in on)])[0]


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_equals_hbm_and_tier_apart(workloads, data):
    turns, on = data.draw(workloads()), data.draw(st.sampled_from(WITHOUT))
    hbm_blocks = data.draw(st.integers(turns.prefix_blocks, 45))
    tier_blocks = data.draw(st.integers(0, 45))
    together = ablation.replay(turns, on, hbm_blocks, tier_blocks, ALPHA)
    residency, counts = apart(turns, on, hbm_blocks, tier_blocks)
    assert together.hits.tolist() == residency.hits.tolist()
    assert together.prefix_hits.tolist() == residency.prefix_hits.tolist()
    assert together.fetched.tolist() == counts.fetched.tolist()
    assert together.recomputed.tolist() == counts.recomputed.tolist()
    assert not together.prefetched.any()


def test_equals_hbm_and_tier_apart_on_the_published_workload():
    turns = synthetic.generate("zipf", 1)
    sizes = capacity_blocks(32), capacity_blocks(512)
    for on in (frozenset(), frozenset({"ema", "suffix_first", "exclusive"})):
        together = ablation.replay(turns, on, *sizes, ALPHA)
        residency, counts = apart(turns, on, *sizes)
        assert together.hits.tolist() == residency.hits.tolist()
        assert together.recomputed.tolist() == counts.recomputed.tolist()


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_counts_add_up_in_every_cell(workloads, data):
    turns, on = data.draw(workloads()), data.draw(st.sampled_from(list(cells(FACTORS))))
    anchors = ANCHOR_BLOCKS * len(turns.context_blocks) * ("anchors" in on)
    hbm_blocks = turns.prefix_blocks + anchors + data.draw(st.integers(0, 45))
    counts = ablation.replay(turns, on, hbm_blocks, data.draw(st.integers(0, 60)), ALPHA)
    assert (counts.hits + counts.fetched + counts.recomputed == turns.read_blocks).all()
    assert (counts.resident + turns.prefix_blocks <= hbm_blocks).all()
    assert (counts.prefix_hits <= counts.hits).all()
    assert (counts.prefetched <= counts.hits).all()
    assert (counts.recomputed >= turns.compulsory_blocks).all()
    if "suffix_first" in on and not {"anchors", "prefetch"} & on:
        assert (counts.prefix_hits == counts.hits).all()
    if "anchors" in on:
        # After its first turn a session finds its first blocks.
        again = np.array([turn > turns.first_turn[session] for turn, session in enumerate(turns.session.tolist())])
        floor = turns.prefix_blocks + np.minimum(ANCHOR_BLOCKS, turns.read_blocks - turns.prefix_blocks)
        grown = turns.first_turn[turns.session]
        known = turns.prefix_blocks + np.minimum(ANCHOR_BLOCKS, turns.read_blocks[grown] - turns.prefix_blocks)
        assert (counts.prefix_hits >= np.minimum(floor, known))[again].all()


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_prefetch_into_an_endless_tier_finds_all_that_fits(workloads, data):
    """With the tier endless and the window wide, a miss is compulsory or had no room beside the turn before."""
    turns = data.draw(workloads())
    hbm_blocks = turns.prefix_blocks + data.draw(st.integers(0, 45))
    counts = ablation.replay(turns, frozenset({"prefetch", "suffix_first"}), hbm_blocks, 10_000, ALPHA)
    room, own = hbm_blocks - turns.prefix_blocks, turns.read_blocks - turns.prefix_blocks
    for turn in range(1, len(own)):
        before = turns.session[turn - 1]
        if turns.session[turn] == before or not turns.decode_tokens[turn - 1]:
            continue
        kept = min(int(own[turn - 1] + turns.growth_blocks[turn - 1]), room)
        met = int(counts.hits[turn]) - turns.prefix_blocks
        assert met >= min(int(own[turn] - turns.compulsory_blocks[turn]), room - kept)


def test_prefetch_by_hand(make_turns):
    """Two sessions of 4 and 3 blocks in turn, room for 6: the deepest block of each leaves for the other and comes back too early."""
    turns = make_turns([0, 1, 0, 1], [4, 3], decode=[16, 16, 16, 16])
    off = ablation.replay(turns, frozenset({"suffix_first"}), 9, 100, ALPHA)
    on = ablation.replay(turns, frozenset({"suffix_first", "prefetch"}), 9, 100, ALPHA)
    # Turn 0 leaves 5 of session 0; turn 1 reads 3 and makes 4, all fit. Turn 2 makes session 0 six: 1 has 3. Turn 3 misses the fourth.
    assert off.hits.tolist() == [0, 0, 5, 3]
    # With room for 6 beside 3, the fourth of session 1 cannot come before its turn.
    assert on.hits.tolist() == [0, 0, 5, 3]
    wide = make_turns([0, 1, 2, 0], [4, 3, 2], decode=[16, 16, 16, 16])
    assert ablation.replay(wide, frozenset({"suffix_first"}), 9, 100, ALPHA).hits.tolist() == [0, 0, 0, 2]
    found = ablation.replay(wide, frozenset({"suffix_first", "prefetch"}), 9, 100, ALPHA)
    # Session 0 lost 3 of 5; beside session 2, of 3, they fit once session 1 has given 3 of its own.
    assert found.hits.tolist() == [0, 0, 0, 5]
    assert found.prefetched.tolist() == [0, 0, 0, 3]
    # No decode, no time to fetch in.
    still = make_turns([0, 1, 2, 0], [5, 4, 3])
    assert not ablation.replay(still, frozenset({"suffix_first", "prefetch"}), 9, 100, ALPHA).prefetched.any()


def test_anchors_make_a_prefix_of_what_lost_its_first_blocks(make_turns):
    """Prefix first, session 0 of 10 blocks loses 6 to session 1: without anchors nothing contiguous is left, with them 7 blocks are."""
    turns = make_turns([0, 1, 0], [10, 10])
    off = ablation.replay(turns, frozenset(), 14, 0, ALPHA)
    assert (off.hits[2], off.prefix_hits[2]) == (4, 0)
    on = ablation.replay(turns, frozenset({"anchors"}), 18, 0, ALPHA)
    assert (on.hits[2], on.prefix_hits[2]) == (8, 7)


def test_persistence_without_a_score_is_an_alias_and_is_not_run():
    cells_ = ablation.ablate(synthetic.generate("zipf", 1, Shape(40, 120)), 1, capacity_blocks(8), capacity_blocks(32), [ALPHA], 60)
    assert cells_.height == 64
    assert cells_["aliased"].sum() == 16
    for row in cells_.filter(cells_["aliased"]).iter_rows(named=True):
        twin = {**{factor: row[factor] for factor in FACTORS}, "persistence": False}
        (same,) = (other for other in cells_.iter_rows(named=True) if all(other[name] == value for name, value in twin.items()))
        assert (same["hits"], same["stall_ms"]) == (row["hits"], row["stall_ms"])


def test_refuses_what_it_does_not_know(make_turns):
    turns = make_turns([0], [3], prefix=2)
    with pytest.raises(ValueError, match="factors"):
        ablation.replay(turns, frozenset({"luck"}), 9, 9, ALPHA)
    with pytest.raises(ValueError, match="hbm_blocks 8: expected 9"):
        ablation.replay(turns, frozenset({"anchors"}), 8, 9, ALPHA)
