import pytest

from kvtier.audit import optimum
from kvtier.audit.findings import AuditFailed, require
from kvtier.simulate import optimal, sweeps
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import PUBLISHED
from kvtier.simulate.sweeps import Run
from kvtier.workload.synthetic import Shape, generate


def test_honest_runs_pass(runs, workload):
    found = optimum.audit(runs, workload)
    assert len(found) == runs.height == 48
    require(found)


@pytest.mark.parametrize(("row", "counted_from"), [(0, 0), (1, 40)])
def test_reaching_the_optimum_passes_and_one_hit_more_is_caught(runs, workload, spoil, row, counted_from):
    """A cold run and a warm one, each against the optimum of its own counted turns."""
    assert (runs["hbm_gib"][row], runs["counted_from"][row]) == (2, counted_from)
    most = int(optimal.turn_hits(workload("zipf", 1), capacity_blocks(2), counted_from).sum())
    assert runs["hits"][row] < most
    require(optimum.audit(spoil(runs, row, hits=most), workload))
    found = optimum.audit(spoil(runs, row, hits=most + 1), workload)
    assert [i for i, finding in enumerate(found) if finding.failed] == [row]
    with pytest.raises(AuditFailed, match=rf"audit optimum: .*, LRU, 2 \+ 16 GiB: 1 of 1 failed: {most + 1} hits, at most {most} are"):
        require(found)


def test_hits_of_a_larger_hbm_are_caught(runs, workload):
    """A run reported under a quarter of its memory has more hits than fit there."""
    at_8_gib = runs.filter(hbm_gib=8)
    assert sum(finding.failed for finding in optimum.audit(at_8_gib.with_columns(hbm_gib=at_8_gib["hbm_gib"] / 4), workload)) > 0


def test_revision1_is_bounded_on_its_own_turns():
    shape = Shape(sessions=40, turns=80)
    planned = [Run("test", policy, hbm_gib=gib, cxl_gib=16, warm=False) for policy in PUBLISHED for gib in (1, 4)]
    require(optimum.audit(sweeps.replay(planned, 1, shape, 0), lambda kind, seed: generate(kind, seed, shape, growing=False)))
