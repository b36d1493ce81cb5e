"""Composed sessions and spread ticks."""

import numpy as np
import pytest

from kvtier.workload.arrivals import compose, spread, tick_us
from kvtier.workload.paths import Builder


@pytest.fixture
def sessions():
    builder = Builder("sessions", 4, by_session=True)
    rng = np.random.default_rng(5)
    for session in range(9):
        times = np.sort(rng.integers(0, 1000, size=rng.integers(1, 6)))
        for time in (times - times[0]).tolist():
            builder.add("line", time, 8, 1, [(session, 1)], session, api_us=int(rng.integers(1, 50)), think_us=0)
    return builder.trace()


@pytest.mark.parametrize("users", [1, 3, 9, 20])
def test_sessions_keep_their_own_times_and_no_more_than_the_users_run_at_once(sessions, users):
    stream = compose(sessions, users, seed=1)
    assert stream.requests == sessions.requests
    assert np.all(np.diff(stream.time_us) >= 0)
    spans = []
    for session in range(9):
        mine, own = stream.session == session, sessions.session == session
        assert np.diff(stream.time_us[mine]).tolist() == np.diff(sessions.time_us[own]).tolist()
        assert stream.last_edge[mine].tolist() == sessions.last_edge[own].tolist()
        spans.append((stream.time_us[mine][0], stream.time_us[mine][-1] + stream.api_us[mine][-1]))
    at_once = max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)
    assert at_once <= users
    if users == 1:
        starts = sorted(spans)
        assert [end for _, end in starts[:-1]] == [start for start, _ in starts[1:]]


def test_composition_is_a_function_of_its_seed(sessions):
    assert compose(sessions, 3, 1).session.tolist() == compose(sessions, 3, 1).session.tolist()
    assert compose(sessions, 3, 1).session.tolist() != compose(sessions, 3, 2).session.tolist()


def test_only_sessions_are_composed(sessions):
    with pytest.raises(ValueError, match="each have their own times"):
        compose(compose(sessions, 2, 1), 2, 1)
    with pytest.raises(ValueError, match="0 users"):
        compose(sessions, 0, 1)


@pytest.fixture
def ticking():
    builder = Builder("ticks", 4)
    for number, time in enumerate([0] * 30 + [3000] * 30 + [4000] * 30 + [90_000] * 30):
        builder.add("line", time, 4, 1, [(number, 1)])
    return builder.trace()


def test_arrivals_stay_inside_their_tick(ticking):
    moved = spread(ticking, 3000, seed=1)
    assert moved.last_edge.tolist() == ticking.last_edge.tolist()
    assert np.all(np.diff(moved.time_us) >= 0)
    after = moved.time_us - ticking.time_us
    assert after.min() >= 0
    assert [int(after[first : first + 30].max()) < width for first, width in ((0, 3000), (30, 1000), (60, 3000), (90, 3000))] == [True] * 4
    assert len(set(moved.time_us.tolist())) > 100


def test_order_inside_a_tick_may_be_random_too(ticking):
    moved = spread(ticking, 3000, seed=1, keep_order=False)
    assert moved.last_edge.tolist() != ticking.last_edge.tolist()
    for first in range(0, 120, 30):
        assert sorted(moved.last_edge[first : first + 30].tolist()) == list(range(first, first + 30))


@pytest.mark.parametrize(
    ("times_us", "expected"),
    [
        ([0, 0, 3_000_000, 6_000_000, 6_000_000], 3_000_000),
        ([0, 3_000_000, 6_000_000], 0),
        ([0, 0, 400_000, 3_000_000], 0),
        ([0, 0], 0),
    ],
)
def test_a_clock_is_coarse_where_requests_share_far_ticks(times_us, expected):
    builder = Builder("test", 16)
    for number, time_us in enumerate(times_us):
        builder.add(str(number), time_us, 16, 1, [(0, 1)])
    assert tick_us(builder.trace()) == expected
