"""Clock and order of timed runs."""

import pytest

from kvtier.errors import InputError
from kvtier.kit import timing


def clock_of(readings_ns):
    return iter(readings_ns).__next__


def test_tick_is_the_smallest_step_that_is_seen():
    assert timing.tick_s(6, clock_of([0, 0, 100, 140, 140, 260])) == pytest.approx(40e-9)


def test_clock_that_stands_still_is_refused():
    with pytest.raises(InputError, match="no step in 5 readings"):
        timing.tick_s(5, lambda: 7)


def test_this_machines_clock_ticks():
    assert 0 < timing.tick_s() < 1e-3


def test_time_of_a_call_is_between_two_readings():
    assert timing.timed(lambda: None, clock_of([1_000, 251_000])) == pytest.approx(250e-6)


def test_repetitions_are_the_outer_loop_and_each_point_runs_once_untimed():
    calls = []

    def time_one(point):
        calls.append(point)
        return float(len(calls))

    found = timing.time_points(["a", "b"], 2, time_one)
    assert calls == ["a", "b"] * 3
    assert [(each.repetition, each.point, each.seconds) for each in found] == [(0, "a", 3.0), (0, "b", 4.0), (1, "a", 5.0), (1, "b", 6.0)]


def test_progress_is_called_before_each_run_and_ends_below_one():
    shares = []
    timing.time_points([1, 2], 1, float, lambda point, share: shares.append((point, share)))
    assert shares == [(1, 0.0), (2, 0.25), (1, 0.5), (2, 0.75)]


@pytest.mark.parametrize(("points", "repetitions"), [([], 3), ([1], 0)])
def test_nothing_to_time_is_refused(points, repetitions):
    with pytest.raises(InputError, match="at least one of each"):
        timing.time_points(points, repetitions, float)
