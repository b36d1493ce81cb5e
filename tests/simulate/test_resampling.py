"""Bootstrap of windows and sessions, against what is known in closed form."""

import math

import numpy as np
import pytest

from kvtier.simulate import resampling
from kvtier.simulate.resampling import by_session, by_time, interval, moving_blocks


@pytest.mark.parametrize(("windows", "length"), [(1, 1), (7, 1), (8, 2), (10, 3), (5, 5)])
def test_a_resample_has_as_many_windows_as_the_trace(windows, length):
    drawn = moving_blocks(windows, length, resamples=50)
    assert drawn.shape == (50, windows)
    assert drawn.sum(axis=1).tolist() == [windows] * 50


def test_one_run_as_long_as_the_trace_is_the_trace():
    assert moving_blocks(6, 6, resamples=5).tolist() == [[1] * 6] * 5


@pytest.mark.parametrize("length", [0, 7])
def test_other_lengths_are_refused(length):
    with pytest.raises(ValueError, match=f"runs of {length} windows of 6"):
        moving_blocks(6, length)


def test_single_windows_have_the_variance_of_a_mean():
    """Of n independent draws: variance / n. Here to within 5 % with 20,000 resamples, whose own error is 1 %."""
    values = np.array([0, 3, 4, 9, 20, 1])
    means = moving_blocks(6, 1, resamples=20_000) @ values / 6
    assert means.var() == pytest.approx(values.var() / 6, rel=0.05)
    assert means.mean() == pytest.approx(values.mean(), rel=0.01)


def test_runs_have_the_variance_of_their_means():
    """Of m runs of l windows: the variance of a run's mean over its n - l + 1 starts, over m."""
    values, length = np.arange(12) ** 2, 3
    of_run = np.array([values[start : start + length].mean() for start in range(10)])
    means = moving_blocks(12, length, resamples=20_000) @ values / 12
    assert means.var() == pytest.approx(of_run.var() / 4, rel=0.05)
    assert means.mean() == pytest.approx(of_run.mean(), rel=0.01)


def test_runs_see_that_neighbours_cancel():
    """+1, -1, +1, ...: runs of two sum to nothing, and single windows do not know it."""
    values = np.tile([1, -1], 8)
    assert set((moving_blocks(16, 2, resamples=99) @ values).tolist()) == {0}
    assert len(set((moving_blocks(16, 1, resamples=99) @ values).tolist())) > 5


def test_draws_are_the_same_each_time_and_differ_by_seed():
    assert np.array_equal(moving_blocks(9, 2, 20, seed=3), moving_blocks(9, 2, 20, seed=3))
    assert not np.array_equal(moving_blocks(9, 2, 20, seed=3), moving_blocks(9, 2, 20, seed=4))


@pytest.mark.parametrize(("windows", "length"), [(1, 1), (8, 2), (9, 3), (27, 3), (28, 4), (118, 5)])
def test_run_length_is_the_cube_root_rounded_up(windows, length):
    assert resampling.run_length(windows) == length


def test_interval_is_of_whole_ranks():
    """Of 1 to 1,999 in any order: 2.5 % of 2,000 are 50."""
    values = np.random.default_rng(1).permutation(np.arange(1, 2000))
    assert interval(values) == (50, 1950)
    with pytest.raises(ValueError, match="at least one"):
        interval(np.arange(10))


def test_windows_are_of_time_and_what_is_left_over_joins_the_last():
    parts = by_time(np.array([5, 6, 15, 25, 34]) * 10**6, 10 * 10**6, resamples=9)
    assert parts.part.tolist() == [0, 0, 1, 1, 1]
    assert parts.kind == "2 windows of 10 s in runs of 2"


def test_sums_are_exact_and_paired():
    parts = by_session(np.array([7, 3, 7, 9]), resamples=40)
    one, other = np.array([1, 2, 3, 4]), np.array([10, 20, 30, 40]) + 2**53
    sums, others = parts.sums(one), parts.sums(other)
    of_session = {3: 2, 7: 4, 9: 4}
    assert sums.tolist() == (parts.drawn @ np.array(list(of_session.values()))).tolist()
    assert (others - 10 * sums).tolist() == (parts.drawn @ np.array([1, 2, 1]) * 2**53).tolist()


def test_an_interval_of_a_rate_covers_the_binomial_one():
    """Single hits of independent sessions: the interval of the rate is that of a binomial share, to within a tenth."""
    hits = (np.arange(400) % 4 == 0).astype(np.int64)
    parts = by_session(np.arange(400))
    low, high = interval(parts.sums(hits) / parts.sums(np.ones(400, dtype=np.int64)))
    half = 1.96 * math.sqrt(0.25 * 0.75 / 400)
    assert (low, high) == pytest.approx((0.25 - half, 0.25 + half), abs=0.1 * half)
