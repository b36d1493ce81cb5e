"""The lint of the rules, and the search for a Python: each is shown saying no."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"

REPORT = """Lints for snakefile workflow/rules/measure.smk:
    * Path composition with '+' in line 13:
      This becomes quickly unreadable.

Lints for rule sweep (line 4, workflow/rules/simulate.smk):
    * No log directive defined:
      Without a log directive, all output will be printed to the terminal.
    * Specify a conda environment or container for each rule.:
      This way, the used software is documented.
"""


@pytest.fixture
def lint():
    spec = importlib.util.spec_from_file_location("lint", WORKFLOW / "lint.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_warning_but_the_one_left_out_by_name_is_kept(lint):
    assert lint.warnings(REPORT) == [
        "snakefile workflow/rules/measure.smk: Path composition with '+' in line 13",
        "rule sweep (line 4, workflow/rules/simulate.smk): No log directive defined",
    ]
    assert lint.warnings(REPORT.split("Lints for rule")[0].split("    *")[0]) == []


@pytest.mark.parametrize(("report", "code"), [(REPORT, 1), ("", 1), ("Congratulations, your workflow is in a good condition!", 0)])
def test_the_lint_fails_on_a_warning_and_on_a_linter_that_failed(lint, monkeypatch, report, code):
    ended = subprocess.CompletedProcess([], returncode=0 if code == 0 else 1, stdout=report, stderr="")
    monkeypatch.setattr(lint.subprocess, "run", lambda *_, **__: ended)
    assert lint.main() == code


def find_python(tmp_path, version_fits, *asked):
    (tmp_path / "python3").write_text(f'#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2\nexit {0 if version_fits else 1}\n')
    (tmp_path / "python3").chmod(0o755)
    for tool in ("sh", "head"):
        (tmp_path / tool).symlink_to(next(Path(folder, tool) for folder in os.defpath.split(":") if Path(folder, tool).exists()))
    command = [str(tmp_path / "sh"), str(WORKFLOW / "find_python.sh"), *asked]
    return subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)


def test_a_python_that_fits_is_printed(tmp_path):
    run = find_python(tmp_path, True)
    assert (run.returncode, run.stdout) == (0, "python3\n")


def test_a_python_that_is_too_old_is_one_clear_line(tmp_path):
    run = find_python(tmp_path, False)
    assert run.returncode == 1
    assert run.stderr.startswith("error: no usable Python: python3 (Python 3.9.2)")
    assert run.stderr.count("\n") == 1


def test_a_python_that_is_not_there_is_named(tmp_path):
    run = find_python(tmp_path, True, "/nowhere/python3.12")
    assert run.returncode == 1
    assert "/nowhere/python3.12 (no such command)" in run.stderr
