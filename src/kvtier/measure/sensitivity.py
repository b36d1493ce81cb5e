"""How far the rows of a run carry its fit: intervals, influence of each row, a robust line, and a term for the batch."""

from __future__ import annotations

from dataclasses import dataclass

from kvtier.measure import influence, robust, three_term, uncertainty
from kvtier.measure.fit import Estimate, TwoTermFit
from kvtier.measure.influence import Influence
from kvtier.measure.robust import TheilSen
from kvtier.measure.runs import Run
from kvtier.measure.three_term import ThreeTermFit
from kvtier.measure.uncertainty import Between
from kvtier.units import GIB


@dataclass(frozen=True)
class Bounds:
    """Intervals of a fit's coefficients and of what they imply, at one level.

    Parameters
    ----------
    intercept_ms, slope_ms_per_gib : Between
        Student's.
    fixed_gbps, kv_gbps : Between
        Reciprocals of those.
    fixed_over_kv : Between
        Fieller's.
    fixed_share_percent, kv_share_percent : Between
        Over the streaming copy bandwidth [%], whose own error is left out.
    """

    intercept_ms: Between
    slope_ms_per_gib: Between
    fixed_gbps: Between
    kv_gbps: Between
    fixed_over_kv: Between
    fixed_share_percent: Between
    kv_share_percent: Between


@dataclass(frozen=True)
class Sensitivity:
    """What a run's fit on exact KV sizes rests on.

    Parameters
    ----------
    run : Run
        The run.
    bounds : Bounds
        Of the fit of all rows.
    influences : list of Influence
        Of each row.
    without_slope, without_ratio : list of Between
        Slope [ms/GiB] and fixed over KV of the fits without row 1, without row 2, ...
    theil_sen : TheilSen
        Robust line.
    theil_sen_ratio : float
        Fixed over KV that it implies.
    with_batch : ThreeTermFit
        Fit with a term for the batch.
    with_batch_ratio : Between
        Fixed over KV that its a and b imply.
    residual_by_batch_ms : dict of int to float
        Mean residual of the two-term fit by batch size [ms].
    """

    run: Run
    bounds: Bounds
    influences: list[Influence]
    without_slope: list[Between]
    without_ratio: list[Between]
    theil_sen: TheilSen
    theil_sen_ratio: float
    with_batch: ThreeTermFit
    with_batch_ratio: Between
    residual_by_batch_ms: dict[int, float]


def fixed_over_kv(fit: TwoTermFit | ThreeTermFit, weight_bytes: float) -> Between:
    """Interval of fixed-path over KV-path bandwidth, (W/a) / (G/b).

    Raises
    ------
    InputError
        If the intercept's own interval holds zero.
    """
    found = uncertainty.ratio(fit.slope_ms_per_gib, fit.intercept_ms, fit.covariance, fit.freedom, fit.source)
    return found.through(lambda slope_over_intercept: slope_over_intercept * weight_bytes / GIB)


def _reciprocal(of: Between, value: Estimate, source: str) -> Between:
    # At the estimate the bandwidth is known already; its product with the time is the payload.
    if of.low <= 0:
        raise uncertainty.unbounded(source, of)
    payload = value.value * of.value
    return Between(value.value, payload / of.high, payload / of.low, of.level)


def bounds(run: Run, weight_bytes: float) -> Bounds:
    """Intervals of a run's fit on exact KV sizes.

    Raises
    ------
    InputError
        If an interval of a or b holds zero: a bandwidth then has no upper end.
    """
    line, implied = run.exact.line, run.exact.implied
    intercept, slope = (uncertainty.student(each, line.freedom) for each in (line.intercept_ms, line.slope_ms_per_gib))
    return Bounds(
        intercept_ms=intercept,
        slope_ms_per_gib=slope,
        fixed_gbps=_reciprocal(intercept, implied.fixed_gbps, line.source),
        kv_gbps=_reciprocal(slope, implied.kv_gbps, line.source),
        fixed_over_kv=fixed_over_kv(line, weight_bytes),
        fixed_share_percent=_reciprocal(intercept, implied.fixed_share_percent, line.source),
        kv_share_percent=_reciprocal(slope, implied.kv_share_percent, line.source),
    )


def sensitivity(run: Run, weight_bytes: float) -> Sensitivity:
    """Weigh the rows of a run.

    Raises
    ------
    InputError
        If the rows do not allow one of the fits or intervals, with the reason.
    """
    source, batch = run.exact.line.source, [size for size, _ in run.points]
    robust_line = robust.theil_sen(run.kv_gib, run.step_ms, source)
    with_batch = three_term.three_term(run.kv_gib, batch, run.step_ms, source)
    others = [each.line for each in run.without]
    return Sensitivity(
        run=run,
        bounds=bounds(run, weight_bytes),
        influences=influence.influences(run.kv_gib, run.step_ms, source),
        without_slope=[uncertainty.student(line.slope_ms_per_gib, line.freedom) for line in others],
        without_ratio=[fixed_over_kv(line, weight_bytes) for line in others],
        theil_sen=robust_line,
        theil_sen_ratio=robust_line.slope_over_intercept * weight_bytes / GIB,
        with_batch=with_batch,
        with_batch_ratio=fixed_over_kv(with_batch, weight_bytes),
        residual_by_batch_ms=three_term.mean_by(batch, run.exact.line.residuals_ms),
    )


def slope_over(theirs: Run, ours: Run) -> Between:
    """Slope of one run over that of another, exact KV sizes."""
    one, other = theirs.exact.line, ours.exact.line
    return uncertainty.independent_ratio(one.slope_ms_per_gib, one.freedom, other.slope_ms_per_gib, other.freedom, one.source)


def fixed_path_over(theirs: Run, ours: Run) -> Between:
    """Fixed-path bandwidth of one run over that of another: their intercepts the other way round."""
    one, other = theirs.exact.line, ours.exact.line
    return uncertainty.independent_ratio(other.intercept_ms, other.freedom, one.intercept_ms, one.freedom, one.source)
