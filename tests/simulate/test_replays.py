"""Rows of `kvtier simulate`: what is divided by what, what stands beside it, and what must hold."""

import numpy as np
import pytest

from kvtier.simulate import path_blocks, paths, replays, serving
from kvtier.simulate.eviction import NAMES
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.queueing import Link
from kvtier.simulate.serving import LinkedTier
from kvtier.workload import synthetic, traces
from kvtier.workload.synthetic import Shape
from kvtier.workload.traces import samples

SMALL = Shape(sessions=6, turns=40, prefix_tokens=64, context_tokens=(64, 400), decode_tokens=(8, 60), loop_sessions=4)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return traces.load(samples.write(tmp_path_factory.mktemp("samples"))["mooncake"])


def setting(trace, *tiers, **other):
    linked = tuple(LinkedTier(Tier(f"tier{index}", blocks), Link(64.0)) for index, blocks in enumerate(tiers))
    given = {"block_bytes": 1000, "counted_from": 0, "tiers": linked, "prefill": serving.AtRate(1000.0), "arrivals_s": trace.time_us / 1e6}
    return replays.Setting(**(given | other))


@pytest.mark.parametrize("slug", ["lru", "fifo", "ema005", "sieve"])
@pytest.mark.parametrize("counted_from", [0, 17])
def test_rates_are_those_of_the_readable_reference(sample, slug, counted_from):
    row = replays.policy(sample, 20, setting(sample, counted_from=counted_from), NAMES[slug])
    records = path_blocks.replay(sample, paths.build(NAMES[slug], sample, 20), 20)[counted_from:]
    assert row["hits"] == sum(len(record.hits) for record in records)
    assert row["prefix_hits"] == sum(len(record.prefix_hits) for record in records)
    assert row["blocks"] == sample.path_blocks[counted_from:].sum()
    assert row["hit_percent"] == 100 * row["hits"] / row["blocks"]
    assert row["tokens"] == sample.input_tokens[counted_from:].sum()
    assert row["token_hit_percent"] == 100 * row["hit_tokens"] / row["tokens"]
    assert row["requests"] == sample.requests - counted_from
    assert row["evicted_blocks"] == sum(len(record.evicted) for record in records)


@pytest.mark.parametrize("tiers", [(), (5,), (5, 30), (0,), (100,)])
@pytest.mark.parametrize("suffix_first", [True, False])
def test_hits_by_tier_sum_to_the_total(sample, tiers, suffix_first):
    row = replays.policy(sample, 12, setting(sample, *tiers, suffix_first=suffix_first), NAMES["lru"])
    assert row["hits"] + sum(tier["hits"] for tier in row["tiers"]) + row["computed_blocks"] == row["blocks"]
    assert row["computed_blocks"] == row["new_blocks"] + row["recomputed_blocks"]
    assert all(tier["up_bytes"] == 1000 * tier["hits"] for tier in row["tiers"])


def test_a_count_that_does_not_add_up_is_seen(sample):
    hits, none = np.zeros(sample.requests, dtype=np.int64), np.zeros((0, sample.requests), dtype=np.int64)
    replays.require_all_blocks(sample, hits, none, sample.path_blocks)
    short = sample.path_blocks.copy()
    short[7] -= 1
    with pytest.raises(ValueError, match="request 7: found"):
        replays.require_all_blocks(sample, hits, none, short)
    # A block that no request has read is found nowhere.
    with pytest.raises(ValueError, match="request 0: found"):
        replays.require_all_blocks(sample, sample.path_blocks, none, hits)


def test_tiers_change_no_hit_in_hbm(sample):
    without, small, large = (replays.policy(sample, 12, setting(sample, *tiers), NAMES["lfu"]) for tiers in ((), (3,), (1000,)))
    assert without["hits"] == small["hits"] == large["hits"]
    assert without["hit_tokens"] == small["hit_tokens"] == large["hit_tokens"]
    assert large["recomputed_blocks"] == 0
    assert without["recomputed_blocks"] >= small["recomputed_blocks"] > 0


def test_case_p13_a_tier_of_one_block_and_one_without_end_differ_in_ttft(sample):
    one, endless = (
        replays.policy(sample, 4, setting(sample, blocks, prefill=serving.AtRate(20_000.0)), NAMES["lru"])
        for blocks in (1, sample.unique_blocks)
    )
    assert one["stable"]
    assert endless["stable"]
    for name in ("mean", "p50", "p95"):
        assert endless[f"ttft_ms_{name}"] < one[f"ttft_ms_{name}"]
    assert endless["stall_ms_mean"] < one["stall_ms_mean"]


def test_what_is_computed_takes_time_by_real_tokens(sample):
    """Everything is in HBM after its first read: the tokens computed are those of new blocks, the last one partly filled."""
    row = replays.policy(sample, sample.unique_blocks, setting(sample), NAMES["lru"])
    assert row["compute_ms_mean"] * sample.requests == pytest.approx(row["tokens"] - row["hit_tokens"])
    # The same where all is fetched instead: no room in HBM to speak of, and a tier that keeps everything.
    below = replays.policy(sample, 1, setting(sample, sample.unique_blocks), NAMES["lru"])
    assert below["compute_ms_mean"] == pytest.approx(row["compute_ms_mean"])


def test_an_unstable_queue_has_no_ttft(sample):
    slow = replays.policy(sample, 12, setting(sample, prefill=serving.AtRate(1.0)), NAMES["lru"])
    assert slow["stable"] is False
    assert slow["load"] > 1
    assert slow["ttft_ms_mean"] is slow["ttft_ms_p99"] is None
    assert slow["stall_ms_mean"] > 0
    enough = int(slow["load"]) + 1
    assert replays.policy(sample, 12, setting(sample, prefill=serving.AtRate(1.0), servers=enough), NAMES["lru"])["stable"] is True


def test_without_arrivals_there_is_no_queue_and_without_a_rate_no_time(sample):
    row = replays.policy(sample, 12, setting(sample, arrivals_s=None), NAMES["lru"])
    assert row["stall_ms_mean"] > 0
    assert row["stable"] is None
    assert "ttft_ms_mean" not in row
    assert "stall_ms_mean" not in replays.policy(sample, 12, setting(sample, prefill=None), NAMES["lru"])


def test_percentiles_are_nearest_ranks():
    from kvtier.simulate.queueing import percentile

    values = np.random.default_rng(1).random(37)
    found = replays.spread("x", values)
    assert [found[f"x_p{percent}"] for percent in (50, 95, 99)] == [percentile(values.tolist(), percent) for percent in (50, 95, 99)]
    assert found["x_mean"] == pytest.approx(values.mean())


@pytest.mark.parametrize("counted_from", [0, 20])
def test_regret_is_what_is_missing_to_the_optimum(sample, counted_from):
    rows = replays.sweep(sample, list(NAMES.values()), [3, 12, 40], setting(sample, counted_from=counted_from))
    assert [(row["capacity_blocks"], row["policy"]) for row in rows] == [(blocks, slug) for blocks in (3, 12, 40) for slug in NAMES]
    for row in rows:
        assert row["regret_points"] == pytest.approx(row["optimum_percent"] - row["hit_percent"])
        assert row["regret_points"] >= 0
    best = paths.optimum(sample, 12, counted_from)
    assert {row["optimum_hits"] for row in rows if row["capacity_blocks"] == 12} == {best.hits[counted_from:].sum()}


def test_a_policy_above_the_optimum_is_seen():
    row = {"policy": "lru", "capacity_blocks": 5, "hits": 11, "blocks": 20}
    with pytest.raises(ValueError, match="lru at 5 blocks: 11 hits, above the optimum of 10"):
        replays.with_regret(row, {"hits": 10, "hit_percent": 50.0})


def test_processes_find_the_same(sample, monkeypatch):
    chosen = [NAMES["lru"], NAMES["ema005"], NAMES["farthest"]]
    told = []
    here = replays.sweep(sample, chosen, [5, 20], setting(sample, 8))
    monkeypatch.setattr(replays, "PROCESSES_FROM_S", 0.0)
    apart = replays.sweep(sample, chosen, [5, 20], setting(sample, 8), jobs=2, done=lambda count, of: told.append((count, of)))
    assert apart == here
    assert told == [(count, 8) for count in range(1, 9)]


@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_synthetic_turns_as_requests(kind):
    turns = synthetic.generate(kind, 3, SMALL)
    trace = replays.of_turns(turns, kind)
    assert trace.path_blocks.tolist() == turns.read_blocks.tolist()
    # What a turn generates is read for the first time by the session's next turn.
    seen, new = set(), []
    for turn, session in enumerate(turns.session.tolist()):
        own = turns.read_blocks[turn] - turns.prefix_blocks
        read = {*range(turns.prefix_blocks), *range(turns.first_block[session], turns.first_block[session] + own)}
        new.append(len(read - seen))
        seen |= read
    assert trace.new_blocks.tolist() == new
    assert replays.ceiling(trace, 10) == (sum(turns.read_blocks[10:]) - sum(new[10:]), sum(turns.read_blocks[10:]))


def test_synthetic_turns_without_growth_hit_as_in_revision_3():
    from kvtier.simulate import revision3
    from kvtier.simulate.policies import LRU

    turns = synthetic.generate("zipf", 1, SMALL, growing=False)
    trace = replays.of_turns(turns, "zipf")
    for capacity in (40, 60, 90):
        row = replays.policy(trace, capacity, setting(trace, arrivals_s=None), NAMES["lru"])
        counts, _ = revision3.with_tiers(turns, revision3.replay(turns, LRU, capacity), [])
        assert row["hits"] == counts.hits.sum()
