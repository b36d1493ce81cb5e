"""The command line on a small checkout: what it finds, what it says when it does not, and what other programs read."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kvtier import terminal
from kvtier.cli import main
from kvtier.evidence.labels import SIMULATION_CAVEAT
from kvtier.files import sha256
from kvtier.queries.impact import printed_keys

ROOT = Path(__file__).resolve().parents[1]


def number(key, value, display, unit="%", label="Simulated (provisional)", status="provisional", rule="sweep_budgets", **more):
    return {
        "key": key,
        "value": value,
        "unit": unit,
        "label": label,
        "definition": f"what {key} counts",
        "uncertainty": {},
        "status": status,
        "display": display,
        "rule": rule,
        "params": {"seeds": [1, 2]},
        "inputs": {},
        **more,
    }


def claim(document, printed, verdict, unit="%", keys=(), arithmetic=(), challenge=""):
    return {
        "document": document,
        "section": "1",
        "printed": printed,
        "unit": unit,
        "says": "a rate",
        "label": "Simulated (provisional)",
        "status": "stands",
        "verdict": verdict,
        "recomputed": [],
        "reason": "Because.",
        "keys": list(keys),
        "arithmetic": list(arithmetic),
        "challenge": challenge,
    }


def rule(script, inputs=(), outputs=(), settings=()):
    script = f"workflow/scripts/{script}.py"
    return {
        "file": "workflow/rules/all.smk",
        "script": script,
        "inputs": [script, *inputs],
        "outputs": list(outputs),
        "settings": list(settings),
    }


CLAIMS = {
    "appendix.hit": claim("appendix", "44.18", "reproduced", keys=["sim.32.ema015.hit"]),
    "appendix.margin": claim("appendix", "7.6", "contradicted", "points", arithmetic=['num("sim.32.ema015.hit") - num("sim.32.lru.hit")']),
    "appendix.best": claim("appendix", "0.15", "challenged", "", challenge='num("sim.32.lru.hit") > 50'),
    "gqa.latency": claim("gqa", "177", "retracted", "ns"),
}
RULES = {
    "tabulate_kv": rule("tabulate_kv", ["data/models.csv", "src/kvtier/units.py"], ["results/kv.csv", "results/numbers/tabulate_kv.json"]),
    "sweep_budgets": rule(
        "sweep_budgets", ["src/kvtier/engine.py"], ["results/e1.parquet", "results/numbers/sweep_budgets.json"], settings=["seeds"]
    ),
    "collect_numbers": rule(
        "collect_numbers", ["results/numbers/tabulate_kv.json", "results/numbers/sweep_budgets.json"], ["results/numbers.json"]
    ),
    "draw_hits": rule("draw_hits", ["results/e1.parquet", "results/numbers.json"], ["results/figures/hits.svg"]),
    "write_document": rule("write_document", ["results/numbers.json", "src/template.j2"], ["results/NUMBERS.md"]),
    "write_kv": rule("write_kv", ["results/numbers.json"], ["results/KV.md"]),
}
AUDIT = "audit,subject,checked,failed,must_hold,note\n"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with four numbers, four claims and six rules, as the current folder."""
    models = tmp_path / "data/models.csv"
    files = {
        "Snakefile": "",
        "src/kvtier/engine.py": "",
        "src/kvtier/units.py": "",
        "src/kvtier/unused.py": "",
        "data/models.csv": "layers\n80\n",
        "config/full.yaml": "",
        "workflow/rules/all.smk": "\n\nrule sweep_budgets:\n    output: 'x'\n",
        "workflow/scripts/sweep_budgets.py": "",
        "results/NUMBERS.md": "44.18 %\n\nKeys: `sim.<gib>.ema015.hit`, `.stall`\n",
        "results/KV.md": "Key: `kv.bytes`\n",
        "results/audit/victims.csv": AUDIT + 'victims,"Revision 1, EMA",10,9,false,first\nvictims,"Revision 2, EMA",10,0,true,\n',
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    numbers = [
        number("sim.32.ema015.hit", 44.1815, "44.18", uncertainty={"lowest_seed": 44.03, "highest_seed": 44.33}),
        number("sim.32.lru.hit", 36.5, "36.50"),
        number("sim.16.old.hit", 44.1849, "44.18", status="withdrawn"),
        number("kv.bytes", 327680, "327,680", "B", "Analytical model", "stands", "tabulate_kv", inputs={"data/models.csv": sha256(models)}),
    ]
    write(tmp_path, "results/numbers.json", {record["key"]: record for record in numbers})
    write(tmp_path, "data/numbers.json", {record["key"]: record for record in numbers})
    write(tmp_path, "results/claims.json", CLAIMS)
    write(tmp_path, "results/rules.json", {"rules": RULES, "published": {"NUMBERS.md": "results/NUMBERS.md"}})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(root, path, content):
    (root / path).write_text(json.dumps(content))


def ask(*arguments, code=0):
    """Stdout of a call; its stderr where it fails."""
    call = CliRunner().invoke(main, arguments)
    assert call.exit_code == code, call.output
    assert call.exception is None or isinstance(call.exception, SystemExit)
    return call.stdout if code == 0 else call.stderr


# explain


def test_a_key_is_explained_with_all_its_papers(checkout):
    said = ask("explain", "sim.32.ema015.hit")
    for words in (
        "44.18 %",
        "44.1815",
        "lowest seed = 44.03",
        "Simulated (provisional)",
        "what sim.32.ema015.hit counts",
        SIMULATION_CAVEAT,
        "workflow/rules/all.smk:3",
        "workflow/scripts/sweep_budgets.py",
        "seeds = 1, 2",
        "snakemake --cores all --force results/numbers/sweep_budgets.json",
        "results/numbers.json (last build)",
        "appendix.hit",
        "contradicted",
    ):
        assert words in said


def test_a_claim_that_uses_a_number_only_for_its_challenge_is_listed(checkout):
    claims = json.loads(ask("explain", "sim.32.lru.hit", "--json"))["numbers"][0]["claims"]
    assert {item["id"]: item["uses_it_for"] for item in claims} == {"appendix.margin": "arithmetic", "appendix.best": "challenge"}


def test_an_input_that_changed_since_is_told(checkout):
    assert "as recorded" in ask("explain", "kv.bytes")
    (checkout / "data/models.csv").write_text("layers\n81\n")
    assert "changed since" in ask("explain", "kv.bytes")
    (checkout / "data/models.csv").unlink()
    assert "not here" in ask("explain", "kv.bytes")


def test_a_withdrawn_number_says_that_it_is_no_result(checkout):
    assert "This number is withdrawn: kept to be seen, never a result." in ask("explain", "sim.16.old.hit")


@pytest.mark.parametrize("word", ["44.18", "44.18 %", "44.18%", "~44.18"])
def test_a_value_finds_every_number_and_claim_that_prints_it(checkout, word):
    found = json.loads(ask("explain", word, "--json"))
    assert [item["key"] for item in found["numbers"]] == ["sim.32.ema015.hit", "sim.16.old.hit"]
    assert [item["id"] for item in found["claims"]] == ["appendix.hit"]
    assert "printed by 2 numbers" in ask("explain", word)


@pytest.mark.parametrize("word", ["327,680", "327680", "327680 b"])
def test_commas_and_case_do_not_count(checkout, word):
    assert [item["key"] for item in json.loads(ask("explain", word, "--json"))["numbers"]] == ["kv.bytes"]


def test_a_unit_narrows_the_search(checkout):
    assert "no number or claim" in ask("explain", "44.18 GiB", code=1)


def test_a_coarser_value_finds_what_rounds_to_it_and_says_so(checkout):
    found = json.loads(ask("explain", "44.2", "--json"))
    assert "rounded to its precision" in found["how"]
    assert {item["key"] for item in found["numbers"]} == {"sim.32.ema015.hit", "sim.16.old.hit"}


def test_a_retracted_value_is_found_among_the_claims(checkout):
    said = ask("explain", "177 ns")
    assert "no number in results/numbers.json (last build) prints it" in said
    assert "retracted" in said


def test_a_negative_value_is_no_option(checkout):
    ledger = json.loads((checkout / "results/numbers.json").read_text())
    ledger["kv.free"] = number("kv.free", -640.2, "-640", "GB")
    write(checkout, "results/numbers.json", ledger)
    for word in ("-640", "−640 GB"):
        assert [item["key"] for item in json.loads(ask("explain", word, "--json"))["numbers"]] == ["kv.free"]


@pytest.mark.parametrize("word", ["sim.32", "sim.32.*", "sim.32."])
def test_the_beginning_of_a_key_or_a_pattern_lists_what_it_covers(checkout, word):
    assert [item["key"] for item in json.loads(ask("explain", word, "--json"))["numbers"]] == ["sim.32.ema015.hit", "sim.32.lru.hit"]


def test_a_claim_is_explained_with_its_numbers(checkout):
    said = ask("explain", "appendix.hit")
    assert "Because." in said
    assert "what sim.32.ema015.hit counts" in said


@pytest.mark.parametrize(
    ("word", "near"), [("sim.32.ema15.hit", "sim.32.ema015.hit"), ("ema015", "sim.32.ema015.hit"), ("36.9", "sim.32.lru.hit")]
)
def test_what_is_unknown_suggests_the_nearest(checkout, word, near):
    said = ask("explain", word, code=1)
    assert said.startswith("error: results/numbers.json: ")
    assert said.count("\n") == 1
    assert f"nearest: {near}" in said


def test_without_a_build_the_published_copy_answers_and_says_so(checkout):
    (checkout / "results/numbers.json").unlink()
    assert "data/numbers.json (published copy; nothing is built)" in ask("explain", "kv.bytes")


def test_a_build_that_differs_from_the_published_copy_is_told(checkout):
    ledger = json.loads((checkout / "data/numbers.json").read_text())
    ledger["kv.bytes"]["display"] = "327,681"
    write(checkout, "data/numbers.json", ledger)
    assert "327,681 in the published copy" in ask("explain", "kv.bytes")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"kv.bytes": {', "results/numbers.json: line 1: found"),
        ("[]", "results/numbers.json: file: found a list, expected records by name"),
        ('{"kv.bytes": {"value": 1}}', "results/numbers.json: kv.bytes: found a record without it, expected the field display"),
        ('{"kv.bytes": 3}', "results/numbers.json: kv.bytes: found a record without it"),
    ],
)
def test_a_broken_ledger_is_told_in_one_line(checkout, text, said):
    (checkout / "results/numbers.json").write_text(text)
    error = ask("explain", "kv.bytes", code=1)
    assert error.startswith(f"error: {said}")
    assert error.count("\n") == 1


def test_it_works_from_any_folder_of_the_checkout(checkout, monkeypatch):
    monkeypatch.chdir(checkout / "src/kvtier")
    assert "run it in" in ask("explain", "kv.bytes")
    assert json.loads(ask("impact", "engine.py", "--json"))["path"] == "src/kvtier/engine.py"
    assert json.loads(ask("impact", "src/kvtier/engine.py", "--json"))["path"] == "src/kvtier/engine.py"


def test_outside_a_checkout_it_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").write_text("another project's\n")
    for call in (["explain", "1"], ["impact", "x"], ["claims"], ["audit"]):
        error = ask(*call, code=1)
        assert "found no checkout of kvtier" in error
        assert error.count("\n") == 1


# impact


def test_a_module_moves_the_numbers_figures_and_documents_that_rest_on_it(checkout):
    found = json.loads(ask("impact", "src/kvtier/engine.py", "--json"))
    assert found["rules"] == {"direct": ["sweep_budgets"], "downstream": ["collect_numbers", "draw_hits"]}
    assert [item["key"] for item in found["numbers"]] == ["sim.32.ema015.hit", "sim.32.lru.hit", "sim.16.old.hit"]
    assert found["documents"] == {"results/figures/hits.svg": "made from it", "NUMBERS.md": "prints 1 of them"}
    assert [item["id"] for item in found["claims"]] == ["appendix.hit", "appendix.margin", "appendix.best"]


def test_an_input_moves_its_own_numbers_alone(checkout):
    found = json.loads(ask("impact", "data/models.csv", "--json"))
    assert [item["key"] for item in found["numbers"]] == ["kv.bytes"]
    assert found["documents"] == {"results/KV.md": "prints 1 of them"}


@pytest.mark.parametrize(
    ("path", "numbers"),
    [
        ("config/full.yaml", 3),
        ("workflow/rules/all.smk", 4),
        ("workflow/scripts/sweep_budgets.py", 3),
        ("results/e1.parquet", 0),
        ("data", 1),
        ("Snakefile", 4),
        (".", 4),
    ],
)
def test_settings_rules_scripts_tables_and_folders_count(checkout, path, numbers):
    assert len(json.loads(ask("impact", path, "--json"))["numbers"]) == numbers


def test_a_table_of_the_build_moves_what_is_drawn_from_it(checkout):
    assert json.loads(ask("impact", "results/e1.parquet", "--json"))["documents"] == {"results/figures/hits.svg": "made from it"}


def test_a_template_moves_its_document_and_no_number(checkout):
    (checkout / "src/template.j2").write_text("")
    found = json.loads(ask("impact", "src/template.j2", "--json"))
    assert (found["numbers"], found["documents"]) == ([], {"NUMBERS.md": "made from it"})


def test_a_document_that_names_no_key_is_listed_to_be_safe(checkout):
    (checkout / "results/KV.md").write_text("A page without keys.\n")
    found = json.loads(ask("impact", "src/kvtier/engine.py", "--json"))
    assert found["documents"]["results/KV.md"] == "made from the ledger, and does not say which keys it prints"


def test_a_file_that_nothing_reads_moves_nothing(checkout):
    assert "src/kvtier/unused.py is imported by no rule's script: no number and no document would move." in ask(
        "impact", "src/kvtier/unused.py"
    )


def test_a_path_that_is_none_suggests_the_nearest(checkout):
    assert "nearest: src/kvtier/engine.py" in ask("impact", "src/kvtier/engin.py", code=1)


def test_a_path_outside_is_refused(checkout):
    assert "a place outside the checkout" in ask("impact", "..", code=1)


def test_without_a_map_of_rules_it_says_how_to_get_one(checkout):
    (checkout / "results/rules.json").unlink()
    assert "`snakemake --cores all results/rules.json` writes" in ask("impact", "data/models.csv", code=1)


def test_a_map_older_than_the_rules_is_told(checkout):
    os.utime(checkout / "workflow/rules/all.smk", (time.time() + 5, time.time() + 5))
    call = CliRunner().invoke(main, ["impact", "data/models.csv", "--json"])
    assert "note: results/rules.json is older than workflow/rules/all.smk" in call.stderr
    json.loads(call.stdout)


def test_keys_of_a_document_are_read_from_the_lines_under_its_tables():
    keys = ["sim.32.lru.hit", "sim.32.lru.stall", "sim.32.lru.cold", "kv.bytes"]
    assert printed_keys("Keys: `sim.<gib>.<policy>.hit`, `.stall`", keys) == {"sim.32.lru.hit", "sim.32.lru.stall"}
    assert printed_keys("kv.bytes, not in backquotes; `make`", keys) == set()


# claims


def test_claims_are_counted_by_verdict_and_document(checkout):
    lines = [line.split() for line in ask("claims").splitlines()]
    assert ["Verdict", "appendix", "gqa", "all"] in lines
    assert ["retracted", "0", "1", "1"] in lines
    assert ["all", "3", "1", "4"] in lines


def test_claims_are_filtered(checkout):
    assert [item["id"] for item in json.loads(ask("claims", "--verdict", "Contradicted", "--json"))] == ["appendix.margin"]
    assert [item["id"] for item in json.loads(ask("claims", "--document", "gqa", "--json"))] == ["gqa.latency"]
    assert len(json.loads(ask("claims", "--json"))) == 4
    assert "appendix.margin" in ask("claims", "--verdict", "contradicted")
    assert ask("claims", "--verdict", "pending").startswith("0 claims: pending")


@pytest.mark.parametrize("call", [["claims", "--verdict", "contradictd"], ["claims", "--document", "apendix"]])
def test_a_word_that_is_no_verdict_or_document_is_a_wrong_call(checkout, call):
    assert "did you mean" in ask(*call, code=2)


def test_unknown_commands_and_options_are_wrong_calls(checkout):
    for call in (["explian"], ["claims", "--colour"], ["explain"]):
        ask(*call, code=2)


# audit


def test_a_known_failure_is_shown_and_does_not_fail(checkout):
    said = ask("audit")
    assert "known failure" in said
    assert "Revision 1, EMA" in said
    assert "Revision 2, EMA" not in said
    assert "Revision 2, EMA" in ask("audit", "--all")
    assert [item["outcome"] for item in json.loads(ask("audit", "--json"))] == ["known failure", "holds"]


@pytest.mark.parametrize("row", ["victims,Revision 2,10,3,true,", "victims,Revision 2,0,0,false,"])
def test_an_audit_that_must_hold_or_saw_nothing_fails(checkout, row):
    (checkout / "results/audit/victims.csv").write_text(AUDIT + row + "\n")
    call = CliRunner().invoke(main, ["audit"])
    assert call.exit_code == 1
    assert "Revision 2" in call.stdout
    assert call.stderr.startswith("error: results/audit/victims.csv: audit victims: Revision 2: ")


def test_a_value_above_its_bound_fails(checkout):
    subject = {"subject": "KV path", "value": 342.9, "bound": 273.0, "unit": "GB/s"}
    write(checkout, "results/audit/bus.json", {"audit": "physical_bound", "subjects": [subject]})
    call = CliRunner().invoke(main, ["audit", "--json"])
    assert call.exit_code == 1
    assert "342.9 GB/s, bound 273.0 GB/s" in {item["note"] for item in json.loads(call.stdout)}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.csv", "audit,subject\n", "results/audit/x.csv: column checked"),
        ("x.csv", AUDIT, "results/audit/x.csv: file: found no outcome"),
        ("x.csv", AUDIT + "a,b,many,0,true,\n", "results/audit/x.csv: line 2: found many and 0"),
        ("x.csv", AUDIT + "a,b,1,0,maybe,\n", "results/audit/x.csv: line 2, must_hold: found maybe"),
        ("x.json", '{"audit": "a"}', "results/audit/x.json: subjects"),
        ("x.json", "{", "x.json: line 1"),
    ],
)
def test_a_file_that_is_no_audit_is_told_and_not_passed_over(checkout, name, text, said):
    (checkout / "results/audit" / name).write_text(text)
    error = ask("audit", code=1)
    assert said in error
    assert error.count("\n") == 1


def test_without_a_build_there_is_no_audit_to_show(checkout):
    (checkout / "results/audit/victims.csv").unlink()
    assert "`kvtier audit --run` makes them" in ask("audit", code=1)


def test_run_forces_the_files_of_the_audit_rules(checkout, monkeypatch):
    write(
        checkout,
        "results/rules.json",
        {"rules": {"audit": rule("audit", [], ["results/audit/victims.csv", "results/n.json"])}, "published": {}},
    )
    calls = []

    def run(call, **_):
        calls.append(call[3:])
        return subprocess.CompletedProcess(call, returncode=len(calls) - 1, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    error = ask("audit", "--run", code=1)
    assert calls == [["--cores", "all", "results/rules.json"], ["--cores", "all", "--force", "results/audit/victims.csv"]]
    assert error == "error: snakemake --cores all --force results/audit/victims.csv: exit code 1\n"


# how it is printed


def test_piped_output_is_plain_and_aligned(checkout):
    said = ask("explain", "44.18")
    assert "\x1b" not in said
    rows = [line for line in said.splitlines() if line.startswith(("Key ", "sim."))]
    assert len({line.index(word) for line, word in zip(rows, ["Label", "Simulated", "Simulated"], strict=True)}) == 1
    assert not [line for line in said.splitlines() if line != line.rstrip()]


def test_on_a_terminal_it_is_drawn_and_brackets_stay(capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table = terminal.Table(["Key", "Verdict"], [("[bold]a[/bold]", "contradicted")], title="[red]sim[1][/red]")
    terminal.show([terminal.Fields([("key", "[b]"), ("empty", "")]), table, "[i]end[/i]"])
    said = capsys.readouterr().out
    assert "\x1b[31mcontradicted" in said
    for words in ("[bold]a[/bold]", "[red]sim[1][/red]", "[b]", "[i]end[/i]"):
        assert words in said
    assert "empty" not in said


@pytest.mark.parametrize("command", [[], ["explain"], ["impact"], ["claims"], ["audit"]])
def test_help_shows_examples(command):
    said = ask(*command, "--help")
    assert "Examples:" in said
    assert "  kvtier " in said


@pytest.mark.parametrize("call", [["--help"], ["explain", "kv.bytes"], ["impact", "data/models.csv"], ["claims"], ["audit"]])
def test_an_answer_loads_nothing_heavy(checkout, call):
    """Answers come in a tenth of a second; polars alone takes longer to import."""
    program = (
        f"import sys; sys.argv = ['kvtier', *{call!r}]\nfrom kvtier.cli import main\n"
        "try:\n    main()\nfinally:\n"
        "    print(*sorted({'polars', 'numba', 'numpy', 'jsonschema', 'rich', 'snakemake', 'altair'} & set(sys.modules)), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr.strip() == ""


# the project itself


def test_every_number_of_the_published_ledger_is_explained_by_a_rule_of_its_own_name():
    rules = {
        line.split()[1].rstrip(":")
        for path in (ROOT / "workflow/rules").glob("*.smk")
        for line in path.read_text().splitlines()
        if line.startswith("rule ")
    }
    ledger = json.loads((ROOT / "data/numbers.json").read_text())
    for name in sorted({record["rule"] for record in ledger.values()}):
        assert name in rules
        assert f'"{{results}}/numbers/{name}.json"' in "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """A copy of the project with the map of its rules, and nothing else built."""
    project = tmp_path_factory.mktemp("mapped")
    for part in ("config", "data", "docs", "notebooks", "paper", "src", "workflow"):
        shutil.copytree(ROOT / part, project / part, symlinks=True)
    for part in ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "Snakefile", "pyproject.toml"):
        shutil.copy2(ROOT / part, project / part)
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    run = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", "results/rules.json"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return project


@pytest.mark.parametrize(
    ("path", "makers"),
    [
        ("src/kvtier/measure/fit.py", {"fit_decode", "fit_kept_runs", "fit_literature"}),
        ("src/kvtier/simulate/revision1.py", {"audit_victims"}),
        ("workflow/scripts/tabulate_tiers.py", {"tabulate_tiers"}),
        ("data/measured/gb10-2026-08-19/streaming.csv", {"fit_decode"}),
        ("tests", set()),
    ],
)
def test_the_map_of_the_project_says_whose_numbers_a_change_moves(mapped, monkeypatch, path, makers):
    """The dry runs of tests/workflow name the same rules."""
    monkeypatch.chdir(mapped)
    (mapped / "tests").mkdir(exist_ok=True)
    found = json.loads(ask("impact", path, "--json"))
    assert {item["rule"] for item in found["numbers"]} == makers
    assert makers <= set(found["rules"]["direct"])
    assert bool(found["documents"]) == bool(makers)


def test_settings_of_the_project_reach_the_sweeps_and_not_the_measurements(mapped, monkeypatch):
    monkeypatch.chdir(mapped)
    direct = json.loads(ask("impact", "config/full.yaml", "--json"))["rules"]["direct"]
    assert {"sweep_revision2_budgets", "audit_victims", "tabulate_capacity"} <= set(direct)
    assert not {"fit_decode", "collect_numbers"} & set(direct)
    assert json.loads(ask("impact", "config/quick.yaml", "--json"))["why"] == "is not read by the full build"
