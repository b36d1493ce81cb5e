"""Theil–Sen line: the median of the slopes between all pairs of rows, which a single row cannot carry far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import median

from kvtier.errors import InputError
from kvtier.evidence.statistics import LEVEL
from kvtier.measure.fit import two_term
from kvtier.measure.uncertainty import Between


@dataclass(frozen=True)
class TheilSen:
    """A robust line of step time over KV size.

    Parameters
    ----------
    slope_ms_per_gib : Between
        Median of the pairwise slopes, between two of them that hold the true slope in at least the level's share of cases [ms/GiB].
    intercept_ms : float
        Median of step time less slope times KV size [ms].
    pairs : int
        Pairs of rows with sizes that differ.
    covers : float
        Share of cases that the interval holds the true slope, exactly; the level is what was asked for.
    """

    slope_ms_per_gib: Between
    intercept_ms: float
    pairs: int
    covers: float

    @property
    def slope_over_intercept(self) -> float:
        """Time of a GiB of KV over the fixed part of a step [1/GiB]."""
        return self.slope_ms_per_gib.value / self.intercept_ms


def orders(sizes: Sequence[float]) -> list[int]:
    """How many orders of n rows have 0, 1, 2, ... pairs in falling order, rows of equal size told apart by none.

    Notes
    -----
    Mann's counts of inversions; with ties the q-multinomial coefficient, ∏ [k]! over the rows divided by that of each group of ties,
    with [k] = 1 + q + ... + q^(k−1). The coefficients sum to n! / ∏ m! over the groups.
    """
    counts = [1]
    for width in range(2, len(sizes) + 1):
        counts = [sum(counts[max(0, at - width + 1) : at + 1]) for at in range(len(counts) + width - 1)]
    for group in Counter(sizes).values():
        for width in range(2, group + 1):
            quotient: list[int] = []
            for at in range(len(counts) - width + 1):
                quotient.append(counts[at] - sum(quotient[max(0, at - width + 1) : at]))
            counts = quotient
    return counts


def theil_sen(kv_gib: Sequence[float], step_ms: Sequence[float], source: str | Path = "decode rows", level: float = LEVEL) -> TheilSen:
    """Median of pairwise slopes, median of residuals, and an interval by order statistics of the slopes.

    Raises
    ------
    InputError
        As :func:`kvtier.measure.fit.two_term`, or if there are too few rows for an interval of that level.

    Notes
    -----
    Theil (1950); Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968). At the true slope the residuals
    are in any order with equal probability (independent, one continuous distribution of any shape), so how many pairwise slopes lie
    below it is distributed as inversions are, which is counted here without an approximation.
    """
    two_term(kv_gib, step_ms, source)
    x, y = [Fraction(value) for value in kv_gib], [Fraction(value) for value in step_ms]
    slopes = sorted((y[j] - y[i]) / (x[j] - x[i]) for i, j in combinations(range(len(x)), 2) if x[i] != x[j])
    counts = orders(kv_gib)
    total = sum(counts)
    below, cut = 0, 0
    while 2 * (below + counts[cut]) <= total * (1 - Fraction(level)) and 2 * (cut + 1) <= len(slopes):
        below, cut = below + counts[cut], cut + 1
    if not cut:
        raise InputError(source, "rows", len(x), f"enough for {100 * level:g} % between two of {len(slopes)} pairwise slopes")
    slope = median(slopes)
    return TheilSen(
        slope_ms_per_gib=Between(float(slope), float(slopes[cut - 1]), float(slopes[-cut]), level),
        intercept_ms=float(median(b - slope * a for a, b in zip(x, y, strict=True))),
        pairs=len(slopes),
        covers=float(1 - Fraction(2 * below, total)),
    )
