import polars as pl
import pytest

from kvtier.audit import monotonicity
from kvtier.audit.findings import AuditFailed, require
from kvtier.simulate import sweeps
from kvtier.simulate.policies import LFU, LRU, Policy, ema
from kvtier.simulate.sweeps import Run
from kvtier.workload import synthetic

SHAPE = synthetic.Shape(sessions=40, turns=80)


def test_rising_and_level_curves_pass(runs, spoil):
    lru = runs.filter(policy="lru", workload="zipf", counted_from=0)
    assert lru["hits"].is_sorted()
    (found,) = monotonicity.audit(spoil(lru, 1, hits=lru["hits"][0]))
    assert (found.checked, found.failed, found.note) == (2, 0, "")


def test_a_fall_is_caught_and_told(runs, spoil):
    lru = runs.filter(policy="lru", workload="zipf", counted_from=0)
    least = lru["hits"][0]
    (found,) = monotonicity.audit(spoil(lru, 1, hits=least - 1))
    assert (found.checked, found.failed) == (2, 1)
    assert found.note == f"4 GiB serves {least - 1} blocks, 2 GiB {least}"


def test_rows_may_come_in_any_order(runs):
    assert monotonicity.audit(runs.filter(policy="lru", workload="zipf", counted_from=0).reverse())[0].failed == 0


def test_curves_are_not_mixed(runs):
    """2 workloads × 4 policies × 2 ways of counting, each of three budgets; one budget alone makes no curve."""
    found = monotonicity.audit(runs)
    assert [finding.checked for finding in found] == [2] * 16
    assert monotonicity.audit(runs.filter(hbm_gib=2)) == []


@pytest.fixture(scope="module")
def persistent_runs():
    """LFU and EMA, state kept and state dropped, over three budgets; and LRU."""
    kept = [Policy("lfu", persistent=True), ema(0.15, persistent=True), ema(0.01, persistent=True)]
    planned = [Run("test", policy, hbm_gib=gib, cxl_gib=16) for policy in (*kept, LRU, LFU, ema(0.15)) for gib in (2, 4, 8)]
    return sweeps.replay(planned, 2, SHAPE, counted_from=40)


def test_held_are_those_of_revision2_whose_state_persists(persistent_runs):
    found = monotonicity.audit(persistent_runs)
    assert [(finding.subject.split(", ", 3)[3], finding.must_hold) for finding in found] == [
        ("LFU, persistent", True),
        ("EMA a=0.15, persistent", True),
        ("EMA a=0.01, persistent", True),
        ("LRU", False),
        ("LFU", False),
        ("EMA a=0.15", False),
    ]
    require(found)


def test_no_other_revision_is_held(persistent_runs):
    assert not any(finding.must_hold for finding in monotonicity.audit(persistent_runs.with_columns(revision=pl.lit(1))))


def test_alphas_near_the_ends_are_not_held(persistent_runs):
    for alpha in (1e-13, 1 - 1e-13):
        curve = persistent_runs.filter(policy="ema", persist_meta=True, alpha=0.15).with_columns(alpha=pl.lit(alpha))
        assert not monotonicity.audit(curve)[0].must_hold


@pytest.mark.parametrize("policy", ["lfu", "ema"])
def test_a_planted_fall_of_a_policy_that_includes_stops_the_build(persistent_runs, spoil, policy):
    curve = persistent_runs.filter(pl.col("alpha").is_null() | (pl.col("alpha") == 0.15), policy=policy, persist_meta=True)
    least = curve["hits"][0]
    with pytest.raises(AuditFailed, match=rf"monotonicity: .*persistent: 1 of 2 failed: 4 GiB serves {least - 1} blocks, 2 GiB {least}"):
        require(monotonicity.audit(spoil(curve, 1, hits=least - 1)))


def test_the_same_fall_of_another_is_reported_alone(persistent_runs, spoil):
    curve = persistent_runs.filter(policy="lfu", persist_meta=False)
    (found,) = monotonicity.audit(spoil(curve, 1, hits=curve["hits"][0] - 1))
    assert found.failed
    require([found])


@pytest.mark.parametrize("seed", [1, 2])
def test_catches_the_published_smell_of_revision1(seed):
    """EMA 0.15 serves less at 64 GiB than at 32 (SPEC §6): the defect showed in the published table."""
    planned = [run for run in sweeps.revision1_budgets([32, 64], [seed]) if run.policy in (LRU, ema(0.15))]
    lru, decayed = monotonicity.audit(sweeps.replay(planned, 1, synthetic.PUBLISHED, counted_from=0))
    assert (lru.failed, decayed.failed, decayed.checked) == (0, 1, 1)
    assert decayed.subject == f"Revision 1 budgets, zipf, seed {seed}, EMA a=0.15"
    assert decayed.note.startswith("64 GiB serves ")
    require([decayed])
