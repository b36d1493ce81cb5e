"""Part 4: what prefill and decode compute for each byte that they move, and what one decode step reads."""

from __future__ import annotations

import math

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words, measure, plain
from kvtier.publish.facts import Fact

SIDE = 16
"""Tokens along a side of the drawn attention pattern; each stands for many."""

DECADES = 4
"""Length of the ruler, from one operation for each byte on, in powers of ten."""


def pattern(canvas: Canvas, x: float, y: float, *, whole: bool) -> None:
    """Which queries meet which keys: all rows of the causal triangle, or its last row alone."""
    unit = 8
    for row in range(SIDE):
        for column in range(row + 1):
            now = whole or row == SIDE - 1
            if now:
                canvas.rect(x + column * unit, y + row * unit, unit - 1, unit - 1, fill="ochre" if column == row else "blue", radius=0.5)
    # Where decode has been before.
    if not whole:
        steps = "".join(f"H{x + (row + 1) * unit}V{y + (row + 1) * unit}" for row in range(SIDE - 1))
        canvas.path(f"M{x} {y}{steps}H{x}Z", bottom=y + SIDE * unit, stroke="faint", dash="2 2")


def panel(canvas: Canvas, x: float, y: float, wide: float, phase: str, scale: float) -> float:
    """One phase: pattern, bytes moved, compute; returns its lower edge."""
    facts, whole = canvas.facts, phase == "prefill"
    name = f"analytic.phase.{phase}.8k"
    weights, kv, moved = (
        facts.num("analytic.weights.llama3_70b.gb"),
        facts.num("analytic.kv.llama3_70b.8k.gb"),
        facts.num(f"{name}.moved_gb"),
    )
    flop = facts.num(f"{name}.tflop")
    title, what = ("Prefill", "a prompt of 8K, all tokens at once") if whole else ("Decode", "the one token behind it")
    canvas.text(x, y, title, weight=600, size=15)
    canvas.text(x + measure(title, 15, 600) + 10, y, what, tone="muted")
    pattern(canvas, x, y + 18, whole=whole)
    words = "Every query meets all keys up to its own." if whole else "One query meets all keys: the last row of the same triangle."
    canvas.paragraph(x + SIDE * 8 + 16, y + 30, wide - SIDE * 8 - 16, words, size=12.5)
    canvas.text(x + SIDE * 8 + 16, y + 18 + SIDE * 8 - 22, "row: a query, column: a key", size=12, tone="muted")
    canvas.text(x + SIDE * 8 + 16, y + 18 + SIDE * 8 - 6, "ochre: the query's own key", size=12, tone="muted")
    y += SIDE * 8 + 50
    canvas.text(x, y, ["Bytes moved: ", moved], weight=600)
    long = wide * weights.value / moved.value
    canvas.rect(x, y + 10, long - 1, 18, fill="grey", stroke="muted", radius=0)
    canvas.rect(x + long, y + 10, wide - long, 18, fill="blue", radius=0)
    canvas.text(x, y + 45, ["weights ", weights], size=12, tone="muted")
    canvas.text(x + wide, y + 45, ["KV written ", kv] if whole else ["KV read ", kv], size=12, tone="muted", anchor="end")
    y += 78
    canvas.text(x, y, ["Computed: ", flop], weight=600)
    canvas.rect(x, y + 10, max(flop.value * scale, 1.5), 18, fill="ochre", radius=0)
    return y + 28


def ruler(canvas: Canvas, y: float) -> None:
    """Operations for each byte, on a logarithmic scale, with the balance of the device."""
    facts, narrow = canvas.facts, canvas.narrow
    # From the least on; below the balance a label stands right of its mark, above it left.
    marks: list[tuple[Fact, str]] = [
        (facts.num("analytic.phase.decode.8k.flop_per_byte"), "decode at 8K"),
        (facts.num("analytic.phase.decode.128k.flop_per_byte"), "decode at 128K"),
        (facts.num("analytic.phase.kv.flop_per_byte"), "KV alone"),
        (facts.num("analytic.phase.prefill.8k.flop_per_byte"), "prefill of 8K"),
    ]
    balance = facts.num("analytic.phase.balance.flop_per_byte")
    canvas.text(0, y, "Operations for each byte moved", weight=600)
    canvas.text(canvas.width, y, "logarithmic", size=12, tone="muted", anchor="end")
    y += 58
    scale = canvas.width / DECADES

    def at(fact: Fact) -> float:
        return math.log10(fact.value) * scale

    middle = at(balance)
    canvas.rect(0, y, middle, 20, fill="blue-tint", radius=0)
    canvas.rect(middle, y, canvas.width - middle, 20, fill="ochre-tint", radius=0)
    canvas.text(middle - 8, y - 8, "memory sets the time", size=12, tone="blue", anchor="end")
    canvas.text(middle + 8, y - 8, "arithmetic sets the time", size=12, tone="ochre")
    canvas.line(middle, y - 38, middle, y + 26, tone="rose", thick=1.5)
    canvas.text(middle + 8, y - 27, ["balance: ", balance], size=12.5, tone="rose")
    # A staircase of labels: none meets the mark of another.
    below = [mark for mark in marks if at(mark[0]) < middle]
    for index, (fact, words) in enumerate(marks):
        x, side = at(fact), 1 if (fact, words) in below else -1
        stair = len(below) - 1 - index if side > 0 else len(below) if narrow else 0
        base = y + 42 + stair * 19
        dot(canvas, x, y + 10)
        canvas.path(f"M{x:.2f} {y + 15}V{base - 4.5}h{6 * side}", bottom=base)
        canvas.text(x + 10 * side, base, [f"{words}: ", fact], size=12.5, anchor="start" if side > 0 else "end")


def dot(canvas: Canvas, x: float, y: float, radius: float = 4.5) -> None:
    """A mark on the ruler."""
    d = f"M{x - radius:.2f} {y}A{radius} {radius} 0 1 1 {x + radius:.2f} {y}A{radius} {radius} 0 1 1 {x - radius:.2f} {y}Z"
    canvas.path(d, bottom=y + radius, fill="ink", stroke="paper", thick=1.5)


def comparison(canvas: Canvas) -> None:
    """Both phases over the same context: side by side, or one under the other; below them the compute of a byte."""
    facts, narrow = canvas.facts, canvas.narrow
    wide = canvas.width if narrow else (canvas.width - 48) / 2
    scale = wide / facts.num("analytic.phase.prefill.8k.tflop").value
    if narrow:
        below = panel(canvas, 0, 16, wide, "prefill", scale)
        below = panel(canvas, 0, below + 48, wide, "decode", scale)
    else:
        below = panel(canvas, 0, 16, wide, "prefill", scale)
        panel(canvas, wide + 48, 16, wide, "decode", scale)
        canvas.line(wide + 24, 4, wide + 24, below, tone="faint")
    ruler(canvas, below + 52)


def budget(canvas: Canvas) -> None:
    """What one decode step reads, what of it a tier could have to carry, and three rates to one scale."""
    facts, narrow = canvas.facts, canvas.narrow
    weights = facts.both("appendix.s04.weights", key="analytic.hbm.weights_gb")
    kv, reads = facts.both("appendix.s04.kv_128k"), facts.both("appendix.s04.reads")
    canvas.text(0, 14, ["Read for one token at 128K: ", reads], weight=600)
    long = canvas.width * weights.value / (weights.value + kv.value)
    canvas.box(0, 26, long - 1, 36, ["weights ", weights], fill="grey", stroke="muted", radius=1)
    canvas.box(long + 1, 26, canvas.width - long - 1, 36, ["KV ", kv], fill="blue-tint", stroke="blue", radius=1, weight=600)
    canvas.bracket(0, long - 3, 68)
    canvas.bracket(long + 1, canvas.width, 68)
    stays = "resident: it crosses no tier" if narrow else "resident in HBM: it crosses no tier, at any hit rate"
    canvas.text(0, 92, stays, size=12.5, tone="muted")
    canvas.text(canvas.width, 110 if narrow else 92, "crosses where not resident", size=12.5, tone="muted", anchor="end")
    # Rates.
    y = 148
    strawman, time = facts.both("appendix.s04.strawman"), facts.stated("appendix.s04.budget")
    hbm, link = facts.num("analytic.hbm.bandwidth_tbps"), facts.num("analytic.tier.cxl_link_gbps")
    canvas.text(0, y, "Rates, to scale", weight=600)
    rows: list[tuple[Words, Words, float, str]] = [
        (["HBM, specified"], [hbm], hbm.value, "blue"),
        (["strawman: " if narrow else "", reads, " in ", time, " over one link" if narrow else ""], [strawman], strawman.value, "rose"),
        (["one CXL link"], [link], link.value / 1000, "green"),
    ]
    left, room = (0, 84) if narrow else (128, 84)
    scale = (canvas.width - left - room) / max(row[2] for row in rows)
    y += 14
    for name, value, size, tone in rows:
        if narrow:
            canvas.text(0, y + 12, name, size=12.5, tone="muted")
            y += 20
        else:
            canvas.text(0, y + 14, name, size=12.5, tone="muted")
        across = max(size * scale, 1.5)
        if tone == "rose":
            canvas.rect(left, y, across, 20, fill="rose-tint", stroke="rose", dash="3 3", radius=1)
            inside = "the strawman: all of it over one link"
            if measure(plain(inside), 12) + 16 < across:
                canvas.text(left + 8, y + 14, inside, size=12)
        else:
            canvas.rect(left, y, across, 20, fill=tone, radius=1)
        canvas.text(left + across + 8, y + 14.5, value, weight=600)
        y += 30


DIAGRAMS = (
    Diagram(
        "4.1", "prefill_and_decode", "Two phases: the same bytes, different work", comparison,
        alt=(
            'Prefill of a prompt of 8K moves {{ num("analytic.phase.prefill.8k.moved_gb") }}, weights and the KV that it writes, and '
            'computes {{ num("analytic.phase.prefill.8k.tflop") }}: every query meets all keys up to its own, a full triangle. Decode of '
            'the next token moves {{ num("analytic.phase.decode.8k.moved_gb") }}, the same weights and KV, and computes '
            '{{ num("analytic.phase.decode.8k.tflop") }}: the last row of the triangle. Operations for each byte: '
            '{{ num("analytic.phase.decode.8k.flop_per_byte") }} in decode at 8K, '
            '{{ num("analytic.phase.decode.128k.flop_per_byte") }} at 128K, {{ num("analytic.phase.kv.flop_per_byte") }} for the KV alone, '
            '{{ num("analytic.phase.prefill.8k.flop_per_byte") }} in prefill. The balance of the device is '
            '{{ num("analytic.phase.balance.flop_per_byte") }}.'
        ),
        caption=(
            "Bars of one kind are to one scale across both phases; the pattern stands for more tokens than it has. Counted: weights once, "
            "KV once, the linear term and causal attention. Left out: activations, softmax, any second read. The balance is an assumed "
            'peak, {{ num("analytic.regeneration.peak_tflops") }}, over the specified {{ num("analytic.hbm.bandwidth_tbps") }}; a higher '
            "peak moves it to the right. Sequences of a batch share the weights, which lifts decode; they share no KV, so its mark stays."
        ),
        source="Llama-3 70B, B200",
    ),
    Diagram(
        "4.2", "decode_reads", "What one decode step reads, to scale", budget,
        alt=(
            'One token at 128K reads {{ num("analytic.hbm.weights_gb") }} of weights, which stay in HBM, and '
            '{{ both("appendix.s04.kv_128k") }} of KV, which crosses a tier where it is not resident: {{ both("appendix.s04.reads") }} in '
            'all. In {{ stated("appendix.s04.budget") }} that would be {{ both("appendix.s04.strawman") }} over one link, the strawman. '
            'HBM is specified at {{ num("analytic.hbm.bandwidth_tbps") }}, one CXL link at {{ num("analytic.tier.cxl_link_gbps") }}.'
        ),
        caption=(
            "The strawman divides all that is read by the time of a token, as if it crossed one link. HBM takes "
            '{{ num("analytic.decode.hbm_ms") }} for these bytes at its specified rate, of {{ stated("appendix.s04.budget") }}.'
        ),
        source="Llama-3 70B, B200",
    ),
)  # fmt: skip
