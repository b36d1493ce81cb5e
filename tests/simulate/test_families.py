"""The policy family as a table: who is in it, what a row counts, and one option at a time."""

from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

from kvtier.simulate import eviction, families, revision3
from kvtier.simulate.families import EdgeRun, Options
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LRU, MIN
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape

SHAPE, COUNTED_FROM = Shape(sessions=60, turns=300), 150


@pytest.fixture(scope="module")
def runs():
    return families.replay(families.policy_runs([1, 16], [8, 16], [1, 2]), SHAPE, COUNTED_FROM)


def test_the_family_has_every_policy_once_and_look_ahead_as_asked():
    slugs = [policy.slug for policy in families.policies([1, 4, 16])]
    assert len(slugs) == len(set(slugs))
    assert [slug for slug in slugs if slug.startswith("look")] == ["look1", "look4", "look16"]
    assert {slug for slug in eviction.NAMES if not slug.startswith("look")} == set(slugs) - {"look1", "look4", "look16", "min"}
    assert slugs[-2:] == ["farthest", "min"]


def test_one_row_a_run_in_order(runs):
    slugs = [policy.slug for policy in families.policies([1, 16])]
    assert runs.select("hbm_gib", "policy", "seed").rows() == [(gib, slug, seed) for gib in (8, 16) for slug in slugs for seed in (1, 2)]


def test_rows_are_what_the_simulator_counts(runs):
    turns, hbm_blocks = synthetic.generate("zipf", 2, SHAPE), capacity_blocks(16)
    for policy in (LRU, MIN):
        residency = revision3.replay(turns, policy, hbm_blocks, COUNTED_FROM)
        row = runs.row(by_predicate=(pl.col("policy") == policy.slug) & (pl.col("seed") == 2) & (pl.col("hbm_gib") == 16), named=True)
        assert row["hits"] == row["prefix_hits"] == residency.hits[150:].sum()
        assert row["reads"] == turns.read_blocks[150:].sum()
        assert row["hit_rate"] == 100 * row["hits"] / row["reads"]
        assert (row["turns"], row["counted_from"], row["generated"]) == (150, 150, turns.growth_blocks[150:].sum())
        # The optimum keeps for counted turns alone, so evictions are those of its own replay.
        assert row["evictions"] == sum(stop - first for _, _, first, stop in residency.evicted)


def test_what_is_over_budget_is_the_same_under_every_policy(runs):
    for gib in (8, 16):
        for seed in (1, 2):
            over = revision3.over_budget_blocks(synthetic.generate("zipf", seed, SHAPE), capacity_blocks(gib))[COUNTED_FROM:]
            assert set(runs.filter(hbm_gib=gib, seed=seed)["over_budget_turns"]) == {np.count_nonzero(over)}
            assert set(runs.filter(hbm_gib=gib, seed=seed)["streamed"]) == {over.sum()}
    assert runs.filter(hbm_gib=8)["over_budget_turns"].sum() > 0


def test_more_is_known_more_is_hit(runs):
    """Not a theorem of windows, but of the optimum; and a long window is close to it."""
    hits = {slug: runs.filter(policy=slug)["hits"].to_numpy() for slug in runs["policy"].unique()}
    assert all((hits["min"] >= hits[slug]).all() for slug in hits)
    assert (hits["look16"] > hits["lru"]).all()


def test_options_differ_from_the_plain_run_in_one():
    planned = families.option_runs([4, 16], [64], [7])
    assert [run.policy.slug for run in planned[:3]] == ["lru", "ema005", "farthest"]
    plain = asdict(Options())
    changed = [{name for name, value in asdict(run.options).items() if value != plain[name]} for run in planned]
    assert changed == 3 * [set()] + 3 * [{"suffix_first"}] + 6 * [{"in_flight"}] + 3 * [{"floor_blocks"}]
    assert {(run.seed, run.hbm_gib) for run in planned} == {(7, 32.0)}


def test_options_are_those_of_the_simulator():
    turns, hbm_blocks = synthetic.generate("zipf", 1, SHAPE), capacity_blocks(8)
    for options in (Options(suffix_first=False), Options(in_flight=4), Options(floor_blocks=64)):
        (row,) = families.replay([EdgeRun(eviction.NAMES["lru"], 1, 8, options)], SHAPE, 0).rows(named=True)
        policy = eviction.NAMES["lru"].build(hbm_blocks)
        residency = revision3.replay_edges(turns, policy, hbm_blocks, **asdict(options))
        assert row["hits"] == residency.hits.sum()
        assert row["prefix_hits"] == residency.prefix_hits.sum()
        assert row["streamed"] == residency.streamed.sum()
        assert {name: row[name] for name in asdict(options)} == asdict(options)


def test_evictions_of_a_sequence_in_flight_are_counted(make_turns):
    """Turn 2 evicts three blocks of session 0, which turn 0 reads: in flight with three sequences, not with two; one of its own is."""
    turns = make_turns([0, 1, 2], [4, 4, 4])
    residency = revision3.replay_edges(turns, eviction.NAMES["lru"].build(9), 9)
    assert residency.evicted == [(2, 0, 1, 4)]
    assert [residency.evictions(turns, in_flight)[1].tolist() for in_flight in (1, 2, 3)] == [[0, 0, 0], [0, 0, 0], [0, 0, 3]]
    residency.evicted.append((2, 2, 3, 4))
    assert families.counts(turns, residency, 0)["evictions_from_read_set"] == 1
    assert families.counts(turns, residency, 0, in_flight=3)["evictions_from_read_set"] == 4
