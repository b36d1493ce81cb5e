"""The gate that builds twice: a rule whose output depends on what must not matter is named, and no rule downstream of it instead."""

import base64
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "workflow/compare_builds.py"

pytestmark = pytest.mark.xdist_group("build")


@pytest.fixture
def gate(monkeypatch):
    spec = importlib.util.spec_from_file_location("compare_builds", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def run_gate(project, *targets):
    """The gate of a copy, on the copy."""
    return subprocess.run(
        [sys.executable, "workflow/compare_builds.py", *targets], cwd=project, capture_output=True, text=True, timeout=600, check=False
    )


CHAIN = {
    "results/a.csv": ("sow", []),
    "results/b.csv": ("reap", ["results/a.csv"]),
    "results/c.bin": ("weigh", []),
    "results/d.csv": ("grind", []),
}


def built(folder, contents):
    """A folder as a build leaves it: results, and snakemake's metadata for those that a rule made."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if name in CHAIN:
            rule, inputs = CHAIN[name]
            record = folder / ".snakemake/metadata" / base64.urlsafe_b64encode(name.encode()).decode()
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json.dumps({"rule": rule, "input": inputs}))
    return folder


SAME = {"results/a.csv": b"x,y\n1,2\n", "results/b.csv": b"3\n", "results/c.bin": b"\0\1\2", "results/logs/sow.log": b"09:00\n"}


def compared(gate, tmp_path, **changed):
    theirs = {**SAME, **{name.replace("_", "/", 1).replace("_", "."): content for name, content in changed.items()}}
    kept = {name: content for name, content in theirs.items() if content is not None}
    return gate.compare(built(tmp_path / "one", SAME), built(tmp_path / "two", kept))


def test_equal_builds_are_the_same_whatever_their_logs_say(gate, tmp_path):
    built(tmp_path / "two", {"results/logs/sow.log": b"10:00\n"})
    report, same = compared(gate, tmp_path)
    assert (report, same) == ("3 files, 13 bytes: the same in both builds", True)


def test_the_rule_upstream_is_named_and_what_it_spoils_is_downstream(gate, tmp_path):
    report, same = compared(gate, tmp_path, results_a_csv=b"x,y\n1,7\n", results_b_csv=b"8\n")
    lines = report.splitlines()
    assert not same
    assert lines[0] == "2 of 3 files differ; the first difference arises in rule sow"
    assert lines[1] == "  results/a.csv: line 2, byte 6: b'1,2' and b'1,7'"
    assert [len(line.split()[-1]) for line in lines[2:4]] == [64, 64]
    assert lines[4:] == ["  downstream of these: reap"]


def test_a_rule_downstream_that_differs_alone_is_named_itself(gate, tmp_path):
    report, _ = compared(gate, tmp_path, results_b_csv=b"3\n4\n")
    assert report.startswith("1 of 3 files differ; the first difference arises in rule reap\n  results/b.csv: line 2, byte 2: b'' and b'4'")


def test_two_rules_that_differ_on_their_own_are_both_named(gate, tmp_path):
    report, _ = compared(gate, tmp_path, results_a_csv=b"z", results_c_bin=b"\0\1\3")
    assert "arises in rule sow" in report
    assert report.splitlines()[-1] == "  differ on their own too: weigh"


def test_bytes_that_are_no_text_have_an_offset_and_no_line(gate, tmp_path):
    report, _ = compared(gate, tmp_path, results_c_bin=b"\0\1\3")
    assert r"results/c.bin: byte 2: b'\x00\x01\x02' and b'\x00\x01\x03'" in report


def test_a_file_of_one_build_alone_is_a_difference(gate, tmp_path):
    report, same = compared(gate, tmp_path, results_a_csv=None)
    assert not same
    assert "rule sow\n  results/a.csv: made in the first build alone" in report
    assert gate.told("results/b.csv", {}, gate.outputs(tmp_path / "two")) == ["  results/b.csv: made in the second build alone"]


def test_a_file_that_no_rule_made_is_compared_too(gate, tmp_path):
    report, same = compared(gate, tmp_path, results_left_txt=b"by the way")
    assert not same
    assert "arises in rule no rule\n  results/left.txt: made in the second build alone" in report


def test_nothing_built_is_no_agreement(gate, tmp_path):
    assert gate.compare(tmp_path / "one", tmp_path / "two") == ("nothing was built", False)


def test_rules_follow_the_graph_and_not_their_names(gate):
    made = {path: gate.Made(rule, frozenset(inputs)) for path, (rule, inputs) in CHAIN.items()}
    order = gate.in_order(made)
    assert sorted(order) == ["grind", "reap", "sow", "weigh"]
    assert order.index("sow") < order.index("reap")


def test_names_of_outputs_are_read_back_from_the_metadata(gate, tmp_path):
    """Snakemake folds the record of a long name into folders."""
    name = f"results/{'x' * 300}/numbers.json"
    coded = base64.urlsafe_b64encode(name.encode()).decode()
    record = tmp_path / ".snakemake/metadata" / f"@{coded[:200]}" / coded[200:]
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"rule": "sow", "input": ["data/seed.csv"]}))
    assert gate.recorded(tmp_path) == {name: gate.Made("sow", frozenset({"data/seed.csv"}))}


WRITES = {
    "folder": "str(__import__('pathlib').Path.cwd())",
    "hash_seed": "str(hash('seed'))",
    "time_zone": "str(__import__('time').localtime(0))",
    "locale": "str(__import__('os').environ['LC_ALL'])",
    "home": "str(__import__('pathlib').Path.home())",
    "mask": "oct(__import__('os').umask(0))",
    "clock": "str(__import__('time').time_ns())",
    "cores": "str(__import__('os').environ.get('POLARS_MAX_THREADS'))",
}


def small_project(folder, writes):
    """A workflow of one rule for each thing that must not matter, one that writes a constant, and one that gathers all."""
    (folder / "workflow").mkdir(parents=True)
    (folder / "scripts").mkdir()
    shutil.copy2(SCRIPT, folder / "workflow")
    writes = {**writes, "constant": "'1'"}
    gathered = [f"results/{name}.txt" for name in sorted(writes)]
    (folder / "scripts/gather.py").write_text("open(snakemake.output[0], 'w').writelines(open(path).read() for path in snakemake.input)\n")
    rules = [
        f"rule gather:\n    input:\n        {gathered}\n    output:\n        'results/all.txt'\n    script:\n        'scripts/gather.py'\n"
    ]
    for name, what in writes.items():
        (folder / f"scripts/{name}.py").write_text(f"open(snakemake.output[0], 'w').write({what} + '\\n')\n")
        rules.append(f"rule {name}:\n    output:\n        'results/{name}.txt'\n    script:\n        'scripts/{name}.py'\n")
    (folder / "Snakefile").write_text("\n".join(rules))
    return folder


def test_each_condition_that_must_not_matter_is_caught_and_the_constant_is_not(tmp_path):
    run = run_gate(small_project(tmp_path / "small", WRITES), "results/all.txt")
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stdout == ""
    head, *rest = run.stderr.splitlines()
    assert head.startswith(f"{len(WRITES) + 1} of {len(WRITES) + 2} files differ; the first difference arises in rule ")
    on_their_own = {head.split()[-1], *rest[-2].removeprefix("  differ on their own too: ").split(", ")}
    assert on_their_own == set(WRITES)
    assert rest[-1] == "  downstream of these: gather"


def test_a_small_project_that_writes_constants_passes(tmp_path):
    run = run_gate(small_project(tmp_path / "small", {}), "results/all.txt")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "2 files, 4 bytes: the same in both builds\n"


def test_a_build_that_fails_is_told_with_the_end_of_its_log(tmp_path):
    run = run_gate(small_project(tmp_path / "small", {"broken": "1 / 0"}), "results/all.txt")
    assert run.returncode == 1
    assert run.stderr.startswith("error: the build in ")
    assert "ZeroDivisionError" in run.stderr


def test_a_sweep_of_this_project_that_lets_the_hash_seed_in_is_named(gate, tmp_path):
    """The records that are written from its table differ with it, and are not blamed."""
    project = gate.copy_checkout(ROOT, tmp_path / "project")
    script = project / "workflow/scripts/sweep_revision1_cxl.py"
    text = script.read_text()
    sound = "        tables.RUNS.write(runs, snakemake.output.runs)\n"
    assert sound in text
    planted = '        runs = runs.with_columns(stall_ms=pl.col("stall_ms") + hash("planted") % 1000)\n'
    script.write_text(text.replace(sound, planted + sound))
    run = run_gate(project, "results/quick/data/cxl_sweep.json")
    assert run.returncode == 1, run.stdout + run.stderr
    head, *rest = run.stderr.splitlines()
    assert head.endswith("the first difference arises in rule sweep_revision1_cxl")
    assert {line.split(":")[0].strip() for line in rest if line.startswith("  results/")} == {
        "results/quick/numbers/sweep_revision1_cxl.json",
        "results/quick/simulate/revision1/cxl.parquet",
    }
    assert rest[-1] == "  downstream of these: write_revision1_records"
