"""Values on pages of the documentation: by key, with their class, never one that may not stand."""

from pathlib import Path

import pytest

from kvtier.errors import InputError
from kvtier.evidence import lint
from kvtier.evidence.labels import SIMULATION_CAVEAT
from kvtier.files import read_yaml
from kvtier.publish import site
from kvtier.publish.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*map(str, sorted((ROOT / "docs").rglob("*.md"))), str(ROOT / "CONTRIBUTING.md"), str(ROOT / "CHANGELOG.md")]


def record(**changed):
    plain = {
        "value": 320.0,
        "display": "320",
        "unit": "KiB",
        "label": "Analytical model",
        "status": "stands",
        "definition": "bytes <a> token",
    }
    return plain | {"rule": "tabulate", "params": {}, "uncertainty": {}} | changed


@pytest.fixture
def ledger():
    simulated = {"label": "Simulated (provisional)", "status": "provisional", "unit": "%", "display": "44.2", "value": 44.18}
    return Ledger(
        "numbers.json",
        {
            "analytic.kv": record(),
            "sim.hit": record(**simulated, uncertainty={"interval_low": 43.92, "interval_high": 45.18, "interval_level": 0.95}),
            "sim.back": record(**simulated | {"status": "retracted"}),
        },
    )


@pytest.fixture(scope="session")
def allowed():
    files = ("allowed_numbers.yaml", "allowed_in_docs.yaml")
    return {pattern: reason for file in files for pattern, reason in read_yaml(ROOT / "data/published" / file).items()}


def test_a_value_has_its_class_and_its_definition(ledger):
    shown = site.expand("page.md", 'KV: {{ num("analytic.kv") }}.', ledger)
    assert ">320 KiB</span>" in shown
    assert ">Analytical model</span>" in shown
    assert 'title="analytic.kv: bytes &lt;a&gt; token"' in shown


def test_an_interval_stands_beside_its_value(ledger):
    shown = site.expand("page.md", '{{ num("sim.hit") }} {{ unc("sim.hit") }}: {{ caveat() }}', ledger)
    assert "[43.9, 45.2] %" in shown
    assert SIMULATION_CAVEAT in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{{ num("analytic.none") }}', "no such key"),
        ('{{ num("sim.back") }} {{ caveat() }}', "a number that is retracted"),
        ('{{ num("sim.hit") }}', "a simulated value and no caveat on the page"),
        ('{{ unc("analytic.kv") }}', "no uncertainty"),
        ("{{ num(analytic.kv) }}", "expected one of"),
        ('{{ number("analytic.kv") }}', "expected one of"),
    ],
)
def test_what_may_not_stand(ledger, text, message):
    with pytest.raises(InputError, match=message):
        site.expand("page.md", text, ledger)


@pytest.mark.parametrize(
    "text", ['`{{ num("none") }}`', '```\n{{ num("none") }}\n```', '1. Step\n\n    ```yaml\n    {{ num("none") }}\n    ```\n']
)
def test_code_is_left_as_it_is(ledger, text):
    assert site.expand("page.md", text, ledger) == text


def test_parts_are_made_only_by_the_site(ledger):
    assert site.expand("page.md", "{{ commands() }}", ledger) == "{{ commands() }}"
    assert site.expand("page.md", "{{ commands() }}", ledger, {"commands": lambda: "made"}) == "made"
    with pytest.raises(InputError, match="expected one of"):
        site.expand("page.md", "{{ unknown() }}", ledger, {"commands": lambda: "made"})


def test_a_typed_number_is_found(tmp_path, ledger, allowed):
    page = tmp_path / "page.md"
    page.write_text("A hit rate\nof 44.18 % here.\n")
    with pytest.raises(InputError, match=r"line 2: found the bare number 44\.18"):
        site.check([str(page)], ledger, allowed)


def test_the_pages_hold_against_the_published_ledger(allowed):
    assert site.check(PAGES, Ledger.read(ROOT / "data/numbers.json"), allowed) == len(PAGES) > 20


@pytest.mark.parametrize("pattern", read_yaml(ROOT / "data/published/allowed_in_docs.yaml"))
def test_each_allowed_pattern_is_needed(allowed, pattern):
    without = {other: reason for other, reason in allowed.items() if other != pattern}
    assert any(lint.bare_numbers(Path(page).read_text(encoding="utf-8"), without) for page in PAGES)
