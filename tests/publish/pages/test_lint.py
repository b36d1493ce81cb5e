"""A page's own watch: typed numbers and escaped retractions are seen."""

from __future__ import annotations

import pytest

from kvtier.errors import InputError
from kvtier.publish.pages import lint
from kvtier.publish.pages.page import Page, render

ALLOWED = {r"\bDiagram \d+\.\d\b": "number of a diagram"}


@pytest.mark.parametrize(
    "html",
    [
        "<p>a rate of 37.17 %</p>",
        '<p id="x">twelve <b>12</b></p>',
        "<svg><text>12 GB</text></svg>",
        '<div aria-label="12 GB"></div>',
        "<table><tr><td>5</td></tr></table>",
    ],
)
def test_a_typed_number_is_found(html):
    assert lint.bare_numbers(html, ALLOWED)


@pytest.mark.parametrize(
    "html",
    [
        '<p>a rate of <a class="num" href="#n/k">37.17 %</a>.</p>',
        "<p>Diagram 3.2</p>",
        '<span class="n">3</span>',
        '<figcaption><span data-made-by="chart">turns 1,250 to 2,499</span></figcaption>',
        "<p><code>sim.rev2.e1.32</code></p>",
        '<svg viewBox="0 0 720 200"><text x="3">KV</text></svg>',
        "<style>p{margin:3px}</style><script>const a = 3;</script>",
    ],
)
def test_values_names_and_code_are_not_typed_numbers(html):
    assert lint.bare_numbers(html, ALLOWED) == []


def test_words_around_a_value_do_not_hide_a_number_beside_it():
    assert lint.bare_numbers('<p><a class="num">3</a>7 %</p>', {}) == [("page", "7")]


def test_the_place_of_a_typed_number_is_named():
    assert lint.bare_numbers('<section id="part-3"><p>about 12</p></section>', {}) == [("part-3", "12")]


@pytest.fixture
def allowed(tmp_path):
    path = tmp_path / "allowed.yaml"
    path.write_text(r"""'\d+(\.\d+)?': everything, for this test""" + "\n")
    return path


def test_a_retracted_value_outside_its_box_is_refused(read, allowed):
    with pytest.raises(InputError, match="hit_rate"):
        lint.check("page", "<p>HBM serves 97 % of it.</p>", [allowed], read[1].retractions)


def test_a_retracted_value_split_over_elements_is_seen(read, allowed):
    with pytest.raises(InputError, match="hit_rate"):
        lint.check("page", "<p>HBM serves <b>97</b> % of it.</p>", [allowed], read[1].retractions)


def test_it_may_stand_in_its_box(page, read, allowed):
    box = str(page.retraction("hit_rate"))
    assert "97" in box
    lint.check("page", box, [allowed], read[1].retractions)


def test_a_template_cannot_print_what_the_ledger_lacks(page: Page, tmp_path):
    page.environment.loader.searchpath.append(str(tmp_path))
    (tmp_path / "lacking.html.j2").write_text('<p>\n{{ num("sim.no.such") }}</p>')
    with pytest.raises(InputError, match=r"sim\.no\.such"):
        render(page, "lacking.html.j2")
