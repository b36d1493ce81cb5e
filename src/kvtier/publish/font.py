"""The one font of charts, diagrams and pages: where its faces are, from a pinned package, and how wide a text is in it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import font_source_sans_pro
from fontTools.ttLib import TTFont

FAMILY = "Source Sans Pro"
FAMILIES = f"{FAMILY}, Helvetica, Arial, sans-serif"
"""The first is drawn and measured with; the others are for readers of an SVG who do not have it."""

FACES = {400: "Regular", 600: "Semibold"}
"""Faces of pictures, by weight."""


def path(face: str) -> Path:
    """File of a face: ``Regular``, ``It``, ``Semibold``."""
    return Path(font_source_sans_pro.font_directory, f"SourceSansPro-{face}.ttf")


@cache
def _advances(weight: int) -> tuple[dict[int, str], dict[str, tuple[int, int]], int]:
    font = TTFont(path(FACES[weight]))
    return font.getBestCmap(), font["hmtx"].metrics, font["head"].unitsPerEm


def measure(text: str, size: float, weight: int = 400) -> float:
    """Width of a text [px], without kerning.

    Parameters
    ----------
    text : str
    size : float
        Size of the font [px].
    weight : {400, 600}
    """
    glyphs, metrics, em = _advances(weight)
    return sum(metrics[glyphs.get(ord(letter), ".notdef")][0] for letter in text) * size / em
