"""Tables of how far the rows carry the fits: one row a timed point, one an estimator, one a batch size."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from kvtier.frames import Table
from kvtier.measure.sensitivity import Sensitivity
from kvtier.measure.uncertainty import Between, student

_ENDS = ("", "_low", "_high")

INFLUENCE = Table(
    "influence",
    {
        "run": pl.String(),
        "batch": pl.Int64(),
        "context_tokens": pl.Int64(),
        **dict.fromkeys(("leverage", "studentized", "cooks", "dfbeta", "dfbetas"), pl.Float64()),
        **{f"without_{what}{end}": pl.Float64() for what in ("slope_ms_per_gib", "fixed_over_kv") for end in _ENDS},
        "decisive": pl.Boolean(),
    },
)
"""One row a timed point: its influence on the fit, and the fit without it with 95 % intervals; decisive as in leave_one_out."""

_ESTIMATED = ("intercept_ms", "slope_ms_per_gib", "ms_per_sequence", "fixed_over_kv")

ESTIMATORS = Table(
    "estimators",
    {"run": pl.String(), "estimator": pl.String(), **{f"{what}{end}": pl.Float64() for what in _ESTIMATED for end in _ENDS}},
    nullable=frozenset(f"{what}{end}" for what in _ESTIMATED for end in _ENDS if end or what == "ms_per_sequence"),
)
"""One row a run and estimator (least squares, Theil–Sen, least squares with a term for the batch), 95 % intervals where there are."""

BATCHES = Table("residuals by batch", {"run": pl.String(), "batch": pl.Int64(), "rows": pl.Int64(), "mean_residual_ms": pl.Float64()})
"""One row a run and batch size: what the fit over KV size alone leaves."""


def _ends(name: str, of: Between | float | None) -> dict[str, float | None]:
    values = (of.value, of.low, of.high) if isinstance(of, Between) else (of, None, None)
    return {f"{name}{end}": value for end, value in zip(_ENDS, values, strict=True)}


def influence(found: Iterable[Sensitivity]) -> pl.DataFrame:
    """``INFLUENCE`` in the order of the retained files."""
    records = []
    for each in found:
        for row, (batch, tokens) in enumerate(each.run.points):
            records.append(
                {
                    "run": each.run.key,
                    "batch": batch,
                    "context_tokens": tokens,
                    **vars(each.influences[row]),
                    **_ends("without_slope_ms_per_gib", each.without_slope[row]),
                    **_ends("without_fixed_over_kv", each.without_ratio[row]),
                    "decisive": row == each.run.decisive,
                }
            )
    return INFLUENCE.check(pl.DataFrame(records))


def estimators(found: Iterable[Sensitivity]) -> pl.DataFrame:
    """``ESTIMATORS``, three a run."""
    records = []
    for each in found:
        plane, robust, bounds = each.with_batch, each.theil_sen, each.bounds
        told = {
            "least squares": (bounds.intercept_ms, bounds.slope_ms_per_gib, None, bounds.fixed_over_kv),
            "Theil–Sen": (robust.intercept_ms, robust.slope_ms_per_gib, None, each.theil_sen_ratio),
            "least squares with batch": (
                *(student(estimate, plane.freedom) for estimate in (plane.intercept_ms, plane.slope_ms_per_gib, plane.ms_per_sequence)),
                each.with_batch_ratio,
            ),
        }
        for estimator, values in told.items():
            columns = [_ends(name, value) for name, value in zip(_ESTIMATED, values, strict=True)]
            records.append({"run": each.run.key, "estimator": estimator, **{key: v for column in columns for key, v in column.items()}})
    return ESTIMATORS.check(pl.DataFrame(records, infer_schema_length=None))


def batches(found: Iterable[Sensitivity]) -> pl.DataFrame:
    """``BATCHES``, smallest batch first."""
    records = []
    for each in found:
        sizes = [batch for batch, _ in each.run.points]
        for batch, residual in each.residual_by_batch_ms.items():
            records.append({"run": each.run.key, "batch": batch, "rows": sizes.count(batch), "mean_residual_ms": residual})
    return BATCHES.check(pl.DataFrame(records))


def build(found: Iterable[Sensitivity]) -> dict[str, pl.DataFrame]:
    """All tables by name."""
    found = list(found)
    return {"influence": influence(found), "estimators": estimators(found), "residuals_by_batch": batches(found)}
