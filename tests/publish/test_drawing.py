"""The canvas: words keep their place, or the drawing fails."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.files import read_json
from kvtier.publish import drawing
from kvtier.publish.diagrams import catalogue
from kvtier.publish.drawing import NARROW, WIDE, Canvas
from kvtier.publish.facts import Fact, Facts, Kind, label_of
from kvtier.publish.ledger import Ledger
from kvtier.publish.verdicts import Claims

ROOT = Path(__file__).parents[2]


@pytest.fixture
def facts() -> Facts:
    ledger = Ledger.read(ROOT / "data" / "numbers.json")
    return Facts(ledger, Claims("claims.json", read_json(ROOT / "data" / "claims.json"), ledger))


FACT = Fact("n/a.b", "40.0 GiB", 40.0, Label.ANALYTICAL, Kind.NUMBER)


def test_words_are_as_wide_as_the_font_draws_them():
    # Source Sans Pro: advance of "0" is 497/1000 em, the same for every digit.
    assert drawing.measure("0000", 10) == pytest.approx(4 * 4.97)
    assert drawing.measure("KV", 12, 600) > drawing.measure("KV", 12, 400)


def test_lines_break_between_words_and_never_inside_a_value():
    lines = drawing.wrap(["KV of one sequence ", FACT, ", to scale"], 90, 13)
    assert [drawing.plain(line) for line in lines] == ["KV of one", "sequence", "40.0 GiB, to", "scale"]


def test_a_word_may_fill_its_place_and_no_more():
    wide = drawing.measure("residency", 13)
    assert drawing.wrap("residency", wide, 13) == [["residency"]]
    with pytest.raises(InputError, match="residency"):
        drawing.wrap("residency", wide - 2, 13)


def test_a_word_wider_than_its_place_is_refused():
    with pytest.raises(InputError, match="at most"):
        drawing.wrap("incomprehensibilities", 40, 13)


def test_words_that_leave_the_drawing_are_refused(facts):
    with pytest.raises(InputError, match="0 to 100"):
        Canvas(100, facts).text(60, 20, "far too many words")


def test_words_too_small_to_read_are_refused(facts):
    with pytest.raises(InputError, match="or more"):
        Canvas(100, facts).text(0, 20, "tiny", size=9)


def test_words_that_do_not_fit_their_box_are_refused(facts):
    with pytest.raises(InputError, match="at most"):
        Canvas(200, facts).box(0, 0, 80, 20, "three lines of words")


def test_an_unknown_colour_is_refused(facts):
    with pytest.raises(InputError, match="mauve"):
        Canvas(100, facts).rect(0, 0, 10, 10, fill="mauve")


def test_a_retracted_value_is_never_drawn(facts):
    with pytest.raises(InputError, match="retraction box"):
        Canvas(300, facts).text(0, 20, [facts.retracted("appendix.s15.users")])


def test_values_are_links_on_a_page_and_words_in_print(facts):
    for page, expected in ((True, 'href="#n/a.b"'), (False, ">KV: 40.0 GiB<")):
        canvas = Canvas(300, facts, page=page)
        canvas.text(0, 20, ["KV: ", FACT])
        assert expected in canvas.marks
        assert ("var(--" in canvas.marks) is page


def test_both_values_are_there_and_one_is_shown(facts):
    canvas = Canvas(300, facts)
    canvas.text(0, 20, [facts.both("appendix.s16.contexts")])
    assert canvas.marks.count("<text") == 2
    assert "as-published" in canvas.marks


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("diagram", catalogue.read().values(), ids=lambda diagram: diagram.number)
def test_every_diagram_is_drawn_in_every_layout(diagram, width, facts):
    with facts.collecting() as shown:
        canvas = Canvas(width, facts)
        diagram.draw(canvas)
    svg = ElementTree.fromstring(canvas.svg("words"))
    assert svg.get("viewBox").startswith(f"0 0 {width} ")
    assert label_of(shown)
    assert not re.search(r'(fill|stroke)="#', canvas.marks)


@pytest.mark.parametrize("diagram", catalogue.read().values(), ids=lambda diagram: diagram.number)
def test_every_diagram_is_the_same_for_print(diagram, facts):
    canvas = Canvas(WIDE, facts, page=False)
    diagram.draw(canvas)
    said = {"name": diagram.name, "title": diagram.title, "source": diagram.source, "limits": "", "caption": "", "alt": ""}
    picture = drawing.framed(canvas, label=Label.SIMULATED, **said)
    ElementTree.fromstring(picture)
    assert "var(--" not in picture
    assert "Simulated (provisional)" in picture


def test_a_page_drawing_is_not_framed_for_print(facts):
    with pytest.raises(InputError, match="for print"):
        drawing.framed(Canvas(WIDE, facts), name="a", title="", label=Label.MEASURED, source="", limits="", caption="", alt="")
