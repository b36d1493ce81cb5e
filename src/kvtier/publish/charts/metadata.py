"""Time of one operation on a block's metadata against the size of the table, by operation and policy."""

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

OPERATIONS = {"lookup": "Lookup", "touch": "Touch", "evict": "Evict", "readmit": "Re-admit"}
"""In the order of the panels."""

STYLES = {
    "lru": series.STYLES["lru"],
    "lfu": series.STYLES["lfu"],
    "ema": series.STYLES["ema"],
    "python": series.Style(LIGHT["muted"], (4, 3), "triangle-up"),
}
TITLES = {"python": "Python"}
"""``python`` is no policy: the same records by a Python call for each block."""

SIZES = {theme.WIDE: (236, 190), theme.NARROW: (186, 150)}
GAPS = {theme.WIDE: (44, 130), theme.NARROW: (44, 0)}
LEFT = -44
HEAD = ": time of one operation (log scale; ends in ns)"
"""After the name of the first panel: what the axis of all is."""

KEY = "measured.{}.block_state.{}.{}.{}.ns"


def title(policy: str) -> str:
    """Policy as a reader meets it."""
    return TITLES.get(policy, policy.upper())


def policies(run: Run, ledger: Ledger) -> list[str]:
    """Policies of a run, as told; one without a style of its own last."""
    found = {match["policy"] for match in ledger.matches(KEY.format(run.key, "<operation>", "<policy>", "<blocks>"))}
    if not found:
        raise kept_runs.none(ledger.source, f"measured.{run.key}.block_state")
    return sorted(found, key=lambda policy: ([*STYLES, policy].index(policy), policy))


def drawn(run: Run, ledger: Ledger) -> pl.DataFrame:
    """One row a median: operations, then policies as told, sizes rising."""
    rows = []
    for operation in OPERATIONS:
        for policy in policies(run, ledger):
            found = {int(match["blocks"]) for match in ledger.matches(KEY.format(run.key, operation, policy, "<blocks>"))}
            for blocks in sorted(found):
                quote = ledger[KEY.format(run.key, operation, policy, blocks)]
                about = {"key": quote.key, "operation": operation, "policy": policy, "blocks": blocks}
                rows.append({**about, "ns": quote.value, **intervals.ends(quote)})
    columns = {"key": pl.String(), "operation": pl.String(), "policy": pl.String(), "blocks": pl.Int64(), "ns": pl.Float64()}
    return pl.DataFrame(rows, schema=columns | intervals.COLUMNS)


def domain(points: pl.DataFrame) -> tuple[float, float]:
    """Whole decades around all medians and intervals."""
    low, high = (
        min(points["ns"].min(), points["lower"].min() or math.inf),
        max(points["ns"].max(), points["upper"].max() or 0),
    )
    return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))


def axes(points: pl.DataFrame, *, lowest: bool) -> dict[str, alt.X | alt.Y]:
    """Both axes, logarithmic; the title of the sizes stands under the lowest panels."""
    low, high = domain(points)
    decades = [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    least, most = points["blocks"].min(), points["blocks"].max()
    time = {
        "title": None,
        "scale": alt.Scale(type="log", domain=[low, high], nice=False),
        "axis": alt.Axis(
            values=decades,
            labelExpr="datum.value >= 1e3 ? format(datum.value / 1e3, ',~g') + ' µs' : format(datum.value, ',~g') + ' ns'",
        ),
    }
    powers = range(math.ceil(math.log10(least)), math.floor(math.log10(most)) + 1)
    label = "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' M' : format(datum.value, ',~g')"
    return {
        "x": alt.X(
            "blocks:Q",
            title="Blocks in the table (log scale)" if lowest else None,
            scale=alt.Scale(type="log", domain=[least, most], nice=False, padding=8),
            axis=alt.Axis(values=[10.0**power for power in powers], labelExpr=label),
        ),
        "y": alt.Y("ns:Q", **time),
        "lower": alt.Y("lower:Q", **time),
    }


def line(operation: str, policy: str, placed: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """Band, line and points of one policy."""
    style = STYLES.get(policy, STYLES["python"])
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter((alt.datum.operation == operation) & (alt.datum.policy == policy))
    return [
        base.mark_area(color=style.colour, opacity=0.18).encode(x=placed["x"], y=placed["lower"], y2="upper:Q"),
        base.mark_line(color=style.colour, strokeDash=list(style.dash), strokeWidth=1.75).encode(x=placed["x"], y=placed["y"]),
        base.mark_point(color=style.colour, shape=style.shape, size=36, filled=True, opacity=1).encode(x=placed["x"], y=placed["y"]),
    ]


def panel(operation: str, points: pl.DataFrame, ledger: Ledger, layout: theme.Layout, *, first: bool, lowest: bool) -> list[alt.Chart]:
    """All policies of one operation, with the time at the largest table at the ends."""
    placed = axes(points, lowest=lowest)
    own = points.filter(pl.col("operation") == operation)
    told = own["policy"].unique(maintain_order=True).to_list()
    last = [own.filter(pl.col("policy") == policy).row(-1, named=True) for policy in told]
    low, high = (math.log10(end) for end in domain(points))
    labels = theme.end_labels(
        [f"{title(row['policy'])}: {ledger[row['key']].bare}" for row in last],
        [math.log10(row["ns"]) for row in last],
        [STYLES.get(row["policy"], STYLES["python"]).colour for row in last],
        (low, high),
        SIZES[layout],
        layout=layout,
        keys=[row["key"] for row in last],
    )
    return [
        *(mark for policy in reversed(told) for mark in line(operation, policy, placed)),
        theme.said(f"{OPERATIONS[operation]}{HEAD if first else ''}", LEFT if first else 0, -12, layout.text + 1, series.INK, 600),
        *labels,
    ]


def in_words(points: pl.DataFrame, run: Run, ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    told = []
    for (operation, policy), rows in points.group_by("operation", "policy", maintain_order=True):
        times = "; ".join(f"{blocks:,} blocks {ledger[key].plus_minus}" for blocks, key in rows.select("blocks", "key").iter_rows())
        told.append(f"{OPERATIONS[operation]}, {title(policy)}: {times}")
    return (
        f"{len(OPERATIONS)} line charts with logarithmic axes, {run.said}: time of one operation against blocks in the table. "
        f"{'. '.join(told)}."
    )


def draw(runs_table: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of what a block's metadata costs, of the first kept run.

    Parameters
    ----------
    runs_table : str or Path
        CSV file, columns ``kept_runs.RUNS``.
    ledger : Ledger
        Holds times by operation, policy and size.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a number is missing.
    """
    run = kept_runs.first(runs_table)
    points, columns = drawn(run, ledger), 1 if layout.narrow else 2
    operations = points["operation"].unique(maintain_order=True).to_list()
    panels = [
        panel(operation, points, ledger, layout, first=index == 0, lowest=index >= len(operations) - columns)
        for index, operation in enumerate(operations)
    ]
    return theme.Figure(
        name="metadata",
        title="What a block's metadata costs by operation, policy and size of the table",
        source=run.said,
        limits="One shared machine, one thread, random blocks; the kernels of this project, no serving system.",
        caption=(
            "Points: median time of one operation on a block's record and its index, many in a compiled loop, payloads at rest; "
            f"{title('python')}: the store without order, a call a block. Bands: intervals of the median over repetitions. "
            "Keys: measured.<run>.block_state.<operation>.<policy>.<blocks>.ns"
        ),
        alt=in_words(points, run, ledger),
        quotes=[ledger[key] for key in points["key"]],
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
