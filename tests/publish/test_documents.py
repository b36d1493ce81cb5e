import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.evidence import findings, retractions
from kvtier.evidence.labels import MEANING, SIMULATION_CAVEAT, Label
from kvtier.files import read_json, sha256
from kvtier.publish import documents
from kvtier.publish.ledger import Ledger
from kvtier.publish.sources import Sources
from kvtier.publish.verdicts import Claims

TEMPLATES = Path(documents.__file__).parent / "templates"
CANONICAL = TEMPLATES / "CANONICAL-NUMBERS.md.j2"
ROOT = Path(__file__).parents[2]
RETRACTED = ROOT / "data/published/retractions.yaml"


@pytest.fixture
def fill(tmp_path, ledger):
    def fill(text: str) -> str:
        template = tmp_path / "page.md.j2"
        template.write_text(text, encoding="utf-8")
        return documents.render(template, ledger)

    return fill


def test_prints_display_and_unit(fill):
    assert fill('{{ section("Analytical model") }}\n{{ num("analytic.users.16.free_gb") }}').endswith("\n−640 GB")


def test_an_unknown_key_names_template_line_and_key(fill):
    with pytest.raises(InputError, match=r"page\.md\.j2, line 3: sim\.rev9\.hit: found no such key"):
        fill('one\ntwo\n{{ num("sim.rev9.hit") }}\n')


def test_an_unknown_key_in_a_loop_names_the_line(fill):
    with pytest.raises(InputError, match=r"page\.md\.j2, line 3: analytic\.b: found no such key"):
        fill('{% for word in "ab" %}\n{% if word == "b" %}\n{{ num("analytic." ~ word) }}\n{% endif %}\n{% endfor %}\n')


def test_nothing_is_half_written(tmp_path, numbers):
    template, page = tmp_path / "page.md.j2", tmp_path / "deep" / "page.md"
    template.write_text('first\n{{ num("no.such") }}\n', encoding="utf-8")
    with pytest.raises(InputError):
        documents.write(template, numbers, page, retracted=RETRACTED)
    assert not page.parent.exists()


def test_an_old_page_survives_a_failure(tmp_path, numbers):
    template, page = tmp_path / "page.md.j2", tmp_path / "page.md"
    page.write_text("old", encoding="utf-8")
    template.write_text('{{ num("no.such") }}', encoding="utf-8")
    with pytest.raises(InputError):
        documents.write(template, numbers, page, retracted=RETRACTED)
    assert page.read_text(encoding="utf-8") == "old"


def test_makes_the_folder_that_is_missing(tmp_path, numbers):
    template, page = tmp_path / "page.md.j2", tmp_path / "deep" / "er" / "page.md"
    template.write_text('{{ num("analytic.hbm.capacity_gb") }}', encoding="utf-8")
    documents.write(template, numbers, page, retracted=RETRACTED)
    assert page.read_text(encoding="utf-8") == "192 GB"


@pytest.mark.parametrize(
    ("heading", "key", "stands"),
    [
        ("Measured", "measured.gb10.stream.copy_gbps", True),
        ("Measured", "analytic.users.16.free_gb", False),
        ("Simulated (provisional)", "analytic.users.16.free_gb", False),
        ("Analytical model", "measured.gb10.stream.copy_gbps", True),
        ("Analytical model", "analytic.hbm.capacity_gb", False),
        ("Vendor specification and stated inputs", "analytic.tier.t2.latency_ns", True),
        ("Vendor specification and stated inputs", "analytic.softmax.of.percent", False),
        ("Illustrative", "analytic.softmax.of.percent", True),
    ],
)
@pytest.mark.parametrize("function", ["num", "signed", "definition", "label", "listing"])
def test_no_number_stands_in_a_section_of_a_stronger_class(fill, heading, key, stands, function):
    text = f'{{{{ section("{heading}") }}}}\n{{{{ {function}("{key}") }}}}'
    if stands:
        fill(text)
    else:
        with pytest.raises(InputError, match=rf"page\.md\.j2, line 2: {key}: found label .* or stronger: the section's class"):
            fill(text)


def test_a_simulated_number_needs_the_caveat_under_its_heading(fill):
    section = '{{ section("Simulated (provisional)") }}\n'
    table = '### A table\n\n{{ num("sim.rev2.e2.lru.hit") }}\n'
    with pytest.raises(InputError, match=r"page\.md\.j2: ### A table: found simulated numbers without the standing caveat"):
        fill(section + "{{ caveat() }}\n" + table)
    found = fill(section + table + "{{ caveat() }}\n")
    assert SIMULATION_CAVEAT in found
    assert documents.SIMULATED_MARK not in found


def test_a_simulated_number_needs_the_caveat_in_a_weaker_section_too(fill):
    with pytest.raises(InputError, match="standing caveat"):
        fill('{{ section("Illustrative") }}\n{{ num("sim.rev2.e2.lru.hit") }}')


def test_a_retracted_number_is_not_printed(fill):
    with pytest.raises(InputError, match=r"old_state: found a number that is retracted"):
        fill('{{ section("Illustrative") }}{{ num("analytic.gqa.old_state") }}')


def test_a_withdrawn_number_prints_only_where_it_is_kept_for_audit(records, tmp_path):
    records["sim.rev2.e2.lru.hit"]["status"] = "withdrawn"

    def fill(text):
        (tmp_path / "page.md.j2").write_text(text, encoding="utf-8")
        return documents.render(tmp_path / "page.md.j2", Ledger("numbers.json", records))

    number = '{{ caveat() }}\n{{ num("sim.rev2.e2.lru.hit") }}'
    kept = '{{ section("Simulated (provisional)") }}\n{{ kept_for_audit("Revision 1") }}\n'
    assert "superseded, kept for audit" in fill(kept + number)
    with pytest.raises(InputError, match=r"sim\.rev2\.e2\.lru\.hit: found a number that is withdrawn"):
        fill('{{ section("Simulated (provisional)") }}\n' + number)
    with pytest.raises(InputError, match="withdrawn"):
        fill(kept + '{{ section("Illustrative") }}\n' + number)
    for status in ("retracted", "reversed"):
        records["sim.rev2.e2.lru.hit"]["status"] = status
        with pytest.raises(InputError, match=f"found a number that is {status}"):
            fill(kept + number)


def test_sections_cover_every_class_in_order():
    classes = [label for labels in documents.SECTIONS.values() for label in labels]
    assert classes == list(Label)


def test_a_section_says_what_its_class_means(fill):
    assert MEANING[Label.MEASURED] in fill('{{ section("Measured") }}')
    with pytest.raises(InputError, match="an unknown heading"):
        fill('{{ section("Proven") }}')


def test_a_mean_and_its_interval_share_a_unit(records, tmp_path):
    records["analytic.hbm.capacity_gb"] |= {
        "value": 44.55,
        "display": "44.55",
        "uncertainty": {"interval_low": 43.9, "interval_high": 45.2},
    }
    (tmp_path / "page.md.j2").write_text('{{ plus_minus("analytic.hbm.capacity_gb") }}', encoding="utf-8")
    assert documents.render(tmp_path / "page.md.j2", Ledger("numbers.json", records)) == "44.55 [43.90, 45.20] GB"


def test_uncertainty_is_printed_or_missed(fill):
    assert fill('{{ plus_minus("measured.gb10.vllm_loo_16x16384.slope") }}') == "11.87 ± 1.20 ms/GiB"
    with pytest.raises(InputError, match="found no uncertainty"):
        fill('{{ unc("analytic.hbm.capacity_gb") }}')


def test_a_grid_finds_its_rows_and_columns_in_the_ledger(fill):
    found = fill('{{ caveat() }}\n{{ grid("sim.rev2.e1.<gib>.<policy>.hit", "gib", "policy", corner="HBM") }}').splitlines()
    assert found[1] == "| HBM | LRU | LFU | EMA 0.15 | EMA 0.01 |"
    assert [line.split(" | ")[0] for line in found[3:6]] == ["| 8 GiB", "| 32 GiB", "| 128 GiB"]
    assert found[-1] == "Keys: `sim.rev2.e1.<gib>.<policy>.hit`"


def test_a_hole_in_a_grid_is_an_error_unless_it_has_words(tmp_path, records):
    del records["sim.rev2.e1.32.lfu.hit"]
    template = tmp_path / "page.md.j2"
    grid = 'grid("sim.rev2.e1.<gib>.<policy>.hit", "gib", "policy", corner="HBM"'
    template.write_text("{{ caveat() }}\n{{ " + grid + ") }}", encoding="utf-8")
    ledger = documents.Ledger("numbers.json", records)
    with pytest.raises(InputError, match=r"line 2: sim\.rev2\.e1\.32\.lfu\.hit: found no such key"):
        documents.render(template, ledger)
    template.write_text("{{ caveat() }}\n{{ " + grid + ', absent="no eviction") }}', encoding="utf-8")
    assert documents.render(template, ledger).count("| no eviction |") == 1


def test_a_pattern_without_keys_is_an_error(fill):
    with pytest.raises(InputError, match="found no key that matches"):
        fill('{{ records("sim.rev7.<policy>", corner="Policy", columns={"Hit rate": "hit"}) }}')


def test_a_listing_shows_the_class_only_where_classes_mix(fill):
    key = "analytic.hbm.capacity_gb"
    assert "| Vendor specification |" in fill(f'{{{{ section("Vendor specification and stated inputs") }}}}\n{{{{ listing("{key}") }}}}')
    assert "| Class |" not in fill(f'{{{{ section("Illustrative") }}}}\n{{{{ listing("{key}") }}}}')


def test_a_definition_does_not_break_its_table(fill):
    assert r"mean \|S\| of users" in fill('{{ listing("analytic.users.16.free_gb") }}')


@pytest.mark.parametrize(("text", "line"), [("{{ nmu('a.b') }}", 1), ("a\n{{ section }}\n{{ wrong.name }}", 3)])
def test_an_undefined_name_is_an_error(fill, text, line):
    with pytest.raises(InputError, match=rf"page\.md\.j2, line {line}: name: found .* is undefined"):
        fill(text)


def test_a_template_that_does_not_parse_names_the_line(fill):
    with pytest.raises(InputError, match=r"page\.md\.j2: line 2: .*expected a template that parses"):
        fill("fine\n{% for %}")


def test_a_template_that_is_missing_is_named(tmp_path, ledger):
    with pytest.raises(InputError, match=r"none\.j2: file: found nothing"):
        documents.render(tmp_path / "none.j2", ledger)


def test_the_canonical_template_types_no_decimal():
    """A decimal in the template would be a result typed by hand; versions and file names have none that stand alone."""
    words = CANONICAL.read_text(encoding="utf-8").split()
    assert [word for word in words if word.strip("(),.;:|").replace(".", "", 1).isdigit() and "." in word.strip("(),.;:|")] == []


def test_bytes_do_not_depend_on_the_process(tmp_path, numbers):
    template = tmp_path / "page.md.j2"
    template.write_text('{{ caveat() }}\n{{ grid("sim.rev2.e1.<gib>.<policy>.hit", "gib", "policy", corner="HBM") }}', encoding="utf-8")
    write = "import sys; from kvtier.publish import documents; documents.write(*sys.argv[1:4], retracted=sys.argv[4])"
    pages = []
    for seed, zone in (("0", "UTC"), ("4242", "Pacific/Auckland")):
        page = tmp_path / f"{seed}.md"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
        subprocess.run([sys.executable, "-c", write, template, numbers, page, RETRACTED], env=environment, check=True, timeout=60)
        pages.append(page.read_bytes())
    assert pages[0] == pages[1]


@pytest.fixture(scope="module")
def published():
    """Claims, findings and retractions of the published copy, and its ledger."""
    ledger = Ledger.read(ROOT / "data/numbers.json")
    claims = Claims("claims.json", read_json(ROOT / "data/claims.json"), ledger, {"appendix": "Appendix"})
    files = {name: ROOT / name for name in ("data/results_v2.json", "src/kvtier/simulate/revision1.py")}
    listed = findings.read(ROOT / "data/published/findings.yaml")
    return ledger, Sources(claims, listed, retractions.read(RETRACTED), files)


@pytest.fixture
def tell(tmp_path, published):
    def tell(text: str) -> str:
        template = tmp_path / "page.md.j2"
        template.write_text(text, encoding="utf-8")
        return documents.render(template, *published)

    return tell


CLAIM, RETRACTED_CLAIM = "appendix.s16.tokens_16x4k", "retractions.s1.hit_rate"


def test_a_published_value_is_printed_as_printed(tell):
    assert tell(f'{{{{ as_published("Claims") }}}}\n{{{{ printed("{CLAIM}") }}}}') == "## Claims\n150 tok/s"
    assert tell('{{ as_published("Claims") }}\n{{ printed("appendix.s14.positions", 1) }}').endswith("\n11,078 positions")


@pytest.mark.parametrize("place", ["", "# Results\n", '{{ as_published("Claims") }}\n# Results\n'])
def test_a_published_value_stands_in_passages_about_claims_alone(tell, place):
    with pytest.raises(InputError, match="found published values, expected as_published"):
        tell(f'{place}{{{{ printed("{CLAIM}") }}}}')


@pytest.mark.parametrize("place", ["", '{{ as_published("Claims") }}\n', '{{ as_retracted("Withdrawn") }}\n# Results\n'])
def test_a_retracted_value_stands_in_passages_about_retractions_alone(tell, place):
    with pytest.raises(InputError, match="found retracted values, expected as_retracted"):
        tell(f'{place}{{{{ printed("{RETRACTED_CLAIM}") }}}}')


def test_a_retracted_value_stands_under_a_heading_that_says_so(tell):
    assert tell(f'{{{{ as_retracted("What was retracted") }}}}\n{{{{ printed("{RETRACTED_CLAIM}") }}}}').endswith("\n97 %")
    with pytest.raises(InputError, match="a heading that does not say so"):
        tell('{{ as_retracted("Results") }}')


def test_a_withdrawn_number_stands_in_passages_about_retractions_alone(tell):
    number = '{{ caveat() }}\n{{ withdrawn("sim.rev1.budgets.32.lru.hit") }}'
    assert "61.32 %" in tell('{{ as_retracted("Superseded") }}\n' + number)
    with pytest.raises(InputError, match="found retracted values"):
        tell("# Results\n" + number)
    with pytest.raises(InputError, match="a number that is stands"):
        tell('{{ withdrawn("analytic.hbm.capacity_gb") }}')


def test_a_retracted_value_that_is_typed_fails(tell):
    with pytest.raises(InputError, match="hit_rate: a 97% hit rate"):
        tell("# Results\n\na 97% hit rate\n")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('printed("appendix.gone")', r"line 2, claims\.json: appendix\.gone: found no such claim"),
        ('printed("appendix.s14.positions", 2)', r"line 2, claims\.json: appendix\.s14\.positions: found 2 printed numbers"),
        ('derivation("appendix.gone")', r"line 2, claims\.json: appendix\.gone: found no such claim"),
        ('withdrawn("sim.gone")', r"line 2: sim\.gone: found no such key"),
        ('sha256_of("gone")', r"line 2, sources: gone: found no such file"),
        ('rule_of("gone")', r"line 2, sources: gone: found no rule"),
    ],
)
def test_what_is_unknown_names_template_and_line(tell, call, message):
    with pytest.raises(InputError, match=rf"page\.md\.j2, {message}"):
        tell(f"one\n{{{{ {call} }}}}\n")


def test_a_derivation_shows_the_values_that_it_refers_to(tell):
    found = tell('{{ as_retracted("Retracted") }}\n{{ derivation("retractions.s1.ttft") }}')
    assert found.endswith("\n43 / 16.4 / (43 / 256) = 15.6098")


def test_verdicts_add_up(tell, published):
    rows = [line.split("|") for line in tell("{{ verdict_counts() }}").splitlines()[2:]]
    counts = [int(row[-2].strip()) for row in rows]
    assert sum(counts[:-1]) == counts[-1] == len(published[1].claims.records)


def test_a_list_of_a_verdict_holds_all_places_of_a_claim(tell, published):
    found = tell('{{ as_published("Contradicted") }}\n{{ verdict_list("contradicted") }}')
    for record in published[1].claims.records.values():
        if record["verdict"] == "contradicted":
            assert f"| {record['printed']}".replace(" to ", " ") in found.replace(" to ", " ")
            assert f"[{record['document']}: {record['section']}]" in found
    assert SIMULATION_CAVEAT in found


def test_a_retracted_claim_is_struck_through_in_tables(tell):
    found = tell('{{ as_published("Claims") }}\n{{ section_table("retractions", "1. Retracted claims") }}')
    assert "| ~~97 %~~ |" in found
    assert "| 97 % |" not in found


def test_the_digest_is_that_of_the_file(tell):
    name = "src/kvtier/simulate/revision1.py"
    assert tell(f'{{{{ sha256_of("{name}") }}}}') == sha256(ROOT / name)


@pytest.mark.parametrize("template", ["CANONICAL-NUMBERS.md.j2", "RETRACTIONS.md.j2", "ERRATUM.md.j2"])
def test_every_key_of_a_template_is_needed(template, published):
    """Without any one of the numbers that it names outright, the document is not written and the message says where."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    _, sources = published
    records = read_json(ROOT / "data/numbers.json")
    keys = [key for key in records if re.search(rf'(num|signed|withdrawn)\("{re.escape(key)}"\)', text)]
    assert keys or template.startswith("CANONICAL")
    for key in keys[:: max(1, len(keys) // 10)]:
        less = Ledger("numbers.json", {name: record for name, record in records.items() if name != key})
        claims = Claims("claims.json", sources.claims.records, less)
        with pytest.raises(InputError, match=rf"{re.escape(template)}, line \d+(, [^:]+)?: {re.escape(key)}: found no such key"):
            documents.render(TEMPLATES / template, less, dataclasses.replace(sources, claims=claims))


def test_rows_of_two_experiments_are_not_set_side_by_side(fill):
    both = '{{ section("Simulated (provisional)") }}\n{{ caveat() }}\n{{ listing("sim.rev2.e1.32.lru.hit", "sim.rev2.e2.lru.hit") }}'
    with pytest.raises(InputError, match="found rows of e1 and e2, expected one experiment a table"):
        fill(both)
