"""The crate: its own consistency here, its profile by `make certify`."""

import json
import subprocess
from pathlib import Path

import pytest

from kvtier.certification import artifact, crate
from kvtier.certification.steps import Step
from kvtier.errors import InputError
from kvtier.files import sha256

ROOT = Path(__file__).resolve().parents[2]
DESCRIBED = artifact.read(ROOT / "data/published/artifact.yaml")
VALIDATOR = ROOT / ".venv-certify/bin/python"


def entities(text):
    return {entity["@id"]: entity for entity in json.loads(text)["@graph"]}


def references(value):
    if isinstance(value, dict):
        yield from [value["@id"]] if set(value) == {"@id"} else (found for item in value.values() for found in references(item))
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def dangling(found):
    """References to what is neither in the crate nor an address."""
    named = {reference for entity in found.values() for reference in references({k: v for k, v in entity.items() if k != "@id"})}
    return sorted(name for name in named if name not in found and not name.startswith("https://"))


def is_file(entity):
    kinds = entity["@type"]
    return "File" in ([kinds] if isinstance(kinds, str) else kinds)


def wrong_files(found, folder):
    """Files of a crate that are missing or have another digest than it says."""
    return sorted(
        name
        for name, entity in found.items()
        if is_file(entity) and (not (folder / name).is_file() or ("sha256" in entity and entity["sha256"] != sha256(folder / name)))
    )


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A workflow of two rules, and its crate."""
    monkeypatch.chdir(tmp_path)
    for path in (
        "data/a.csv",
        "config/full.yaml",
        "results/b.csv",
        "results/c.md",
        "Snakefile",
        "README.md",
        "s/fit.py",
        "s/write.py",
        "c.md",
    ):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("x")
    steps = [
        Step("fit", "Fits.", "s/fit.py", ("data/a.csv",), ("results/b.csv",)),
        Step("write", "Writes.", "s/write.py", ("results/b.csv",), ("results/c.md",)),
    ]
    return lambda: crate.metadata(DESCRIBED, "1.0", "9.0", steps, {"results/c.md": "c.md"}, "config/full.yaml", [])


def test_each_rule_is_a_run_of_its_script_with_what_it_read_and_made(small):
    found = entities(small())
    run = found["#run/write"]
    assert run["instrument"] == {"@id": "s/write.py"}
    assert run["object"] == {"@id": "#results/b.csv"}
    assert run["result"] == {"@id": "c.md"}
    assert found["#results/b.csv"]["@type"] == "CreativeWork"
    assert found["#results/b.csv"]["sha256"] == found["c.md"]["sha256"] == sha256("c.md")
    assert [found[step["@id"]]["position"] for step in found["Snakefile"]["step"]] == ["1", "2"]
    assert {name["@id"] for name in found["#build"]["object"]} == {"config/full.yaml", "data/a.csv"}
    assert found["#engine"]["result"] == {"@id": "#build"}


def test_nothing_dangles_and_two_builds_make_the_same_bytes(small):
    text = small()
    assert dangling(entities(text)) == []
    assert text == small()


def test_a_planted_reference_to_nothing_is_found(small):
    found = entities(small().replace('"@id": "#run/write"\n', '"@id": "#run/wrote"\n', 1))
    assert dangling(found) == ["#run/wrote"]


def test_a_file_that_is_missing_is_refused(small):
    Path("results/b.csv").unlink()
    with pytest.raises(InputError, match=r"results/b\.csv: rule fit: found nothing"):
        small()


def test_no_clock_and_no_folder_is_in_the_crate(small, tmp_path):
    text = small()
    assert str(tmp_path) not in text
    assert "startTime" not in text
    assert "endTime" not in text


def test_the_tracked_crate_describes_the_tracked_files():
    found = entities((ROOT / "ro-crate-metadata.json").read_text())
    assert dangling(found) == []
    assert wrong_files(found, ROOT) == []
    assert found["./"]["name"] == DESCRIBED.title


def test_a_changed_file_is_found_by_its_digest(small, tmp_path):
    text = small()
    assert wrong_files(entities(text), tmp_path) == []
    Path("data/a.csv").write_text("y")
    Path("s/fit.py").unlink()
    assert wrong_files(entities(text), tmp_path) == ["data/a.csv", "s/fit.py"]


@pytest.mark.xdist_group("certification")
def test_every_published_file_is_in_the_tracked_crate(rules):
    found = entities((ROOT / "ro-crate-metadata.json").read_text())
    published = set(rules["published"]) - {"ro-crate-metadata.json", "SHA256SUMS", "codecheck.yml", "README.md"}
    assert published - {name for name, entity in found.items() if is_file(entity)} == set()


@pytest.mark.skipif(not VALIDATOR.is_file(), reason="the validator has an environment of its own, which `make certify` makes")
@pytest.mark.parametrize(
    ("planted", "said"),
    [
        (None, "conforms to provenance-run-crate"),
        (lambda found: found["./"].pop("license"), "license"),
        (lambda found: found["#engine"].pop("object"), "OrganizeAction must reference the ControlAction"),
        (lambda found: found["#run/fit"].pop("result"), "The Action SHOULD have a result"),
    ],
)
def test_the_validator_accepts_a_crate_and_refuses_a_planted_fault(small, tmp_path, planted, said):
    content = json.loads(small())
    if planted:
        planted({entity["@id"]: entity for entity in content["@graph"]})
    Path("ro-crate-metadata.json").write_text(json.dumps(content))
    run = subprocess.run(
        [VALIDATOR, ROOT / "workflow/validate_crate.py", tmp_path], capture_output=True, text=True, check=False, timeout=300
    )
    assert said in run.stdout, run.stdout + run.stderr
    assert run.returncode == (1 if planted else 0), run.stdout
