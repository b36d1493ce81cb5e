"""The two-term fit: closed forms, two other implementations, and every value of SPEC §7."""

import math
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.errors import InputError
from kvtier.measure import fit, retained
from kvtier.measure.platform import read_platform

GB10 = Path(__file__).resolve().parents[2] / "data/measured/gb10-2026-08-19"
PLATFORM = read_platform(GB10 / "platform.yaml")
WEIGHTS = PLATFORM.model.weight_bytes
FILES = {"hf": GB10 / "decode_hf_sdpa.csv", "vllm": GB10 / "decode_vllm_fa2.csv"}
COPY_GBPS = 236.5


def sizes_and_times(run, published=False):
    rows = retained.read_decode_steps(FILES[run])
    sizes = retained.kv_gib(rows, PLATFORM.model.kv_bytes_per_token)
    return (retained.as_published(sizes) if published else sizes), rows["step_ms"].to_list()


def line(run, published=False):
    return fit.two_term(*sizes_and_times(run, published), source=run)


def test_by_hand():
    """(0, 1), (1, 2), (2, 4): slope 3/2, intercept 5/6, residuals 1/6, −1/3, 1/6."""
    by_hand = fit.two_term([0.0, 1.0, 2.0], [1.0, 2.0, 4.0])
    assert by_hand.slope_ms_per_gib.value == 1.5
    assert by_hand.intercept_ms.value == 5 / 6
    assert by_hand.residuals_ms == (1 / 6, -1 / 3, 1 / 6)
    assert by_hand.slope_ms_per_gib.standard_error == pytest.approx(math.sqrt(1 / 12), rel=1e-15)
    assert by_hand.intercept_ms.standard_error == pytest.approx(math.sqrt(1 / 6 * 5 / 6), rel=1e-15)
    assert by_hand.covariance == pytest.approx(-1 / 12, rel=1e-15)
    assert by_hand.r_squared == 27 / 28


@pytest.mark.parametrize("run", FILES)
@pytest.mark.parametrize("published", [False, True])
def test_equals_numpy_and_statistics(run, published):
    sizes, times = sizes_and_times(run, published)
    ours = fit.two_term(sizes, times)
    (slope, intercept), covariance = np.polyfit(sizes, times, 1, cov=True)
    assert ours.slope_ms_per_gib.value == pytest.approx(slope, rel=1e-12)
    assert ours.intercept_ms.value == pytest.approx(intercept, rel=1e-12)
    assert ours.slope_ms_per_gib.standard_error == pytest.approx(math.sqrt(covariance[0, 0]), rel=1e-10)
    assert ours.intercept_ms.standard_error == pytest.approx(math.sqrt(covariance[1, 1]), rel=1e-10)
    assert ours.covariance == pytest.approx(covariance[0, 1], rel=1e-10)
    assert ours.residuals_ms == pytest.approx(np.array(times) - np.polyval((slope, intercept), sizes), abs=1e-10)
    assert tuple(statistics.linear_regression(sizes, times)) == pytest.approx((slope, intercept), rel=1e-12)
    assert ours.r_squared == pytest.approx(statistics.correlation(sizes, times) ** 2, rel=1e-12)


@given(
    st.lists(
        st.tuples(st.integers(1, 4000), st.integers(1, 100_000)),
        min_size=3,
        max_size=12,
        unique_by=(lambda row: row[0], lambda row: row[1]),
    ),
    st.randoms(use_true_random=False),
)
def test_order_of_rows_moves_no_bit(points, random):
    points = [(size / 64, time / 8) for size, time in points]
    shuffled = random.sample(points, len(points))
    one, other = (fit.two_term(*zip(*rows, strict=True)) for rows in (points, shuffled))
    assert (one.intercept_ms, one.slope_ms_per_gib, one.covariance, one.r_squared) == (
        other.intercept_ms,
        other.slope_ms_per_gib,
        other.covariance,
        other.r_squared,
    )
    assert 0 <= one.r_squared <= 1


def test_exact_line_has_no_error():
    exact = fit.two_term([1.0, 2.0, 3.0, 5.0], [12.0, 14.0, 16.0, 20.0])
    assert (exact.intercept_ms, exact.slope_ms_per_gib) == (fit.Estimate(10.0, 0.0), fit.Estimate(2.0, 0.0))
    assert exact.r_squared == 1.0
    assert fit.fixed_over_kv(exact, WEIGHTS).standard_error == 0.0


def shown(estimate, digits):
    return f"{estimate.value:.{digits}f}"


@pytest.mark.parametrize(
    ("run", "n", "intercept", "slope", "r_squared", "fixed", "kv", "fixed_share", "kv_share", "ratio"),
    [
        ("hf", 7, "100.3", "16.33", "0.991", "151.5", "65.8", "64", "28", "2.3"),
        ("vllm", 9, "73.9", "17.58", "0.945", "205.6", "61.1", "87", "26", "3.4"),
    ],
)
def test_specification_with_sizes_from_the_geometry(run, n, intercept, slope, r_squared, fixed, kv, fixed_share, kv_share, ratio):
    ours = line(run)
    assert ours.n == n
    assert shown(ours.intercept_ms, 1) == intercept
    assert shown(ours.slope_ms_per_gib, 2) == slope
    assert f"{ours.r_squared:.3f}" == r_squared
    fixed_path, kv_path = fit.fixed_path_gbps(ours, WEIGHTS), fit.kv_path_gbps(ours)
    assert shown(fixed_path, 1) == fixed
    assert shown(kv_path, 1) == kv
    assert shown(fixed_path.over(COPY_GBPS / 100), 0) == fixed_share
    assert shown(kv_path.over(COPY_GBPS / 100), 0) == kv_share
    assert shown(fit.fixed_over_kv(ours, WEIGHTS), 1) == ratio
    for estimate in (ours.intercept_ms, ours.slope_ms_per_gib, fixed_path, kv_path):
        assert 0 < estimate.standard_error < estimate.value


def test_standard_errors():
    hf, vllm = line("hf"), line("vllm")
    assert (shown_error(hf.intercept_ms), shown_error(hf.slope_ms_per_gib)) == ("2.26", "0.68")
    assert (shown_error(vllm.intercept_ms), shown_error(vllm.slope_ms_per_gib)) == ("9.55", "1.60")
    assert (shown_error(fit.fixed_path_gbps(hf, WEIGHTS)), shown_error(fit.kv_path_gbps(hf))) == ("3.42", "2.73")
    assert (shown_error(fit.fixed_path_gbps(vllm, WEIGHTS)), shown_error(fit.kv_path_gbps(vllm))) == ("26.57", "5.56")


def shown_error(estimate):
    return f"{estimate.standard_error:.2f}"


def test_published_sizes_give_the_published_digits():
    """D18: 16.34, 65.7 and 205.7 come from KV sizes rounded to two decimals."""
    hf, vllm = line("hf", published=True), line("vllm", published=True)
    assert (shown(hf.intercept_ms, 1), shown(hf.slope_ms_per_gib, 2), f"{hf.r_squared:.3f}") == ("100.3", "16.34", "0.991")
    assert (shown(vllm.intercept_ms, 1), shown(vllm.slope_ms_per_gib, 2), f"{vllm.r_squared:.3f}") == ("73.9", "17.58", "0.945")
    assert shown(fit.kv_path_gbps(hf), 1) == "65.7"
    assert shown(fit.kv_path_gbps(vllm), 1) == "61.1"
    assert shown(fit.fixed_path_gbps(vllm, WEIGHTS), 1) == "205.7"


def test_published_fixed_path_of_hf_is_from_the_printed_intercept():
    """Rounded sizes give 151.6 at full precision; 151.5 needs the printed 100.3 (or exact sizes)."""
    hf = line("hf", published=True)
    assert shown(fit.fixed_path_gbps(hf, WEIGHTS), 1) == "151.6"
    assert f"{WEIGHTS / 1e6 / round(hf.intercept_ms.value, 1):.1f}" == "151.5"


def test_bandwidths_from_printed_coefficients_are_all_as_published():
    bandwidths = [f"{15.2e3 / 100.3:.1f}", f"{15.2e3 / 73.9:.1f}", f"{2**30 / 1e6 / 16.34:.1f}", f"{2**30 / 1e6 / 17.58:.1f}"]
    assert bandwidths == ["151.5", "205.7", "65.7", "61.1"]


def test_ratio_error_includes_the_covariance():
    """Against numpy's covariance matrix and the gradient of W·b/(G·a)."""
    sizes, times = sizes_and_times("vllm")
    (slope, intercept), covariance = np.polyfit(sizes, times, 1, cov=True)
    scale = WEIGHTS / 2**30
    gradient = np.array([scale / intercept, -scale * slope / intercept**2])
    ratio = fit.fixed_over_kv(line("vllm"), WEIGHTS)
    assert ratio.value == pytest.approx(scale * slope / intercept, rel=1e-12)
    assert ratio.standard_error == pytest.approx(math.sqrt(gradient @ covariance @ gradient), rel=1e-9)
    independent = fit.independent_ratio(fit.fixed_path_gbps(line("vllm"), WEIGHTS), fit.kv_path_gbps(line("vllm")))
    assert ratio.standard_error > independent.standard_error


def test_one_row_carries_the_ratio():
    """D3: without 16 × 16,384 vLLM's slope is near 11.9 and the ratio near 1.9; no other row moves either that far."""
    rows = retained.read_decode_steps(FILES["vllm"])
    decisive = rows.select("batch", "context_tokens").rows().index((16, 16384))
    without = fit.leave_one_out(*sizes_and_times("vllm"))
    assert shown(without[decisive].slope_ms_per_gib, 1) == "11.9"
    assert shown(fit.fixed_over_kv(without[decisive], WEIGHTS), 1) == "1.9"
    assert 25.5 < line("vllm").residuals_ms[decisive] < 26.5
    others = [each.slope_ms_per_gib.value for row, each in enumerate(without) if row != decisive]
    assert min(others) > 17.4
    assert [each.n for each in without] == [8] * 9


def test_slopes_and_fixed_path_between_frameworks():
    """The slopes differ by 8%, well inside their error; the fixed path by 36% (D5), not 34%."""
    slopes = fit.independent_ratio(line("vllm").slope_ms_per_gib, line("hf").slope_ms_per_gib)
    assert f"{100 * (slopes.value - 1):.0f}" == "8"
    assert slopes.standard_error > slopes.value - 1
    for published in (False, True):
        fixed = [fit.fixed_path_gbps(line(run, published), WEIGHTS).value for run in ("vllm", "hf")]
        assert f"{100 * (fixed[0] / fixed[1] - 1):.0f}" == "36"


def test_implied_is_each_of_the_bandwidths_once():
    vllm = line("vllm")
    implied = fit.implied(vllm, WEIGHTS, COPY_GBPS)
    assert implied.fixed_gbps == fit.fixed_path_gbps(vllm, WEIGHTS)
    assert implied.kv_gbps == fit.kv_path_gbps(vllm)
    assert implied.fixed_over_kv == fit.fixed_over_kv(vllm, WEIGHTS)
    assert implied.fixed_share_percent.value == pytest.approx(100 * implied.fixed_gbps.value / COPY_GBPS)
    assert implied.kv_share_percent.standard_error == pytest.approx(100 * implied.kv_gbps.standard_error / COPY_GBPS)


@pytest.mark.parametrize(
    ("sizes", "times", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0], "rows: found 2, expected at least 3"),
        ([], [], "rows: found 0"),
        ([1.0, 2.0, 3.0], [1.0, 2.0], "rows: found 3 KV sizes and 2 times"),
        ([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], r"KV size: found 2\.0 in every row, expected values that differ"),
        ([1.0, 2.0, 3.0], [5.0, 5.0, 5.0], r"step_ms: found 5\.0 in every row"),
        ([1.0, float("nan"), 3.0], [1.0, 2.0, 3.0], "KV size, row 2: found nan, expected a finite number"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, float("inf")], "step_ms, row 3: found inf"),
    ],
)
def test_refuses_what_cannot_be_fitted(sizes, times, message):
    with pytest.raises(InputError, match=f"^rows.csv: {message}"):
        fit.two_term(sizes, times, "rows.csv")


def test_leave_one_out_needs_four_rows():
    with pytest.raises(InputError, match="rows: found 3, expected at least 4"):
        fit.leave_one_out([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])


def test_no_bandwidth_from_a_slope_or_intercept_that_is_not_positive():
    falling = fit.two_term([1.0, 2.0, 3.0], [30.0, 20.0, 11.0], "falling")
    with pytest.raises(InputError, match=r"falling: slope \[ms/GiB\]: found -9\.50, expected above 0"):
        fit.kv_path_gbps(falling)
    steep = fit.two_term([1.0, 2.0, 3.0], [1.0, 20.0, 42.0], "steep")
    with pytest.raises(InputError, match=r"steep: intercept \[ms\]: found -"):
        fit.fixed_path_gbps(steep, WEIGHTS)
