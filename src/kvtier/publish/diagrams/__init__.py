"""Structural diagrams: what each shows, and a function that draws it on a canvas of any width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kvtier.publish.drawing import Canvas


@dataclass(frozen=True)
class Diagram:
    """A drawing with everything that must be said about it.

    Parameters
    ----------
    number : str
        As the technical appendix numbers it: ``3.2``.
    name : str
        File stem; unique.
    title : str
        One line; says what is drawn, never a result typed by hand.
    draw : callable
        Draws on a canvas, wide or narrow.
    alt : str
        The drawing in words, a template: values by ``num()``, ``stated()`` and ``both()`` alone.
    caption : str
        Under the drawing: what is counted, what is left out; a template like `alt`.
    source : str
        Model, platform or revision, drawn beside the evidence label.
    limits : str
        One line that limits what it shows, where no standing caveat applies; may be empty.
    """

    number: str
    name: str
    title: str
    draw: Callable[[Canvas], None]
    alt: str
    caption: str = ""
    source: str = ""
    limits: str = ""
