"""The workflow script fit_decode: its tables, its numbers, and a build that the bus stops."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from kvtier.audit.physical_bound import AboveTheBus
from kvtier.evidence.labels import Label
from kvtier.measure import retained
from kvtier.measure.platform import read_platform

ROOT = Path(__file__).resolve().parents[2]
GB10 = ROOT / "data/measured/gb10-2026-08-19"
PLATFORM = read_platform(GB10 / "platform.yaml")
COPY_GBPS = retained.read_copy_gbps(GB10 / "streaming.csv")


def load_script():
    spec = importlib.util.spec_from_file_location("fit_decode", ROOT / "workflow/scripts/fit_decode.py")
    script = importlib.util.module_from_spec(spec)
    sys.modules["fit_decode"] = script  # dataclasses look their module up
    spec.loader.exec_module(script)
    return script


script = load_script()


@pytest.fixture(scope="module")
def runs():
    files = {"hf": "decode_hf_sdpa.csv", "vllm": "decode_vllm_fa2.csv"}
    return {key: script.fit_run(key, GB10 / name, PLATFORM) for key, name in files.items()}


@pytest.fixture(scope="module")
def ledger(runs):
    numbers = list(script.numbers(runs, PLATFORM, COPY_GBPS))
    assert len({number.key for number in numbers}) == len(numbers)
    return {number.key.removeprefix("measured.gb10."): number for number in numbers}


@pytest.mark.parametrize(
    ("key", "display"),
    [
        ("stream.copy_gbps", "236.5"),
        ("stream.share_of_bus", "87"),
        ("bus_gbps", "273"),
        ("model.kv_bytes_per_token", "57,344"),
        ("model.weights_gb", "15.2"),
        ("model.weights_gib", "14.16"),
        ("hf.n", "7"),
        ("hf.intercept_ms", "100.3"),
        ("hf.slope", "16.33"),
        ("hf.r2", "0.991"),
        ("hf.fixed_gbps", "151.5"),
        ("hf.kv_gbps", "65.8"),
        ("hf.fixed_share", "64"),
        ("hf.kv_share", "28"),
        ("hf.fixed_over_kv", "2.3"),
        ("hf_published.slope", "16.34"),
        ("hf_published.kv_gbps", "65.7"),
        ("hf_published.fixed_gbps", "151.6"),
        ("hf_published.fixed_from_printed_gbps", "151.5"),
        ("hf_published.kv_from_printed_gbps", "65.7"),
        ("vllm.n", "9"),
        ("vllm.intercept_ms", "73.9"),
        ("vllm.slope", "17.58"),
        ("vllm.r2", "0.945"),
        ("vllm.fixed_gbps", "205.6"),
        ("vllm.kv_gbps", "61.1"),
        ("vllm.fixed_share", "87"),
        ("vllm.kv_share", "26"),
        ("vllm.fixed_over_kv", "3.4"),
        ("vllm_published.fixed_gbps", "205.7"),
        ("vllm_published.fixed_from_printed_gbps", "205.7"),
        ("vllm_published.kv_gbps", "61.1"),
        ("vllm_loo_16x16384.slope", "11.87"),
        ("vllm_loo_16x16384.fixed_over_kv", "1.9"),
        ("vllm.16x16384.residual_ms", "25.9"),
        ("vllm.16x4096.tokens_per_s", "125.5"),
        ("vllm.16x16384.tokens_per_s", "46.3"),
        ("hf.16x4096.tokens_per_s", "96.9"),
        ("vllm_over_hf.slope_change", "8"),
        ("vllm_over_hf.fixed_change", "36"),
        ("vllm_over_hf_published.fixed_change", "36"),
        ("vllm_loo.slope_min", "11.87"),
        ("bugs.shared_prefix_kv_gbps", "342.9"),
        ("bugs.fp32_resident_gib", "28.4"),
    ],
)
def test_number_as_displayed(ledger, key, display):
    assert ledger[key].display == display


def test_no_row_gives_the_printed_150_tokens_per_second(ledger):
    """D4."""
    rates = [number.value for key, number in ledger.items() if key.endswith(".tokens_per_s")]
    assert len(rates) == 16
    assert not any(abs(rate - 150) < 20 for rate in rates)


def test_labels(ledger):
    assert ledger["hf.slope"].label is Label.MEASURED
    assert ledger["stream.copy_gbps"].label is Label.MEASURED
    assert ledger["bus_gbps"].label is Label.VENDOR
    for key in ("hf.kv_gbps", "vllm.fixed_over_kv", "vllm.kv_share", "vllm_over_hf.slope_change", "stream.share_of_bus"):
        assert ledger[key].label is Label.ANALYTICAL
    assert ledger["bugs.shared_prefix_kv_gbps"].label is Label.ILLUSTRATIVE


def test_inferred_numbers_carry_a_standard_error(ledger):
    name = re.compile(r"(hf|vllm)(_published|_loo_16x16384)?\.(intercept_ms|slope|fixed_gbps|kv_gbps|fixed_share|kv_share|fixed_over_kv)")
    bearing = [number for key, number in ledger.items() if name.fullmatch(key)]
    assert len(bearing) == 5 * 7
    assert all(number.uncertainty["standard_error"] > 0 for number in bearing)


def test_tables_agree_with_the_numbers(runs, ledger):
    everything = list(runs.values())
    fits = script.fits_table(everything, PLATFORM, COPY_GBPS)
    assert fits.select("run", "kv_sizes").rows() == [("hf", "exact"), ("hf", "published"), ("vllm", "exact"), ("vllm", "published")]
    assert fits["kv_gbps"][1] == ledger["hf_published.kv_gbps"].value
    assert fits["fixed_share_percent"][2] == pytest.approx(ledger["vllm.fixed_share"].value)
    rows = script.rows_table(everything, PLATFORM)
    assert rows.height == 16
    assert (rows["fitted_ms"] + rows["residual_ms"]).to_list() == pytest.approx(rows["step_ms"].to_list())
    without = script.leave_one_out_table(everything, PLATFORM, COPY_GBPS)
    assert without.height == 16
    decisive = without.filter(run="vllm", left_out_batch=16, left_out_context_tokens=16384).row(0, named=True)
    assert decisive["slope_ms_per_gib"] == ledger["vllm_loo_16x16384.slope"].value
    assert decisive["left_out_residual_ms"] == ledger["vllm_loo_16x16384.missed_ms"].value


def test_audit_covers_every_bandwidth(runs):
    everything = list(runs.values())
    checked = script.audit(script.fits_table(everything, PLATFORM, COPY_GBPS), script.rows_table(everything, PLATFORM), PLATFORM, COPY_GBPS)
    assert len(checked) == 1 + 4 * 2 + 16 + 1
    assert all(each.value <= each.bound for each in checked)


def test_audit_stops_rows_above_the_bus(tmp_path):
    """Step times all but flat in KV, as one shared copy makes them."""
    path = tmp_path / "flat.csv"
    path.write_text("batch,context_tokens,step_ms\n1,4096,95.1\n4,4096,95.2\n16,4096,96.0\n16,16384,105.0\n4,16384,97.0\n")
    run = script.fit_run("vllm", path, PLATFORM)
    with pytest.raises(AboveTheBus, match=r"exact KV sizes: KV path: found \d+\.\d GB/s, expected nothing above the bus of 273 GB/s"):
        script.audit(script.fits_table([run], PLATFORM, COPY_GBPS), script.rows_table([run], PLATFORM), PLATFORM, COPY_GBPS)
