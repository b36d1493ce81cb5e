"""Part 12: the priority as an area, its cuts and what they divide, and what fitting it gave in Revision 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, measure
from kvtier.publish.facts import Fact

SIGNALS = (
    ("recency", "Recency", "read lately", "blue-tint", "blue"),
    ("ema", "EMA score", "read often, of late", "ochre-tint", "ochre"),
    ("anchor", "Anchor", "no anchor", "green-tint", "green"),
)
"""Signal as the ledger names it, its name, what it says of the first block, its colours."""


@dataclass(frozen=True)
class Block:
    """A block of the drawing, with the level of each signal between none and full; invented."""

    name: str
    short: str
    levels: Mapping[str, float]


BLOCKS = (
    Block("Read in this turn", "Read now", {"recency": 1.0, "ema": 0.75, "anchor": 0.0}),
    Block("Start of the prompt", "Prompt start", {"recency": 0.1, "ema": 0.3, "anchor": 1.0}),
    Block("Middle, long unread", "Long unread", {"recency": 0.12, "ema": 0.1, "anchor": 0.0}),
)


def place_of(block: Block, weights: Mapping[str, float], cuts: tuple[Fact, Fact]) -> str:
    """Where the cuts put a block of the drawing; one on a cut goes to the nearer tier."""
    score = sum(weight * block.levels[name] for name, weight in weights.items())
    to_hbm, to_pinned = cuts
    if score >= to_pinned.value:
        return "pinned HBM"
    return "HBM" if score >= to_hbm.value else "CXL"


def _area(canvas: Canvas, x: float, y: float, wide: float, tall: float, block: Block, weights: Mapping[str, float]) -> None:
    """Columns as wide as the weights, filled as high as the signals."""
    for name, _, _, tint, tone in SIGNALS:
        column = weights[name] * wide
        high = block.levels[name] * tall
        if high:
            canvas.rect(x, y + tall - high, column, high, fill=tint, radius=0)
            canvas.line(x, y + tall - high, x + column, y + tall - high, tone=tone, thick=1.5)
        x += column
        if name != SIGNALS[-1][0]:
            canvas.line(x, y, x, y + tall, tone="faint")
    canvas.rect(x - wide, y, wide, tall, stroke="muted", radius=0)


def components(canvas: Canvas) -> None:
    """A square of which the filled area is the priority: columns are weights, heights are signals; then three blocks."""
    facts, narrow = canvas.facts, canvas.narrow
    given = {name: facts.num(f"analytic.priority.weight_{name}") for name, *_ in SIGNALS}
    weights = {name: fact.value for name, fact in given.items()}
    cuts = facts.num("analytic.priority.cut_hbm"), facts.num("analytic.priority.cut_pinned")
    shown = BLOCKS[0]
    left, tall = 44, (150 if narrow else 208)
    wide = canvas.width - left if narrow else 396
    y = 54
    _area(canvas, left, y, wide, tall, shown, weights)
    x = float(left)
    for name, title, says, _, tone in SIGNALS:
        column = weights[name] * wide
        middle = x + column / 2
        canvas.bracket(x + 2, x + column - 2, y - 5, depth=5, up=True, tone=tone)
        canvas.text(middle, y - 15, given[name], size=13, weight=600, anchor="middle")
        canvas.text(middle, y - 33, title, size=13, anchor="middle", tone=tone)
        canvas.paragraph(middle, y + tall - 26, column - 8, says, size=12, anchor="middle", tone="ink" if shown.levels[name] else "muted")
        x += column
    canvas.text(left - 8, y + 10, "full", size=12, anchor="end", tone="muted")
    canvas.text(left - 8, y + tall, "none", size=12, anchor="end", tone="muted")
    canvas.text(left - 24, y + tall / 2 + 20, "signal", size=12, tone="muted", turned=True)
    canvas.text(left, y + tall + 20, "Filled area = priority P of one block", weight=600)
    if narrow:
        y += tall + 54
        side = (canvas.width - 2 * 16) / 3
        for index, block in enumerate(BLOCKS):
            _case(canvas, index * (side + 16), y, side, 66, block, weights, cuts)
        return
    x, row = left + wide + 44, 66
    side = 104
    canvas.text(x, y - 15, "Three blocks, and where the cuts put them", size=12, tone="muted")
    for index, block in enumerate(BLOCKS):
        top = y + index * (row + 5)
        _area(canvas, x, top, side, row, block, weights)
        canvas.text(x + side + 16, top + 18, block.name, size=13, weight=600)
        canvas.text(x + side + 16, top + 38, ["goes to ", place_of(block, weights, cuts)], size=13)
    canvas.space(y + tall + 24)


def _case(
    canvas: Canvas, x: float, y: float, wide: float, tall: float, block: Block, weights: Mapping[str, float], cuts: tuple[Fact, Fact]
) -> None:
    canvas.text(x, y - 8, block.short, size=12.5, weight=600)
    _area(canvas, x, y, wide, tall, block, weights)
    canvas.text(x, y + tall + 17, ["→ ", place_of(block, weights, cuts)], size=12.5)


TIERS = (
    ("t2", "CXL", "green-tint", "green"),
    ("t1", "evictable HBM", "blue-tint", "blue"),
    ("t0", "pinned HBM", "blue", "blue"),
)


def thresholds(canvas: Canvas) -> None:
    """The priority as a line with two cuts; under each stretch its tier, the capacity as an area, and what moving a cut does."""
    facts, narrow = canvas.facts, canvas.narrow
    cuts = facts.num("analytic.priority.cut_hbm"), facts.num("analytic.priority.cut_pinned")
    edges = [0.0, cuts[0].value, cuts[1].value, 1.0]
    sizes = {tier: facts.num(f"analytic.tier.{tier}.capacity_gb") for tier, *_ in TIERS}
    left, right = 0.0, canvas.width
    wide = right - left
    y, tall = 40.0, 34
    places = [left + edge * wide for edge in edges]
    for (tier, name, tint, _), start, end in zip(TIERS, places, places[1:], strict=False):
        canvas.rect(start, y, end - start, tall, fill=tint, radius=0)
        dark = tint == "blue"
        words = name if not narrow else {"t2": "CXL", "t1": "evictable", "t0": "pinned"}[tier]
        canvas.text((start + end) / 2, y + 22, words, size=13, weight=600, anchor="middle", tone="paper" if dark else "ink")
    canvas.text(left, y - 12, "P: no signal", size=12, tone="muted")
    canvas.text(right, y - 12, "all signals full", size=12, anchor="end", tone="muted")
    for cut, place in zip(cuts, places[1:3], strict=True):
        canvas.line(place, y - 8, place, y + tall + 8, tone="rose", thick=1.5)
        canvas.text(place, y - 14, cut, size=13, weight=600, anchor="middle", tone="rose")
    # Capacities as squares, to one scale.
    y += tall + 34
    unit = (84 if narrow else 124) / max(fact.value for fact in sizes.values()) ** 0.5
    side = sizes["t2"].value ** 0.5 * unit
    for (tier, _, tint, tone), start, end in zip(TIERS, places, places[1:], strict=False):
        edge = sizes[tier].value ** 0.5 * unit
        middle = (start + end) / 2
        canvas.rect(middle - edge / 2, y + side - edge, edge, edge, fill=tint, stroke=tone, radius=0)
        canvas.text(middle, y + side + 20, sizes[tier], size=13.5, weight=600, anchor="middle")
    canvas.text(left if narrow else places[1] + 8, y + 10 if not narrow else y - 12, "capacity, areas to scale", size=12, tone="muted")
    y += side + 60
    # What moving a cut does.
    told = (
        (cuts[0], "raised, it sends blocks out of an HBM that has room. Lowered, it lets HBM fill, and the order of eviction decides."),
        (cuts[1], "raised, it pins less. Lowered, it pins more than the pinned part of HBM can hold."),
    )
    column = canvas.width if narrow else (canvas.width - 40) / 2
    for index, (cut, words) in enumerate(told):
        x = 0.0 if narrow else index * (column + 40)
        canvas.line(x, y - 16, x + 20, y - 16, tone="rose", thick=1.5)
        canvas.text(x, y + 4, ["Cut at ", cut], size=13, weight=600)
        end = canvas.paragraph(x, y + 23, column, words[0].upper() + words[1:], size=13)
        if narrow:
            y = end + 42
    canvas.space(canvas.bottom + 2)


CASES = (
    ("published_hit", "weights and α of v6.0", "v6.0 as printed"),
    ("published_weights_hit", "weights of v6.0, best half-life", "its weights, best half-life"),
    ("best_hit", "both fitted", "both fitted"),
    ("ema_hit", "all weight on the EMA score", "EMA score alone"),
    ("recency_hit", "all weight on recency", "recency alone"),
)
"""Number of the calibration, and what was set; short for narrow."""

CUTS = (("no_cut", "No cut"), ("cut03", "The lower cut in force"))


def calibration(canvas: Canvas) -> None:
    """Hit rates of five settings, without and with the lower cut, at two budgets: a mark and an interval each."""
    facts, narrow = canvas.facts, canvas.narrow
    budgets = ("32", "64")
    left = 0.0 if narrow else 224.0
    right = 64.0
    start, end = 0.0, 85.0
    wide = canvas.width - left - right
    row = 42 if narrow else 27
    tones = {"32": "blue", "64": "green"}

    def at(percent: float) -> float:
        return left + (percent - start) / (end - start) * wide

    y = 14.0
    for index, gib in enumerate(budgets):
        x = left + index * (118 if narrow else 150)
        canvas.rect(x, y - 9, 9, 9, fill=tones[gib], radius=0)
        canvas.text(x + 15, y, f"HBM {gib} GiB", size=12.5)
    y += 34
    for cut, title in CUTS:
        canvas.text(0, y, title, weight=600)
        y += 10
        top = y
        for name, told, short in CASES:
            middle = y + row / 2 + (8 if narrow else 0)
            canvas.text(
                6 if narrow else 0,
                middle - 12 if narrow else middle + 4,
                short if narrow else told,
                size=12.5,
                tone="muted" if narrow else "ink",
            )
            reached = left
            for gib, anchor, aside in (("32", "end", -9), ("64", "start", 9)):
                fact = facts.num(f"sim.rev3.calibration.{gib}.{cut}.{name}")
                low, high = (at(facts.quote(fact.ref[2:]).uncertainty[f"interval_{side}"]) for side in ("low", "high"))
                place = at(fact.value)
                stop = place - 15 - measure(fact.text, 12) if anchor == "end" else low
                if stop > reached:
                    canvas.line(reached, middle, stop, middle, tone="faint")
                reached = high
                canvas.line(low, middle, high, middle, tone=tones[gib], thick=5)
                canvas.line(place, middle - 6, place, middle + 6, tone=tones[gib], thick=2)
                canvas.text(place + aside, middle + 4, fact, size=12, anchor=anchor, tone=tones[gib])
            y += row
        canvas.line(left, top, left, y, tone="muted")
        y += 34
    canvas.space(y - 24)


DIAGRAMS = (
    Diagram(
        "12.1", "priority_components", "A priority is an area", components,
        alt=(
            'A square. Its columns are as wide as the weights: recency {{ num("analytic.priority.weight_recency") }}, EMA score {{ '
            'num("analytic.priority.weight_ema") }}, anchor zone {{ num("analytic.priority.weight_anchor") }}. Each is filled as '
            'high as its signal; the filled area is the priority. A block read in this turn goes to pinned HBM, the start of the '
            'prompt to HBM, the long unread middle to CXL, by the cuts {{ num("analytic.priority.cut_hbm") }} and {{ '
            'num("analytic.priority.cut_pinned") }}.'
        ),
        caption=(
            "P = the three signals, each between none and full, times their weights, which add up to the whole square. The levels "
            "of the three blocks are invented; their tiers follow from the weights and the cuts."
        ),
        source="constants as stated, never fitted",
        limits="Illustrative: weights, cuts and signals are choices; nothing was measured.",
    ),
    Diagram(
        "12.2", "priority_thresholds", "Two cuts, three places", thresholds,
        alt=(
            'The priority as a line from no signal to all signals full. Below {{ num("analytic.priority.cut_hbm") }} a block goes '
            'to CXL ({{ num("analytic.tier.t2.capacity_gb") }}), up to {{ num("analytic.priority.cut_pinned") }} to evictable HBM '
            '({{ num("analytic.tier.t1.capacity_gb") }}), above it to pinned HBM ({{ num("analytic.tier.t0.capacity_gb") }}).'
        ),
        caption=(
            "Nothing ties the cuts to the capacities: how many blocks lie above a cut depends on the weights and on the workload, "
            "how many fit does not."
        ),
        source="constants as stated, never fitted",
        limits="Illustrative: neither cut was fitted, and they lose their meaning if the weights change.",
    ),
    Diagram(
        "calibration", "priority_calibration", "The priority, fitted in simulation", calibration,
        alt=(
            'Hit rates of the priority in Revision 3 on seeds that chose nothing. Without a cut, at 32 GiB: weights and α of v6.0 '
            '{{ plus_minus("sim.rev3.calibration.32.no_cut.published_hit") }}, its weights with the best half-life {{ '
            'num("sim.rev3.calibration.32.no_cut.published_weights_hit") }}, both fitted {{ '
            'num("sim.rev3.calibration.32.no_cut.best_hit") }}, EMA score alone {{ num("sim.rev3.calibration.32.no_cut.ema_hit") '
            '}}, recency alone {{ num("sim.rev3.calibration.32.no_cut.recency_hit") }}. With the lower cut in force: {{ '
            'num("sim.rev3.calibration.32.cut03.published_hit") }}, {{ num("sim.rev3.calibration.32.cut03.published_weights_hit") '
            '}}, {{ num("sim.rev3.calibration.32.cut03.best_hit") }}, {{ num("sim.rev3.calibration.32.cut03.ema_hit") }} and {{ '
            'num("sim.rev3.calibration.32.cut03.recency_hit") }}.'
        ),
        caption=(
            'Block hit rate: blocks read that were in HBM over blocks read, turns of the second half; state kept by session. '
            'Weights (in steps that give {{ num("sim.rev3.calibration.points") }} settings) and half-life were fitted on half of '
            'the seeds, the rates are of the other half; thick bars are bootstrap intervals, and the scale starts at zero.'
        ),
        source="Revision 3",
    ),
)  # fmt: skip
