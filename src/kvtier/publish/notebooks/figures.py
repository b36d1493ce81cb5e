"""Figures of the notebooks, over what a notebook has just replayed; each with controls."""

from __future__ import annotations

import altair as alt
import polars as pl

from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.frames import Table
from kvtier.publish import series, theme
from kvtier.publish.ledger import Quote
from kvtier.publish.notebooks.charts import Shown, quote
from kvtier.publish.palette import LIGHT
from kvtier.publish.render import DATA

OPTIMUM = "optimum"
"""In place of a policy's name."""

INSIDE = Table(
    "blocks inside HBM",
    {
        "policy": pl.String(),
        "turn": pl.Int64(),
        "session": pl.Int64(),
        "resident_blocks": pl.Int64(),
        "context_blocks": pl.Int64(),
        "read": pl.Boolean(),
    },
)
"""One row a policy (by name, the optimum among them), turn and session: what is resident after the turn, and whether the turn read it."""

CURVES = Table(
    "hits by capacity",
    {
        "policy": pl.String(),
        "alpha": pl.Float64(),
        "capacity": pl.Float64(),
        "hits": pl.Int64(),
        "reads": pl.Int64(),
        "optimum_hits": pl.Int64(),
    },
    nullable=frozenset({"alpha"}),
)
"""One row a policy and capacity: blocks that hit, blocks read, and the hits of the optimum. Policies that have an α share their name."""


def _simulated(key: str, value: float, unit: str, definition: str, source: str) -> Quote:
    return quote(Number(key, value, unit, 1, Label.SIMULATED, definition, status=Status.PROVISIONAL), source)


def inside_hbm(rows: pl.DataFrame, *, turn: int, capacity_blocks: int, source: str) -> Shown:
    """What of each session is resident after a turn, under a policy and under the optimum; turn and policy can be moved.

    Parameters
    ----------
    rows : polars.DataFrame
        Columns ``INSIDE``.
    turn : int
        Shown first.
    capacity_blocks : int
        Of HBM.
    source : str
        What was replayed, for the badge.

    Raises
    ------
    InputError
        If the rows do not have these columns.
    """
    rows = INSIDE.check(rows)
    policies = [name for name in rows["policy"].unique(maintain_order=True) if name != OPTIMUM]
    turns, sessions, most = rows["turn"], rows["session"].unique().sort().to_list(), int(rows["context_blocks"].max())
    last = rows.filter(pl.col("turn") == turns.max())
    quotes = [
        _simulated(
            "here.resident", int(last.filter(policy=name)["resident_blocks"].sum()), "blocks", "resident after the last turn", source
        )
        for name in (*policies, OPTIMUM)
    ]
    turn_shown = alt.param(
        name="turn", value=turn, bind=alt.binding_range(min=int(turns.min()), max=int(turns.max()), step=1, name="after turn ")
    )
    policy_shown = alt.param(name="policy_shown", value=policies[0], bind=alt.binding_radio(options=policies, name="policy "))
    drawn = alt.Chart(alt.NamedData(name=DATA)).transform_filter("datum.turn == turn")
    y = alt.Y("session:O", sort=sessions, title=None, axis=alt.Axis(labelExpr="'session ' + datum.value", grid=False))
    scale = alt.Scale(domain=[0, most], nice=False)
    colour = alt.condition("datum.read", alt.value(LIGHT["blue"]), alt.value(LIGHT["muted"]))

    def bars(which: str, title: str) -> list[alt.Chart]:
        at = drawn.transform_filter(which)
        outline = at.mark_bar(height=13, fill=LIGHT["paper"], stroke=LIGHT["muted"], strokeWidth=0.7)
        return [
            outline.encode(x=alt.X("context_blocks:Q", title=title, scale=scale), y=y),
            at.mark_bar(height=13).encode(x=alt.X("resident_blocks:Q", title=title, scale=scale), y=y, color=colour),
        ]

    outline, filled = bars("datum.policy == policy_shown", "Blocks, chosen policy")
    return Shown(
        theme.Figure(
            name="inside_hbm",
            title="What is in HBM after a turn",
            source=source,
            limits="",
            caption=f"Filled: resident; outline: whole context; blue: the session that the turn reads. HBM of {capacity_blocks:,} blocks.",
            alt="Bar charts of resident blocks by session after a chosen turn, for a chosen policy and for the optimum.",
            quotes=quotes,
            drawn=rows,
            layers=[outline.add_params(turn_shown, policy_shown), filled],
            panels=[bars(f"datum.policy == '{OPTIMUM}'", "Blocks, optimum")],
            columns=2,
            gaps=(0, 90),
            width=290,
            height=22 * len(sessions),
            left=-62,
        )
    )


def rates(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with hit rate and regret, and the optimum as a policy of its own."""
    best = rows.unique("capacity", keep="first", maintain_order=True)
    best = best.with_columns(policy=pl.lit(OPTIMUM), alpha=pl.lit(None, dtype=pl.Float64), hits=pl.col("optimum_hits"))
    return pl.concat([rows, best]).with_columns(
        hit_percent=100 * pl.col("hits") / pl.col("reads"), regret=100 * (pl.col("optimum_hits") - pl.col("hits")) / pl.col("reads")
    )


def policies_by_capacity(
    rows: pl.DataFrame, *, capacity: float, unit: str, source: str, caption: str, colours: dict[str, str] | None = None
) -> Shown:
    """Hit rate against capacity, the optimum with it, and regret at one capacity; capacity can be moved, and α where there are several.

    Parameters
    ----------
    rows : polars.DataFrame
        Columns ``CURVES``.
    capacity : float
        Shown first; one of the rows'.
    unit : str
        Of the capacities.
    source : str
        What was replayed, for the badge.
    caption : str
    colours : dict, optional
        By policy, where the published figures have none.

    Raises
    ------
    InputError
        If the rows do not have these columns.
    """
    points = rates(CURVES.check(rows))
    names = [*rows["policy"].unique(maintain_order=True), OPTIMUM]
    styles = {"LRU": "lru", "LFU": "lfu", "EMA": "ema", OPTIMUM: "min"}
    paint = {name: series.STYLES[styles[name]].colour if name in styles else LIGHT["muted"] for name in names} | (colours or {})
    dashes = {name: list(series.STYLES[styles[name]].dash) if name in styles else [1, 0] for name in names}
    capacities, alphas = points["capacity"].unique().sort().to_list(), rows["alpha"].drop_nulls().unique().sort(descending=True).to_list()
    controls = [
        alt.param(
            name="capacity_shown",
            value=capacity,
            bind=alt.binding_select(options=capacities, labels=[f"{one:,g} {unit}" for one in capacities], name="HBM "),
        )
    ]
    if len(alphas) > 1:
        options = alt.binding_select(options=alphas, labels=[f"{one:g}" for one in alphas], name="α of EMA ")
        controls.append(alt.param(name="alpha_shown", value=alphas[len(alphas) // 2], bind=options))
    drawn = alt.Chart(alt.NamedData(name=DATA))
    if len(alphas) > 1:
        drawn = drawn.transform_filter("datum.alpha == null || datum.alpha == alpha_shown")
    at = drawn.transform_filter("datum.capacity == capacity_shown")
    colour = alt.Color("policy:N", scale=alt.Scale(domain=names, range=[paint[name] for name in names]), legend=None)
    dash = alt.StrokeDash("policy:N", scale=alt.Scale(domain=names, range=[dashes[name] for name in names]), legend=None)
    x = alt.X(
        "capacity:Q", title=f"HBM ({unit})", scale=alt.Scale(domain=[0, capacities[-1]], nice=False, padding=6), axis=alt.Axis(tickCount=5)
    )
    rate = alt.Y("hit_percent:Q", title="Block hit rate (% of blocks read)", scale=alt.Scale(domain=[0, 100]))
    painted = [{"test": f"datum.value == '{name}'", "value": paint[name]} for name in names]
    axis = alt.Axis(labelColor={"condition": painted, "value": LIGHT["ink"]}, labelFontWeight=600, grid=False, labelLimit=0)
    last = f"datum.policy == '{OPTIMUM}' && datum.capacity == {capacities[-1]!r}"
    of_optimum = alt.Chart(alt.NamedData(name=DATA)).transform_filter(last)
    worst = float(points["regret"].max()) or 1.0
    bars = at.transform_filter(f"datum.policy != '{OPTIMUM}'").encode(
        x=alt.X("regret:Q", title="Regret (points)", scale=alt.Scale(domain=[0, worst], nice=True)),
        y=alt.Y("policy:N", sort=names[:-1], title=None, axis=axis),
    )
    return Shown(
        theme.Figure(
            name="policies_by_capacity",
            title="Hit rate and regret of policies",
            source=source,
            limits="",
            caption=caption,
            alt=f"Line chart of hit rate by HBM capacity for {', '.join(names)}, and a bar chart of regret at a chosen capacity.",
            quotes=[
                _simulated("here.hit", row["hit_percent"], "%", "hits / blocks read, counted turns", source)
                for row in points.iter_rows(named=True)
            ],
            drawn=points,
            layers=[
                at.transform_filter(f"datum.policy == '{OPTIMUM}'").mark_rule(color=LIGHT["muted"], strokeDash=[2, 2]).encode(x=x),
                drawn.mark_line().encode(x=x, y=rate, color=colour, strokeDash=dash).add_params(*controls),
                at.mark_point(filled=True, size=55, opacity=1).encode(x=x, y=rate, color=colour),
                # The others are named beside their bars.
                *theme.over_grid(of_optimum.encode(x=x, y=rate), OPTIMUM, align="right", dy=-11, fontWeight=600, color=paint[OPTIMUM]),
            ],
            panels=[
                [
                    bars.mark_bar(height=16).encode(color=colour),
                    bars.mark_text(align="left", dx=5).encode(text=alt.Text("regret:Q", format=".1f")),
                ]
            ],
            columns=2,
            gaps=(0, 100),
            width=300,
            height=240,
        )
    )
