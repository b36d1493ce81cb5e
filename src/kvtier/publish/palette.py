"""Colours and evidence badges: one definition for charts, diagrams and pages."""

from __future__ import annotations

from dataclasses import dataclass

from kvtier.evidence.labels import Label

COLOURS = {
    "paper": ("#ffffff", "#15181b"),
    "ink": ("#1f2328", "#e7e9eb"),
    "muted": ("#5c636b", "#a6aeb6"),
    "faint": ("#d5d9dd", "#3b4248"),
    "grey": ("#eef0f2", "#23282d"),
    "blue": ("#004488", "#8fbdf0"),
    "blue-tint": ("#dbe7f4", "#1c3047"),
    "ochre": ("#8a5f00", "#e0b154"),
    "ochre-tint": ("#f6ead0", "#3a3018"),
    "rose": ("#a83a4e", "#f094a4"),
    "rose-tint": ("#f8e1e5", "#45262d"),
    "green": ("#117733", "#7ccf95"),
    "green-tint": ("#dcefe1", "#1b3926"),
}
"""Colours by name, on light and on dark paper. A tint carries words in ink; the full colour is for lines and for words on paper."""

LIGHT = {name: light for name, (light, _) in COLOURS.items()}
DARK = {name: dark for name, (_, dark) in COLOURS.items()}


@dataclass(frozen=True)
class Badge:
    """How an evidence class is drawn, in colours by name. No colour but greys: colours mean series."""

    fill: str = "paper"
    stroke: str = "faint"
    words: str = "ink"
    dash: tuple[int, ...] = ()


BADGES = {
    Label.MEASURED: Badge("ink", "ink", "paper"),
    Label.SIMULATED: Badge(stroke="ink", dash=(4, 2)),
    Label.ANALYTICAL: Badge(stroke="ink"),
}
"""Filled for what was measured, dashed for what was simulated; see :func:`badge` for the other classes."""


def badge(label: Label) -> Badge:
    """Look of a class; one that has none of its own has a faint outline."""
    return BADGES.get(label, Badge())
