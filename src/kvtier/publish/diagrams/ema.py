"""Part 11: how touches and decay make an EMA score, and the worked example of the package."""

from __future__ import annotations

from kvtier.publish import series
from kvtier.publish.diagrams import Diagram
from kvtier.publish.drawing import Canvas, Words, measure

TOUCHES = (2, 3, 5, 6, 8, 12, 44, 45)
"""Steps of the drawn example at which a block is read; invented."""
STEPS = 64
KNOB = (
    ("ema05", "the last touch decides: near LRU"),
    ("ema005", "touches count, and fade"),
    ("ema0001", "touches add up: near LFU"),
)
"""An α of the sweep near each end and one between, and how its score orders blocks."""


def scores(alpha: float, touches: tuple[int, ...] = TOUCHES, steps: int = STEPS) -> list[float]:
    """Score of a block after each step, from nothing: attention is 1 at a touch and 0 elsewhere.

    Parameters
    ----------
    alpha : float
    touches : tuple of int
        Steps at which the block is read.
    steps : int
    """
    found, score = [], 0.0
    for step in range(steps):
        score = alpha * (step in touches) + (1 - alpha) * score
        found.append(score)
    return found


def _alpha(policy: str) -> str:
    return f"α = {series.alpha_of(policy)}"


def _rule(canvas: Canvas, y: float) -> float:
    """The rule in boxes; returns where the next thing may start."""
    narrow = canvas.narrow
    tall = 44
    terms: tuple[tuple[str, str, str, float], ...] = (
        ("score", "now", "blue-tint", 62 if narrow else 118),
        ("=", "", "", 20 if narrow else 34),
        ("α", "", "", 13 if narrow else 40),
        ("·", "", "", 10 if narrow else 20),
        ("attention", "now", "ochre-tint", 66 if narrow else 118),
        ("+", "", "", 18 if narrow else 34),
        ("(1 − α)", "", "", 47 if narrow else 86),
        ("·", "", "", 10 if narrow else 20),
        ("score", "before", "blue-tint", 62 if narrow else 118),
    )
    x = (canvas.width - sum(term[-1] for term in terms)) / 2
    places = []
    for words, note, tone, wide in terms:
        if tone:
            canvas.box(x, y, wide, tall, words, fill=tone, size=13.5, note=note, pad=2)
        else:
            canvas.text(x + wide / 2, y + 27, words, size=15 if narrow else 17, anchor="middle")
        places.append((x, x + wide))
        x += wide
    for place, words in ((places[2], "what is new"), (places[6], "what is kept")) if not narrow else ():
        canvas.text((place[0] + place[1]) / 2, y + 48, words, size=12, anchor="middle", tone="muted")
    # What is now will be before: the score is fed back.
    left, right, below = sum(places[0]) / 2, sum(places[-1]) / 2, y + tall + 20
    canvas.path(f"M{left:.1f} {y + tall + 3}V{below - 6}q0 6 6 6H{right - 6:.1f}q6 0 6 -6", bottom=below, stroke="blue", thick=1.25)
    canvas.arrow(right, below - 6, right, y + tall + 2, tone="blue")
    canvas.text((left + right) / 2, below + 4, " at the next step ", size=12, anchor="middle", tone="blue", rim="paper")
    return below + 16


def _strip(canvas: Canvas, policy: str, y: float, wide: float, tall: float) -> list[tuple[float, float]]:
    """One score over the steps, to its own height; returns its points."""
    alpha = float(series.alpha_of(policy) or 0)
    found = scores(alpha)
    step, base = wide / STEPS, y + tall
    rise = (tall - 4) / max(found)
    points = [((index + 0.5) * step, base - score * rise) for index, score in enumerate(found)]
    # It fades to each touch, and there it jumps.
    line = f"M0 {base:.1f}"
    for index, (x, level) in enumerate(points):
        if index in TOUCHES:
            faded = (1 - alpha) * found[index - 1]
            line += f"L{x:.1f} {base - faded * rise:.1f}V{level:.1f}"
        else:
            line += f"L{x:.1f} {level:.1f}"
    line += f"H{wide:.1f}"
    canvas.path(f"{line}V{base:.1f}Z", bottom=base, fill="blue-tint", stroke="none")
    canvas.path(line, bottom=base, stroke="blue", thick=1.5)
    canvas.line(0, base, wide, base, tone="muted")
    return points


def update_rule(canvas: Canvas) -> None:
    """The rule with its feedback; below, the same touches scored with three α, each to its own height."""
    facts, narrow = canvas.facts, canvas.narrow
    y = _rule(canvas, 6) + (20 if narrow else 28)
    wide = canvas.width if narrow else 468
    tall, gap = (52, 60) if narrow else (60, 28)
    canvas.text(0, y, "One block, touched now and then", weight=600)
    y += 48 if narrow else 20
    top = y
    for policy, meaning in KNOB:
        half_life = facts.num(f"analytic.ema.alpha{policy.removeprefix('ema')}.half_life_steps")
        told: Words = ["half-life ", half_life]
        if narrow:
            canvas.text(0, y - 22, _alpha(policy), weight=600)
            canvas.text(canvas.width, y - 22, told, anchor="end")
            canvas.text(0, y - 6, meaning, size=12, tone="muted")
        else:
            canvas.text(wide + 28, y + 18, _alpha(policy), weight=600)
            canvas.text(canvas.width, y + 18, told, anchor="end")
            canvas.text(wide + 28, y + 38, meaning, size=12.5, tone="muted")
        points = _strip(canvas, policy, y, wide, tall)
        if policy == "ema005":
            x, level = points[TOUCHES[5]]
            long, base = half_life.value * wide / STEPS, y + tall
            half = base - (base - level) / 2
            canvas.line(x, level, x + long, level, tone="ink", dash="2 3")
            canvas.line(x + long, level, x + long, half, tone="ink", dash="2 3")
            canvas.arrow(x + long, level, x + long, half, tone="ink", head=4)
            canvas.text(x + long + 7, (level + half) / 2 + 4, "half" if narrow else ["half, after ", half_life], size=12)
        y += tall + gap
    y += -gap + 6
    for touch in TOUCHES:
        x = (touch + 0.5) * wide / STEPS
        canvas.line(x, y, x, y + 9, tone="ochre", thick=2)
    canvas.line(0, y + 9, wide, y + 9, tone="faint")
    canvas.text(0, y + 25, "touches", size=12, tone="ochre")
    canvas.text(wide, y + 25, "steps →", size=12, anchor="end", tone="muted")
    canvas.space(max(y + 28, top))


EXAMPLE = (
    ("hot", "A token of the system prompt", "System token"),
    ("cold", "A token in mid-context", "Mid-context token"),
)
EXAMPLE_STEPS = ("0", "1", "2")


def example(canvas: Canvas) -> None:
    """Attention and both scores of two tokens, step by step, bars to one scale and their values below."""
    facts, narrow = canvas.facts, canvas.narrow
    label, gap = (96, 0) if narrow else (140, 36)
    wide = canvas.width - label if narrow else (canvas.width - label - gap) / 2
    column = wide / len(EXAMPLE_STEPS)
    tall, row = (96, 22) if narrow else (136, 24)
    highest = max(facts.stated(f"appendix.s11.hot_attention{step}").value for step in EXAMPLE_STEPS)
    rows = (
        ("attention", "attention", "ochre-tint", "ochre", ""),
        (_alpha("ema005") if narrow else f"score, {_alpha('ema005')}", "in_force", "blue", "blue", ""),
        ("withdrawn α" if narrow else "score, withdrawn α", "withdrawn", "paper", "muted", "3 2"),
    )
    y, bar = 16.0, 16 if narrow else 18
    if not narrow:
        canvas.paragraph(0, y, label - 24, "From nothing, a score takes up a share α of the attention at each step.", size=12, tone="muted")
    for index, (token, name, short) in enumerate(EXAMPLE):
        x = label + (0 if narrow else index * (wide + gap))
        canvas.text(x, y, short if narrow else name, weight=600)
        room = 20 if narrow and token == "cold" else tall
        base = y + 14 + room
        if index:
            canvas.text(x + wide, y, "to the same scale", size=12, anchor="end", tone="muted")
        for place, step in enumerate(EXAMPLE_STEPS):
            values = {
                "attention": facts.stated(f"appendix.s11.{token}_attention{step}"),
                "in_force": facts.num(f"analytic.ema.example.{token}.alpha005.step{step}"),
                "withdrawn": facts.both(f"appendix.s11.{token}_score{step}"),
            }
            middle = x + (place + 0.5) * column
            for order, (_, kind, fill, stroke, dash) in enumerate(rows):
                high = values[kind].value / highest * tall
                left = middle + (order - 1.5) * (bar + 3) + 1.5
                if high:
                    canvas.rect(left, base - high, bar, high, fill=fill, stroke=stroke, dash=dash, radius=0)
                canvas.text(middle, base + 42 + order * row, values[kind], size=12.5, anchor="middle")
            canvas.text(middle, base + 18, f"step {step}", size=12, anchor="middle", tone="muted")
        canvas.line(x, base, x + wide, base, tone="muted")
        if narrow or not index:
            for order, (words, _, fill, stroke, dash) in enumerate(rows):
                at = base + 42 + order * row
                canvas.rect(0.5, at - 9, 9, 9, fill=fill, stroke=stroke, dash=dash and "2 2", radius=0)
                canvas.text(16, at, words, size=12.5)
        for order in range(len(rows)):
            at = base + 26 + order * row
            start, end = (0 if narrow or not index else x), x + wide
            canvas.line(start, at, end, at, tone="faint")
        if narrow:
            y = base + 26 + len(rows) * row + 34
    canvas.space(canvas.bottom + measure(" ", 12))


DIAGRAMS = (
    Diagram(
        "11.1", "ema_rule", "One touch, and how it fades", update_rule,
        alt=(
            'The score now is α times the attention now plus one minus α times the score before; at the next step it is the score '
            'before. Below, one block with the same touches under three α. A score that is not touched halves in {{ '
            'num("analytic.ema.alpha05.half_life_steps") }} at α = 0.5, where the last touch decides as in LRU; in {{ '
            'num("analytic.ema.alpha005.half_life_steps") }} at α = 0.05; in {{ num("analytic.ema.alpha0001.half_life_steps") }} '
            'at α = 0.001, where touches add up as in LFU.'
        ),
        caption=(
            "Curves are computed from the rule, each drawn to its own height; the touches are invented. Half-life: ln 0.5 / "
            "ln (1&nbsp;−&nbsp;α), in decode steps. The simulators decay by the turn, so there the same α fades over turns."
        ),
        source="the rule, no workload",
        limits="The touches are illustrative; the half-lives follow from α.",
    ),
    Diagram(
        "11.2", "ema_example", "Two tokens, three steps, two α", example,
        alt=(
            '{% for token, name in [("hot", "A token of the system prompt"), ("cold", "A token in mid-context")] %}{{ name }}: {% '
            'for step in ["0", "1", "2"] %}attention {{ stated("appendix.s11." ~ token ~ "_attention" ~ step) }}, score {{ '
            'num("analytic.ema.example." ~ token ~ ".alpha005.step" ~ step) }} at α = 0.05 and {{ both("appendix.s11." ~ token ~ '
            '"_score" ~ step) }} at the withdrawn α{{ "; " if not loop.last else ". " }}{% endfor %}{% endfor %}'
        ),
        caption=(
            "Both tokens to one scale, scores from nothing. Three steps are far less than a half-life, so no score has reached the "
            "attention it follows."
        ),
        source="attention as stated by the package",
        limits="Illustrative: no attention was measured.",
    ),
)  # fmt: skip
