from kvtier.audit.kept_findings import findings
from kvtier.audit.physical_bound import Checked


def test_one_row_a_kind_with_the_nearest_to_its_bound():
    held = [
        Checked("copy", 20.0, 170.0, "GB/s"),
        Checked("read", 90.0, 170.0, "GB/s"),
        Checked("ticks of a", 5000.0, 1000.0, "ticks at least"),
        Checked("ticks of b", 1100.0, 1000.0, "ticks at least"),
        Checked("hits", 0, 0, "hits"),
    ]
    bandwidth, ticks, hits = findings("box-2026-11-30", held)
    assert (bandwidth.checked, bandwidth.failed, bandwidth.must_hold) == (2, 0, True)
    assert bandwidth.subject == "box-2026-11-30: bandwidths below the bus"
    assert bandwidth.note == "nearest its bound: read, 90 of 170 GB/s"
    assert ticks.note == "nearest its bound: ticks of b, 1,100 of 1,000 ticks at least"
    assert hits.checked == 1


def test_nothing_checked_is_no_row():
    assert findings("box", []) == []
