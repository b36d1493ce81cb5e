"""Diagrams as SVG: a canvas of a given width, text measured by the font's own metrics, colours by name.

A diagram is drawn twice for a page, wide and narrow, in colours that follow the page; and once for print, in fixed colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.publish.facts import Both, Fact, Facts, Kind
from kvtier.publish.font import FAMILIES, measure
from kvtier.publish.palette import LIGHT, badge

WIDE, NARROW = 720, 328
"""Widths of the two layouts [px]: the text column of a page, and that of a telephone."""

SMALLEST = 11.0
"""Smallest size of words [px]."""

Words = str | Fact | Both | Sequence[str | Fact | Both]
"""What a piece of text is made of: words, and values with their papers."""


def runs_of(words: Words) -> list[str | Fact | Both]:
    """Words as a list of runs."""
    return [words] if isinstance(words, str | Fact | Both) else list(words)


def plain(words: Words) -> str:
    """The text alone, recomputed values in place of published ones."""
    return "".join(run if isinstance(run, str) else (run.recomputed if isinstance(run, Both) else run).text for run in runs_of(words))


def wrap(words: Words, width: float, size: float, weight: int = 400) -> list[list[str | Fact | Both]]:
    """Lines of at most `width`; a value is never broken.

    Raises
    ------
    InputError
        If one word is wider than that.
    """
    pieces: list[str | Fact | Both] = []
    for run in runs_of(words):
        pieces += re.findall(r"\n|\s+|[^\s]+", run) if isinstance(run, str) else [run]
    # What touches without a space between stays together: a value and the comma behind it.
    groups: list[list[str | Fact | Both]] = [[]]
    for piece in pieces:
        if isinstance(piece, str) and not piece.strip():
            groups += [[piece], []]
        else:
            groups[-1].append(piece)
    lines: list[list[str | Fact | Both]] = [[]]
    for group in filter(None, groups):
        if group == ["\n"]:
            lines.append([])
            continue
        if isinstance(group[0], str) and not group[0].strip():
            if lines[-1]:
                lines[-1].append(" ")
            continue
        if lines[-1] and measure(plain([*lines[-1], *group]), size, weight) > width:
            lines.append([])
        if measure(plain(group), size, weight) > width + 0.5:
            raise InputError("drawing", repr(plain(group)), f"{measure(plain(group), size, weight):.0f} px", f"{width:.0f} px at most")
        lines[-1] += group
    for line in lines:
        while line and line[-1] == " ":
            line.pop()
    return lines


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Canvas:
    """A drawing that grows downwards.

    Places and sizes are in px from its top left corner; `tone`, `fill` and `stroke` are names of :mod:`kvtier.publish.palette`, or
    ``none``; `thick` is the width of a line, `dash` its pattern as SVG writes it (``4 2``), empty for a full one.

    Parameters
    ----------
    width : float
        Width [px]; a drawing asks `narrow` and arranges itself.
    facts : Facts
        Numbers come from here alone.
    page : bool
        Whether colours follow the page, and values are links; else they are fixed, for print.
    """

    def __init__(self, width: float, facts: Facts, *, page: bool = True) -> None:
        self.width = width
        self.facts = facts
        self.page = page
        self.bottom = 0.0
        self._marks: list[str] = []

    @property
    def narrow(self) -> bool:
        """Whether this is the layout for a telephone."""
        return self.width < 500

    def colour(self, tone: str) -> str:
        """A colour by its name, as SVG takes it; ``none`` for none.

        Raises
        ------
        InputError
            If the palette has no such name.
        """
        if tone == "none":
            return tone
        if tone not in LIGHT:
            raise InputError("drawing", "colour", tone, f"one of {', '.join(LIGHT)}")
        return f"var(--{tone})" if self.page else LIGHT[tone]

    def _add(self, mark: str, bottom: float) -> None:
        self._marks.append(mark)
        self.bottom = max(self.bottom, bottom)

    def space(self, bottom: float) -> None:
        """Reach down to `bottom` at least."""
        self.bottom = max(self.bottom, bottom)

    # Words

    def _value(self, fact: Fact) -> str:
        if fact.kind is Kind.RETRACTED:
            raise InputError("drawing", fact.ref, "a retracted value", "it in its retraction box alone")
        text = escape(fact.text, quote=False)
        return f'<a class="num {fact.kind}" href="#{escape(fact.ref)}">{text}</a>' if self.page else text

    def _runs(self, runs: Iterable[str | Fact | Both], *, published: bool) -> str:
        found = []
        for run in runs:
            if isinstance(run, Both):
                found.append(self._value(run.published if published else run.recomputed))
            else:
                found.append(escape(run, quote=False) if isinstance(run, str) else self._value(run))
        return "".join(found)

    def text(
        self,
        x: float,
        y: float,
        words: Words,
        *,
        size: float = 13,
        weight: int = 400,
        anchor: str = "start",
        tone: str = "ink",
        turned: bool = False,
        rim: str = "",
    ) -> float:
        """Words on the base line `y`; returns their width [px].

        Parameters
        ----------
        x, y : float
            Where they start, end or have their middle, by `anchor`.
        words : Words
        size : float
            Size [px], `SMALLEST` or more.
        weight : {400, 600}
        anchor : {'start', 'middle', 'end'}
        tone : str
            Colour by name; not a tint.
        turned : bool
            Whether they read upwards.
        rim : str
            Colour by name of a rim that keeps lines off the words; none if empty.

        Raises
        ------
        InputError
            If they are too small, or would leave the drawing.
        """
        if size < SMALLEST:
            raise InputError("drawing", repr(plain(words)), f"words of {size} px", f"{SMALLEST} px or more")
        runs, wide = runs_of(words), measure(plain(words), size, weight)
        if not turned:
            left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
            if left < -0.5 or left + wide > self.width + 0.5:
                raise InputError("drawing", repr(plain(words)), f"words from {left:.0f} to {left + wide:.0f} px", f"0 to {self.width:g}")
        place = f'transform="translate({_number(x)} {_number(y)}) rotate(-90)"' if turned else f'x="{_number(x)}" y="{_number(y)}"'
        look = f'font-size="{_number(size)}" fill="{self.colour(tone)}"'
        look += f' font-weight="{weight}"' if weight != 400 else ""
        look += f' text-anchor="{anchor}"' if anchor != "start" else ""
        if rim:
            look += f' stroke="{self.colour(rim)}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
        if self.page and any(isinstance(run, Both) for run in runs):
            for name, published in (("as-published", True), ("as-recomputed", False)):
                self._add(f'<text class="{name}" {place} {look}>{self._runs(runs, published=published)}</text>', y + 0.3 * size)
        else:
            self._add(f"<text {place} {look}>{self._runs(runs, published=False)}</text>", y + 0.3 * size)
        return wide

    def paragraph(
        self,
        x: float,
        y: float,
        width: float,
        words: Words,
        *,
        size: float = 13,
        weight: int = 400,
        anchor: str = "start",
        tone: str = "ink",
        leading: float = 1.35,
    ) -> float:
        """Words broken into lines of at most `width`, from the base line `y` on; returns the base line of the last.

        `leading` is the distance of base lines, in sizes of the words; the other parameters are those of :meth:`text`.

        Raises
        ------
        InputError
            As :meth:`text`; or if one word is wider than `width`.
        """
        lines = wrap(words, width, size, weight)
        for index, line in enumerate(lines):
            self.text(x, y + index * size * leading, line, size=size, weight=weight, anchor=anchor, tone=tone)
        return y + (len(lines) - 1) * size * leading

    # Shapes

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        stroke: str = "none",
        radius: float = 3,
        dash: str = "",
        thick: float = 1,
    ) -> None:
        """A box from its top left corner; `radius` rounds its corners."""
        look = f'fill="{self.colour(fill)}"'
        if stroke != "none":
            look += f' stroke="{self.colour(stroke)}" stroke-width="{_number(thick)}"'
        look += f' stroke-dasharray="{dash}"' if dash else ""
        place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
        self._add(f'<rect {place} rx="{_number(radius)}" {look}/>', y + height)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: Words,
        *,
        fill: str = "grey",
        stroke: str = "none",
        size: float = 13,
        weight: int = 400,
        tone: str = "ink",
        dash: str = "",
        radius: float = 3,
        pad: float = 6,
        note: Words = "",
    ) -> None:
        """A box with words in its middle, and a note in smaller, muted words below them.

        Raises
        ------
        InputError
            If the words do not fit.
        """
        self.rect(x, y, width, height, fill=fill, stroke=stroke, dash=dash, radius=radius)
        small = max(SMALLEST, size - 1.5)
        lines = wrap(words, width - 2 * pad, size, weight)
        notes = wrap(note, width - 2 * pad, small) if plain(note) else []
        step, small_step = size * 1.25, small * 1.3
        tall = len(lines) * step + len(notes) * small_step
        if tall > height:
            raise InputError("drawing", repr(plain(words)), f"{tall:.0f} px of words", f"{height:.0f} px at most")
        at = y + (height - tall) / 2 + step - 0.32 * size
        for index, line in enumerate(lines):
            self.text(x + width / 2, at + index * step, line, size=size, weight=weight, anchor="middle", tone=tone)
        at += (len(lines) - 1) * step + small_step
        for index, line in enumerate(notes):
            self.text(x + width / 2, at + index * small_step, line, size=small, anchor="middle", tone="muted")

    def path(self, d: str, *, bottom: float, fill: str = "none", stroke: str = "muted", thick: float = 1, dash: str = "") -> None:
        """A path by its SVG commands; `bottom` is how far down it reaches."""
        look = f'fill="{self.colour(fill)}"'
        if stroke != "none":
            look += f' stroke="{self.colour(stroke)}" stroke-width="{_number(thick)}" stroke-linejoin="round"'
        look += f' stroke-dasharray="{dash}"' if dash else ""
        self._add(f'<path d="{d}" {look}/>', bottom)

    def line(self, x1: float, y1: float, x2: float, y2: float, *, tone: str = "muted", thick: float = 1, dash: str = "") -> None:
        """A straight line."""
        start, end = f"M{_number(x1)} {_number(y1)}", f"L{_number(x2)} {_number(y2)}"
        self.path(start + end, bottom=max(y1, y2), stroke=tone, thick=thick, dash=dash)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, tone: str = "muted", thick: float = 1.25, head: float = 5) -> None:
        """A straight line with a head of length `head` at its end."""
        long = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
        ux, uy = (x2 - x1) / long, (y2 - y1) / long
        self.line(x1, y1, x2 - ux * head, y2 - uy * head, tone=tone, thick=thick)
        bx, by, side = x2 - ux * head * 1.3, y2 - uy * head * 1.3, head * 0.6
        corners = ((x2, y2), (bx - uy * side, by + ux * side), (bx + uy * side, by - ux * side))
        d = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in corners) + "Z"
        self.path(d, bottom=max(y for _, y in corners), fill=tone, stroke="none")

    def bracket(self, x1: float, x2: float, y: float, *, depth: float = 6, tone: str = "muted", up: bool = False) -> None:
        """A flat bracket under a stretch from `x1` to `x2`, or over it where `up`; its feet are at `y`, its back `depth` away."""
        back = y - depth if up else y + depth
        d = f"M{_number(x1)} {_number(y)}V{_number(back)}H{_number(x2)}V{_number(y)}"
        self.path(d, bottom=max(y, back), stroke=tone)

    @property
    def marks(self) -> str:
        """What is drawn so far."""
        return "".join(self._marks)

    def svg(self, alt: str) -> str:
        """The drawing for a page.

        Parameters
        ----------
        alt : str
            The drawing in words.
        """
        height = _number(self.bottom + 2)
        # A group, not an image: it holds links.
        return (
            f'<svg role="group" aria-label="{escape(alt)}" viewBox="0 0 {_number(self.width)} {height}" '
            f'style="max-width:{_number(self.width)}px">{self.marks}</svg>'
        )


MARGIN = 16
"""Paper around a drawing for print [px]."""


def framed(canvas: Canvas, *, name: str, title: str, label: Label, source: str, limits: str, caption: str, alt: str) -> str:
    """A drawing for print, whole: badge, title, limits and caption around it, as the charts have them.

    Parameters
    ----------
    canvas : Canvas
        Drawn with fixed colours.
    name : str
        Part of the ids.
    title, source, limits, caption, alt : str
    label : Label
        Evidence class of what is shown.

    Raises
    ------
    InputError
        If the colours are those of a page.
    """
    if canvas.page:
        raise InputError("drawing", name, "colours that follow a page", "fixed ones, for print")
    head, foot = (Canvas(canvas.width, canvas.facts, page=False) for _ in range(2))
    look, said = badge(label), f"{label} · {source}" if source else str(label)
    wide = measure(said, 11.5, 600) + 18
    head.rect(0.5, 0.5, wide, 20, fill=look.fill, stroke=look.stroke, dash=" ".join(map(str, look.dash)))
    head.text(wide / 2, 14.5, said, size=11.5, weight=600, anchor="middle", tone=look.words)
    y = head.paragraph(0, 44, canvas.width, title, size=17, weight=600)
    if limits:
        y = head.paragraph(0, y + 20, canvas.width, limits, size=12, tone="muted")
    top = y + 22
    below = top + canvas.bottom + 26
    if caption:
        foot.paragraph(0, below, canvas.width, caption, size=11, tone="muted")
    width, height = canvas.width + 2 * MARGIN, max(below - 12, foot.bottom) + 2 * MARGIN
    box = f"{-MARGIN} {-MARGIN} {_number(width)} {_number(height)}"
    words = f'<title id="{name}-title">{escape(title, quote=False)}</title><desc id="{name}-desc">{escape(alt, quote=False)}</desc>'
    paper = f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{_number(width)}" height="{_number(height)}" fill="{LIGHT["paper"]}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{name}-title {name}-desc" width="{_number(width)}" '
        f'height="{_number(height)}" viewBox="{box}" font-family="{FAMILIES}">{words}{paper}'
        f'{head.marks}<g transform="translate(0 {_number(top)})">{canvas.marks}</g>{foot.marks}</svg>\n'
    )
