"""A managed table against the simulator's policies, a plain dictionary, and the store it is made from."""

import random

import numpy as np
import pytest

from kvtier.blocks.arena import Full, Slots
from kvtier.blocks.managed import NOWHERE, POLICIES, Managed
from kvtier.blocks.record import NO_SLOT, RECORD, Tier, identity_of
from kvtier.blocks.table import Table
from kvtier.errors import InputError
from kvtier.simulate import eviction

ALPHA = 0.15


def identities(*blocks):
    return np.array([(block % 5, block) for block in blocks], dtype=np.int64).reshape(-1, 2)


def blocks_of(found):
    assert all(high == low % 5 for high, low in found.tolist())
    return found[:, 1].tolist()


def managed_of(policy, blocks, capacity):
    """Known blocks, none in HBM."""
    records = np.zeros(blocks, dtype=RECORD)
    records["identity"] = identities(*range(blocks)).view("V16").reshape(-1)
    records["slot"] = NO_SLOT
    table, slots = Table(blocks), Slots("HBM", capacity, 64)
    table.extend(records)
    return Managed(table, slots, policy, ALPHA), table, slots


def simulated(policy, capacity):
    return {
        "lru": lambda: eviction.Lru(capacity),
        "lfu": lambda: eviction.Lfu(capacity, persistent=True),
        "ema": lambda: eviction.Ema(capacity, ALPHA, persistent=True),
    }[policy]()


def row_of(table, block):
    return table.row(identity_of(block % 5, block))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(6))
def test_same_victims_as_the_simulators_policy(policy, seed):
    """Paths of a few blocks, pinned while there is no room for them: every victim, in order, and what is resident in the end."""
    rng = random.Random(seed)
    blocks, capacity = 40, 12
    managed, table, slots = managed_of(policy, blocks, capacity)
    expected, victims, turn = simulated(policy, capacity), [[], []], 0
    for turn in range(400):
        path = rng.sample(range(blocks), rng.randint(1, 4))
        rows = [row_of(table, block) for block in path]
        resident = [block for block in path if block in expected.blocks]
        for block in path:
            expected.asked(block, turn, block in resident)
        table.pins[rows] += 1
        short = len(path) - len(resident) - slots.free_slots
        assert slots.free_slots == capacity - len(expected.blocks)
        if short > 0:
            victims[0] += blocks_of(managed.evict(short))
            for _ in range(short):
                victims[1].append(expected.victim(set(path)))
                expected.lost(victims[1][-1], 0)
        # The deepest first, as one call for all of them would.
        for block in reversed(path):
            (managed.touch if block in resident else managed.readmit)(identities(block), turn)
        for block in path:
            expected.read(block, turn, 1)
        table.pins[rows] -= 1
    assert victims[0] == victims[1]
    assert len(victims[0]) > 200
    tiers = managed.lookup(identities(*range(blocks)))
    assert {block for block in range(blocks) if tiers[block] == Tier.HBM} == set(expected.blocks)
    assert all(tiers[block] == NOWHERE for block in range(blocks) if block not in expected.blocks)
    held = table.slot[: len(table), Tier.HBM]
    assert sorted([*held[held != NO_SLOT], *slots.stack[: slots.free_slots]]) == list(range(capacity))


@pytest.mark.parametrize("policy", POLICIES)
def test_made_again_from_records_it_goes_on(policy):
    """State is in the records and the order follows from it: victims are those of the table that went on."""
    rng = random.Random(3)
    managed, table, slots = managed_of(policy, 64, 64)
    managed.readmit(identities(*range(64)), 0)
    for turn in range(1, 200):
        managed.touch(identities(rng.randrange(64)), turn)
    again = Managed(table, slots, policy, ALPHA)
    touched = [row_of(table, block) for block in range(64)]
    assert len(set(table.touched[touched].tolist())) > 50
    order = blocks_of(again.evict(64))
    state = {
        "lru": lambda row: table.touched[row],
        "lfu": lambda row: (table.count[row], table.touched[row]),
        "ema": lambda row: (table.score[row] * (1 - ALPHA) ** (200 - int(table.touched[row])), table.touched[row]),
    }[policy]
    keys = [state(row_of(table, block)) for block in order]
    assert keys == sorted(keys)
    assert sorted(order) == list(range(64))


@pytest.mark.parametrize("policy", POLICIES)
def test_blocks_of_one_call_leave_the_last_first(policy):
    managed, *_ = managed_of(policy, 10, 10)
    managed.readmit(identities(4, 7, 1, 9), 0)
    assert blocks_of(managed.evict(9)) == [9, 1, 7, 4]


@pytest.mark.parametrize("policy", POLICIES)
def test_pinned_blocks_are_passed_over_and_keep_their_place(policy):
    managed, table, slots = managed_of(policy, 6, 6)
    for turn, block in enumerate(range(6)):
        managed.readmit(identities(block), turn)
    pinned = [row_of(table, block) for block in (0, 2, 5)]
    table.pins[pinned] = 1
    assert blocks_of(managed.evict(2)) == [1, 3]
    assert blocks_of(managed.evict(5)) == [4]
    assert slots.free_slots == 3
    assert len(managed.evict(1)) == 0
    table.pins[pinned] = 0
    assert blocks_of(managed.evict(6)) == [0, 2, 5]


@pytest.mark.parametrize("policy", POLICIES)
def test_state_survives_eviction(policy):
    managed, table, _ = managed_of(policy, 3, 1)
    managed.readmit(identities(2), 5)
    managed.evict(1)
    managed.touch(identities(2), 6)
    row = row_of(table, 2)
    assert (table.count[row], table.touched[row], table.slot[row, Tier.HBM]) == (2, 6, NO_SLOT)
    assert table.score[row] == (ALPHA + (1 - ALPHA) * (ALPHA * (1 - ALPHA)) if policy == "ema" else 0)
    assert len(managed.evict(1)) == 0


def test_lookup_names_the_fastest_tier():
    managed, table, _ = managed_of("lru", 4, 2)
    table.slot[row_of(table, 1)] = NO_SLOT, 7, 8
    table.slot[row_of(table, 2), Tier.NVME] = 0
    managed.readmit(identities(0), 0)
    assert managed.lookup(identities(0, 1, 2, 3, 99)).tolist() == [Tier.HBM, Tier.CXL, Tier.NVME, NOWHERE, NOWHERE]


def test_refusals():
    managed, _, slots = managed_of("ema", 4, 2)
    with pytest.raises(InputError, match="identity: found no record"):
        managed.touch(identities(1, 99), 0)
    managed.readmit(identities(0), 0)
    with pytest.raises(InputError, match="copy: found one in HBM"):
        managed.readmit(identities(0), 1)
    with pytest.raises(InputError, match="identity: found no record"):
        managed.readmit(identities(99), 1)
    assert slots.free_slots == 1
    with pytest.raises(Full, match="free slots: found 1, expected 2 or more"):
        managed.readmit(identities(1, 2), 1)
    with pytest.raises(InputError, match="policy: found 'fifo'"):
        managed_of("fifo", 4, 2)
    with pytest.raises(InputError, match="alpha: found 1"):
        Managed(Table(1), Slots("HBM", 1, 64), "ema", 1)


def test_bytes_of_a_block_in_full():
    """64 B of record, 8 B of index, 4 B of slot, and 8 B of ring or 24 B of heap."""
    assert managed_of("lru", 1000, 1000)[0].nbytes == 1000 * 84 + 8
    assert managed_of("lfu", 1000, 1000)[0].nbytes == managed_of("ema", 1000, 1000)[0].nbytes == 1000 * 100 + 8
