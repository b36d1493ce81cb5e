"""All structural diagrams, by number."""

from __future__ import annotations

import importlib
import pkgutil

from kvtier.errors import InputError
from kvtier.publish import diagrams
from kvtier.publish.diagrams import Diagram


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
    for module in pkgutil.iter_modules(diagrams.__path__):
        for diagram in getattr(importlib.import_module(f"{diagrams.__name__}.{module.name}"), "DIAGRAMS", ()):
            if diagram.number in found or diagram.name in {other.name for other in found.values()}:
                raise InputError(module.name, diagram.number, "the number or name twice", "one diagram each")
            found[diagram.number] = diagram
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))
