"""Three-term decode model, step_ms = a + b·KV_GiB + c·batch, by least squares: is what the slope takes for KV a cost of the batch?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, sqrt
from pathlib import Path

from kvtier.errors import InputError
from kvtier.measure.fit import Estimate

COEFFICIENTS = 3
MINIMUM_ROWS = COEFFICIENTS + 1
COLLINEAR = Fraction(1, 10**12)
"""Least share of the variance of one column that the other may leave unexplained."""


@dataclass(frozen=True)
class ThreeTermFit:
    """Least-squares plane of step time over KV size and batch.

    Parameters
    ----------
    source : str
        What was fitted, for messages.
    n : int
        Number of rows.
    intercept_ms, slope_ms_per_gib, ms_per_sequence : Estimate
        a, b and c, each with its standard error on n − 3 degrees of freedom.
    covariance : float
        Of a and b [ms²/GiB].
    correlation : float
        Of KV size and batch over the rows: near 1 or −1 the rows hardly tell the two apart.
    r_squared : float
        1 − residual over total sum of squares.
    residuals_ms : tuple of float
        Measured less fitted, in the order of the rows.
    """

    source: str
    n: int
    intercept_ms: Estimate
    slope_ms_per_gib: Estimate
    ms_per_sequence: Estimate
    covariance: float
    correlation: float
    r_squared: float
    residuals_ms: tuple[float, ...]

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the residuals."""
        return self.n - COEFFICIENTS


def three_term(
    kv_gib: Sequence[float], batch: Sequence[float], step_ms: Sequence[float], source: str | Path = "decode rows"
) -> ThreeTermFit:
    """Fit step_ms = a + b·kv_gib + c·batch.

    Parameters
    ----------
    kv_gib, batch, step_ms : sequence of float
        KV read in a step [GiB], sequences and time [ms], one value a row.
    source : str or Path
        Named in errors.

    Raises
    ------
    InputError
        If there are fewer than four rows, a value is not finite, a column is constant, or KV size is a line of batch (all contexts
        equal, for one): then no fit can tell b from c.
    """
    n = len(kv_gib)
    if not n == len(batch) == len(step_ms):
        raise InputError(source, "rows", f"{n} KV sizes, {len(batch)} batches, {len(step_ms)} times", "as many of each")
    if n < MINIMUM_ROWS:
        raise InputError(source, "rows", n, f"at least {MINIMUM_ROWS} for a fit of three terms with errors")
    for name, values in (("KV size", kv_gib), ("batch", batch), ("step_ms", step_ms)):
        for row, value in enumerate(values, start=1):
            if not isfinite(value):
                raise InputError(source, f"{name}, row {row}", value, "a finite number")
        if len(set(values)) == 1:
            raise InputError(source, name, f"{values[0]} in every row", "values that differ, for a term to be fitted")
    x, z, y = ([Fraction(value) for value in values] for values in (kv_gib, batch, step_ms))
    mean_x, mean_z, mean_y = sum(x) / n, sum(z) / n, sum(y) / n
    x, z, y = [v - mean_x for v in x], [v - mean_z for v in z], [v - mean_y for v in y]

    def dot(one: list[Fraction], other: list[Fraction]) -> Fraction:
        return sum((p * q for p, q in zip(one, other, strict=True)), Fraction(0))

    sxx, szz, sxz, sxy, szy, syy = dot(x, x), dot(z, z), dot(x, z), dot(x, y), dot(z, y), dot(y, y)
    determinant = sxx * szz - sxz**2
    if determinant <= COLLINEAR * sxx * szz:
        raise InputError(source, "columns KV size and batch", "one a line of the other", "contexts that differ, to tell KV from batch")
    slope, per_sequence = (sxy * szz - szy * sxz) / determinant, (szy * sxx - sxy * sxz) / determinant
    residuals = [v - slope * p - per_sequence * q for v, p, q in zip(y, x, z, strict=True)]
    squares = dot(residuals, residuals)
    variance = squares / (n - COEFFICIENTS)
    of_slope, of_batch, of_both = szz / determinant, sxx / determinant, -sxz / determinant
    of_intercept = Fraction(1, n) + mean_x**2 * of_slope + mean_z**2 * of_batch + 2 * mean_x * mean_z * of_both
    return ThreeTermFit(
        source=str(source),
        n=n,
        intercept_ms=Estimate(float(mean_y - slope * mean_x - per_sequence * mean_z), sqrt(variance * of_intercept)),
        slope_ms_per_gib=Estimate(float(slope), sqrt(variance * of_slope)),
        ms_per_sequence=Estimate(float(per_sequence), sqrt(variance * of_batch)),
        covariance=float(-variance * (mean_x * of_slope + mean_z * of_both)),
        correlation=float(sxz) / sqrt(sxx * szz),
        r_squared=float(1 - squares / syy),
        residuals_ms=tuple(map(float, residuals)),
    )


def mean_by(batch: Sequence[int], residuals_ms: Sequence[float]) -> dict[int, float]:
    """Mean residual of the rows of each batch size [ms], smallest batch first."""
    found: dict[int, list[Fraction]] = {}
    for size, residual in zip(batch, residuals_ms, strict=True):
        found.setdefault(size, []).append(Fraction(residual))
    return {size: float(sum(found[size]) / len(found[size])) for size in sorted(found)}
