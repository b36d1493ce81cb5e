"""The engine against the references, decision by decision, against its block-by-block twin at full size, and against what was published."""

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import TypingError

from kvtier import config
from kvtier.simulate import blocks, compiled, engine, requests, revision2, sweeps
from kvtier.simulate.metrics import TurnCounts, capacity_blocks
from kvtier.simulate.policies import FIFO, LFU, LRU, MIN, PUBLISHED, S3FIFO, SIEVE, Policy, ema
from kvtier.workload import synthetic

ROOT = Path(__file__).resolve().parents[2]
CONFIG = config.load(ROOT / "config/full.yaml", ROOT / "workflow/schemas/config.schema.json")
SETTINGS, COUNTED_FROM = CONFIG["revision2"], CONFIG["workload"]["counted_from"]
COUNTS = [field.name for field in fields(TurnCounts)]

COLUMNS = {
    "e1|8": (8.52, 8.76, 12.35, 12.12),
    "e1|16": (17.87, 12.70, 22.58, 18.70),
    "e1|32": (38.34, 16.09, 44.18, 35.91),
    "e1|64": (67.12, 23.00, 69.65, 66.83),
    "e1|128": (88.01, 32.70, 88.14, 91.59),
    "e3|zipf": (39.08, 15.12, 44.44, 38.87),
    "e3|scan": (31.51, 12.52, 32.57, 36.26),
    "e3|loop": (9.83, 22.06, 9.83, 9.83),
}
"""Published hit rates of LRU, LFU, EMA 0.15, EMA 0.01, percent, means over seeds (SPEC §6)."""

PUBLISHED_HIT_RATES = {
    **{f"{row}|{policy.title}": value for row, values in COLUMNS.items() for policy, value in zip(PUBLISHED, values, strict=True)},
    **{
        f"e2|{policy.title}": value
        for policy, value in {
            ema(0.5): 37.20,
            ema(0.3): 38.84,
            ema(0.15): 44.33,
            ema(0.05): 55.96,
            ema(0.01): 31.54,
            ema(0.003): 25.47,
            ema(0.001): 24.44,
            LFU: 15.56,
            LRU: 36.85,
        }.items()
    },
    "e5loc|LFU": 15.56,
    "e5per|LFU": 49.71,
    "e5loc|EMA a=0.01": 31.54,
    "e5per|EMA a=0.01": 56.39,
    "e5loc|EMA a=0.15": 44.33,
    "e5per|EMA a=0.15": 44.12,
}

GOLDEN = {
    LRU: (2_076_751, 2_687_580, 89_048, 2_811_304, 213_964),
    LFU: (1_026_437, 3_742_238, 84_704, 3_861_618, 3_851_514),
    ema(0.15): (2_371_238, 2_393_093, 89_048, 2_516_817, 608_603),
    ema(0.01): (1_945_944, 2_822_731, 84_704, 2_942_111, 2_858_184),
}
"""Hits, fetched, recomputed, evictions, evictions from the read set over all turns: zipf, seed 1, 32 + 512 GiB."""

PERSISTENT = [Policy("lfu", persistent=True), *(ema(alpha, persistent=True) for alpha in (0.5, 0.15, 0.01))]


def assert_engine_agrees(turns, policy, hbm_blocks, cxl_blocks):
    victims = []
    expected = revision2.simulate(turns, policy, hbm_blocks, cxl_blocks, lambda turn, victim: victims.append([turn, victim]))
    for twin in (engine, blocks):
        found = twin.simulate(turns, policy, hbm_blocks, cxl_blocks)
        for name in COUNTS:
            assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
        assert np.array_equal(twin.victims(turns, policy, hbm_blocks, cxl_blocks), np.array(victims, dtype=np.int64).reshape(-1, 2))


def assert_requests_agree(turns, policy, hbm_blocks):
    victims = []
    expected = requests.replay(turns, policy, hbm_blocks, lambda turn, victim: victims.append([turn, victim]))
    assert engine.replay_requests(turns, policy, hbm_blocks).tolist() == expected.tolist()
    if policy != MIN:
        assert np.array_equal(engine.request_victims(turns, policy, hbm_blocks), np.array(victims, dtype=np.int64).reshape(-1, 2))


def cell(run):
    """Name of a run without its seed, as the published tables have it."""
    parts = {"e1": [f"{run.hbm_gib:g}"], "e3": [run.workload]}
    return "|".join([run.experiment, *parts.get(run.experiment, []), run.policy.title])


def published_runs():
    return [
        *sweeps.revision2_budgets(SETTINGS["budgets_gib"], SETTINGS["seeds"]),
        *sweeps.revision2_alphas(SETTINGS["alphas"]),
        *sweeps.revision2_workloads(SETTINGS["workload_seeds"]),
        *sweeps.revision2_warmup(),
        *sweeps.revision2_persistence(),
        *sweeps.revision2_overlap(),
    ]


def distinct_simulations():
    """What the 107 records and the 84 points of the alpha grid replay, each once."""
    grid = sweeps.revision2_alpha_grid(SETTINGS["grid_alphas"], SETTINGS["grid_budgets_gib"], SETTINGS["grid_seeds"])
    return list(dict.fromkeys(run.simulation for run in (*published_runs(), *grid)))


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_equals_reference_on_random_workloads(workloads, policies, capacities, data):
    turns = data.draw(workloads())
    assert_engine_agrees(turns, data.draw(policies()), *data.draw(capacities(turns)))


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_requests_equal_reference_on_random_workloads(workloads, policies, capacities, data):
    turns = data.draw(workloads())
    policy = data.draw(st.one_of(policies(), st.sampled_from([FIFO, SIEVE, MIN])))
    assert_requests_agree(turns, policy, data.draw(capacities(turns))[0])


def test_kept_cases(make_turns):
    """Cases that an engine under construction got wrong, as small as they could be made."""
    # MIN: the first block of a run takes a block of the farthest session, and is then itself the farthest.
    assert_requests_agree(make_turns([0, 0, 1, 0], [2, 2]), MIN, 2)
    # SIEVE: the hand leaves the newest extent while the run that it makes room for joins an older one.
    assert_requests_agree(make_turns([1, 2, 1, 2, 2, 1], [1, 0, 2], decode=[29, 11, 35, 1, 7, 28]), SIEVE, 3)
    # LFU: the run's own next extent is the smallest, but the first block of the run is smaller once it is in, so the gap does not move on.
    assert_requests_agree(make_turns([0, 0, 1, 1, 0], [3, 1]), LFU, 3)
    # CXL drops what the run that it takes in will touch next, block after block.
    sessions = [0, 0, 0, 0, 1, 1, 0, 2, 2, 2, 2, 2, 0, 2, 1, 1, 2, 1, 0, 0, 2, 0, 2, 0, 1, 0, 1, 0, 0, 1, 0, 2, 1]
    decode = [
        48,
        64,
        8,
        58,
        74,
        29,
        41,
        35,
        71,
        8,
        50,
        90,
        25,
        55,
        60,
        90,
        34,
        88,
        54,
        70,
        32,
        73,
        76,
        37,
        64,
        20,
        59,
        85,
        73,
        40,
        60,
        5,
        69,
    ]
    assert_engine_agrees(make_turns(sessions, [4, 2, 1], decode=decode), LRU, 1, 60)


@pytest.mark.parametrize("policy", [*PUBLISHED, ema(0.5), *PERSISTENT])
@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_equals_reference_on_generated_workloads(kind, policy):
    """Contexts of tens of blocks that grow: groups lose members from the middle, split and outlive their blocks."""
    shape = synthetic.Shape(sessions=50, turns=250, prefix_tokens=80, context_tokens=(16, 700), decode_tokens=(0, 64))
    turns = synthetic.generate(kind, 6, shape)
    for hbm_blocks, cxl_blocks in ((0, 9), (1, 0), (30, 100), (200, 10_000), (700, 50), (10_000, 0)):
        assert_engine_agrees(turns, policy, hbm_blocks, cxl_blocks)


def test_run_evicts_its_own_predecessors(make_turns):
    """One context larger than HBM: each admission pushes out an earlier block of the same turn."""
    turns = make_turns([0, 0, 0], [5], prefix=1, decode=[16, 0, 0])
    for policy in (*PUBLISHED, Policy("lfu", persistent=True)):
        assert_engine_agrees(turns, policy, 3, 9)
    assert engine.victims(turns, LRU, 3, 9)[:4].tolist() == [[0, 0], [0, 1], [0, 2], [0, 3]]


def test_run_evicts_its_own_next_extent(make_turns):
    """Request by request, LRU takes what the turn reads next: a context one block larger than HBM never hits again."""
    turns = make_turns([0, 0, 0], [5])
    for policy in (*PUBLISHED, FIFO, SIEVE, MIN, *PERSISTENT):
        assert_requests_agree(turns, policy, 4)
    assert engine.replay_requests(turns, LRU, 4).tolist() == [0, 0, 0]
    assert engine.request_victims(turns, LRU, 4).tolist() == [
        [0, 0],
        *([1, block] for block in (1, 2, 3, 4, 0)),
        *([2, block] for block in (1, 2, 3, 4, 0)),
    ]


@pytest.mark.parametrize("policy", [*PUBLISHED, *PERSISTENT, FIFO, SIEVE, MIN])
@pytest.mark.parametrize("kind", synthetic.KINDS)
def test_requests_equal_reference_on_generated_workloads(kind, policy):
    shape = synthetic.Shape(sessions=50, turns=250, prefix_tokens=80, context_tokens=(16, 700), decode_tokens=(0, 64))
    turns = synthetic.generate(kind, 6, shape)
    for hbm_blocks in (0, 1, 30, 200, 700, 10_000):
        assert_requests_agree(turns, policy, hbm_blocks)


@pytest.mark.parametrize("policy", [LRU, FIFO, LFU, SIEVE, MIN])
def test_golden_hits_of_requests(golden_requests, policy):
    assert engine.replay_requests(golden_requests.turns, policy, golden_requests.hbm_blocks).sum() == golden_requests.hits[policy]


def test_next_turn_that_contradicts_the_workload_is_refused(make_turns):
    for turn, wrong in ((0, 1), (0, 3), (0, 0), (1, 2)):
        turns = make_turns([0, 1, 0], [2, 2])
        turns.next_turn[turn] = wrong
        with pytest.raises(ValueError, match=r"turn \d reads session \d; the next turns given say otherwise"):
            engine.replay_requests(turns, MIN, 2)
    turns = make_turns([0, 1, 0], [2, 2])
    turns.first_turn[:] = [1, 0]
    with pytest.raises(ValueError, match="turn 0 reads session 0"):
        engine.replay_requests(turns, MIN, 2)


def test_policies_that_a_simulator_does_not_have_are_refused(make_turns):
    turns = make_turns([0], [1])
    with pytest.raises(ValueError, match="policy 's3fifo': expected one of lru, lfu, ema, fifo, sieve"):
        engine.replay_requests(turns, S3FIFO, 1)
    with pytest.raises(ValueError, match="policy 'fifo': expected one of lru, lfu, ema"):
        engine.simulate(turns, FIFO, 1, 1)


def test_negative_capacities_are_refused(make_turns):
    turns = make_turns([0], [1])
    for twin in (engine, blocks):
        for run in (twin.simulate, twin.victims):
            with pytest.raises(ValueError, match="hbm_blocks -1: expected 0 or more"):
                run(turns, LRU, -1, 1)
            with pytest.raises(ValueError, match="cxl_blocks -2: expected 0 or more"):
                run(turns, LRU, 1, -2)
    for policy in (LRU, MIN):
        with pytest.raises(ValueError, match="hbm_blocks -1: expected 0 or more"):
            engine.replay_requests(turns, policy, -1)


def test_inner_functions_that_allocate_are_refused():
    """Without reference counts, what they made would never be freed."""
    with pytest.raises(TypingError, match="No implementation of function"):
        compiled.compiled_inner(lambda size: np.zeros(size))(3)


def test_runs_where_no_folder_can_hold_compiled_code(tmp_path):
    """A read-only installation and home: compiled anew in each process, same result."""
    unwritable = tmp_path / "file"
    unwritable.touch()
    program = (
        "from kvtier.simulate import compiled\n"
        "assert compiled.compiled(lambda x: x + 1)(1) == 2\n"
        "from numba.core.caching import FunctionCache\n"
        "try:\n    FunctionCache(lambda x: x)\nexcept RuntimeError:\n    print('no cache')\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(unwritable / "cache"), "HOME": str(unwritable), "XDG_CACHE_HOME": str(unwritable)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "no cache\n"), done.stderr


def test_importing_the_package_loads_no_compiler():
    program = "import sys, kvtier, kvtier.cli; print({'numba', 'polars', 'snakemake'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_everything_fits(make_turns):
    """Without evictions each block is recomputed once, at its first read, whatever the policy."""
    turns = synthetic.generate("zipf", 2, synthetic.Shape(sessions=40, turns=300))
    for policy in PUBLISHED:
        counts = engine.simulate(turns, policy, 10**6, 0)
        assert counts.recomputed.tolist() == turns.compulsory_blocks.tolist()
        assert counts.hits.tolist() == (turns.read_blocks - turns.compulsory_blocks).tolist()
        assert not counts.fetched.any()
        assert not counts.evictions.any()


def test_no_hbm_at_all():
    """Every block leaves at once, from the set that is read; a CXL tier for everything serves all but first reads."""
    turns = synthetic.generate("scan", 2, synthetic.Shape(sessions=40, turns=300))
    for policy in PUBLISHED:
        counts = engine.simulate(turns, policy, 0, 10**6)
        assert not counts.hits.any()
        assert counts.recomputed.tolist() == turns.compulsory_blocks.tolist()
        assert counts.evictions.tolist() == counts.evictions_from_read_set.tolist() == (turns.read_blocks + turns.growth_blocks).tolist()


@pytest.mark.parametrize("policy", GOLDEN)
def test_golden_counts(policy):
    counts = engine.simulate(synthetic.generate("zipf", 1), policy, capacity_blocks(32), capacity_blocks(512))
    assert tuple(int(getattr(counts, name).sum()) for name in COUNTS) == GOLDEN[policy]


@pytest.mark.parametrize("name", PUBLISHED_HIT_RATES)
def test_published_hit_rates(name):
    table = sweeps.replay([run for run in published_runs() if cell(run) == name], 2, synthetic.PUBLISHED, COUNTED_FROM)
    assert round(mean(table["hit_rate"].to_list()), 2) == PUBLISHED_HIT_RATES[name]


def test_every_published_cell_is_tested():
    assert {cell(run) for run in published_runs() if run.experiment in ("e1", "e2", "e3", "e5loc", "e5per")} == set(PUBLISHED_HIT_RATES)


@pytest.mark.parametrize(
    ("kind", "seed", "policy", "hbm_gib"),
    [("zipf", 1, LFU, 32), ("zipf", 2, ema(0.15, persistent=True), 16), ("scan", 3, ema(0.01), 32)],
)
def test_equals_reference_at_full_size(kind, seed, policy, hbm_gib):
    assert_engine_agrees(synthetic.generate(kind, seed), policy, capacity_blocks(hbm_gib), capacity_blocks(512))


@pytest.mark.parametrize(("kind", "seed", "policy", "hbm_gib", "cxl_gib"), distinct_simulations())
def test_equals_block_by_block_twin_on_every_published_record(kind, seed, policy, hbm_gib, cxl_gib):
    arguments = synthetic.generate(kind, seed), policy, capacity_blocks(hbm_gib), capacity_blocks(cxl_gib)
    found, expected = engine.simulate(*arguments), blocks.simulate(*arguments)
    for name in COUNTS:
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert np.array_equal(engine.victims(*arguments), blocks.victims(*arguments))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "seed", "policy", "hbm_gib", "cxl_gib"), distinct_simulations())
def test_equals_reference_on_every_published_record(kind, seed, policy, hbm_gib, cxl_gib):
    assert_engine_agrees(synthetic.generate(kind, seed), policy, capacity_blocks(hbm_gib), capacity_blocks(cxl_gib))
