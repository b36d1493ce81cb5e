"""The page's font, inside the page: the pinned faces, cut down to the letters in use."""

from __future__ import annotations

import base64
import io
import string
from functools import cache

from fontTools import subset
from fontTools.ttLib import TTFont
from markupsafe import Markup

from kvtier.publish.font import FAMILY, path

FACES = ((400, "normal", "Regular"), (400, "italic", "It"), (600, "normal", "Semibold"))
LETTERS = string.printable + "\u00a0°±²³µ·×÷–—‘’“”•…→←↑↓−≈≤≥≠∞∑√αβγδεθλμπρστφωΔΣ⟨⟩⊂⋮⋯✓½§₀₁₂₃ᵢ₋ℓ"


@cache
def _face(name: str) -> str:
    font = TTFont(path(name), recalcTimestamp=False)
    options = subset.Options(layout_features=["kern", "tnum", "liga", "sups", "subs"], hinting=False, notdef_outline=True)
    cutter = subset.Subsetter(options)
    cutter.populate(text=LETTERS)
    cutter.subset(font)
    written = io.BytesIO()
    font.save(written)
    return base64.b64encode(written.getvalue()).decode()


def faces() -> Markup:
    """``@font-face`` rules with the faces as data."""
    shape = "@font-face{{font-family:'{}';font-weight:{};font-style:{};font-display:block;src:url(data:font/ttf;base64,{})}}"
    return Markup("\n").join(Markup(shape).format(FAMILY, weight, style, _face(name)) for weight, style, name in FACES)
