"""Numbers of the GB10: what was measured, what was fitted to it, and what follows from the fits.

Labels. Timed rows and the coefficients of a fit to them are Measured, as the published package labels them, also where a row is left out.
What a fit implies (bandwidths, ratios, residuals) is model-derived, so Analytical (SPEC §1), and so are the extremes over many fits.
What comes from the model's shape is labelled by :mod:`kvtier.analytic.labelling`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvtier.analytic import labelling
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.measure import fit
from kvtier.measure.fit import Estimate
from kvtier.measure.platform import Platform
from kvtier.measure.retained import StreamingCopy
from kvtier.measure.runs import Fitted, Run
from kvtier.units import GIB, bytes_to_gb, bytes_to_gib

PREFIX = "measured.gb10"

AS_LABELLED = (
    "Labelled Measured, as the published package labels fit coefficients: it sums up timed rows and adds only KV sizes that follow from "
    "the geometry."
)
SENSITIVITY = "Sensitivity analysis of this project, no result of the package."

RECORDED_BUGS = {
    "fp32_resident_gib": ("GiB", "Resident weights of the run that loaded fp32 in silence. A recorded bug, never a result."),
    "shared_prefix_kv_gbps": (
        "GB/s",
        "KV-path bandwidth that the run with one shared prefix appeared to have. A recorded bug, above the bus, never a result.",
    ),
}


def _number(key: str, value: Estimate | float, unit: str, digits: int, label: Label, definition: str) -> Number:
    if isinstance(value, Estimate):
        return Number(f"{PREFIX}.{key}", value.value, unit, digits, label, definition, {"standard_error": value.standard_error})
    return Number(f"{PREFIX}.{key}", value, unit, digits, label, definition)


def _derived(key: str, value: Estimate | float, unit: str, digits: int, definition: str) -> Number:
    """Model-derived: from measured times and whatever else the model takes."""
    return _number(key, value, unit, digits, labelling.derived_label([Label.MEASURED]), definition)


def of_platform(platform: Platform, copy: StreamingCopy) -> Iterator[Number]:
    """Machine, model, and what two recorded bugs once produced."""
    model, bus_gbps = platform.model, platform.bus_gbps
    words = f"Bytes read plus bytes written by a copy, over its time; {copy.buffer_gib:g} GiB buffers, median of {copy.runs}."
    yield _number("stream.copy_gbps", copy.gbps, "GB/s", 1, Label.MEASURED, words)
    yield _number("bus_gbps", bus_gbps, "GB/s", 0, Label.VENDOR, "Memory bandwidth that the vendor specifies.")
    words = "Streaming copy bandwidth (Measured) over the specified bus (Vendor specification)."
    yield _derived("stream.share_of_bus", 100 * copy.gbps / bus_gbps, "%", 0, words)
    words = f"2 · layers · KV heads · head dimension · bytes an element of {model.model}."
    yield labelling.derived(f"{PREFIX}.model.kv_bytes_per_token", model.kv_bytes_per_token, "B", 0, [model], words)
    weight_bytes, words = model.stated("weight_bytes"), f"Weights of {model.model} in {platform.dtype}."
    yield labelling.restated(f"{PREFIX}.model.weights_gb", bytes_to_gb(weight_bytes), "GB", 1, model, words)
    yield labelling.derived(f"{PREFIX}.model.weights_gib", bytes_to_gib(weight_bytes), "GiB", 2, [model], words)
    for bug, value in platform.recorded_bugs.items():
        if bug in RECORDED_BUGS:
            unit, words = RECORDED_BUGS[bug]
            yield _number(f"bugs.{bug}", value, unit, 1, Label.ILLUSTRATIVE, words)


def of_fit(name: str, fitted: Fitted, on: str, label: Label, why: str) -> Iterator[Number]:
    """Coefficients of one fit and what they imply.

    Parameters
    ----------
    name : str
        Its place in the keys.
    fitted : Fitted
        The line and what it implies.
    on : str
        Which rows and KV sizes.
    label : Label
        Of the coefficients.
    why : str
        Reason for that label, for their definitions.
    """
    line, implied = fitted.line, fitted.implied
    fitted_by = f"of step time over KV size, least squares: {on}. {why}"
    yield _number(f"{name}.n", line.n, "", 0, label, f"Rows of the fit: {on}.")
    yield _number(f"{name}.intercept_ms", line.intercept_ms, "ms", 1, label, f"Intercept {fitted_by}")
    yield _number(f"{name}.slope", line.slope_ms_per_gib, "ms/GiB", 2, label, f"Slope {fitted_by}")
    words = f"R² of the fit, 1 − residual over total sum of squares: {on}. {why}"
    yield _number(f"{name}.r2", line.r_squared, "", 3, label, words)
    yield _derived(f"{name}.fixed_gbps", implied.fixed_gbps, "GB/s", 1, f"Weight bytes over the intercept; model-derived: {on}.")
    yield _derived(f"{name}.kv_gbps", implied.kv_gbps, "GB/s", 1, f"1 GiB over the time the slope gives it; model-derived: {on}.")
    share = f"over the streaming copy bandwidth, whose own error is not known. Model-derived: {on}."
    yield _derived(f"{name}.fixed_share", implied.fixed_share_percent, "%", 0, f"Fixed-path bandwidth {share}")
    yield _derived(f"{name}.kv_share", implied.kv_share_percent, "%", 0, f"KV-path bandwidth {share}")
    words = f"Fixed-path over KV-path bandwidth, a ratio of fitted coefficients; model-derived: {on}."
    yield _derived(f"{name}.fixed_over_kv", implied.fixed_over_kv, "", 1, words)


def of_printed_coefficients(run: Run, platform: Platform) -> Iterator[Number]:
    """Bandwidths from the coefficients as printed: what a reader with a pencil gets."""
    line = run.published.line
    intercept_ms, slope = round(line.intercept_ms.value, 1), round(line.slope_ms_per_gib.value, 2)
    fixed = bytes_to_gb(platform.model.stated("weight_bytes")) * fit.MS_PER_S / intercept_ms
    words = f"Weight bytes over the intercept as printed (one decimal), {run.name}; model-derived."
    yield _derived(f"{run.key}_published.fixed_from_printed_gbps", fixed, "GB/s", 1, words)
    words = f"1 GiB over the time the slope as printed (two decimals) gives it, {run.name}; model-derived."
    yield _derived(f"{run.key}_published.kv_from_printed_gbps", bytes_to_gb(GIB) * fit.MS_PER_S / slope, "GB/s", 1, words)


def of_rows(run: Run) -> Iterator[Number]:
    """Each timed point: step time, tokens a second, distance from the fit."""
    for (batch, tokens), step_ms, residual in zip(run.points, run.step_ms, run.exact.line.residuals_ms, strict=True):
        key, what = f"{run.key}.{batch}x{tokens}", f"{run.name}, batch {batch}, {tokens:,} tokens of context"
        yield _number(f"{key}.step_ms", step_ms, "ms", 1, Label.MEASURED, f"Decode step time, median: {what}.")
        words = f"Sequences over step time, each gaining one token a step: {what}."
        yield _number(f"{key}.tokens_per_s", batch * fit.MS_PER_S / step_ms, "tok/s", 1, Label.MEASURED, words)
        yield _derived(f"{key}.residual_ms", residual, "ms", 1, f"Measured less fitted step time, exact KV sizes: {what}.")


def of_leave_one_out(run: Run) -> Iterator[Number]:
    """Range of the fits with one row left out, and the fit without the row that decides (D3)."""
    slopes = [each.line.slope_ms_per_gib.value for each in run.without]
    ratios = [each.implied.fixed_over_kv.value for each in run.without]
    for end, choose, word in (("min", min, "Smallest"), ("max", max, "Largest")):
        words = f"{word} slope with one row left out, {run.name}. {SENSITIVITY}"
        yield _derived(f"{run.key}_loo.slope_{end}", choose(slopes), "ms/GiB", 2, words)
        words = f"{word} ratio of fixed-path to KV-path bandwidth with one row left out, {run.name}; model-derived. {SENSITIVITY}"
        yield _derived(f"{run.key}_loo.fixed_over_kv_{end}", choose(ratios), "", 1, words)
    row = run.decisive
    batch, tokens = run.points[row]
    on = f"{run.name}, exact KV sizes, without its row {batch} × {tokens:,}, whose omission moves the slope most"
    yield from of_fit(decisive_key(run), run.without[row], on, Label.MEASURED, f"{SENSITIVITY} {AS_LABELLED}")
    words = f"Measured step time of {run.name} at {batch} × {tokens:,} less what the fit of its other rows predicts."
    yield _derived(f"{decisive_key(run)}.missed_ms", run.missed_ms(row), "ms", 1, words)


def decisive_key(run: Run) -> str:
    """Name in the keys of a run's fit without its decisive row: ``vllm_loo_16x16384``."""
    batch, tokens = run.points[run.decisive]
    return f"{run.key}_loo_{batch}x{tokens}"


def of_comparison(hf: Run, vllm: Run) -> Iterator[Number]:
    """The two frameworks against each other: on exact sizes, on published ones, and without vLLM's decisive row (D3, D5)."""
    row = vllm.decisive
    batch, tokens = vllm.points[row]
    pairs = {
        "vllm_over_hf": (hf.exact, vllm.exact, "exact KV sizes"),
        "vllm_over_hf_published": (hf.published, vllm.published, "KV sizes as published"),
        f"vllm_over_hf_loo_{batch}x{tokens}": (hf.exact, vllm.without[row], f"vLLM without its row {batch} × {tokens:,}"),
    }
    for name, (ours, theirs, on) in pairs.items():
        slopes = fit.independent_ratio(theirs.line.slope_ms_per_gib, ours.line.slope_ms_per_gib)
        fixed = fit.independent_ratio(theirs.implied.fixed_gbps, ours.implied.fixed_gbps)
        for field, ratio, what in (("slope", slopes, "slope"), ("fixed", fixed, "fixed-path bandwidth")):
            change = Estimate(100 * (ratio.value - 1), 100 * ratio.standard_error)
            yield _derived(f"{name}.{field}_change", change, "%", 0, f"vLLM's {what} over HF's, less one; model-derived: {on}.")


def numbers(runs: Mapping[str, Run], platform: Platform, copy: StreamingCopy) -> Iterator[Number]:
    """All numbers of the runs ``hf`` and ``vllm``."""
    yield from of_platform(platform, copy)
    rounded = "KV sizes rounded to two decimals of a GiB as published"
    for run in runs.values():
        yield from of_fit(run.key, run.exact, f"{run.name}, exact KV sizes", Label.MEASURED, AS_LABELLED)
        yield from of_fit(f"{run.key}_published", run.published, f"{run.name}, {rounded}", Label.MEASURED, AS_LABELLED)
        yield from of_printed_coefficients(run, platform)
        yield from of_rows(run)
        yield from of_leave_one_out(run)
    yield from of_comparison(runs["hf"], runs["vllm"])
