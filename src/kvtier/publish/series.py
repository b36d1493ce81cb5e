"""What is drawn, by name: order, title, colour, dash and marker of every policy, the same in every figure and table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kvtier.publish.palette import LIGHT

INK, MUTED, FAINT, PAPER = (LIGHT[name] for name in ("ink", "muted", "faint", "paper"))


HOLLOW = {"filled": False, "fill": PAPER, "strokeWidth": 1.5}
"""A marker with paper inside, for what a filled one is compared with."""


@dataclass(frozen=True)
class Style:
    """How a series is drawn. Colour, dash and marker each tell it apart, so that print and colour-blind readers can."""

    colour: str
    dash: tuple[int, ...]
    shape: str


STYLES = {
    "lru": Style(INK, (1, 0), "circle"),
    "lfu": Style(LIGHT["ochre"], (2, 3), "square"),
    "ema": Style(LIGHT["blue"], (1, 0), "diamond"),
    "ema001": Style(LIGHT["rose"], (6, 3), "triangle-up"),
    "min": Style(LIGHT["green"], (8, 3, 2, 3), "cross"),
}
"""Policies; ``ema`` is any alpha that has no style of its own. The fifth colour is that of the optimum."""

RANKS = {
    word: rank
    for words in (("lru", "lfu", "ema", "min"), ("zipf", "scan", "loop"), ("reset", "persistent", "gain"))
    for rank, word in enumerate(words)
}


def slug(policy: str, alpha: float | None) -> str:
    """Policy of a table row as number keys name it: ``lru``, ``ema015``."""
    return policy if alpha is None else f"{policy}{alpha:g}".replace(".", "")


def alpha_of(policy: str) -> str | None:
    """Alpha inside ``ema0003`` or ``alpha0003``, written out: 0.003; None if there is none."""
    found = re.fullmatch(r"(?:ema|alpha)(\d)(\d+)", policy)
    return f"{found[1]}.{found[2]}" if found else None


TITLES = {
    "farthest": "farthest next turn",
    "lru2": "LRU-2",
    "s3fifo": "S3-FIFO",
    "unbounded": "unbounded HBM",
    "none": "none",
}
"""Policies whose slug is not their name in small letters."""

SUFFIXES = {"persistent": "state kept", "demotes": "demotes"}


def title(policy: str) -> str:
    """Policy as a reader meets it: LRU, EMA 0.15, LFU, state kept."""
    base, _, suffix = policy.partition("_")
    if suffix:
        return f"{title(base)}, {SUFFIXES.get(suffix, suffix)}"
    if alpha := alpha_of(base):
        return f"EMA {alpha}"
    if found := re.fullmatch(r"priority(\d)(\d+)", base):
        return f"priority, α {found[1]}.{found[2]}"
    if found := re.fullmatch(r"look(\d+)", base):
        return f"look-ahead, {found[1]} turns"
    return TITLES.get(base, base.upper())


def style(policy: str) -> Style:
    """Style of a policy by its slug."""
    return STYLES.get(policy, STYLES["ema"]) if alpha_of(policy) else STYLES[policy]


def order(word: str) -> tuple[float | str, ...]:
    """Sort key of a swept value inside a key: policies, workloads and states as told, sizes and contexts by size, alpha falling."""
    if word in RANKS:
        return (0, RANKS[word])
    alpha = alpha_of(word)
    if alpha is not None:
        return (1, -float(alpha))
    if re.fullmatch(r"\d+x\d+", word):
        return (2, *map(int, word.split("x")))
    number = re.match(r"(?:mfu|base)?(\d+)([km]?)", word)
    if number:
        return (2, int(number[1]) * {"": 1, "k": 2**10, "m": 2**20}[number[2]])
    return (3, word)
