"""Block requests per CPU second against context length, this engine beside libCacheSim: log-log, one line a policy and side."""

from __future__ import annotations

import math
from pathlib import Path

import altair as alt
import polars as pl

from kvtier.errors import InputError
from kvtier.files import read_json
from kvtier.publish import series, tables, theme
from kvtier.publish.ledger import Ledger, Quote
from kvtier.publish.render import DATA

PREFIX = "measured.bench.contexts"
OURS, PEER = "kvtier", "libcachesim"
NAMES = {OURS: "kvtier", PEER: "libCacheSim"}
TOLD = "lru"
"""The policy whose ratio is written between the two sides at each context length."""

KI = 2**10

WIDTHS = {theme.WIDE: 486, theme.NARROW: 186}
LEFTS = {theme.WIDE: -60, theme.NARROW: -52}
"""Width of the plot; left edge of axis title and words [px]: rates are long."""


def word(tokens: int) -> str:
    """A context length as keys and axis have it: ``8k``, ``1m``."""
    ki = tokens // KI
    return f"{ki // KI}m" if ki % KI == 0 else f"{ki}k"


def drawn(rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The table, each rate with its key; sides, then policies as told, contexts rising."""
    for key, rate in rows.select("key", "million_requests_per_s").iter_rows():
        ledger.drawn(key, rate)
    ranked = sorted(rows.to_dicts(), key=lambda row: (row["side"] != OURS, series.order(row["policy"]), row["context_tokens"]))
    return pl.DataFrame(ranked, schema=rows.schema)


def domain(points: pl.DataFrame) -> tuple[float, float]:
    """Whole decades around all timings."""
    return 10.0 ** math.floor(math.log10(points["lowest"].min())), 10.0 ** math.ceil(math.log10(points["highest"].max()))


def axes(points: pl.DataFrame, layout: theme.Layout) -> dict[str, alt.X | alt.Y]:
    """Both axes, logarithmic."""
    contexts, (low, high) = points["context_tokens"].unique().sort().to_list(), domain(points)
    decades = [10.0**exponent for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    rate = {
        "title": "Block requests per CPU second (millions, log scale)",
        "scale": alt.Scale(type="log", domain=[low, high], nice=False),
        "axis": alt.Axis(values=decades, format=",~g", labelExpr="format(datum.value, ',')", titleX=LEFTS[layout]),
    }
    names = " : ".join(f"datum.value == {tokens} ? '{word(tokens).upper()}'" for tokens in contexts)
    return {
        "x": alt.X(
            "context_tokens:Q",
            title="Mean initial context (tokens, log scale)",
            scale=alt.Scale(type="log", base=2, domain=[contexts[0], contexts[-1]], nice=False, padding=12),
            axis=alt.Axis(values=contexts, labelExpr=f"{names} : ''"),
        ),
        "y": alt.Y("million_requests_per_s:Q", **rate),
        "lowest": alt.Y("lowest:Q", **rate),
    }


def line(policy: str, side: str, placed: dict[str, alt.X | alt.Y]) -> list[alt.Chart]:
    """Band, line and points of one policy on one side; ours filled and full, the peer's hollow and thin."""
    style, ours = series.style(policy), side == OURS
    base = alt.Chart(alt.NamedData(name=DATA)).transform_filter((alt.datum.policy == policy) & (alt.datum.side == side))
    point = {"filled": True} if ours else series.HOLLOW
    return [
        base.mark_area(color=style.colour, opacity=0.16).encode(x=placed["x"], y=placed["lowest"], y2="highest:Q"),
        base.mark_line(color=style.colour, strokeDash=list(style.dash), strokeWidth=2 if ours else 1.25).encode(
            x=placed["x"], y=placed["y"]
        ),
        base.mark_point(color=style.colour, shape=style.shape, size=44, opacity=1, **point).encode(x=placed["x"], y=placed["y"]),
    ]


def ratios(
    points: pl.DataFrame, ledger: Ledger, placed: dict[str, alt.X | alt.Y], layout: theme.Layout
) -> tuple[list[alt.Chart], list[Quote]]:
    """How many times the peer's rate ours is, written between the two lines of one policy, with a rule that joins them."""
    marks, quotes = [], []
    rows = points.filter(pl.col("policy") == TOLD)
    for rank, tokens in enumerate(rows["context_tokens"].unique().sort()):
        at = rows.filter(pl.col("context_tokens") == tokens)
        rates = dict(at.select("side", "million_requests_per_s").iter_rows())
        quote = ledger[f"{PREFIX}.{word(tokens)}.{TOLD}.ratio"]
        span = [{"context_tokens": tokens, "million_requests_per_s": rates[OURS], "other": rates[PEER]}]
        middle = [{"context_tokens": tokens, "million_requests_per_s": math.sqrt(rates[OURS] * rates[PEER])}]
        joined = alt.Chart(alt.InlineData(values=span)).mark_rule(color=series.FAINT, strokeWidth=1)
        marks.append(joined.encode(x=placed["x"], y=placed["y"], y2="other:Q"))
        spot = alt.Chart(alt.InlineData(values=middle)).encode(x=placed["x"], y=placed["y"])
        # In turn higher and lower where neighbours would touch.
        apart = {"dy": 9 - 18 * (rank % 2), "fontSize": layout.text} if layout.narrow else {}
        marks += theme.over_grid(spot, f"×{quote.bare}", quote.key, color=series.style(TOLD).colour, fontWeight=600, **apart)
        quotes.append(quote)
    return marks, quotes


def ends(last: pl.DataFrame, ledger: Ledger, span: tuple[float, float], layout: theme.Layout) -> list[alt.Chart]:
    """Labels at the ends of the lines; where it is narrow, the simulator's name stands once, inside, above its lines."""
    texts = []
    for side, policy, key in last.select("side", "policy", "key").iter_rows():
        who = series.title(policy) if layout.narrow else f"{NAMES[side]} {series.title(policy)}"
        texts.append(layout.label(who, ledger[key]))
    low, high = (math.log10(end) for end in span)
    places = [math.log10(rate) for rate in last["million_requests_per_s"]]
    colours, size = [series.style(policy).colour for policy in last["policy"]], (WIDTHS[layout], layout.height)
    return theme.end_labels(texts, places, colours, (low, high), size, layout=layout, keys=last["key"].to_list())


def heads(points: pl.DataFrame, span: tuple[float, float], layout: theme.Layout) -> list[alt.Chart]:
    """Names of the simulators, each over the first points of its lines."""
    # The lines rise or fall under a name: it stands over the first two of their points.
    first = points.filter(pl.col("context_tokens").is_in(points["context_tokens"].unique().sort()[:2].to_list()))
    low, high = (math.log10(end) for end in span)
    found = []
    for side, name in NAMES.items():
        best = first.filter(pl.col("side") == side)["million_requests_per_s"].max()
        y = layout.height * (high - math.log10(best)) / (high - low)
        found.append(theme.said(f"{name}, {'filled' if side == OURS else 'hollow'}", 8, y - 12, layout.text, series.INK, 600))
    return found


def in_words(points: pl.DataFrame, ledger: Ledger, told: list[Quote], machine: str) -> str:
    """The figure for a reader who cannot see it."""
    lines = (
        f"{NAMES[side]}, {series.title(policy)}: {', '.join(ledger[key].text for key in rows['key'])}"
        for (side, policy), rows in points.group_by("side", "policy", maintain_order=True)
    )
    contexts = ", ".join(word(tokens).upper() for tokens in points["context_tokens"].unique().sort().to_list())
    return (
        f"Line chart with logarithmic axes, {machine}: block requests per CPU second at mean initial contexts of {contexts} tokens. "
        f"{'. '.join(lines)}. {series.title(TOLD)} of {NAMES[OURS]} over that of {NAMES[PEER]}: {', '.join(quote.bare for quote in told)}."
    )


def draw(table: str | Path, machine: str | Path, ledger: Ledger, layout: theme.Layout = theme.WIDE) -> theme.Figure:
    """Figure of throughput against context length.

    Parameters
    ----------
    table : str or Path
        CSV file, columns ``tables.THROUGHPUT``.
    machine : str or Path
        JSON file that names processor, cores, day and the peer's version.
    ledger : Ledger
        Holds the rates and ratios.
    layout : Layout
        For which room.

    Raises
    ------
    InputError
        If table and ledger differ, or the machine is not named.
    """
    about = read_json(machine)
    for field in ("cpu", "cores", "date", PEER):
        if field not in about:
            raise InputError(machine, field, "no such field", "the field to be present")
    points = drawn(tables.read(table, tables.THROUGHPUT), ledger)
    placed, span = axes(points, layout), domain(points)
    lines = points.select("side", "policy").unique(maintain_order=True).rows()
    last = points.group_by("side", "policy", maintain_order=True).last()
    marks, told = ratios(points, ledger, placed, layout)
    unordered = ledger[f"measured.bench.arbitrary.{TOLD}.ratio"]
    where = f"{about['cpu']}, one of {about['cores']} cores"
    longest = points.filter(pl.col("turns") < points["turns"].max())["context_tokens"].unique().sort().to_list()
    fewer = f"; fewer turns at {' and '.join(word(tokens).upper() for tokens in longest)}" if longest else ""
    return theme.Figure(
        name="throughput_by_context",
        title="Simulator throughput against context length",
        source=f"{where}, {about['date']}",
        limits=(
            f"One shared machine; one workload, whose turns read whole contexts. On single blocks in no order: {unordered.bare} times "
            f"{NAMES[PEER]}'s rate ({series.title(TOLD)})."
        ),
        caption=(
            f"Replay of the same block requests with equal hits in kvtier (filled) and {NAMES[PEER]} {about[PEER]} (hollow; its Belady is "
            "MIN). kvtier's rate is in effect: it handles runs of blocks in equal state as one, so a turn costs runs and not blocks. "
            f"Workload: zipf, one seed; cache in proportion to contexts{fewer}. Lines: medians of timings that alternate in one run; "
            f"bands: slowest to fastest timing. Uprights: {series.title(TOLD)} of kvtier over {series.title(TOLD)} of {NAMES[PEER]}. "
            f"Keys: {PREFIX}.<context>.<policy>.<side>_rate, .ratio"
        ),
        alt=in_words(points, ledger, told, where),
        quotes=[*(ledger[key] for key in points["key"]), *told, unordered],
        drawn=points,
        layers=[
            *marks[::3],
            *(mark for policy_side in reversed(lines) for mark in line(policy_side[1], policy_side[0], placed)),
            *(mark for index, mark in enumerate(marks) if index % 3),
            *ends(last, ledger, span, layout),
            *(heads(points, span, layout) if layout.narrow else []),
        ],
        layout=layout,
        width=WIDTHS[layout],
        left=LEFTS[layout],
    )
