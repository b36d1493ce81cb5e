"""What every published page keeps. Each check takes an open page and returns what is wrong, one line each: none is none."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

from chromium import Page

WIDTHS_PX = (320, 360, 480, 768, 1024, 1280, 1600)
LEAST_TEXT_PX = 10.5
MOST_BYTES = 6_000_000
AXE_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
ANSWERED_BY_SCRIPT = ("#n/", "#c/")
"""Beginnings of addresses that open a number or a claim, and have no element of that name."""
OVERLAP_PX = 1.0
"""Of ink, not of line boxes: two texts that overlap by more in both directions can be seen to touch."""
OUT_PX = 1.0


@cache
def _script(name: str) -> str:
    if name == "axe":
        return files("selenium_axe_python").joinpath("axe-core", "axe.min.js").read_text(encoding="utf-8")
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _measured(page: Page, call: str, *arguments):
    if not page.run("return Boolean(window.__measure)"):
        page.run(_script("measure.js"))
    return page.run(f"return window.__measure.{call}(...arguments)", *arguments)


def console(page: Page) -> list[str]:
    """Warnings and errors in the console, and what no handler caught."""
    said = [f"console, {entry['level']}: {entry['message']}" for entry in page.console() if entry["level"] in ("SEVERE", "WARNING")]
    return said + [f"uncaught: {one}" for one in page.uncaught()]


def network(page: Page) -> list[str]:
    """Requests for anything but the file itself and what it carries, sent, refused or only written down."""
    found, urls = [], {}
    for event in page.network():
        params = event["params"]
        if event["method"] == "Network.requestWillBeSent":
            urls[params["requestId"]] = url = params["request"]["url"]
            if urlsplit(url).scheme not in ("data", "blob", "about") and url.split("#")[0] != page.url:
                found.append(f"request: {url}")
        elif event["method"] == "Network.webSocketCreated":
            found.append(f"web socket: {params['url']}")
        elif event["method"] == "Network.loadingFailed":
            reason = params.get("blockedReason") or params["errorText"]
            found.append(f"failed ({reason}): {urls.get(params['requestId'], 'a request')[:120]}")
    return found + _measured(page, "outside")


def accessibility(page: Page) -> list[str]:
    """Violations that axe-core finds."""
    page.run(_script("axe"))
    result = page.wait(
        """
        const done = arguments[1];
        axe.run(document, { runOnly: { type: "tag", values: arguments[0] }, resultTypes: ["violations"] })
          .then((result) => done({ violations: result.violations }), (error) => done({ error: String(error) }));
        """,
        list(AXE_TAGS),
    )
    if "error" in result:
        return [f"axe-core failed: {result['error']}"]
    return [
        f"{one['id']} ({one['impact']}): {one['help']}; {len(one['nodes'])} times: "
        + ", ".join(" ".join(map(str, node["target"])) for node in one["nodes"][:5])
        for one in result["violations"]
    ]


def sideways(page: Page) -> list[str]:
    """A page that scrolls sideways, and parts that do without the class ``scrolls``."""
    return _measured(page, "sideways")


def text(page: Page) -> list[str]:
    """The three checks of text that follow, in one pass over the page."""
    return [line for found in _measured(page, "text", OVERLAP_PX, OUT_PX, LEAST_TEXT_PX) for line in found]


def overlapping_text(page: Page, by_px: float = OVERLAP_PX) -> list[str]:
    """Lines of text, in drawings and outside, that lie over each other."""
    return _measured(page, "overlapping", by_px)


def text_out_of_drawing(page: Page, by_px: float = OUT_PX) -> list[str]:
    """Text that sticks out of its svg, which cuts it off."""
    return _measured(page, "stickingOut", by_px)


def small_text(page: Page, least_px: float = LEAST_TEXT_PX) -> list[str]:
    """Places with text below a size, as it comes out on the screen."""
    return _measured(page, "small", least_px)


def structure(page: Page) -> list[str]:
    """Landmarks, headings, names of figures, ids."""
    found = _measured(page, "structure")
    # A caption is a figure's name, which Chromium's own computation leaves out.
    figures = page.run(
        """
        return [...document.querySelectorAll("figure, [role=figure], svg[role=img]")]
          .filter((one) => one.checkVisibility() && !one.querySelector(":scope > figcaption")?.textContent.trim());
        """
    )
    unnamed = [figure for figure in figures if not figure.accessible_name.strip()]
    return found + [f"a figure without a name: {figure.get_attribute('outerHTML')[:80]}" for figure in unnamed]


def links(page: Page) -> list[str]:
    """Links within the page to nothing, and links to files that are not beside it."""
    found = _measured(page, "deadLinks", list(ANSWERED_BY_SCRIPT))
    for address in page.run("return [...document.querySelectorAll('a[href]')].map((link) => link.getAttribute('href'))"):
        parts = urlsplit(address)
        if not parts.scheme and not parts.netloc and parts.path and not (page.path.parent / unquote(parts.path)).exists():
            found.append(f"a link leads to {address}, a file that is not there")
    return sorted(set(found))


def size(path: Path, most_bytes: int = MOST_BYTES) -> list[str]:
    """A file that is too large to send."""
    found = path.stat().st_size
    return [f"{path.name} has {found:,} bytes, more than {most_bytes:,}"] if found > most_bytes else []


def keyboard(page: Page, first: int = 60, last: int = 30, sampled: int = 20) -> list[str]:
    """Stops of the Tab key, from the top, from the end, and some between: seen, named, focus shown, and left again."""
    found: list[str] = []
    _measured(page, "end")
    page.run("scrollTo(0, 0); document.activeElement.blur();")
    found += _walk(page, first, back=False)
    page.run("document.getElementById('__end').focus();")
    found += _walk(page, last, back=True)
    stops = page.run("return window.__measure.stops()")[first : -last - 1]
    for stop in stops[:: max(1, len(stops) // sampled)] if stops else []:
        page.run("window.__measure.focusOn(arguments[0])", stop)
        at = _arrived(page, found)
        page.tab()
        if at["at"] is not None and _measured(page, "focused")["at"] == at["at"]:
            found.append(f"{at['what']} does not let the focus go")
    page.run("document.getElementById('__end').remove()")
    return list(dict.fromkeys(found))


def _walk(page: Page, steps: int, back: bool) -> list[str]:
    found: list[str] = []
    visited: dict[int, str] = {}
    for _ in range(steps):
        page.tab(back)
        at = _arrived(page, found)
        if at["at"] is None or at.get("end"):
            break
        if at["at"] in visited:
            found.append(f"the focus comes back to {at['what']} after {len(visited)} stops, without having left the page")
            break
        visited[at["at"]] = at["what"]
    page.run("document.activeElement.blur()")
    _arrived(page, found)
    if not visited and not back and page.run("return window.__measure.stops()")[:-1]:
        found.append("the Tab key reaches nothing")
    return found


def _arrived(page: Page, found: list[str]) -> dict:
    at = _measured(page, "focused")
    if at["left"]:
        found.append(at["left"])
    found += at["wrong"]
    if at.get("element") is not None and not at["element"].accessible_name.strip():
        found.append(f"{at['what']} has no accessible name")
    return at


def report(where: str, found: Iterable[str], most: int = 25) -> str:
    """What is wrong, as a failing test prints it; empty if nothing is."""
    lines = list(found)
    more = [f"... and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join([f"{where}: {len(lines)} found", *lines[:most], *more]) if lines else ""
