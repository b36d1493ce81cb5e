"""What a reader does with the appendix and the gallery: hover, click, switch, follow a link, search."""

import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
APPENDIX = "paper/appendix.html"
LEDGER = json.loads((ROOT / "data" / "numbers.json").read_text(encoding="utf-8"))
CLAIMS = json.loads((ROOT / "data" / "claims.json").read_text(encoding="utf-8"))
KEY = "sim.rev3.e1.32.lru.hit"


@pytest.fixture
def page(opened):
    return opened(APPENDIX, reduced_motion=True)


def first(page, selector: str) -> str:
    """Scroll the first element that a reader sees of those that a selector finds into view; a selector of it alone."""
    page.run(
        """for (const one of document.querySelectorAll("[data-tried]")) one.removeAttribute("data-tried");
        const found = [...document.querySelectorAll(arguments[0])].find((one) => one.checkVisibility());
        found.scrollIntoView({block: "center"});
        found.setAttribute("data-tried", "")""",
        selector,
    )
    page.settle()
    return "[data-tried]"


def sent(page, selector: str, *events: str) -> None:
    page.run(
        "for (const name of arguments[1]) document.querySelector(arguments[0]).dispatchEvent(new MouseEvent(name, {bubbles: true}))",
        selector,
        list(events),
    )


def shown(page) -> str:
    """Words of the open card; empty if none is open."""
    return page.run("const card = document.getElementById('card'); return card.open ? card.innerText : ''")


def test_hover_tells_class_definition_rule_and_command(page):
    sent(page, first(page, f"main a.num[href='#n/{KEY}']"), "mouseover")
    hint = page.run("const hint = document.getElementById('hint'); return hint.hidden ? '' : hint.innerText")
    record = LEDGER[KEY]
    for words in (record["label"], record["definition"], record["rule"], f"results/numbers/{record['rule']}.json"):
        assert words in hint


HINTS_OUTSIDE = """
const hint = document.getElementById("hint"), out = [];
const links = [...document.querySelectorAll("main a.num")].filter((one) => one.checkVisibility());
for (const link of links.filter((_, index) => index % 40 === 0)) {
  link.scrollIntoView({block: "center"});
  link.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
  const box = hint.getBoundingClientRect();
  const inside = box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight;
  if (hint.hidden || !inside) out.push([link.getAttribute("href"), hint.hidden, box.left, box.right, box.top, box.bottom]);
  link.dispatchEvent(new MouseEvent("mouseout", {bubbles: true}));
}
return out"""


@pytest.mark.parametrize("width", [1280, 360])
def test_the_hint_stays_in_the_window(opened, width):
    assert opened(APPENDIX, width=width, reduced_motion=True).run(HINTS_OUTSIDE) == []


def test_a_click_opens_the_card_with_claims_and_verdicts(page):
    sent(page, first(page, "main a.num[href='#n/sim.rev2.e1.32.lru.hit']"), "click")
    card, claim = shown(page), CLAIMS["appendix.s15.e1_32_lru"]
    for words in ("38.34 %", "sim.rev2.e1.32.lru.hit", "kvtier explain sim.rev2.e1.32.lru.hit", claim["section"], claim["verdict"]):
        assert words in card
    assert page.run("return location.hash") == "#n/sim.rev2.e1.32.lru.hit"


def test_from_a_number_to_its_claim_and_back(page):
    sent(page, first(page, "main a.num[href='#n/sim.rev2.e1.32.lru.hit']"), "click")
    sent(page, "#card a[href='#c/appendix.s15.e1_32_lru']", "click")
    assert CLAIMS["appendix.s15.e1_32_lru"]["says"] in shown(page)
    sent(page, "#card a[href='#n/sim.rev2.e1.32.lru.hit']", "click")
    assert LEDGER["sim.rev2.e1.32.lru.hit"]["definition"] in shown(page)


def test_a_number_inside_a_drawing_opens_too(page):
    sent(page, first(page, "#diagram-3-2 .wide a.num[href='#n/analytic.kv.llama3_70b.128k.gb']"), "click")
    assert "analytic.kv.llama3_70b.128k.gb" in shown(page)


def test_a_card_has_an_address(opened):
    assert "sim.rev3.e1.32.lru.hit" in shown(opened(APPENDIX, fragment=f"n/{KEY}"))


def test_a_retracted_value_is_struck_through_in_its_card(opened):
    page = opened(APPENDIX, fragment="c/appendix.s15.users")
    assert page.run("return document.querySelector('#card h2 s').textContent") == "16 ×"


def test_every_card_can_be_opened(page):
    wrong = page.run(
        """const wrong = [];
        for (const [letter, kind] of [["n", "numbers"], ["c", "claims"]]) for (const name of Object.keys(kvtier.papers[kind])) {
          const link = document.createElement("a"); link.setAttribute("href", `#${letter}/${name}`);
          if (!kvtier.open(link) || !document.getElementById("card-title").textContent) wrong.push(name);
        }
        return wrong"""
    )
    assert wrong == []
    assert page.uncaught() == []


def visible(page, kind: str) -> int:
    return page.run(
        "return [...document.querySelectorAll(`main .${arguments[0]}`)].filter((one) => one.getClientRects().length).length", kind
    )


def test_the_switch_shows_what_was_published(page):
    assert visible(page, "as-published") == 0
    sent(page, "input[name=values][value=published]", "click")
    assert visible(page, "as-published") > 50
    assert visible(page, "as-recomputed") == 0
    words = page.run("return document.querySelector('#diagram-16-1').innerText")
    assert CLAIMS["appendix.s16.contexts"]["printed"] in words


def links(page, selector: str) -> list[list[str]]:
    """Key or claim, and words, of each link that a selector finds."""
    return page.run(
        "return [...document.querySelectorAll(arguments[0])].map((one) => [one.getAttribute('href').slice(3), one.textContent])", selector
    )


def test_published_values_are_as_the_document_printed_them(page):
    rows = links(page, "main .as-published a.num.published")
    assert len(rows) > 100
    for claim, text in rows:
        printed, unit = CLAIMS[claim]["printed"], CLAIMS[claim]["unit"]
        assert text.replace(unit, "").strip() in [printed, *re.split(r" ?[,/]? (?:to|and|or) | ?[,/] ", printed)]


def test_numbers_of_the_ledger_are_as_the_ledger_has_them(page):
    rows = links(page, "main a.num.number")
    assert len(rows) > 500
    for key, text in rows:
        display = LEDGER[key]["display"]
        # A zero has no sign on a page.
        written = display.replace("-", "−" if display.strip("-0.,") else "", 1)
        assert written in text or text.startswith(("[", "±")), key


def test_colours_follow_the_button_and_are_kept(page):
    colour = "return getComputedStyle(document.body.parentElement).backgroundColor"
    light = page.run(colour)
    sent(page, ".theme", "click")
    assert page.run(colour) != light
    page.run("location.reload()")
    page.settle()
    assert page.run(colour) != light


def test_all_parts_and_diagrams_are_there(page):
    assert page.run("return [...document.querySelectorAll('section.part')].map((one) => one.id)") == [f"part-{n}" for n in range(1, 17)]
    figures = page.run("return [...document.querySelectorAll('figure')].map((one) => one.id)")
    assert sum(bool(re.fullmatch(r"diagram-\d+-\d+", name)) for name in figures) == 29


def test_contents_lead_to_the_parts(page):
    page.run("document.querySelector(\".contents a[href='#part-12']\").click()")
    page.settle()
    assert abs(page.run("return document.getElementById('part-12').getBoundingClientRect().top")) < 200


def cards(page) -> list[str]:
    return page.run("return [...document.querySelectorAll('.card:not([hidden]) h2')].map((one) => one.textContent)")


def test_the_gallery_is_searched_by_words_class_and_part(opened):
    page = opened("figures/gallery.html")
    every = cards(page)
    assert len(every) > 40
    typed = "const [id, value] = arguments, box = document.getElementById(id); box.value = value;"
    typed += "box.dispatchEvent(new Event('input', {bubbles: true}))"
    page.run(typed, "words", "hit rate optimum")
    found = cards(page)
    assert 0 < len(found) < len(every)
    assert page.run("return document.getElementById('found').textContent") == f"{len(found)} of {len(every)} figures"
    page.run(typed, "words", "")
    sent(page, "input[name=label][value=measured]", "click")
    assert 0 < len(cards(page)) < len(every)
    sent(page, "input[name=label][value=measured]", "click")
    page.run(typed, "part", "7")
    assert len(cards(page)) == 2
