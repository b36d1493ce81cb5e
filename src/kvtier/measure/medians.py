"""Medians of repeated timings, with seeded bootstrap intervals.

Draws are taken from the raw stream of PCG64, which NumPy promises to keep for a seed, and ends are ranks of sorted resamples, so the
interval of the same timings is the same to the last bit everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from pathlib import Path
from statistics import median as middle

import numpy as np
from numpy.typing import NDArray

from kvtier.errors import InputError
from kvtier.evidence.statistics import LEVEL, RESAMPLES
from kvtier.measure.uncertainty import Between

MINIMUM_VALUES = 3
"""Of two values every interval of the median is their range."""

ABOUT = "Median; percentile bootstrap over repetitions."
"""How an interval was made, for the end of a definition."""


@lru_cache(maxsize=32)
def _picks(n: int, resamples: int, draws_seed: int) -> NDArray[np.intp]:
    """Which of n values each resample holds, shape (resamples, n)."""
    raw = np.random.PCG64(draws_seed).random_raw(resamples * n)
    # 2^64 is no multiple of n: some values are likelier by n in 2^64.
    picks = (raw % np.uint64(n)).astype(np.intp).reshape(resamples, n)
    picks.flags.writeable = False
    return picks


def _checked(values: Sequence[float], source: str | Path) -> NDArray[np.float64]:
    if len(values) < MINIMUM_VALUES:
        raise InputError(source, "repetitions", len(values), f"at least {MINIMUM_VALUES} for an interval of a median")
    for row, value in enumerate(values, start=1):
        if not isfinite(value):
            raise InputError(source, f"repetition {row}", value, "a finite number")
    return np.asarray(values, dtype=np.float64)


def _resampled(values: NDArray[np.float64], resamples: int, draws_seed: int) -> NDArray[np.float64]:
    return np.median(values[_picks(len(values), resamples, draws_seed)], axis=1)


def _between(value: float, resampled: NDArray[np.float64], level: float) -> Between:
    ranked, n = np.sort(resampled), len(resampled)
    # Whole ranks: 250 and 9,750 of 9,999 at 95 %.
    low = max(round((1 - level) / 2 * (n + 1)), 1)
    return Between(value, float(ranked[low - 1]), float(ranked[n - low]), level)


def median(
    values: Sequence[float],
    source: str | Path = "timings",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    draws_seed: int = 1,
) -> Between:
    """Median and percentile bootstrap interval.

    Parameters
    ----------
    values : sequence of float
        One a repetition.
    source : str or Path
        Named in errors.
    level : float
        Confidence, two-sided.
    resamples : int
        Resamples of the repetitions with replacement.
    draws_seed : int
        Seed of the resampling.

    Returns
    -------
    Between
        Within the range of the values: n of them miss the true median with probability 2^(1 − n), so no such interval covers 95 % below
        six repetitions.

    Raises
    ------
    InputError
        If there are fewer than three values or one is not finite.

    Notes
    -----
    Efron, The Jackknife, the Bootstrap and Other Resampling Plans (1982), 10.1. Repetitions are taken as independent; drift between them,
    which the kit's guard refuses, would make the interval too narrow.
    """
    found = _checked(values, source)
    return _between(float(middle(values)), _resampled(found, resamples, draws_seed), level)


def ratio(
    numerator: Sequence[float],
    denominator: Sequence[float],
    source: str | Path = "timings",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    draws_seed: int = 1,
) -> Between:
    """Median of the numerator over median of the denominator, each resampled by itself.

    Parameters
    ----------
    numerator, denominator : sequence of float
        One a repetition, in one unit; they need not be as many, and no repetition of one belongs to one of the other.
    source : str or Path
        Named in errors.
    level : float
        Confidence, two-sided.
    resamples : int
        Resamples of each side with replacement.
    draws_seed : int
        Seed of the numerator's resampling; the denominator has the next.

    Returns
    -------
    Between
        Quotient of the medians, without a unit, and the percentile interval of the resampled quotients.

    Raises
    ------
    InputError
        As :func:`median`, or if a value of the denominator is not positive.
    """
    above, below = _checked(numerator, source), _checked(denominator, source)
    if below.min() <= 0:
        raise InputError(source, "denominator of a ratio", float(below.min()), "times above 0")
    # Another seed: with the same picks both sides would rise and fall together.
    quotients = _resampled(above, resamples, draws_seed) / _resampled(below, resamples, draws_seed + 1)
    return _between(float(middle(numerator) / middle(denominator)), quotients, level)
