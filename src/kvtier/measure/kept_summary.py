"""What a run of the kit says at a glance: medians with intervals by point, and fitted slopes. Raw rows stay the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from kvtier.errors import InputError
from kvtier.measure import fit, kept_points, medians, per_piece
from kvtier.measure.fit import MINIMUM_ROWS
from kvtier.measure.kept_points import QUANTITIES
from kvtier.measure.uncertainty import Between, student

KI = 1024


def summary(folder: str | Path) -> dict[str, Any]:
    """Medians, intervals and slopes of the tables in a folder, ready for JSON.

    Parameters
    ----------
    folder : str or Path
        Holds tables of :data:`kvtier.measure.kept.TABLES` as CSV; what it lacks is left out.

    Returns
    -------
    dict
        ``points``: by table, quantity, unit, how intervals were made, and one mapping a point (its columns, ``repetitions``, ``median``,
        ``low``, ``high``; the ends are None below three repetitions). ``bytes_per_block``: of ``table_size``. ``fits``: decode, time of a
        step over 1,024 tokens of KV by backend, device and type; movement, setup and bandwidth by path; each only where three points or
        more allow it, else ``left_out`` says why.

    Raises
    ------
    InputError
        If a table is damaged, or the folder has none.
    """
    tables = kept_points.read(folder)
    points = {name: kept_points.summed_up(name, tables[name], Path(folder) / f"{name}.csv") for name in QUANTITIES if name in tables}
    found: dict[str, Any] = {
        "points": {
            name: {
                "quantity": QUANTITIES[name].name,
                "unit": QUANTITIES[name].unit,
                "interval": medians.ABOUT,
                "rows": frame.to_dicts(),
            }
            for name, frame in points.items()
        },
        "fits": {},
    }
    if "table_size" in tables:
        found["bytes_per_block"] = [
            {"blocks": blocks, "bytes": size / blocks} for blocks, size in tables["table_size"].select("blocks", "table_bytes").iter_rows()
        ]
    if "decode" in points:
        found["fits"]["decode"] = [_decode(key, rows) for key, rows in _groups(points["decode"], "backend", "device", "dtype")]
    if "movement" in points:
        found["fits"]["movement"] = [_movement(key, rows) for key, rows in _groups(points["movement"], "path")]
    return found


def _groups(frame: pl.DataFrame, *columns: str) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    return [(dict(zip(columns, key, strict=True)), rows) for key, rows in frame.group_by(*columns, maintain_order=True)]


def _ends(value: Between) -> dict[str, float]:
    return {"value": value.value, "low": value.low, "high": value.high}


def _decode(key: dict[str, Any], rows: pl.DataFrame) -> dict[str, Any]:
    if rows.height < MINIMUM_ROWS:
        return {**key, "left_out": f"{rows.height} points, {MINIMUM_ROWS} are needed"}
    sizes = [batch * tokens / KI for batch, tokens in rows.select("batch", "context_tokens").iter_rows()]
    try:
        line = fit.two_term(sizes, rows["median"].to_list(), "decode")
    except InputError as error:
        return {**key, "left_out": str(error)}
    intercept, slope = student(line.intercept_ms, line.freedom), student(line.slope_ms_per_gib, line.freedom)
    return {**key, "points": line.n, "r_squared": line.r_squared, "intercept_ms": _ends(intercept), "ms_per_1024_tokens": _ends(slope)}


def _movement(key: dict[str, Any], rows: pl.DataFrame) -> dict[str, Any]:
    if rows.height < MINIMUM_ROWS:
        return {**key, "left_out": f"{rows.height} sizes, {MINIMUM_ROWS} are needed"}
    line = per_piece.fit(rows["piece_bytes"].to_list(), rows["median"].to_list(), key["path"])
    try:
        gbps = line.gbps
    except InputError as error:
        return {**key, "left_out": str(error)}
    setup = student(line.setup_us, line.freedom)
    return {**key, "points": line.n, "largest_deviation": line.largest_deviation, "setup_us": _ends(setup), "gbps": _ends(gbps)}
