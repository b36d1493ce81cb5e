"""Revision 3 in time: conservation, what the shortcuts assume, agreement with e1, and figures of a small workload."""

from dataclasses import replace
from math import fsum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.analytic import inputs
from kvtier.simulate import lower_tiers, queueing, revision3, sweeps, timing
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.metrics import FETCH_S, summarise
from kvtier.simulate.policies import LRU, MIN
from kvtier.simulate.queueing import Link
from kvtier.units import GB
from kvtier.workload import synthetic
from kvtier.workload.turns import BLOCK_BYTES

SMALL = synthetic.Shape(sessions=40, turns=300)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def frames():
    return timing.measure([1, 2], [32.0, 64.0, 121.0], 0.8, SMALL, 150)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_every_block_read_is_a_hit_a_fetch_or_a_recomputation(workloads, policies, data):
    turns = data.draw(workloads())
    hbm_blocks = data.draw(st.integers(turns.prefix_blocks, 45))
    tiers = [Tier("CXL", data.draw(st.integers(0, 60)), data.draw(st.booleans())) for _ in range(data.draw(st.integers(0, 2)))]
    served = timing.serve(turns, data.draw(st.one_of(policies(), st.just(MIN))), hbm_blocks, tiers)
    assert (served.counts.hits + served.counts.fetched + served.counts.recomputed).tolist() == turns.read_blocks.tolist()
    assert np.all((served.resident >= 0) & (served.resident <= hbm_blocks))
    assert np.all(served.moved_down <= served.counts.evictions + turns.read_blocks + turns.growth_blocks)


@pytest.mark.parametrize("lost", ["hits", "fetched", "recomputed"])
def test_a_lost_block_stops_the_build(lost):
    served = timing.serve(synthetic.generate("zipf", 1, SMALL), LRU, 3000, [Tier("CXL", 9000)])
    counts = {name: values.copy() for name, values in vars(served.counts).items()}
    turn = int(np.flatnonzero(counts[lost])[-1])
    counts[lost][turn] -= 1
    with pytest.raises(ValueError, match=rf"turn {turn}: found \d+ blocks counted, expected \d+, all that it reads"):
        replace(served, counts=type(served.counts)(**counts))


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_a_tier_drops_the_deepest_blocks_of_a_context_first(workloads, policies, data):
    """So a context is what HBM has, what the tier has, what neither has: asked for the middle part alone, the tier has all of it."""
    turns = data.draw(workloads())
    hbm_blocks = data.draw(st.integers(0, 45))
    tier = Tier("CXL", data.draw(st.integers(0, 60)), data.draw(st.booleans()))
    residency = revision3.replay(turns, data.draw(policies()), hbm_blocks)
    counts, _ = revision3.with_tiers(turns, residency, [tier])
    middle = []
    for parts, fetched in zip(residency.missing, counts.fetched.tolist(), strict=True):
        assert len(parts) <= 1
        middle.append([(parts[0][0], parts[0][0] + fetched)] if fetched else [])
    again = lower_tiers.replay(turns, middle, residency.leaving(turns), [tier])
    assert again.fetched[0].tolist() == counts.fetched.tolist()
    assert again.recomputed.sum() == turns.prefix_blocks


def test_stall_is_that_of_the_queue_on_one_server():
    turns = synthetic.generate("zipf", 1, SMALL)
    work = timing.serve(turns, LRU, 3000, [Tier("CXL", 9000)]).work
    run = queueing.replay(work, timing.arrivals("gamma", SMALL.turns, 0.2, 1), Link(32.0), timing.DECODE)
    assert run.stall == pytest.approx(timing.stall_s(work, Link(32.0)), abs=1e-9)
    assert run.completion - run.start == pytest.approx(timing.service_s(work, Link(32.0)), abs=1e-9)


def test_stall_at_64_gbps_is_that_of_e1():
    turns = synthetic.generate("zipf", 1, SMALL)
    served = timing.serve(turns, LRU, 3000, [Tier("CXL", 9000)])
    stall_ms = 1e3 * fsum(timing.stall_s(served.work, Link(64.0))[150:]) / 150
    assert stall_ms == pytest.approx(summarise(served.counts, turns, 150)["stall_ms"], rel=1e-12)
    assert Link(64.0).transfer_s(1) == pytest.approx(FETCH_S)
    assert (timing.HBM_GIB, timing.CXL_GIB) == (sweeps.SIMULATED_HBM_GIB, sweeps.SIMULATED_CXL_GIB)


def test_counted_turns_are_a_run_of_their_own():
    turns = synthetic.generate("zipf", 1, SMALL)
    work = timing.serve(turns, LRU, 3000, [Tier("CXL", 9000)]).work
    whole = queueing.replay(work, timing.arrivals("poisson", SMALL.turns, 0.2, 1), Link(32.0), timing.DECODE)
    counted, everything = timing.since(whole, 150), timing.since(whole, 0)
    for name, value in whole.summary(150).items():
        if name.startswith(("stall", "ttft", "wait", "turns", "tokens")):
            assert counted.summary()[name] == value
    assert everything.summary() == whole.summary()
    assert counted.inward.blocks.sum() == work.fetched[150:].sum()
    assert counted.outward.blocks.sum() == work.demoted[150:].sum()


def test_arrivals_are_no_draws_of_the_workload():
    assert not np.array_equal(timing.arrivals("poisson", 50, 1.0, 1), queueing.poisson(50, 1.0, 1))
    with pytest.raises(ValueError, match="expected one of deterministic, poisson, gamma"):
        timing.arrivals("weekly", 50, 1.0, 1)


def test_appendix_tiers_are_the_stated_inputs():
    stated = inputs.load_platform(ROOT / "data/inputs/platform.yaml")
    capacity_gb = {
        "hbm": stated["hbm_pinned"].value + stated["hbm_evictable"].value,
        "CXL": stated["cxl_endpoints"].value * stated["cxl_endpoint_capacity"].value,
        "NVMe": stated["nvme_endpoints"].value * stated["nvme_endpoint_capacity"].value,
    }
    assert {name: gb * GB // BLOCK_BYTES for name, gb in capacity_gb.items()} == timing.APPENDIX_BLOCKS


def test_load_is_that_of_lru_at_the_middle_bandwidth(frames):
    turns = synthetic.generate("zipf", 1, SMALL)
    work = timing.serve(turns, LRU, timing.capacity_blocks(32), [Tier("CXL", timing.capacity_blocks(512))]).work
    mean_s = timing.service_s(work, Link(64.0))[150:].mean()
    rates = frames.times.filter(seed=1)["rate_per_s"].unique().to_list()
    assert rates == [pytest.approx(0.8 / mean_s)]


def test_tables_have_a_row_for_each_cell(frames):
    assert len(frames.times) == 3 * 3 * 6 * 2
    assert len(frames.prefetches) == 3 * 8 * 2
    assert len(frames.traffic) == (3 * 5 + 1) * 2
    assert len(frames.residence) == (2 * 5 + 1) * 3 * 2
    assert frames.times["seed"][:2].to_list() == [1, 2]


def test_the_range_of_bandwidths_orders_the_stall(frames):
    for (_, policy, _), cell in frames.times.group_by("arrivals", "policy", "seed"):
        stalls = cell.sort("gbps")["stall_ms_per_token"].to_list()
        assert stalls == sorted(stalls, reverse=True)
        assert len(set(stalls)) == (1 if policy == timing.UNBOUNDED else 3)


def test_an_hbm_that_holds_everything_moves_nothing(frames):
    alone = frames.times.filter(policy=timing.UNBOUNDED)
    assert alone["hidden"].all()
    assert alone["sustainable"].all()
    assert alone["late"].sum() == alone["utilisation_in"].sum() == 0
    assert frames.traffic.filter(policy=timing.UNBOUNDED)["a_traffic"].sum() == 0


def test_tiers_that_drop_nothing_leave_what_was_never_computed(frames):
    alone = frames.traffic.filter(policy=timing.UNBOUNDED).select("seed", "recomputed")
    four = frames.traffic.filter(mode=timing.FOUR_TIERS)
    assert four.join(alone, on="seed")["recomputed"].to_list() == four.join(alone, on="seed")["recomputed_right"].to_list()
    assert four["lowest_tier_blocks"].sum() == 0


def test_hits_and_misses_of_the_traffic_are_the_reads(frames):
    """With the prefix read in HBM: what is read there, what is promoted and what is recomputed are all reads of the counted turns."""
    for seed in (1, 2):
        read = int(synthetic.generate("zipf", seed, SMALL).read_blocks[150:].sum())
        rows = frames.traffic.filter(seed=seed)
        assert (rows["resident_reads"] + rows["promotions"] + rows["recomputed"]).unique().to_list() == [read]


def test_position_makes_recomputation_dearer(frames):
    assert (frames.residence["stall_by_position_ms"] > frames.residence["stall_ms"]).all()


def test_rules_leave_the_oracle_ahead(frames):
    for _, cell in frames.prefetches.group_by("gbps", "seed"):
        saved = dict(zip(cell["rule"], cell["saved_ms"], strict=True))
        assert saved["none"] == saved["anchor"] == 0
        assert saved["next"] == max(saved.values()) > 0
    assert frames.prefetches.filter(rule="next")["accuracy"].unique().to_list() == [1.0]
    assert frames.prefetches.filter(rule="anchor")["accuracy"].is_null().all()


def test_an_hbm_without_room_for_the_prefix_is_refused():
    with pytest.raises(ValueError, match="hbm_blocks 127: expected room for the prefix, 128"):
        timing.serve(synthetic.generate("zipf", 1, SMALL), LRU, 127, [])


def test_one_bandwidth_is_refused():
    with pytest.raises(ValueError, match="expected a range of two or more"):
        timing.measure([1], [64.0, 64.0], 0.8, SMALL, 150)
