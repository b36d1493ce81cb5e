"""Each metric of the formal core on runs small enough to count."""

import numpy as np
import pytest

from kvtier.simulate import lossless, traffic
from kvtier.simulate.policies import LRU, ema
from kvtier.simulate.traffic import Ledger, Traffic
from kvtier.workload import synthetic
from kvtier.workload.turns import BLOCK_BYTES


def test_one_round_trip_costs_two():
    """Made, demoted, promoted, read: one byte down and one byte up for each needed byte, and no way to do with less."""
    ledger = Ledger()
    ledger.make(0)
    assert ledger.demote(0)
    ledger.promote(0)
    ledger.read(0)
    assert ledger.traffic().a_traffic == 2.0
    assert ledger.traffic().a_read == 1.0


def test_second_demotion_is_a_free_discard():
    """Two round trips of a block that is written once: three moves, not four."""
    ledger = Ledger()
    ledger.make(0)
    for _ in range(2):
        ledger.demote(0)
        ledger.promote(0)
        ledger.read(0)
    assert not ledger.demote(0)
    assert (ledger.promoted, ledger.demoted) == ({0: 2}, {0: 1})
    assert ledger.traffic().a_traffic == 3.0


def test_dropped_copy_is_written_again():
    ledger = Ledger()
    ledger.make(0)
    ledger.demote(0)
    ledger.promote(0)
    ledger.drop(0)
    assert ledger.demote(0)


def test_block_that_stays_costs_nothing():
    ledger = Ledger()
    for block in (0, 1):
        ledger.make(block)
    ledger.demote(1)
    ledger.promote(1)
    for block in (0, 0, 0, 1):
        ledger.read(block)
    found = ledger.traffic(tokens=8)
    assert (found.a_traffic, found.a_read) == (1.0, 0.5)
    assert found.reuse_ratio == 4 / 2
    assert found.tier_bytes_per_token == 2 * BLOCK_BYTES / 8


@pytest.mark.parametrize(
    ("refused", "words"),
    [(lambda one: one.read(0), "read"), (lambda one: one.promote(0), "promoted"), (lambda one: one.demote(0), "demoted")],
)
def test_ledger_refuses_what_cannot_happen(refused, words):
    with pytest.raises(ValueError, match=words):
        refused(Ledger())


def test_ratios_of_nothing_are_none():
    empty = Traffic(0, 0, 0, 0, 0)
    assert (empty.a_read, empty.a_traffic, empty.reuse_ratio, empty.tier_bytes_per_token) == (None,) * 4
    assert traffic.prefetch_accuracy(0, 0) is None


@pytest.mark.parametrize("policy", [LRU, ema(0.15)])
def test_counts_agree_with_the_ledger(policy):
    """A run under lossless residency over a tier that drops nothing, event by event and from its counts."""
    turns = synthetic.generate("zipf", 2, synthetic.Shape(sessions=8, turns=80, prefix_tokens=32, context_tokens=(64, 320)))
    hbm_blocks, leaving, ledger = int(turns.first_block[-1]) // 2, [], Ledger()
    counts = lossless.simulate(turns, policy, hbm_blocks, lambda *interval: leaving.append(interval))
    assert not counts.over_budget_turns
    assert counts.evictions.sum() > traffic.first_demotions(leaving, 80).sum() > 0

    made, resident, resident_reads, context = set(), set(), [], turns.context_blocks.copy()
    for turn, (session, growth) in enumerate(zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True)):
        first = int(turns.first_block[session])
        read = [*range(turns.prefix_blocks), *range(first, first + context[session])]
        resident_reads.append(len(resident & set(read)))
        for block in read:
            if block not in made:
                ledger.make(block)
            elif block not in resident:
                ledger.promote(block)
            ledger.read(block)
        context[session] += growth
        grown = range(first + context[session] - growth, first + context[session])
        for block in grown:
            ledger.make(block)
        made.update(read, grown)
        resident.update(read, grown)
        for _, other, low, high in (event for event in leaving if event[0] == turn):
            for position in range(low, high):
                ledger.demote(int(turns.first_block[other]) + position)
                resident.remove(int(turns.first_block[other]) + position)

    promoted = counts.misses - turns.compulsory_blocks
    found = traffic.from_counts(turns, counts.hits, promoted, traffic.first_demotions(leaving, 80))
    expected = ledger.traffic(int(turns.decode_tokens.sum()))
    assert (found.promotions, found.demotions, found.unique) == (expected.promotions, expected.demotions, expected.unique)
    assert found.resident_reads == sum(resident_reads)


def test_needed_blocks_are_what_counted_turns_read(make_turns):
    """Prefix 2; session 0 grows by one block after each turn, session 1 is read early alone."""
    turns = make_turns([1, 0, 0], [4, 5], prefix=2, decode=[0, 16, 16])
    assert [traffic.needed_blocks(turns, first) for first in (0, 1, 3)] == [2 + 5 + 5, 2 + 5, 0]


def test_counted_turns_alone_count(make_turns):
    turns = make_turns([0, 0], [4], decode=[16, 32])
    found = traffic.from_counts(turns, np.array([0, 3]), np.array([0, 2]), np.array([7, 1]), counted_from=1)
    assert found == Traffic(promotions=2, demotions=1, unique=5, resident_reads=3, tokens=32)


def test_byte_time():
    """Three blocks for two seconds, none for one, one for half a second."""
    assert traffic.hbm_byte_seconds([3, 0, 1], [0.0, 2.0, 3.0, 3.5], block_bytes=10) == 10 * (6.0 + 0.5)
    assert traffic.hbm_byte_seconds([], [1.0]) == 0.0


def test_accuracy():
    assert traffic.prefetch_accuracy(3, 4) == 0.75


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Traffic(-1, 0, 0, 0, 0),
        lambda: traffic.prefetch_accuracy(5, 4),
        lambda: traffic.prefetch_accuracy(-1, 4),
        lambda: traffic.hbm_byte_seconds([1], [0.0]),
        lambda: traffic.hbm_byte_seconds([1], [1.0, 0.0]),
        lambda: traffic.hbm_byte_seconds([-1], [0.0, 1.0]),
    ],
)
def test_refuses(refused):
    with pytest.raises(ValueError, match=r"expected|have"):
        refused()


def test_refuses_counts_of_another_run(make_turns):
    with pytest.raises(ValueError, match="promoted: expected 2 turns, found 1"):
        traffic.from_counts(make_turns([0, 0], [4]), np.zeros(2), np.zeros(1), np.zeros(2))
