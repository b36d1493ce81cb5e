"""A third party's times: the two-term line recovers setup and bandwidth, and what they may be called."""

from pathlib import Path

import numpy as np
import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.measure import literature

TIMES = Path(__file__).resolve().parents[2] / "data/inputs/literature/llama_cpp_pr31.csv"


@pytest.fixture(scope="module")
def ledger():
    return {number.key.removeprefix("literature.llama_cpp_pr31."): number for number in literature.numbers(literature.read(TIMES))}


@pytest.mark.parametrize(("place", "times"), [("host_copy", [6.31, 24.05, 47.10]), ("on_device", [25.31, 27.59, 30.55])])
def test_setup_and_bandwidth_equal_numpys(ledger, place, times):
    gigabytes = np.array([4096, 16384, 32768]) * 34.8e3 / 1e9
    slope, intercept = np.polyfit(gigabytes, times, 1)
    assert ledger[f"{place}.setup_ms"].value == pytest.approx(intercept, rel=1e-10)
    assert ledger[f"{place}.gbps"].value == pytest.approx(1000 / slope, rel=1e-12)
    assert [ledger[f"{place}.{tokens}.ms"].value for tokens in (4096, 16384, 32768)] == times


def test_a_planted_line_is_recovered(tmp_path):
    """Setup 2 ms and 25 GB/s; 20 ms and 200 GB/s."""
    path = tmp_path / "times.csv"
    rows = [
        f"{place},{tokens},40.0,{setup + tokens * 40e3 / 1e6 / gbps}"
        for place, setup, gbps in (("host_copy", 2, 25), ("on_device", 20, 200))
        for tokens in (5000, 10000, 20000)
    ]
    path.write_text("kv,context_tokens,kv_kb_per_token,ms\n" + "\n".join(rows) + "\n", encoding="utf-8")
    found = literature.table(literature.read(path))
    assert found["setup_ms"].to_list() == pytest.approx([2, 20])
    assert found["gbps"].to_list() == pytest.approx([25, 200])


def test_labels(ledger):
    cited = {key for key, number in ledger.items() if number.label is Label.LITERATURE}
    assert cited == {key for key in ledger if key.endswith(".ms")} | {"kv_kb_per_token"}
    assert {number.label for key, number in ledger.items() if key not in cited} == {Label.ANALYTICAL}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("on_device", "host", "column kv: found host, host_copy, expected both"),
        ("6.31", "-6.31", r"column ms, row 1: found -6\.31"),
        ("16384", "4096", "column context_tokens, host_copy: found a context twice"),
        ("host_copy,4096,34.8,6.31\n", "", "rows: found 2, expected at least 3"),
    ],
)
def test_refuses(tmp_path, old, new, message):
    path = tmp_path / "times.csv"
    path.write_text(TIMES.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        literature.read(path)
