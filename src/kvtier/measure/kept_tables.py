"""Tables of all kept runs: points with medians and intervals, and what was fitted to them. Figures draw these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from kvtier.frames import Table
from kvtier.measure import kept_points, repeatability
from kvtier.measure.kept_runs import KeptRun
from kvtier.measure.repeatability import Compared
from kvtier.measure.uncertainty import Between, student

RUN = {"run": pl.String(), "machine": pl.String(), "date": pl.String()}
"""Of each row: the folder, the machine in a word, the day."""

ENDS = ("", "_low", "_high")


def _with_ends(*names: str) -> dict[str, pl.DataType]:
    return {f"{name}{end}": pl.Float64() for name in names for end in ENDS}


POINTS = {
    name: Table(quantity.points.name, {**RUN, **quantity.points.columns}, quantity.points.nullable)
    for name, quantity in kept_points.QUANTITIES.items()
}
"""One row a point and run."""

RUNS = Table(
    "kept runs",
    {
        **RUN,
        "key": pl.String(),
        "words": pl.String(),
        "cores": pl.Int64(),
        "last_level_cache_bytes": pl.Int64(),
        "memory_bytes": pl.Int64(),
        "bus_gbps": pl.Float64(),
        "bus_source": pl.String(),
    },
)
"""One row a run; ``key`` is its word in number keys, ``words`` names the machine."""

DECODE_FITS = Table(
    "decode fits",
    {
        **RUN,
        **{name: pl.String() for name in ("backend", "device", "dtype")},
        "model": pl.String(),
        "n": pl.Int64(),
        "r_squared": pl.Float64(),
        **_with_ends("intercept_ms", "slope_ms_per_gib"),
        "ms_per_sequence": pl.Float64(),
        "largest_cooks": pl.Float64(),
        "left_out": pl.String(),
    },
    frozenset({"n", "r_squared", *_with_ends("intercept_ms", "slope_ms_per_gib"), "ms_per_sequence", "largest_cooks"}),
)
"""One row a line, and one a fit with a term for the batch; ``left_out`` says what the rows do not allow."""

MOVEMENT_FITS = Table(
    "movement fits",
    {
        **RUN,
        "path": pl.String(),
        "n": pl.Int64(),
        **_with_ends("setup_us", "gbps"),
        "largest_deviation": pl.Float64(),
        "left_out": pl.String(),
    },
    frozenset({"n", *_with_ends("setup_us", "gbps"), "largest_deviation"}),
)
"""One row a path."""

OVER_MOVE = Table(
    "regenerating over moving",
    {
        **RUN,
        **{name: pl.String() for name in ("backend", "device", "dtype", "path")},
        "tokens": pl.Int64(),
        "context_tokens": pl.Int64(),
        "block_bytes": pl.Int64(),
        **_with_ends("ratio"),
    },
)
"""One row a model on a device, context and path."""

TABLE_SIZE = Table(
    "table size", {**RUN, "blocks": pl.Int64(), "table_bytes_per_block": pl.Float64(), "resident_bytes_per_block": pl.Float64()}
)
"""One row a size."""


def _named(run: KeptRun) -> dict[str, Any]:
    return {"run": run.name, "machine": run.slug, "date": run.date}


def _ends(name: str, value: Between | None) -> dict[str, float | None]:
    found = (value.value, value.low, value.high) if value else (None, None, None)
    return {f"{name}{end}": each for end, each in zip(ENDS, found, strict=True)}


def _runs(run: KeptRun) -> Iterator[dict[str, Any]]:
    yield {
        **_named(run),
        "key": run.key,
        "words": run.machine,
        "cores": run.cores,
        "last_level_cache_bytes": run.last_level_cache_bytes,
        "memory_bytes": run.memory_bytes,
        "bus_gbps": run.bus_gbps,
        "bus_source": run.bus_source,
    }


def _decode_fits(run: KeptRun) -> Iterator[dict[str, Any]]:
    for decode in run.decodes:
        about = {**_named(run), "backend": decode.backend, "device": decode.device, "dtype": decode.dtype}
        why = "; ".join(decode.left_out)
        for model, fitted in (("line", decode.line), ("with batch", decode.with_batch)):
            if fitted is None:
                yield {**about, "model": model, "left_out": why}
                continue
            yield {
                **about,
                "model": model,
                "n": fitted.n,
                "r_squared": fitted.r_squared,
                **_ends("intercept_ms", student(fitted.intercept_ms, fitted.freedom)),
                **_ends("slope_ms_per_gib", student(fitted.slope_ms_per_gib, fitted.freedom)),
                "ms_per_sequence": decode.with_batch.ms_per_sequence.value if model == "with batch" else None,
                "largest_cooks": max((each.cooks for each in decode.influences), default=None) if model == "line" else None,
                "left_out": why if model == "line" else "",
            }


def _movement_fits(run: KeptRun) -> Iterator[dict[str, Any]]:
    for path in run.paths:
        line = path.line
        yield {
            **_named(run),
            "path": path.path,
            "n": line.n if line else None,
            **_ends("setup_us", student(line.setup_us, line.freedom) if line else None),
            **_ends("gbps", path.gbps),
            "largest_deviation": line.largest_deviation if line else None,
            "left_out": path.left_out,
        }


def _over_move(run: KeptRun) -> Iterator[dict[str, Any]]:
    for made in run.regenerated:
        for path, ratio in made.over_move.items():
            about = {name: getattr(made, name) for name in ("backend", "device", "dtype", "tokens", "context_tokens", "block_bytes")}
            yield {**_named(run), **about, "path": path, **_ends("ratio", ratio)}


def _table_size(run: KeptRun) -> Iterator[dict[str, Any]]:
    if "table_size" in run.tables:
        for row in run.tables["table_size"].to_dicts():
            per_block = {f"{column}_per_block": row[column] / row["blocks"] for column in ("table_bytes", "resident_bytes")}
            yield {**_named(run), "blocks": row["blocks"], **per_block}


MADE = {
    "runs": (RUNS, _runs),
    "decode_fits": (DECODE_FITS, _decode_fits),
    "movement_fits": (MOVEMENT_FITS, _movement_fits),
    "over_move": (OVER_MOVE, _over_move),
    "table_size": (TABLE_SIZE, _table_size),
}
"""Tables besides those of points, by name: what they declare, and their rows of a run."""


def points(name: str, runs: Iterable[KeptRun]) -> pl.DataFrame:
    """``POINTS`` of a table, runs in order."""
    frames = [
        run.points[name].select(*(pl.lit(value).alias(column) for column, value in _named(run).items()), pl.all())
        for run in runs
        if name in run.points
    ]
    return POINTS[name].check(pl.concat(frames) if frames else pl.DataFrame(schema=POINTS[name].columns))


def build(runs: Iterable[KeptRun], found: Iterable[Compared]) -> dict[str, tuple[Table, pl.DataFrame]]:
    """All tables by name, each with its declaration."""
    runs = list(runs)
    made = {name: (table, points(name, runs)) for name, table in POINTS.items()}
    for name, (table, rows) in MADE.items():
        records = [row for run in runs for row in rows(run)]
        made[name] = (table, table.check(pl.DataFrame(records, schema=table.columns)))
    return made | {"repeatability": (repeatability.COMPARED, repeatability.table(found))}
