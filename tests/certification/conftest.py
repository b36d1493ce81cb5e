"""What a build makes for certification without running a simulation, in a copy of the checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT = shutil.ignore_patterns(".venv*", "results", ".snakemake", ".git", "tests", "__pycache__", ".*_cache", ".hypothesis")
CHEAP = ["results/rules.json", "results/codecheck.yml", "results/CITATION.cff", "results/.zenodo.json"]


def snakemake(project, *targets):
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", *targets],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A copy with the map of rules, the manifest and the citation built."""
    project = tmp_path_factory.mktemp("certification") / "project"
    shutil.copytree(ROOT, project, symlinks=True, ignore=LEFT)
    run = snakemake(project, *CHEAP)
    assert run.returncode == 0, run.stdout + run.stderr
    return project


@pytest.fixture(scope="session")
def rules(made):
    """The map of rules."""
    return json.loads((made / "results/rules.json").read_text())
