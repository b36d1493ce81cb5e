"""Part 13: scores of the heads at three positions, and the one score that is left of them."""

from __future__ import annotations

from collections.abc import Sequence

from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas
from kvtier.publish.facts import Fact

POSITIONS = (("system", "0", "system prompt"), ("middle", "45,000", "middle"), ("recent", "99,950", "recent"))
"""Row of the example by its claim, its position and the zone that this lies in."""

HEADS = (("h0", "recency"), ("h1", "anchor"), ("h2", "retrieval"))
DECISIONS = {"system": "HBM", "middle": "CXL", "recent": "HBM"}


def steps(scores: Sequence[float]) -> list[int]:
    """Heat of each score: 2 from half of the largest on, 1 from a tenth on, 0 below.

    >>> steps([0.001, 0.089, 0.012])
    [0, 2, 1]
    """
    largest = max(scores)
    return [(score >= largest / 10) + (score >= largest / 2) for score in scores]


def _heat(canvas: Canvas, x: float, y: float, width: float, height: float, words: str | Fact, step: int, *, ring: bool = False) -> None:
    """A cell in one of three steps of heat; a ring marks the largest of its row."""
    canvas.rect(x, y, width, height, fill=("paper", "blue-tint", "blue")[step], stroke="faint" if step == 0 else "none", radius=2)
    if ring:
        canvas.rect(x - 3, y - 3, width + 6, height + 6, stroke="ink", radius=4, thick=1.5)
    canvas.text(
        x + width / 2,
        y + height / 2 + 4.5,
        [words],
        size=13,
        anchor="middle",
        tone="paper" if step == 2 else "ink",
        weight=600 if ring else 400,
    )


def matrix(canvas: Canvas) -> None:
    """Rows are positions, columns heads; the largest of a row is its score, and the score decides."""
    facts, narrow = canvas.facts, canvas.narrow
    scores = [[facts.stated(f"appendix.s13.{row}_heads", head) for head in range(len(HEADS))] for row, _, _ in POSITIONS]
    heat = steps([fact.value for line in scores for fact in line])
    first, cell, gap, tall = (4, 54, 9, 32) if narrow else (124, 76, 8, 40)
    rest, score, tier = (194, 214, 280) if narrow else (376, 512, 636)
    wide = 58 if narrow else 76
    pitch = 72 if narrow else 62
    for index, (head, kind) in enumerate(HEADS):
        x = first + index * (cell + gap) + cell / 2
        canvas.text(x, 12, head, weight=600, anchor="middle")
        canvas.text(x, 28, kind, size=12, tone="muted", anchor="middle")
    if narrow:
        canvas.text(rest + 2, 12, "…", weight=600, anchor="middle")
    else:
        canvas.text(rest + 46, 12, "h3 to h7", weight=600, anchor="middle")
        canvas.text(rest + 46, 28, "not printed", size=12, tone="muted", anchor="middle")
    canvas.text(score + wide / 2, 12, "score", weight=600, anchor="middle")
    canvas.text(score + wide / 2, 28, "largest", size=12, tone="muted", anchor="middle")
    canvas.text(canvas.width if narrow else tier + 42, 12, "kept in", weight=600, anchor="end" if narrow else "middle")
    for line, (row, position, zone) in enumerate(POSITIONS):
        y = (62 if narrow else 44) + line * pitch
        if narrow:
            canvas.text(0, y - 10, ["position ", position, f", {zone}"], size=12.5)
        else:
            canvas.text(0, y + 18, ["position ", position], weight=600)
            canvas.text(0, y + 34, zone, size=12, tone="muted")
        values = [fact.value for fact in scores[line]]
        for index, fact in enumerate(scores[line]):
            _heat(
                canvas,
                first + index * (cell + gap),
                y,
                cell,
                tall,
                fact,
                heat[line * len(HEADS) + index],
                ring=values[index] == max(values),
            )
        if not narrow:
            canvas.rect(rest, y, 92, tall, stroke="faint", dash="3 3", radius=2)
            canvas.arrow(rest + 100, y + tall / 2, score - 8, y + tall / 2)
            canvas.arrow(score + wide + 10, y + tall / 2, tier - 10, y + tall / 2)
        else:
            canvas.arrow(rest - 2, y + tall / 2, score - 5, y + tall / 2)
        _heat(
            canvas,
            score,
            y,
            wide,
            tall,
            facts.published(f"appendix.s13.{row}_score"),
            max(heat[line * len(HEADS) : (line + 1) * len(HEADS)]),
        )
        near = DECISIONS[row] == "HBM"
        canvas.box(
            tier,
            y,
            canvas.width - tier,
            tall,
            DECISIONS[row],
            fill="blue-tint" if near else "green-tint",
            stroke="blue" if near else "green",
            weight=600,
        )
    y = (62 if narrow else 44) + (len(POSITIONS) - 1) * pitch + tall + 30
    for index, words in enumerate(("under a tenth of the largest score", "a tenth or more", "half or more")):
        x = (0 if narrow else first) + (0 if narrow else (0, 260, 404)[index])
        at = y + (index * 20 if narrow else 0)
        canvas.rect(x, at - 11, 18, 14, fill=("paper", "blue-tint", "blue")[index], stroke="faint" if index == 0 else "none", radius=2)
        canvas.text(x + 26, at, words, size=12, tone="muted")


DIAGRAMS = (
    Diagram(
        "13.1", "head_scores", "Scores by head, and the one that is kept", matrix,
        alt=(
            'Scores of heads 0, 1 and 2. Position 0: {{ stated("appendix.s13.system_heads") }}, the largest '
            '{{ printed("appendix.s13.system_score") }}, kept in HBM. Position 45,000: {{ stated("appendix.s13.middle_heads") }}, '
            'the largest {{ printed("appendix.s13.middle_score") }}, to CXL. Position 99,950: '
            '{{ stated("appendix.s13.recent_heads") }}, the largest {{ printed("appendix.s13.recent_score") }}, kept in HBM. Five '
            "more heads are not printed."
        ),
        caption=(
            "A ring marks the largest of its row. Tiers are as printed; the package names no cut between them for this score. Heads "
            "3–7 would have to score no higher than the three shown."
        ),
        source="the package's example",
        limits="Illustrative: no attention was measured.",
    ),
)  # fmt: skip
