"""Part 6: the distribution of attention over positions that v6.0 assumes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas

PARTS = ("first", "middle", "last")
POSITIONS = 26
"""Rows and columns of the map."""
FEATURES = (
    ("The empty half", "No position reads what comes after it."),
    ("The diagonal", "Most weight falls on what stands just before. The band moves on with every token: what is recent is old soon."),
    ("The first column", "All later positions look back at the first ones. It never moves: these blocks stay in use to the end."),
    ("The rest", "Small weights are reads too. Exact attention needs these keys in every step; to leave them out is another model."),
)
"""What to see on the map, as :func:`_icon` marks it."""


def attention_map(
    positions: int, recency: float = 2.0, anchor: float = 0.35, reach: float = 0.7, floor: float = 0.006
) -> list[list[float]]:
    """Illustrative attention of each position on those up to it: a formula, neither a measurement nor a sample.

    Parameters
    ----------
    positions : int
        Rows; row m has m + 1 weights.
    recency : float
        Distance over which the recent part falls to 1/e [positions].
    anchor : float
        Weight of the first position against that of the newest.
    reach : float
        Over how many positions the anchor falls to 1/e.
    floor : float
        What each position has besides.

    Returns
    -------
    list of list of float
        w(m, n) ∝ exp(−(m − n) / recency) + anchor · exp(−n / reach) + floor for n <= m; each row sums to 1.
    """
    rows = []
    for row in range(positions):
        weights = [math.exp(-(row - n) / recency) + anchor * math.exp(-n / reach) + floor for n in range(row + 1)]
        rows.append([weight / math.fsum(weights) for weight in weights])
    return rows


def squares(canvas: Canvas, x: float, y: float, cell: float, rows: Sequence[Sequence[float]], *, full: float, fill: str = "blue") -> None:
    """A map as squares whose area is the weight; one of `full` or more fills its cell."""
    d = []
    for m, weights in enumerate(rows):
        for n, weight in enumerate(weights):
            side = (cell - 1) * min(1.0, weight / full) ** 0.5
            left, top = x + (n + 0.5) * cell - side / 2, y + (m + 0.5) * cell - side / 2
            d.append(f"M{left:.1f} {top:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z")
    canvas.path("".join(d), bottom=y + len(rows) * cell, fill=fill, stroke="none")


def density(canvas: Canvas) -> None:
    """Attention a position against uniform attention, by tenths of the context; areas are the shares."""
    facts, narrow = canvas.facts, canvas.narrow
    shares = dict(
        zip(
            PARTS,
            (facts.stated("appendix.s06.first"), facts.published("appendix.s06.middle"), facts.stated("appendix.s06.recent_mass")),
            strict=True,
        )
    )
    over = {part: facts.num(f"analytic.attention.{part}.over_uniform") for part in PARTS}
    left = 0 if narrow else 76
    tenth = (canvas.width - left) / 10
    unit = 20 if narrow else 24
    top = 8
    foot = top + over["last"].value * unit
    spans = {"first": (left, tenth), "middle": (left + tenth, 8 * tenth), "last": (left + 9 * tenth, tenth)}
    for part, (x, wide) in spans.items():
        tall = over[part].value * unit
        canvas.rect(x + 0.5, foot - tall, wide - 1, tall, fill="blue", radius=0)
    uniform = foot - unit
    canvas.line(left, uniform, canvas.width - tenth - 4, uniform, tone="rose", dash="4 3")
    canvas.line(left, foot, canvas.width, foot)
    # What each area is.
    x = canvas.width - tenth - 12
    canvas.text(x, top + 12, [shares["last"], " of the attention"], weight=600, anchor="end")
    canvas.text(x, top + 30, [over["last"], " × uniform"], size=12.5, anchor="end", tone="muted")
    middle = left + 5 * tenth if not narrow else left + 5.2 * tenth
    canvas.text(middle, uniform - 30, [shares["middle"], " on all of this"], weight=600, anchor="middle")
    canvas.text(middle, uniform - 12, [over["middle"], " × uniform"], size=12.5, anchor="middle", tone="muted")
    if narrow:
        canvas.text(0, uniform - 66, "uniform attention", size=12, tone="rose")
        canvas.line(4, uniform - 60, 4, uniform - 3, tone="rose")
        canvas.text(12, uniform - 30, [shares["first"]], weight=600)
        canvas.text(12, uniform - 12, [over["first"], " ×"], size=12.5, tone="muted")
    else:
        canvas.text(left - 8, uniform - 2, "uniform", size=12, tone="rose", anchor="end")
        canvas.text(left - 8, uniform + 12, "attention", size=12, tone="rose", anchor="end")
        canvas.paragraph(
            left,
            uniform - 84,
            240,
            "An anchor zone would stand above the dashed line. This share lies below it.",
            size=12.5,
            tone="muted",
        )
        canvas.text(left, uniform - 30, [shares["first"]], weight=600)
        canvas.text(left, uniform - 12, [over["first"], " × uniform"], size=12.5, tone="muted")
    # Positions.
    for part, words in (("first", "first 1K"), ("middle", "the 8K between"), ("last", "last 1K")):
        x, wide = spans[part]
        canvas.bracket(x + 2, x + wide - 2, foot + 5, depth=5)
        if part == "middle":
            canvas.text(x + wide / 2, foot + 26, words, size=12.5, anchor="middle")
        elif part == "first":
            canvas.text(x, foot + 26, words, size=12.5)
        else:
            canvas.text(x + wide, foot + 26, words, size=12.5, anchor="end")


def heatmap(canvas: Canvas) -> None:
    """Lower-triangular map as squares, its last row drawn as bars below, and what to see in it."""
    narrow, cell = canvas.narrow, 11.5 if canvas.narrow else 12.0
    rows = attention_map(POSITIONS)
    side = POSITIONS * cell
    left, top = (canvas.width - side if narrow else 24), 22
    full = 0.62
    canvas.text(
        left + side if narrow else left, 12, "the positions that are read", size=12, tone="muted", anchor="end" if narrow else "start"
    )
    canvas.text(left - 8, top + side, "the position that reads, in time", size=12, tone="muted", turned=True)
    canvas.path(f"M{left} {top}V{top + side}H{left + side}Z", bottom=top + side, fill="grey", stroke="none")
    squares(canvas, left, top, cell, rows, full=full)
    last = top + side - cell
    canvas.rect(left - 1, last - 0.5, side + 2, cell + 1, stroke="ink", radius=0)
    # The last row as bars.
    high, foot = 56, top + side + 84
    canvas.line(left, foot, left + side, foot)
    peak = max(rows[-1])
    for n, weight in enumerate(rows[-1]):
        tall = max(high * weight / peak, 0.75)
        canvas.rect(left + n * cell + 1.5, foot - tall, cell - 3, tall, fill="blue", radius=0)
    canvas.bracket(left + 1, left + 2 * cell - 1, foot + 5, depth=5)
    canvas.text(left, foot + 25, "anchor", size=12.5)
    canvas.bracket(left + side - 6 * cell + 1, left + side - 1, foot + 5, depth=5)
    canvas.text(left + side, foot + 25, "recent", size=12.5, anchor="end")
    canvas.text(left + side / 2 - 12, foot + 25, "between: small, not zero", size=12.5, anchor="middle", tone="muted")
    over = canvas.facts.num("analytic.attention.first.over_uniform")
    canvas.text(left, foot + 46, ["in Diagram 6.1 the first tenth has ", over, " × uniform"], size=12.5, tone="muted")
    canvas.text(left + side / 2 - 12, foot - 30, "the newest position", size=12.5, weight=600, anchor="middle")
    if narrow:
        canvas.text(left + side, top + 48, "nothing: no position", size=12.5, tone="muted", anchor="end")
        canvas.text(left + side, top + 64, "reads a later one", size=12.5, tone="muted", anchor="end")
        return
    x, icon = left + side + 36, 36
    told = x + icon + 16
    wide = canvas.width - told
    for index, (head, words) in enumerate(FEATURES):
        y = top + 8 + index * 80
        _icon(canvas, x, y, icon, index)
        canvas.text(told, y + 10, head, weight=600)
        canvas.paragraph(told, y + 28, wide, words, size=12.5, tone="muted")
    canvas.text(told, foot - 30, "One row is one step of decoding", weight=600)
    canvas.paragraph(
        told, foot - 12, wide, "Framed: the newest row. The score of a block (part 11) follows one column down.", size=12.5, tone="muted"
    )


def _icon(canvas: Canvas, x: float, y: float, side: float, feature: int) -> None:
    """Where on the map a feature is."""
    right, foot = x + side, y + side
    canvas.path(f"M{x} {y}V{foot}H{right}Z", bottom=foot, fill="grey", stroke="none")
    if feature == 0:
        canvas.path(f"M{x + 4} {y}H{right}V{foot - 4}Z", bottom=foot, stroke="muted", dash="3 2")
    elif feature == 1:
        canvas.path(f"M{x} {y}L{right} {foot}H{right - 10}L{x} {y + 10}Z", bottom=foot, fill="blue", stroke="none")
    elif feature == 2:
        canvas.path(f"M{x} {y}L{x + 6} {y + 6}V{foot}H{x}Z", bottom=foot, fill="blue", stroke="none")
    else:
        canvas.path(f"M{x + 6} {y + 16}L{right - 10} {foot}H{x + 6}Z", bottom=foot, fill="blue-tint", stroke="blue")


DIAGRAMS = (
    Diagram(
        "6.1", "attention_density", "How much attention a position is assumed to get", density,
        alt=(
            'A context of 10K in three parts. The first 1K gets {{ stated("appendix.s06.first") }} of the attention, '
            '{{ num("analytic.attention.first.over_uniform") }} times what uniform attention gives a position; the 8K between get '
            '{{ printed("appendix.s06.middle") }}, {{ num("analytic.attention.middle.over_uniform") }} times; the last 1K gets '
            '{{ stated("appendix.s06.recent_mass") }}, {{ num("analytic.attention.last.over_uniform") }} times.'
        ),
        caption=(
            "Areas are shares of the attention of one step; height is attention a position, over what it would be if all positions "
            "got the same. Flat inside each part, as nothing finer is given."
        ),
        source="v6.0, a context of 10K",
        limits="Illustrative: these shares are assumed. No attention was measured, by v6.0 or here.",
    ),
    Diagram(
        "6.2", "attention_map", "Recency and anchor, as a map", heatmap,
        alt=(
            "A lower-triangular map: each row is a position that reads, each column one that is read, the area of a square its share "
            "of the row. Squares are large along the diagonal and in the first column, small between, absent above the diagonal. "
            'Below, the last row as bars, and for comparison what Diagram 6.1 gives the first tenth: '
            '{{ num("analytic.attention.first.over_uniform") }} times uniform attention.'
        ),
        caption=(
            "Drawn from a formula, an exponential of the distance plus one of the position, each row summing to one. Its constants "
            "are chosen to be seen: this map has the anchor that the text of v6.0 speaks of, and that the shares of Diagram 6.1 lack."
        ),
        source="a formula",
        limits="Illustrative: no attention was measured.",
    ),
)  # fmt: skip
