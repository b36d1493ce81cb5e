"""What single rows do to a line: leverage, studentized residual, Cook's distance, change of the slope.

In closed form from the fit of all rows, in rational numbers, rounded once; the fits without a row are made besides, by
:func:`kvtier.measure.fit.leave_one_out`, and must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import copysign, inf, sqrt
from pathlib import Path

from kvtier.errors import InputError
from kvtier.measure.fit import COEFFICIENTS, MINIMUM_ROWS, two_term


@dataclass(frozen=True)
class Influence:
    """One row's part in a line.

    Parameters
    ----------
    leverage : float
        Weight of the row's time in its own fitted time, from 1/n to 1; they sum to 2.
    studentized : float
        Residual over its standard error, with the residual variance of the other rows (externally studentized); infinite where
        all others lie on one line and this one does not.
    cooks : float
        Cook's distance: squared change of all fitted times when the row is left out, over twice the residual variance.
    dfbeta : float
        Slope of all rows less the slope without this one [ms/GiB].
    dfbetas : float
        The same over the slope's standard error with the residual variance of the other rows; infinite as above.
    """

    leverage: float
    studentized: float
    cooks: float
    dfbeta: float
    dfbetas: float


def influences(kv_gib: Sequence[float], step_ms: Sequence[float], source: str | Path = "decode rows") -> list[Influence]:
    """Influence of each row on step_ms = a + b·kv_gib.

    Raises
    ------
    InputError
        As :func:`kvtier.measure.fit.two_term`; four rows are needed, all rows on the line leave nothing to weigh, and a row without
        which all sizes are equal has leverage 1.

    Notes
    -----
    Cook, Detection of influential observation in linear regression, Technometrics 19 (1977); Belsley, Kuh and Welsch, Regression
    diagnostics (1980), 2.1, for the deleted residuals and DFBETAS.
    """
    n = len(kv_gib)
    if n <= MINIMUM_ROWS:
        raise InputError(source, "rows", n, f"at least {MINIMUM_ROWS + 1}, to weigh one against the others")
    two_term(kv_gib, step_ms, source)
    x, y = [Fraction(value) for value in kv_gib], [Fraction(value) for value in step_ms]
    mean_x, mean_y = sum(x) / n, sum(y) / n
    deviations = [value - mean_x for value in x]
    sxx = sum(value**2 for value in deviations)
    slope = sum(d * (value - mean_y) for d, value in zip(deviations, y, strict=True)) / sxx
    residuals = [value - mean_y - slope * d for d, value in zip(deviations, y, strict=True)]
    squares = sum(residual**2 for residual in residuals)
    if not squares:
        raise InputError(source, "residuals", "0 in every row", "rows beside their line, for their influence to differ")
    found = []
    for row, (d, residual) in enumerate(zip(deviations, residuals, strict=True), start=1):
        leverage = Fraction(1, n) + d**2 / sxx
        left = 1 - leverage
        if not left:
            raise InputError(source, f"KV size, row {row}", kv_gib[row - 1], "other rows that differ in size, for a line without it")
        others = (squares - residual**2 / left) / (n - COEFFICIENTS - 1)
        change = d * residual / (sxx * left)
        found.append(
            Influence(
                leverage=float(leverage),
                studentized=_over(residual, others * left),
                cooks=float(residual**2 * leverage * (n - COEFFICIENTS) / (COEFFICIENTS * squares * left**2)),
                dfbeta=float(change),
                dfbetas=_over(change, others / sxx),
            )
        )
    return found


def _over(value: Fraction, variance: Fraction) -> float:
    if variance:
        return copysign(sqrt(value**2 / variance), value) if value else 0.0
    return copysign(inf, value) if value else 0.0


def decisive(found: Sequence[Influence]) -> int:
    """Index of the row with the largest Cook's distance; the first of equals."""
    distances = [each.cooks for each in found]
    return distances.index(max(distances))
