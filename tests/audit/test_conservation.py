import pytest

from kvtier.audit import conservation
from kvtier.audit.findings import AuditFailed, require


def failed(findings):
    return [row for row, finding in enumerate(findings) if finding.failed]


def test_honest_runs_pass(runs, workload):
    found = conservation.audit(runs, workload)
    assert len(found) == runs.height == 48
    assert failed(found) == []
    require(found)


@pytest.mark.parametrize("column", ["hits", "fetched", "recomputed"])
@pytest.mark.parametrize("off_by", [-1, 1])
def test_one_block_lost_or_made_up_is_caught(runs, workload, spoil, column, off_by):
    found = conservation.audit(spoil(runs, 5, **{column: runs[column][5] + off_by}), workload)
    assert failed(found) == [5]
    read = int(workload("zipf", 1).read_blocks[40:].sum())
    assert found[5].note.startswith(f"{read + off_by} blocks counted, {read} read")
    with pytest.raises(AuditFailed, match="audit conservation: Revision 2 test, zipf, seed 1, LRU, 8 \\+ 16 GiB: 1 of 1 failed"):
        require(found)


@pytest.mark.parametrize("column", ["hit_rate", "cxl_rate", "cold_rate"])
def test_a_rate_off_by_a_little_is_caught(runs, workload, spoil, column):
    assert failed(conservation.audit(spoil(runs, 0, **{column: runs[column][0] + 1e-6}), workload)) == [0]


def test_counts_that_add_up_below_zero_are_caught(runs, workload, spoil):
    hits, fetched = runs["hits"][3], runs["fetched"][3]
    assert failed(conservation.audit(spoil(runs, 3, hits=-1, fetched=fetched + hits + 1), workload)) == [3]


def test_turns_of_another_seed_are_caught(runs, workload):
    """The reads come from the workload alone, so a table replayed over other turns does not pass."""
    assert failed(conservation.audit(runs, lambda kind, seed: workload(kind, seed + 1))) == list(range(48))
