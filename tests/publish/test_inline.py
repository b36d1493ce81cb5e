import json
import re
from functools import partial
from xml.etree import ElementTree

import altair as alt
import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.publish import render, theme
from kvtier.publish.charts import alpha_curve, decode_fit, hit_rate_by_budget, revisions_by_budget, what_survives
from kvtier.publish.inline import VARIABLES, inline
from kvtier.publish.ledger import Ledger

LAYOUTS = [theme.WIDE, theme.NARROW]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="300" height="200">{}</svg>'


FORMS = {}
"""Page forms by chart: a picture takes seconds, and the same numbers give the same one."""


@pytest.fixture(params=["hit_rate_by_budget", "alpha_curve", "decode_fit", "revisions_by_budget", "what_survives"])
def page(request, budgets_table, alphas_table, decode_tables, revisions, effects, ledger):
    """The page form of a chart."""
    draw = {
        "hit_rate_by_budget": partial(hit_rate_by_budget.draw, budgets_table, ledger),
        "alpha_curve": partial(alpha_curve.draw, alphas_table, ledger),
        "decode_fit": partial(decode_fit.draw, *decode_tables, ledger),
        "revisions_by_budget": partial(revisions_by_budget.draw, *revisions[:2], Ledger("numbers.json", revisions[2])),
        "what_survives": partial(what_survives.draw, Ledger("numbers.json", effects)),
    }[request.param]
    if request.param not in FORMS:
        FORMS[request.param] = render.page_form(*map(draw, LAYOUTS))
    return FORMS[request.param]


def test_says_what_a_page_says_of_a_figure(page):
    assert list(page) == [
        *("name", "title", "label", "source", "caveat", "caption", "alt"),
        *("keys", "wide", "narrow", "columns", "rows"),
    ]
    assert len(set(page["keys"])) == len(page["keys"]) > 0
    assert all(len(row) == len(page["columns"]) for row in page["rows"])
    assert json.loads(json.dumps(page)) == json.loads(json.dumps(page, allow_nan=False))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_fits_its_room_in_colours_of_the_page(page, layout):
    picture = page[layout.name]
    root = ElementTree.fromstring(picture)
    width = float(root.get("viewBox").split()[2])
    assert width <= layout.limit
    assert root.get("style") == f"width:100%;max-width:{width:g}px"
    for element in root.iter():
        for name in ("fill", "stroke"):
            assert re.fullmatch(rf"none|url\(#.*\)|var\(--({'|'.join(VARIABLES.values())})\)", element.get(name, "none"))
        assert float(element.get("font-size", "99px").removesuffix("px")) >= layout.smallest
        assert not {"role", "aria-label", "font-family"} & set(element.attrib)
    assert not re.search(r"<title|<desc|#[0-9a-f]{6}\b|<\?xml", picture)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_links_lead_to_numbers_of_the_figure(page, layout):
    links = [element for element in ElementTree.fromstring(page[layout.name]).iter() if element.tag.endswith("}a")]
    assert links
    for link in links:
        assert link.get("href").removeprefix("#n/") in page["keys"]
        assert (link.get("tabindex"), link.get("class")) == ("-1", "num")


def test_ids_are_of_the_figure_and_the_layout(page):
    for layout in LAYOUTS:
        ids = re.findall(r' id="([^"]*)"', page[layout.name])
        assert all(name.startswith(f"{page['name'].replace('_', '-')}-{layout.name}-") for name in ids)
        assert set(re.findall(r"url\(#([^)]*)\)", page[layout.name])) <= set(ids)


def test_published_files_have_no_links(budgets_table, ledger):
    figure = hit_rate_by_budget.draw(budgets_table, ledger)
    assert "href" not in json.dumps(render.spec(figure))
    assert "<a " not in render.svg(figure, render.spec(figure))


def test_a_colour_that_cannot_follow_the_page_is_refused():
    with pytest.raises(InputError, match=r"f, wide: colour: found #4c78a8"):
        inline(SVG.format('<path fill="#4c78a8" d="M0,0h9"/>'), "f", theme.WIDE, [])


def test_a_chart_with_a_foreign_colour_is_refused(ledger):
    marks = [alt.Chart(alt.NamedData(name=render.DATA)).mark_point(color="tomato").encode(x="x:Q")]
    quotes = [ledger["measured.gb10.stream.copy_gbps"]]
    figure = theme.Figure("f", "A title", "here", "one", "A caption.", "Words.", quotes, pl.DataFrame({"x": [1]}), marks)
    with pytest.raises(InputError, match="colour: found tomato"):
        render.page_form(figure, figure)


def test_a_style_sheet_is_refused():
    with pytest.raises(InputError, match="style: found fill:red"):
        inline(SVG.format('<path style="fill:red" d="M0,0h9"/>'), "f", theme.WIDE, [])


def test_small_text_is_refused():
    with pytest.raises(InputError, match=r"f, narrow: font-size: found 9px, expected 10\.5px"):
        inline(SVG.format('<text font-size="9px">a</text>'), "f", theme.NARROW, [])


def test_a_picture_that_is_too_wide_is_refused():
    with pytest.raises(InputError, match="f, narrow: width: found 400 px, expected 328 px at most"):
        inline(SVG.format("").replace("300", "400"), "f", theme.NARROW, [])


def test_a_link_to_no_number_of_the_figure_is_refused():
    link = SVG.format('<a xlink:href="https://vega.github.io/#n/a.b"><text font-size="12px">a</text></a>')
    assert '<a href="#n/a.b" tabindex="-1" class="num"><text font-size="12px">a</text></a>' in inline(link, "f", theme.WIDE, ["a.b"])
    with pytest.raises(InputError, match=r"f, wide: link: found a\.b"):
        inline(link, "f", theme.WIDE, ["a.c"])


def test_ids_count_from_one_whatever_vega_counted():
    drawn = SVG.format(
        '<defs><clipPath id="clip{0}"><rect width="9" height="9"/></clipPath></defs><g clip-path="url(#clip{0})"><path d="M0,0h9"/></g>'
    )
    found = {inline(drawn.format(rank), "a_b", theme.WIDE, []) for rank in (1, 7)}
    assert len(found) == 1
    assert 'clip-path="url(#a-b-wide-1)"' in found.pop()


def test_nothing_empty_is_left():
    drawn = SVG.format('<g role="x"><g class="y"><path class="background" d="M0,0"/></g><path display="none" fill="#ffffff"/></g>')
    assert list(ElementTree.fromstring(inline(drawn, "f", theme.WIDE, []))) == []
