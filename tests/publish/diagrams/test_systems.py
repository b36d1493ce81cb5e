"""What Diagram 16.1 says of contexts, against the ledger."""

from __future__ import annotations

import json
from pathlib import Path

from kvtier.publish.diagrams.systems import contexts_in

LEDGER = json.loads(Path("data/numbers.json").read_text(encoding="utf-8"))


def value(key: str) -> float:
    return LEDGER[key]["value"]


def test_cells_are_as_many_as_the_ledger_says():
    context = value("analytic.kv.llama3_70b.128k.gb")
    assert contexts_in(value("analytic.expansion.total_gb"), context) == value("analytic.concurrency.hbm_and_cxl.128k.whole")
    assert contexts_in(3 * value("analytic.hbm.capacity_gb"), context) == value("analytic.concurrency.baseline_hbm.128k.whole")


def test_one_context_fewer_fits_where_each_memory_is_counted_by_itself():
    context = value("analytic.kv.llama3_70b.128k.gb")
    apart = sum(contexts_in(value(key), context) for key in ("analytic.hbm.capacity_gb", "analytic.cxl.capacity_gb"))
    assert apart == contexts_in(value("analytic.expansion.total_gb"), context) - 1
