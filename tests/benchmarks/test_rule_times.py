"""Times of rules, from the words of snakemake's logs."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
BUILD = """
  Command: snakemake --cores 2 all
[Mon Nov 30 21:59:50 2026]
Job 3: Revision 1: 8 16 GiB
Reason: Missing output files
[Mon Nov 30 21:59:50 2026]
Job 4: Traces
[Mon Nov 30 21:59:50 2026]
Finished jobid: 4 (Rule: tabulate)
[Mon Nov 30 22:01:05 2026]
Finished jobid: 3 (Rule: sweep)
[Mon Nov 30 22:01:05 2026]
Job 5: Revision 1: 32 GiB
[Mon Nov 30 22:01:15 2026]
Finished jobid: 5 (Rule: sweep)
"""


@pytest.fixture
def rule_times(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("rule_times")


def test_jobs_of_a_rule_add_up_and_none_takes_less_than_a_second(rule_times):
    assert rule_times.seconds_of(BUILD) == {"tabulate": 1.0, "sweep": 85.0}


def test_a_build_that_only_touched_its_files_has_no_times(rule_times):
    assert rule_times.seconds_of(BUILD.replace("--cores 2", "--cores 1 --touch")) == {}


def test_the_last_build_that_ran_a_rule_counts(rule_times):
    later = BUILD.replace("sweep", "draw").replace("22:01:15", "22:01:25")
    touched = BUILD.replace("--cores 2", "--touch")
    assert rule_times.last_times([BUILD, later, touched]) == {"sweep": 85.0, "draw": 95.0, "tabulate": 1.0}
