"""Time to move a piece of KV against its size, by path, with the fitted line; and the time to compute the same tokens again, as a level."""

from __future__ import annotations

import math
from pathlib import Path

import altair as alt
import polars as pl

from kvtier.publish import intervals, kept_runs, series, theme
from kvtier.publish.kept_runs import Run
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.palette import LIGHT
from kvtier.publish.render import DATA

TIMED, LINE, MADE = "moved", "line", "computed again"
US_PER_MS, US_PER_S, GB = 1e3, 1e6, 1e9
STEPS = 48
"""Pieces in which a line is drawn: straight in plain units, bent on logarithmic axes."""

STYLES = {
    "memory_to_memory": series.Style(series.INK, (1, 0), "circle"),
    "shared_memory_to_memory": series.Style(LIGHT["blue"], (6, 3), "square"),
    "file_to_memory": series.Style(LIGHT["ochre"], (2, 3), "diamond"),
    "memory_to_file": series.Style(LIGHT["green"], (8, 3, 2, 3), "triangle-up"),
    "host_to_device": series.Style(LIGHT["muted"], (1, 0), "triangle-right"),
    "device_to_host": series.Style(LIGHT["muted"], (2, 3), "triangle-left"),
}
OTHER = series.Style(LIGHT["muted"], (6, 3), "cross")
"""Between nodes."""

COMPUTED = LIGHT["rose"]

SHORT = {
    "memory_to_memory": "memory",
    "shared_memory_to_memory": "shared",
    "file_to_memory": "file",
    "memory_to_file": "to file",
    "host_to_device": "to device",
    "device_to_host": "to host",
}
"""Where it is narrow."""

SIZES = {theme.WIDE: (500, 340), theme.NARROW: (178, 300)}
GAPS = {theme.WIDE: (96, 0), theme.NARROW: (92, 0)}
LEFT = {theme.WIDE: -56, theme.NARROW: -50}


def paths(run: Run, ledger: Ledger) -> list[str]:
    """Paths of a run, as told; those between nodes last.

    Raises
    ------
    InputError
        If the run moved nothing.
    """
    found = {match["path"] for match in ledger.matches(f"measured.{run.key}.movement.<path>.<bytes>.us")}
    if not found:
        raise kept_runs.none(ledger.source, f"measured.{run.key}.movement")
    return sorted(found, key=lambda path: ([*STYLES, path].index(path), path))


def sizes(run: Run, path: str, ledger: Ledger) -> list[int]:
    """Sizes of a piece that were timed [B]."""
    return sorted(int(match["bytes"]) for match in ledger.matches(f"measured.{run.key}.movement.{path}.<bytes>.us"))


def timed(run: Run, path: str, piece_bytes: int, ledger: Ledger) -> Quote:
    """Time of a piece."""
    return ledger[f"measured.{run.key}.movement.{path}.{piece_bytes}.us"]


def computed(run: Run, ledger: Ledger) -> list[tuple[str, int]]:
    """Model on a device and context of each time to compute a block's tokens again; contexts rising. Empty where none was taken."""
    found = {(match["model"], int(match["context"])) for match in ledger.matches(f"measured.{run.key}.regeneration.<model>.<context>.ms")}
    return sorted(found)


def ratio(run: Run, path: str, ledger: Ledger) -> Quote | None:
    """Computing a block's tokens again over moving the block, at the smallest context: the least that is saved."""
    keys = [f"measured.{run.key}.regeneration.{model}.{context}.over_move.{path}" for model, context in computed(run, ledger)[:1]]
    return next((ledger[key] for key in keys if key in ledger), None)


def block_bytes(run: Run, ledger: Ledger) -> float | None:
    """Size of the block whose tokens are computed again [B]."""
    for model, _ in computed(run, ledger)[:1]:
        return ledger[f"measured.{run.key}.regeneration.{model}.block_kib"].value * 1024
    return None


def drawn(runs: list[Run], ledger: Ledger) -> pl.DataFrame:
    """One row a timed point, a point of a line, or a time to compute again."""
    rows = []
    for run in runs:
        for path in paths(run, ledger):
            about = {"run": run.name, "path": path, "context_tokens": None}
            own = sizes(run, path, ledger)
            for piece in own:
                quote = timed(run, path, piece, ledger)
                rows.append({**about, "key": quote.key, "mark": TIMED, "piece_bytes": piece, "us": quote.value, **intervals.ends(quote)})
            rows += [{**about, "key": None, "mark": LINE, "lower": None, "upper": None, **at} for at in line(run, path, own, ledger)]
        for model, context in computed(run, ledger):
            quote = ledger[f"measured.{run.key}.regeneration.{model}.{context}.ms"]
            spread = {end: None if value is None else value * US_PER_MS for end, value in intervals.ends(quote).items()}
            about = {"run": run.name, "path": MADE, "context_tokens": context, "mark": MADE}
            rows.append({**about, "key": quote.key, "piece_bytes": block_bytes(run, ledger), "us": quote.value * US_PER_MS, **spread})
    columns = {"key": pl.String(), "run": pl.String(), "path": pl.String(), "mark": pl.String(), "context_tokens": pl.Int64()}
    return pl.DataFrame(rows, schema=columns | {"piece_bytes": pl.Float64(), "us": pl.Float64()} | intervals.COLUMNS)


def line(run: Run, path: str, own: list[int], ledger: Ledger) -> list[dict[str, float]]:
    """Points of the fitted line; none where the path has no bandwidth, or where the line is at or below zero."""
    prefix = f"measured.{run.key}.movement.{path}"
    if f"{prefix}.gbps" not in ledger:
        return []
    setup_us, us_per_byte = ledger[f"{prefix}.setup_us"].value, US_PER_S / (ledger[f"{prefix}.gbps"].value * GB)
    places = [own[0] * (own[-1] / own[0]) ** (step / STEPS) for step in range(STEPS + 1)]
    found = [{"piece_bytes": place, "us": setup_us + place * us_per_byte} for place in places]
    return [point for point in found if point["us"] > 0]


def domain(points: pl.DataFrame, column: str) -> tuple[float, float]:
    """Whole decades around all times; sizes from end to end."""
    values = points[column]
    if column == "piece_bytes":
        return values.min(), values.max()
    low = min(values.min(), points["lower"].min() or math.inf)
    return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(values.max() * 1.3))


def axes(points: pl.DataFrame, layout: theme.Layout, *, first: bool, lowest: bool) -> dict[str, alt.X | alt.Y]:
    """Both axes, logarithmic."""
    (low, high), (least, most) = domain(points, "us"), domain(points, "piece_bytes")
    decades = [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    every = 4 if layout.narrow else 2
    ticks = [2**power for power in range(math.ceil(math.log2(least)), math.floor(math.log2(most)) + 1, every)]
    names = " : ".join(f"datum.value == {tick} ? '{kept_runs.size(tick)}'" for tick in ticks)
    time = {
        "title": "Time (log scale)" if first else None,
        "scale": alt.Scale(type="log", domain=[low, high], nice=False),
        "axis": alt.Axis(
            values=decades,
            titleX=LEFT[layout],
            labelExpr="datum.value >= 1e6 ? format(datum.value / 1e6, ',~g') + ' s' : "
            "datum.value >= 1e3 ? format(datum.value / 1e3, ',~g') + ' ms' : format(datum.value, ',~g') + ' µs'",
        ),
    }
    return {
        "x": alt.X(
            "piece_bytes:Q",
            title="Size of a piece (log scale)" if lowest else None,
            scale=alt.Scale(type="log", base=2, domain=[least, most], nice=False, padding=10),
            axis=alt.Axis(values=ticks, labelExpr=f"{names} : ''"),
        ),
        "y": alt.Y("us:Q", **time),
        "lower": alt.Y("lower:Q", **time),
    }


def path_marks(run: Run, path: str, style: series.Style, placed: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """Fitted line, and timed points with their intervals, of one path."""
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter((alt.datum.run == run.name) & (alt.datum.path == path))
    fitted, points = base.transform_filter(alt.datum.mark == LINE), base.transform_filter(alt.datum.mark == TIMED)
    return [
        points.mark_area(color=style.colour, opacity=0.18).encode(x=placed["x"], y=placed["lower"], y2="upper:Q"),
        fitted.mark_line(color=style.colour, strokeDash=list(style.dash), strokeWidth=1.5).encode(x=placed["x"], y=placed["y"]),
        points.mark_point(color=style.colour, shape=style.shape, size=44, filled=True, opacity=1).encode(x=placed["x"], y=placed["y"]),
    ]


def level(
    run: Run, points: pl.DataFrame, ledger: Ledger, placed: dict[str, alt.X | alt.Y], layout: theme.Layout
) -> tuple[list[alt.Chart], list[alt.Chart]]:
    """The times to compute a block's tokens again, from edge to edge, and an upright at the size of the block; and their words."""
    again = points.filter((pl.col("run") == run.name) & (pl.col("mark") == MADE)).sort("us")
    if again.is_empty():
        return [], []
    (least, most), (floor, _), block = domain(points, "piece_bytes"), domain(points, "us"), again["piece_bytes"][0]
    low, high = again.row(0, named=True), again.row(-1, named=True)
    span = [{"piece_bytes": least, "end": most, "us": us} for us in sorted({low["us"], high["us"]})]
    upright = [{"piece_bytes": block, "us": floor, "end": low["us"]}]
    first, last, one = ledger[low["key"]], ledger[high["key"]], again.height == 1
    times = first.text if one else f"{first.bare} to {last.text}"
    contexts = f"{low['context_tokens']:,}" if one else f"{low['context_tokens']:,} to {high['context_tokens']:,}"
    text = f"Compute again: {times}" if layout.narrow else f"Compute the block again: {times},\nwith {contexts} tokens cached"
    size = ledger[f"measured.{run.key}.regeneration.{computed(run, ledger)[0][0]}.block_kib"]
    look = {"fontSize": layout.text, "align": "left", "color": COMPUTED, "fontWeight": 600}

    def at(**place: float) -> alt.Chart:
        return alt.Chart(alt.InlineData(values=[place])).encode(x=placed["x"], y=placed["y"])

    lines = [
        alt.Chart(alt.InlineData(values=span)).mark_rule(color=COMPUTED, strokeWidth=2).encode(x=placed["x"], x2="end:Q", y=placed["y"]),
        alt.Chart(alt.InlineData(values=upright))
        .mark_rule(color=COMPUTED, strokeDash=[3, 3])
        .encode(x=placed["x"], y=placed["y"], y2="end:Q"),
    ]
    return lines, [
        *theme.over_grid(at(piece_bytes=least, us=high["us"]), text, first.key, **look, dx=4, dy=-10 - (0 if layout.narrow else 15)),
        *theme.over_grid(at(piece_bytes=block, us=floor), f"block, {size.text}", size.key, **look, dx=5, dy=-9),
    ]


def panel(
    run: Run, points: pl.DataFrame, ledger: Ledger, layout: theme.Layout, *, named: bool, first: bool, lowest: bool
) -> list[alt.Chart]:
    """All of one machine."""
    placed = axes(points, layout, first=first, lowest=lowest)
    marks, ends = [], []
    for path in paths(run, ledger):
        style = STYLES.get(path, OTHER)
        marks += path_marks(run, path, style, placed)
        own = points.filter((pl.col("run") == run.name) & (pl.col("path") == path) & (pl.col("mark") == TIMED))
        times, name = ratio(run, path, ledger), SHORT.get(path, kept_runs.words(path)) if layout.narrow else kept_runs.words(path)
        last = own.row(-1, named=True)
        quote = times or ledger[last["key"]]
        ends.append(
            (
                f"{name}{' ' if layout.narrow else ': '}{f'×{times.bare}' if times else quote.plus_minus}",
                last["us"],
                style.colour,
                quote.key,
            )
        )
    texts, values, colours, keys = zip(*ends, strict=True)
    low, high = (math.log10(end) for end in domain(points, "us"))
    labels = theme.end_labels(texts, [math.log10(value) for value in values], colours, (low, high), SIZES[layout], layout=layout, keys=keys)
    head = [theme.said(run.said, 0, -26 if first else -8, layout.text, series.INK, 600)] if named else []
    lines, words = level(run, points, ledger, placed, layout)
    return [*head, *lines, *marks, *words, *labels]


def in_words(runs: list[Run], ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    told = []
    for run in runs:
        for path in paths(run, ledger):
            times = ratio(run, path, ledger)
            own = "; ".join(f"{kept_runs.size(piece)} {timed(run, path, piece, ledger).plus_minus}" for piece in sizes(run, path, ledger))
            much = f"; computing the block again takes {times.bare} times as long" if times else ""
            told.append(f"{run.words}, {kept_runs.words(path)}: {own}{much}")
        for model, context in computed(run, ledger):
            quote = ledger[f"measured.{run.key}.regeneration.{model}.{context}.ms"]
            told.append(f"{run.words}, computing a block's tokens again with {context:,} tokens cached: {quote.plus_minus}")
    return f"Line chart with logarithmic axes: time to move a piece against its size. {'. '.join(told)}."


def draw(runs_table: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of moving a piece against computing a block again, as measured; a panel a machine.

    Parameters
    ----------
    runs_table : str or Path
        CSV file, columns ``kept_runs.RUNS``.
    ledger : Ledger
        Holds times by path and size, setups and bandwidths, times to compute again, and ratios.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a number is missing.
    """
    runs = [run for run in kept_runs.firsts(runs_table) if ledger.matches(f"measured.{run.key}.movement.<path>.<bytes>.us")]
    if not runs:
        raise kept_runs.none(ledger.source, "measured.<run>.movement")
    points = drawn(runs, ledger)
    panels = [
        panel(run, points, ledger, layout, named=len(runs) > 1, first=index == 0, lowest=index == len(runs) - 1)
        for index, run in enumerate(runs)
    ]
    quotes = [ledger[key] for key in points["key"] if key]
    for run in runs:
        fits = [f"measured.{run.key}.movement.{path}.{field}" for path in paths(run, ledger) for field in ("setup_us", "gbps")]
        quotes += [ledger[key] for key in fits if key in ledger]
        quotes += [found for path in paths(run, ledger) if (found := ratio(run, path, ledger))]
        quotes += [ledger[f"measured.{run.key}.regeneration.{model}.block_kib"] for model, _ in computed(run, ledger)[:1]]
    return theme.Figure(
        name="movement",
        title="Moving a piece of KV, and computing a block again, as measured",
        source=runs[0].said if len(runs) == 1 else f"{len(runs)} machines",
        limits="A shared machine and no CXL memory: what it tests is the ratio and how it is taken, not a tier.",
        caption=(
            "Points: median time to move one piece, pieces one after another; bands: intervals of the median over repetitions. "
            "Lines: time = setup + bytes / bandwidth, least squares of relative deviations. Level: forward compute of the tokens of one "
            "block, by a small model whose KV of them has the size at the upright. ×: that time over the time to move the block, at the "
            "smallest context. "
            "Keys: measured.<run>.movement.<path>.<bytes>.us, .setup_us, .gbps, measured.<run>.regeneration.<model>.<context>.ms, "
            ".over_move.<path>"
        ),
        alt=in_words(runs, ledger),
        quotes=quotes,
        drawn=points,
        layers=panels[0],
        panels=panels[1:],
        gaps=GAPS[layout],
        layout=layout,
        width=SIZES[layout][0],
        height=SIZES[layout][1],
        left=LEFT[layout],
    )
