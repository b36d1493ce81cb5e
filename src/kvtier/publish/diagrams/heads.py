"""Part 8: four kinds of heads that v6.0 assumes, and what a block's one score sees of them."""

from __future__ import annotations

import math

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas

KINDS = ("recency", "anchor", "retrieval", "syntactic")
BLOCKS = 64
"""Blocks of the context drawn: 1K tokens."""


def strip(kind: str, blocks: int, block_tokens: float, recent_tokens: float, anchor_tokens: float) -> list[float]:
    """Illustrative attention of the newest token on each block, the strongest as 1: formulas, neither measured nor drawn at random.

    Parameters
    ----------
    kind : {'recency', 'anchor', 'retrieval', 'syntactic'}
    blocks : int
        Of the context.
    block_tokens : float
        Tokens of a block.
    recent_tokens, anchor_tokens : float
        How far back recency heads look, and how far anchor heads reach from the start.

    Returns
    -------
    list of float
        Recency: falls by half with each quarter of `recent_tokens`, and ends there. Anchor: 1 over the first `anchor_tokens`, falling off
        over the last block of them. Retrieval: five blocks at the multiples of the golden ratio, modulo the context, for places that
        follow no order. Syntactic: the last eight blocks, the more the nearer, every second one less.
    """
    values = []
    for block in range(blocks):
        back = (blocks - 1 - block) * block_tokens
        if kind == "recency":
            values.append(0.5 ** (4 * back / recent_tokens) if back < recent_tokens else 0.0)
        elif kind == "anchor":
            values.append(min(1.0, max(0.0, anchor_tokens / block_tokens - block)))
        elif kind == "retrieval":
            places = {int(blocks * (step * (math.sqrt(5) - 1) / 2 % 1)): 1 - 0.12 * step for step in range(1, 6)}
            values.append(places.get(block, 0.0))
        else:
            age = blocks - 1 - block
            values.append((1 - age / 8) * (0.45 if age % 2 else 1.0) if age < 8 else 0.0)
    peak = max(values)
    return [value / peak for value in values]


def kinds(canvas: Canvas) -> None:
    """Shares as bars to scale, each kind's attention as a strip over the blocks of one context, and the highest of the four below."""
    facts, narrow = canvas.facts, canvas.narrow
    recent, anchor = facts.stated("appendix.s08.recency_window"), facts.stated("appendix.s08.anchor_zone")
    # A range is drawn by its far end.
    reach = facts.stated("appendix.s08.recency_window", 1).value, facts.stated("appendix.s08.anchor_zone", 1).value
    block_tokens = facts.stated("appendix.s09.block_tokens").value
    shares = [facts.stated("appendix.s08.split", position) for position in range(3)] + [facts.published("appendix.s08.syntactic")]
    looks = (["the last ", recent], ["", anchor, " from the start"], "by content, at any place", "words it depends on")
    left = 0 if narrow else 232
    cell = (canvas.width - left) / BLOCKS
    high = 36
    per_percent = 1.6 if narrow else 2.0
    strips = [strip(kind, BLOCKS, block_tokens, *reach) for kind in KINDS]
    y = 20.0
    canvas.text(left, 12, "oldest block", size=12, tone="muted")
    canvas.text(canvas.width, 12, "newest", size=12, tone="muted", anchor="end")
    if not narrow:
        canvas.text(0, 12, "share of the heads", size=12, tone="muted")
    for kind, share, look, values in zip(KINDS, shares, looks, strips, strict=True):
        if narrow:
            canvas.text(0, y + 16, kind.capitalize(), weight=600)
            canvas.text(canvas.width, y + 16, look, size=12, tone="muted", anchor="end")
            canvas.rect(72, y + 6, share.value * per_percent, 12, fill="faint", radius=1)
            canvas.text(72 + share.value * per_percent + 6, y + 16, [share], size=12.5)
            y += 24
        else:
            canvas.text(0, y + 16, kind.capitalize(), weight=600)
            canvas.rect(84, y + 5, share.value * per_percent, 14, fill="faint", radius=1)
            canvas.text(84 + share.value * per_percent + 8, y + 16.5, [share], weight=600)
            canvas.text(0, y + 35, look, size=12.5, tone="muted")
        _bars(canvas, left, y, cell, high, values, "blue")
        y += high + 16
    canvas.line(0, y - 2, canvas.width, y - 2, tone="faint")
    y += 8
    union = [max(column) for column in zip(*strips, strict=True)]
    canvas.text(0, y + 16, "One score a block", weight=600)
    if narrow:
        canvas.text(canvas.width, y + 16, "the highest of all heads", size=12, tone="muted", anchor="end")
        y += 24
    else:
        canvas.text(0, y + 35, "the highest of all heads", size=12.5, tone="muted")
    _bars(canvas, left, y, cell, high, union, "ink")


def _bars(canvas: Canvas, left: float, y: float, cell: float, high: float, values: list[float], tone: str) -> None:
    foot = y + high
    canvas.rect(left, y, cell * len(values), high, fill="grey", radius=0)
    d = ""
    for block, value in enumerate(values):
        if value:
            tall = max(value * (high - 3), 1.5)
            d += f"M{left + block * cell + 0.5:.2f} {foot - tall:.2f}h{cell - 1:.2f}v{tall:.2f}h-{cell - 1:.2f}z"
    canvas.path(d, bottom=foot, fill=tone, stroke="none")
    canvas.line(left, foot, left + cell * len(values), foot)


DIAGRAMS = (
    Diagram(
        "8.1", "head_kinds", "Kinds of heads, and the one score of a block", kinds,
        alt=(
            'Assumed kinds of heads: recency {{ stated("appendix.s08.split", 0) }}, looking back '
            '{{ stated("appendix.s08.recency_window") }}; anchor {{ stated("appendix.s08.split", 1) }}, reading '
            '{{ stated("appendix.s08.anchor_zone") }}; retrieval {{ stated("appendix.s08.split", 2) }}, by content, at any place; '
            'syntactic {{ printed("appendix.s08.syntactic") }}, reading words that a word depends on. A strip for each shows on which '
            "blocks of a context the newest token attends. A last strip shows the highest of the four for each block."
        ),
        caption=(
            'A context of 1K tokens in blocks of {{ stated("appendix.s09.block_tokens") }}, windows to scale at their far end; the '
            "heights follow formulas, and each kind’s strongest block is as high as the strip. A longer context puts nearly all of "
            "its blocks between the ends."
        ),
        source="v6.0, assumed shares",
        limits="Illustrative: no head was classified, and no attention was measured.",
    ),
)  # fmt: skip
