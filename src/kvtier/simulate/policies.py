"""Eviction policies by name and parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

NAMES = ("lru", "lfu", "ema", "fifo", "sieve", "s3fifo", "min")

REVISION2 = ("lru", "lfu", "ema")
"""Policies that Revisions 1 and 2 know; the others are asked request by request (:mod:`kvtier.simulate.requests`)."""

STATELESS = ("lru", "fifo", "sieve", "s3fifo", "min")
"""Policies that keep nothing of a block that could be chosen to survive its eviction."""


@dataclass(frozen=True)
class Policy:
    """An eviction policy.

    Parameters
    ----------
    name : {'lru', 'lfu', 'ema', 'fifo', 'sieve', 's3fifo', 'min'}
        Least recently used; least frequently used; decayed frequency, published as LRFU (Lee et al., SIGMETRICS 1999); first in, first
        out; SIEVE (Zhang et al., NSDI 2024); S3-FIFO (Yang et al., SOSP 2023); farthest next request (Belady, 1966).
    alpha : float, optional
        Weight of the newest touch in the decayed frequency, in (0, 1); ``ema`` only.
    persistent : bool
        Whether a block's count or score survives its eviction.

    Raises
    ------
    ValueError
        If the name is unknown, `alpha` is missing, out of range or given to another policy, or `persistent` is asked of a policy
        that has no state to keep.
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
        if self.persistent and self.name in STATELESS:
            raise ValueError(f"persistent: expected lfu or ema, not {self.name}, which has no state that could survive an eviction")

    @property
    def title(self) -> str:
        """Name as the published records print it."""
        if self.name == "s3fifo":
            return "S3-FIFO"
        return self.name.upper() if self.alpha is None else f"EMA a={self.alpha:g}"

    @property
    def slug(self) -> str:
        """Name inside a number key: ``lru``, ``ema015``, ``ema0003``."""
        return self.name if self.alpha is None else f"ema{self.alpha:g}".replace(".", "")


@lru_cache(maxsize=64)
def decay(alpha: float | None, turns: int) -> tuple[float, np.ndarray, float]:
    """What a touch adds, what elapsed turns leave, and the rate of the key, as the references compute them.

    Parameters
    ----------
    alpha : float or None
        None for a policy without decay.
    turns : int
        Most turns that can elapse.

    Returns
    -------
    weight : float
        α.
    decay : ndarray of float64, shape (turns + 1,)
        (1 − α)^n for n elapsed turns. Shared between calls: not to be written to.
    rate : float
        −ln(1 − α), by which the key rises each turn (SPEC §4).
    """
    if alpha is None:
        return 0.0, np.ones(1), 0.0
    return alpha, np.array([(1 - alpha) ** elapsed for elapsed in range(turns + 1)]), -math.log(1 - alpha)


def slug(row: Mapping[str, Any]) -> str:
    """Policy of a table row, as a number key names it."""
    return Policy(row["policy"], row["alpha"]).slug


LRU = Policy("lru")
LFU = Policy("lfu")
FIFO = Policy("fifo")
SIEVE = Policy("sieve")
S3FIFO = Policy("s3fifo")
MIN = Policy("min")


def ema(alpha: float, *, persistent: bool = False) -> Policy:
    """Decayed frequency with weight `alpha`."""
    return Policy("ema", alpha, persistent)


PUBLISHED = (LRU, LFU, ema(0.15), ema(0.01))
"""The four policies of the published tables, in their order."""
