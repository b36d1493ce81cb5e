"""A timing is long against the tick of its clock, and a run does not drift from its first repetition to its last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import polars as pl

from kvtier.audit.physical_bound import Checked
from kvtier.audit.quantities import positive
from kvtier.errors import InputError

LEAST_TICKS = 1000
"""A tick of error at each end is then 0.2 % of the interval at most."""

DRIFT_TOLERANCE = 0.15
"""Room for a machine that others share; a clock that falls by more than 13 % is seen."""


class BelowResolution(InputError):
    """A timed interval too short for its clock."""


class Drift(InputError):
    """The last repetitions are slower or faster than the first."""


def resolved(shortest_s: float, tick_s: float, source: str | Path = "timing") -> Checked:
    """Refuse an interval of fewer than 1,000 ticks.

    Parameters
    ----------
    shortest_s : float
        Shortest interval that was timed [s].
    tick_s : float
        Smallest step of the clock that was seen [s].
    source : str or Path
        Named in errors.

    Returns
    -------
    Checked
        Ticks of the interval, and the least that is accepted.

    Raises
    ------
    BelowResolution
        If it is shorter.
    InputError
        If a time is not a finite number above 0.
    """
    tick_s = positive(tick_s, source, "tick_s", "s")
    shortest_s = positive(shortest_s, source, "shortest_s", "s")
    if shortest_s < LEAST_TICKS * tick_s:
        found = f"{shortest_s:.3g} s, {shortest_s / tick_s:.4g} ticks of {tick_s:.3g} s"
        raise BelowResolution(source, "shortest interval", found, f"at least {LEAST_TICKS:,} ticks")
    return Checked(f"ticks of the shortest interval of {source}", shortest_s / tick_s, LEAST_TICKS, "ticks at least")


def steady(by_repetition: Sequence[float], source: str | Path = "timing", tolerance: float = DRIFT_TOLERANCE) -> Checked:
    """Refuse a run whose last third of repetitions is slower or faster than its first third.

    Parameters
    ----------
    by_repetition : sequence of float
        One relative time a repetition, in the order in which they ran: see :func:`relative_times`.
    source : str or Path
        Named in errors.
    tolerance : float
        Largest relative difference of the medians of both thirds; the longer is compared with the shorter, so that a run and its reverse
        fare alike.

    Returns
    -------
    Checked
        The difference and the tolerance [%].

    Raises
    ------
    Drift
        If they differ by more.
    InputError
        If there are fewer than 3 repetitions, or a time is not a finite number above 0.
    """
    tolerance = positive(tolerance, source, "tolerance", "")
    if len(by_repetition) < 3:
        raise InputError(source, "repetitions", len(by_repetition), "3 or more: drift shows in no fewer")
    times = [positive(time, source, f"repetition {index + 1}", "") for index, time in enumerate(by_repetition)]
    third = len(times) // 3
    first, last = median(times[:third]), median(times[-third:])
    difference = max(first, last) / min(first, last) - 1
    if difference > tolerance:
        word = "slower" if last > first else "faster"
        found = f"the last {third} of {len(times)} {100 * difference:.1f} % {word} than the first {third}"
        raise Drift(source, "repetitions", found, f"no more than {100 * tolerance:g} %")
    return Checked(f"drift of {source}", 100 * difference, 100 * tolerance, "%")


def relative_times(rows: pl.DataFrame, points: Sequence[str], seconds: str = "seconds", source: str | Path = "timing") -> list[float]:
    """One relative time a repetition: the geometric mean, over points, of a point's time there over its median.

    Parameters
    ----------
    rows : polars.DataFrame
        One row a point and repetition; column ``repetition`` is their order.
    points : sequence of str
        Columns that tell points apart.
    seconds : str
        Column of the time [s].
    source : str or Path
        Named in errors.

    Returns
    -------
    list of float
        By rising repetition.

    Raises
    ------
    InputError
        If there are no rows, a time is not a finite number above 0, or a point is not timed exactly once in each repetition.
    """
    if rows.is_empty():
        raise InputError(source, "rows", "none", "at least one timing")
    bad = ~(rows[seconds].is_finite() & (rows[seconds] > 0)).fill_null(False)
    if bad.any():
        row = int(bad.arg_true()[0])
        raise InputError(source, f"column {seconds}, row {row + 1}", rows[seconds][row], "a finite time above 0")
    repetitions = rows["repetition"].unique().sort().to_list()
    for point, timed in rows.group_by(points, maintain_order=True):
        if timed["repetition"].sort().to_list() != repetitions:
            where = ", ".join(map(str, point))
            raise InputError(source, f"repetitions of {where}", timed["repetition"].to_list(), f"each of {repetitions} once")
    logarithms = rows.with_columns((pl.col(seconds) / pl.col(seconds).median().over(points)).log().alias("logarithm"))
    return logarithms.group_by("repetition").agg(pl.col("logarithm").mean().exp()).sort("repetition")["logarithm"].to_list()
