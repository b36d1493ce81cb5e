"""An interval of a few ticks and a run that slows down are planted and refused."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.audit.timing import BelowResolution, Drift, relative_times, resolved, steady
from kvtier.errors import InputError

TIMES = st.floats(1e-9, 1e9)


def test_refuses_an_interval_of_a_few_ticks():
    """A lookup of 200 ns by a clock of 41 ns, one by one."""
    message = r"^lookup: shortest interval: found 2e-07 s, 4\.878 ticks of 4\.1e-08 s, expected at least 1,000 ticks$"
    with pytest.raises(BelowResolution, match=message):
        resolved(200e-9, 41e-9, "lookup")


@given(TIMES)
def test_a_thousand_ticks_pass_and_less_does_not(tick_s):
    assert resolved(1000 * tick_s, tick_s).bound == 1000
    with pytest.raises(BelowResolution):
        resolved(math.nextafter(1000 * tick_s, 0), tick_s)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1e-9, None])
def test_refuses_what_is_no_time(bad):
    with pytest.raises(InputError, match="shortest_s: found"):
        resolved(bad, 1e-9)
    with pytest.raises(InputError, match="tick_s: found"):
        resolved(1.0, bad)


def test_refuses_a_run_that_slows_down():
    """A clock that falls by a fifth after the second of six repetitions."""
    message = r"^decode: repetitions: found the last 2 of 6 25\.0 % slower than the first 2, expected no more than 15 %$"
    with pytest.raises(Drift, match=message):
        steady([1.0, 1.0, 1.25, 1.25, 1.25, 1.25], "decode")


def test_refuses_a_run_that_warms_up():
    with pytest.raises(Drift, match=r"the last 1 of 3 50\.0 % faster than the first 1"):
        steady([1.5, 1.0, 1.0])


def test_one_outlier_is_no_drift():
    checked = steady([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 1.0, 1.0], "stream")
    assert (checked.subject, checked.value, checked.unit) == ("drift of stream", 0.0, "%")
    assert checked.bound == pytest.approx(15)


@given(first=TIMES, between=st.lists(TIMES, max_size=1), tolerance=st.floats(1e-6, 10))
def test_the_edge_of_the_drift(first, between, tolerance):
    inside, outside = first * (1 + 0.99 * tolerance), first * (1 + 1.01 * tolerance)
    assert steady([first, *between, inside] if between else [first, first, inside], tolerance=tolerance).value > 0
    with pytest.raises(Drift, match="slower"):
        steady([first, *(between or [first]), outside], tolerance=tolerance)
    with pytest.raises(Drift, match="faster"):
        steady([outside, *(between or [first]), first], tolerance=tolerance)


@given(st.lists(st.floats(0.5, 2), min_size=3, max_size=12))
def test_a_run_and_its_reverse_fare_alike(times):
    def drifts(run):
        try:
            steady(run, tolerance=0.2)
        except Drift:
            return True
        return False

    assert drifts(times) == drifts(times[::-1])


@pytest.mark.parametrize("few", [[], [1.0], [1.0, 1.0]])
def test_refuses_to_see_drift_in_too_few(few):
    with pytest.raises(InputError, match=f"repetitions: found {len(few)}, expected 3 or more"):
        steady(few)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
def test_refuses_repetitions_that_are_no_times(bad):
    with pytest.raises(InputError, match=r"repetition 2: found"):
        steady([1.0, bad, 1.0])
    with pytest.raises(InputError, match=r"tolerance: found"):
        steady([1.0, 1.0, 1.0], tolerance=bad)


def frame(**columns):
    return pl.DataFrame(columns)


def test_relative_times_weigh_points_alike():
    """Seconds of one point and microseconds of another: the mean is geometric, so 2 and 1/2 make 1."""
    rows = frame(point=["a"] * 3 + ["b"] * 3, repetition=[0, 1, 2] * 2, seconds=[1.0, 2.0, 0.5, 1e-6, 0.5e-6, 2e-6])
    assert relative_times(rows, ["point"]) == pytest.approx([1.0, 1.0, 1.0])


@given(slowdown=st.floats(1.2, 5), scales=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=5))
def test_drift_of_all_points_is_seen_whatever_their_scale(slowdown, scales):
    by_repetition = [1.0, 1.0, 1.0, slowdown, slowdown, slowdown]
    rows = pl.DataFrame(
        [
            {"point": point, "repetition": r, "seconds": scale * time}
            for point, scale in enumerate(scales)
            for r, time in enumerate(by_repetition)
        ]
    )
    with pytest.raises(Drift):
        steady(relative_times(rows.sample(fraction=1, shuffle=True, seed=1), ["point"]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (frame(point=[], repetition=[], seconds=[]), "rows: found none"),
        (frame(point=["a"] * 2, repetition=[0, 1], seconds=[1.0, float("nan")]), "column seconds, row 2: found nan"),
        (frame(point=["a"] * 2, repetition=[0, 1], seconds=[1.0, None]), "column seconds, row 2: found None"),
        (frame(point=["a"] * 2, repetition=[0, 1], seconds=[1.0, 0.0]), "column seconds, row 2: found 0.0"),
        (
            frame(point=["a", "a", "b"], repetition=[0, 1, 0], seconds=[1.0] * 3),
            r"repetitions of b: found \[0\], expected each of \[0, 1\] once",
        ),
        (frame(point=["a"] * 3, repetition=[0, 1, 1], seconds=[1.0] * 3), r"repetitions of a: found \[0, 1, 1\]"),
    ],
)
def test_refuses_rows_that_are_no_repetitions(rows, message):
    with pytest.raises(InputError, match=message):
        relative_times(rows, ["point"], source="rows of a test")
