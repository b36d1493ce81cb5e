"""Times by the system's monotonic clock: what its smallest step is, and points timed in turn, repetition by repetition."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from kvtier.errors import InputError

Point = TypeVar("Point")

Clock = Callable[[], int]
"""Nanoseconds since some moment, never going back."""


@dataclass(frozen=True)
class Timing(Generic[Point]):
    """One timed run of one point."""

    repetition: int
    point: Point
    seconds: float


def tick_s(readings: int = 20_000, clock: Clock = time.perf_counter_ns) -> float:
    """Smallest step that the clock was seen to make [s].

    Parameters
    ----------
    readings : int
        How often the clock is read, one reading right after the other.
    clock : callable
        Nanoseconds.

    Raises
    ------
    InputError
        If the clock did not move between any two readings.

    Notes
    -----
    Two readings are never closer than the time that a reading takes, so where the clock is finer than that, this is the time of a
    reading: an upper bound on the step, and what an interval must be held against.
    """
    seen = [clock() for _ in range(readings)]
    steps = [later - earlier for earlier, later in pairwise(seen) if later > earlier]
    if not steps:
        raise InputError("clock", "tick", f"no step in {readings} readings", "a clock that moves")
    return min(steps) / 1e9


def timed(run: Callable[[], object], clock: Clock = time.perf_counter_ns) -> float:
    """Time that a call takes [s]."""
    start = clock()
    run()
    return (clock() - start) * 1e-9


def time_points(
    points: Sequence[Point],
    repetitions: int,
    time_one: Callable[[Point], float],
    progress: Callable[[Point, float], None] = lambda point, share: None,
) -> list[Timing[Point]]:
    """Time every point once a repetition, so that what drifts touches all points alike.

    Each point is run once before any is timed: first touches of memory and first compilations are in no row.

    Parameters
    ----------
    points : sequence
        What is timed, in order.
    repetitions : int
        How often each is timed.
    time_one : callable
        Runs one point and returns its time [s]; what it does outside its own clock is not in the row.
    progress : callable
        Called before each run, outside any clock, with the point and the share of all runs that is done.

    Returns
    -------
    list of Timing
        By repetition, then by point.

    Raises
    ------
    InputError
        If there is nothing to time.
    """
    if not points or repetitions < 1:
        raise InputError("timing", "points × repetitions", f"{len(points)} × {repetitions}", "at least one of each")
    runs = len(points) * (repetitions + 1)
    done = 0
    timings = []
    for repetition in range(-1, repetitions):
        for point in points:
            progress(point, done / runs)
            seconds = time_one(point)
            done += 1
            if repetition >= 0:
                timings.append(Timing(repetition, point, seconds))
    return timings
