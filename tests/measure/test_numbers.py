"""Tables and numbers of the decode fits: every published value, with its label."""

import re
from pathlib import Path

import pytest

from kvtier.evidence.labels import Label
from kvtier.measure import tables
from kvtier.measure.numbers import numbers
from kvtier.measure.platform import read_platform
from kvtier.measure.retained import StreamingCopy, read_streaming_copy
from kvtier.measure.runs import fit_run

GB10 = Path(__file__).resolve().parents[2] / "data/measured/gb10-2026-08-19"
PLATFORM = read_platform(GB10 / "platform.yaml")
COPY = read_streaming_copy(GB10 / "streaming.csv")


@pytest.fixture(scope="module")
def runs():
    files = {"hf": "decode_hf_sdpa.csv", "vllm": "decode_vllm_fa2.csv"}
    return {key: fit_run(key, GB10 / name, PLATFORM, COPY.gbps) for key, name in files.items()}


@pytest.fixture(scope="module")
def ledger(runs):
    found = list(numbers(runs, PLATFORM, COPY))
    assert len({number.key for number in found}) == len(found)
    return {number.key.removeprefix("measured.gb10."): number for number in found}


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
        ("hf_loo_4x32768.slope", "17.49"),
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
    assert ledger["model.weights_gb"].label is PLATFORM.model.label is Label.VENDOR
    assert ledger["model.weights_gib"].label is ledger["model.kv_bytes_per_token"].label is Label.ANALYTICAL


def test_a_fit_with_a_row_left_out_is_an_analysis_of_ours(ledger):
    left_out = [number for key, number in ledger.items() if "_loo" in key]
    assert len(left_out) == 2 * (4 + 9 + 1) + 2
    assert all("without its row" in number.definition for number in left_out if "_loo_" in number.key and "missed" not in number.key)
    coefficients = {number.key.rpartition(".")[2] for number in left_out if number.label is Label.MEASURED}
    assert coefficients == {"intercept_ms", "slope", "r2", "n"}


def test_the_copy_says_how_it_was_taken(ledger, runs):
    assert ledger["stream.copy_gbps"].definition.endswith("4 GiB buffers, median of 20.")
    other = {number.key: number for number in numbers(runs, PLATFORM, StreamingCopy(gbps=200.0, buffer_gib=0.5, runs=7))}
    assert other["measured.gb10.stream.copy_gbps"].definition.endswith("0.5 GiB buffers, median of 7.")


def test_inferred_numbers_carry_a_standard_error(ledger):
    name = re.compile(
        r"(hf|vllm)(_published|_loo_[0-9]+x[0-9]+)?\.(intercept_ms|slope|fixed_gbps|kv_gbps|fixed_share|kv_share|fixed_over_kv)"
    )
    bearing = [number for key, number in ledger.items() if name.fullmatch(key)]
    assert len(bearing) == 6 * 7
    assert all(number.uncertainty["standard_error"] > 0 for number in bearing)


def test_tables_agree_with_the_numbers(runs, ledger):
    fits = tables.fits(runs.values())
    assert fits.select("run", "kv_sizes").rows() == [("hf", "exact"), ("hf", "published"), ("vllm", "exact"), ("vllm", "published")]
    assert fits["kv_gbps"][1] == ledger["hf_published.kv_gbps"].value
    assert fits["fixed_share_percent"][2] == pytest.approx(ledger["vllm.fixed_share"].value)
    rows = tables.rows(runs.values())
    assert rows.height == 16
    assert (rows["fitted_ms"] + rows["residual_ms"]).to_list() == pytest.approx(rows["step_ms"].to_list())
    without = tables.leave_one_out(runs.values())
    assert without.height == 16
    decisive = without.filter("decisive", run="vllm").row(0, named=True)
    assert (decisive["left_out_batch"], decisive["left_out_context_tokens"]) == (16, 16384)
    assert decisive["slope_ms_per_gib"] == ledger["vllm_loo_16x16384.slope"].value
    assert decisive["left_out_residual_ms"] == ledger["vllm_loo_16x16384.missed_ms"].value
