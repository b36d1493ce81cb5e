"""A run: its rows and fits, and the row that decides."""

from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.measure import tables
from kvtier.measure.platform import read_platform
from kvtier.measure.runs import fit_run

GB10 = Path(__file__).resolve().parents[2] / "data/measured/gb10-2026-08-19"
PLATFORM = read_platform(GB10 / "platform.yaml")
HEADER = "batch,context_tokens,step_ms\n"


def run_of(tmp_path, rows, key="vllm"):
    path = tmp_path / "decode.csv"
    path.write_text(HEADER + rows, encoding="utf-8")
    return fit_run(key, path, PLATFORM, 236.5)


def test_the_decisive_row_of_vllm_is_that_of_the_finding():
    """D3: the row whose omission brings the slope from 17.6 to 11.9 ms/GiB."""
    run = fit_run("vllm", GB10 / "decode_vllm_fa2.csv", PLATFORM, 236.5)
    assert run.points[run.decisive] == (16, 16384)
    assert run.missed_ms(run.decisive) == pytest.approx(91.52, abs=0.01)


def test_the_decisive_row_follows_the_rows(tmp_path):
    """On a line through all rows but one, the outlier decides, at either end."""
    times = {4096: 100.0, 8192: 108.0, 12288: 116.0, 16384: 124.0, 20480: 132.0}
    for outlier in (4096, 20480):
        rows = "".join(f"1,{tokens},{time + 10 * (tokens == outlier)}\n" for tokens, time in times.items())
        run = run_of(tmp_path, rows)
        assert run.points[run.decisive] == (1, outlier)
        assert run.missed_ms(run.decisive) == pytest.approx(10)
        left_out = tables.leave_one_out([run])
        assert left_out.filter("decisive")["left_out_context_tokens"].to_list() == [outlier]


def test_a_step_reads_weights_and_kv(tmp_path):
    run = run_of(tmp_path, "1,4096,100\n1,8192,104\n1,16384,112\n1,32768,129\n")
    assert run.step_gbps[0] == pytest.approx((15.2e9 + 4096 * 57_344) / 1e9 / 0.1)


def test_a_run_that_the_platform_does_not_name_is_refused(tmp_path):
    with pytest.raises(InputError, match="run: found sglang, expected one that the platform file names: hf, vllm"):
        run_of(tmp_path, "1,4096,100\n", key="sglang")
