"""Setup and bandwidth of a path, from the time to move a piece against its size: t = setup + bytes / bandwidth.

Sizes span four orders of magnitude, and so do times. Least squares of plain times would see the largest sizes alone and leave the setup,
a microsecond or so, to their noise. So each row counts by its relative deviation: weights are the inverse squares of the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, sqrt
from pathlib import Path

from kvtier.errors import InputError
from kvtier.measure.fit import COEFFICIENTS, MINIMUM_ROWS, Estimate
from kvtier.measure.uncertainty import Between, student, unbounded
from kvtier.units import GB

US_PER_S = 1_000_000


@dataclass(frozen=True)
class PieceFit:
    """Line of time over size, by relative deviations.

    Parameters
    ----------
    source : str
        What was fitted, for messages.
    n : int
        Number of sizes.
    setup_us : Estimate
        Time of a piece without its bytes [µs]. Below zero where large pieces move slower than small ones, as out of a cache.
    us_per_byte : Estimate
        Time of one more byte [µs].
    covariance : float
        Of the two [µs²/B].
    largest_deviation : float
        Largest relative deviation of a row from the line, without sign.
    """

    source: str
    n: int
    setup_us: Estimate
    us_per_byte: Estimate
    covariance: float
    largest_deviation: float

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the deviations."""
        return self.n - COEFFICIENTS

    @property
    def gbps(self) -> Between:
        """Bandwidth that the slope implies, with the ends of Student's interval of the slope turned over [GB/s].

        Raises
        ------
        InputError
            If the interval of the slope holds zero.
        """
        per_byte = student(self.us_per_byte, self.freedom)
        if per_byte.low <= 0:
            raise unbounded(self.source, per_byte)
        return per_byte.through(lambda us: US_PER_S / us / GB)

    def at(self, piece_bytes: float) -> Estimate:
        """Time of a piece of some size [µs]."""
        a, b = self.setup_us, self.us_per_byte
        variance = a.standard_error**2 + 2 * piece_bytes * self.covariance + (piece_bytes * b.standard_error) ** 2
        # Rounding can leave a hair below zero.
        return Estimate(a.value + b.value * piece_bytes, sqrt(max(0.0, variance)))


def fit(piece_bytes: Sequence[float], us: Sequence[float], source: str | Path = "movement rows") -> PieceFit:
    """Fit time a piece over its size.

    Parameters
    ----------
    piece_bytes, us : sequence of float
        Size of a piece [B] and its time [µs], one value a size.
    source : str or Path
        Named in errors.

    Raises
    ------
    InputError
        If there are fewer than three sizes, two are equal, or a value is not finite and above zero.

    Notes
    -----
    Weighted least squares in rational numbers, rounded once, as :func:`kvtier.measure.fit.two_term`: regressors 1/t and bytes/t,
    response 1.
    """
    if len(piece_bytes) != len(us):
        raise InputError(source, "rows", f"{len(piece_bytes)} sizes and {len(us)} times", "as many of each")
    n = len(us)
    if n < MINIMUM_ROWS:
        raise InputError(source, "sizes", n, f"at least {MINIMUM_ROWS} for a setup and a bandwidth with errors")
    for name, values in (("size", piece_bytes), ("time", us)):
        for row, value in enumerate(values, start=1):
            if not isfinite(value) or value <= 0:
                raise InputError(source, f"{name}, row {row}", value, "a finite value above 0")
    if len(set(piece_bytes)) != n:
        raise InputError(source, "sizes", ", ".join(f"{size:g}" for size in piece_bytes), "each size once")
    t = [Fraction(value) for value in us]
    one, size = [1 / value for value in t], [Fraction(b) / value for b, value in zip(piece_bytes, t, strict=True)]
    oo, os, ss = (sum(a * b for a, b in zip(x, y, strict=True)) for x, y in ((one, one), (one, size), (size, size)))
    o1, s1 = sum(one), sum(size)
    determinant = oo * ss - os * os
    setup, slope = (ss * o1 - os * s1) / determinant, (oo * s1 - os * o1) / determinant
    deviations = [1 - setup * a - slope * b for a, b in zip(one, size, strict=True)]
    variance = sum(deviation**2 for deviation in deviations) / (n - COEFFICIENTS)
    return PieceFit(
        source=str(source),
        n=n,
        setup_us=Estimate(float(setup), sqrt(variance * ss / determinant)),
        us_per_byte=Estimate(float(slope), sqrt(variance * oo / determinant)),
        covariance=float(-variance * os / determinant),
        largest_deviation=float(max(map(abs, deviations))),
    )
