"""Tables of the decode fits: one row a fit, one a timed point, one a row left out."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from kvtier.frames import Table
from kvtier.measure import fit, retained
from kvtier.measure.runs import Fitted, Run

_FITTED = {
    "n": pl.Int64(),
    "r_squared": pl.Float64(),
    **{
        name: pl.Float64()
        for column in ("intercept_ms", "slope_ms_per_gib", "fixed_gbps", "kv_gbps", "fixed_over_kv")
        for name in (column, f"{column}_standard_error")
    },
    "fixed_share_percent": pl.Float64(),
    "kv_share_percent": pl.Float64(),
}

FITS = Table("fits", {"run": pl.String(), "kv_sizes": pl.String(), **_FITTED})
"""One row a fit of all rows of a run, on KV sizes exact and as published."""

ROWS = Table(
    "rows",
    {
        "run": pl.String(),
        **retained.DECODE_STEPS.columns,
        **dict.fromkeys(("kv_gib", "kv_gib_published", "fitted_ms", "residual_ms", "tokens_per_s", "step_gbps"), pl.Float64()),
    },
)
"""One row a timed point, against the fit on exact sizes."""

LEAVE_ONE_OUT = Table(
    "leave one out",
    {
        "run": pl.String(),
        "left_out_batch": pl.Int64(),
        "left_out_context_tokens": pl.Int64(),
        **_FITTED,
        "left_out_fitted_ms": pl.Float64(),
        "left_out_residual_ms": pl.Float64(),
        "decisive": pl.Boolean(),
    },
)
"""One row a fit without one row; decisive is the row, one a run, whose omission moves the slope most."""


def _columns(fitted: Fitted) -> dict[str, float]:
    line, implied = fitted.line, fitted.implied
    estimates = {
        "intercept_ms": line.intercept_ms,
        "slope_ms_per_gib": line.slope_ms_per_gib,
        "fixed_gbps": implied.fixed_gbps,
        "kv_gbps": implied.kv_gbps,
        "fixed_over_kv": implied.fixed_over_kv,
    }
    columns: dict[str, float] = {"n": line.n, "r_squared": line.r_squared}
    for column, estimate in estimates.items():
        columns |= {column: estimate.value, f"{column}_standard_error": estimate.standard_error}
    shares = {"fixed_share_percent": implied.fixed_share_percent.value, "kv_share_percent": implied.kv_share_percent.value}
    return columns | shares


def fits(runs: Iterable[Run]) -> pl.DataFrame:
    """``FITS``, both fits of each run."""
    records = [
        {"run": run.key, "kv_sizes": sizes, **_columns(fitted)}
        for run in runs
        for sizes, fitted in (("exact", run.exact), ("published", run.published))
    ]
    return FITS.check(pl.DataFrame(records))


def rows(runs: Iterable[Run]) -> pl.DataFrame:
    """``ROWS`` in the order of the retained files."""
    records = []
    for run in runs:
        for index, row in enumerate(run.rows.iter_rows(named=True)):
            size = run.kv_gib[index]
            records.append(
                {
                    "run": run.key,
                    **row,
                    "kv_gib": size,
                    "kv_gib_published": retained.as_published(run.kv_gib)[index],
                    "fitted_ms": run.exact.line.step_ms(size),
                    "residual_ms": run.exact.line.residuals_ms[index],
                    "tokens_per_s": row["batch"] / (row["step_ms"] / fit.MS_PER_S),
                    "step_gbps": run.step_gbps[index],
                }
            )
    return ROWS.check(pl.DataFrame(records))


def leave_one_out(runs: Iterable[Run]) -> pl.DataFrame:
    """``LEAVE_ONE_OUT`` in the order of the retained files."""
    records = [
        {
            "run": run.key,
            "left_out_batch": batch,
            "left_out_context_tokens": tokens,
            **_columns(run.without[row]),
            "left_out_fitted_ms": run.without[row].line.step_ms(run.kv_gib[row]),
            "left_out_residual_ms": run.missed_ms(row),
            "decisive": row == run.decisive,
        }
        for run in runs
        for row, (batch, tokens) in enumerate(run.points)
    ]
    return LEAVE_ONE_OUT.check(pl.DataFrame(records))


def build(runs: Iterable[Run]) -> dict[str, pl.DataFrame]:
    """All tables by name."""
    runs = list(runs)
    return {"fits": fits(runs), "rows": rows(runs), "leave_one_out": leave_one_out(runs)}
