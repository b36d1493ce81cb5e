import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import MEANING, SIMULATION_CAVEAT, Label
from kvtier.publish import documents
from kvtier.publish.ledger import Ledger

CANONICAL = Path(documents.__file__).parent / "templates" / "CANONICAL-NUMBERS.md.j2"


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
        documents.write(template, numbers, page)
    assert not page.parent.exists()


def test_an_old_page_survives_a_failure(tmp_path, numbers):
    template, page = tmp_path / "page.md.j2", tmp_path / "page.md"
    page.write_text("old", encoding="utf-8")
    template.write_text('{{ num("no.such") }}', encoding="utf-8")
    with pytest.raises(InputError):
        documents.write(template, numbers, page)
    assert page.read_text(encoding="utf-8") == "old"


def test_makes_the_folder_that_is_missing(tmp_path, numbers):
    template, page = tmp_path / "page.md.j2", tmp_path / "deep" / "er" / "page.md"
    template.write_text('{{ num("analytic.hbm.capacity_gb") }}', encoding="utf-8")
    documents.write(template, numbers, page)
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


def test_sections_cover_every_class_in_order():
    classes = [label for labels in documents.SECTIONS.values() for label in labels]
    assert classes == list(Label)


def test_a_section_says_what_its_class_means(fill):
    assert MEANING[Label.MEASURED] in fill('{{ section("Measured") }}')
    with pytest.raises(InputError, match="an unknown heading"):
        fill('{{ section("Proven") }}')


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
    write = "import sys; from kvtier.publish import documents; documents.write(*sys.argv[1:])"
    pages = []
    for seed, zone in (("0", "UTC"), ("4242", "Pacific/Auckland")):
        page = tmp_path / f"{seed}.md"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
        subprocess.run([sys.executable, "-c", write, template, numbers, page], env=environment, check=True, timeout=60)
        pages.append(page.read_bytes())
    assert pages[0] == pages[1]
