"""Decode fits of the retained GB10 rows: tables, numbers, and the audit against the memory bus."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from kvtier.audit.physical_bound import Bandwidth, Checked, physical_bound, resident_weights
from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number, write
from kvtier.files import write_atomically
from kvtier.frames import Table
from kvtier.jobs import reporting
from kvtier.measure import fit, retained
from kvtier.measure.fit import Estimate, TwoTermFit
from kvtier.measure.platform import Platform, read_platform
from kvtier.units import GB, GIB, bytes_to_gb, bytes_to_gib

INFERRED = {
    name: pl.Float64()
    for column in ("intercept_ms", "slope_ms_per_gib", "fixed_gbps", "kv_gbps", "fixed_over_kv")
    for name in (column, f"{column}_standard_error")
}
SHARES = {"fixed_share_percent": pl.Float64(), "kv_share_percent": pl.Float64()}
FITS = Table("fits", {"run": pl.String(), "kv_sizes": pl.String(), "n": pl.Int64(), "r_squared": pl.Float64(), **INFERRED, **SHARES})
ROWS = Table(
    "rows",
    {
        "run": pl.String(),
        **retained.DECODE_STEPS.columns,
        **dict.fromkeys(("kv_gib", "kv_gib_published", "fitted_ms", "residual_ms", "tokens_per_s", "step_gbps"), pl.Float64()),
    },
)
LEAVE_ONE_OUT = Table(
    "leave one out",
    {
        "run": pl.String(),
        "left_out_batch": pl.Int64(),
        "left_out_context_tokens": pl.Int64(),
        "n": pl.Int64(),
        "r_squared": pl.Float64(),
        **INFERRED,
        **SHARES,
        "left_out_fitted_ms": pl.Float64(),
        "left_out_residual_ms": pl.Float64(),
    },
)

AS_LABELLED = (
    "Labelled Measured, as the published package labels it: it sums up timed rows and adds only KV sizes that follow from the geometry."
)


@dataclass(frozen=True)
class Run:
    """One decode run: its rows, and its fits on both kinds of KV size."""

    key: str
    name: str
    rows: pl.DataFrame
    kv_gib: list[float]
    exact: TwoTermFit
    published: TwoTermFit
    without: list[TwoTermFit]

    @property
    def points(self) -> list[tuple[int, int]]:
        """(batch, context_tokens) of each row."""
        return self.rows.select("batch", "context_tokens").rows()

    def row(self, batch: int, context_tokens: int) -> int | None:
        """Index of a row, or None where the run has no such row."""
        return self.points.index((batch, context_tokens)) if (batch, context_tokens) in self.points else None


def fit_run(key: str, path: str | Path, platform: Platform) -> Run:
    if key not in platform.run_names:
        raise InputError(path, "run", key, f"one that the platform file names: {', '.join(platform.run_names)}")
    rows = retained.read_decode_steps(path)
    sizes, times = retained.kv_gib(rows, platform.model.kv_bytes_per_token), rows["step_ms"].to_list()
    return Run(
        key=key,
        name=platform.run_names[key],
        rows=rows,
        kv_gib=sizes,
        exact=fit.two_term(sizes, times, path),
        published=fit.two_term(retained.as_published(sizes), times, f"{path} (KV sizes as published)"),
        without=fit.leave_one_out(sizes, times, path),
    )


def inferred(line: TwoTermFit, platform: Platform, copy_gbps: float) -> dict[str, float]:
    """Columns INFERRED and SHARES of a fit."""
    weights = platform.model.weights_bytes
    fixed, kv = fit.fixed_path_gbps(line, weights), fit.kv_path_gbps(line)
    estimates = {
        "intercept_ms": line.intercept_ms,
        "slope_ms_per_gib": line.slope_ms_per_gib,
        "fixed_gbps": fixed,
        "kv_gbps": kv,
        "fixed_over_kv": fit.fixed_over_kv(line, weights),
    }
    columns: dict[str, float] = {}
    for column, estimate in estimates.items():
        columns |= {column: estimate.value, f"{column}_standard_error": estimate.standard_error}
    return columns | {"fixed_share_percent": 100 * fixed.value / copy_gbps, "kv_share_percent": 100 * kv.value / copy_gbps}


def fits_table(runs: list[Run], platform: Platform, copy_gbps: float) -> pl.DataFrame:
    return FITS.check(
        pl.DataFrame(
            [
                {"run": run.key, "kv_sizes": sizes, "n": line.n, "r_squared": line.r_squared, **inferred(line, platform, copy_gbps)}
                for run in runs
                for sizes, line in (("exact", run.exact), ("published", run.published))
            ]
        )
    )


def rows_table(runs: list[Run], platform: Platform) -> pl.DataFrame:
    records = []
    for run in runs:
        for row, size, rounded, residual in zip(
            run.rows.iter_rows(named=True), run.kv_gib, retained.as_published(run.kv_gib), run.exact.residuals_ms, strict=True
        ):
            seconds = row["step_ms"] / fit.MS_PER_S
            records.append(
                {
                    "run": run.key,
                    **row,
                    "kv_gib": size,
                    "kv_gib_published": rounded,
                    "fitted_ms": run.exact.step_ms(size),
                    "residual_ms": residual,
                    "tokens_per_s": row["batch"] / seconds,
                    "step_gbps": (platform.model.weights_bytes + size * GIB) / GB / seconds,
                }
            )
    return ROWS.check(pl.DataFrame(records))


def leave_one_out_table(runs: list[Run], platform: Platform, copy_gbps: float) -> pl.DataFrame:
    records = []
    for run in runs:
        for (batch, tokens), size, step_ms, line in zip(run.points, run.kv_gib, run.rows["step_ms"], run.without, strict=True):
            records.append(
                {
                    "run": run.key,
                    "left_out_batch": batch,
                    "left_out_context_tokens": tokens,
                    "n": line.n,
                    "r_squared": line.r_squared,
                    **inferred(line, platform, copy_gbps),
                    "left_out_fitted_ms": line.step_ms(size),
                    "left_out_residual_ms": step_ms - line.step_ms(size),
                }
            )
    return LEAVE_ONE_OUT.check(pl.DataFrame(records))


def audit(fits: pl.DataFrame, rows: pl.DataFrame, platform: Platform, copy_gbps: float) -> list[Checked]:
    """Every bandwidth, achieved or inferred, against the bus; the weights against their type."""
    subjects = [Bandwidth(platform.machine, "streaming copy", copy_gbps)]
    for record in fits.iter_rows(named=True):
        source = f"{platform.run_names[record['run']]}, {record['kv_sizes']} KV sizes"
        subjects += [Bandwidth(source, "fixed path", record["fixed_gbps"]), Bandwidth(source, "KV path", record["kv_gbps"])]
    for record in rows.iter_rows(named=True):
        source = f"{platform.run_names[record['run']]}, {record['batch']} × {record['context_tokens']}"
        subjects.append(Bandwidth(source, "weights and KV of one step", record["step_gbps"]))
    model = platform.model
    return [
        *physical_bound(subjects, platform.bus_gbps),
        resident_weights(model.weights_bytes, model.parameters, model.dtype, f"{model.name} as stated"),
    ]


def _number(key: str, value: Estimate | float, unit: str, digits: int, label: Label, definition: str) -> Number:
    if isinstance(value, Estimate):
        return Number(f"measured.gb10.{key}", value.value, unit, digits, label, definition, {"standard_error": value.standard_error})
    return Number(f"measured.gb10.{key}", value, unit, digits, label, definition)


def platform_numbers(platform: Platform, copy_gbps: float) -> Iterator[Number]:
    model = platform.model
    yield _number(
        "stream.copy_gbps",
        copy_gbps,
        "GB/s",
        1,
        Label.MEASURED,
        "Bytes read plus bytes written by a copy, over its time; 4 GiB buffers, median of 20.",
    )
    yield _number("bus_gbps", platform.bus_gbps, "GB/s", 0, Label.VENDOR, "Memory bandwidth that the vendor specifies.")
    yield _number(
        "stream.share_of_bus",
        100 * copy_gbps / platform.bus_gbps,
        "%",
        0,
        Label.ANALYTICAL,
        "Streaming copy bandwidth (Measured) over the specified bus (Vendor specification).",
    )
    yield _number(
        "model.kv_bytes_per_token",
        model.kv_bytes_per_token,
        "B",
        0,
        Label.ANALYTICAL,
        f"2 · layers · KV heads · head dimension · bytes an element of {model.name}.",
    )
    yield _number(
        "model.weights_gb", bytes_to_gb(model.weights_bytes), "GB", 1, Label.ANALYTICAL, f"Weights of {model.name} in {model.dtype}."
    )
    yield _number(
        "model.weights_gib", bytes_to_gib(model.weights_bytes), "GiB", 2, Label.ANALYTICAL, f"Weights of {model.name} in {model.dtype}."
    )
    recorded = {
        "fp32_resident_gib": ("GiB", "Resident weights of the run that loaded fp32 in silence. A recorded bug, never a result."),
        "shared_prefix_kv_gbps": (
            "GB/s",
            "KV-path bandwidth that the run with one shared prefix appeared to have. A recorded bug, above the bus, never a result.",
        ),
    }
    for bug, value in platform.recorded_bugs.items():
        if bug in recorded:
            yield _number(f"bugs.{bug}", value, recorded[bug][0], 1, Label.ILLUSTRATIVE, recorded[bug][1])


def fit_numbers(prefix: str, line: TwoTermFit, on: str, platform: Platform, copy_gbps: float) -> Iterator[Number]:
    """Coefficients of one fit and what they imply; `on` says which rows and KV sizes."""
    weights = platform.model.weights_bytes
    fixed, kv = fit.fixed_path_gbps(line, weights), fit.kv_path_gbps(line)
    share = "over the streaming copy bandwidth, whose own error is not known."
    yield _number(f"{prefix}.n", line.n, "", 0, Label.MEASURED, f"Rows of the fit: {on}.")
    yield _number(
        f"{prefix}.intercept_ms",
        line.intercept_ms,
        "ms",
        1,
        Label.MEASURED,
        f"Intercept of step time over KV size, least squares: {on}. {AS_LABELLED}",
    )
    yield _number(
        f"{prefix}.slope",
        line.slope_ms_per_gib,
        "ms/GiB",
        2,
        Label.MEASURED,
        f"Slope of step time over KV size, least squares: {on}. {AS_LABELLED}",
    )
    yield _number(
        f"{prefix}.r2",
        line.r_squared,
        "",
        3,
        Label.MEASURED,
        f"R² of the fit, 1 − residual over total sum of squares: {on}. {AS_LABELLED}",
    )
    yield _number(f"{prefix}.fixed_gbps", fixed, "GB/s", 1, Label.ANALYTICAL, f"Weight bytes over the intercept; model-derived: {on}.")
    yield _number(f"{prefix}.kv_gbps", kv, "GB/s", 1, Label.ANALYTICAL, f"1 GiB over the time the slope gives it; model-derived: {on}.")
    yield _number(
        f"{prefix}.fixed_share",
        fixed.over(copy_gbps / 100),
        "%",
        0,
        Label.ANALYTICAL,
        f"Fixed-path bandwidth {share} Model-derived: {on}.",
    )
    yield _number(
        f"{prefix}.kv_share", kv.over(copy_gbps / 100), "%", 0, Label.ANALYTICAL, f"KV-path bandwidth {share} Model-derived: {on}."
    )
    yield _number(
        f"{prefix}.fixed_over_kv",
        fit.fixed_over_kv(line, weights),
        "",
        1,
        Label.ANALYTICAL,
        f"Fixed-path over KV-path bandwidth, a ratio of fitted coefficients; model-derived: {on}.",
    )


def printed_numbers(run: Run, platform: Platform) -> Iterator[Number]:
    """Bandwidths from the coefficients as printed: what a reader with a pencil gets."""
    intercept_ms, slope = round(run.published.intercept_ms.value, 1), round(run.published.slope_ms_per_gib.value, 2)
    yield _number(
        f"{run.key}_published.fixed_from_printed_gbps",
        bytes_to_gb(platform.model.weights_bytes) * fit.MS_PER_S / intercept_ms,
        "GB/s",
        1,
        Label.ANALYTICAL,
        f"Weight bytes over the intercept as printed (one decimal), {run.name}; model-derived.",
    )
    yield _number(
        f"{run.key}_published.kv_from_printed_gbps",
        bytes_to_gb(GIB) * fit.MS_PER_S / slope,
        "GB/s",
        1,
        Label.ANALYTICAL,
        f"1 GiB over the time the slope as printed (two decimals) gives it, {run.name}; model-derived.",
    )


def row_numbers(run: Run) -> Iterator[Number]:
    for (batch, tokens), step_ms, residual in zip(run.points, run.rows["step_ms"], run.exact.residuals_ms, strict=True):
        key, what = f"{run.key}.{batch}x{tokens}", f"{run.name}, batch {batch}, {tokens:,} tokens of context"
        yield _number(f"{key}.step_ms", step_ms, "ms", 1, Label.MEASURED, f"Decode step time, median: {what}.")
        yield _number(
            f"{key}.tokens_per_s",
            batch * fit.MS_PER_S / step_ms,
            "tok/s",
            1,
            Label.MEASURED,
            f"Sequences over step time, each gaining one token a step: {what}.",
        )
        yield _number(f"{key}.residual_ms", residual, "ms", 1, Label.ANALYTICAL, f"Measured less fitted step time, exact KV sizes: {what}.")


def spread_numbers(run: Run, platform: Platform) -> Iterator[Number]:
    """Range of the leave-one-out fits: how far one row moves a coefficient."""
    slopes = [line.slope_ms_per_gib.value for line in run.without]
    ratios = [fit.fixed_over_kv(line, platform.model.weights_bytes).value for line in run.without]
    for name, choose in (("min", min), ("max", max)):
        words = {"min": "Smallest", "max": "Largest"}[name]
        yield _number(
            f"{run.key}_loo.slope_{name}", choose(slopes), "ms/GiB", 2, Label.MEASURED, f"{words} slope with one row left out, {run.name}."
        )
        yield _number(
            f"{run.key}_loo.fixed_over_kv_{name}",
            choose(ratios),
            "",
            1,
            Label.ANALYTICAL,
            f"{words} ratio of fixed-path to KV-path bandwidth with one row left out, {run.name}; model-derived.",
        )


def comparison_numbers(hf: Run, vllm: Run, platform: Platform) -> Iterator[Number]:
    """The two frameworks against each other, on exact and on published sizes, and without the row that decides (D3, D5)."""
    weights = platform.model.weights_bytes
    pairs = {"": (hf.exact, vllm.exact, "exact KV sizes"), "_published": (hf.published, vllm.published, "KV sizes as published")}
    decisive = vllm.row(16, 16384)
    if decisive is not None:
        pairs["_loo_16x16384"] = (hf.exact, vllm.without[decisive], "vLLM without its row 16 × 16,384")
    for suffix, (ours, theirs, on) in pairs.items():
        slopes = fit.independent_ratio(theirs.slope_ms_per_gib, ours.slope_ms_per_gib)
        fixed = fit.independent_ratio(fit.fixed_path_gbps(theirs, weights), fit.fixed_path_gbps(ours, weights))
        for name, ratio, what in (("slope", slopes, "slope"), ("fixed", fixed, "fixed-path bandwidth")):
            change = Estimate(100 * (ratio.value - 1), 100 * ratio.standard_error)
            yield _number(
                f"vllm_over_hf{suffix}.{name}_change",
                change,
                "%",
                0,
                Label.ANALYTICAL,
                f"vLLM's {what} over HF's, less one; model-derived: {on}.",
            )


def decisive_row_numbers(vllm: Run, platform: Platform, copy_gbps: float) -> Iterator[Number]:
    """VLLM without 16 × 16,384 (D3)."""
    row = vllm.row(16, 16384)
    if row is None:
        return
    line = vllm.without[row]
    yield from fit_numbers("vllm_loo_16x16384", line, f"{vllm.name}, exact KV sizes, without its row 16 × 16,384", platform, copy_gbps)
    yield _number(
        "vllm_loo_16x16384.missed_ms",
        vllm.rows["step_ms"][row] - line.step_ms(vllm.kv_gib[row]),
        "ms",
        1,
        Label.ANALYTICAL,
        "Measured step time of vLLM at 16 × 16,384 less what the fit of its other rows predicts.",
    )


def numbers(runs: Mapping[str, Run], platform: Platform, copy_gbps: float) -> Iterator[Number]:
    yield from platform_numbers(platform, copy_gbps)
    for run in runs.values():
        yield from fit_numbers(run.key, run.exact, f"{run.name}, exact KV sizes", platform, copy_gbps)
        yield from fit_numbers(
            f"{run.key}_published",
            run.published,
            f"{run.name}, KV sizes rounded to two decimals of a GiB as published",
            platform,
            copy_gbps,
        )
        yield from printed_numbers(run, platform)
        yield from row_numbers(run)
        yield from spread_numbers(run, platform)
    yield from decisive_row_numbers(runs["vllm"], platform, copy_gbps)
    yield from comparison_numbers(runs["hf"], runs["vllm"], platform)


if __name__ == "__main__":
    with reporting(snakemake):
        platform = read_platform(snakemake.input.platform)
        copy_gbps = retained.read_copy_gbps(snakemake.input.streaming)
        runs = {key: fit_run(key, snakemake.input[key], platform) for key in ("hf", "vllm")}
        fits, rows = fits_table([*runs.values()], platform, copy_gbps), rows_table([*runs.values()], platform)
        checked = audit(fits, rows, platform, copy_gbps)

        write_atomically(snakemake.output.fits, fits.write_csv())
        write_atomically(snakemake.output.rows, rows.write_csv())
        write_atomically(snakemake.output.leave_one_out, leave_one_out_table([*runs.values()], platform, copy_gbps).write_csv())
        record = {"audit": "physical_bound", "subjects": [asdict(subject) for subject in checked], "verdict": "pass"}
        write_atomically(snakemake.output.audit, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        write(snakemake.output.numbers, numbers(runs, platform, copy_gbps), snakemake)
