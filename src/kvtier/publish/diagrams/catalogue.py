"""All structural diagrams, by number."""

from __future__ import annotations

from kvtier.errors import InputError
from kvtier.publish.diagrams import (
    Diagram,
    attention,
    cxl,
    ema,
    gqa,
    head_scores,
    heads,
    kv_cache,
    locality,
    memory_wall,
    phases,
    prefetch,
    priority,
    rotary,
    systems,
    tiers,
    transformer,
)

# By name, so that a build sees which files it depends on.
MODULES = (
    attention,
    cxl,
    ema,
    gqa,
    head_scores,
    heads,
    kv_cache,
    locality,
    memory_wall,
    phases,
    prefetch,
    priority,
    rotary,
    systems,
    tiers,
    transformer,
)


def _order(number: str) -> tuple[int, ...]:
    # Those of the appendix, then those that begin with the name of another page.
    return not number[0].isdigit(), *(int(part) for part in number.split(".") if part.isdigit())


def read() -> dict[str, Diagram]:
    """Every entry of the ``DIAGRAMS`` of each module in this folder, in the order of the numbers.

    Raises
    ------
    InputError
        If two share a number or a name.
    """
    found: dict[str, Diagram] = {}
    for module in MODULES:
        for diagram in module.DIAGRAMS:
            if diagram.number in found or diagram.name in {other.name for other in found.values()}:
                raise InputError(module.__name__, diagram.number, "the number or name twice", "one diagram each")
            found[diagram.number] = diagram
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))
