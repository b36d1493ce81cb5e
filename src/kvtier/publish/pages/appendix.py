"""The visual appendix: sixteen parts, as the technical appendix has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One of the sixteen parts."""

    number: int
    title: str


PARTS = tuple(
    Part(number, title)
    for number, title in enumerate(
        (
            "The transformer",
            "Attention",
            "The KV cache",
            "Prefill and decode",
            "The memory wall",
            "Locality of attention",
            "Rotary positions",
            "Kinds of heads",
            "CXL memory",
            "Four tiers",
            "The EMA score",
            "Priority",
            "Scores of heads",
            "Prefetching",
            "Hit rates",
            "What stands",
        ),
        start=1,
    )
)
