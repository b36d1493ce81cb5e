import pytest

from kvtier.audit import compulsory
from kvtier.audit.findings import AuditFailed, require


def test_honest_runs_pass(runs, workload):
    found = compulsory.audit(runs, workload)
    assert len(found) == 48
    require(found)


def test_reaching_the_floor_passes_and_one_block_below_is_caught(runs, workload, spoil):
    floor = int(workload("zipf", 1).compulsory_blocks.sum())
    assert runs["recomputed"][0] > floor > 0
    require(compulsory.audit(spoil(runs, 0, recomputed=floor), workload))
    found = compulsory.audit(spoil(runs, 0, recomputed=floor - 1), workload)
    assert [row for row, finding in enumerate(found) if finding.failed] == [0]
    with pytest.raises(AuditFailed, match=f"{floor - 1} recomputed, {floor} read for the first time"):
        require(found)


def test_warm_runs_owe_only_what_is_new_in_counted_turns(runs, workload, spoil):
    """Sessions that the warm-up visited are known: their contexts are no part of the floor."""
    cold, warm = (int(workload("zipf", 1).compulsory_blocks[first:].sum()) for first in (0, 40))
    assert 0 < warm < cold
    require(compulsory.audit(spoil(runs, 1, recomputed=warm), workload))
    assert compulsory.audit(spoil(runs, 1, recomputed=warm - 1), workload)[1].failed == 1
