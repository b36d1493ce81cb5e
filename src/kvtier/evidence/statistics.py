"""What a few seeds can tell: intervals, paired tests, and the smallest difference that could have been seen.

The standard library alone, because what is published must be the same to the last byte on every machine and Python:

- Values enter as exact integers over a common power of two, so sums of resamples and of flipped signs are exact: no order of
  summation, no vector width, and ties are ties.
- Draws come from :meth:`random.Random.random`, the one method whose sequence Python promises to keep for a seed.
- Logarithm, exponential and error function may differ in the last bit between C libraries. They decide only the rank of a resample,
  an integer, and quantities that are rounded far above that bit (``QUANTILE_DIGITS``, ``NONCENTRALITY_DIGITS``).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from random import Random
from statistics import NormalDist

LEVEL = 0.95
"""Confidence of an interval."""

RESAMPLES = 9_999
"""Resamples of a bootstrap, flips of a test. One more is 10,000, so that the usual tails are whole ranks."""

EXACT_SEEDS = 32
"""Up to here a sign-flip test counts all 2^n flips; 65,536 sums a half."""

QUANTILE_DIGITS = 9
"""Decimals of a quantile of Student's t."""

NONCENTRALITY_DIGITS = 6
"""Decimals of a detectable difference in standard errors."""

NORMAL = NormalDist()


@dataclass(frozen=True)
class Interval:
    """A mean over seeds and where it may lie.

    Parameters
    ----------
    estimate, low, high : float
        Full precision, in the unit of the values. Rounded for print where every number is: by :class:`~kvtier.evidence.numbers.Number`
        and, with the same decimals, where a document quotes the ends.
    seeds : tuple of int
        Seeds of the values, ascending.
    method : str
        How it was made, in words.
    level : float
        Confidence that was asked for.
    reach : float
        Most that the method can cover with so few seeds, if values are spread symmetrically (see :func:`bootstrap_interval`).

    Raises
    ------
    ValueError
        If an end is not finite or the low end is above the high one.
    """

    estimate: float
    low: float
    high: float
    seeds: tuple[int, ...]
    method: str
    level: float = LEVEL
    reach: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.estimate) and math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"interval: found {self.estimate} [{self.low}, {self.high}], expected finite ends in order")

    @property
    def uncertainty(self) -> dict[str, float]:
        """What a :class:`~kvtier.evidence.numbers.Number` carries as its uncertainty; documents print it as ``44.55 [43.92, 45.18] %``."""
        return {"interval_low": self.low, "interval_high": self.high, "interval_level": self.level}

    @property
    def words(self) -> str:
        """How it was made, for the end of a definition."""
        limit = f", which can cover at most {100 * self.reach:.3g} % of the time" if self.reach < self.level else ""
        return f"{100 * self.level:g} % interval of {len(self.seeds)} seeds: {self.method}{limit}"


def paired(values_a: Mapping[int, float], values_b: Mapping[int, float]) -> dict[int, float]:
    """Differences a minus b, seed by seed.

    Parameters
    ----------
    values_a, values_b : mapping of int to float
        Value by seed.

    Raises
    ------
    ValueError
        If there are none, the seeds differ, or a value is not finite.
    """
    if alone := sorted(values_a.keys() ^ values_b.keys()):
        raise ValueError(f"paired differences: found seeds of one side alone, {', '.join(map(str, alone))}, expected the same seeds")
    seeds, found_a = _checked(values_a)
    _, found_b = _checked(values_b)
    return {seed: a - b for seed, a, b in zip(seeds, found_a, found_b, strict=True)}


def mean(values: Mapping[int, float]) -> float:
    """Mean over seeds, equal to the last bit to what :mod:`kvtier.evidence.simulated` gives.

    Raises
    ------
    ValueError
        If there are no values or one is not finite.
    """
    _, found = _checked(values)
    return math.fsum(found) / len(found)


def standard_deviation(values: Mapping[int, float]) -> float:
    """Standard deviation between seeds, with n - 1.

    Raises
    ------
    ValueError
        If there are fewer than two values or one is not finite.
    """
    seeds, found = _checked(values)
    n = len(found)
    if n < 2:
        raise ValueError(f"standard deviation: found seed {seeds[0]} alone, expected two seeds or more")
    exact, scale = _exact(found)
    return math.sqrt((n * sum(x * x for x in exact) - sum(exact) ** 2) / (n * (n - 1) * scale**2))


def bootstrap_interval(
    values: Mapping[int, float], level: float = LEVEL, resamples: int = RESAMPLES, draws_seed: int = 1
) -> Interval | None:
    """Bias-corrected and accelerated (BCa) bootstrap interval of a mean over seeds, or, of :func:`paired` values, of a mean difference.

    Parameters
    ----------
    values : mapping of int to float
        Value, or difference, by seed.
    level : float
        Confidence, two-sided.
    resamples : int
        Resamples of the seeds with replacement.
    draws_seed : int
        Seed of the resampling; no seed of a simulation.

    Returns
    -------
    Interval or None
        None for one seed. Width zero if all values are equal: then nothing is known of the spread, not that there is none.

    Raises
    ------
    ValueError
        If there are no values, one is not finite, or the level leaves no resample in a tail.

    Notes
    -----
    Efron, Better bootstrap confidence intervals, JASA 82 (1987); Efron and Tibshirani, An Introduction to the Bootstrap (1993), 14.3.
    The acceleration is the jackknife's (their 14.15); resamples equal to the mean count half below it.

    Every resampled mean lies within the range of the values. The range of n draws from a symmetric distribution misses its centre with
    probability 2^(1 - n), so no such interval covers more than 50 % with two seeds, 75 % with three, 93.75 % with five: 95 % is out of
    reach below six seeds, and `reach` says so. With two seeds the 95 % interval is the range itself, whatever the values; with three it
    is the range or, if the third value is far off, less. From six to about twenty seeds it still covers a few points less than asked
    for. :func:`student_interval` covers what it says with two seeds, if values are normally distributed.
    """
    seeds, found = _checked(values)
    tail = (1 - _between_0_and_1("level", level)) / 2
    if not tail * (resamples + 1) >= 1:
        raise ValueError(f"bootstrap: found level {level:g} with {resamples:,} resamples, expected at least one resample in a tail")
    n, centre = len(found), mean(values)
    if n == 1:
        return None
    if min(found) == max(found):
        return Interval(centre, centre, centre, seeds, "all seeds equal", level, 1 - 2.0 ** (1 - n))
    exact, scale = _exact(found)
    sums = sorted(sum(resampled(exact)) for resampled in _resamplings(n, resamples, draws_seed))
    total = sum(exact)
    bias = NORMAL.inv_cdf((bisect_left(sums, total) + bisect_right(sums, total)) / 2 / resamples)
    acceleration = _acceleration(exact)

    def end(tail: float) -> float:
        z = bias + NORMAL.inv_cdf(tail)
        share = NORMAL.cdf(bias + z / (1 - acceleration * z))
        # The nearest rank and no interpolation: the last bit of the share does not reach the result. Without bias and acceleration the
        # ranks are 250 and 9,750, whole numbers, and not on the edge between two.
        rank = min(max(round(share * (resamples + 1)), 1), resamples)
        return sums[rank - 1] / (n * scale)

    return Interval(centre, end(tail), end(1 - tail), seeds, f"BCa bootstrap, {resamples:,} resamples", level, 1 - 2.0 ** (1 - n))


def student_interval(values: Mapping[int, float], level: float = LEVEL) -> Interval | None:
    """Student's interval of a mean: exact for normally distributed values, at two seeds too, where it is wide for a reason.

    Parameters
    ----------
    values : mapping of int to float
        Value, or difference, by seed.
    level : float
        Confidence, two-sided.

    Returns
    -------
    Interval or None
        None for one seed.

    Raises
    ------
    ValueError
        If there are no values, one is not finite, or the level is none.
    """
    seeds, found = _checked(values)
    tail = (1 - _between_0_and_1("level", level)) / 2
    if len(found) == 1:
        return None
    half = student_quantile(1 - tail, len(found) - 1) * standard_deviation(values) / math.sqrt(len(found))
    centre = mean(values)
    return Interval(centre, centre - half, centre + half, seeds, "Student's t", level)


def sign_flip_p(differences: Mapping[int, float], flips: int = RESAMPLES, draws_seed: int = 1) -> float:
    """Two-sided p-value of a mean paired difference: how often flipped signs give a mean as far from zero.

    Parameters
    ----------
    differences : mapping of int to float
        Paired difference by seed.
    flips : int
        Random flips, where there are more than ``EXACT_SEEDS`` seeds.
    draws_seed : int
        Seed of the random flips.

    Returns
    -------
    float
        Never below 2^(1 - n): 0.5 with two seeds; 0.05 is out of reach below six.

    Raises
    ------
    ValueError
        If there are no differences, one is not finite, or `flips` is below one.

    Notes
    -----
    Under the hypothesis each difference is as likely to have either sign (Fisher, The Design of Experiments (1935), 21; Good,
    Permutation, Parametric and Bootstrap Tests of Hypotheses (2005)). All 2^n flips are counted, by sums of the two halves of the seeds
    (Horowitz and Sahni, JACM 21 (1974)); of random flips the observed one is counted in, (extreme + 1) / (flips + 1) (Phipson and
    Smyth, 2010).
    """
    _, found = _checked(differences)
    if flips < 1:
        raise ValueError(f"sign-flip test: found {flips} flips, expected one or more")
    exact, _ = _exact(found)
    n = len(exact)
    # A difference of two rounded values may be off in its last bits: means that close are equally far from zero.
    bound = abs(sum(exact)) - sum(map(abs, exact)) // 10**12
    if bound <= 0:
        return 1.0
    if n <= EXACT_SEEDS:
        left, right = _flipped_sums(exact[: n // 2]), sorted(_flipped_sums(exact[n // 2 :]))
        as_high = sum(len(right) - bisect_left(right, bound - one) for one in left)
        return as_high / 2 ** (n - 1)
    draw = Random(draws_seed).random
    extreme = sum(abs(sum([x if draw() < 0.5 else -x for x in exact])) >= bound for _ in range(flips))
    return (extreme + 1) / (flips + 1)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values of a family: each may be held against the level of the whole family.

    Parameters
    ----------
    p_values : mapping of str to float
        All p-values of the family by name, those that look dull too.

    Returns
    -------
    dict of str to float
        In the order given; never below the p-value, never above 1, and in the order of the p-values.

    Raises
    ------
    ValueError
        If the family is empty or a value is no probability.

    Notes
    -----
    Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979). No assumption on dependence.
    """
    if not p_values:
        raise ValueError("Holm: found no p-values, expected a family")
    for name, p in p_values.items():
        if not 0 <= p <= 1:
            raise ValueError(f"Holm: {name}: found {p}, expected a probability")
    adjusted: dict[str, float] = {}
    reached = 0.0
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        reached = min(1.0, max(reached, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = reached
    return {name: adjusted[name] for name in p_values}


def detectable(sd_of_differences: float, seeds: int, power: float = 0.8, level: float = 0.05) -> float:
    """Smallest true mean difference that a paired t-test with so many seeds would have seen with probability `power`.

    Parameters
    ----------
    sd_of_differences : float
        Standard deviation of the paired differences between seeds, in their unit.
    seeds : int
        Paired seeds, two or more.
    power : float
        Chance to see it, above `level`.
    level : float
        Two-sided level of the test, from 0.001; of a family of m tests, ``level / m``.

    Returns
    -------
    float
        In the unit of the standard deviation. Two seeds see 11.5 standard deviations, five see 1.68, thirty 0.53.

    Raises
    ------
    ValueError
        If the standard deviation is negative or not finite, there are fewer than two seeds, or a probability is out of range.

    Notes
    -----
    Assumes normally distributed differences; exact then (noncentral t, Cohen, Statistical Power Analysis (1988), 2). The usual short
    form, (t(1 - level / 2) + t(power)) standard errors, is 14 % too low for two seeds.
    """
    _checked_power(sd_of_differences, power, level)
    if seeds < 2:
        raise ValueError(f"detectable difference: found {seeds} seeds, expected two or more")
    critical = student_quantile(1 - level / 2, seeds - 1)
    high = 1.0
    while _power(high, critical, seeds - 1) < power:
        high *= 2
    standard_errors = _bisected(lambda shift: _power(shift, critical, seeds - 1) >= power, 0.0, high)
    return round(standard_errors, NONCENTRALITY_DIGITS) * sd_of_differences / math.sqrt(seeds)


def seeds_needed(difference: float, sd_of_differences: float, power: float = 0.8, level: float = 0.05) -> int:
    """Fewest paired seeds with which a paired t-test sees a difference with probability `power`: the inverse of :func:`detectable`.

    Parameters
    ----------
    difference : float
        True mean difference, of either sign.
    sd_of_differences : float
        Standard deviation of the paired differences between seeds, same unit.
    power, level : float
        As in :func:`detectable`.

    Returns
    -------
    int
        Two or more.

    Raises
    ------
    ValueError
        If the difference is zero or not finite, or as in :func:`detectable`.
    """
    _checked_power(sd_of_differences, power, level)
    if not (math.isfinite(difference) and difference):
        raise ValueError(f"seeds needed: found a difference of {difference}, expected a finite one that is not zero")
    if sd_of_differences == 0:
        return 2

    def enough(seeds: int) -> bool:
        shift = abs(difference) * math.sqrt(seeds) / sd_of_differences
        return _power(shift, student_quantile(1 - level / 2, seeds - 1), seeds - 1) >= power

    # A known spread would need this many; an estimated one needs a few more.
    known = ((NORMAL.inv_cdf(1 - level / 2) + NORMAL.inv_cdf(power)) * sd_of_differences / difference) ** 2
    seeds = max(2, math.floor(known))
    while not enough(seeds):
        seeds += 1
    return seeds


@lru_cache(maxsize=1024)
def student_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t, to ``QUANTILE_DIGITS`` decimals.

    Parameters
    ----------
    probability : float
        Between 0 and 1.
    freedom : int
        Degrees of freedom, from 1.

    Returns
    -------
    float
        At 0.975: 12.706 with 1 degree of freedom, 2.776 with 4, 2.045 with 29.

    Raises
    ------
    ValueError
        If the probability or the degrees of freedom are out of range.

    Notes
    -----
    Abramowitz and Stegun (1964): the finite sums 26.7.3 and 26.7.4 up to 200 degrees of freedom, the series 26.7.5 above, which is
    good to 1e-9 there for probabilities from 0.0005 to 0.9995.
    """
    _between_0_and_1("probability", probability)
    if freedom < 1:
        raise ValueError(f"Student's t: found {freedom} degrees of freedom, expected one or more")
    if probability < 0.5:
        return -student_quantile(1 - probability, freedom)
    if freedom > 200:
        z = NORMAL.inv_cdf(probability)
        series = (
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
            (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
        )
        return round(z + math.fsum(term / freedom**order for order, term in enumerate(series, 1)), QUANTILE_DIGITS)
    # By angle: t runs to infinity, the angle to a right one.
    angle = _bisected(lambda angle: _within(angle, freedom) >= 2 * probability - 1, 0.0, math.pi / 2)
    return round(math.sqrt(freedom) * math.tan(angle), QUANTILE_DIGITS)


def _within(angle: float, freedom: int) -> float:
    """Probability that t is within ±sqrt(freedom) tan(angle)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, terms = cosine if odd else 1.0, []
    for k in range(2 + odd, freedom + 1, 2):
        terms.append(term)
        term *= (k - 1) / k * cosine**2
    series = sine * math.fsum(terms)
    return 2 / math.pi * (angle + series) if odd else series


@lru_cache(maxsize=64)
def _chi(freedom: int) -> tuple[tuple[float, float], ...]:
    """Points and weights (Simpson, sum 1) of the standard deviation of a sample over that of its distribution."""
    steps, reach = 4_000, 12 / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - reach), 1 + reach
    points = [low + (high - low) * step / steps for step in range(steps + 1)]
    logs = [((freedom - 1) * math.log(s) if s else 0.0 if freedom == 1 else -math.inf) - freedom * (s * s - 1) / 2 for s in points]
    weights = [math.exp(log) * (1 if step in (0, steps) else 4 if step % 2 else 2) for step, log in enumerate(logs)]
    total = math.fsum(weights)
    return tuple((s, weight / total) for s, weight in zip(points, weights, strict=True))


def _power(shift: float, critical: float, freedom: int) -> float:
    """Probability that a t whose mean is `shift` standard errors from zero is beyond ±critical."""
    root = math.sqrt(2)
    return math.fsum(
        weight / 2 * (math.erfc((critical * s - shift) / root) + math.erfc((critical * s + shift) / root)) for s, weight in _chi(freedom)
    )


def _bisected(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Lowest argument from which on `holds`, which holds at `high`; to the last bit."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@lru_cache(maxsize=4)
def _resamplings(n: int, resamples: int, draws_seed: int) -> tuple[Callable[[Sequence[int]], tuple[int, ...]], ...]:
    """Draws with replacement: each takes its n of n values. The same for all means of as many seeds, so drawn once."""
    draw = Random(draws_seed).random
    return tuple(itemgetter(*[int(draw() * n) for _ in range(n)]) for _ in range(resamples))


def _acceleration(exact: Sequence[int]) -> float:
    """Acceleration of a mean: a sixth of the skewness of the values over the root of their number (Efron and Tibshirani, 14.15)."""
    n, total = len(exact), sum(exact)
    deviations = [n * x - total for x in exact]
    # The scale cancels; without it no power overflows.
    largest = max(map(abs, deviations))
    relative = [deviation / largest for deviation in deviations]
    squares = math.fsum(x * x for x in relative)
    return math.fsum(x * x * x for x in relative) / (6 * squares * math.sqrt(squares))


def _flipped_sums(exact: Sequence[int]) -> list[int]:
    sums = [0]
    for x in exact:
        sums = [one + signed for one in sums for signed in (x, -x)]
    return sums


def _exact(values: Sequence[float]) -> tuple[list[int], int]:
    """Integers and the power of two that they are over: no float is lost."""
    ratios = [value.as_integer_ratio() for value in values]
    scale = max(denominator for _, denominator in ratios)
    return [numerator * (scale // denominator) for numerator, denominator in ratios], scale


def _checked(values: Mapping[int, float | None]) -> tuple[tuple[int, ...], list[float]]:
    """Seeds, ascending, and their values: the order in which they were found does not decide what is drawn."""
    if not values:
        raise ValueError("values by seed: found none, expected one seed or more")
    seeds = tuple(sorted(values))
    found = [values[seed] for seed in seeds]
    for seed, value in zip(seeds, found, strict=True):
        if value is None or not math.isfinite(value):
            raise ValueError(f"values by seed: seed {seed}: found {value}, expected a finite number")
    return seeds, [float(value) for value in found]


def _between_0_and_1(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise ValueError(f"{name}: found {value}, expected a number between 0 and 1")
    return value


def _checked_power(sd: float, power: float, level: float) -> None:
    if not (math.isfinite(sd) and sd >= 0):
        raise ValueError(f"standard deviation of the differences: found {sd}, expected a finite number, zero or more")
    # Below, the grid of _chi is coarser than the step of a test with two seeds.
    if not 0.001 <= level < power < 1:
        raise ValueError(f"level and power: found {level} and {power}, expected 0.001 <= level < power < 1")
