"""The bus says no: both recorded bugs are planted and refused, the retained rows pass."""

from pathlib import Path

import pytest

from kvtier.audit.physical_bound import (
    AboveTheBus,
    Bandwidth,
    UnexpectedWeights,
    bandwidths_of,
    physical_bound,
    report,
    resident_weights,
)
from kvtier.errors import InputError
from kvtier.measure import fit, retained
from kvtier.measure.platform import read_platform
from kvtier.measure.runs import fit_run
from kvtier.units import GIB

GB10 = Path(__file__).resolve().parents[2] / "data/measured/gb10-2026-08-19"
PLATFORM = read_platform(GB10 / "platform.yaml")
KV_BYTES = PLATFORM.model.kv_bytes_per_token


def shared_prefix_fit(points, intercept_ms, slope_ms_per_gib):
    """Sequences of a batch share one KV copy of context × bytes a token; the size axis counts it once a sequence."""
    resident = [tokens * KV_BYTES / GIB for _, tokens in points]
    assumed = [batch * tokens * KV_BYTES / GIB for batch, tokens in points]
    return fit.two_term(assumed, [intercept_ms + slope_ms_per_gib * gib for gib in resident], "vLLM, shared prefix")


def test_refuses_the_shared_prefix_artefact():
    """A batch of 16 over one copy: the slope comes out 16 times too small, an apparent 342.9 GB/s."""
    apparent_ms_per_gib = GIB / 342.9e6
    artefact = shared_prefix_fit([(16, tokens) for tokens in (4096, 8192, 16384, 32000)], 73.9, 16 * apparent_ms_per_gib)
    assert f"{artefact.slope_ms_per_gib.value:.2f}" == "3.13"
    inferred = Bandwidth(artefact.source, "KV path", fit.kv_path_gbps(artefact).value)
    with pytest.raises(AboveTheBus, match=r"^vLLM, shared prefix: KV path: found 342\.9 GB/s, expected nothing above the bus of 273 GB/s$"):
        physical_bound([inferred], bus_gbps=273.0)


@pytest.mark.parametrize("rows", ["decode_hf_sdpa.csv", "decode_vllm_fa2.csv"])
def test_refuses_the_artefact_on_the_retained_grids(rows):
    """Had the retained (batch, context) grids shared their prefixes at the measured KV cost, the bus would have told."""
    points = retained.read_decode_steps(GB10 / rows).select("batch", "context_tokens").rows()
    artefact = shared_prefix_fit(points, 73.9, 17.58)
    with pytest.raises(AboveTheBus):
        physical_bound([Bandwidth(artefact.source, "KV path", fit.kv_path_gbps(artefact).value)], PLATFORM.bus_gbps)


def test_retained_rows_pass():
    subjects = [Bandwidth("GB10", "streaming copy", retained.read_streaming_copy(GB10 / "streaming.csv").gbps)]
    for name in ("decode_hf_sdpa.csv", "decode_vllm_fa2.csv"):
        rows = retained.read_decode_steps(GB10 / name)
        line = fit.two_term(retained.kv_gib(rows, KV_BYTES), rows["step_ms"].to_list(), name)
        subjects.append(Bandwidth(name, "fixed path", fit.fixed_path_gbps(line, PLATFORM.model.weight_bytes).value))
        subjects.append(Bandwidth(name, "KV path", fit.kv_path_gbps(line).value))
    checked = physical_bound(subjects, PLATFORM.bus_gbps)
    assert [f"{each.value:.1f}" for each in checked] == ["236.5", "151.5", "65.8", "205.6", "61.1"]
    assert {each.bound for each in checked} == {273.0}


def test_every_bandwidth_of_the_retained_runs_is_checked():
    """The copy; two fits, 7 + 9 fits with a row left out and their two paths each; 7 + 9 steps."""
    files = {"hf": "decode_hf_sdpa.csv", "vllm": "decode_vllm_fa2.csv"}
    runs = [fit_run(key, GB10 / name, PLATFORM, 236.5) for key, name in files.items()]
    checked = physical_bound(bandwidths_of(runs, PLATFORM, 236.5), PLATFORM.bus_gbps)
    assert len(checked) == 1 + 2 * (4 + 16) + 16
    assert len({each.subject for each in checked}) == len(checked)
    without = [each for each in checked if "without 16 × 16384" in each.subject]
    assert [f"{each.value:.0f}" for each in without] == ["172", "90"]


def test_refuses_retained_rows_that_share_a_copy(tmp_path):
    """Step times all but flat in KV, as one shared copy makes them."""
    path = tmp_path / "flat.csv"
    path.write_text("batch,context_tokens,step_ms\n1,4096,95.1\n4,4096,95.2\n16,4096,96.0\n16,16384,105.0\n4,16384,97.0\n")
    run = fit_run("vllm", path, PLATFORM, 236.5)
    with pytest.raises(AboveTheBus, match=r"exact KV sizes: KV path: found \d+\.\d GB/s, expected nothing above the bus of 273 GB/s"):
        physical_bound(bandwidths_of([run], PLATFORM, 236.5), PLATFORM.bus_gbps)


def test_a_fit_without_one_row_is_checked_like_any_other(tmp_path):
    """Without its steep last row the line is too flat for the bus; with it, all is well."""
    path = tmp_path / "steep.csv"
    path.write_text("batch,context_tokens,step_ms\n1,4096,95.1\n4,4096,95.2\n16,4096,96.0\n4,16384,97.0\n16,16384,165.0\n")
    run = fit_run("vllm", path, PLATFORM, 236.5)
    whole = [each for each in bandwidths_of([run], PLATFORM, 236.5) if "without" not in each.source]
    assert physical_bound(whole, PLATFORM.bus_gbps)
    with pytest.raises(AboveTheBus, match="without 16 × 16384: KV path"):
        physical_bound(bandwidths_of([run], PLATFORM, 236.5), PLATFORM.bus_gbps)


def test_the_report_lists_what_passed():
    record = report(physical_bound([Bandwidth("A", "KV path", 61.1)], 273))
    assert record["verdict"] == "pass"
    assert record["subjects"] == [{"subject": "KV path of A", "value": 61.1, "bound": 273, "unit": "GB/s"}]


def test_one_offender_among_others_is_enough():
    with pytest.raises(AboveTheBus, match=r"B: fixed path: found 273\.1 GB/s"):
        physical_bound([Bandwidth("A", "KV path", 61.1), Bandwidth("B", "fixed path", 273.1)], 273)


def test_the_bus_itself_is_allowed():
    assert physical_bound([Bandwidth("A", "KV path", 273.0)], 273)[0].value == 273.0


@pytest.mark.parametrize("gbps", [-65.0, 0.0, float("nan")])
def test_refuses_what_is_no_bandwidth(gbps):
    with pytest.raises(InputError, match="expected a finite bandwidth above 0 GB/s"):
        physical_bound([Bandwidth("A", "KV path", gbps)], 273)


def test_infinite_bandwidth_is_above_the_bus():
    with pytest.raises(AboveTheBus):
        physical_bound([Bandwidth("A", "KV path", float("inf"))], 273)


@pytest.mark.parametrize("bus", [0.0, -1.0, float("nan"), float("inf")])
def test_refuses_a_bus_that_bounds_nothing(bus):
    with pytest.raises(InputError, match="bus_gbps"):
        physical_bound([Bandwidth("A", "KV path", 61.1)], bus)


def test_refuses_to_pass_on_nothing():
    with pytest.raises(InputError, match="at least one to check"):
        physical_bound([], 273)


def test_refuses_the_silent_fp32_load():
    resident = PLATFORM.recorded_bugs["fp32_resident_gib"] * GIB
    with pytest.raises(UnexpectedWeights, match=r"found 28\.40 GiB, the size of float32, expected 14\.16 GiB as float16"):
        resident_weights(resident, PLATFORM.model.parameters, "float16")


def test_fp16_weights_pass():
    checked = resident_weights(PLATFORM.model.weight_bytes, PLATFORM.model.parameters, PLATFORM.dtype)
    assert f"{checked.value:.2f}" == "14.16"


@pytest.mark.parametrize(
    ("resident_bytes", "parameters", "dtype", "message"),
    [
        (15.2e9, 7_600_000_000, "half", "dtype: found half, expected one of float32"),
        (15.2e9, 0, "float16", "parameters: found 0, expected 1 or more"),
        (5e9, 7_600_000_000, "float16", r"resident weights: found 4\.66 GiB, expected 14\.16 GiB"),
        (float("nan"), 7_600_000_000, "float16", "resident weights: found nan GiB"),
    ],
)
def test_refuses_weights(resident_bytes, parameters, dtype, message):
    with pytest.raises(InputError, match=message):
        resident_weights(resident_bytes, parameters, dtype)
