"""Experiments on traces, on small ones: counts against a pencil, closed forms, and the tables that stand in the repository."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kvtier.simulate import eviction, paths, trace_experiments, trace_numbers, trace_studies
from kvtier.simulate.path_engine import weighted
from kvtier.simulate.trace_experiments import LAST_HALF, WHOLE, Stream
from kvtier.simulate.trace_tables import TABLES
from kvtier.workload.paths import Builder, runs_of

RETAINED = Path(__file__).resolve().parents[2] / "data/traces"
SIZES = (8, 16, 32)


def trace_of(requests, block_tokens=4, tokens=None, step_us=10**7):
    builder = Builder("a trace", block_tokens)
    for number, path in enumerate(requests):
        some = block_tokens * len(path) if tokens is None else tokens[number]
        builder.add(f"line {number + 1}", number * step_us, max(some, 1), 1, runs_of(path))
    return builder.trace()


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(1)
    requests = [[0, *range(10 * session + 1, 10 * session + 1 + int(rng.integers(1, 8)))] for session in rng.integers(0, 5, 60).tolist()]
    return Stream("small", trace_of(requests))


def test_counts_by_hand():
    """[0 1], [0 1 2], [0 9], [0 1 2]: with room for all, 0 + 2 + 1 + 3 hits of 10 blocks; of the last half 4 of 5."""
    found = Stream("small", trace_of([[0, 1], [0, 1, 2], [0, 9], [0, 1, 2]]))
    ran = found.replay(eviction.NAMES["lru"], 100)
    assert [found.counts(ran, WHOLE)[name] for name in ("hits", "hit_percent")] == [6, 60.0]
    assert [found.counts(ran, LAST_HALF)[name] for name in ("hits", "hit_percent")] == [4, 80.0]
    assert trace_experiments.describe(found)["ceiling_hits"].to_list() == [6, 4]


def test_no_policy_is_above_the_optimum_and_lru_is_its_own_baseline(stream):
    table = trace_experiments.compare_policies(stream, SIZES)
    for (_, _), rows in table.group_by("counted", "capacity_tokens"):
        most = rows.filter(pl.col("policy") == "min")["hits"].item()
        assert rows["hits"].max() == most
    lru = table.filter(pl.col("policy") == "lru")
    assert lru.select("margin_points", "margin_low", "margin_high").unique().rows() == [(0.0, 0.0, 0.0)]
    inside = table.filter(pl.col("policy") != "lru")
    assert inside.filter(pl.col("closed").is_not_null())["closed"].max() <= 1
    assert set(table["policy"]) == {*eviction.NAMES, "min"}


def test_long_streams_leave_out_what_is_not_compiled(stream):
    composed = Stream("small", stream.trace, users=2, seed=1)
    assert {"look8", "priority005_demotes"}.isdisjoint({named.slug for named in composed.policies})


def test_either_end_has_the_same_block_hits_for_lru_and_the_deepest_end_more_prefix_hits(stream):
    """Blocks of an edge are read together: which of them left decides nothing but where the hole is."""
    table = trace_experiments.compare_orders(stream, (36, 44, 52, 60, 68))
    table = table.filter((pl.col("policy") == "lru") & (pl.col("counted") == WHOLE))
    deepest, first = (table.filter(pl.col("suffix_first") == which) for which in (True, False))
    assert deepest["hits"].to_list() == first["hits"].to_list()
    assert deepest["prefix_hits"].to_list() == deepest["hits"].to_list()
    assert (deepest["prefix_hits"] >= first["prefix_hits"]).all()
    assert (deepest["prefix_hits"] > first["prefix_hits"]).any()


def test_the_shortest_half_life_is_nearly_lru(stream):
    """A score halved at each request cannot outweigh one read more recent unless reads follow at once."""
    table = trace_experiments.compare_alphas(stream, SIZES, alphas=(0.99,)).filter(~pl.col("persistent") & (pl.col("counted") == WHOLE))
    lru = [int(stream.replay(eviction.NAMES["lru"], stream.capacity_blocks(size)).hits.sum()) for size in SIZES]
    assert table["hits"].to_list() == lru


def test_weights_of_recency_alone_are_lru(stream):
    for size in SIZES:
        recency = stream.replay(weighted(0.05, (1.0, 0.0, 0.0)), stream.capacity_blocks(size))
        assert recency.hits.tolist() == stream.replay(eviction.NAMES["lru"], stream.capacity_blocks(size)).hits.tolist()


def test_published_weights_gain_nothing_over_themselves_and_intervals_hold_the_gain(stream, monkeypatch):
    monkeypatch.setattr(trace_studies, "WEIGHT_CAPACITIES_TOKENS", SIZES)
    runs = trace_studies.try_weights(stream)
    assert len(runs) == len(SIZES) * len(trace_studies.WEIGHT_ALPHAS) * len(trace_studies.points())
    published = (pl.col("published")) & (pl.col("alpha") == trace_studies.PUBLISHED_ALPHA)
    assert runs.filter(published).select(pl.col("gain_low", "gain_high").abs().max()).row(0) == (0, 0)
    reference = runs.filter(published).select("capacity_tokens", published_hits="test_hits")
    gains = runs.join(reference, on="capacity_tokens").with_columns(
        gain=100 * (pl.col("test_hits") - pl.col("published_hits")) / pl.col("test_blocks")
    )
    assert gains["gain"].abs().max() > 0
    assert gains.filter((pl.col("gain") < pl.col("gain_low") - 1e-6) | (pl.col("gain") > pl.col("gain_high") + 1e-6)).is_empty()


def test_weights_are_chosen_where_they_are_said_to_be():
    """Two settings, two traces: each is best on one; `own` follows the first half, `others` the other trace, `best` the second half."""
    rows = []
    for trace, fit, test in (("one", (9, 1), (2, 8)), ("two", (1, 9), (7, 3))):
        for point, fitted, tested in zip(((1.0, 0.0), (0.25, 0.55)), fit, test, strict=True):
            weights = {"recency": point[0], "ema": point[1], "anchor": round(1 - sum(point), 2)}
            counts = {"fit_hits": fitted, "fit_blocks": 10, "test_hits": tested, "test_blocks": 10, "gain_low": 0.0, "gain_high": 0.0}
            rows.append(
                {"trace": trace, "seed": None, "capacity_tokens": 4, "alpha": 0.05, "published": point[0] != 1.0, **weights, **counts}
            )
    chosen = trace_studies.choose_weights(
        trace_studies.WEIGHT_RUNS.check(pl.DataFrame(rows, schema_overrides=trace_studies.WEIGHT_RUNS.columns))
    )
    found = {(row["trace"], row["choice"]): row["test_hits"] for row in chosen.iter_rows(named=True)}
    assert {choice: found["one", choice] for choice in ("own", "others", "published", "recency", "best")} == {
        "own": 2,
        "others": 2,
        "published": 8,
        "recency": 2,
        "best": 8,
    }
    assert (found["two", "own"], found["two", "others"]) == (3, 3)


def by_last_block(requests, group, block_tokens):
    """Coarse blocks by brute force: a group is known by all blocks up to its end."""
    return [[tuple(path[: stop * group]) for stop in range(1, len(path) // group + 1)] for path in requests]


@pytest.mark.parametrize("group", [1, 2, 3, 5])
def test_coarser_blocks_are_groups_of_whole_ones(group):
    rng = np.random.default_rng(2)
    names: dict[tuple, int] = {}
    requests = []
    for _ in range(80):
        path = [int(step) for step in rng.integers(0, 2, size=rng.integers(1, 12))]
        requests.append([names.setdefault(tuple(path[: depth + 1]), len(names)) for depth in range(len(path))])
    trace = trace_of(requests)
    coarse = trace_studies.coarser(trace, group)
    expected = by_last_block(requests, group, trace.block_tokens)
    assert coarse.path_blocks.tolist() == [len(path) for path in expected]
    seen, found = set(), []
    for path in expected:
        found.append(sum(block in seen for block in path))
        seen.update(path)
    assert (coarse.path_blocks - coarse.new_blocks).tolist() == found
    capacity = 6
    ran = paths.replay(coarse, eviction.NAMES["lru"].build(capacity), capacity)
    assert ran.hits.tolist() == paths.replay(coarse, eviction.NAMES["lru"].build(capacity), capacity, events=paths.Events()).hits.tolist()


def test_partly_filled_blocks_are_left_out():
    trace = trace_of([[0, 1, 2], [0, 1, 3, 4], [9]], tokens=[11, 16, 2])
    whole = trace_studies.whole_blocks(trace)
    assert whole.path_blocks.tolist() == [2, 4, 0]
    assert (whole.path_blocks - whole.new_blocks).tolist() == [0, 2, 0]


def test_a_partly_filled_block_that_another_request_continues_is_refused():
    with pytest.raises(ValueError, match="continues"):
        trace_studies.whole_blocks(trace_of([[0, 1], [0, 1, 2]], tokens=[7, 12]))


def test_a_tier_below_shortens_the_wait_and_its_link_does_not_change_what_is_hit(stream):
    table = trace_studies.time_tiers(stream, slugs=("lru",), seeds=(1, 2))
    assert (table["hits"] + table["fetched"] + table["computed"] == table["blocks"]).all()
    assert table["hits"].n_unique() == 1
    assert table.filter(pl.col("bandwidth_gbps").is_null())["fetched"].sum() == 0


# What stands in the repository.


@pytest.fixture(scope="module")
def retained():
    return {name: table.read_csv(RETAINED / f"{name}.csv") for name, table in TABLES.items()}


@pytest.fixture(scope="module")
def numbers(retained):
    found = list(trace_numbers.of_tables(retained))
    assert len({number.key for number in found}) == len(found)
    return {number.key: number for number in found}


def test_retained_ceilings_and_rates_are_the_known_ones(numbers):
    """The shared cross-checks T0 and T1."""
    known = {
        "conversation.ceiling.hit": "36.64",
        "conversation.ceiling.token_hit": "37.36",
        "synthetic.ceiling.hit": "63.96",
        "synthetic.ceiling.token_hit": "65.12",
        "synthetic.ceiling_last_half.token_hit": "86.36",
        "conversation.256k.lru.token_hit": "4.30",
        "conversation.1m.lru.token_hit": "5.60",
        "conversation.4m.lru.token_hit": "18.51",
        "conversation.16m.lru.token_hit": "34.15",
    }
    assert {key: numbers[f"sim.traces.{key}"].display for key in known} == known


def test_retained_rates_are_consistent(retained):
    policies = retained["policies"]
    best = policies.filter(pl.col("policy") == "min").select("trace", "seed", "counted", "capacity_tokens", most="hits")
    joined = policies.join(best, on=["trace", "seed", "counted", "capacity_tokens"], nulls_equal=True)
    assert len(joined) == len(policies)
    assert (joined["hits"] <= joined["most"]).all()
    leaves = joined.filter(~pl.col("policy").str.contains("demotes"))
    assert (leaves["hits"] == leaves["prefix_hits"]).all()
    assert (joined["margin_low"] <= joined["margin_points"] + 1e-6).all()
    assert (joined["margin_points"] <= joined["margin_high"] + 1e-6).all()
    rising = joined.filter((pl.col("policy") == "lru") & (pl.col("counted") == WHOLE)).sort("trace", "seed", "capacity_tokens")
    for _, rows in rising.group_by("trace", "seed"):
        assert rows["hits"].is_sorted()


def test_numbers_say_how_they_are_counted(numbers):
    for number in numbers.values():
        assert number.definition.strip()
        assert "trace" in number.definition or number.key in ("sim.traces.capacities", "sim.traces.weights.tried")


def test_no_one_half_life_serves_all_traces_and_capacities(numbers):
    """The appendix says so: the best ones differ, and the recommended one loses somewhere."""
    assert numbers["sim.traces.alpha.longest_half_life"].value > 10 * numbers["sim.traces.alpha.shortest_half_life"].value
    assert numbers["sim.traces.alpha.published_loss"].value > 1


def test_a_tier_moves_the_first_token_more_than_the_policy_does(numbers):
    """The appendix says that the policy moves it less."""
    name = "sim.traces.conversation.time"
    by_tier = numbers[f"{name}.no_tier.lru.ttft"].value - numbers[f"{name}.32gbps.lru.ttft"].value
    with_tier = [numbers[f"{name}.64gbps.{policy}.ttft"].value for policy in ("lru", "ema005", "lfu", "s3fifo", "gdsf")]
    without = [numbers[f"{name}.no_tier.{policy}.ttft"].value for policy in ("lru", "ema005", "lfu", "s3fifo", "gdsf")]
    assert by_tier > max(with_tier) - min(with_tier)
    assert by_tier > max(without) - min(without)
