"""What may not stand in the paper: each check is shown refusing it, through Typst, as the build runs it."""

import re

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status
from kvtier.publish.paper import transcript, typeset

from .conftest import ALL, PAPER, RECORDS, record

SIMULATED = '#plus-minus("sim.margin")'


def read(small, text):
    (items,) = small.queried(text, "transcript")
    return transcript.passages(items)


def test_bound_values_are_apart_from_what_is_typed(small):
    (_, passage) = read(small, '= One\nA copy moves #num("measured.copy") here.')
    assert passage.text.strip() == "A copy moves 236.5\u00a0GB/s here."
    assert passage.typed.splitlines()[1].strip() == "A copy moves □ here."
    assert [(quote["what"], quote["key"]) for quote in passage.quoted] == [("num", "measured.copy")]


def test_numbers_are_found_in_each_place_that_is_read(small):
    text = '= A\n#tabular(1, [h], num("analytic.block"), caption: [#num("analytic.loss")], alt: "x")\n_#num("measured.copy")_'
    keys = [quote["key"] for passage in read(small, text) for quote in passage.quoted]
    assert keys == ["analytic.block", "analytic.loss", "measured.copy"]


def test_an_unknown_key_names_file_line_and_key(small):
    with pytest.raises(InputError, match=r"paper\.typ, line 5: sim\.rev9\.hit: found no such key, expected one of this build$"):
        small('= One\n\n#num("sim.rev9.hit")')


def test_an_unknown_key_put_together_by_a_loop_is_named(small):
    with pytest.raises(InputError, match=r"paper\.typ: analytic\.b: found no such key"):
        small('= One\n#for word in ("block", "b") { num("analytic." + word) }')


@pytest.mark.parametrize(
    "text",
    [
        "The rate is 42 here.",
        "The rate is #(40 + 2) here.",
        '#("4" + "2")',
        "#tabular(2, [a], [b], [42], [c])",
        "#tabular(2, [a], [b], [c], [d], caption: [Of 42])",
        '#tabular(2, [a], [b], [c], [d], alt: "Of 42")',
        "== Head of 42",
        "- an item of 42",
        "/ Term: of 42",
        "Text#footnote[of 42].",
        '#link("https://x.org")[of 42]',
        "#strike[42] points",
        '#math.equation(alt: "a", $x = 42$)',
        "A rate of `42 GB` in code.",
        "Code with words: `LRU 42`.",
        "Text#footnote[42].",
        "Text#super[42]",
        "about ~42",
        "−42",
    ],
)
def test_a_typed_number_is_refused_wherever_it_is_read(small, text):
    with pytest.raises(InputError, match=r"paper\.typ: .*: found the bare number [~−-]?42"):
        small(f"= One\n{text}")


def test_a_number_typed_beside_a_bound_one_is_refused(small):
    with pytest.raises(InputError, match="the bare number 3"):
        small('= One\n#num("measured.copy") in 3 runs')


@pytest.mark.parametrize("front", ['title: "Of 42"', "subtitle: [Of 42]", "authors: [42 authors]"])
def test_a_number_typed_in_the_front_matter_is_refused(small, front):
    name = front.partition(":")[0]
    parts = small.parts("= One")
    text = small.source.read_text(encoding="utf-8")
    small.source.write_text(re.sub(rf'{name}: ("[^"]*"|\[[^]]*\])', lambda _: front, text), encoding="utf-8")
    with pytest.raises(InputError, match="front matter: found the bare number 42"):
        typeset.render(*parts, {})


def test_a_pattern_with_a_reason_lets_a_number_stand(small):
    small.allowed = {r"\b2Q\b|\b42 GiB\b": "name of a policy or condition"}
    assert small('= One\n2Q at 42~GiB, in `make -j4`; see @one and @part.\n= Part <part>\n#bibliography("references.bib")').startswith(
        b"%PDF"
    )


def test_a_retracted_number_is_no_result(small):
    with pytest.raises(InputError, match=r"line 4: analytic\.gone: found a number that is retracted, expected one that is not"):
        small('= What was retracted\n#num("analytic.gone")')
    with pytest.raises(InputError, match=r"sim\.wrong: found a number that is withdrawn"):
        small('= What was retracted\n#caveat()\n#num("sim.wrong")')
    small.records = {**RECORDS, "measured.copy": record(236.5, "GB/s", 1, Label.MEASURED, status=str(Status.REVERSED))}
    with pytest.raises(InputError, match=r"measured\.copy: found a number that is reversed"):
        small('= What was retracted\n#num("measured.copy")')


def test_a_withdrawn_number_stands_under_a_heading_that_says_so(small):
    assert small('= What was retracted\n#caveat()\n#withdrawn("sim.wrong")')
    with pytest.raises(InputError, match="Results: found retracted values, expected a heading with one of retract"):
        small('= Results\n#caveat()\n#withdrawn("sim.wrong")')
    with pytest.raises(InputError, match=r"measured\.copy: found a number that is stands, expected a withdrawn one"):
        small('= What was retracted\n#withdrawn("measured.copy")')


def test_a_simulated_number_needs_the_caveat_in_its_section(small):
    with pytest.raises(InputError, match=r"One: found simulated numbers \(sim\.margin\) without the standing caveat"):
        small(f"= One\n{SIMULATED}")
    with pytest.raises(InputError, match="Two: found simulated numbers"):
        small(f"= One\n#caveat()\n= Two\n{SIMULATED}")
    assert small(f"= One\n#caveat()\n== Part\n{SIMULATED}")
    assert small(f"= One\n{SIMULATED}\n\n#caveat()")


def test_a_simulated_figure_needs_it_too_and_an_unknown_one_is_refused(small):
    with pytest.raises(InputError, match=r"One: found simulated numbers \(drawn\)"):
        small('= One\n#chart("drawn")[Caption.]')
    assert small('= One\n#caveat()\n#chart("drawn")[Caption.]')
    with pytest.raises(InputError, match=r"line 4: other: found no such figure"):
        small('= One\n#chart("other")[Caption.]')


def test_published_values_stand_under_headings_about_claims(small):
    claim = '#printed("appendix.s03.kv_per_token_kib")'
    assert small(f"= Published claims\n{claim}")
    with pytest.raises(InputError, match="Sizes: found published values, expected a heading with one of published, claim"):
        small(f"= Sizes\n{claim}")
    with pytest.raises(InputError, match="found simulated numbers"):
        small('= Published claims\n#printed("appendix.s15.margin")')
    with pytest.raises(InputError, match="found no such claim"):
        small('= Published claims\n#printed("appendix.s03.no_such")')


def test_a_retracted_claim_stands_under_headings_about_retractions(small):
    claim = '#printed("retractions.s1.hit_rate")'
    assert small(f"= What was retracted\n{claim}")
    with pytest.raises(InputError, match="Published claims: found retracted values"):
        small(f"= Published claims\n{claim}")


def test_a_retracted_value_does_not_come_back_as_another_number(small):
    small.records = {**RECORDS, "measured.other": record(97, "%", 0, Label.MEASURED)}
    with pytest.raises(InputError, match=r"hit_rate: .*found a retracted value"):
        small('= Results\nA rate of #num("measured.other").')
    assert small('= What was retracted\nA rate of #num("measured.other").')


def test_an_uncertainty_that_is_not_there_is_missed(small):
    for call in ("plus-minus", "interval"):
        with pytest.raises(InputError, match=r"measured\.copy: found no uncertainty"):
            small(f'= One\n#{call}("measured.copy")')


def test_a_sentence_is_held_to_its_condition(small):
    assert small('= One\nIt is fast.#holds(`num("measured.copy") > 200`)')
    with pytest.raises(InputError, match=r"line 4: One: found num\(\"measured\.copy\"\) > 300, which is not so"):
        small('= One\nIt is fast.#holds(`num("measured.copy") > 300`)')
    with pytest.raises(InputError, match=r"measured\.absent"):
        small('= One\nIt is fast.#holds(`num("measured.absent") > 300`)')


def test_a_sentence_is_held_to_the_fate_of_a_result(small):
    assert small('= One\nIt is gone.#fated("does not survive", "S1")')
    with pytest.raises(InputError, match="S1: found no such result that survives"):
        small('= One\nIt stands.#fated("survives", "S1")')
    with pytest.raises(InputError, match="S7: found no such result"):
        small('= One\n#fate("S7")')


@pytest.mark.parametrize(
    "call",
    ["#badge(data.labels.first())", '#json("values.json")', '#read("values.json")', '#eval("4" + "2")', '#metadata((kind: "close"))',
     "#sys.version", '#query(<badge>)', '#bound("num", "measured.copy", "43")', '#shown("measured.copy", "text")',
     '#image(bytes("<svg/>"), alt: "42 drawn")'],
)  # fmt: skip
def test_a_source_cannot_go_past_the_ledger(small, call):
    with pytest.raises(InputError, match=r"paper\.typ: line 4: found .*, expected the public functions of style\.typ"):
        small(f"= One\n{call}")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('#import "style.typ": badge, paper', "badge"),
        ('#import "style.typ": (\n  num, paper, bound,\n)', "bound"),
        ('#import "style.typ": *', r"\*"),
        ('#import "style.typ"', "#import"),
        ('#import "other.typ": x', "#import"),
        ('#include "other.typ"', "#include"),
        ('#import "@preview/x:0.1.0": y', "#import"),
        ('#import "style.typ": num as badge', "badge"),
        ('#import "style.typ": pile', "pile"),
    ],
)
def test_a_source_cannot_take_what_draws_badges_or_binds(small, line, found):
    small.imports = line
    with pytest.raises(InputError, match=f"paper.typ: line 1: found .*{found}"):
        small("= One")


def test_each_name_of_the_style_is_either_for_papers_or_kept_from_them():
    """A new function of style.typ has to be put on one side, or harmless: it prints nothing."""
    names = set(re.findall(r"(?m)^#let ([\w-]+)", (PAPER / "style.typ").read_text(encoding="utf-8")))
    harmless = {"apart", "blocks", "chart-scale", "flat", "is-block", "margin-column", "muted", "sans"}
    public = set(ALL.split(", "))
    assert names == public | set(transcript.PRIVATE) | harmless
    assert not public & set(transcript.PRIVATE)


def test_a_badge_follows_the_ledger_and_nothing_else(small):
    text = '= One\nA copy moves #num("measured.copy").\n\nAnd a block has #num("analytic.block"), by #num("measured.copy").\n\nNo number.'
    assert small.queried(text, "badge") == [["Measured"], ["Measured", "Analytical model"]]
    small.records = {**RECORDS, "measured.copy": record(236.5, "GB/s", 1, Label.ILLUSTRATIVE)}
    assert small.queried(text, "badge") == [["Illustrative"], ["Analytical model", "Illustrative"]]


def test_a_word_typed_like_a_class_is_no_badge(small):
    assert small.queried("= One\nMeasured: nothing. *Measured*", "badge") == []


def test_a_table_has_the_badges_of_its_cells(small):
    table = '#tabular(2, [a], [b], [c], num("analytic.block"), caption: [Sizes.], alt: "sizes")'
    assert small.queried(f"= One\n{table}", "badge") == [["Analytical model"]]


def test_what_could_not_have_a_badge_or_be_read_is_refused(small):
    with pytest.raises(InputError, match="a number in a list item has no badge"):
        small('= One\n- moves #num("measured.copy")')
    with pytest.raises(InputError, match=r"set and show rules belong to style\.typ"):
        small("= One\n#set text(size: 8pt)\n= Two")
    with pytest.raises(InputError, match="One: found a context that cannot be read before layout"):
        small("= One\n#context [a]")


def test_a_swallowed_semicolon_is_refused(small):
    with pytest.raises(InputError, match=r"line 4: found a semicolon after a call, which Typst does not print, expected \\;"):
        small('= One\n#num("measured.copy"); and more')
    assert small('= One\n#num("measured.copy")\\; and more')
