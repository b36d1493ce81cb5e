"""Half-life of the decayed score, its published example, and placement where each signal is on or off."""

from __future__ import annotations

from itertools import product

import polars as pl

from kvtier.analytic import scoring
from kvtier.analytic.inputs import StatedInputs
from kvtier.frames import Table

EMA_HALF_LIFE = Table(
    "EMA half-life", {"alpha": pl.Float64(), "half_life_steps": pl.Float64(), "steps_per_s": pl.Float64(), "half_life_s": pl.Float64()}
)
"""Half-life of an untouched score by α, in decode steps and at the target decode rate."""

EMA_EXAMPLE = Table(
    "EMA example", {"alpha": pl.Float64(), "token": pl.String(), "step": pl.Int64(), "attention": pl.Float64(), "score": pl.Float64()}
)
"""Illustrative evolution of two scores, at the withdrawn α of the published example and at the present one."""

PLACEMENT = Table(
    "placement example",
    {"recency": pl.Float64(), "ema": pl.Float64(), "anchor": pl.Float64(), "priority": pl.Float64(), "tier": pl.String()},
)
"""Illustrative priority and tier where each signal is fully on or off."""


def half_lives(platform: StatedInputs, alphas: list[float]) -> pl.DataFrame:
    """``EMA_HALF_LIFE`` at these α and the stated one, largest first."""
    rate = float(platform.value("decode_rate"))
    rows = [
        {
            "alpha": alpha,
            "half_life_steps": scoring.half_life_steps(alpha),
            "steps_per_s": rate,
            "half_life_s": scoring.half_life_s(alpha, rate),
        }
        for alpha in sorted({float(alpha) for alpha in (*alphas, platform.value("ema_alpha"))}, reverse=True)
    ]
    return EMA_HALF_LIFE.check(pl.DataFrame(rows))


def example(platform: StatedInputs) -> pl.DataFrame:
    """``EMA_EXAMPLE``: both tokens at both α, from a score of 0."""
    rows = []
    for alpha, token in product((platform.value("ema_alpha_example"), platform.value("ema_alpha")), ("hot", "cold")):
        attention = platform.value(f"ema_example_{token}")
        for step, (value, score) in enumerate(zip(attention, scoring.ema_scores(alpha, attention), strict=True)):
            rows.append({"alpha": float(alpha), "token": token, "step": step, "attention": float(value), "score": score})
    return EMA_EXAMPLE.check(pl.DataFrame(rows))


def placement(platform: StatedInputs) -> pl.DataFrame:
    """``PLACEMENT`` of the eight corners."""
    rows = []
    for recency, ema, anchor in product((0.0, 1.0), repeat=3):
        priority = scoring.priority(recency, ema, anchor, platform.value("priority_weights"))
        tier = scoring.tier_of(priority, platform.value("priority_cuts"))
        rows.append({"recency": recency, "ema": ema, "anchor": anchor, "priority": priority, "tier": tier})
    return PLACEMENT.check(pl.DataFrame(rows))


def build(platform: StatedInputs, alphas: list[float]) -> dict[str, pl.DataFrame]:
    """All tables of the topic by name."""
    return {"ema_half_life": half_lives(platform, alphas), "ema_example": example(platform), "placement": placement(platform)}
