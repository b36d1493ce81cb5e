"""What a page's functions print, and the papers behind each value."""

from __future__ import annotations

import json
import re

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import SIMULATION_CAVEAT
from kvtier.publish.diagrams import Diagram
from kvtier.publish.pages.markup import plain_text
from kvtier.publish.pages.page import Page
from kvtier.publish.pages.papers import papers as papers_of


def papers(page: Page) -> dict:
    return json.loads(re.sub(r"^<script[^>]*>|</script>$", "", str(papers_of(page.facts))))


def test_a_number_is_a_link_to_its_papers(page):
    assert page.num("analytic.kv.llama3_70b.128k.gib") == ('<a class="num number" href="#n/analytic.kv.llama3_70b.128k.gib">40.00 GiB</a>')
    found = papers(page)["numbers"]["analytic.kv.llama3_70b.128k.gib"]
    assert found["label"] == "Analytical model"
    assert found["command"] == "snakemake --cores all --force results/numbers/tabulate_capacity.json"
    assert "appendix.s10.kv_128k" in found["claims"]


def test_each_link_has_papers(page):
    html = page.both("appendix.s15.e1_32_lru") + page.stated("appendix.s01.layers") + page.verdict("appendix.s16.contexts")
    found = papers(page)
    kinds = {"n": "numbers", "c": "claims"}
    links = re.findall(r'href="#([nc])/([^"]+)"', html)
    assert len(links) == 4
    assert all(name in found[kinds[kind]] for kind, name in links)


def test_numbers_that_a_claim_rests_on_are_among_the_papers(page):
    page.stated("appendix.s01.layers")
    page.verdict("appendix.s15.e1_32_lru")
    assert "sim.rev2.e1.32.lru.hit" in papers(page)["numbers"]


def test_words_of_the_papers_cannot_end_the_script(page, monkeypatch):
    monkeypatch.setitem(page.facts.claims.records["appendix.s01.layers"], "says", "a </script> in it")
    page.stated("appendix.s01.layers")
    assert str(papers_of(page.facts)).count("</script>") == 1


def test_a_retracted_value_is_struck_through(page):
    assert str(page.printed("appendix.s15.users")).startswith("<s>")


def test_a_part_with_a_simulated_number_brings_the_caveat(page, tmp_path):
    page.environment.loader.searchpath.append(str(tmp_path))
    (tmp_path / "a.html.j2").write_text('<p>{{ num("sim.rev3.e1.32.lru.hit") }}</p>')
    (tmp_path / "b.html.j2").write_text('<p>{{ num("analytic.hbm.kv_gb") }}</p>')
    assert SIMULATION_CAVEAT in page.part("a.html.j2")
    assert SIMULATION_CAVEAT not in page.part("b.html.j2")


def test_text_of_a_page_is_the_recomputed_one(page):
    assert plain_text(page.both("appendix.s16.contexts")) == page.facts.quote("analytic.concurrency.hbm_and_cxl.128k.whole").text


def drawn(page: Page, key: str, limits: str = "own limits") -> str:
    diagram = Diagram("9.9", "one", "One value", lambda canvas: canvas.text(0, 20, [canvas.facts.num(key)]), "A value.", limits=limits)
    page.diagrams = {"9.9": diagram}
    return page.diagram("9.9")


def test_a_figure_gets_the_class_of_its_values_and_their_caveat(page):
    simulated, analytic = drawn(page, "sim.rev3.e1.32.lru.hit"), drawn(page, "analytic.hbm.kv_gb")
    assert 'data-label="Simulated (provisional)"' in simulated
    assert SIMULATION_CAVEAT in simulated
    assert 'data-label="Analytical model"' in analytic
    assert "own limits" in analytic


def test_one_simulated_value_among_others_brings_the_caveat(page):
    values = ("sim.rev3.e1.32.lru.hit", "analytic.hbm.kv_gb")
    draw = lambda canvas: [canvas.text(0, 20 + 20 * row, [canvas.facts.num(key)]) for row, key in enumerate(values)]  # noqa: E731
    page.diagrams = {"9.9": Diagram("9.9", "one", "Two values", draw, "Values.", limits="own limits")}
    assert SIMULATION_CAVEAT in page.diagram("9.9")


def test_a_figure_is_drawn_in_both_layouts(page):
    assert re.findall(r'viewBox="0 0 (\d+) ', drawn(page, "analytic.hbm.kv_gb")) == ["720", "328"]


def test_what_does_not_exist_is_named(page):
    for call, name in ((page.diagram, "99.1"), (page.chart, "nothing"), (page.retraction, "nothing"), (page.finding, "D99")):
        with pytest.raises(InputError, match=re.escape(name)):
            call(name)


def test_a_table_of_two_experiments_is_refused(page):
    with pytest.raises(InputError, match="rows of e1 and e2"):
        page.listing("sim.rev2.e1.32.lru.hit", "sim.rev2.e2.lru.hit", caption="Rates")
