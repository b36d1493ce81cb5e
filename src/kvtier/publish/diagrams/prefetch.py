"""Part 14: what a prefetch would fetch, what the time of one token moves, and what the rules saved in simulation."""

from __future__ import annotations

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words
from kvtier.publish.facts import Fact

HOT, COLD = ("64", "5563", "7993"), "2854"
"""Blocks of the GQA figure outside the two zones: those with high scores, and the one with the lowest."""

RATES = (("32", "low end"), ("64", "rate of one link"), ("121", "high end"))
"""Bandwidths by their part of a key, and what each is."""

RULES = (
    ("next", "the session that comes, known"),
    ("ema", "sessions by EMA score"),
    ("recent", "last positions of each session"),
    ("blend", "distance and EMA, blended"),
    ("distance", "nearest to the next token"),
    ("own_anchor", "anchor zone after the prefix"),
    ("anchor", "anchor zone"),
)
"""Rules of prefetch as Revision 3 reads them."""


def targets(canvas: Canvas) -> None:
    """A context to scale with the blocks that would be fetched; its two ends enlarged below."""
    facts, narrow, width = canvas.facts, canvas.narrow, canvas.width
    tokens = facts.quote("analytic.gqa.blocks").value * facts.stated("appendix.s09.block_tokens").value
    block = facts.stated("appendix.s09.block_tokens").value
    anchor, recent = facts.stated("appendix.s14.anchor", 1), facts.stated("appendix.s14.recent")
    scale = width / tokens
    canvas.text(0, 12, "A context of 128K in CXL, to scale", weight=600)
    canvas.text(width, 12, "newest", anchor="end", size=12.5, tone="muted")
    top, tall = 48, 24
    canvas.rect(0, top, width, tall, fill="green-tint", radius=0)
    for name in (*HOT, COLD):
        first, last = (facts.quote(f"analytic.gqa.block_{name}.{end}_position").value for end in ("first", "last"))
        x = (first + last) / 2 * scale
        canvas.line(
            x,
            top - (6 if name != COLD else 0),
            x,
            top + tall,
            tone="blue" if name != COLD else "muted",
            thick=1.5,
            dash="" if name != COLD else "2 3",
        )
        anchored = "start" if x < 40 else "end" if x > width - 40 else "middle"
        canvas.text(x, top - 10, f"block {name}", size=12, anchor=anchored, tone="blue" if name != COLD else "muted")
    for x, wide in ((0, anchor.value * scale), (width - recent.value * scale, recent.value * scale)):
        canvas.rect(x, top, max(wide, 1), tall, fill="blue", radius=0)
    each = 1.2
    below = top + tall
    y = below + 40
    second = y + 84 if narrow else y
    for x, count, zone, at, words in (
        (0.0, anchor, "anchor zone", y, ["the first ", anchor]),
        (width - recent.value * each, recent, "recent window", second, ["the last ", recent]),
    ):
        long = count.value * each
        edge = (0, anchor.value * scale) if x == 0 else (width - recent.value * scale, width)
        reach = below + 2
        for start, end in ((edge[0], x), (edge[1], x + long)):
            canvas.line(min(max(start, 0.5), width - 0.5), reach, min(max(end, 0.5), width - 0.5), at - 4, tone="faint")
        offset = 0.0
        while offset < count.value:
            piece = min(block, count.value - offset) * each
            left = x + offset * each if x == 0 else x + long - offset * each - piece
            canvas.rect(left + 0.75, at, piece - 1.5, 24, fill="blue-tint", radius=0)
            offset += block
        canvas.rect(x + 0.5, at - 0.5, long - 1, 25, stroke="blue", radius=0)
        canvas.text(x if x == 0 else width, at + 42, zone, size=12.5, weight=600, anchor="start" if x == 0 else "end")
        canvas.text(x if x == 0 else width, at + 58, words, size=12.5, anchor="start" if x == 0 else "end")
    if narrow:
        canvas.text(0, second + 84, "high score, anywhere", size=12.5, weight=600)
        canvas.paragraph(0, second + 101, width, ["blocks of the GQA figure; the dashed one has the lowest score and stays out"], size=12.5)
    else:
        canvas.text(184, y + 8, "high score, anywhere", size=12.5, weight=600)
        canvas.paragraph(184, y + 25, 216, "blocks of the GQA figure; the dashed one has the lowest score and stays out", size=12.5)


def budget(canvas: Canvas) -> None:
    """The time of one token to scale; below, what its window moves, beside the KV of one long context."""
    facts, narrow, width = canvas.facts, canvas.narrow, canvas.width
    token, compute = facts.stated("appendix.s14.budget"), facts.stated("appendix.s14.compute")
    each = width / token.value
    canvas.text(0, 12, ["one token: ", token], weight=600)
    canvas.text(width, 12, "time to scale", size=12.5, tone="muted", anchor="end")
    canvas.box(0, 22, compute.value * each, 36, ["compute ", compute], fill="grey", radius=0)
    window = ["window " if narrow else "window for prefetch ", facts.both("appendix.s14.window")]
    canvas.rect(compute.value * each, 22, width - compute.value * each, 36, fill="green-tint", radius=0)
    canvas.text((compute.value * each + width) / 2, 44.5, window, anchor="middle")
    canvas.rect(0, 22, width, 36, stroke="muted", radius=0)
    # What the window moves.
    context = facts.num("analytic.kv.llama3_70b.128k.gb")
    left = 0 if narrow else 84
    scale = (width - left) / context.value
    y = 96
    canvas.text(0, y, "moved" if narrow else "What the window moves", weight=600)
    canvas.text(width, y, ["of one context of 128K, ", facts.both("appendix.s10.kv_128k_gb")], anchor="end", size=12.5)
    y += 10
    ends = {"32": 0, "121": 1}
    for rate, what in RATES:
        if rate == "64":
            speed, moved, positions = (
                facts.stated("appendix.s09.link"),
                facts.num("analytic.prefetch.64gbps.gb"),
                facts.num("analytic.prefetch.64gbps.whole_positions"),
            )
        else:
            speed = facts.stated("appendix.s14.tier_bandwidth", ends[rate])
            moved, positions = facts.both("appendix.s14.window_gb", ends[rate]), facts.both("appendix.s14.positions", ends[rate])
        blocks = facts.num(f"analytic.prefetch.{rate}gbps.whole_blocks")
        links: Words = [", ", facts.num("analytic.tier.t2.links_for_high_bandwidth")] if rate == "121" else ""
        if narrow:
            canvas.text(0, y + 14, [speed, f", {what}", *links], size=12.5)
            y += 22
        else:
            canvas.text(0, y + 18.5, [speed], size=12.5, weight=600)
        long = moved.value * scale
        canvas.rect(left, y, long, 26, fill="blue", radius=0)
        canvas.rect(left, y, width - left, 26, stroke="muted", radius=0)
        # Blocks apart: v6.0 printed none, and a text that holds a published value is marked whole.
        told = canvas.text(left + long + 10, y + 17.5, [moved, ", ", positions], size=12.5)
        canvas.text(left + long + 10 + told, y + 17.5, [", ", blocks], size=12.5)
        if not narrow:
            canvas.text(width - 10, y + 17.5, [what, *links], size=12.5, tone="muted", anchor="end")
        y += 42 if narrow else 36


def saved(canvas: Canvas) -> None:
    """The stall of a turn without prefetch as one bar, what each rule takes off it as others, to one scale."""
    facts, narrow, width = canvas.facts, canvas.narrow, canvas.width
    stall = facts.num("sim.rev3.prefetch.64.none.stall")
    left, right = (0, 0) if narrow else (216, 208)
    scale = (width - left - right) / stall.value
    heads = (0, width) if narrow else (left, width)
    canvas.text(heads[0], 12, "stall of a turn" if narrow else "stall of a turn, and what a rule saves of it", weight=600)
    canvas.text(heads[1], 12, "used" if narrow else "used of what was fetched", weight=600, anchor="end")
    y = 24
    if narrow:
        canvas.text(0, y + 12, ["without prefetch ", facts.num("sim.rev3.prefetch.64.none.stall", "plus_minus")], size=12.5)
        y += 20
    else:
        canvas.text(0, y + 12, "without prefetch", size=12.5)
        canvas.text(left + stall.value * scale + 8, y + 12, [facts.num("sim.rev3.prefetch.64.none.stall", "plus_minus")], size=12.5)
    canvas.rect(left, y, stall.value * scale, 16, fill="grey", stroke="muted", radius=0)
    y += 34
    for rule, name in RULES:
        key = f"sim.rev3.prefetch.64.{rule}"
        value = facts.num(f"{key}.saved", "plus_minus")
        share: Words = [facts.num(f"{key}.accuracy")] if rule != "anchor" else "fetches nothing"
        tone = "green" if rule == "next" else "blue"
        if narrow:
            canvas.text(0, y + 12, name, size=12.5)
            canvas.text(width, y + 12, share, size=12.5, anchor="end")
            y += 19
        else:
            canvas.text(0, y + 12, name, size=12.5)
            canvas.text(width, y + 12, share, size=12.5, anchor="end", tone="muted" if rule == "anchor" else "ink")
        long = _drawn(value, scale)
        canvas.rect(left, y, long, 16, fill=tone, radius=0)
        canvas.text(left + long + 8, y + 12, [value], size=12.5)
        y += 32 if narrow else 26


def _drawn(fact: Fact, scale: float) -> float:
    """Length of a bar: to scale, a hairline where that could not be seen, nothing for nothing."""
    return max(fact.value * scale, 1.0) if fact.value else 0.0


DIAGRAMS = (
    Diagram(
        "14.1", "prefetch_targets", "What would be fetched ahead", targets,
        alt=(
            'A context of 128K as a strip. At its start the anchor zone, the first {{ stated("appendix.s14.anchor", 1) }}; at its '
            'end the recent window, the last {{ stated("appendix.s14.recent") }}; both are hairlines at this scale and drawn '
            'enlarged below, cut into blocks of {{ stated("appendix.s09.block_tokens") }}. Between them blocks with high scores: '
            'block 64 from position {{ num("analytic.gqa.block_64.first_position") }}, block 5563 from '
            '{{ num("analytic.gqa.block_5563.first_position") }}, block 7993 from '
            '{{ num("analytic.gqa.block_7993.first_position") }}. Block 2854, from '
            '{{ num("analytic.gqa.block_2854.first_position") }}, has the lowest score and is not fetched.'
        ),
        caption=(
            "Blue is fetched. Both zones are enlarged alike; a cell is a block, cut at the inner edge. Zones are as the package "
            "states them, blocks with high scores are the example of its GQA figure. None comes from a trace."
        ),
        source="the package's rules",
        limits="Illustrative: no attention was measured.",
    ),
    Diagram(
        "14.2", "prefetch_budget", "What the time of one token can move", budget,
        alt=(
            'One token takes {{ stated("appendix.s14.budget") }}: compute {{ stated("appendix.s14.compute") }}, then a window of '
            '{{ both("appendix.s14.window") }}. It moves {{ both("appendix.s14.window_gb", 0) }} or '
            '{{ both("appendix.s14.positions", 0) }} at {{ stated("appendix.s14.tier_bandwidth", 0) }}; '
            '{{ num("analytic.prefetch.64gbps.gb") }} or {{ num("analytic.prefetch.64gbps.whole_positions") }} at '
            '{{ stated("appendix.s09.link") }}; {{ both("appendix.s14.window_gb", 1) }} or {{ both("appendix.s14.positions", 1) }} '
            'at {{ stated("appendix.s14.tier_bandwidth", 1) }}. One context of 128K has {{ both("appendix.s10.kv_128k_gb") }}.'
        ),
        caption=(
            'Whole positions at {{ both("appendix.s14.kv_token") }} each, and whole blocks, rounded down. One transfer, an idle '
            "link, no set-up time: an upper bound. Compute is a target, and no transfer is counted while it runs."
        ),
        source="Llama-3 70B",
    ),
    Diagram(
        "prefetch-rules", "prefetch_saved", "What rules of prefetch save in simulation", saved,
        alt=(
            'Stall of a turn without prefetch: {{ plus_minus("sim.rev3.prefetch.64.none.stall") }}. Saved when the next session is '
            'known: {{ plus_minus("sim.rev3.prefetch.64.next.saved") }}. By EMA score of sessions: '
            '{{ plus_minus("sim.rev3.prefetch.64.ema.saved") }}. By the other rules: at most '
            '{{ plus_minus("sim.rev3.prefetch.64.recent.saved") }}.'
        ),
        caption=(
            "Stall is the time a turn waits for its context. <em>Used</em>: prefetched blocks that the next turn reads, over "
            'prefetched blocks. HBM of 32 GiB and a buffer of 8 GiB beside it, {{ num("analytic.tier.cxl_link_gbps") }} each way, a '
            "tier that drops nothing; Poisson arrivals, zipf, means of seeds with bootstrap intervals."
        ),
        source="Revision 3",
    ),
)  # fmt: skip
