"""The build itself, on the quick configuration: what re-runs, what a kill leaves behind, what bad input says."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "CANONICAL-NUMBERS.md", "pyproject.toml", "Snakefile"),
    *("config", "data", "docs", "figures", "notebooks", "paper", "profiles", "src", "workflow"),
)

pytestmark = pytest.mark.xdist_group("build")


def copy_project(target):
    target.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target / part, symlinks=True)
        elif source.exists():
            shutil.copy2(source, target / part, follow_symlinks=False)
    return target


def snakemake(project, *arguments, **environment):
    # The copy's own package, not the installed one.
    return subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src"), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def jobs(project, *arguments):
    """Rules that a build would run, of its dry run."""
    run = snakemake(project, "--dry-run", *arguments)
    assert run.returncode == 0, run.stderr
    table = re.search(r"^job +count\n[- ]+\n(.*?)\n\n", run.stdout + run.stderr, re.DOTALL | re.MULTILINE)
    return {line.split()[0] for line in table[1].splitlines()} - {"total"} if table else set()


def results(project):
    """Bytes of every result by path, without the logs."""
    folder = project / "results"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "logs" not in path.parts
    }


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    project = copy_project(tmp_path_factory.mktemp("build") / "project")
    run = snakemake(project, "quick")
    assert run.returncode == 0, run.stdout + run.stderr
    return project


@pytest.fixture
def project(built, tmp_path):
    """A copy of the built project, metadata and times included."""
    return shutil.copytree(built, tmp_path / "project", symlinks=True)


def test_nothing_changed_reruns_nothing(project):
    assert jobs(project, "quick") == set()


def downstream_of_numbers(project):
    """What any change of a number re-runs: of the figures those that draw a simulation, which the small workload moves."""
    charts = {f"draw_{path.stem}" for path in (project / "figures").glob("*.csv") if "sim.rev" in path.read_text()}
    assert charts
    return {"collect_numbers", "write_canonical_numbers", "quick"} | charts


def test_figures_that_quick_leaves_out_are_those_that_draw_no_simulation(project):
    others = {f"draw_{path.stem}" for path in (project / "figures").glob("*.csv") if "sim.rev" not in path.read_text()}
    assert others
    assert jobs(project, "quick_figures") == {"quick_figures"} | others


def append_comment(path):
    path.write_text(path.read_text() + "\n# edited\n")
    # Snakemake compares times: a copy and an edit within one tick of the clock must not look alike.
    os.utime(path, (time.time() + 2, time.time() + 2))


def test_editing_a_module_reruns_the_rules_that_import_it(project):
    append_comment(project / "src/kvtier/measure/fit.py")
    assert jobs(project, "quick") == {"fit_decode", "fit_kept_runs", "fit_literature"} | downstream_of_numbers(project)


def test_editing_a_module_imported_by_an_imported_module_counts(project):
    append_comment(project / "src/kvtier/simulate/revision1.py")
    assert jobs(project, "quick") == {"audit_victims"} | downstream_of_numbers(project)


def test_editing_a_script_reruns_its_rule(project):
    append_comment(project / "workflow/scripts/tabulate_tiers.py")
    assert jobs(project, "quick") == {"tabulate_tiers"} | downstream_of_numbers(project)


def test_changing_one_setting_reruns_what_depends_on_it(project):
    path = project / "config/quick.yaml"
    text = path.read_text()
    assert "grid_alphas: [0.15, 0.01]" in text
    path.write_text(text.replace("grid_alphas: [0.15, 0.01]", "grid_alphas: [0.15, 0.02]"))
    rerun = {"sweep_revision2_alpha_grid", "write_revision2_records", "audit_runs"}
    assert jobs(project, "quick") == rerun | downstream_of_numbers(project)


def test_changing_data_reruns_what_reads_it(project):
    append_comment(project / "data/measured/gb10-2026-08-19/streaming.csv")
    assert jobs(project, "quick") == {"fit_decode"} | downstream_of_numbers(project)


def kept_run(project):
    """Folder of a run of the measurement kit."""
    return next(path.parent for path in sorted(project.glob("data/measured/*/platform.json")))


def test_changing_a_kept_run_reruns_the_rule_of_kept_runs(project):
    append_comment(kept_run(project) / "stream.csv")
    assert jobs(project, "quick") == {"fit_kept_runs"} | downstream_of_numbers(project)


def test_another_kept_run_is_found(project):
    folder = kept_run(project)
    shutil.copytree(folder, folder.with_name(f"{folder.name}-9"))
    assert "fit_kept_runs" in jobs(project, "quick")


def test_a_kept_row_that_was_changed_is_refused(project):
    """Bytes moved that the kernel cannot have moved: the guard of the run, asked again by the build."""
    path = kept_run(project) / "stream.csv"
    head, first, *rest = path.read_text().splitlines()
    cells = first.split(",")
    cells[head.split(",").index("moved_bytes")] = "12345"
    path.write_text("\n".join([head, ",".join(cells), *rest]) + "\n")
    run = snakemake(project, "quick")
    assert run.returncode != 0
    errors = {line for line in run.stderr.splitlines() if line.startswith("error: ")}
    assert len(errors) == 1
    assert "stream.csv: column moved_bytes, row 1: found 12345" in errors.pop()
    assert "Traceback" not in run.stderr


def test_a_folder_of_measurements_without_a_record_is_told_in_one_line(project):
    (kept_run(project) / "platform.json").unlink()
    run = snakemake(project, "--dry-run", "quick")
    assert run.returncode != 0
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "expected platform.json, as `kvtier measure keep` leaves it" in errors[0]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_build_resumes_and_ends_with_the_same_files(built, tmp_path, how):
    project = copy_project(tmp_path / "project")
    build = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "quick"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while len(list(project.glob("results/quick/numbers/*.json"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(build.pid, how)
    try:
        build.wait(20)
    except subprocess.TimeoutExpired:
        # Snakemake can lock itself up in its handler of SIGTERM; whoever stops a build then kills it.
        os.killpg(build.pid, signal.SIGKILL)
        build.wait(20)
    assert not (project / "results/quick/numbers.json").exists(), "the build had ended before it was killed"
    run = snakemake(project, "quick")
    assert run.returncode == 0, run.stdout + run.stderr
    assert results(project) == results(built)


def test_a_sweep_in_shards_makes_the_same_bytes(project, built):
    config = project / "config/quick.yaml"
    config.write_text(config.read_text().replace("shards: 1", "shards: 2"))
    assert {"replay_shard", "sweep_revision2_alphas", "compare_revision2_variants"} <= jobs(project, "quick")
    made = ["results/quick/numbers/sweep_revision2_alphas.json", "results/quick/simulate/revision2/e2.parquet"]
    for path in made:
        (project / path).unlink()
    run = snakemake(project, *made)
    assert run.returncode == 0, run.stdout + run.stderr
    shards = sorted(path.name for path in project.glob("results/quick/simulate/shards/sweep_revision2_alphas/*"))
    assert shards == ["1-of-2.parquet", "2-of-2.parquet"]
    for path in made:
        assert (project / path).read_bytes() == (built / path).read_bytes()
    assert jobs(project, *made) == set()


def test_changing_a_setting_of_a_sweep_in_shards_reruns_its_shards_alone(project):
    config = project / "config/quick.yaml"
    config.write_text(config.read_text().replace("shards: 1", "shards: 2"))
    made = ["results/quick/simulate/revision2/e2.parquet", "results/quick/simulate/revision1/alphas.parquet"]
    assert snakemake(project, *made).returncode == 0
    text = config.read_text()
    assert "alphas: [0.5, 0.3, " in text
    config.write_text(text.replace("alphas: [0.5, 0.3, ", "alphas: [0.5, 0.25, "))
    run = snakemake(project, "--dry-run", *made)
    shards = sorted(re.findall(r"Shard (.*)", run.stdout + run.stderr))
    assert shards == ["1 of 2: sweep_revision2_alphas", "2 of 2: sweep_revision2_alphas"]


def test_the_quick_build_leaves_the_published_copy_alone(built):
    for path in sorted((built / "data").rglob("*.json")):
        assert path.read_bytes() == (ROOT / path.relative_to(built)).read_bytes()


def test_a_document_that_a_failed_build_lacks_is_made_by_the_next(tmp_path):
    """The comparison with the published copy may be younger than all it compared: a missing file must be missed all the same."""
    project = copy_project(tmp_path / "project")
    listed = snakemake(project, "--summary", "all")
    assert listed.returncode == 0, listed.stderr
    outputs = [line.split("\t")[0] for line in listed.stdout.splitlines() if line.startswith("results/")]
    assert {"results/verified.tsv", "results/CLAIMS.md", "results/numbers.json"} <= set(outputs)
    made = time.time() + 10
    for output in outputs:
        path = project / output
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (made, made))
    os.utime(project / "results/verified.tsv", (made + 10, made + 10))
    assert jobs(project, "--rerun-triggers", "mtime", "--", "all") == set()
    (project / "results/CLAIMS.md").unlink()
    assert "write_claims" in jobs(project, "--rerun-triggers", "mtime", "--", "all")


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  sessions: 40", "  sessions: 40\n  colour: red", "config/quick.yaml: workload.colour: found an unknown key"),
        ("budgets_gib: [8,", "budgets_gib: [-8,", "config/quick.yaml: revision1.budgets_gib.0: found -8, expected at least 1"),
        (
            "grid_alphas: [0.15,",
            "grid_alphas: [1.5,",
            "config/quick.yaml: revision2.grid_alphas.0: found 1.5, expected at least 0.0001 and less than 1",
        ),
        ("grid_seeds: [1]", "grid_seeds: [1", "config/quick.yaml: line"),
        ("  shards: 1", "  shards: 0", "config/quick.yaml: sweeps.shards: found 0, expected at least 1 and at most 1000"),
    ],
)
def test_a_bad_configuration_is_told_in_one_line(project, old, new, said):
    edit(project / "config/quick.yaml", old, new)
    before = results(project)
    run = snakemake(project, "quick")
    assert run.returncode != 0
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert said in errors[0]
    assert "Traceback" not in run.stderr
    assert results(project) == before


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        ("data/measured/gb10-2026-08-19/decode_vllm_fa2.csv", "step_ms", "steps", "decode_vllm_fa2.csv: column step_ms: found"),
        ("data/measured/gb10-2026-08-19/decode_vllm_fa2.csv", "101.5", "NaN", "decode_vllm_fa2.csv: column step_ms, row 2: found NaN"),
        ("data/measured/gb10-2026-08-19/platform.yaml", "bus_gbps:", "bus:", "platform.yaml: memory.bus_gbps: found"),
        ("data/inputs/models.csv", "layers", "layer", "models.csv: column layers: found"),
    ],
)
def test_bad_data_is_told_in_one_line_and_leaves_nothing_half_made(project, path, old, new, said):
    edit(project / path, old, new)
    run = snakemake(project, "quick")
    assert run.returncode != 0
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert errors
    assert all(said in line for line in errors)
    assert "Traceback" not in run.stderr
    assert not list(project.rglob("*.part"))


def test_a_truncated_fragment_is_told_in_one_line(project):
    fragment = project / "results/quick/numbers/fit_decode.json"
    fragment.write_text(fragment.read_text()[:200])
    run = snakemake(project, "quick")
    assert run.returncode != 0
    assert re.search(
        r"^error: results/quick/numbers/fit_decode\.json: line \d+: found .*, expected complete JSON$", run.stderr, re.MULTILINE
    )
    assert not list(project.rglob("*.part"))


def test_snakemakes_own_report_holds_figures_and_audits_with_captions_and_needs_no_network(project):
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    run = snakemake(project, "--report", "report.html", "quick", **nowhere)
    assert run.returncode == 0, run.stderr
    report = (project / "report.html").read_text()
    for caption in ("Hit rate in HBM against the HBM budget", "Each victim of both old revisions", "Every number that stands"):
        assert caption in report
    categories = re.search(r"\bcategories = (\{.*\});", report)[1]
    assert set(json.loads(categories)) == {"Simulations", "Documents", "Audits"}


def test_what_is_published_does_not_tell_whether_the_traces_are_there(project, tmp_path):
    """The map of the rules goes into the picture of the code, the crate and the README's table; files of that name are enough to be had."""
    names = re.findall(r"^ +file: (\S+)$", (project / "data/inputs/traces.yaml").read_text(), re.MULTILINE)
    assert names
    maps = []
    for folder, files in (("without", []), ("with", names)):
        (tmp_path / folder).mkdir()
        for name in files:
            (tmp_path / folder / name).touch()
        run = snakemake(project, "--force", "results/rules.json", "results/codecheck.yml", KVTIER_TRACES=str(tmp_path / folder))
        assert run.returncode == 0, run.stderr
        maps.append([(project / "results" / name).read_bytes() for name in ("rules.json", "codecheck.yml")])
    assert maps[0] == maps[1]
