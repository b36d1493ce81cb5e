"""Revision 1 stays as it was, wrong on purpose; its compiled twin makes the same mistakes."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier import config
from kvtier.evidence.provenance import imported_modules
from kvtier.files import sha256
from kvtier.simulate import blocks, records, revision1, sweeps
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LFU, LRU, PUBLISHED, Policy, ema
from kvtier.workload import synthetic

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = config.load(ROOT / "config/full.yaml", ROOT / "workflow/schemas/config.schema.json")["revision1"]
BUDGETS_GIB = (8, 16, 32, 64, 128)

PUBLISHED_HIT_RATES = {
    LRU: (38.97, 50.03, 61.32, 72.86, 82.56),
    LFU: (41.03, 54.77, 62.01, 72.81, 82.71),
    ema(0.15): (40.24, 40.19, 46.78, 41.98, 63.81),
    ema(0.01): (40.85, 54.68, 61.09, 72.40, 80.39),
}
"""Percent, mean of seeds 1 and 2, over BUDGETS_GIB (SPEC §6)."""


def replay(turns, policy, hbm_blocks, cxl_blocks):
    victims = []
    counts = revision1.simulate(
        turns.prefix_blocks,
        turns.first_block.tolist(),
        turns.context_blocks.tolist(),
        turns.session.tolist(),
        policy.name,
        policy.alpha,
        hbm_blocks,
        cxl_blocks,
        lambda turn, victim: victims.append([turn, victim]),
    )
    return counts, victims


def assert_twin_agrees(turns, policy, hbm_blocks, cxl_blocks):
    counts, victims = replay(turns, policy, hbm_blocks, cxl_blocks)
    twin_counts, twin_victims = blocks.simulate_revision1(turns, policy, hbm_blocks, cxl_blocks, record=len(victims) + 1)
    assert twin_counts == counts
    # The last row stays empty: there is no eviction more.
    assert twin_victims.tolist() == [*victims, [0, 0]]


def test_file_is_the_retained_one():
    assert sha256(revision1.__file__) == "6bf72baa224a5265a1f33a52e102ed891cfaa968e1857ed867713bddf6a4c4e9"


def test_only_the_victim_audit_imports_it():
    importers = {
        str(path.relative_to(ROOT))
        for folder in ("src", "workflow/scripts")
        for path in (ROOT / folder).rglob("*.py")
        if "kvtier.simulate.revision1" in imported_modules(path)
    }
    assert importers == {"src/kvtier/audit/victims.py"}


def test_decayed_score_above_the_minimum_is_evicted():
    """The defect by hand: both entries say 1/2, so the tie evicts block 0, just come, and not block 5, by now worth 1/1024."""
    cache = revision1.Cache("ema", 0.5, 2)
    assert [cache.admit(5, 0), cache.admit(0, 9)] == [[], []]
    assert (cache.score(5, 9), cache.score(0, 9)) == (1 / 1024, 1 / 2)
    assert cache.admit(7, 9) == [0]


def test_counts_that_rise_are_evicted_rightly():
    """The first entries of 0 and 1 are stale and low; they go back with counts of 3 and 2, and 2 is the victim."""
    cache = revision1.Cache("lfu", None, 2)
    for turn, block in enumerate((0, 0, 0, 1, 1)):
        cache.admit(block, turn)
    assert cache.admit(2, 5) == [2]


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_twin_equals_the_file_on_random_workloads(workloads, policies, capacities, data):
    turns = data.draw(workloads(growing=False))
    policy = data.draw(policies(persistence=False))
    hbm_blocks, cxl_blocks = data.draw(capacities(turns))
    assert_twin_agrees(turns, policy, hbm_blocks, cxl_blocks)


@pytest.mark.parametrize("policy", PUBLISHED, ids=lambda policy: policy.slug)
@pytest.mark.parametrize(("hbm_blocks", "cxl_blocks"), [(0, 0), (0, 7), (1, 0), (2, 1), (40, 0), (150, 200), (600, 30), (10_000, 10_000)])
def test_twin_equals_the_file_on_a_small_zipf(policy, hbm_blocks, cxl_blocks):
    shape = synthetic.Shape(sessions=30, turns=200, prefix_tokens=160, context_tokens=(16, 900))
    assert_twin_agrees(synthetic.generate("zipf", 4, shape, growing=False), policy, hbm_blocks, cxl_blocks)


@pytest.mark.parametrize("policy", PUBLISHED_HIT_RATES, ids=lambda policy: policy.slug)
@pytest.mark.parametrize("gib", BUDGETS_GIB)
def test_published_hit_rates(gib, policy):
    runs = [run for run in sweeps.revision1_budgets([gib], SETTINGS["seeds"]) if run.policy == policy]
    table = sweeps.replay(runs, 1, synthetic.PUBLISHED, counted_from=0)
    record = records.revision1_sweep(table)[f"{gib}|{policy.title}"]
    assert record["hit_rate_mean"] == PUBLISHED_HIT_RATES[policy][BUDGETS_GIB.index(gib)]


def test_published_table_is_the_configured_sweep():
    assert tuple(SETTINGS["budgets_gib"]) == BUDGETS_GIB
    assert tuple(PUBLISHED_HIT_RATES) == PUBLISHED


def distinct_simulations() -> list[tuple[str, int, Policy, float, float]]:
    """What the four published sweeps replay, each once."""
    runs = [
        *sweeps.revision1_budgets(SETTINGS["budgets_gib"], SETTINGS["seeds"]),
        *sweeps.revision1_cxl(SETTINGS["cxl_gib"]),
        *sweeps.revision1_workloads(SETTINGS["workload_seeds"]),
        *sweeps.revision1_alphas(SETTINGS["alphas"]),
    ]
    return list(dict.fromkeys(run.simulation for run in runs))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "seed", "policy", "hbm_gib", "cxl_gib"), distinct_simulations())
def test_twin_equals_the_file_on_every_published_run(kind, seed, policy, hbm_gib, cxl_gib):
    turns = synthetic.generate(kind, seed, growing=False)
    assert_twin_agrees(turns, policy, capacity_blocks(hbm_gib), capacity_blocks(cxl_gib))
