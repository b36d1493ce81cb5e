"""Pages and figures of notebooks: what is from outside is refused, what a figure says is in it."""

import json

import polars as pl
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from kvtier.errors import InputError
from kvtier.evidence.labels import SIMULATION_CAVEAT
from kvtier.publish.notebooks import figures, page, show
from kvtier.publish.notebooks.charts import PICTURE, SPECIFICATION

CURVES = pl.DataFrame(
    {
        "policy": ["LRU", "EMA", "EMA", "LRU", "EMA", "EMA"],
        "alpha": [None, 0.5, 0.1, None, 0.5, 0.1],
        "capacity": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
        "hits": [10, 11, 12, 20, 22, 24],
        "reads": [40] * 6,
        "optimum_hits": [14, 14, 14, 30, 30, 30],
    }
)


def shown():
    return figures.policies_by_capacity(CURVES, capacity=2.0, unit="blocks", source="a test", caption="Two capacities.")


def notebook(*outputs):
    cells = [new_markdown_cell("# Title", id="a"), new_code_cell("1", outputs=list(outputs), id="b")]
    return new_notebook(cells=cells)


@pytest.mark.parametrize(
    "planted",
    [
        '<script src="https://cdn.example/require.js"></script>',
        "<img src=//example/a.png>",
        '<link rel="stylesheet" href="http://example/a.css">',
        "<style>@import 'a.css'</style>",
        "<style>p{background:url(https://example/a.png)}</style>",
        '<a href="https://example/">elsewhere</a>',
    ],
)
def test_what_is_from_outside_is_refused(planted):
    output = new_output("display_data", {"text/html": planted})
    with pytest.raises(InputError, match=r"^notebooks/x.py: page, line \d+: found .*expected nothing from outside the file"):
        page.render("notebooks/x.py", notebook(output))


def test_what_a_script_holds_is_not_fetched():
    page.check_inside("x", '<script>const schema = "https://vega.github.io/schema"; a.src = "//b"</script>')


def test_a_notebook_without_a_heading_is_refused():
    with pytest.raises(InputError, match=r"x.py: cell 1: found words"):
        page.title("x.py", new_notebook(cells=[new_markdown_cell("words", id="a")]))


def test_a_figure_is_a_picture_that_a_script_replaces():
    figure = shown()
    bundle = figure._repr_mimebundle_()
    html = page.render("notebooks/x.py", notebook(new_output("execute_result", bundle, execution_count=1)))
    assert bundle[PICTURE].strip() in html
    assert html.count('class="specification"') == 1
    assert "</script" not in html.partition('class="specification"')[2].partition("</script>")[0]
    assert "vegaEmbed(place" in html
    assert len(html) < 1_500_000


def test_a_page_without_figures_has_no_script():
    assert "<script" not in page.render("notebooks/x.py", notebook())


def test_words_cannot_end_the_script_of_a_figure():
    bundle = {**shown()._repr_mimebundle_(), SPECIFICATION: {"description": "</script><b>planted</b>"}}
    html = page.render("notebooks/x.py", notebook(new_output("execute_result", bundle, execution_count=1)))
    assert "<b>planted</b>" not in html


def test_rates_and_regret_by_hand():
    points = figures.rates(CURVES)
    best = points.filter(policy=figures.OPTIMUM, capacity=2.0)
    assert best["hits"].to_list() == [30]
    assert best["hit_percent"].to_list() == [75.0]
    assert best["regret"].to_list() == [0.0]
    assert points.filter(policy="LRU", capacity=2.0)["regret"].to_list() == [25.0]


def test_a_figure_of_simulated_values_bears_badge_and_caveat():
    figure = shown()
    assert "Simulated (provisional) · a test" in figure.picture
    assert "no hardware validation" in figure.picture
    names = {parameter["name"] for parameter in figure.specification["params"] if "bind" in parameter}
    assert names == {"capacity_shown", "alpha_shown"}


def test_contents_of_hbm_have_a_turn_and_a_policy_to_choose():
    rows = pl.DataFrame(
        [
            {"policy": policy, "turn": turn, "session": session, "resident_blocks": 1, "context_blocks": 2, "read": session == turn}
            for policy in ("LRU", figures.OPTIMUM)
            for turn in (0, 1)
            for session in (0, 1)
        ]
    )
    figure = figures.inside_hbm(rows, turn=1, capacity_blocks=3, source="a test")
    bound = {parameter["name"]: parameter["bind"]["input"] for parameter in figure.specification["params"] if "bind" in parameter}
    assert bound == {"turn": "range", "policy_shown": "radio"}
    with pytest.raises(InputError, match="blocks inside HBM"):
        figures.inside_hbm(rows.drop("read"), turn=1, capacity_blocks=3, source="a test")


def test_blocks_of_html_escape_their_words_and_say_the_same_in_text():
    block = show.table(["a", "b", "c"], [("x<y", 1234, "12 %"), ("z", 5, "")], "A & B")
    html = block._repr_html_()
    assert "x&lt;y" in html
    assert "A &amp; B" in html
    assert '<td class="right">1,234</td>' in html
    assert '<th scope="row">x&lt;y</th>' in html
    assert repr(block) == "A & B\na | b | c\nx<y | 1,234 | 12 %\nz | 5 |"
    assert repr(show.fields({"a": 1, "b": ""})) == "a: 1"
    assert SIMULATION_CAVEAT in show.caveat()._repr_html_()
    assert "right" not in show.table(["a", "b"], [("x", "90 hits, at most 60")])._repr_html_()


def test_a_specification_is_json():
    json.dumps(shown().specification)
