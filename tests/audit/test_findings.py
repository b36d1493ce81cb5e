import pytest

from kvtier.audit.findings import FINDINGS, AuditFailed, Finding, require, table


def test_passes_what_holds():
    require([Finding("rule", "a run", 3, 0), Finding("rule", "another", 1, 0)])


def test_passes_a_known_defect():
    require([Finding("lossless", "Revision 2", 100, 90, must_hold=False)])


def test_stops_at_a_failure_and_names_it():
    found = [Finding("rule", "a run", 3, 0), Finding("rule", "another", 4, 2, note="turn 7")]
    with pytest.raises(AuditFailed, match=r"^audit rule: another: 2 of 4 failed: turn 7$"):
        require(found)


@pytest.mark.parametrize("must_hold", [True, False])
def test_an_audit_of_nothing_does_not_pass(must_hold):
    with pytest.raises(AuditFailed, match=r"^audit rule: a run: nothing was checked$"):
        require([Finding("rule", "a run", 0, 0, must_hold)])


def test_table_has_a_row_a_finding():
    found = [Finding("rule", "a run", 3, 0), Finding("rule", "another", 4, 2, must_hold=False, note="turn 7")]
    assert table(found).rows() == [("rule", "a run", 3, 0, True, ""), ("rule", "another", 4, 2, False, "turn 7")]
    assert list(table(found).columns) == list(FINDINGS.columns)
