"""Two-term decode model, step_ms = a + b·KV_GiB, by least squares; and the bandwidths that it implies.

The sums are made in rational numbers (a binary float is one) and rounded once at the end, so every bit of a coefficient is the
same on each platform and Python; :func:`statistics.linear_regression` changed its summation between 3.11 and 3.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import hypot, isfinite, sqrt
from pathlib import Path

from kvtier.errors import InputError
from kvtier.units import GB, GIB

COEFFICIENTS = 2
"""Of a line."""

MINIMUM_ROWS = COEFFICIENTS + 1
"""Two coefficients and one degree of freedom for their errors."""

MS_PER_S = 1000


@dataclass(frozen=True)
class Estimate:
    """A value and its standard error, in one unit."""

    value: float
    standard_error: float

    def over(self, divisor: float) -> Estimate:
        """Divided by a positive constant."""
        return Estimate(self.value / divisor, self.standard_error / divisor)


@dataclass(frozen=True)
class TwoTermFit:
    """Least-squares line of step time over KV size.

    Parameters
    ----------
    source : str
        What was fitted, for messages.
    n : int
        Number of rows.
    intercept_ms, slope_ms_per_gib : Estimate
        a and b, each with the standard error from the residual variance on n − 2 degrees of freedom.
    covariance : float
        Covariance of a and b [ms²/GiB]; negative, for a line that tilts up at large KV sinks at none.
    r_squared : float
        1 − residual sum of squares / sum of squares about the mean.
    residuals_ms : tuple of float
        Measured less fitted, in the order of the rows.
    """

    source: str
    n: int
    intercept_ms: Estimate
    slope_ms_per_gib: Estimate
    covariance: float
    r_squared: float
    residuals_ms: tuple[float, ...]

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the residuals."""
        return self.n - COEFFICIENTS

    def step_ms(self, kv_gib: float) -> float:
        """Step time of the line at a KV size [ms]."""
        return self.intercept_ms.value + self.slope_ms_per_gib.value * kv_gib


def two_term(kv_gib: Sequence[float], step_ms: Sequence[float], source: str | Path = "decode rows") -> TwoTermFit:
    """Fit step_ms = a + b·kv_gib.

    Parameters
    ----------
    kv_gib, step_ms : sequence of float
        KV read in a step [GiB] and its time [ms], one value a row.
    source : str or Path
        Named in errors.

    Raises
    ------
    InputError
        If there are fewer than three rows, a value is not finite, all sizes are equal (no slope) or all times are (no R²).
    """
    if len(kv_gib) != len(step_ms):
        raise InputError(source, "rows", f"{len(kv_gib)} KV sizes and {len(step_ms)} times", "as many of each")
    n = len(kv_gib)
    if n < MINIMUM_ROWS:
        raise InputError(source, "rows", n, f"at least {MINIMUM_ROWS} for a fit of two terms with errors")
    for name, values in (("KV size", kv_gib), ("step_ms", step_ms)):
        for row, value in enumerate(values, start=1):
            if not isfinite(value):
                raise InputError(source, f"{name}, row {row}", value, "a finite number")
        if len(set(values)) == 1:
            raise InputError(source, name, f"{values[0]} in every row", "values that differ, for a line to be fitted")
    x, y = [Fraction(value) for value in kv_gib], [Fraction(value) for value in step_ms]
    mean_x, mean_y = sum(x) / n, sum(y) / n
    sxx = sum((value - mean_x) ** 2 for value in x)
    syy = sum((value - mean_y) ** 2 for value in y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sxx
    intercept = mean_y - slope * mean_x
    residuals = [b - intercept - slope * a for a, b in zip(x, y, strict=True)]
    squares = sum(residual**2 for residual in residuals)
    variance = squares / (n - COEFFICIENTS)
    return TwoTermFit(
        source=str(source),
        n=n,
        intercept_ms=Estimate(float(intercept), sqrt(variance * (Fraction(1, n) + mean_x**2 / sxx))),
        slope_ms_per_gib=Estimate(float(slope), sqrt(variance / sxx)),
        covariance=float(-mean_x * variance / sxx),
        r_squared=float(1 - squares / syy),
        residuals_ms=tuple(float(residual) for residual in residuals),
    )


def leave_one_out(kv_gib: Sequence[float], step_ms: Sequence[float], source: str | Path = "decode rows") -> list[TwoTermFit]:
    """Fits without row 1, without row 2, ...: what a single row decides.

    Raises
    ------
    InputError
        As :func:`two_term`; four rows are needed.
    """
    if len(kv_gib) <= MINIMUM_ROWS:
        raise InputError(source, "rows", len(kv_gib), f"at least {MINIMUM_ROWS + 1}, to leave one out of a fit")
    return [
        two_term([*kv_gib[:row], *kv_gib[row + 1 :]], [*step_ms[:row], *step_ms[row + 1 :]], f"{source} without row {row + 1}")
        for row in range(len(kv_gib))
    ]


def _bandwidth_gbps(payload_bytes: float, time_ms: Estimate, source: str, field: str) -> Estimate:
    if time_ms.value <= 0:
        raise InputError(source, field, f"{time_ms.value:.2f}", "above 0, for a bandwidth to exist")
    gbps = payload_bytes / GB * MS_PER_S / time_ms.value
    return Estimate(gbps, gbps * time_ms.standard_error / time_ms.value)


def fixed_path_gbps(fit: TwoTermFit, weight_bytes: float) -> Estimate:
    """Bandwidth at which the weights would stream in the intercept [GB/s]; error by the delta method.

    Raises
    ------
    InputError
        If the intercept is not positive.
    """
    return _bandwidth_gbps(weight_bytes, fit.intercept_ms, fit.source, "intercept [ms]")


def kv_path_gbps(fit: TwoTermFit) -> Estimate:
    """Bandwidth that the slope implies for one more GiB of KV [GB/s]; error by the delta method.

    Raises
    ------
    InputError
        If the slope is not positive.
    """
    return _bandwidth_gbps(GIB, fit.slope_ms_per_gib, fit.source, "slope [ms/GiB]")


def fixed_over_kv(fit: TwoTermFit, weight_bytes: float) -> Estimate:
    """Fixed-path over KV-path bandwidth: how many weight bytes cost as much as one KV byte.

    Notes
    -----
    (W/a) / (G/b) = W·b/(G·a). Delta method with the covariance of a and b, which is negative and widens the error: a fit that
    puts the intercept too low puts the slope too high.
    """
    ratio = fixed_path_gbps(fit, weight_bytes).value / kv_path_gbps(fit).value
    a, b = fit.intercept_ms, fit.slope_ms_per_gib
    # Rounding can leave a hair below zero where a and b are perfectly correlated.
    variance = max(0.0, (a.standard_error / a.value) ** 2 + (b.standard_error / b.value) ** 2 - 2 * fit.covariance / (a.value * b.value))
    return Estimate(ratio, ratio * sqrt(variance))


def independent_ratio(numerator: Estimate, denominator: Estimate) -> Estimate:
    """Ratio of estimates from separate runs, whose errors do not correlate."""
    ratio = numerator.value / denominator.value
    error = hypot(numerator.standard_error / numerator.value, denominator.standard_error / denominator.value)
    return Estimate(ratio, abs(ratio) * error)


@dataclass(frozen=True)
class Implied:
    """What a fit implies, each with its standard error.

    Parameters
    ----------
    fixed_gbps, kv_gbps : Estimate
        Bandwidth of the fixed path and of the KV path [GB/s].
    fixed_over_kv : Estimate
        Their ratio.
    fixed_share_percent, kv_share_percent : Estimate
        Each over the streaming copy bandwidth [%]; the error leaves that bandwidth's own out.
    """

    fixed_gbps: Estimate
    kv_gbps: Estimate
    fixed_over_kv: Estimate
    fixed_share_percent: Estimate
    kv_share_percent: Estimate


def implied(fit: TwoTermFit, weight_bytes: float, copy_gbps: float) -> Implied:
    """Bandwidths of both paths, their ratio and their shares of the streaming copy.

    Raises
    ------
    InputError
        If intercept or slope is not positive.
    """
    fixed, kv = fixed_path_gbps(fit, weight_bytes), kv_path_gbps(fit)
    return Implied(fixed, kv, fixed_over_kv(fit, weight_bytes), fixed.over(copy_gbps / 100), kv.over(copy_gbps / 100))
