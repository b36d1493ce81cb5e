from math import comb
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.errors import InputError
from kvtier.measure import medians

TIMES = st.lists(st.floats(0.001, 1e6), min_size=3, max_size=15)


@given(TIMES)
def test_the_median_lies_in_its_interval_and_the_interval_in_the_range(values):
    found = medians.median(values, resamples=199)
    assert found.value == median(values)
    assert min(values) <= found.low <= found.value <= found.high <= max(values)
    assert found.level == 0.95


def test_the_same_values_in_any_build_have_the_same_interval():
    """Golden ends: NumPy keeps the raw stream of PCG64 for a seed."""
    values = [12.0, 10.0, 11.0, 10.5, 13.0, 11.5, 10.2]
    assert medians.median(values) == medians.Between(11.0, 10.2, 12.0)
    assert medians.ratio(values, [1.0, 1.1, 0.9, 1.05, 0.95]).value == 11.0


def test_ends_are_quantiles_of_the_bootstrap_median():
    """By hand, odd n: the median of a resample is at most the k-th value where at least (n + 1)/2 of n draws are among the k lowest."""
    n = 9

    def at_most(k):
        return sum(comb(n, j) * (k / n) ** j * (1 - k / n) ** (n - j) for j in range((n + 1) // 2, n + 1))

    low = next(k for k in range(1, n + 1) if at_most(k) >= 0.025)
    high = next(k for k in range(1, n + 1) if at_most(k) >= 0.975)
    found = medians.median([float(k) for k in range(1, n + 1)])
    assert (found.low, found.high) == (low, high) == (2, 8)


def test_more_repetitions_make_a_narrower_interval():
    few = medians.median([1.0, 2.0, 3.0, 4.0, 5.0])
    many = medians.median([1.0, 2.0, 3.0, 4.0, 5.0] * 6)
    assert many.high - many.low < few.high - few.low


def test_a_ratio_does_not_pair_its_sides():
    """With the same picks on both sides the ratio of equal values would be 1 without an interval."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    found = medians.ratio(values, values)
    assert found.value == 1
    assert found.low < 0.7 < 1.4 < found.high


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, 2.0], "rows.csv: repetitions: found 2, expected at least 3"),
        ([1.0, float("nan"), 2.0], "rows.csv: repetition 2: found nan, expected a finite number"),
    ],
)
def test_values_without_a_median_interval_are_refused(values, said):
    with pytest.raises(InputError, match=said):
        medians.median(values, "rows.csv")


def test_a_ratio_over_zero_is_refused():
    with pytest.raises(InputError, match=r"rows\.csv: denominator of a ratio: found 0\.0, expected times above 0"):
        medians.ratio([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], "rows.csv")
