"""A folder with the public traces must not matter to what is published besides their tables."""

import shutil

import pytest

from .conftest import snakemake

pytestmark = pytest.mark.xdist_group("certification")


def test_the_manifest_is_the_same_where_the_traces_can_be_had(made, tmp_path):
    project = shutil.copytree(made, tmp_path / "project", symlinks=True)
    rule_file = project / "workflow/rules/trace_experiments.smk"
    had = rule_file.read_text()
    decided = next(line for line in had.splitlines() if line.startswith("TRACES_REPLAYED = "))
    rule_file.write_text(had.replace(decided, "TRACES_REPLAYED = True"))
    run = snakemake(project, "--force", "results/codecheck.yml")
    assert run.returncode == 0, run.stderr
    assert (project / "results/codecheck.yml").read_bytes() == (made / "results/codecheck.yml").read_bytes()
