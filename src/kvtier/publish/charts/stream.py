"""Achieved bandwidth of memory against the size of the arrays, by kernel and threads, under the bandwidth that the data sheet states."""

from __future__ import annotations

import math
from pathlib import Path

import altair as alt
import polars as pl

from kvtier.publish import intervals, kept_runs, series, theme
from kvtier.publish.kept_runs import Run
from kvtier.publish.ledger import Ledger
from kvtier.publish.palette import LIGHT
from kvtier.publish.render import DATA

KERNELS = ("read", "write", "copy", "triad")
"""In the order of the panels."""

STYLES = (
    series.Style(LIGHT["blue"], (6, 3), "square"),
    series.Style(series.INK, (1, 0), "circle"),
    series.Style(LIGHT["ochre"], (2, 3), "diamond"),
    series.Style(LIGHT["green"], (8, 3, 2, 3), "triangle-up"),
)
"""By number of threads, rising."""

BUS = LIGHT["rose"]
SIZES = {theme.WIDE: (240, 170), theme.NARROW: (190, 140)}
GAPS = {theme.WIDE: (46, 128), theme.NARROW: (46, 0)}
LEFT = -40
HEAD = ", GB/s (log scale)"
"""After the name of the first panel: what the axis of all is."""

KEY = "measured.{}.stream.{}.{}t.{}.gbps"


def drawn(run: Run, ledger: Ledger) -> pl.DataFrame:
    """One row a median: kernels, then threads, sizes rising.

    Raises
    ------
    InputError
        If the run has none.
    """
    rows = []
    for kernel in KERNELS:
        found = {
            (int(match["threads"]), int(match["bytes"])) for match in ledger.matches(KEY.format(run.key, kernel, "<threads>", "<bytes>"))
        }
        for threads, size in sorted(found):
            quote = ledger[KEY.format(run.key, kernel, threads, size)]
            about = {"key": quote.key, "kernel": kernel, "threads": threads, "buffer_bytes": size}
            rows.append({**about, "gbps": quote.value, **intervals.ends(quote)})
    if not rows:
        raise kept_runs.none(ledger.source, f"measured.{run.key}.stream")
    columns = {"key": pl.String(), "kernel": pl.String(), "threads": pl.Int64(), "buffer_bytes": pl.Int64(), "gbps": pl.Float64()}
    return pl.DataFrame(rows, schema=columns | intervals.COLUMNS)


def domain(points: pl.DataFrame, bus_gbps: float) -> tuple[float, float]:
    """From a factor of two below the least to one above the most, the bus among them; powers of two."""
    low = min(points["gbps"].min(), points["lower"].min() or math.inf)
    high = max(points["gbps"].max(), points["upper"].max() or 0, bus_gbps)
    return 2.0 ** math.floor(math.log2(low)), 2.0 ** math.ceil(math.log2(high * 1.15))


def axes(points: pl.DataFrame, bus_gbps: float, *, lowest: bool) -> dict[str, alt.X | alt.Y]:
    """Both axes, logarithmic; the title of the sizes stands under the lowest panels."""
    low, high = domain(points, bus_gbps)
    least, most = points["buffer_bytes"].min(), points["buffer_bytes"].max()
    rate = {
        "title": None,
        "scale": alt.Scale(type="log", base=2, domain=[low, high], nice=False),
        "axis": alt.Axis(
            values=[2.0**power for power in range(round(math.log2(low)), round(math.log2(high)) + 1, 2)],
            titleX=LEFT,
            titleY=-22,
            format="~g",
        ),
    }
    ticks = [2**power for power in range(math.ceil(math.log2(least)), math.floor(math.log2(most)) + 1, 2)]
    names = " : ".join(f"datum.value == {tick} ? '{kept_runs.size(tick)}'" for tick in ticks)
    return {
        "x": alt.X(
            "buffer_bytes:Q",
            title="Size of one array (log scale)" if lowest else None,
            scale=alt.Scale(type="log", base=2, domain=[least, most], nice=False, padding=8),
            axis=alt.Axis(values=ticks, labelExpr=f"{names} : ''", labelOverlap=True),
        ),
        "y": alt.Y("gbps:Q", **rate),
        "lower": alt.Y("lower:Q", **rate),
    }


def line(kernel: str, threads: int, style: series.Style, placed: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """Band, line and points of one number of threads."""
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter((alt.datum.kernel == kernel) & (alt.datum.threads == threads))
    return [
        base.mark_area(color=style.colour, opacity=0.18).encode(x=placed["x"], y=placed["lower"], y2="upper:Q"),
        base.mark_line(color=style.colour, strokeDash=list(style.dash), strokeWidth=1.75).encode(x=placed["x"], y=placed["y"]),
        base.mark_point(color=style.colour, shape=style.shape, size=36, filled=True, opacity=1).encode(x=placed["x"], y=placed["y"]),
    ]


def bounds(
    run: Run, kernel: str, points: pl.DataFrame, ledger: Ledger, placed: dict[str, alt.X | alt.Y], layout: theme.Layout
) -> list[alt.Chart]:
    """The bus with the share of it that arrays in memory reach, and an upright where an array is as large as the last-level cache."""
    bus = ledger[f"measured.{run.key}.machine.bus_gbps"]
    least, most = points["buffer_bytes"].min(), points["buffer_bytes"].max()
    span = alt.Chart(alt.InlineData(values=[{"buffer_bytes": least, "end": most, "gbps": bus.value}]))
    marks = [span.mark_rule(color=BUS, strokeWidth=1.5, strokeDash=[8, 3]).encode(x=placed["x"], x2="end:Q", y=placed["y"])]
    low, high = domain(points, bus.value)
    if least < run.last_level_cache_bytes < most:
        cache = alt.Chart(alt.InlineData(values=[{"buffer_bytes": run.last_level_cache_bytes, "gbps": low, "end": high}]))
        foot = alt.Chart(alt.InlineData(values=[{"buffer_bytes": run.last_level_cache_bytes, "gbps": low}]))
        size = ledger[f"measured.{run.key}.machine.last_level_cache_mib"]
        look = {"fontSize": layout.small, "align": "right", "dx": -4, "dy": -7, "color": series.MUTED}
        marks += [
            cache.mark_rule(color=series.FAINT, strokeWidth=1.25).encode(x=placed["x"], y=placed["y"], y2="end:Q"),
            *theme.over_grid(foot.encode(x=placed["x"], y=placed["y"]), f"cache, {size.text}", size.key, **look),
        ]
    at = alt.Chart(alt.InlineData(values=[{"buffer_bytes": most, "gbps": bus.value}])).encode(x=placed["x"], y=placed["y"])
    words = {"fontSize": layout.small, "align": "right", "dy": 9, "color": BUS, "fontWeight": 600}
    marks += theme.over_grid(at, f"bus by data sheet: {bus.text}", bus.key, **words)
    key = share_key(run, kernel)
    if key in ledger:
        marks += theme.over_grid(at, f"of it, memory gives (%): {ledger[key].bare}", key, **words | {"dy": 23, "fontWeight": 400})
    return marks


def share_key(run: Run, kernel: str) -> str:
    """Number of the share of the bus."""
    return f"measured.{run.key}.stream.{kernel}.bus_share"


def panel(
    kernel: str, run: Run, points: pl.DataFrame, ledger: Ledger, layout: theme.Layout, *, first: bool, lowest: bool
) -> list[alt.Chart]:
    """All numbers of threads of one kernel, with the bandwidth of the largest arrays at the ends."""
    bus_gbps = ledger[f"measured.{run.key}.machine.bus_gbps"].value
    placed = axes(points, bus_gbps, lowest=lowest)
    own = points.filter(pl.col("kernel") == kernel)
    threads = own["threads"].unique().sort().to_list()
    styles = dict(zip(threads, STYLES * len(threads), strict=False))
    last = [own.filter(pl.col("threads") == count).row(-1, named=True) for count in threads]
    low, high = (math.log2(end) for end in domain(points, bus_gbps))
    labels = theme.end_labels(
        [f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}: {ledger[row['key']].bare}" for row in last],
        [math.log2(row["gbps"]) for row in last],
        [styles[row["threads"]].colour for row in last],
        (low, high),
        SIZES[layout],
        layout=layout,
        keys=[row["key"] for row in last],
    )
    return [
        *bounds(run, kernel, points, ledger, placed, layout),
        *(mark for count in threads for mark in line(kernel, count, styles[count], placed)),
        theme.said(f"{kernel.capitalize()}{HEAD if first else ''}", LEFT if first else 0, -12, layout.text + 1, series.INK, 600),
        *labels,
    ]


def in_words(points: pl.DataFrame, run: Run, ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    told = []
    for (kernel, threads), rows in points.group_by("kernel", "threads", maintain_order=True):
        rates = "; ".join(
            f"{kept_runs.size(size)} {ledger[key].plus_minus}" for size, key in rows.select("buffer_bytes", "key").iter_rows()
        )
        told.append(f"{kernel}, threads {threads}: {rates}")
    bus = ledger[f"measured.{run.key}.machine.bus_gbps"]
    what = f"{len(KERNELS)} line charts with logarithmic axes, {run.said}: bandwidth against size of one array"
    return f"{what}. {'. '.join(told)}. Bus: {bus.text}."


def draw(runs_table: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of streaming bandwidth by buffer, of the first kept run.

    Parameters
    ----------
    runs_table : str or Path
        CSV file, columns ``kept_runs.RUNS``.
    ledger : Ledger
        Holds bandwidths by kernel, threads and size, and the bus.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a number is missing.
    """
    run = kept_runs.first(runs_table)
    points, columns = drawn(run, ledger), 1 if layout.narrow else 2
    kernels = points["kernel"].unique(maintain_order=True).to_list()
    panels = [
        panel(kernel, run, points, ledger, layout, first=index == 0, lowest=index >= len(kernels) - columns)
        for index, kernel in enumerate(kernels)
    ]
    shares = [share_key(run, kernel) for kernel in kernels]
    bus, cache = (ledger[f"measured.{run.key}.machine.{field}"] for field in ("bus_gbps", "last_level_cache_mib"))
    return theme.Figure(
        name="stream",
        title="Streaming bandwidth by size of the arrays, against the stated bus",
        source=run.said,
        limits="One shared machine; the bus is that of all channels, of which a guest may reach a part.",
        caption=(
            "Points: median of bytes that a kernel reads and writes by its own count, over its time (that a store first reads its line is "
            "not counted); bands: intervals of the median over repetitions. Left of the upright one array fits in the last-level cache: "
            "what lies there is no bandwidth of memory and may exceed the bus. "
            "Keys: measured.<run>.stream.<kernel>.<threads>t.<bytes>.gbps, "
            ".from_memory_gbps, .bus_share"
        ),
        alt=in_words(points, run, ledger),
        quotes=[*(ledger[key] for key in points["key"]), *(ledger[key] for key in shares if key in ledger), bus, cache],
        drawn=points,
        layers=panels[0],
        panels=panels[1:],
        columns=columns,
        gaps=GAPS[layout],
        layout=layout,
        width=SIZES[layout][0],
        height=SIZES[layout][1],
        left=LEFT,
    )
