"""Hit rate against HBM budget: one line a policy, a band from the lowest to the highest seed."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

from kvtier.publish import series, tables, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

DOMAIN = (0.0, 100.0)
"""Whole range of a rate [%]."""


def key(row: dict) -> str:
    """Name of a mean in the ledger."""
    return f"sim.rev{row['revision']}.e1.{row['hbm_gib']:g}.{row['slug']}.hit"


def drawn(runs: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Mean, lowest and highest seed of each budget and policy, each mean with its key; policies as published, budgets rising."""
    slugs = [series.slug(policy, alpha) for policy, alpha in runs.select("policy", "alpha").iter_rows()]
    points = (
        runs.with_columns(pl.Series("slug", slugs))
        .group_by("revision", "slug", "hbm_gib", maintain_order=True)
        .agg(mean=pl.col("hit_rate").mean(), lowest=pl.col("hit_rate").min(), highest=pl.col("hit_rate").max())
        .to_dicts()
    )
    return pl.DataFrame(
        [
            {
                "key": key(point),
                "policy": point["slug"],
                "hbm_gib": point["hbm_gib"],
                "hit_rate_percent": ledger.drawn(key(point), point["mean"]).value,
                "lowest_seed_percent": point["lowest"],
                "highest_seed_percent": point["highest"],
            }
            for point in sorted(points, key=lambda point: (series.order(point["slug"]), point["hbm_gib"]))
        ]
    )


def line(policy: str, budgets: list[float]) -> list[alt.Chart]:
    """Band, line and points of one policy."""
    style = series.style(policy)
    x = alt.X(
        "hbm_gib:Q",
        title="HBM budget (GiB, log scale)",
        scale=alt.Scale(type="log", base=2, domain=[budgets[0], budgets[-1]], nice=False, padding=10),
        axis=alt.Axis(values=budgets, format="d"),
    )
    title, scale = "Block hit rate (% of blocks read, served by HBM)", alt.Scale(domain=list(DOMAIN))
    rate, lowest = (alt.Y(f"{column}:Q", title=title, scale=scale) for column in ("hit_rate_percent", "lowest_seed_percent"))
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter(alt.datum.policy == policy)
    return [
        base.mark_area(color=style.colour, opacity=0.18).encode(x=x, y=lowest, y2="highest_seed_percent:Q"),
        base.mark_line(color=style.colour, strokeDash=list(style.dash)).encode(x=x, y=rate),
        base.mark_point(color=style.colour, shape=style.shape, size=42, filled=True, opacity=1).encode(x=x, y=rate),
    ]


def seeds_said(runs: pl.DataFrame) -> str:
    """What a value is over: one seed, or a mean with its band."""
    seeds = runs["seed"].unique().sort().to_list()
    if len(seeds) == 1:
        return f"Seed {seeds[0]} alone: no interval."
    return f"Lines: mean of seeds {' and '.join(map(str, seeds))}; bands: lowest to highest seed."


def in_words(policies: list[str], quotes: dict[tuple[str, float], Quote], budgets: list[float], source: str) -> str:
    """The figure for a reader who cannot see it."""
    rows = (f"{series.title(policy)}: {', '.join(quotes[policy, gib].text for gib in budgets)}" for policy in policies)
    sizes = ", ".join(f"{gib:g}" for gib in budgets)
    return f"Line chart, {source}: block hit rate of {len(policies)} eviction policies at HBM budgets of {sizes} GiB. {'. '.join(rows)}."


def draw(table: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of a budget sweep (e1).

    Parameters
    ----------
    table : str or Path
        Parquet file of runs, columns ``tables.HIT_RATES``.
    ledger : Ledger
        Holds the means.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If the table does not give the means that the ledger has.
    """
    runs = tables.read(table, tables.HIT_RATES)
    points = drawn(runs, ledger)
    budgets = points["hbm_gib"].unique().sort().to_list()
    policies = points["policy"].unique(maintain_order=True).to_list()
    quotes = {(policy, gib): ledger[name] for name, policy, gib in points.select("key", "policy", "hbm_gib").iter_rows()}
    last = [quotes[policy, budgets[-1]] for policy in policies]
    first, turns = tables.only(runs, "counted_from", table), tables.only(runs, "turns", table)
    source = f"Revision {tables.only(runs, 'revision', table)}"
    return theme.Figure(
        name="hit_rate_by_budget",
        title="Hit rate against HBM budget",
        source=source,
        limits="",
        caption=(
            f"{seeds_said(runs)} Counted: turns {first:,} to {first + turns - 1:,} of the {tables.only(runs, 'workload', table)} workload; "
            f"CXL tier {tables.only(runs, 'cxl_gib', table):g} GiB, LRU. "
            "An audit holds each run under an optimal bound; the optimum of Revision 3 is drawn in revisions_by_budget. "
            "Keys: sim.rev2.e1.<GiB>.<policy>.hit"
        ),
        alt=in_words(policies, quotes, budgets, source),
        quotes=list(quotes.values()),
        drawn=points,
        layers=[
            *(mark for policy in policies for mark in line(policy, budgets)),
            *theme.end_labels(
                [layout.label(series.title(policy), quote) for policy, quote in zip(policies, last, strict=True)],
                [quote.value for quote in last],
                [series.style(policy).colour for policy in policies],
                DOMAIN,
                layout=layout,
                keys=[quote.key for quote in last],
            ),
        ],
        layout=layout,
    )
