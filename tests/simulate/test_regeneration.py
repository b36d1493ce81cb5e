"""Cost of a block by position, the choice against it, and what a hole drags in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.simulate import regeneration
from kvtier.simulate.metrics import FETCH_S, RECOMPUTE_S
from kvtier.simulate.regeneration import Compute, Where, choose, regenerate, whole_context

RESIDENT, TIER, ABSENT = Where
LLAMA = Compute()
PLAIN = Compute(parameters=1, layers=0, hidden=0, tflops=32e-12)
"""A block takes one second wherever it stands."""


def test_first_block_costs_the_linear_term():
    assert LLAMA.run_s(0, 1) == RECOMPUTE_S


def test_attention_by_hand():
    """At token 131,072, block 8,192: 4 · 80 · 8,192 · 16 · 131,072 FLOP on top of 2.24 TFLOP, 2.45 times them."""
    assert LLAMA.run_flop(8192, 8193) == 2 * 70 * 10**9 * 16 + 4 * 80 * 8192 * 16 * 131_072
    assert LLAMA.run_s(8192, 8193) / LLAMA.run_s(0, 1) == pytest.approx(3.454, abs=5e-4)


@given(st.integers(0, 9000), st.integers(0, 200))
def test_closed_form_is_the_sum(first, blocks):
    assert LLAMA.run_flop(first, first + blocks) == sum(LLAMA.run_flop(block, block + 1) for block in range(first, first + blocks))


@given(st.integers(0, 9000), st.integers(0, 300), st.floats(0, 0.1))
def test_choice_is_the_cheaper_of_each_block(first, blocks, fetch_s):
    stop = first + blocks
    cut = choose(first, stop, fetch_s, LLAMA)
    assert [block >= cut for block in range(first, stop)] == [fetch_s < LLAMA.run_s(block, block + 1) for block in range(first, stop)]


def test_tier_slower_than_the_gpu_is_never_chosen():
    assert choose(0, 500, LLAMA.run_s(499, 500), LLAMA) == 500
    assert choose(0, 500, RECOMPUTE_S, PLAIN) == 0
    assert choose(0, 500, 1.0, PLAIN) == 500, "a tie goes to the GPU"


def test_assumed_tier_is_chosen_from_the_first_block():
    assert choose(0, 8192, FETCH_S, LLAMA) == 0


def test_hole_needs_what_stands_before_it():
    """Block 4 again: 0 is resident, 1 and 2 come from the tier, 3 is nowhere."""
    plan = regenerate(4, [RESIDENT, TIER, TIER, ABSENT, ABSENT, ABSENT], 0.25, PLAIN)
    assert (plan.fetched, plan.recomputed) == ((1, 2), (3, 4))
    assert (plan.fetch_s, plan.recompute_s, plan.overlapped_s) == (0.5, 2.0, 2.5)


def test_hole_with_its_context_costs_itself():
    plan = regenerate(3, [RESIDENT] * 3 + [TIER], 0.25, LLAMA)
    assert (plan.fetched, plan.recomputed, plan.recompute_s) == ((), (3,), LLAMA.run_s(3, 4))


def test_hole_near_the_end_of_a_lost_context_costs_the_context():
    assert regenerate(99, [ABSENT] * 100, 0.25, LLAMA).recompute_s == LLAMA.run_s(0, 100)


def test_computing_hides_fetches_of_what_comes_after():
    """0 is computed while 1 and 2 are fetched: one second of link and GPU each."""
    assert whole_context([ABSENT, TIER, TIER], 0.5, PLAIN).overlapped_s == 1.0
    # The other way round block 2 waits for both fetches.
    assert whole_context([TIER, TIER, ABSENT], 0.5, PLAIN).overlapped_s == 2.0


@given(st.lists(st.sampled_from(Where), max_size=20), st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_overlap_is_between_the_longer_and_the_sum(where, fetch_s):
    plan = whole_context(where, fetch_s, PLAIN)
    assert max(plan.fetch_s, plan.recompute_s) <= plan.overlapped_s <= plan.fetch_s + plan.recompute_s
    assert sorted((*plan.fetched, *plan.recomputed)) == [block for block, place in enumerate(where) if place is not RESIDENT]
    assert fetch_s < 1.0 or not plan.fetched


@pytest.mark.parametrize(
    "refused",
    [
        lambda: LLAMA.run_flop(3, 2),
        lambda: LLAMA.run_flop(-1, 2),
        lambda: Compute(tflops=0.0),
        lambda: Compute(layers=-1),
        lambda: choose(0, 3, -1.0, LLAMA),
        lambda: choose(3, 0, 1.0, LLAMA),
        lambda: regenerate(2, [RESIDENT], 1.0, LLAMA),
        lambda: regenerate(0, [ABSENT], -1.0, LLAMA),
        lambda: regeneration.whole_context([ABSENT], -1.0, LLAMA),
    ],
)
def test_refuses(refused):
    with pytest.raises(ValueError, match="expected"):
        refused()
