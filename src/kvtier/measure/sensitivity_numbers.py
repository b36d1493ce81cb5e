"""Numbers of how far the rows carry the fits (D3, D15).

All are Analytical: an interval, an influence and another estimator suppose something of the rows' deviations that was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.measure import sensitivity
from kvtier.measure.fit import Estimate
from kvtier.measure.numbers import PREFIX, SENSITIVITY
from kvtier.measure.sensitivity import Sensitivity
from kvtier.measure.uncertainty import Between

SUPPOSES = "Supposes rows that deviate from the line independently and normally, with one variance."
STUDENT = f"Student's interval. {SUPPOSES} {SENSITIVITY}"
FIELLER = f"Fieller's interval. {SUPPOSES} {SENSITIVITY}"


def _number(key: str, value: Between | Estimate | float, unit: str, digits: int, definition: str) -> Number:
    if isinstance(value, Between):
        spread = value.uncertainty
    else:
        spread = {"standard_error": value.standard_error} if isinstance(value, Estimate) else {}
    plain = value.value if isinstance(value, Between | Estimate) else value
    return Number(f"{PREFIX}.{key}", plain, unit, digits, Label.ANALYTICAL, definition, spread)


def of_bounds(found: Sensitivity) -> Iterator[Number]:
    """Intervals of the coefficients and of what they imply."""
    run, bounds = found.run, found.bounds
    on = f"{run.name}, exact KV sizes"
    yield _number(f"{run.key}.intercept_ms_95", bounds.intercept_ms, "ms", 1, f"Intercept of the fit of {on}. {STUDENT}")
    yield _number(f"{run.key}.slope_95", bounds.slope_ms_per_gib, "ms/GiB", 2, f"Slope of the fit of {on}. {STUDENT}")
    reciprocal = f"the ends from those of the coefficient. {STUDENT}"
    yield _number(f"{run.key}.fixed_gbps_95", bounds.fixed_gbps, "GB/s", 1, f"Weight bytes over the intercept, {on}; {reciprocal}")
    yield _number(f"{run.key}.kv_gbps_95", bounds.kv_gbps, "GB/s", 1, f"1 GiB over the time the slope gives it, {on}; {reciprocal}")
    share = f"over the streaming copy bandwidth, whose own error is not known, {on}; {reciprocal}"
    yield _number(f"{run.key}.fixed_share_95", bounds.fixed_share_percent, "%", 0, f"Fixed-path bandwidth {share}")
    yield _number(f"{run.key}.kv_share_95", bounds.kv_share_percent, "%", 0, f"KV-path bandwidth {share}")
    words = f"Fixed-path over KV-path bandwidth, a ratio of fitted coefficients, {on}. {FIELLER}"
    yield _number(f"{run.key}.fixed_over_kv_95", bounds.fixed_over_kv, "", 1, words)


def of_influence(found: Sensitivity) -> Iterator[Number]:
    """What each row does to the fit, and the fit without it."""
    run = found.run
    for row, (batch, tokens) in enumerate(run.points):
        each, key = found.influences[row], f"{run.key}.{batch}x{tokens}"
        what = f"row {batch} × {tokens:,} of {run.name}"
        yield _number(f"{key}.leverage", each.leverage, "", 2, f"Weight of the time of {what} in its own fitted time. {SENSITIVITY}")
        words = f"Residual of {what} over its standard error, with the residual variance of the other rows. {SENSITIVITY}"
        yield _number(f"{key}.studentized", each.studentized, "", 1, words)
        words = f"Cook's distance: squared change of all fitted times without {what}, over twice the residual variance. {SENSITIVITY}"
        yield _number(f"{key}.cooks", each.cooks, "", 2, words)
        words = f"Slope of all rows less the slope without {what}. {SENSITIVITY}"
        yield _number(f"{key}.dfbeta", each.dfbeta, "ms/GiB", 2, words)
        words = f"The same over the standard error that the other rows' variance gives the slope, {what}. {SENSITIVITY}"
        yield _number(f"{key}.dfbetas", each.dfbetas, "", 2, words)
        yield _number(f"{key}.without_slope", found.without_slope[row], "ms/GiB", 2, f"Slope of the fit without {what}. {STUDENT}")
        words = f"Fixed-path over KV-path bandwidth of the fit without {what}. {FIELLER}"
        yield _number(f"{key}.without_fixed_over_kv", found.without_ratio[row], "", 1, words)


def of_theil_sen(found: Sensitivity) -> Iterator[Number]:
    """The robust line."""
    run, line = found.run, found.theil_sen
    key, on = f"{run.key}_theil_sen", f"{run.name}, exact KV sizes"
    yield _number(f"{key}.pairs", line.pairs, "", 0, f"Pairs of rows whose KV sizes differ: {on}.")
    words = (
        f"Median of the slopes between all pairs of rows (Theil–Sen): {on}. Interval: order statistics of those slopes, exact for "
        f"deviations of any one distribution. {SENSITIVITY}"
    )
    yield _number(f"{key}.slope", line.slope_ms_per_gib, "ms/GiB", 2, words)
    words = f"Share of cases in which the interval of the Theil–Sen slope holds the true slope: {on}."
    yield _number(f"{key}.covers", 100 * line.covers, "%", 1, words)
    words = f"Median over the rows of step time less Theil–Sen slope times KV size: {on}. {SENSITIVITY}"
    yield _number(f"{key}.intercept_ms", line.intercept_ms, "ms", 1, words)
    words = f"Fixed-path over KV-path bandwidth of the Theil–Sen line: {on}. {SENSITIVITY}"
    yield _number(f"{key}.fixed_over_kv", found.theil_sen_ratio, "", 1, words)


def of_batch(found: Sensitivity) -> Iterator[Number]:
    """The fit with a term for the batch, and what the fit without it leaves by batch."""
    run, plane = found.run, found.with_batch
    key, on = f"{run.key}_three_term", f"least squares of step time over KV size and batch: {run.name}, exact KV sizes. {SENSITIVITY}"
    yield _number(f"{key}.n", plane.n, "", 0, f"Rows of the fit with a term for the batch: {run.name}.")
    yield _number(f"{key}.intercept_ms", plane.intercept_ms, "ms", 1, f"Intercept, {on}")
    yield _number(f"{key}.slope", plane.slope_ms_per_gib, "ms/GiB", 2, f"Time for a GiB of KV, {on}")
    yield _number(f"{key}.ms_per_sequence", plane.ms_per_sequence, "ms", 2, f"Time for one more sequence without its KV, {on}")
    yield _number(f"{key}.r2", plane.r_squared, "", 3, f"R², {on}")
    words = f"Correlation of KV size and batch over the rows of {run.name}: near one, the fit could not tell them apart."
    yield _number(f"{key}.correlation", plane.correlation, "", 2, words)
    words = f"Fixed-path over KV-path bandwidth, from a and b, {on} Fieller's interval. {SUPPOSES}"
    yield _number(f"{key}.fixed_over_kv", found.with_batch_ratio, "", 1, words)
    for batch, residual in found.residual_by_batch_ms.items():
        words = f"Mean over the rows of batch {batch} of {run.name}: measured less fitted step time, fit over KV size alone. {SENSITIVITY}"
        yield _number(f"{run.key}.batch{batch}.mean_residual_ms", residual, "ms", 1, words)


def of_comparison(hf: Sensitivity, vllm: Sensitivity) -> Iterator[Number]:
    """The two frameworks against each other, with intervals."""
    words = "less one; exact KV sizes. Fieller's interval, two runs with variances of their own, Welch's degrees of freedom"
    for field, what, over in (("slope", "slope", sensitivity.slope_over), ("fixed", "fixed-path bandwidth", sensitivity.fixed_path_over)):
        change = over(vllm.run, hf.run).through(lambda ratio: 100 * (ratio - 1))
        yield _number(f"vllm_over_hf.{field}_change_95", change, "%", 0, f"vLLM's {what} over HF's, {words}. {SUPPOSES} {SENSITIVITY}")


def numbers(found: Mapping[str, Sensitivity]) -> Iterator[Number]:
    """All numbers of the runs ``hf`` and ``vllm``."""
    for each in found.values():
        yield from of_bounds(each)
        yield from of_influence(each)
        yield from of_theil_sen(each)
        yield from of_batch(each)
    yield from of_comparison(found["hf"], found["vllm"])
