"""Real blocks under the simulator's policies: the same hits, the same victims, and each block in the tiers where Revision 3 has it."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.blocks import drive
from kvtier.blocks.record import Tier
from kvtier.blocks.store import Pinned, open_store
from kvtier.simulate import eviction, lower_tiers, requests, revision3
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import FIFO, LFU, LRU, MIN, S3FIFO, SIEVE, Policy, ema
from kvtier.simulate.traffic import Ledger
from kvtier.workload import synthetic
from kvtier.workload.turns import Turns

HBM = Tier.HBM

POLICIES = (LRU, LFU, Policy("lfu", persistent=True), *(ema(alpha, persistent=kept) for alpha in (0.15, 0.01) for kept in (False, True)))

GRAINS = ("session", "block")

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

SMALL = synthetic.Shape(sessions=30, turns=50, prefix_tokens=80, context_tokens=(16, 300), decode_tokens=(0, 64))


def pytest_generate_tests(metafunc):
    if "policy" in metafunc.fixturenames:
        metafunc.parametrize("policy", POLICIES, ids=lambda policy: policy.slug + "-persistent" * policy.persistent)


def reference(turns, policy, hbm_blocks, grain):
    """HBM as Revision 3 has it.

    Block by block, neighbours that leave one after the other are one interval. The lossless simulator may tell them as two, where its
    queue has a stale entry; and a tier takes each interval in whole, so the cut can decide what a tier drops.
    """
    if grain == "session":
        options = {"lru": {}, "lfu": {"persistent": policy.persistent}, "ema": {"alpha": policy.alpha, "persistent": policy.persistent}}
        kinds = {"lru": eviction.Lru, "lfu": eviction.Lfu, "ema": eviction.Ema}
        return revision3.replay_edges(turns, kinds[policy.name](hbm_blocks, **options[policy.name]), hbm_blocks)
    residency = revision3.replay(turns, policy, hbm_blocks)
    joined = []
    for turn, session, first, stop in residency.evicted:
        if joined and joined[-1][:2] == (turn, session):
            stop = joined.pop()[3]
        joined.append((turn, session, first, stop))
    return replace(residency, evicted=joined)


def by_turn(turns, residency, capacities):
    """Blocks (session, position) that each tier has after each turn, from the reference's decisions alone."""
    hbm, tiers = set(), [lower_tiers.Contents(lower_tiers.Tier(str(tier), capacity)) for tier, capacity in enumerate(capacities[1:])]
    leaving = list(residency.leaving(turns))
    final = turns.final_blocks.tolist()
    for turn, session in enumerate(turns.session.tolist()):
        hbm |= {(session, position) for position in range(residency.kept[turn])}
        hbm |= {(drive.PREFIX, position) for position in range(min(turns.prefix_blocks, capacities[0]))}
        for at, owner, first, stop in leaving:
            if at == turn:
                hbm -= {(owner, position) for position in range(max(first, residency.kept[turn]) if owner == session else first, stop)}
                passed = [(owner, first, stop)]
                for tier in tiers:
                    _, passed = tier.put(passed)
        below = [
            {
                (owner, position)
                for owner, whole in enumerate(final)
                for _, a, b in tier.overlaps(owner, 0, whole)
                for position in range(a, b)
            }
            for tier in tiers
        ]
        yield [hbm, *below]


def assert_follows(folder, turns, policy, capacities, grain, *, each_turn=True):
    """Drive real blocks and compare decisions, tiers, payloads and counters; the store, closed."""
    expected = reference(turns, policy, capacities[0], grain)
    _, below = revision3.with_tiers(turns, expected, [lower_tiers.Tier("CXL", capacities[1]), lower_tiers.Tier("NVMe", capacities[2])])
    where = by_turn(turns, expected, capacities)
    store = open_store(folder, 64, *capacities)
    everywhere = [(drive.PREFIX, position) for position in range(turns.prefix_blocks)]
    everywhere += [(session, position) for session, whole in enumerate(turns.final_blocks.tolist()) for position in range(whole)]

    def compare(turn, driven):
        tiers = next(where)
        for block in everywhere:
            identity = drive.block_identity(*block)
            copies = driven.copies(identity)
            assert copies == tuple(tier for tier in Tier if block in tiers[tier]), (turn, block)
            assert not copies or bytes(driven.read(identity)) == drive.made(identity, 64)

    driven = drive.replay(turns, drive.policy_in_records(policy, turns, store, grain), store, compare if each_turn else None)
    assert driven.residency.evicted == expected.evicted
    for field in ("hits", "prefix_hits", "streamed", "kept"):
        assert getattr(driven.residency, field).tolist() == getattr(expected, field).tolist(), field
    assert driven.residency.missing == expected.missing
    for field in ("fetched", "recomputed", "demoted", "written"):
        assert getattr(driven.below, field).tolist() == getattr(below, field).tolist(), field
    assert not store.table.records["pins"].any()
    store.close()
    return store, driven


@pytest.mark.parametrize("grain", GRAINS)
def test_equals_revision3_on_generated_workloads(fast_folder, policy, grain):
    """Budgets under which every turn streams, most do, and few do; three seeds."""
    for seed, capacities in ((1, (4, 20, 30)), (2, (25, 0, 40)), (3, (60, 60, 50))):
        turns = synthetic.generate("zipf", seed, SMALL)
        assert_follows(fast_folder / f"{seed}-{capacities}", turns, policy, capacities, grain, each_turn=False)


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_every_block_is_where_revision3_has_it(workloads, data):
    """After each turn, in every tier, with the right bytes; on random workloads and capacities, none included."""
    turns = data.draw(workloads())
    capacities = data.draw(st.tuples(st.integers(0, 30), st.integers(0, 20), st.integers(0, 20)))
    policy, grain = data.draw(st.sampled_from(POLICIES)), data.draw(st.sampled_from(GRAINS))
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        assert_follows(Path(folder), turns, policy, capacities, grain)


@pytest.mark.parametrize("named", eviction.NAMES.values(), ids=lambda named: named.slug)
def test_every_policy_of_the_family_drives_unchanged(fast_folder, named):
    """State of their own, as they are; the blocks follow."""
    turns, hbm_blocks = synthetic.generate("zipf", 3, SMALL), 60
    expected = revision3.replay_edges(turns, named.build(hbm_blocks, **revision3.trace_knowledge(turns)), hbm_blocks)
    store = open_store(fast_folder, 64, hbm_blocks, 80, 0)
    driven = drive.replay(turns, named.build(hbm_blocks, **revision3.trace_knowledge(turns)), store)
    assert driven.residency.evicted == expected.evicted
    assert driven.residency.hits.tolist() == expected.hits.tolist()
    _, below = revision3.with_tiers(turns, expected, [lower_tiers.Tier("CXL", 80)])
    assert driven.below.fetched[:1].tolist() == below.fetched.tolist()
    assert driven.below.written[:1].tolist() == below.written.tolist()
    store.close()


@pytest.mark.parametrize("asked", [*POLICIES, FIFO, SIEVE, S3FIFO, MIN], ids=lambda policy: policy.slug + "-persistent" * policy.persistent)
def test_equals_the_references_request_by_request(opened, asked):
    for seed, hbm_blocks in ((1, 0), (1, 1), (2, 30), (3, 90)):
        turns, victims = synthetic.generate("zipf", seed, SMALL), []
        hits = requests.replay(turns, asked, hbm_blocks, lambda turn, block: victims.append((turn, block)))  # noqa: B023
        store = opened(hbm_blocks, 0, 0)
        found, driven_victims = drive.replay_requests(turns, asked, store)
        assert found.tolist() == hits.tolist()
        assert driven_victims == victims
        assert store.tiers[HBM].used == min(hbm_blocks, len(set(turns.requests.tolist())))


def test_traffic_is_counted_by_the_definitions(fast_folder):
    """Bytes moved against the ledger of SPEC §8, fed with the same events; nothing is streamed and no tier drops anything."""
    turns = synthetic.generate("zipf", 4, SMALL)
    hbm_blocks, ledger = int((turns.read_blocks + turns.growth_blocks).max()), Ledger()
    store, driven = assert_follows(fast_folder, turns, LRU, (hbm_blocks, 10_000, 0), "block", each_turn=False)
    residency, made = driven.residency, set()
    evicted = {turn: [] for turn in range(len(turns.session))}
    for turn, *interval in residency.evicted:
        evicted[turn].append(interval)
    for turn, session in enumerate(turns.session.tolist()):
        for owner, first, stop in evicted[turn]:
            for position in range(first, stop):
                ledger.demote((owner, position))
        missing = {position for first, stop in residency.missing[turn] for position in range(first, stop)}
        for position in range(residency.kept[turn]):
            block = (session, position)
            if block not in made:
                made.add(block)
                ledger.make(block)
            elif position in missing:
                ledger.promote(block)
    expected = ledger.traffic()
    assert (store.promotions, store.demotions) == (expected.promotions, expected.demotions)
    assert store.free_demotions == sum(stop - first for *_, first, stop in residency.evicted) - expected.demotions > 0
    assert store.moved_bytes(None, HBM) == 64 * (len(made) + turns.prefix_blocks)


def rotation(sessions, rounds):
    """Sessions of four blocks, read in turn."""
    return Turns(0, np.full(sessions, 4), np.tile(np.arange(sessions), rounds), np.zeros(sessions * rounds, dtype=np.int64))


@pytest.mark.parametrize("grain", GRAINS)
def test_state_in_records_survives_eviction_or_does_not(opened, grain):
    """Three sessions take turns where two fit: every turn misses. Kept counts are all reads, dropped ones those since the admission."""
    for persistent, expected in ((True, [4, 4, 4]), (False, [None, 1, 1])):
        store, turns = opened(8, 0, 0), rotation(3, rounds=4)
        driven = drive.replay(turns, drive.policy_in_records(Policy("lfu", persistent=persistent), turns, store, grain), store)
        states = [store.state(drive.block_identity(session, 0)) for session in range(3)]
        assert [state and state.count for state in states] == expected
        assert [store.lookup(drive.block_identity(session, 3)) for session in range(3)] == [None, HBM, HBM]
        assert not driven.residency.hits.any()


def test_records_know_the_last_touch_under_lru(opened):
    store, turns = opened(8, 0, 0), rotation(3, rounds=2)
    drive.replay(turns, drive.policy_in_records(LRU, turns, store, "session"), store)
    assert [store.state(drive.block_identity(session, 0)) for session in range(3)] == [(0.0, turn, 2) for turn in (3, 4, 5)]


def test_a_policy_that_names_what_is_read_is_refused(opened):
    class Wrong(eviction.Lru):
        def victim(self, pinned):
            return next(edge for edge in self.blocks if edge in pinned)

    turns = replace(rotation(2, rounds=2), session=np.array([0, 1, 0, 0]), decode_tokens=np.array([0, 0, 0, 16]))
    with pytest.raises(Pinned, match="for a copy that leaves HBM"):
        drive.replay(turns, Wrong(8), opened(8, 0, 0))


def test_other_policies_have_no_state_in_records(opened):
    turns = synthetic.generate("zipf", 1, SMALL)
    with pytest.raises(ValueError, match="policy 'sieve': expected one of lru, lfu, ema"):
        drive.policy_in_records(SIEVE, turns, opened(1, 0, 0), "session")


def test_a_published_budget(fast_folder):
    """8 GiB of HBM and 32 of CXL in blocks, with payloads of 64 bytes: the first turns of the published workload."""
    turns = synthetic.generate("zipf", 1)
    turns = replace(turns, session=turns.session[:40], decode_tokens=turns.decode_tokens[:40])
    capacities = (capacity_blocks(8), capacity_blocks(32), 2_000)
    _, driven = assert_follows(fast_folder, turns, ema(0.15, persistent=True), capacities, "session", each_turn=False)
    assert len(driven.residency.evicted) > 10
    assert driven.below.fetched[0].sum() > 100


@pytest.mark.exhaustive
@pytest.mark.parametrize("grain", GRAINS)
def test_the_published_workload(fast_folder, policy, grain):
    """All 2,500 turns at 32 GiB over 512 GiB, by session; 150 turns block by block."""
    turns = synthetic.generate("zipf", 1)
    if grain == "block":
        turns = replace(turns, session=turns.session[:150], decode_tokens=turns.decode_tokens[:150])
    capacities = (capacity_blocks(32), capacity_blocks(512), 1_000)
    assert_follows(fast_folder, turns, policy, capacities, grain, each_turn=False)
