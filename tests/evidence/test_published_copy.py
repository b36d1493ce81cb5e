import copy
import json

import pytest

from kvtier.errors import InputError
from kvtier.evidence.published_copy import Published, compare, differing_numbers, publish

RULES = ["sweep", "fit", "collect", "write"]
LEDGER = {
    "measured.slope": {"value": 17.58, "unit": "ms/GiB", "definition": "slope", "rule": "fit"},
    "sim.hit": {"value": 44.18, "unit": "%", "definition": "hits / reads", "rule": "sweep"},
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for name, content, rule in (("numbers.json", json.dumps(LEDGER), "collect"), ("NUMBERS.md", "44.18 %\n", "write")):
        for place in (tmp_path, tmp_path / "results"):
            place.mkdir(exist_ok=True)
            (place / name).write_text(content)
        found.append(Published(name, f"results/{name}", rule))
    return found


def rebuilt(change):
    ledger = copy.deepcopy(LEDGER)
    change(ledger)
    return ledger


def test_identical_files_pass(files):
    report, identical = compare(files, RULES, "numbers.json")
    assert identical
    assert "2 published files, all identical" in report


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ledger: ledger["sim.hit"].update(value=44.2), "sweep: sim.hit: value: published 44.18, built 44.2"),
        (lambda ledger: ledger["sim.hit"].update(definition="hits / turns"), "sweep: sim.hit: definition: published 'hits / reads', built"),
        (lambda ledger: ledger.pop("sim.hit"), "sweep: sim.hit: published, not built"),
        (lambda ledger: ledger.update({"sim.new": {"value": 1, "rule": "sweep"}}), "sweep: sim.new: built, not published"),
    ],
)
def test_a_moved_number_names_the_first_rule_and_what_moved(files, tmp_path, change, said):
    (tmp_path / "results/numbers.json").write_text(json.dumps(rebuilt(change)))
    (tmp_path / "results/NUMBERS.md").write_text("44.20 %\n")
    report, identical = compare(files, RULES, "numbers.json")
    assert not identical
    assert "2 of 2 published files differ; the first difference arises in rule sweep." in report
    assert said in report


def test_a_document_that_differs_alone_names_its_own_rule(files, tmp_path):
    (tmp_path / "NUMBERS.md").write_text("edited by hand\n")
    report, identical = compare(files, RULES, "numbers.json")
    assert not identical
    assert "1 of 2 published files differ; the first difference arises in rule write." in report


def test_a_missing_copy_is_not_identical(files, tmp_path):
    (tmp_path / "NUMBERS.md").unlink()
    report, identical = compare(files, RULES, "numbers.json")
    assert not identical
    assert "not published" in report


def test_a_truncated_ledger_is_named(files, tmp_path):
    (tmp_path / "numbers.json").write_text('{"sim.hit": {"val')
    with pytest.raises(InputError, match=r"numbers\.json: line 1: found .*, expected complete JSON"):
        compare(files, RULES, "numbers.json")


def test_publish_renews_what_differs_and_nothing_else(files, tmp_path):
    (tmp_path / "NUMBERS.md").write_text("old\n")
    untouched = (tmp_path / "numbers.json").stat().st_mtime_ns
    assert publish(files) == ["NUMBERS.md"]
    assert (tmp_path / "NUMBERS.md").read_text() == "44.18 %\n"
    assert (tmp_path / "numbers.json").stat().st_mtime_ns == untouched
    assert publish(files) == []


def test_differing_numbers_are_found_in_either_ledger():
    assert differing_numbers(LEDGER, rebuilt(lambda ledger: ledger.pop("sim.hit"))) == ["sim.hit"]
    assert differing_numbers(LEDGER, copy.deepcopy(LEDGER)) == []
