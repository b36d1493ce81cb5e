"""Part 7: how fast the pairs of a head turn with the position, at the base that v6.0 prints and at the model's own."""

from __future__ import annotations

import math

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas
from kvtier.publish.facts import Both, Fact

PUBLISHED, OWN = "analytic.rope.base10000", "analytic.rope.base500000"
TOKENS = {"4K": 4 * 1024, "32K": 32 * 1024, "128K": 128 * 1024}


def dial(canvas: Canvas, x: float, y: float, radius: float, angle: float, *, tone: str, tint: str) -> None:
    """A hand turned by `angle` [rad] from three o'clock, counter-clockwise; the way it came shaded, all of it after a full turn."""
    turned = angle % (2 * math.pi)
    hand_x, hand_y = x + radius * math.cos(turned), y - radius * math.sin(turned)
    bottom = y + radius
    circle = f"M{x - radius:.2f} {y:.2f}a{radius} {radius} 0 1 0 {2 * radius} 0a{radius} {radius} 0 1 0 {-2 * radius} 0Z"
    if angle >= 2 * math.pi:
        canvas.path(circle, bottom=bottom, fill=tint, stroke="none")
    else:
        large = 1 if turned > math.pi else 0
        sector = f"M{x:.2f} {y:.2f}H{x + radius:.2f}A{radius} {radius} 0 {large} 0 {hand_x:.2f} {hand_y:.2f}Z"
        canvas.path(sector, bottom=bottom, fill=tint, stroke="none")
    canvas.path(circle, bottom=bottom, stroke="faint")
    canvas.line(x, y, x + radius, y, tone="faint")
    canvas.line(x, y, hand_x, hand_y, tone=tone, thick=2)
    dot = 2.5
    canvas.path(
        f"M{x - dot:.2f} {y:.2f}a{dot} {dot} 0 1 0 {2 * dot} 0a{dot} {dot} 0 1 0 {-2 * dot} 0Z", bottom=bottom, fill=tone, stroke="none"
    )


def rotation(canvas: Canvas) -> None:
    """Dials: one row a pair and base, one column a position."""
    facts, narrow = canvas.facts, canvas.narrow
    block = facts.stated("appendix.s09.block_tokens").value
    columns: list[tuple[str, float]] = [("one position", 1), ("one block", block), *((name, tokens) for name, tokens in TOKENS.items())]
    if narrow:
        columns[:2] = [("one", 1), ("a block", block)]
    fastest, turn = facts.both("appendix.s07.theta_0"), facts.num(f"{PUBLISHED}.turn_0")
    rows: list[tuple[str, str, Both | Fact, Fact, str, str]] = [("Pair 0, the fastest", "at any base", fastest, turn, "muted", "grey")]
    for pair, name in (("32", "Pair 32, the middle"), ("63", "Pair 63, the slowest")):
        theta, turn = facts.both(f"appendix.s07.theta_{pair}"), facts.num(f"{PUBLISHED}.turn_{pair}")
        rows.append((name, "published base", theta, turn, "ochre", "ochre-tint"))
        own, turn = facts.num(f"{OWN}.theta_{pair}"), facts.num(f"{OWN}.turn_{pair}")
        rows.append(("", "Llama-3’s base", own, turn, "blue", "blue-tint"))
    left = 0 if narrow else 270
    wide = (canvas.width - left) / len(columns)
    radius = 24.0
    centres = [left + (index + 0.5) * wide for index in range(len(columns))]
    for (name, _), x in zip(columns, centres, strict=True):
        canvas.text(x, 14, name, size=12.5, weight=600, anchor="middle")
    if not narrow:
        canvas.text(0, 14, "After a distance of", size=12.5, tone="muted")
    y = 24.0
    for name, words, shown_theta, shown_turn, tone, tint in rows:
        shown = "ink" if tone == "muted" else tone
        if name:
            y += 10
            canvas.line(0, y, canvas.width, y, tone="faint")
            if narrow:
                canvas.text(0, y + 20, name, weight=600)
                y += 22
            else:
                canvas.text(0, y + 24, name, weight=600)
        if narrow:
            canvas.text(0, y + 18, words, size=12.5, tone=shown)
            canvas.text(canvas.width, y + 18, [shown_theta], size=12.5, anchor="end")
            canvas.text(canvas.width, y + 34, ["full turn: ", shown_turn], size=12, anchor="end", tone="muted")
            middle = y + 68
            y = middle + radius + 4
        else:
            middle = y + 10 + radius
            canvas.text(140, middle - 10, words, size=12.5, tone=shown)
            canvas.text(140, middle + 6, [shown_theta], size=12)
            canvas.text(140, middle + 22, ["turn: ", shown_turn], size=12, tone="muted")
            y = middle + radius + 4
        for (_, tokens), x in zip(columns, centres, strict=True):
            dial(canvas, x, middle, radius, shown_theta.value * tokens, tone=tone if tone != "muted" else "ink", tint=tint)
    canvas.space(y)


DIAGRAMS = (
    Diagram(
        "7.1", "rope_rotation", "Three pairs of a head, turned by distance", rotation,
        alt=(
            "Dials of three pairs of elements after one position, one block, 4K, 32K and 128K tokens. Pair 0 turns "
            '{{ both("appendix.s07.theta_0") }} at any base, a full turn every {{ num("analytic.rope.base10000.turn_0") }}. Pair 32 '
            'turns {{ both("appendix.s07.theta_32") }} at the published base and {{ num("analytic.rope.base500000.theta_32") }} at '
            'that of Llama-3. Pair 63 makes a full turn every {{ num("analytic.rope.base10000.turn_63") }} at the published base, and '
            'every {{ num("analytic.rope.base500000.turn_63") }} at that of Llama-3: in 128K tokens it makes a small part of one turn.'
        ),
        caption=(
            "A hand turns by θ a position, drawn unrounded; shaded is the way it has come, and the whole dial once it has been round. "
            'Ochre: the base that v6.0 prints; blue: the base of the model, {{ num("analytic.rope.base.llama3_70b") }}. '
            'θ = base<sup>−2i/d</sup> for pair i, with d = {{ stated("appendix.s03.head_dim") }} elements of a head. '
            "What counts for a score is the angle between query and key, so the distance of the two."
        ),
        source="Llama-3 70B",
        limits="Exact for the stated bases; says nothing about what a trained head does with a pair.",
    ),
)  # fmt: skip
