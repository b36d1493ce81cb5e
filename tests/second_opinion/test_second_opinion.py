"""Every headline of the ledger by a second path; a headline without one, or with another value, fails."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from second_opinion import headlines, of_arithmetic, of_measurements, of_simulations, registry, replays, workloads
from second_opinion.registry import ROOT, disagreement, ledger, opinion_on

FOLDER = Path(__file__).parent
HEADLINES = sorted(headlines.headlines(ROOT, ledger()))
ALLOWED = {"kvtier.files"}
"""Of the package: readers of files, which compute nothing."""


def without_opinion(keys, opinions=registry.OPINIONS):
    return [key for key in keys if opinion_on(key, opinions) is None]


def test_every_headline_has_a_second_opinion():
    assert not without_opinion(HEADLINES)


def test_headlines_come_from_all_sources():
    claims = json.loads((ROOT / "data/claims.json").read_text())
    assert headlines.of_claims(claims) < set(HEADLINES)
    assert {"measured.gb10.vllm.fixed_over_kv", "sim.rev3.ablation.additivity.sum", "sim.rev3.e5.gain.lfu.hit"} <= set(HEADLINES)


def test_a_headline_without_a_second_path_is_found(tmp_path):
    """Planted: a claim on a number that nobody computes twice."""
    nobody = next(key for key in ledger() if opinion_on(key) is None)
    for name in headlines.NAMED_IN:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "data/claims.json").write_text("{}")
    table = tmp_path / headlines.CLAIMS_TABLE
    table.write_text(f"claims:\n  - claim: Planted.\n    number: {nobody}\n")
    assert without_opinion(headlines.headlines(tmp_path, ledger())) == [nobody]
    (tmp_path / headlines.NAMED_IN[0]).write_text(f"instead: '{{{{ num(\"{nobody}\") }}}}'")
    table.write_text("claims: []\n")
    assert without_opinion(headlines.headlines(tmp_path, ledger())) == [nobody]
    judged = {"x": {"verdict": "reproduced", "keys": [nobody]}, "y": {"verdict": "stated input", "keys": ["analytic.block.tokens"]}}
    assert headlines.of_claims(judged) == {nobody}


def test_a_claim_on_a_number_that_does_not_exist_is_refused(tmp_path):
    for name in (*headlines.NAMED_IN, "data/claims.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / headlines.CLAIMS_TABLE).write_text("claims:\n  - claim: Planted.\n    number: sim.rev9.hit\n")
    with pytest.raises(LookupError, match=r"headline_claims\.yaml: number: found sim\.rev9\.hit"):
        headlines.headlines(tmp_path, ledger())


def marked(key):
    marks = [pytest.mark.exhaustive] if (opinion := opinion_on(key)) and opinion.exhaustive else []
    return pytest.param(key, marks=marks)


@pytest.mark.parametrize("key", [marked(key) for key in HEADLINES])
def test_the_second_path_agrees_with_the_ledger(key):
    assert disagreement(opinion_on(key).function(key), ledger()[key]["value"]) == ""


@pytest.mark.parametrize(
    ("found", "stated", "said"),
    [
        (1.0, 1.0 + 1e-12, False),
        (0.0, 1e-13, False),
        (44.18, 44.18 + 1e-6, True),
        (114114, 114114, False),
        (114113, 114114, True),
        (float("nan"), 1.0, True),
    ],
)
def test_a_value_that_is_off_is_said_to_be(found, stated, said):
    assert bool(disagreement(found, stated)) is said


def test_two_opinions_on_one_number_are_refused():
    both = [registry.Opinion("a.*", abs, False), registry.Opinion("*.b", abs, False)]
    with pytest.raises(LookupError, match=r"a\.b: a\.\*, \*\.b answer"):
        opinion_on("a.b", both)
    assert opinion_on("a.b", [*both, registry.Opinion("a.b", max, False)]).function is max


def test_what_is_taken_on_trust_is_listed():
    assert registry.value("sim.rev3.e1.32.lru.hit") == ledger()["sim.rev3.e1.32.lru.hit"]["value"]
    assert without_opinion(sorted(registry.LENT)) == sorted(registry.LENT), "an opinion of its own is not lent"
    assert not registry.LENT & set(HEADLINES)
    nobody = next(key for key in ledger() if opinion_on(key) is None and key not in registry.LENT)
    with pytest.raises(LookupError, match="found no opinion of its own"):
        registry.value(nobody)


OTHERS = [f"measured.gb10.{run}_theil_sen.{form}" for run in ("hf", "vllm") for form in ("slope", "intercept_ms", "pairs", "fixed_over_kv")]
"""Not headlines, but what a headline's robustness is judged by."""


@pytest.mark.parametrize("key", OTHERS)
def test_robust_fits_agree_too(key):
    assert disagreement(opinion_on(key).function(key), ledger()[key]["value"]) == ""


RESAMPLED = [key for key in HEADLINES if opinion_on(key) and opinion_on(key).function is of_simulations.revision3]
OF_WIDTH = 0.05
"""Two bootstraps of some ten thousand draws each differ by less than this share of the interval."""


def far_from(own, stated):
    width = own[1] - own[0]
    return any(abs(a - b) > OF_WIDTH * width for a, b in zip(own, stated, strict=True))


def test_revision3_has_intervals_to_compare():
    assert len(RESAMPLED) > 30


@pytest.mark.parametrize("key", RESAMPLED)
def test_intervals_agree_with_a_bootstrap_of_its_own(key):
    uncertainty, sample = ledger()[key]["uncertainty"], of_simulations.by_seed(key)
    stated = uncertainty["interval_low"], uncertainty["interval_high"]
    if len(set(sample)) == 1:
        assert stated == (float(sample[0]), float(sample[0]))
    else:
        assert not far_from(of_simulations.interval(sample), stated)


def test_an_interval_of_a_third_of_the_seeds_or_of_90_percent_is_far():
    sample = of_simulations.by_seed("sim.rev3.e1.32.lru.hit")
    own, of_a_third = of_simulations.interval(sample), of_simulations.interval(sample[:10])
    assert far_from(own, of_a_third)
    middle = sum(own) / 2
    assert far_from(own, [middle + (end - middle) * 1.645 / 1.96 for end in own])


# The second path is not the first one under another name.


def imported(source):
    """Modules that a source imports, whatever the form; a call of import_module counts as everything."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" if node.module == "kvtier" else node.module or "." for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            found.add("kvtier")
    return found


def under_test(source):
    return {name for name in imported(source) if name.split(".")[0] == "kvtier" and name not in ALLOWED}


@pytest.mark.parametrize("path", sorted(path for path in FOLDER.glob("*.py") if path != Path(__file__)), ids=lambda path: path.name)
def test_second_paths_import_nothing_that_they_judge(path):
    assert not under_test(path.read_text())


@pytest.mark.parametrize(
    "planted",
    [
        "import kvtier.simulate.engine",
        "from kvtier.measure import fit",
        "from kvtier import measure",
        "def f():\n    from kvtier.analytic.capacity import kv_bytes",
        "import importlib\nimportlib.import_module('kvtier.measure.fit')",
    ],
)
def test_an_import_of_what_is_judged_is_found(planted):
    assert under_test(planted)


def test_readers_of_files_are_no_judges():
    assert not under_test("from kvtier.files import read_json\nimport json")


# The replays of this folder are the published ones.

SHOWN = ("e1|8|LRU|2", "e1|128|LFU|1", "e2|0.05", "e3|loop|LFU|3", "e3|scan|EMA a=0.01|2", "e4cold|EMA a=0.15", "e5per|EMA a=0.01")


def replayed(key, record):
    """Rates of one record by the block-by-block replay."""
    parts = key.split("|")
    kind, seed = (parts[1] if parts[0] == "e3" else "zipf"), (int(parts[-1]) if parts[0] in ("e1", "e3") else 1)
    policy = {"lru": replays.LRU, "lfu": replays.LFU, "ema": replays.EMA}[record["policy"]]
    counts = replays.revision2(workloads.draw(kind, seed), policy, record["alpha"], record["hbm_gib"], record["persist_meta"])
    hits, fetched, recomputed = counts[-record["turns"] :, :3].sum(axis=0).tolist()
    read = hits + fetched + recomputed
    return {"hit_rate": 100 * hits / read, "cxl_rate": 100 * fetched / read, "cold_rate": 100 * recomputed / read}


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[] if key in SHOWN else [pytest.mark.exhaustive]) for key in of_simulations.records("results_v2")]
)
def test_records_of_revision2_are_what_a_replay_makes(key):
    record = of_simulations.records("results_v2")[key]
    assert replayed(key, record) == {name: record[name] for name in ("hit_rate", "cxl_rate", "cold_rate")}


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", of_simulations.records("alpha_grid"))
def test_the_alpha_grid_is_what_a_replay_makes(key):
    alpha, budget, seed, persistent = key.split("|")
    counts = replays.revision2(workloads.draw("zipf", int(seed)), replays.EMA, float(alpha), int(budget), persistent == "True")
    hits, *missed = counts[workloads.WARM :, :3].sum(axis=0).tolist()
    assert 100 * hits / (hits + sum(missed)) == of_simulations.records("alpha_grid")[key]


def test_a_record_of_another_workload_is_refused():
    """The integers behind a rate are whole only over the blocks that its own workload reads."""
    rate = of_simulations.records("results_v2")["e1|32|LRU|1"]["hit_rate"]
    assert of_simulations.whole(rate, "zipf", 1) > 0
    with pytest.raises(AssertionError):
        of_simulations.whole(rate, "zipf", 2)


def test_what_shows_that_revision3_keeps_its_rule_shows_that_revision2_does_not():
    workload = workloads.draw("zipf", 1)
    assert of_simulations.missed_at_once(of_simulations.revision2("zipf", 1, "lfu", 32)[:, 0], workload, 32) > 0


def test_exact_least_squares_is_least():
    """Any line beside it has larger squares."""
    intercept, slope, _ = of_measurements.line("vllm")
    points = of_measurements.points("vllm")

    def squares(a, b):
        return sum((y - a - b * x) ** 2 for x, y in points)

    for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        assert squares(intercept, slope) < squares(intercept + a / of_arithmetic.Fraction(1000), slope + b / of_arithmetic.Fraction(1000))
