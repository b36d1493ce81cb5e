"""Warm hit rate against HBM budget, Revision 2 beside Revision 3 and its optimum: one panel a policy."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

from kvtier.publish import intervals, series, tables, theme
from kvtier.publish.ledger import Ledger
from kvtier.publish.render import DATA

OLD, NEW = 2, 3
OPTIMUM = "min"
OVER_BUDGET = "over_budget"
DOMAIN = (0.0, 100.0)
"""Whole range of a rate [%]."""

SIZES = {theme.WIDE: (208, 180), theme.NARROW: (196, 150)}
"""Width and height of a panel [px]."""

GAPS = {theme.WIDE: (48, 164), theme.NARROW: (34, 0)}
CELLS = {theme.WIDE: 39, theme.NARROW: 38}
"""Width of a cell in the strip of over-budget shares [px]."""

STRIP = 24
"""Top of that strip, from the bottom of a panel [px]: below the ticks, above the axis title."""

SHARE = "of reads: in turns\nlarger than HBM"

NOTED_GIB = 32.0
"""Budget at which the rates are written out: that of the published findings."""


def rates(runs: pl.DataFrame, ledger: Ledger) -> list[dict]:
    """Mean rates where state is dropped at eviction, each with its key and the ends of what the ledger says of its spread."""
    dropped = runs.filter(~pl.col("persist_meta"))
    slugs = [series.slug(policy, alpha) for policy, alpha in dropped.select("policy", "alpha").iter_rows()]
    dropped = dropped.with_columns(slug=pl.Series(slugs, dtype=pl.String))
    means = dropped.group_by("revision", "slug", "hbm_gib").agg(pl.col("hit_rate").mean())
    rows = []
    for revision, slug, gib, mean in means.iter_rows():
        quote = ledger.drawn(f"sim.rev{revision}.e1.{gib:g}.{slug}.hit", mean)
        ends = {f"{end}_percent": place for end, place in intervals.ends(quote).items()}
        rows.append({"key": quote.key, "revision": revision, "series": slug, "hbm_gib": gib, "percent": quote.value, **ends})
    return sorted(rows, key=lambda row: (row["revision"], series.order(row["series"]), row["hbm_gib"]))


def shares(budgets: list[float], ledger: Ledger) -> list[dict]:
    """Share of the blocks read that belongs to turns larger than HBM."""
    quotes = ((gib, ledger[f"workload.zipf.{OVER_BUDGET}.{gib:g}.reads"]) for gib in budgets)
    nothing = {"revision": None, "lower_percent": None, "upper_percent": None}
    return [{"key": quote.key, "series": OVER_BUDGET, "hbm_gib": gib, "percent": quote.value, **nothing} for gib, quote in quotes]


def drawn(runs: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Rates of both revisions, then the shares of over-budget turns."""
    rows = rates(runs, ledger)
    budgets = sorted({row["hbm_gib"] for row in rows})
    columns = {"key": pl.String(), "revision": pl.Int64(), "series": pl.String(), "hbm_gib": pl.Float64()}
    spread = dict.fromkeys(("percent", "lower_percent", "upper_percent"), pl.Float64())
    return pl.DataFrame([*rows, *shares(budgets, ledger)], schema=columns | spread)


def axes(budgets: list[float], layout: theme.Layout, *, first: bool, lowest: bool) -> dict[str, alt.X | alt.Y]:
    """Axes of a panel; the y title stands once, the x title under the lowest panels."""
    y = {
        "title": "Warm block hit rate (% of blocks read, served by HBM)" if first else None,
        "scale": alt.Scale(domain=list(DOMAIN)),
        "axis": alt.Axis(tickCount=5),
    }
    return {
        "x": alt.X(
            "hbm_gib:Q",
            title="HBM budget (GiB, log scale)" if lowest else None,
            scale=alt.Scale(type="log", base=2, domain=[budgets[0], budgets[-1]], nice=False, padding=12 if layout.narrow else 16),
            axis=alt.Axis(values=budgets, format="d", titlePadding=30 + (16 if layout.narrow else 0)),
        ),
        "y": alt.Y("percent:Q", **y),
        "lower": alt.Y("lower_percent:Q", **y),
    }


def of(revision: int, name: str) -> alt.Chart:
    """The rows of one line."""
    return alt.Chart(alt.NamedData(name=DATA)).transform_filter((alt.datum.series == name) & (alt.datum.revision == revision))


def lines(policy: str, placed: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """Optimum, then Revision 2 dashed and hollow, then Revision 3 full; a band behind each."""
    colour, shape = series.style(policy).colour, series.style(policy).shape
    best = series.STYLES[OPTIMUM]
    marks = []
    for base, line, point in (
        (of(NEW, OPTIMUM), {"color": best.colour, "strokeDash": list(best.dash), "strokeWidth": 1.5}, None),
        (of(OLD, policy), {"color": colour, "strokeDash": [4, 3], "strokeWidth": 1.25}, {"size": 34, **series.HOLLOW}),
        (of(NEW, policy), {"color": colour, "strokeWidth": 2.25}, {"size": 38, "filled": True}),
    ):
        marks.append(base.mark_area(color=line["color"], opacity=0.2).encode(x=placed["x"], y=placed["lower"], y2="upper_percent:Q"))
        marks.append(base.mark_line(**line).encode(x=placed["x"], y=placed["y"]))
        if point:
            marks.append(base.mark_point(color=colour, shape=shape, opacity=1, **point).encode(x=placed["x"], y=placed["y"]))
    return marks


def strip(budgets: list[float], ledger: Ledger, x: alt.X, layout: theme.Layout) -> list[alt.Chart]:
    """Under the ticks: a grey cell a budget, darker with the share of over-budget reads, the share written in it."""
    tall, (width, height) = 17, SIZES[layout]
    middle = alt.YValue(height + STRIP + tall / 2)
    cells = alt.Chart(alt.NamedData(name=DATA)).transform_filter(alt.datum.series == OVER_BUDGET)
    shade = alt.Opacity("percent:Q", scale=alt.Scale(domain=list(DOMAIN), range=[0.08, 0.6]), legend=None)
    marks = [
        cells.mark_tick(orient="vertical", thickness=CELLS[layout], size=tall, color=series.MUTED).encode(x=x, y=middle, opacity=shade)
    ]
    for gib in budgets:
        share = ledger[f"workload.zipf.{OVER_BUDGET}.{gib:g}.reads"]
        spot = alt.Chart(alt.InlineData(values=[{"hbm_gib": gib}])).encode(x=x, y=middle)
        words = theme.words(share.bare if layout.narrow else share.text, share.key)
        marks.append(spot.mark_text(fontSize=layout.small).encode(**words))
    if layout.narrow:
        said = theme.said(f"% {SHARE.replace(chr(10), ' ')}", 0, height + STRIP + tall + 13, layout.small, series.MUTED)
    else:
        said = theme.said(SHARE, width + 16, height + STRIP + 7, layout.small, series.MUTED, lineHeight=13)
    return [*marks, said]


def notes(policy: str, ledger: Ledger, points: pl.DataFrame, placed: dict[str, alt.X | alt.Y], layout: theme.Layout) -> list[alt.Chart]:
    """The two rates at one budget, right below their points."""
    here = points.filter((pl.col("series") == policy) & (pl.col("hbm_gib") == NOTED_GIB)).sort("percent", descending=True)
    pixels = [SIZES[layout][1] * (1 - rate / DOMAIN[1]) for rate in here["percent"]]
    close = bool(pixels) and max(pixels) - min(pixels) < 28
    marks = []
    for rank, (row, pixel) in enumerate(zip(here.iter_rows(named=True), pixels, strict=True)):
        at = max(pixels) + 9 + 14 * rank if close else pixel + 11
        quote, new = ledger[row["key"]], row["revision"] == NEW
        text = quote.plus_minus if new and not layout.narrow else quote.text
        spot = alt.Chart(alt.InlineData(values=[{"hbm_gib": NOTED_GIB}])).encode(x=placed["x"], y=alt.YValue(at))
        look = {"fontSize": layout.small, "align": "left", "dx": 11, "color": series.style(policy).colour}
        marks += theme.over_grid(spot, text, quote.key, **look, fontWeight=600 if new else 400)
    return marks


def panel(policy: str, ledger: Ledger, points: pl.DataFrame, layout: theme.Layout, *, first: bool, lowest: bool) -> list[alt.Chart]:
    """Lines of one policy with their words."""
    budgets = points["hbm_gib"].unique().sort().to_list()
    placed, colour = axes(budgets, layout, first=first, lowest=lowest), series.style(policy).colour
    ends, names = [], {(NEW, OPTIMUM): "Optimum", (NEW, policy): f"Revision {NEW}", (OLD, policy): f"Revision {OLD}"}
    for (revision, name), words in names.items():
        last = points.filter((pl.col("revision") == revision) & (pl.col("series") == name)).sort("hbm_gib").row(-1, named=True)
        quote = ledger[last["key"]]
        ends.append((layout.label(words, quote), last["percent"], series.style(name).colour, quote.key))
    texts, values, colours, keys = zip(*ends, strict=True)
    return [
        *lines(policy, placed),
        *notes(policy, ledger, points, placed, layout),
        theme.said(series.title(policy), 10, 14, layout.text + 2, colour, 600),
        *theme.end_labels(texts, values, colours, DOMAIN, SIZES[layout], layout=layout, keys=keys),
        *(strip(budgets, ledger, placed["x"], layout) if lowest else []),
    ]


def seeds_said(runs: pl.DataFrame, ledger: Ledger, key: str) -> str:
    """What the bands of Revisions 2 and 3 are over."""
    seeds = {revision: rows["seed"].unique().sort().to_list() for (revision,), rows in runs.group_by("revision")}
    old = f"range of seeds {' and '.join(map(str, seeds[OLD]))}" if len(seeds[OLD]) > 1 else f"none, seed {seeds[OLD][0]} alone"
    level = ledger[key].uncertainty.get("interval_level")
    new = f"{100 * level:g} % interval of the mean over {len(seeds[NEW])} seeds" if level else f"none, {len(seeds[NEW])} seed"
    return f"Bands: Revision {NEW}, {new}; Revision {OLD}, {old}."


def in_words(policies: list[str], points: pl.DataFrame, ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    sizes = ", ".join(f"{gib:g}" for gib in points["hbm_gib"].unique().sort())
    told = []
    for revision, name in [(NEW, OPTIMUM), *((revision, policy) for policy in policies for revision in (OLD, NEW))]:
        keys = points.filter((pl.col("revision") == revision) & (pl.col("series") == name))["key"]
        who = "Optimum" if name == OPTIMUM else f"{series.title(name)}, Revision {revision}"
        told.append(f"{who}: {'; '.join(ledger[key].plus_minus if revision == NEW else ledger[key].text for key in keys)}")
    over = "; ".join(ledger[key].text for key in points.filter(pl.col("series") == OVER_BUDGET)["key"])
    return (
        f"{len(policies)} line charts, one a policy: warm block hit rate at HBM budgets of {sizes} GiB, Revision {OLD}, "
        f"and Revision {NEW} and its optimum with their intervals. {'. '.join(told)}. Reads in turns larger than HBM: {over}."
    )


def caption(runs: pl.DataFrame, bands: str, source: str) -> str:
    """What is counted, what bands and grey are, what is left out and why."""
    first, turns = tables.only(runs, "counted_from", source), tables.only(runs, "turns", source)
    workload, cxl = tables.only(runs, "workload", source), tables.only(runs, "cxl_gib", source)
    return (
        f"Lines: means; Revision {OLD} hollow and dashed, Revision {NEW} filled. {bands} "
        f"Counted: turns {first:,} to {first + turns - 1:,} of the {workload} workload; state dropped at eviction; CXL tier {cxl:g} GiB. "
        f"Revision {NEW} keeps what a turn reads until it is served; the optimum knows all turns and does the same. "
        f"It bounds Revision {NEW} alone: Revision {OLD} may evict what it is reading, and may lie above. "
        f"Grey: blocks read by turns that read and generate more than HBM holds, mean of the seeds of Revision {OLD}; "
        "the excess is a miss under every policy. "
        "Revision 1, withdrawn, is left out: it counts all turns, of contexts that do not grow, "
        "so neither its rates nor this optimum can be compared (data/ERRATUM.md). "
        f"Keys: sim.rev<n>.e1.<GiB>.<policy>.hit, workload.zipf.{OVER_BUDGET}.<GiB>.reads"
    )


def draw(old: str | Path, new: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of the budget sweep (e1) in Revisions 2 and 3.

    Parameters
    ----------
    old, new : str or Path
        Parquet files of runs, columns ``tables.HIT_RATES_BY_STATE``: Revision 2, and Revision 3 with its optimum.
    ledger : Ledger
        Holds the means with their intervals, and the shares of over-budget reads.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a table does not give the means that the ledger has, or the two count different turns.
    """
    runs = pl.concat(tables.read(table, tables.HIT_RATES_BY_STATE) for table in (old, new))
    points = drawn(runs, ledger)
    policies = points.filter(pl.col("revision") == OLD)["series"].unique(maintain_order=True).to_list()
    both = f"{old}, {new}"
    columns, count = 1 if layout.narrow else 2, len(policies)
    panels = [
        panel(policy, ledger, points, layout, first=index == 0, lowest=index >= count - columns) for index, policy in enumerate(policies)
    ]
    bands = seeds_said(runs, ledger, points.filter(pl.col("revision") == NEW)["key"][0])
    return theme.Figure(
        name="revisions_by_budget",
        title="Hit rate against HBM budget before and after lossless residency",
        source=f"Revision {OLD} and Revision {NEW}",
        limits="",
        caption=caption(runs, bands, both),
        alt=in_words(policies, points, ledger),
        quotes=[ledger[key] for key in points["key"]],
        drawn=points,
        layers=panels[0],
        panels=panels[1:],
        columns=columns,
        gaps=GAPS[layout],
        layout=layout,
        width=SIZES[layout][0],
        height=SIZES[layout][1],
        foot=88,
    )
