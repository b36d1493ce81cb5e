"""Eviction policies by name and parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAMES = ("lru", "lfu", "ema")


@dataclass(frozen=True)
class Policy:
    """An eviction policy.

    Parameters
    ----------
    name : {'lru', 'lfu', 'ema'}
        Least recently used; least frequently used; decayed frequency, published as LRFU (Lee et al., SIGMETRICS 1999).
    alpha : float, optional
        Weight of the newest touch in the decayed frequency, in (0, 1); ``ema`` only.
    persistent : bool
        Whether a block's count or score survives its eviction.

    Raises
    ------
    ValueError
        If the name is unknown, or `alpha` is missing, out of range or given to another policy.
    """

    name: str
    alpha: float | None = None
    persistent: bool = False

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(f"policy {self.name!r}: expected one of {', '.join(NAMES)}")
        if self.name == "ema" and not (self.alpha is not None and 0.0 < self.alpha < 1.0):
            raise ValueError(f"alpha {self.alpha!r}: expected a number in (0, 1)")
        if self.name != "ema" and self.alpha is not None:
            raise ValueError(f"alpha {self.alpha!r}: expected none for {self.name}")

    @property
    def title(self) -> str:
        """Name as the published records print it."""
        return self.name.upper() if self.alpha is None else f"EMA a={self.alpha:g}"

    @property
    def slug(self) -> str:
        """Name inside a number key: ``lru``, ``ema015``, ``ema0003``."""
        return self.name if self.alpha is None else f"ema{self.alpha:g}".replace(".", "")


def slug(row: Mapping[str, Any]) -> str:
    """Policy of a table row, as a number key names it."""
    return Policy(row["policy"], row["alpha"]).slug


LRU = Policy("lru")
LFU = Policy("lfu")


def ema(alpha: float, *, persistent: bool = False) -> Policy:
    """Decayed frequency with weight `alpha`."""
    return Policy("ema", alpha, persistent)


PUBLISHED = (LRU, LFU, ema(0.15), ema(0.01))
"""The four policies of the published tables, in their order."""
