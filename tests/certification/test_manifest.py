"""The manifest, from the rules as snakemake reads them."""

import shutil

import pytest
import yaml

from .conftest import ROOT, snakemake

LAST = {"codecheck.yml", "ro-crate-metadata.json", "SHA256SUMS"}

pytestmark = pytest.mark.xdist_group("certification")


def listed(path):
    return [entry["file"] for entry in yaml.safe_load(path.read_text())["manifest"]]


def test_the_manifest_lists_everything_that_is_published(made, rules):
    traces = {f"data/traces/{path.name}" for path in (ROOT / "data/traces").glob("*.csv")}
    files = listed(made / "results/codecheck.yml")
    assert set(files) == (set(rules["published"]) - LAST) | traces
    assert len(files) == len(set(files))


@pytest.mark.parametrize("name", ["codecheck.yml", "CITATION.cff", ".zenodo.json"])
def test_the_tracked_file_is_what_the_rules_make(made, name):
    assert (ROOT / name).read_bytes() == (made / "results" / name).read_bytes()


def test_each_listed_file_is_tracked_and_its_comment_names_its_rule(made, rules):
    maker = {output: name for name, rule in rules["rules"].items() for output in rule["outputs"]}
    for entry in yaml.safe_load((ROOT / "codecheck.yml").read_text())["manifest"]:
        assert (ROOT / entry["file"]).is_file(), entry["file"]
        if entry["file"] in rules["published"]:
            assert entry["comment"].startswith(f"Rule {maker[rules['published'][entry['file']]]}: ")


def test_another_published_file_is_missed_in_the_tracked_manifest(made, tmp_path):
    """The drift: a rule publishes one file more."""
    project = shutil.copytree(made, tmp_path / "project", symlinks=True)
    rule_file = project / "workflow/rules/appendix.smk"
    rule_file.write_text(
        rule_file.read_text().replace(
            '"paper/gqa.html": rules.write_gqa', '"paper/twice.html": rules.write_gqa.output.page,\n    "paper/gqa.html": rules.write_gqa'
        )
    )
    run = snakemake(project, "results/codecheck.yml")
    assert run.returncode == 0, run.stderr
    assert set(listed(project / "results/codecheck.yml")) - set(listed(ROOT / "codecheck.yml")) == {"paper/twice.html"}
