"""Queues against closed forms, the model against hand-made runs, and what must hold on every run."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import lossless, prefetch, queueing, revision2, traffic
from kvtier.simulate.metrics import DECODE_S, FETCH_S, RECOMPUTE_S
from kvtier.simulate.policies import LRU, ema
from kvtier.simulate.queueing import FREE, Decode, Link, Prefetch, Work, replay
from kvtier.simulate.regeneration import Compute
from kvtier.workload import synthetic
from kvtier.workload.turns import BLOCK_BYTES, BLOCK_TOKENS

SMALL = synthetic.Shape(sessions=12, turns=150, prefix_tokens=64, context_tokens=(64, 640))
SECOND_A_BLOCK = Link(BLOCK_BYTES / 1e9, 0.0)
"""A block takes one second."""

STEP = Decode(fixed_s=1.0)
"""A token takes one second."""


def work(fetched=(), recompute_s=None, tokens=None, demoted=None, hits=None):
    turns = len(fetched)
    none = np.zeros(turns, dtype=np.int64)
    whole = (np.array(values, dtype=np.int64) if values is not None else none for values in (hits, fetched, demoted, tokens))
    hits, fetched, demoted, tokens = whole
    return Work(none, hits, fetched, none, demoted, tokens, np.zeros(turns) if recompute_s is None else np.array(recompute_s))


def small(policy=LRU, hbm_blocks=60, seed=1):
    """A small workload under lossless residency, and its work over a tier that drops nothing."""
    turns, leaving = synthetic.generate("zipf", seed, SMALL), []
    counts = lossless.simulate(turns, policy, hbm_blocks, lambda *interval: leaving.append(interval))
    return turns, Work.lossless(turns, counts, traffic.first_demotions(leaving, len(turns.session)))


def standard_error(values, batches=50):
    """Of the mean of a series with short memory, from the spread of means of batches far longer than a busy period."""
    means = np.array(values).reshape(batches, -1).mean(axis=1)
    return means.std(ddof=1) / math.sqrt(batches)


# Queues with closed forms.


@pytest.mark.parametrize(("services", "expected"), [("fixed", 0.5), ("exponential", 1.0)])
def test_waits_as_pollaczek_and_khinchine_say(services, expected):
    """M/D/1 and M/M/1 at rho 0.5 wait rho S / 2(1 - rho) and rho S / (1 - rho); tolerance: four standard errors of batch means."""
    turns, service_s = 200_000, 2.0
    arrivals = queueing.poisson(turns, 0.5 / service_s, seed=7)
    times = np.full(turns, service_s) if services == "fixed" else np.random.default_rng(8).exponential(service_s, turns)
    run = replay(work(np.zeros(turns), recompute_s=times), arrivals, FREE)
    waits = (run.start - run.arrival) / service_s
    error = standard_error(waits)
    assert error < 0.02 * expected
    assert abs(waits.mean() - expected) < 4 * error


def test_link_is_the_queue_where_servers_abound():
    """M/D/1 again, now of transfers: a server for each turn, one link for all."""
    turns = 20_000
    run = replay(work(np.ones(turns)), queueing.poisson(turns, 0.5, seed=3), SECOND_A_BLOCK, servers=turns)
    waits = run.inward.started - run.inward.submitted
    assert abs(waits.mean() - 0.5) < 4 * standard_error(waits)
    assert run.summary()["utilisation_in"] == pytest.approx(0.5, abs=0.02)


@given(st.floats(0.05, 0.999), st.integers(1, 60))
def test_even_arrivals_below_capacity_never_wait(load, turns):
    run = replay(work(np.zeros(turns), recompute_s=np.full(turns, 3.0)), queueing.evenly(turns, load / 3.0), FREE)
    assert np.all(run.start - run.arrival <= 1e-12 * turns)


def test_bursts_wait_longer():
    turns, waits = 50_000, []
    for shape in (1.0, 0.25):
        arrivals = queueing.gamma(turns, 0.5, shape, seed=5)
        gaps = np.diff(arrivals)
        assert gaps.mean() == pytest.approx(2.0, rel=0.05)
        assert gaps.var() / gaps.mean() ** 2 == pytest.approx(1 / shape, rel=0.1)
        run = replay(work(np.zeros(turns), recompute_s=np.ones(turns)), arrivals, FREE)
        waits.append((run.start - run.arrival).mean())
    assert waits[1] > 2 * waits[0]


def test_arrivals_are_those_of_their_seed():
    first, again, other = (queueing.poisson(100, 2.0, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(first, queueing.gamma(100, 2.0, 1.0, 1))


# The model, by hand.


def test_costs_are_those_of_the_specification():
    assert Link(64.0).transfer_s(1) == pytest.approx(FETCH_S, rel=1e-15)
    assert Link(64.0, 0.0).transfer_s(10) == pytest.approx(10 * 81.92e-6, rel=1e-15)
    assert Decode().steps_s(3, 1000) == 3 * DECODE_S


def test_decode_reads_what_it_has_written():
    """Steps over 16, 17 and 18 tokens: 51 tokens' worth of KV."""
    decode = Decode(fixed_s=0.0, per_gib_s=2**30 / BLOCK_BYTES * BLOCK_TOKENS)
    assert decode.steps_s(3, 1) == pytest.approx(51.0)


def test_turn_by_hand():
    """Fetch 2, recompute 5, four tokens; the second turn arrives meanwhile and fetches 3."""
    run = replay(work([2, 3], [5.0, 0.0], [4, 1], demoted=[6, 0]), [0.0, 1.0], SECOND_A_BLOCK, STEP)
    assert (run.ready.tolist(), run.first_token.tolist(), run.completion.tolist()) == ([7.0, 14.0], [8.0, 15.0], [11.0, 15.0])
    assert (run.start.tolist(), run.stall.tolist()) == ([0.0, 11.0], [7.0, 3.0])
    summary = run.summary()
    assert summary["stall_ms_per_token"] == pytest.approx(1e3 * 10 / 5)
    assert summary["ttft_ms_mean"] == pytest.approx(1e3 * (8 + 14) / 2)
    assert (summary["utilisation_in"], summary["utilisation_out"]) == (pytest.approx(5 / 15), pytest.approx(6 / 15))
    assert (summary["queue_mean"], summary["queue_max"]) == (pytest.approx(10 / 15), 1)
    assert (summary["late_in"], summary["late_out"]) == (2, 0)


def test_overlap_keeps_the_longer_part():
    run = replay(work([2], [5.0]), [0.0], SECOND_A_BLOCK, overlap=True)
    assert run.stall.tolist() == [5.0]
    assert replay(work([7], [5.0]), [0.0], SECOND_A_BLOCK, overlap=True).stall.tolist() == [7.0]


def test_two_servers_share_the_link():
    run = replay(work([3, 3]), [0.0, 0.0], SECOND_A_BLOCK, servers=2)
    assert run.stall.tolist() == [3.0, 6.0]
    assert run.summary()["link_in_max"] == 2


def test_prefetch_takes_what_fits_the_window():
    """Four tokens of decoding carry four of the six blocks that the next turn fetches."""
    run = replay(work([0, 6], tokens=[4, 1]), [0.0, 1.0], SECOND_A_BLOCK, STEP, prefetch=Prefetch())
    assert run.prefetched.tolist() == run.prefetched_used.tolist() == [0, 4]
    assert run.stall.tolist() == [0.0, 2.0]
    assert run.inward.late.tolist() == [False, True]


def test_prefetch_waits_for_an_arrival_where_it_must():
    known, arrived = (
        replay(work([0, 6], tokens=[4, 1]), [0.0, 3.0], SECOND_A_BLOCK, STEP, prefetch=Prefetch(known=known))
        for known in ("always", "arrived")
    )
    assert (known.prefetched[1], arrived.prefetched[1]) == (4, 1)


def test_wrong_prefetch_delays_the_right_fetch():
    """Two useless blocks that were not limited to the window stand before the fetch."""
    guess = Prefetch([np.array([], bool), np.array([False, False])], within_window=False)
    run = replay(work([0, 1], tokens=[1, 1]), [0.0, 0.0], SECOND_A_BLOCK, STEP, prefetch=guess)
    assert run.stall.tolist() == [0.0, 2.0]
    assert run.summary()["prefetch_accuracy"] == 0.0


def test_sustainable_and_not_hidden():
    """Six blocks in eleven seconds of decoding, but all six after a turn of one second."""
    demand = work([0, 0, 6], tokens=[9, 1, 1])
    run = replay(demand, [0.0, 0.0, 0.0], SECOND_A_BLOCK, STEP, prefetch=Prefetch(within_window=False))
    assert run.demanded_gbps(run.inward) == pytest.approx(6 / 11 * SECOND_A_BLOCK.bandwidth_gbps)
    assert run.sustainable
    assert not run.hidden
    assert run.inward.late.tolist() == [True]
    assert run.stall.tolist() == [0.0, 0.0, 5.0]


def test_hidden_and_not_sustainable():
    """Six blocks in three seconds of decoding, all there in time because nobody came for a while."""
    run = replay(work([0, 6], tokens=[2, 1]), [0.0, 100.0], SECOND_A_BLOCK, STEP, prefetch=Prefetch(within_window=False))
    assert run.hidden
    assert not run.sustainable
    assert run.stall.tolist() == [0.0, 0.0]


def test_demand_without_decoding_is_sustained_by_nothing():
    assert not replay(work([1]), [0.0], SECOND_A_BLOCK).sustainable
    assert replay(work([0]), [0.0], SECOND_A_BLOCK).sustainable


# What holds on every run.


@st.composite
def runs(draw):
    turns = draw(st.integers(1, 30))

    def lists(values):
        return draw(st.lists(values, min_size=turns, max_size=turns))

    demand = work(
        lists(st.integers(0, 5)), lists(st.floats(0, 5)), lists(st.integers(0, 8)), lists(st.integers(0, 5)), lists(st.integers(0, 5))
    )
    arrivals = np.cumsum(lists(st.floats(0, 9)))
    ahead = draw(
        st.sampled_from([None, *(Prefetch(known=known, within_window=cut) for known in ("always", "arrived") for cut in (True, False))])
    )
    return replay(demand, arrivals, SECOND_A_BLOCK, STEP, servers=draw(st.integers(1, 3)), overlap=draw(st.booleans()), prefetch=ahead)


@given(runs())
@settings(deadline=None)
def test_every_run(run):
    sojourns, held = run.little()
    assert sojourns == pytest.approx(held, rel=1e-12, abs=1e-9)
    for transfers in (run.inward, run.outward):
        assert math.fsum(transfers.finished - transfers.submitted) == pytest.approx(
            queueing.integral(transfers.submitted, transfers.finished), rel=1e-12, abs=1e-9
        )
        assert np.all(np.diff(transfers.submitted) >= 0)
        assert np.all(transfers.started[1:] >= transfers.finished[:-1])
    assert np.all(run.arrival <= run.start)
    assert np.all(np.diff(run.start) >= 0)
    assert np.all((run.start <= run.ready) & (run.ready <= run.first_token) & (run.first_token <= run.completion))
    assert run.inward.blocks.sum() == run.work.fetched.sum() + run.prefetched.sum() - run.prefetched_used.sum()
    assert run.outward.blocks.sum() == run.work.demoted.sum()
    assert queueing.most_at_once(run.start, run.completion) <= run.servers
    summary = run.summary()
    assert 0 <= summary["utilisation_in"] <= 1 + 1e-12
    assert summary["stall_ms_p50"] <= summary["stall_ms_p95"] <= summary["stall_ms_p99"]


@given(st.integers(0, 3), st.sampled_from([None, Prefetch()]))
@settings(max_examples=8, deadline=None)
def test_renumbering_sessions_changes_nothing(seed, ahead):
    turns = synthetic.generate("zipf", seed, SMALL)
    again = turns.renumbered(np.random.default_rng(seed).permutation(SMALL.sessions))
    arrivals, summaries = queueing.poisson(SMALL.turns, 0.2, seed), []
    for workload in (turns, again):
        demand = Work.lossless(workload, lossless.simulate(workload, LRU, 60))
        summaries.append(replay(demand, arrivals, Link(32.0), prefetch=ahead).summary())
    assert summaries[0] == summaries[1]


# Tiers.


def test_tier_of_one_block_costs_time_to_first_token():
    """Against a tier that has room for everything, at each bandwidth of the range."""
    turns = synthetic.generate("zipf", 1, SMALL)
    arrivals = queueing.poisson(SMALL.turns, 0.2, seed=1)
    one, unbounded = (
        queueing.sweep(Work.of(turns, revision2.simulate(turns, LRU, 60, blocks)), arrivals) for blocks in (1, int(turns.first_block[-1]))
    )
    assert [row["bandwidth_gbps"] for row in one] == [32.0, 64.0, 121.0]
    for poor, rich in zip(one, unbounded, strict=True):
        assert poor["ttft_ms_mean"] > 1.2 * rich["ttft_ms_mean"]


@pytest.mark.parametrize("policy", [LRU, ema(0.15)])
def test_free_tier_stalls_as_unbounded_hbm(policy):
    turns, demand = small(policy)
    everything = lossless.simulate(turns, policy, int(turns.first_block[-1]))
    assert demand.fetched.sum() > 0
    arrivals = queueing.poisson(SMALL.turns, 0.2, seed=1)
    tiered, unbounded = (replay(one, arrivals, FREE) for one in (demand, Work.lossless(turns, everything)))
    assert np.array_equal(tiered.stall, unbounded.stall)
    assert np.array_equal(tiered.first_token, unbounded.first_token)
    assert math.fsum(tiered.stall) == pytest.approx(RECOMPUTE_S * turns.compulsory_blocks.sum())


def test_tier_slower_than_the_gpu_is_never_used():
    _, demand = small()
    compute = Compute()
    slow, fast = (demand.positioned(compute, Link(bandwidth).transfer_s(1)) for bandwidth in (0.2, 32.0))
    assert slow.fetched.sum() == 0
    assert np.array_equal(slow.recomputed, demand.recomputed + demand.fetched)
    assert np.array_equal(fast.fetched, demand.fetched)
    assert np.array_equal(slow.hits + slow.recomputed, demand.hits + demand.fetched + demand.recomputed)


def test_choice_prices_by_position():
    """Between the cost of the first block and the last, the first are computed and the rest are fetched."""
    demand, compute = work([100], hits=[10]), Compute()
    chosen = demand.positioned(compute, compute.run_s(60, 61))
    assert (chosen.recomputed.tolist(), chosen.fetched.tolist()) == ([51], [49])
    assert chosen.recompute_s[0] == compute.run_s(10, 61)
    assert demand.positioned(compute).recompute_s[0] == 0.0


def test_bandwidth_is_a_range():
    _, demand = small()
    rows = queueing.sweep(demand, queueing.poisson(SMALL.turns, 0.2, seed=1), counted_from=75)
    stalls = [row["stall_ms_per_token"] for row in rows]
    assert stalls == sorted(stalls, reverse=True)
    assert stalls[0] > stalls[-1]
    with pytest.raises(ValueError, match="range of two or more"):
        queueing.sweep(demand, queueing.evenly(SMALL.turns, 1.0), [64.0])


def test_prefetching_saves_stall_and_no_hit():
    _, demand = small()
    arrivals = queueing.poisson(SMALL.turns, 0.2, seed=1)
    none, oracle = (replay(demand, arrivals, Link(32.0), prefetch=ahead) for ahead in (None, Prefetch()))
    assert math.fsum(oracle.stall) < math.fsum(none.stall)
    assert oracle.summary()["prefetch_accuracy"] == 1.0
    assert none.summary()["prefetch_accuracy"] is None
    assert np.array_equal(oracle.work.hits, none.work.hits)


def test_a_rule_that_names_the_next_turn_is_the_oracle():
    turns, demand = small()
    named = Prefetch(prefetch.candidates(turns, LRU, 60, "next", 10**6))
    arrivals = queueing.poisson(SMALL.turns, 0.2, seed=1)
    assert (
        replay(demand, arrivals, Link(32.0), prefetch=named).summary()
        == replay(demand, arrivals, Link(32.0), prefetch=Prefetch()).summary()
    )


def test_rules_side_by_side():
    """The oracle saves most; a rule that guesses the session saves what its right guesses carry, and never a hit."""
    turns, demand = small(ema(0.15))
    rules = {rule: Prefetch(prefetch.candidates(turns, ema(0.15), 60, rule, 200)) for rule in ("next", "ema", "recent")}
    rows = queueing.compare_prefetch(demand, queueing.poisson(SMALL.turns, 0.2, seed=1), rules)
    assert len(rows) == 4 * 3
    at_32 = {row["rule"]: row for row in rows if row["bandwidth_gbps"] == 32.0}
    assert (at_32["none"]["stall_saved_ms"], at_32["none"]["prefetch_accuracy"]) == (0.0, None)
    assert at_32["next"]["prefetch_accuracy"] == 1.0
    assert at_32["next"]["stall_saved_ms"] > at_32["ema"]["stall_saved_ms"] > 0
    assert 0 < at_32["ema"]["prefetch_accuracy"] < 1


# Estimators and refusals.


@pytest.mark.parametrize(("percent", "value"), [(1, 1), (50, 2), (51, 3), (75, 3), (76, 4), (100, 4)])
def test_percentile_is_the_nearest_rank(percent, value):
    assert queueing.percentile([4, 2, 1, 3], percent) == value


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Link(0.0),
        lambda: Link(-1.0),
        lambda: Link(math.nan),
        lambda: Link(64.0, -0.1),
        lambda: Link(64.0).transfer_s(-1),
        lambda: Decode(fixed_s=-1.0),
        lambda: Decode(per_gib_s=-1.0),
        lambda: work([-1]),
        lambda: work([1], [-1.0]),
        lambda: work([1], [math.nan]),
        lambda: replace(work([1]), tokens=np.array([1, 2])),
        lambda: queueing.evenly(3, 0.0),
        lambda: queueing.poisson(3, -1.0, 1),
        lambda: queueing.gamma(3, 1.0, 0.0, 1),
        lambda: replay(work([1]), [0.0], FREE, servers=0),
        lambda: replay(work([1]), [math.inf], FREE),
        lambda: replay(work([1, 1]), [1.0, 0.0], FREE),
        lambda: replay(work([1]), [0.0, 1.0], FREE),
        lambda: replay(work([1]), [0.0], FREE, prefetch=Prefetch([np.array([True, True])])),
        lambda: replay(work([1]), [0.0], FREE, prefetch=Prefetch([])),
        lambda: replay(work([1]), [0.0], FREE).summary(1),
        lambda: Prefetch(known="never"),
        lambda: queueing.percentile([], 50),
        lambda: queueing.percentile([1], 0),
    ],
)
def test_refuses(refused):
    with pytest.raises(ValueError, match=r"expected|fetches"):
        refused()


def test_nothing_to_serve():
    run = replay(work([]), [], FREE)
    assert (run.horizon_s, run.little(), run.hidden, run.sustainable) == (0.0, (0.0, 0.0), True, True)
