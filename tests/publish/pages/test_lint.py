"""A page's own watch: each way to smuggle a number past it is tried, and seen."""

from __future__ import annotations

import re

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import SIMULATION_CAVEAT
from kvtier.publish.diagrams import Diagram
from kvtier.publish.pages import lint
from kvtier.publish.pages.page import Page, render

ALLOWED = {r"\bDiagram \d+\.\d\b": "number of a diagram"}
KEY, CLAIM = "analytic.kv.llama3_70b.128k.gib", "appendix.s01.layers"
SIMULATED = "sim.rev3.e1.32.lru.hit"
CHART = {
    **dict.fromkeys(("title", "source", "caveat", "caption"), ""),
    "name": "drawn",
    "alt": "Two bars: 12.50 % and 40 GiB.",
    "columns": ["key", "budget"],
    "rows": [[KEY, 64.0]],
    "wide": '<svg width="7777"><text x="8888">12.50 %</text></svg>',
    "narrow": "<svg></svg>",
}


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.yaml"
    path.write_text(r"""'\bDiagram \d+\.\d\b|\bRevision [123]\b|\be[1-6]\b': names""" + "\n")
    return path


@pytest.fixture
def check(page, names):
    """Hold a piece of HTML against the rules."""
    return lambda html: lint.check("page", html, [names], page)


@pytest.fixture
def refused(check):
    """Hold a piece of HTML against the rules, which must not let it pass."""

    def refuse(html: str, *, match: str) -> None:
        with pytest.raises(InputError, match=match):
            check(html)

    return refuse


@pytest.mark.parametrize(
    "html",
    [
        "<p>a rate of 37.17 %</p>",
        '<p id="x">twelve <b>12</b></p>',
        "<svg><text>12 GB</text></svg>",
        "<svg><text><tspan>1</tspan><tspan>2 GB</tspan></text></svg>",
        "<svg><title>12 GB</title></svg>",
        "<head><title>12 GB</title></head>",
        '<div aria-label="12 GB"></div>',
        '<svg role="img"><g aria-label="12 GB"/></svg>',
        '<svg><rect aria-label="12 GB"/></svg>',
        '<img alt="12 GB">',
        '<input type="text" placeholder="12 GB">',
        '<input type="button" value="12 GB">',
        '<meta name="description" content="12 GB">',
        '<span aria-description="12 GB"></span>',
        '<input type="range" aria-valuetext="12 GB">',
        '<optgroup label="12 GB"></optgroup>',
        "<select><option>12 GB</option></select>",
        "<output>12 GB</output>",
        '<ol start="12"></ol>',
        '<ol><li value="12">users</li></ol>',
        "<p>&#49;&#50; GB</p>",
        "<p>１２ GB</p>",
        "<p>¹² GB, ½, ⑫</p>",
        "<table><tr><td>5</td></tr></table>",
        "<p><code>12 GB</code></p>",
        "<noscript>12 GB</noscript>",
        "<template>12 GB</template>",
        '<span class="n">12</span>',
        '<h2><span class="n">12 GB</span></h2>',
        '<a class="anchor" href="#x">12 GB</a>',
        '<a class="num number">12 GB</a>',
        '<span class="num" data-ref="#n/k">12 GB</span>',
        '<a class="num" href="https://example.org/#n/k">12 GB</a>',
        '<p><span class="num">open 12 GB</p>',
    ],
)
def test_a_typed_number_is_found(html):
    assert lint.bare_numbers(html, ALLOWED)


@pytest.mark.parametrize(
    "html",
    [
        '<p>a rate of <a class="num" href="#n/k">37.17 %</a>.</p>',
        "<p>Diagram 3.2</p>",
        '<nav><span class="n">3</span></nav><h2><span class="n">16</span>What stands</h2>',
        '<a class="anchor" href="#figure-x">Figure 2</a>',
        '<figcaption><span data-made-by="chart">turns 1,250 to 2,499</span></figcaption>',
        "<p><code>sim.rev2.e1.32</code> <code>sim.<wbr>e1.<wbr>lru2</code></p>",
        '<svg viewBox="0 0 720 200"><text x="3">KV</text></svg>',
        "<style>p{margin:3px}</style><script>const a = 3;</script>",
    ],
)
def test_values_names_and_code_are_not_typed_numbers(html):
    assert lint.bare_numbers(html, ALLOWED) == []


def test_words_around_a_value_do_not_hide_a_number_beside_it():
    assert lint.bare_numbers('<p><a class="num" href="#n/k">3</a>7 %</p>', {}) == [("page", "7")]


def test_the_place_of_a_typed_number_is_named():
    assert lint.bare_numbers('<section id="part-3"><p>about 12</p></section>', {}) == [("part-3", "12")]


def test_what_was_never_closed_hides_nothing():
    assert lint.bare_numbers('<svg><rect class="num"><text>12 GB</text></svg><embed class="num"><p>13 GB</p>', {}) == [
        ("page", "12"),
        ("page", "13"),
    ]


@pytest.mark.parametrize(
    ("html", "named"),
    [
        ('<img src="data:,">', "<img>"),
        ("<meter value=0.37></meter>", "<meter>"),
        ('<svg><use href="#x"/></svg>', "<use>"),
        ("<svg><text><![CDATA[12 GB]]></text></svg>", "CDATA"),
        ("<style>.a::after{content:'12 GB'}</style>", "content:"),
        (r"<style>.a::after{content:'\31\32 GB'}</style>", "content:"),
        ("<style>.a::after{content:attr(data-alpha)}</style>", "content:"),
        ("<style>.a::before{content:counter(a)}</style>", "content:"),
    ],
)
def test_what_cannot_be_read_is_refused(refused, html, named):
    refused(html, match=re.escape(named))


def test_words_of_a_style_sheet_and_fonts_are_no_numbers(check):
    words = ".try::before{content:'Try it'}.a::after{content:''}@page{@bottom-center{content:counter(page)}}"
    check(f"<style>@font-face{{src:url(data:,content:9)}}{words}</style>")


# Values are the ledger's


@pytest.mark.parametrize("text", ["40.00 GiB", "40.00", " 40.00\n GiB "])
def test_a_value_as_the_ledger_prints_it_passes(check, text):
    check(f'<p><a class="num" href="#n/{KEY}">{text}</a></p>')


def test_every_way_to_show_a_value_passes(check, page):
    key, difference = SIMULATED, "sim.rev3.e1.32.ema015.margin"
    shown = (
        page.num(key)
        + page.bare(key)
        + page.unc(key)
        + page.plus_minus(key)
        + page.signed(difference)
        + page.both("appendix.s15.e1_32_lru")
    )
    over = f'<a class="num" href="#n/{key}">{page.facts.quote(key).text} <span class="also">{page.facts.quote(key).interval}</span></a>'
    check(f"<main>{shown}{over}{page.stated('appendix.s08.split', 1)}{SIMULATION_CAVEAT}</main>")


@pytest.mark.parametrize("text", ["41.00 GiB", "40.01", "40.00 GB", "about 40.00 GiB", "40.00 GiB or more", "−40.00 GiB"])
def test_a_link_with_another_text_than_the_ledgers_is_refused(refused, text):
    refused(f'<p><a class="num" href="#n/{KEY}">{text}</a></p>', match=re.escape(text))


def test_a_claim_with_another_text_than_printed_is_refused(refused, check):
    check(f'<a class="num stated" href="#c/{CLAIM}">80 layers</a>')
    refused(f'<a class="num stated" href="#c/{CLAIM}">81 layers</a>', match="81 layers")


@pytest.mark.parametrize("ref", ["n/sim.no.such", "c/no.such"])
def test_a_link_to_no_papers_is_refused(refused, ref):
    refused(f'<a class="num" href="#{ref}">12</a>', match=re.escape(ref[2:]))


# Words made by charts are the chart's


def test_words_of_a_chart_are_those_that_it_has_made(page, check, refused):
    page.charts = {"drawn": CHART}
    check('<p data-made-by="drawn">12.50 % at 64, and 40</p>')
    check(f'<svg data-made-by="drawn" aria-label="{CHART["alt"]}"><a href="#n/{KEY}">bar: 12.50 %</a></svg>')
    for typed in ("37.17", "7777", "8888"):
        refused(f'<p data-made-by="drawn">{typed} %</p>', match=typed)
    refused('<svg data-made-by="drawn" aria-label="a bar of 37.17 %"></svg>', match=r"37\.17")
    refused(f'<svg data-made-by="drawn"><a href="#n/{KEY}">bar: 37.17 %</a></svg>', match=r"37\.17")


@pytest.mark.parametrize("name", ["nothing", "drawn", "me"])
def test_only_a_chart_that_is_there_makes_words(refused, name):
    refused(f'<p data-made-by="{name}">12</p>', match=f"made by {name}")


def test_counts_and_choices_are_held_too(refused, check, page):
    count = max(len(page.facts.claims.records) + 1, 9999)
    check(f'<b>{page.verdict_counts()[0][-1]}</b><select data-made-by="policies"><option>EMA 0.15</option></select>')
    refused(f'<span data-made-by="claims.json">{count}</span>', match=str(count))
    refused('<select data-made-by="policies"><option>EMA 0.77</option></select>', match=r"0\.77")


def test_words_of_a_diagram_are_held(page, check, refused):
    drawn = Diagram("9.9", "one", "One value", lambda canvas: canvas.text(0, 20, [canvas.facts.num(KEY)]), f'It is {{{{ num("{KEY}") }}}}.')
    page.diagrams = {"9.9": drawn}
    html = page.diagram("9.9")
    check(html)
    refused(html.replace("It is 40.00 GiB.", "It is 41.00 GiB."), match="typed number 41.00 in the words of a drawing")
    page.diagrams = {"9.9": Diagram("9.9", "one", "One value", drawn.draw, "It is 12 GiB.")}
    refused("<p></p>", match=r"diagram 9\.9, in words.*typed number 12")


# Simulated values and labels


def test_a_simulated_value_without_the_caveat_is_refused(page, check, refused):
    value = page.num(SIMULATED)
    refused(f'<main><section id="part-1"><p>{value}</p></section></main>', match="part-1.*caveat")
    refused(f"<main>{SIMULATION_CAVEAT}<section><p>{value}</p></section></main>", match="caveat")
    refused(f"<p>{value}</p>", match="caveat")
    check(f"<main><section><p>{value}</p><p>{SIMULATION_CAVEAT}</p></section></main>")


def test_a_simulated_claim_needs_it_too(page, refused):
    refused(f"<section>{page.printed('appendix.s15.e1_32_lru')}</section>", match="caveat")


def test_a_verdict_on_a_simulated_claim_is_no_simulated_value(page, check):
    check(f"<section>{page.verdict('appendix.s15.e1_32_lru')}</section>")


def figure(page: Page, label: str, badge: str, *keys: str, limits: str = "") -> str:
    values = "".join(page.num(key) for key in keys)
    return f'<figure id="x" data-label="{label}"><span class="badge">{badge}</span>{limits}<svg><text>{values}</text></svg></figure>'


def test_a_badge_is_no_stronger_than_the_weakest_result(page, check, refused):
    check(figure(page, "Analytical model", "Analytical model · one model", KEY))
    refused(figure(page, "Measured", "Measured", KEY), match="label Measured.*Analytical model")
    refused(figure(page, "Simulated (provisional)", "Simulated (provisional)", KEY, SIMULATED), match="Analytical model")
    refused(figure(page, "Certain", "Certain", KEY), match="Certain")


def test_the_badge_is_that_of_the_label(page, refused):
    refused(figure(page, "Analytical model", "Measured", KEY), match="badges Measured")
    refused(figure(page, "Analytical model", "", KEY), match="badges")


def test_a_figure_of_a_weaker_class_with_a_simulated_value_needs_the_caveat(page, check, refused):
    refused(figure(page, "Illustrative", "Illustrative", KEY, SIMULATED), match="caveat")
    check(figure(page, "Illustrative", "Illustrative", KEY, SIMULATED, limits=SIMULATION_CAVEAT))


# Retracted values


@pytest.fixture
def allowed(tmp_path):
    path = tmp_path / "allowed.yaml"
    path.write_text(r"""'\d+(\.\d+)?': everything, for this test""" + "\n")
    return path


@pytest.mark.parametrize(
    "html",
    [
        "<p>HBM serves 97 % of it.</p>",
        "<p>HBM serves <b>97</b> % of it.</p>",
        "<svg><text><tspan>97</tspan><tspan> %</tspan></text></svg>",
        "<p>HBM serves 97&nbsp;% of it.</p>",
        "<p>HBM serves &#57;&#55; % of it.</p>",
        '<p aria-label="HBM serves 97 %"></p>',
        '<div class="retraction">97 %</div>',
        '<div class="retraction" id="retraction-mine">97 %</div>',
        "<title>97 % from HBM</title>",
    ],
)
def test_a_retracted_value_outside_its_box_is_refused(page, allowed, html):
    with pytest.raises(InputError, match="hit_rate"):
        lint.check("page", html, [allowed], page)


def test_it_may_stand_in_its_box(page, check):
    box = str(page.retraction("hit_rate"))
    assert "97" in box
    check(f"<main>{box}{SIMULATION_CAVEAT}</main>")


def test_a_retracted_claim_outside_its_box_is_refused(page, refused):
    claim = page.printed("appendix.s15.users")
    refused(f"<main>{SIMULATION_CAVEAT}{claim}</main>", match=r"appendix\.s15\.users.*box alone")
    refused(f'<div class="retraction" id="retraction-hit-rate">{SIMULATION_CAVEAT}{claim}</div>', match="box alone")


def test_a_retracted_number_has_no_box(refused):
    refused('<a class="num" href="#n/analytic.gqa.retracted_state_mib">640 MiB</a>', match="retracted_state_mib")


def test_a_template_cannot_print_what_the_ledger_lacks(page: Page, tmp_path):
    page.environment.loader.searchpath.append(str(tmp_path))
    (tmp_path / "lacking.html.j2").write_text('<p>\n{{ num("sim.no.such") }}</p>')
    with pytest.raises(InputError, match=r"sim\.no\.such"):
        render(page, "lacking.html.j2")
