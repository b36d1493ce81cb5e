import pytest

from kvtier.audit import monotonicity
from kvtier.audit.findings import require
from kvtier.simulate import sweeps
from kvtier.simulate.policies import LRU, ema
from kvtier.workload import synthetic


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


@pytest.mark.parametrize("seed", [1, 2])
def test_catches_the_published_smell_of_revision1(seed):
    """EMA 0.15 serves less at 64 GiB than at 32 (SPEC §6): the defect showed in the published table."""
    planned = [run for run in sweeps.revision1_budgets([32, 64], [seed]) if run.policy in (LRU, ema(0.15))]
    lru, decayed = monotonicity.audit(sweeps.replay(planned, 1, synthetic.PUBLISHED, counted_from=0))
    assert (lru.failed, decayed.failed, decayed.checked) == (0, 1, 1)
    assert decayed.subject == f"Revision 1 budgets, zipf, seed {seed}, EMA a=0.15"
    assert decayed.note.startswith("64 GiB serves ")
    require([decayed])
