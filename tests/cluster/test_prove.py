"""The proof on a real Slurm is run by hand and by the CI; here its checks are shown saying no."""

import importlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.fixture
def one_node(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("one_node")


@pytest.fixture
def prove(one_node):
    return importlib.import_module("prove")


def test_a_differing_byte_is_refused(prove, one_node):
    local = {"numbers/a.json": b"1", "simulate/a.parquet": b"2"}
    prove.same_bytes(local, dict(local))
    with pytest.raises(one_node.Refused, match=r"^1 of 2 files differ, the first is simulate/a\.parquet$"):
        prove.same_bytes(local, local | {"simulate/a.parquet": b"3"})


def test_a_missing_file_and_two_empty_builds_are_refused(prove, one_node):
    with pytest.raises(one_node.Refused, match=r"^files of one build alone: b$"):
        prove.same_bytes({"a": b"1", "b": b"1"}, {"a": b"1"})
    with pytest.raises(one_node.Refused, match=r"^nothing was built$"):
        prove.same_bytes({}, {})


def test_logs_and_shards_are_no_results(prove, tmp_path):
    for path in ("simulate/e1.parquet", "simulate/shards/e1/1-of-2.parquet", "logs/e1.log"):
        (tmp_path / "results/quick" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "results/quick" / path).write_bytes(b"1")
    assert prove.made_bytes(tmp_path) == {"simulate/e1.parquet": b"1"}


def test_a_copy_has_the_shards_asked_for_and_nothing_built(prove, tmp_path):
    project = prove.copy_of_project(tmp_path / "copy", 2)
    assert "\nsweeps:\n  shards: 2\n" in (project / "config/quick.yaml").read_text(encoding="utf-8")
    assert (project / "profiles").is_symlink()
    assert not [name for name in (".git", ".venv", "results", ".snakemake") if (project / name).exists()]


def test_a_failed_build_is_refused_with_the_end_of_its_log(prove, one_node, tmp_path):
    (tmp_path / "build.log").write_text("error: a.csv: what was wrong\n")
    with pytest.raises(one_node.Refused, match=r"failed with status 1\n  error: a\.csv: what was wrong"):
        prove.ended_well(tmp_path, 1)


def test_what_is_missing_is_one_line_with_the_way_to_install_it(one_node, monkeypatch, tmp_path):
    monkeypatch.setattr(one_node, "search_path", lambda: str(tmp_path))
    said = one_node.missing()
    assert "slurmctld" in said
    assert said.endswith("not found; on Debian: apt-get install slurm-wlm munge")
    assert "\n" not in said


def test_time_over_ends_all_that_was_started_and_removes_its_folder(one_node, monkeypatch, tmp_path):
    """Without namespaces, so that it needs neither root nor Slurm."""
    monkeypatch.setattr(one_node, "missing", lambda: None)
    monkeypatch.setattr(one_node, "UNSHARE", [])
    monkeypatch.setattr(one_node.tempfile, "tempdir", str(tmp_path))
    started = time.monotonic()
    with pytest.raises(one_node.Refused, match=r"^not done after 0\.2 s, all ended$"):
        one_node.inside(["sleep", "60"], 0.2)
    assert time.monotonic() - started < 30
    assert list(tmp_path.iterdir()) == []


def test_a_daemon_that_dies_is_refused_with_its_last_words(one_node, tmp_path):
    (tmp_path / "slurmd.out").write_text("fatal: no configuration\n")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with pytest.raises(one_node.Refused, match=r"^waited in vain until the node is idle\n  fatal: no configuration$"):
        one_node.wait_for(lambda: False, [dead], tmp_path, "the node is idle")
