import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import kvtier
from kvtier.certification import artifact, citation
from kvtier.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "data/published/artifact.yaml"
SCHEMA = json.loads((Path(__file__).parent / "cff/schema-1.2.0.json").read_text())


def refused(text):
    """What the schema says of a CITATION.cff; dates as YAML writes them."""
    content = json.loads(json.dumps(yaml.safe_load(text), default=str))
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).iter_errors(content)]


def test_the_tracked_files_are_what_the_source_makes():
    described = artifact.read(SOURCE)
    assert (ROOT / "CITATION.cff").read_text() == citation.cff(described, kvtier.__version__)
    assert (ROOT / ".zenodo.json").read_text() == citation.zenodo(described, kvtier.__version__)


def test_another_version_is_another_citation():
    """The drift that the test above would catch."""
    described = artifact.read(SOURCE)
    assert citation.cff(described, "9.9.9") != citation.cff(described, kvtier.__version__)
    assert citation.zenodo(described, "9.9.9") != citation.zenodo(described, kvtier.__version__)


def test_the_citation_is_valid_against_the_official_schema():
    assert refused((ROOT / "CITATION.cff").read_text()) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("cff-version: 1.2.0", "cff-version: 1.1.0"), ("type: software", "type: spoon"), ("title:", "titel:"), ("- name:", "- nam:")],
)
def test_the_schema_refuses_a_planted_fault(old, new):
    text = (ROOT / "CITATION.cff").read_text()
    assert old in text
    assert refused(text.replace(old, new))


def test_a_person_has_an_orcid_in_each_form(tmp_path):
    path = tmp_path / "artifact.yaml"
    path.write_text(
        SOURCE.read_text().replace("- name: The kvtier authors", "- name: A B\n    orcid: https://orcid.org/0000-0002-1825-0097")
    )
    described = artifact.read(path)
    assert refused(citation.cff(described, "1.0")) == []
    assert json.loads(citation.zenodo(described, "1.0"))["creators"] == [{"name": "A B", "orcid": "0000-0002-1825-0097"}]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title:", "titel:", "titel: found an unknown field"),
        ("license: MIT", "license: ''", "license: found , expected a text"),
        ("- name: The kvtier authors", "- nom: x", "authors.0: found"),
        ("- name: The kvtier authors", "- name: x\n    orcid: 0000-1", "authors.0.orcid: found 0000-1"),
        ("date: 2026-11-30", "date: soon", "date: found soon, expected a day"),
        ("  - KV cache", "  KV cache", "artifact.yaml"),
    ],
)
def test_a_bad_description_is_told_in_one_line(tmp_path, old, new, said):
    text = SOURCE.read_text()
    assert old in text
    path = tmp_path / "artifact.yaml"
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=said.replace(".", r"\.")):
        artifact.read(path)
