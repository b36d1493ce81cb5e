"""Intervals, influence, the robust line and the term for the batch: by hand, against numpy, and with a planted outlier."""

import math
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.measure import fit, influence, robust, sensitivity_numbers, sensitivity_tables, three_term, uncertainty
from kvtier.measure.fit import Estimate
from kvtier.measure.numbers import numbers
from kvtier.measure.platform import read_platform
from kvtier.measure.retained import read_streaming_copy
from kvtier.measure.runs import fit_run
from kvtier.measure.sensitivity import sensitivity

GB10 = Path(__file__).resolve().parents[2] / "data/measured/gb10-2026-08-19"
PLATFORM = read_platform(GB10 / "platform.yaml")
WEIGHTS = PLATFORM.model.stated("weight_bytes")
COPY = read_streaming_copy(GB10 / "streaming.csv")
FILES = {"hf": "decode_hf_sdpa.csv", "vllm": "decode_vllm_fa2.csv"}

X, Y = [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 5.0]
"""Slope 8/5, intercept −2/5, residuals 2/5, −1/5, −4/5, 3/5, residual variance 3/5, leverages 7/10, 3/10, 3/10, 7/10."""


@pytest.fixture(scope="module")
def runs():
    return {key: fit_run(key, GB10 / name, PLATFORM, COPY.gbps) for key, name in FILES.items()}


@pytest.fixture(scope="module")
def weighed(runs):
    return {key: sensitivity(run, WEIGHTS) for key, run in runs.items()}


@pytest.fixture(scope="module")
def ledger(weighed):
    found = list(sensitivity_numbers.numbers(weighed))
    assert len({number.key for number in found}) == len(found)
    return {number.key.removeprefix("measured.gb10."): number for number in found}


def ends(number):
    return number.uncertainty["interval_low"], number.uncertainty["interval_high"]


def planted():
    """Rows on 10 + 2·KV, one 40 ms above it."""
    sizes = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0]
    return sizes, [10 + 2 * size + 0.01 * (-1) ** row + 40 * (size == 9.0) for row, size in enumerate(sizes)]


# Intervals


def test_student_interval_is_t_standard_errors_wide():
    found = uncertainty.student(Estimate(10.0, 2.0), 4)
    assert (found.low, found.high) == pytest.approx((10 - 2 * 2.776445105, 10 + 2 * 2.776445105), abs=1e-8)
    assert found.uncertainty == {"interval_low": found.low, "interval_high": found.high, "interval_level": 0.95}


def test_ratio_with_an_exact_denominator_is_students_interval_divided():
    exact = uncertainty.ratio(Estimate(10.0, 2.0), Estimate(4.0, 0.0), 0.0, 4, "rows")
    plain = uncertainty.student(Estimate(10.0, 2.0), 4).through(lambda value: value / 4)
    assert (exact.value, exact.low, exact.high) == pytest.approx((plain.value, plain.low, plain.high))


@pytest.mark.parametrize("run", FILES)
def test_the_ends_of_a_ratio_are_where_the_test_turns(runs, run):
    line = runs[run].exact.line
    a, b = line.intercept_ms, line.slope_ms_per_gib
    found = uncertainty.ratio(b, a, line.covariance, line.freedom, run)
    t = uncertainty.student_quantile(0.975, line.freedom)
    for end in (found.low, found.high):
        variance = b.standard_error**2 - 2 * end * line.covariance + end**2 * a.standard_error**2
        assert (b.value - end * a.value) ** 2 == pytest.approx(t * t * variance, rel=1e-9)
    assert found.low < b.value / a.value < found.high


def test_fieller_covers_what_it_says():
    """4,000 draws of nine times at vLLM's sizes, errors as large as its residuals; the linear step leaves more out on one side."""
    line = fit_run("vllm", GB10 / FILES["vllm"], PLATFORM, COPY.gbps)
    x, random = np.array(line.kv_gib), np.random.default_rng(7)
    a, b, sigma = 73.9, 17.6, 20.0
    mean, sxx = x.mean(), ((x - x.mean()) ** 2).sum()
    covered = refused = above_linear = below_linear = 0
    for _ in range(4000):
        y = a + b * x + random.normal(0, sigma, len(x))
        slope = ((x - mean) * (y - y.mean())).sum() / sxx
        intercept = y.mean() - slope * mean
        variance = ((y - intercept - slope * x) ** 2).sum() / (len(x) - 2)
        ours = Estimate(slope, math.sqrt(variance / sxx)), Estimate(intercept, math.sqrt(variance * (1 / len(x) + mean**2 / sxx)))
        try:
            found = uncertainty.ratio(*ours, -mean * variance / sxx, len(x) - 2, "draw")
        except InputError:
            refused += 1
            continue
        covered += found.low <= b / a <= found.high
        gradient = (1 / intercept, -slope / intercept**2)
        error = math.sqrt(
            (gradient[0] * ours[0].standard_error) ** 2
            + (gradient[1] * ours[1].standard_error) ** 2
            + 2 * gradient[0] * gradient[1] * (-mean * variance / sxx)
        )
        half = uncertainty.student_quantile(0.975, len(x) - 2) * error
        above_linear += b / a > slope / intercept + half
        below_linear += b / a < slope / intercept - half
    assert refused < 10
    assert covered / 4000 == pytest.approx(0.95, abs=0.011)
    assert above_linear > 2 * below_linear


def test_no_ends_for_a_ratio_over_what_may_be_zero():
    with pytest.raises(InputError, match=r"rows\.csv: denominator of a ratio: found 4 ± 2, 4 degrees of freedom"):
        uncertainty.ratio(Estimate(10.0, 1.0), Estimate(4.0, 2.0), 0.0, 4, "rows.csv")


def test_welchs_degrees_of_freedom():
    """Equal errors of equal runs have twice the freedom of one; a run without error adds none."""
    one = Estimate(2.0, 0.5)
    assert uncertainty.welch_freedom(one, 5, one, 5) == 10
    assert uncertainty.welch_freedom(one, 5, Estimate(2.0, 0.0), 7) == 5


# Influence


def test_influence_by_hand():
    found = influence.influences(X, Y)
    assert [each.leverage for each in found] == [0.7, 0.3, 0.3, 0.7]
    assert [each.cooks for each in found] == pytest.approx([28 / 27, 1 / 49, 16 / 49, 7 / 3], rel=1e-15)
    assert found[3].dfbeta == 0.6
    assert found[3].studentized == math.inf == found[3].dfbetas
    assert found[0].studentized == pytest.approx(0.4 / math.sqrt(2 / 3 * 0.3), rel=1e-15)
    assert influence.decisive(found) == 3


@pytest.mark.parametrize("run", FILES)
def test_influence_equals_numpys_hat_matrix_and_the_fits_without_a_row(runs, run):
    x, y = np.array(runs[run].kv_gib), np.array(runs[run].step_ms)
    design = np.column_stack([np.ones_like(x), x])
    hat = design @ np.linalg.inv(design.T @ design) @ design.T
    residuals = y - hat @ y
    variance = residuals @ residuals / (len(x) - 2)
    line, found = runs[run].exact.line, influence.influences(runs[run].kv_gib, runs[run].step_ms)
    assert sum(each.leverage for each in found) == pytest.approx(2, rel=1e-12)
    for row, (each, without) in enumerate(zip(found, runs[run].without, strict=True)):
        assert each.leverage == pytest.approx(hat[row, row], rel=1e-12)
        others = np.delete(np.arange(len(x)), row)
        coefficients, *_ = np.linalg.lstsq(design[others], y[others], rcond=None)
        moved = hat @ y - design @ coefficients
        assert each.cooks == pytest.approx(moved @ moved / (2 * variance), rel=1e-9)
        assert each.dfbeta == pytest.approx(line.slope_ms_per_gib.value - without.line.slope_ms_per_gib.value, abs=1e-12)
        of_others = ((y[others] - design[others] @ coefficients) ** 2).sum() / (len(others) - 2)
        assert each.studentized == pytest.approx(residuals[row] / math.sqrt(of_others * (1 - hat[row, row])), rel=1e-9)


def test_cooks_distance_and_leave_one_out_name_the_same_row(weighed):
    for found in weighed.values():
        assert influence.decisive(found.influences) == found.run.decisive
    assert [weighed[run].run.points[weighed[run].run.decisive] for run in FILES] == [(4, 32768), (16, 16384)]


def test_a_planted_outlier_is_found():
    found = influence.influences(*planted())
    assert influence.decisive(found) == 6
    assert found[6].cooks > 10 * sorted(each.cooks for each in found)[-2]
    assert found[6].studentized > 100


@pytest.mark.parametrize(
    ("sizes", "times", "message"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], "rows: found 3, expected at least 4"),
        ([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], "residuals: found 0 in every row"),
        ([1.0, 1.0, 1.0, 4.0], [2.0, 3.0, 6.0, 8.0], r"KV size, row 4: found 4\.0, expected other rows that differ in size"),
    ],
)
def test_refuses_what_has_no_influence(sizes, times, message):
    with pytest.raises(InputError, match=f"^rows.csv: {message}"):
        influence.influences(sizes, times, "rows.csv")


# The robust line


def test_theil_sen_by_hand():
    """Six slopes of 2 among the first four rows, four larger ones to the last: the median is 2."""
    found = robust.theil_sen([0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 5.0, 7.0, 100.0])
    assert (found.slope_ms_per_gib.value, found.intercept_ms, found.pairs) == (2.0, 1.0, 10)
    assert (found.slope_ms_per_gib.low, found.slope_ms_per_gib.high) == (2.0, 93.0)
    assert found.covers == pytest.approx(1 - 2 / 120)


def test_theil_sen_holds_where_least_squares_is_carried_away():
    sizes, times = planted()
    assert robust.theil_sen(sizes, times).slope_ms_per_gib.value == pytest.approx(2, abs=0.02)
    assert fit.two_term(sizes, times).slope_ms_per_gib.value > 5


@pytest.mark.parametrize("run", FILES)
def test_theil_sen_equals_numpys_median(runs, run):
    x, y = runs[run].kv_gib, runs[run].step_ms
    slopes = [(y[j] - y[i]) / (x[j] - x[i]) for i, j in combinations(range(len(x)), 2) if x[i] != x[j]]
    found = robust.theil_sen(x, y)
    assert found.slope_ms_per_gib.value == pytest.approx(np.median(slopes), rel=1e-12)
    assert found.intercept_ms == pytest.approx(np.median(np.array(y) - np.median(slopes) * np.array(x)), rel=1e-12)
    assert found.covers >= 0.95


@pytest.mark.parametrize("sizes", [[1, 2, 3, 4, 5], [1, 1, 2, 3, 3], [1, 1, 1, 2], [2, 2], [1]])
def test_orders_are_counted_as_they_are(sizes):
    """Falling pairs of every order of the rows, equal sizes told apart by none."""
    counted = Counter(sum(a > b for a, b in combinations(order, 2)) for order in set(permutations(sizes)))
    assert robust.orders(sizes) == [counted[falling] for falling in range(max(counted) + 1)]


def test_four_rows_have_no_interval_by_order():
    with pytest.raises(InputError, match=r"rows: found 4, expected enough for 95 % between two of 6 pairwise slopes"):
        robust.theil_sen(X, Y)


# A term for the batch

SIZES, BATCH = [1.0, 2.0, 4.0, 3.0, 6.0], [1.0, 1.0, 1.0, 4.0, 4.0]


def test_an_exact_plane_is_recovered_without_error():
    found = three_term.three_term(SIZES, BATCH, [10 + 2 * x + 0.5 * z for x, z in zip(SIZES, BATCH, strict=True)])
    assert found.intercept_ms == Estimate(10.0, 0.0)
    assert found.slope_ms_per_gib == Estimate(2.0, 0.0)
    assert found.ms_per_sequence == Estimate(0.5, 0.0)
    assert (found.r_squared, found.freedom) == (1.0, 2)


@pytest.mark.parametrize("run", FILES)
def test_three_term_equals_numpy(runs, run):
    x, y, z = runs[run].kv_gib, runs[run].step_ms, [batch for batch, _ in runs[run].points]
    design = np.column_stack([np.ones(len(x)), x, z])
    coefficients, squares, *_ = np.linalg.lstsq(design, np.array(y), rcond=None)
    covariance = np.linalg.inv(design.T @ design) * squares[0] / (len(x) - 3)
    found = three_term.three_term(x, z, y)
    estimates = (found.intercept_ms, found.slope_ms_per_gib, found.ms_per_sequence)
    assert [each.value for each in estimates] == pytest.approx(coefficients, rel=1e-12)
    assert [each.standard_error for each in estimates] == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-11)
    assert found.covariance == pytest.approx(covariance[0, 1], rel=1e-10)
    assert found.correlation == pytest.approx(np.corrcoef(x, z)[0, 1], rel=1e-12)
    assert found.residuals_ms == pytest.approx(np.array(y) - design @ coefficients, abs=1e-10)


@pytest.mark.parametrize(
    ("sizes", "batch", "times", "message"),
    [
        ([1.0, 2.0, 3.0], [1, 2, 1], [1.0, 2.0, 4.0], "rows: found 3, expected at least 4"),
        ([1.0, 2.0, 3.0], [1, 2], [1.0, 2.0, 4.0], "rows: found 3 KV sizes, 2 batches, 3 times"),
        ([0.1, 0.2, 0.4, 0.8], [1, 2, 4, 8], [1.0, 2.0, 4.0, 9.0], "columns KV size and batch: found one a line of the other"),
        ([1.0, 2.0, 3.0, 4.0], [4, 4, 4, 4], [1.0, 2.0, 4.0, 9.0], "batch: found 4 in every row"),
        ([1.0, 2.0, 3.0, math.nan], [1, 2, 1, 2], [1.0, 2.0, 4.0, 9.0], "KV size, row 4: found nan"),
    ],
)
def test_refuses_rows_that_cannot_tell_kv_from_batch(sizes, batch, times, message):
    with pytest.raises(InputError, match=f"^rows.csv: {message}"):
        three_term.three_term(sizes, batch, times, "rows.csv")


def test_mean_residual_by_batch():
    assert three_term.mean_by([4, 1, 4, 16], [1.0, 2.0, 3.0, -4.0]) == {1: 2.0, 4: 2.0, 16: -4.0}


# All of it


@given(
    st.lists(st.tuples(st.integers(1, 400), st.sampled_from([1, 4, 16]), st.integers(1, 9_000)), min_size=6, max_size=9, unique=True),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_order_of_rows_moves_no_bit(points, random):
    points = [(size / 64, batch, time / 8) for size, batch, time in points]
    shuffled = random.sample(points, len(points))

    def found(rows):
        sizes, batch, times = zip(*rows, strict=True)
        try:
            influences = dict(zip(rows, influence.influences(sizes, times), strict=True))
            plane = three_term.three_term(sizes, batch, times)
        except InputError as error:
            return str(error).partition(", row")[0]
        kept = (plane.intercept_ms, plane.slope_ms_per_gib, plane.ms_per_sequence, plane.covariance, plane.r_squared)
        return influences, kept, robust.theil_sen(sizes, times)

    one, other = found(points), found(shuffled)
    assert one == other


def test_tables_are_the_same_bytes_twice(weighed, runs):
    again = {key: sensitivity(run, WEIGHTS) for key, run in runs.items()}
    one, other = (sensitivity_tables.build(each.values()) for each in (weighed, again))
    assert {name: table.write_csv() for name, table in one.items()} == {name: table.write_csv() for name, table in other.items()}
    assert [table.height for table in one.values()] == [16, 6, 7]
    assert one["influence"].filter("decisive").select("batch", "context_tokens").rows() == [(4, 32768), (16, 16384)]


@pytest.mark.parametrize(
    ("key", "display", "low", "high"),
    [
        ("hf.fixed_over_kv_95", "2.3", 1.963, 2.681),
        ("vllm.fixed_over_kv_95", "3.4", 2.100, 5.676),
        ("vllm.slope_95", "17.58", 13.794, 21.362),
        ("vllm_over_hf.slope_change_95", "8", -15.878, 33.111),
        ("vllm_over_hf.fixed_change_95", "36", 3.340, 96.095),
        ("vllm.16x16384.without_slope", "11.87", 8.946, 14.798),
        ("vllm.16x16384.without_fixed_over_kv", "1.9", 1.295, 2.681),
        ("hf_theil_sen.slope", "16.08", 14.171, 19.505),
        ("vllm_theil_sen.slope", "10.80", 9.473, 18.743),
        ("vllm_three_term.fixed_over_kv", "3.4", 2.011, 6.039),
    ],
)
def test_intervals_as_displayed(ledger, key, display, low, high):
    assert ledger[key].display == display
    assert ends(ledger[key]) == pytest.approx((low, high), abs=6e-4)


@pytest.mark.parametrize(
    ("key", "display"),
    [
        ("vllm.16x16384.cooks", "7.52"),
        ("vllm.16x16384.leverage", "0.72"),
        ("vllm.16x16384.dfbeta", "5.71"),
        ("hf.4x32768.cooks", "1.83"),
        ("vllm_theil_sen.fixed_over_kv", "1.7"),
        ("hf_theil_sen.fixed_over_kv", "2.3"),
        ("hf_three_term.ms_per_sequence", "0.62"),
        ("vllm_three_term.ms_per_sequence", "-0.37"),
        ("vllm.batch4.mean_residual_ms", "-13.1"),
    ],
)
def test_number_as_displayed(ledger, key, display):
    assert ledger[key].display == display


def test_the_published_numbers_are_not_touched(runs, ledger):
    """New keys beside the old; an interval's centre is the value that stands there already."""
    old = {number.key.removeprefix("measured.gb10."): number for number in numbers(runs, PLATFORM, COPY)}
    assert not old.keys() & ledger.keys()
    with_interval = [key for key in ledger if key.endswith("_95")]
    assert len(with_interval) == 2 * 7 + 2
    for key in with_interval:
        before, now = old[key.removesuffix("_95")], ledger[key]
        assert (now.value, now.display, now.unit) == (pytest.approx(before.value, rel=1e-12), before.display, before.unit)
        low, high = ends(now)
        assert low < now.value < high
    assert {number.label for number in ledger.values()} == {Label.ANALYTICAL}
