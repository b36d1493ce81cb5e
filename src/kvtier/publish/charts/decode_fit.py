"""Decode step time against KV size: timed points, the two-term fit of each framework, its standard error as a band."""

from __future__ import annotations

import math
from pathlib import Path

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.files import read_yaml
from kvtier.publish import series, tables, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

SOLID = (1, 0)
STYLES = {
    "hf": series.Style(series.MUTED, (6, 3), "square"),
    "vllm": series.Style(series.INK, SOLID, "circle"),
}
"""Greys: colour belongs to eviction policies."""

TURNING = "vllm"
"""The run of which the row that decides its slope is ringed (D3)."""

SIZE = (280, 300)
"""Width and height of the plot where it is narrow [px]: all words stand inside."""

STEPS = 40
"""Pieces in which band and line are drawn."""


def fit_key(run: str, field: str) -> str:
    """Number of a fit on exact KV sizes."""
    return f"measured.gb10.{run}.{field}"


def point_key(run: str, batch: int, tokens: int) -> str:
    """Number of a timed point."""
    return f"measured.gb10.{run}.{batch}x{tokens}.step_ms"


def decisive(run: str, ledger: Ledger) -> tuple[int, int]:
    """Batch and context of the row whose omission moves a run's slope most: the one without which the ledger has a fit.

    Raises
    ------
    InputError
        If the ledger has no such fit, or more than one.
    """
    pattern = f"measured.gb10.{run}_loo_<batch>x<tokens>.slope"
    found = ledger.matches(pattern)
    if len(found) != 1:
        raise InputError(ledger.source, pattern, f"{len(found)} keys", "one")
    return int(found[0]["batch"]), int(found[0]["tokens"])


def fit_error_ms(kv_gib: float, sizes: list[float], slope_error: float) -> float:
    """Standard error of a least-squares line at one KV size.

    Parameters
    ----------
    kv_gib : float
        Where [GiB].
    sizes : list of float
        KV sizes of the fitted rows [GiB].
    slope_error : float
        Standard error of the slope [ms/GiB].

    Returns
    -------
    float
        ``slope_error · sqrt(S/n + (x − mean)²)`` with S the sum of squared deviations [ms]; at 0 GiB it is the intercept's error.
    """
    mean = math.fsum(sizes) / len(sizes)
    deviations = math.fsum((size - mean) ** 2 for size in sizes)
    return slope_error * math.sqrt(deviations / len(sizes) + (kv_gib - mean) ** 2)


def points(rows: pl.DataFrame, ledger: Ledger) -> list[dict]:
    """Timed points with their keys."""
    return [
        {
            "key": point_key(row["run"], row["batch"], row["context_tokens"]),
            "run": row["run"],
            "mark": "point",
            "batch": row["batch"],
            "context_tokens": row["context_tokens"],
            "kv_gib": row["kv_gib"],
            "step_ms": ledger.drawn(point_key(row["run"], row["batch"], row["context_tokens"]), row["step_ms"]).value,
            "lower_ms": None,
            "upper_ms": None,
        }
        for row in rows.iter_rows(named=True)
    ]


def fitted(fit: dict, sizes: list[float]) -> list[dict]:
    """A fitted line with its band, from 0 GiB to the largest size that was timed."""
    found = []
    for step in range(STEPS + 1):
        size = max(sizes) * step / STEPS
        centre = fit["intercept_ms"] + fit["slope_ms_per_gib"] * size
        error = fit_error_ms(size, sizes, fit["slope_ms_per_gib_standard_error"])
        found.append(
            {
                "key": fit_key(fit["run"], "slope"),
                "run": fit["run"],
                "mark": "fit",
                "batch": None,
                "context_tokens": None,
                "kv_gib": size,
                "step_ms": centre,
                "lower_ms": centre - error,
                "upper_ms": centre + error,
            }
        )
    return found


def fit_quotes(fit: dict, ledger: Ledger) -> dict[str, Quote]:
    """The numbers that say a fit."""
    columns = {"intercept_ms": "intercept_ms", "slope": "slope_ms_per_gib", "r2": "r_squared", "n": "n"}
    return {field: ledger.drawn(fit_key(fit["run"], field), fit[column]) for field, column in columns.items()}


def scales(frame: pl.DataFrame) -> dict[str, alt.X | alt.Y]:
    """Both axes from zero; time to the next hundred above all that is drawn [ms]."""
    hundred = 100.0
    slowest = max(frame["upper_ms"].max(), frame["step_ms"].max())
    time = {"title": "Decode step time (ms)", "scale": alt.Scale(domain=[0, hundred * math.ceil(slowest / hundred)])}
    return {
        "x": alt.X(
            "kv_gib:Q",
            title="KV cache read in a step (GiB)",
            scale=alt.Scale(domain=[0, frame["kv_gib"].max()], nice=False),
            axis=alt.Axis(tickCount=8),
        ),
        "y": alt.Y("step_ms:Q", **time),
        "lower": alt.Y("lower_ms:Q", **time),
    }


def at(row: dict, axes: dict[str, alt.X | alt.Y]) -> alt.Chart:
    """A place in the plot, for words and rings."""
    return alt.Chart(alt.InlineData(values=[{name: row[name] for name in ("kv_gib", "step_ms")}])).encode(x=axes["x"], y=axes["y"])


def series_marks(run: str, axes: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """Band, fitted line and timed points of one framework."""
    style = STYLES[run]
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter(alt.datum.run == run)
    line, timed = base.transform_filter(alt.datum.mark == "fit"), base.transform_filter(alt.datum.mark == "point")
    point = {"color": style.colour, "shape": style.shape, "size": 60, "filled": style.dash == SOLID, "strokeWidth": 1.75, "opacity": 1}
    return [
        line.mark_area(color=style.colour, opacity=0.13).encode(x=axes["x"], y=axes["lower"], y2="upper_ms:Q"),
        line.mark_line(color=style.colour, strokeDash=list(style.dash)).encode(x=axes["x"], y=axes["y"]),
        timed.mark_point(**point).encode(x=axes["x"], y=axes["y"]),
    ]


def label(
    run: str, name: str, quotes: dict[str, Quote], frame: pl.DataFrame, axes: dict[str, alt.X | alt.Y], layout: theme.Layout
) -> list[alt.Chart]:
    """A fit's words at the end of its line: right of the plot, or above a line that ends inside it; where it is narrow, in free corners."""
    end = frame.filter((pl.col("run") == run) & (pl.col("mark") == "fit")).row(-1, named=True)
    outside = end["kv_gib"] == frame["kv_gib"].max()
    words = [
        name.replace(" + ", " +\n") if outside and not layout.narrow else name,
        f"a {quotes['intercept_ms'].plus_minus}",
        f"b {quotes['slope'].plus_minus}",
        f"R² {quotes['r2'].text}, {quotes['n'].text} points",
    ]
    look = {"color": STYLES[run].colour, "fontWeight": 600, "fontSize": layout.text}
    if not layout.narrow:
        look |= {"align": "left", "dx": 14, "dy": -4} if outside else {"align": "right", "dx": -6, "dy": -70}
        return theme.over_grid(at(end, axes), "\n".join(words), quotes["slope"].key, **look)
    width, height = SIZE
    x, y, look["align"] = (width - 4, 0.68 * height, "right") if outside else (8, 0.24 * height, "left")
    corner = alt.Chart(alt.InlineData(values=[{}])).encode(x=alt.XValue(x), y=alt.YValue(y))
    return theme.over_grid(corner, "\n".join(words), quotes["slope"].key, **look)


def draw(
    rows_table: str | Path, fits_table: str | Path, platform: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE
) -> theme.Figure:
    """Figure of the two decode fits on exact KV sizes.

    Parameters
    ----------
    rows_table, fits_table : str or Path
        CSV files, columns ``tables.DECODE_STEPS`` and ``tables.DECODE_FITS``.
    platform : str or Path
        YAML file that names machine, model, date and runs.
    ledger : Ledger
        Holds the coefficients, their errors and the timed points.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If tables and ledger differ, or the platform file does not name a run.
    """
    about = read_yaml(platform)
    rows = tables.read(rows_table, tables.DECODE_STEPS)
    fits = tables.read(fits_table, tables.DECODE_FITS).filter(pl.col("kv_sizes") == "exact")
    for run in STYLES:
        if run not in about.get("decode", {}) or run not in fits["run"]:
            raise InputError(platform, f"decode.{run}", "no such run", f"a run that {fits_table} fits")
    names = {run: about["decode"][run]["name"] for run in STYLES}
    timed, quotes, lines = points(rows, ledger), {}, []
    for run in STYLES:
        fit = fits.filter(pl.col("run") == run).row(0, named=True)
        quotes[run] = fit_quotes(fit, ledger)
        lines += fitted(fit, rows.filter(pl.col("run") == run)["kv_gib"].to_list())
    frame = pl.DataFrame([*timed, *lines], infer_schema_length=None)
    axes = scales(frame)
    run, (batch, tokens) = TURNING, decisive(TURNING, ledger)
    slowest, without = ledger[point_key(run, batch, tokens)], ledger[f"measured.gb10.{run}_loo_{batch}x{tokens}.slope"]
    note = f"Batch {batch} × {tokens:,} tokens: {slowest.text}\nwithout it, b of {names[run].split()[0]} is\n{without.plus_minus}"
    spot = at(next(point for point in timed if point["key"] == slowest.key), axes)
    fits_said = " ".join(
        f"{names[run]}: intercept {found['intercept_ms'].plus_minus}, slope {found['slope'].plus_minus}, "
        f"R² {found['r2'].text}, {found['n'].text} points."
        for run, found in quotes.items()
    )
    model = about["model"]
    return theme.Figure(
        name="decode_fit",
        title=f"Decode step time against KV size, {model['name']} {model['dtype']}",
        source=f"{about['machine']}, {about['date']}",
        limits="One model, one machine, uniform batches; no thermal log; the slowest point was not repeated.",
        caption=(
            "Points: median step time of one batch size and context. Lines: least squares of step time over KV size, t = a + b · KV; "
            "bands: ± one standard error of the line; ± in the text: one standard error of the coefficient. "
            "KV sizes follow from the model's geometry. Keys: measured.gb10.<run>.intercept_ms, .slope, .r2"
        ),
        alt=(
            f"Scatter chart with two fitted lines, {about['machine']}: decode step time in ms against KV cache size in GiB. {fits_said} "
            f"{names[run]} at batch {batch} and {tokens:,} tokens takes {slowest.text}; "
            f"without that point its slope is {without.plus_minus}."
        ),
        quotes=[*(quote for found in quotes.values() for quote in found.values()), *(ledger[point["key"]] for point in timed), without],
        drawn=frame,
        layers=[
            *(mark for run in STYLES for mark in series_marks(run, axes)),
            spot.mark_point(size=260, color=series.INK, strokeWidth=1.5, filled=False, opacity=1),
            *theme.over_grid(spot, note, without.key, align="right", dx=-14, dy=-32 if layout.narrow else -30, fontSize=layout.text),
            *(mark for run in STYLES for mark in label(run, names[run], quotes[run], frame, axes, layout)),
        ],
        layout=layout,
        width=SIZE[0] if layout.narrow else 0,
        height=SIZE[1] if layout.narrow else 0,
    )
