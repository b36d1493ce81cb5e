"""Intervals of fitted coefficients and of their ratios.

All suppose that rows deviate from the line independently and normally, with one variance. Rows are medians without a spread of their
own, so what deviates is mostly what the line does not model: an interval says how far the rows fix a coefficient, not how far another
day or machine would move it.

Ratios have Fieller's interval. A denominator with a relative error of 13 % (vLLM's intercept, seven degrees of freedom) leaves the delta
method's linear step: its interval is symmetric, Fieller's is not, and Fieller's is exact under the same supposition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, sqrt
from pathlib import Path

from kvtier.errors import InputError
from kvtier.evidence.statistics import LEVEL, student_quantile
from kvtier.measure.fit import Estimate


@dataclass(frozen=True)
class Between:
    """A value and the ends of its interval, in one unit.

    Parameters
    ----------
    value, low, high : float
        Estimate and ends.
    level : float
        Confidence.
    """

    value: float
    low: float
    high: float
    level: float = LEVEL

    @property
    def uncertainty(self) -> dict[str, float]:
        """As a :class:`~kvtier.evidence.numbers.Number` carries it."""
        return {"interval_low": self.low, "interval_high": self.high, "interval_level": self.level}

    def through(self, function: Callable[[float], float]) -> Between:
        """Value and ends under a function that is monotone between the ends: it takes an interval to an interval of the same level."""
        ends = sorted(map(function, (self.low, self.high)))
        return Between(function(self.value), *ends, self.level)


def unbounded(source: str | Path, of: Between) -> InputError:
    """What to say of a reciprocal whose interval has no upper end."""
    return InputError(source, "interval of a time", f"[{of.low:.4g}, {of.high:.4g}]", "one above zero, for a bandwidth to have ends")


def student(estimate: Estimate, freedom: int, level: float = LEVEL) -> Between:
    """Student's interval of a coefficient.

    Raises
    ------
    ValueError
        If there is no degree of freedom, or the level is no probability.
    """
    half = student_quantile((1 + level) / 2, freedom) * estimate.standard_error
    return Between(estimate.value, estimate.value - half, estimate.value + half, level)


def ratio(numerator: Estimate, denominator: Estimate, covariance: float, freedom: int, source: str | Path, level: float = LEVEL) -> Between:
    """Fieller's interval of numerator over denominator, both with errors.

    Parameters
    ----------
    numerator, denominator : Estimate
        Estimates with errors from one residual variance, or from two runs.
    covariance : float
        Of the two.
    freedom : int
        Degrees of freedom of the errors.
    source : str or Path
        Named in errors.

    Raises
    ------
    InputError
        If the denominator's own interval holds zero: then no bounded interval has the level.

    Notes
    -----
    Fieller, Some problems in interval estimation, J. R. Statist. Soc. B 16 (1954): all ρ with
    (b − ρ·a)² ≤ t²·(var b − 2·ρ·cov + ρ²·var a), the roots of a quadratic. Exact for one residual variance.
    """
    t = student_quantile((1 + level) / 2, freedom)
    a, b = denominator.value, numerator.value
    square = a * a - (t * denominator.standard_error) ** 2
    if square <= 0:
        found = f"{a:.4g} ± {denominator.standard_error:.4g}, {freedom} degrees of freedom"
        raise InputError(source, "denominator of a ratio", found, "an interval without zero, for the ratio to have ends")
    middle = a * b - t * t * covariance
    constant = b * b - (t * numerator.standard_error) ** 2
    # Rounding can leave a hair below zero where there are no errors.
    root = sqrt(max(0.0, middle * middle - square * constant))
    return Between(b / a, (middle - root) / square, (middle + root) / square, level)


def welch_freedom(numerator: Estimate, numerator_freedom: int, denominator: Estimate, denominator_freedom: int) -> int:
    """Degrees of freedom of numerator − ratio · denominator from two runs with variances of their own (Welch 1947), rounded down."""
    scaled = (denominator.standard_error * numerator.value / denominator.value) ** 2
    own = numerator.standard_error**2
    parts = own**2 / numerator_freedom + scaled**2 / denominator_freedom
    return floor((own + scaled) ** 2 / parts) if parts else min(numerator_freedom, denominator_freedom)


def independent_ratio(
    numerator: Estimate,
    numerator_freedom: int,
    denominator: Estimate,
    denominator_freedom: int,
    source: str | Path,
    level: float = LEVEL,
) -> Between:
    """Fieller's interval of a ratio of estimates from separate runs, with Welch's degrees of freedom.

    Raises
    ------
    InputError
        As :func:`ratio`.
    """
    freedom = welch_freedom(numerator, numerator_freedom, denominator, denominator_freedom)
    return ratio(numerator, denominator, 0.0, freedom, source, level)
