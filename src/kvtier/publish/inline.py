"""An SVG as an HTML page takes it in: colours as variables of the page, ids of its own, links to numbers, nothing that it does not show."""

from __future__ import annotations

import re
from collections.abc import Collection
from xml.etree import ElementTree

from kvtier.errors import InputError
from kvtier.publish.palette import LIGHT
from kvtier.publish.theme import LINK, Layout

SVG = "http://www.w3.org/2000/svg"

VARIABLES = {colour: name for name, colour in LIGHT.items()}
"""Colours of charts, as the page names them; it has them for light and for dark."""

COLOURED = ("fill", "stroke", "stop-color")
DROPPED = re.compile(r"aria-.*|role|class|version|pointer-events|font-family|width|height|viewBox")
"""What the page says itself, or inherits; of sizes, only those of the whole."""


def _colour(value: str, where: str) -> str:
    if value == "none" or value.startswith("url("):
        return value
    if value == "transparent":
        return "none"
    if value.lower() not in VARIABLES:
        raise InputError(where, "colour", value, f"one of {', '.join(VARIABLES)}: the others do not follow the page into the dark")
    return f"var(--{VARIABLES[value.lower()]})"


def _link(element: ElementTree.Element, keys: Collection[str], where: str) -> dict[str, str]:
    # vl-convert puts its own base address before the fragment.
    _, mark, key = next(value for name, value in element.attrib.items() if name.endswith("href")).partition(LINK)
    if not mark or key not in keys:
        raise InputError(where, "link", key or element.attrib, "a key that the figure quotes")
    found = {"href": LINK + key, "tabindex": "-1", "class": "num"}
    # A mark has no words to be read out; the table of the figure's data has them.
    return found if "".join(element.itertext()).strip() else found | {"aria-hidden": "true"}


def _attributes(element: ElementTree.Element, layout: Layout, where: str) -> dict[str, str]:
    kept = {}
    for name, value in element.attrib.items():
        if name == "style":
            raise InputError(where, name, value, "presentation attributes: a style sheet hides colours")
        if name in COLOURED:
            kept[name] = _colour(value, where)
        elif name == "font-size" and float(value.removesuffix("px")) < layout.smallest:
            raise InputError(where, name, value, f"{layout.smallest:g}px or more")
        elif not (name == "opacity" and value == "1") and not (DROPPED.fullmatch(name) and element.tag not in ("rect", "image")):
            kept[name] = value
    if element.tag == "text" and kept.get("stroke") == "var(--paper)":
        # The rim of paper under words: the same words once more.
        kept |= {"class": "rim", "aria-hidden": "true"}
    return kept


def _shown(element: ElementTree.Element) -> bool:
    """Whether anything is drawn: Vega has empty paths around every group, and groups of nothing."""
    if element.get("display") == "none" or element.tag in ("title", "desc"):
        return False
    if element.tag == "path" and element.get("class") in ("background", "foreground"):
        return any(element.get(name, "none") not in ("none", "transparent") for name in COLOURED)
    return element.tag != "g" or len(element) > 0


def _pruned(element: ElementTree.Element, layout: Layout, keys: Collection[str], where: str) -> None:
    children = []
    for child in element:
        _pruned(child, layout, keys, where)
        if not _shown(child):
            continue
        found = _link(child, keys, where) if child.tag == "a" else _attributes(child, layout, where)
        child.attrib.clear()
        child.attrib.update(found)
        children += [child] if child.attrib or child.tag != "g" else list(child)
    element[:] = children


def _renamed(picture: str, prefix: str) -> str:
    """Ids in order of appearance after a prefix: Vega numbers them through a whole process, and a page holds many pictures."""
    ids = {name: f"{prefix}-{rank}" for rank, name in enumerate(re.findall(r' id="([^"]*)"', picture), start=1)}
    return re.sub(r' id="([^"]*)"|url\(#([^)]*)\)', lambda at: f' id="{ids[at[1]]}"' if at[1] else f"url(#{ids[at[2]]})", picture)


def inline(picture: str, name: str, layout: Layout, keys: Collection[str]) -> str:
    """A picture, fit to stand inside a page.

    Parameters
    ----------
    picture : str
        SVG as vl-convert gives it.
    name : str
        Of the figure; with that of the layout, the start of each id.
    layout : Layout
        For which room.
    keys : collection of str
        Numbers that links may lead to.

    Returns
    -------
    str
        ``<svg viewBox=… style="width:100%;max-width:…">``: as wide as its place, never wider than drawn. Without title, role and label:
        they are the page's.

    Raises
    ------
    InputError
        If a colour is none of `VARIABLES`, a text too small, the whole too wide, or a link leads to no number of the figure.
    """
    where = f"{name}, {layout.name}"
    root = ElementTree.fromstring(picture)
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
    width, height = (float(root.get(name)) for name in ("width", "height"))
    if width > layout.limit:
        raise InputError(where, "width", f"{width:g} px", f"{layout.limit} px at most")
    _pruned(root, layout, keys, where)
    root.attrib.clear()
    root.attrib.update(xmlns=SVG, viewBox=f"0 0 {width:g} {height:g}", style=f"width:100%;max-width:{width:g}px")
    return _renamed(ElementTree.tostring(root, encoding="unicode"), f"{name.replace('_', '-')}-{layout.name}")
