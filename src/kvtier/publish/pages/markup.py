"""Pieces of HTML: a value as a link to its papers, an evidence class as a badge, a table, and their words alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from kvtier.publish.facts import Both, Fact, Kind
from kvtier.publish.verdicts import slug

TAG = re.compile(r"<[^>]*>")


def link(fact: Fact) -> Markup:
    """A value as a link to its papers; one that was taken back is struck through."""
    shown = Markup('<a class="num {}" href="#{}">{}</a>').format(fact.kind, fact.ref, fact.text)
    return Markup("<s>{}</s>").format(shown) if fact.kind is Kind.RETRACTED else shown


def both_links(pair: Both) -> Markup:
    """A published value and the recomputed one; the page shows one of them."""
    shape = '<span class="as-published">{}</span><span class="as-recomputed">{}</span>'
    return Markup(shape).format(link(pair.published), link(pair.recomputed))


def plain_text(html: str) -> str:
    """The words of a piece of HTML, recomputed values in place of published ones."""
    text = re.sub(r'<span class="as-published">.*?</span>', "", html)
    return re.sub(r"\s+", " ", Markup(TAG.sub("", text)).unescape()).strip()


def anchor(number: str) -> str:
    """Id of a diagram: ``diagram-3-2``."""
    return f"diagram-{number.replace('.', '-')}"


def badge(label: str, source: str = "") -> Markup:
    """An evidence class as a badge."""
    return Markup('<span class="badge {}">{}</span>').format(slug(label), Markup("{} · {}").format(label, source) if source else label)


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A table that scrolls inside itself where it is too wide; the first cell of a row is its head."""
    heads = Markup("").join(Markup('<th scope="col">{}</th>').format(cell) for cell in head)
    lines = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(row[0], Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row[1:]))
        for row in rows
    )
    shape = '<div class="scrolls" role="region" tabindex="0" aria-label="{}"><table><caption>{}</caption>'
    shape += "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
    return Markup(shape).format(caption, caption, heads, lines)
