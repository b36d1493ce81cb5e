"""The papers of a value under hands that are not gentle: odd addresses, focus, paper, blocked storage, no script."""

import re
from pathlib import Path

import checks
import ledgers
import pytest

from kvtier.files import read_yaml
from kvtier.publish.pages import lint

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
KEY, CLAIM = "sim.rev2.e1.32.lru.hit", "appendix.s15.e1_32_lru"
FRAME = """{% extends "base.html.j2" %}{% block title %}Papers{% endblock %}{% block name %}Papers{% endblock %}
{% block contents %}<a href="#low">Low</a>{% endblock %}{% block content %}<h1>Papers</h1>
<p id="left">{{ num("sim.rev2.e1.32.lru.hit") }}</p>
<p style="text-align:right" id="right">{{ num("sim.rev3.e1.32.lru.hit") }}</p>
<p id="both">{{ both("appendix.s15.e1_32_lru") }} {{ verdict("appendix.s15.e1_32_lru") }}</p>
<div style="height:3000px"></div>
<p id="low" style="margin-left:calc(100% - 5rem)">{{ num("analytic.kv.llama3_70b.128k.gib") }}</p>{% endblock %}"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A page of a few values."""
    folder = tmp_path_factory.mktemp("papers")
    made = ledgers.page(folder, ())[1]
    found = folder / "papers.html"
    found.write_text(made.environment.from_string(FRAME).render(), encoding="utf-8")
    return found


@pytest.fixture
def page(opened, path):
    return opened(path, reduced_motion=True)


def is_open(page) -> bool:
    return page.run("return document.getElementById('card').open")


def hint(page) -> bool:
    return page.run("return !document.getElementById('hint').hidden")


def centre(page, selector: str) -> tuple[float, float]:
    page.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
    page.settle()
    return page.run(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]",
        selector,
    )


def mouse(page, kind: str, x: float, y: float, modifiers: int = 0) -> None:
    page.browser.cdp("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, modifiers=modifiers)


def click(page, x: float, y: float, modifiers: int = 0) -> None:
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        mouse(page, kind, x, y, modifiers)
    page.settle()


# Addresses

HOSTILE = [
    *("n/__proto__", "n/constructor", "n/toString", "c/hasOwnProperty", "n/", "c/", "n/no.such", "n//..", "x/y", "part-99"),
    *(
        "n/<img src=x onerror=alert(1)>",
        "n/%3Cimg%20src%3Dx%3E",
        "n/%00",
        "n/%",
        "n/%E0%A4%A",
        "c/%ff",
        "%",
        "n/\u202e",
        "n/" + "a" * 100_000,
    ),
]


@pytest.mark.parametrize("fragment", HOSTILE, ids=lambda text: text[:20])
def test_an_odd_address_opens_nothing_and_breaks_nothing(opened, path, fragment):
    page = opened(path, fragment=fragment, reduced_motion=True)
    assert page.uncaught() == []
    assert not is_open(page)
    page.run("location.hash = '#low'")
    page.run("location.hash = arguments[0]", f"#{fragment}")
    page.settle()
    assert page.uncaught() == []
    assert not is_open(page)
    click(page, *centre(page, "#left a"))
    assert is_open(page)


def test_an_encoded_address_opens_its_card(opened, path):
    page = opened(path, fragment=f"n/{KEY}".replace(".", "%2E"))
    assert page.run("return document.querySelector('#card .name').textContent") == KEY


def test_closing_gives_the_address_back(page):
    page.run("location.hash = '#low'")
    click(page, *centre(page, "#left a"))
    assert page.run("return location.hash") == f"#n/{KEY}"
    page.press("Escape", 27)
    page.settle()
    assert page.run("return location.hash") == "#low"


def test_going_elsewhere_closes_the_card(page):
    click(page, *centre(page, "#left a"))
    page.run("location.hash = '#low'")
    page.settle()
    assert not is_open(page)
    assert page.run("return location.hash") == "#low"


def test_a_click_with_a_key_held_is_the_browsers(page):
    page.run("addEventListener('click', (event) => { window.left = !event.defaultPrevented; event.preventDefault(); })")
    click(page, *centre(page, "#left a"), modifiers=2)
    assert page.run("return window.left")
    assert not is_open(page)


# Focus


@pytest.mark.parametrize("inside", [False, True])
def test_focus_returns_to_the_opener(page, inside):
    page.run("document.querySelector('#both .as-recomputed a').focus()")
    page.press("Enter", 13)
    page.browser.cdp("Input.dispatchKeyEvent", type="char", text="\r")
    page.settle()
    if not is_open(page):
        page.run("document.activeElement.click()")
    if inside:
        page.run("const link = document.querySelector('#card-body a'); link.focus(); link.click()")
        assert page.run("return document.activeElement.className") == "close"
    page.press("Escape", 27)
    page.settle()
    assert not is_open(page)
    assert page.run("return document.activeElement === document.querySelector('#both .as-recomputed a')")


def test_no_hint_stays_behind_a_card_that_a_mouse_closes(page):
    click(page, *centre(page, "#left a"))
    click(page, *centre(page, "#card .close"))
    assert not is_open(page)
    assert not hint(page)


def test_escape_takes_the_hint_away(page):
    page.run("document.querySelector('#left a').focus()")
    assert hint(page)
    page.press("Escape", 27)
    assert not hint(page)


def test_the_card_closes_beside_it_alone(page):
    click(page, *centre(page, "#left a"))
    left, top, right, bottom = page.run(
        "const {left, top, right, bottom} = document.getElementById('card').getBoundingClientRect(); return [left, top, right, bottom]"
    )
    click(page, left + 4, bottom - 4)
    assert is_open(page)
    # From words to the outside: a selection.
    mouse(page, "mousePressed", (left + right) / 2, (top + bottom) / 2)
    mouse(page, "mouseMoved", left - 20, top)
    mouse(page, "mouseReleased", left - 20, top)
    page.settle()
    assert is_open(page)
    click(page, left - 20, top)
    assert not is_open(page)


def test_a_touch_opens_the_card_and_leaves_no_hint(opened, path):
    page = opened(path, width=360, reduced_motion=True)
    page.browser.cdp("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=1)
    try:
        x, y = centre(page, "#left a")
        page.browser.cdp("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        page.browser.cdp("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        page.wait("setTimeout(arguments[0], 500)")
        assert is_open(page)
        assert not hint(page)
    finally:
        page.browser.cdp("Emulation.setTouchEmulationEnabled", enabled=False)


# The hint

HINTS = """
const out = [], hint = document.getElementById("hint");
const links = [...document.querySelectorAll("main a.num")].filter((one) => one.checkVisibility());
for (const block of ["start", "center", "end"]) for (const link of links) {
  link.scrollIntoView({ block });
  link.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
  const box = hint.getBoundingClientRect(), at = link.getBoundingClientRect();
  const inside = box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight;
  // A long text is given all the width there is, also at the right edge.
  const wide = box.width >= Math.min(300, innerWidth - 60);
  if (hint.hidden || !inside || !wide) out.push([block, link.textContent, box.x, box.y, box.width, box.height]);
}
return out"""


@pytest.mark.parametrize("width", [320, 640, 1280])
def test_a_hint_is_whole_wherever_its_value_stands(opened, path, width):
    assert opened(path, width=width, height=700, reduced_motion=True).run(HINTS) == []


# Paper


def test_on_paper_ink_is_dark_and_published_values_are_called_so(page, tmp_path):
    page.run("document.documentElement.dataset.theme = 'dark'; document.querySelector('input[value=published]').click();")
    page.run(
        """addEventListener("beforeprint", () => {
          window.printed = [document.documentElement.dataset.theme, document.querySelector("main").firstElementChild.textContent];
        })"""
    )
    page.pdf(tmp_path / "page.pdf")
    theme, first = page.run("return window.printed")
    assert theme == "light"
    assert first.startswith("Values as v6.0 published them")
    assert page.run("return document.documentElement.dataset.theme") == "dark"
    assert page.run("return document.querySelector('main').firstElementChild.textContent") == "Papers"


# Without storage, without script


def test_blocked_storage_breaks_nothing(browser, opened, path):
    blocked = """if (location.pathname.endsWith("papers.html"))
      Object.defineProperty(window, "localStorage", { get() { throw new DOMException("denied", "SecurityError"); } });"""
    script = browser.cdp("Page.addScriptToEvaluateOnNewDocument", source=blocked)["identifier"]
    try:
        page = opened(path, reduced_motion=True)
        page.run("document.querySelector('.theme').click()")
        assert page.uncaught() == []
        assert page.run("return document.documentElement.dataset.theme") == "dark"
        click(page, *centre(page, "#left a"))
        assert is_open(page)
    finally:
        browser.cdp("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


VISIBLE = """
const wanted = ["a.num", "h2", "h3", "figcaption", ".badge", ".limits", ".retraction", ".drawing svg"].map((one) => `main ${one}`);
const seen = (one) => !one.closest(".try") && one.checkVisibility({ visibilityProperty: true });
return [...document.querySelectorAll(wanted.join())].filter(seen).length"""


@pytest.mark.parametrize("name", ["paper/appendix.html", "paper/gqa.html", "figures/gallery.html"])
def test_all_is_read_without_script(opened, tmp_path, name):
    if not (ROOT / name).exists():
        pytest.skip(f"{name} is not there")
    without = tmp_path / "without.html"
    text = (ROOT / name).read_text(encoding="utf-8")
    without.write_text(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL), encoding="utf-8")
    assert opened(without).run(VISIBLE) == opened(name).run(VISIBLE) > 50


@pytest.mark.parametrize("name", ["paper/appendix.html", "paper/gqa.html", "figures/gallery.html"])
def test_scripts_add_no_number_of_their_own(opened, name):
    """What a page holds once its scripts ran, but for what a reader moves, which has its own tests."""
    if not (ROOT / name).exists():
        pytest.skip(f"{name} is not there")
    html = opened(name).run(
        "for (const one of document.querySelectorAll('.try, #found, #__end')) one.remove(); return document.documentElement.outerHTML"
    )
    patterns = {}
    for file in ("allowed_numbers.yaml", "allowed_on_pages.yaml"):
        patterns |= read_yaml(ROOT / "data" / "published" / file)
    assert lint.bare_numbers(html, patterns) == []


# Many


def test_many_openings_are_quick_and_leave_nothing(page):
    took = page.run(
        """const links = [...document.querySelectorAll("main a.num")], start = performance.now();
        for (let round = 0; round < 90; round += 1) {
          kvtier.open(links[round % links.length]);
          if (round % 3 === 0) document.getElementById("card").close();
        }
        document.getElementById("card").close();
        return (performance.now() - start) / 1000"""
    )
    page.settle()
    assert took < 5
    assert page.uncaught() == []
    assert page.run("return location.hash") == ""
    assert checks.structure(page) == []
