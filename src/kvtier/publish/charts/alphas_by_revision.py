"""Warm hit rate against EMA alpha at one budget, Revision 2 beside Revision 3, each with LRU, LFU and the optimum of Revision 3."""

from __future__ import annotations

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.publish import dots, intervals, series, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

OLD, NEW = 2, 3
GIB = 32
PREFIXES = {OLD: "sim.rev2.e2", NEW: f"sim.rev3.e2.{GIB}.reset"}
OPTIMUM = "min"
REFERENCES = ("lru", "lfu")
ROOM = 20
"""Over the highest rate, for the words on the best alpha [%]."""

SIZES = {theme.WIDE: (208, 230), theme.NARROW: (194, 210)}
GAPS = {theme.WIDE: (0, 164), theme.NARROW: (60, 0)}


def drawn(ledger: Ledger) -> pl.DataFrame:
    """Rates of both revisions with their keys: alpha falling, then LRU, LFU and, in Revision 3, the optimum."""
    rows = []
    for revision, prefix in PREFIXES.items():
        found = {match["policy"] for match in ledger.matches(f"{prefix}.<policy>.hit")}
        for policy in sorted(found, key=series.order):
            quote, alpha = ledger[f"{prefix}.{policy}.hit"], series.alpha_of(policy)
            told = {"key": quote.key, "revision": revision, "policy": policy, "alpha": float(alpha) if alpha else None}
            rows.append({**told, "percent": quote.value, **intervals.ends(quote)})
    columns = {"key": pl.String(), "revision": pl.Int64(), "policy": pl.String(), "alpha": pl.Float64(), "percent": pl.Float64()}
    return pl.DataFrame(rows, schema=columns | intervals.COLUMNS)


def domain(points: pl.DataFrame) -> tuple[float, float]:
    """From zero to the whole ten over all that is drawn, and the room for words above it [%]."""
    return 0.0, dots.domain(points, "percent")[1] + ROOM


def axes(points: pl.DataFrame, *, first: bool) -> dict[str, alt.X | alt.Y]:
    """Axes of a panel; the y title stands once."""
    alphas = points["alpha"].drop_nulls().unique().sort().to_list()
    y = {
        "title": "Warm block hit rate (% of blocks read, served by HBM)" if first else None,
        "scale": alt.Scale(domain=list(domain(points)), nice=False),
        "axis": alt.Axis(values=[tick for tick in range(0, 101, 20) if tick <= domain(points)[1]]),
    }
    return {
        "x": alt.X(
            "alpha:Q",
            title="EMA weight α of the newest touch (log scale)",
            scale=alt.Scale(type="log", domain=[alphas[0], alphas[-1]], nice=False, padding=12),
            axis=alt.Axis(values=alphas, format="~g", labelOverlap="greedy", labelSeparation=5),
        ),
        "y": alt.Y("percent:Q", **y),
        "lower": alt.Y("lower:Q", **y),
    }


def reference(policy: str, revision: int, placed: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """A rate that has no alpha, as a line across over its interval."""
    style = series.style(policy)
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter((alt.datum.policy == policy) & (alt.datum.revision == revision))
    return [
        base.mark_rect(color=style.colour, opacity=0.12).encode(y=placed["lower"], y2="upper:Q"),
        base.mark_rule(color=style.colour, strokeDash=list(style.dash), strokeWidth=1.5).encode(y=placed["y"]),
    ]


def curve(revision: int, placed: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """Band, line and points over alpha; Revision 2 dashed and hollow."""
    style, new = series.STYLES["ema"], revision == NEW
    rows = (alt.datum.revision == revision) & (alt.datum.alpha > 0)
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter(rows)
    point = {"filled": True} if new else series.HOLLOW
    return [
        base.mark_area(color=style.colour, opacity=0.2).encode(x=placed["x"], y=placed["lower"], y2="upper:Q"),
        base.mark_line(color=style.colour, strokeWidth=2, strokeDash=[1, 0] if new else [4, 3]).encode(x=placed["x"], y=placed["y"]),
        base.mark_point(color=style.colour, shape=style.shape, size=42, opacity=1, **point).encode(x=placed["x"], y=placed["y"]),
    ]


def best(ledger: Ledger, points: pl.DataFrame, revision: int) -> tuple[dict, list[Quote], list[str]]:
    """The point of the best alpha, its numbers, and lines of words on it.

    Raises
    ------
    InputError
        If the ledger's best alpha was not swept.
    """
    alpha, margin = (ledger[f"{PREFIXES[revision]}.{name}"] for name in ("best_alpha", "best_margin"))
    rows = points.filter((pl.col("revision") == revision) & (pl.col("alpha") == alpha.value)).to_dicts()
    if not rows:
        raise InputError(ledger.source, alpha.key, alpha.value, "an alpha that was swept")
    hit = ledger[rows[0]["key"]]
    words = [f"best α {series.alpha_of(rows[0]['policy'])}: {hit.text}", f"{intervals.signed_with_interval(margin)} points", "over LRU"]
    return rows[0], [alpha, margin], words


def panel(revision: int, ledger: Ledger, points: pl.DataFrame, layout: theme.Layout, *, first: bool) -> list[alt.Chart]:
    """One revision: optimum, references, curve, and words on the best alpha."""
    placed, size = axes(points, first=first), SIZES[layout]
    here = points.filter(pl.col("revision") == revision)
    row, (_, margin), words = best(ledger, points, revision)
    place = {name: row[name] for name in ("alpha", "percent")}
    spot = alt.Chart(alt.InlineData(values=[place])).encode(x=placed["x"])
    labels = [("Optimum", points.filter(pl.col("policy") == OPTIMUM).row(0, named=True))]
    labels += [(series.title(policy), here.filter(pl.col("policy") == policy).row(0, named=True)) for policy in REFERENCES]
    last = here.filter(pl.col("alpha").is_not_null()).sort("alpha").row(-1, named=True)
    labels.append((series.title(last["policy"]), last))
    quotes = [ledger[at["key"]] for _, at in labels]
    said = theme.over_grid(
        spot.encode(y=alt.YValue(8)), "\n".join(words), margin.key, fontSize=layout.small, color=series.INK, fontWeight=600
    )
    return [
        *reference(OPTIMUM, NEW, placed),
        *(mark for policy in REFERENCES for mark in reference(policy, revision, placed)),
        *curve(revision, placed),
        spot.mark_point(size=200, color=series.INK, strokeWidth=1.5, filled=False, opacity=1).encode(y=placed["y"]),
        *said,
        theme.said(f"Revision {revision}", 4, size[1] - 8, layout.text + 2, series.STYLES["ema"].colour, 600),
        *theme.end_labels(
            [layout.label(words, quote) for (words, _), quote in zip(labels, quotes, strict=True)],
            [quote.value for quote in quotes],
            [series.style(at["policy"]).colour for _, at in labels],
            domain(points),
            size,
            layout=layout,
            keys=[quote.key for quote in quotes],
        ),
    ]


def in_words(points: pl.DataFrame, ledger: Ledger) -> str:
    """The figure for a reader who cannot see it."""
    told = []
    for (revision,), rows in points.group_by("revision", maintain_order=True):
        rates = "; ".join(
            f"{'optimum' if policy == OPTIMUM else series.title(policy)} {intervals.with_interval(ledger[key])}"
            for key, policy in rows.select("key", "policy").iter_rows()
        )
        told.append(f"Revision {revision}: {rates}; {', '.join(best(ledger, points, revision)[2])}")
    return f"Two line charts: warm block hit rate in % against EMA alpha at {GIB} GiB of HBM. {'. '.join(told)}."


def draw(ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of the alpha sweep (e2) in Revisions 2 and 3.

    Parameters
    ----------
    ledger : Ledger
        Holds the rates of both revisions, with intervals and the optimum for Revision 3, and the best alpha of each.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If a rate is missing, or a best alpha was not swept.
    """
    points = drawn(ledger)
    quotes = [ledger[key] for key in points["key"]]
    panels = [panel(revision, ledger, points, layout, first=revision == OLD) for revision in (OLD, NEW)]
    more = [quote for revision in (OLD, NEW) for quote in best(ledger, points, revision)[1]]
    few, many = ledger["sim.rev2.e2.seeds"], ledger["sim.rev3.e1.seeds"]
    bands = intervals.said("bands are", quotes, many.text)
    alone = ", one seed, no interval" if few.value == 1 else f", {few.text}"
    return theme.Figure(
        name="alphas_by_revision",
        title=f"Hit rate against EMA α, HBM {GIB} GiB, Revision {OLD} and Revision {NEW}",
        source=f"Revision {OLD} and Revision {NEW}",
        limits="",
        caption=(
            f"Dashed and hollow: Revision {OLD}{alone}; its highest rate was called an interior optimum. Full and filled: Revision {NEW}; "
            f"{bands}. Ring: the best of the α swept, chosen on the runs that it is measured on. "
            f"Dash-dotted, in both: the optimum of Revision {NEW}, which knows all turns and keeps what a turn reads. It bounds "
            f"Revision {NEW} alone: Revision {OLD} may evict what it is reading, and may lie above. "
            "Zipf workload, warm turns, state dropped at eviction. "
            f"Keys: {PREFIXES[OLD]}.<policy>.hit, sim.rev3.e2.<GiB>.reset.<policy>.hit"
        ),
        alt=in_words(points, ledger),
        quotes=[*quotes, *more],
        drawn=points,
        layers=panels[0],
        panels=panels[1:],
        columns=1 if layout.narrow else 2,
        gaps=GAPS[layout],
        layout=layout,
        width=SIZES[layout][0],
        height=SIZES[layout][1],
    )
