"""Half-life by α, the EMA example, and the constants of priority and prefetch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from kvtier.analytic.inputs import StatedInputs
from kvtier.analytic.labelling import derived, restated
from kvtier.analytic.numbers.attention import two_digits
from kvtier.evidence.numbers import Number

CONSTANTS: dict[str, tuple[str, int, int]] = {
    "priority.weight_recency": ("priority_weights", 0, 2),
    "priority.weight_ema": ("priority_weights", 1, 2),
    "priority.weight_anchor": ("priority_weights", 2, 2),
    "priority.cut_hbm": ("priority_cuts", 0, 1),
    "priority.cut_pinned": ("priority_cuts", 1, 1),
    "prefetch.weight_rope": ("prefetch_weights", 0, 1),
    "prefetch.weight_ema": ("prefetch_weights", 1, 1),
}
"""Key to input, place in its list and decimals."""

NOT_THE_SIMULATORS = "does not apply to the simulators, whose step is a turn"


def key_of(alpha: float) -> str:
    """0.05 is 005, as in the keys of the simulated policies."""
    return f"{alpha:g}".replace(".", "")


def of_half_life(platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Half-life in decode steps and in seconds at the target rate."""
    rate = platform["decode_rate"]
    for row in table.iter_rows(named=True):
        name, formula = f"analytic.ema.alpha{key_of(row['alpha'])}", f"ln 0.5 / ln(1 - {row['alpha']:g})"
        words = f"decode steps in which an untouched score halves: {formula}; {NOT_THE_SIMULATORS}"
        yield derived(f"{name}.half_life_steps", row["half_life_steps"], "steps", 1, [], words)
        pace = f"{row['steps_per_s']:g} decode steps a second (one a token, a design target)"
        words = f"time in which an untouched score halves at {pace}: {formula} / rate"
        yield derived(f"{name}.half_life_s", row["half_life_s"], "s", 2, [rate], f"{words}; {NOT_THE_SIMULATORS}")


def of_example(platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Scores of the example's tokens, step by step."""
    for row in table.iter_rows(named=True):
        name = f"analytic.ema.example.{row['token']}.alpha{key_of(row['alpha'])}.step{row['step']}"
        words = f"example score after step {row['step']}, attention {row['attention']:g}, alpha {row['alpha']:g}, start 0"
        # The α is part of the key: withdrawn was the choice of 0.2, not the arithmetic at it.
        digits = max(4, two_digits(row["score"]))
        yield derived(name, row["score"], "", digits, platform.entries(f"ema_example_{row['token']}"), words)
    for token in ("hot", "cold"):
        attention = platform[f"ema_example_{token}"]
        for step, value in enumerate(attention.value):
            words = f"attention that the example's {token} token gets in step {step}, as stated"
            yield restated(f"analytic.ema.attention.{token}.step{step}", value, "", 3, attention, words)


def of_constants(platform: StatedInputs) -> Iterator[Number]:
    """Constants as stated."""
    for key, (name, index, digits) in CONSTANTS.items():
        words = "stated constant, never fitted"
        yield restated(f"analytic.{key}", platform.value(name)[index], "", digits, platform[name], words)
    scale, words = platform["prefetch_scale"], "stated constant of 1/(1 + distance/scale), never fitted"
    yield restated("analytic.prefetch.scale_tokens", scale.value, "tokens", 0, scale, words)


def numbers(platform: StatedInputs, tables: Mapping[str, pl.DataFrame]) -> Iterator[Number]:
    """All numbers of the topic; `tables` as :func:`kvtier.analytic.tables.scoring.build` makes them."""
    yield from of_half_life(platform, tables["ema_half_life"])
    yield from of_example(platform, tables["ema_example"])
    yield from of_constants(platform)
