"""Half-life of the decayed score, its published example, and placement where each signal is on or off."""

from itertools import product

import polars as pl

from kvtier.analytic import scoring, tables
from kvtier.analytic.inputs import StatedInputs, load_platform
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.files import write_atomically
from kvtier.jobs import reporting


def half_lives(platform: StatedInputs, alphas: list[float]) -> pl.DataFrame:
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
    return tables.EMA_HALF_LIFE.check(pl.DataFrame(rows))


def example(platform: StatedInputs) -> pl.DataFrame:
    rows = []
    for alpha, token in product((platform.value("ema_alpha_example"), platform.value("ema_alpha")), ("hot", "cold")):
        attention = platform.value(f"ema_example_{token}")
        for step, (value, score) in enumerate(zip(attention, scoring.ema_scores(alpha, attention), strict=True)):
            rows.append({"alpha": float(alpha), "token": token, "step": step, "attention": float(value), "score": score})
    return tables.EMA_EXAMPLE.check(pl.DataFrame(rows))


def placement(platform: StatedInputs) -> pl.DataFrame:
    rows = []
    for recency, ema, anchor in product((0.0, 1.0), repeat=3):
        priority = scoring.priority(recency, ema, anchor, platform.value("priority_weights"))
        tier = scoring.tier_of(priority, platform.value("priority_cuts"))
        rows.append({"recency": recency, "ema": ema, "anchor": anchor, "priority": priority, "tier": tier})
    return tables.PLACEMENT.check(pl.DataFrame(rows))


def build(platform: StatedInputs, alphas: list[float]) -> dict[str, pl.DataFrame]:
    return {"ema_half_life": half_lives(platform, alphas), "ema_example": example(platform), "placement": placement(platform)}


def key_of(alpha: float) -> str:
    """0.05 is 005, as in the keys of the simulated policies."""
    return f"{alpha:g}".replace(".", "")


def ledger(platform: StatedInputs, frames: dict[str, pl.DataFrame]) -> list[Number]:
    found = []
    for row in frames["ema_half_life"].iter_rows(named=True):
        name, words = f"analytic.ema.alpha{key_of(row['alpha'])}", f"ln 0.5 / ln(1 - {row['alpha']:g})"
        found += [
            Number(
                f"{name}.half_life_steps",
                row["half_life_steps"],
                "steps",
                1,
                Label.ANALYTICAL,
                f"steps in which an untouched score halves: {words}",
            ),
            Number(
                f"{name}.half_life_s",
                row["half_life_s"],
                "s",
                2,
                Label.ANALYTICAL,
                f"{words} / {row['steps_per_s']:g} tokens/s (design target)",
            ),
        ]
    for row in frames["ema_example"].iter_rows(named=True):
        found.append(
            Number(
                f"analytic.ema.example.{row['token']}.alpha{key_of(row['alpha'])}.step{row['step']}",
                row["score"],
                "",
                4,
                Label.ILLUSTRATIVE,
                f"example score after step {row['step']}, attention {row['attention']:g}, alpha {row['alpha']:g}, start 0",
            )
        )
    constants = {
        "priority.weight_recency": ("priority_weights", 0, 2),
        "priority.weight_ema": ("priority_weights", 1, 2),
        "priority.weight_anchor": ("priority_weights", 2, 2),
        "priority.cut_hbm": ("priority_cuts", 0, 1),
        "priority.cut_pinned": ("priority_cuts", 1, 1),
        "prefetch.weight_rope": ("prefetch_weights", 0, 1),
        "prefetch.weight_ema": ("prefetch_weights", 1, 1),
    }
    for key, (name, index, digits) in constants.items():
        found.append(
            Number(f"analytic.{key}", platform.value(name)[index], "", digits, platform[name].label, "stated constant, never fitted")
        )
    scale = platform["prefetch_scale"]
    found.append(
        Number(
            "analytic.prefetch.scale_tokens",
            scale.value,
            "tokens",
            0,
            scale.label,
            "stated constant of 1/(1 + distance/scale), never fitted",
        )
    )
    return found


if __name__ == "__main__":
    with reporting(snakemake):
        platform = load_platform(snakemake.input.platform)
        frames = build(platform, snakemake.params.ema_alpha)
        for name, frame in frames.items():
            write_atomically(snakemake.output[name], frame.write_csv())
        numbers.write(snakemake.output.numbers, ledger(platform, frames), snakemake)
