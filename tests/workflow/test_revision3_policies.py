"""Numbers of the policy family, the options and the other workloads, from tables small enough for a pencil."""

import importlib.util
from pathlib import Path

import polars as pl
import pytest

from kvtier.evidence.labels import Label, Status
from kvtier.simulate import tables

SCRIPTS = Path(__file__).resolve().parents[2] / "workflow/scripts"

ROW = {
    "policy": "lru",
    "title": "LRU",
    "hbm_gib": 32.0,
    "seed": 1,
    "suffix_first": True,
    "in_flight": 1,
    "floor_blocks": None,
    "counted_from": 1250,
    "turns": 1250,
    "reads": 900,
    "generated": 100,
    "hits": 360,
    "prefix_hits": 360,
    "hit_rate": 40.0,
    "prefix_hit_rate": 40.0,
    "over_budget_turns": 125,
    "streamed": 50,
    "evictions": 9,
    "evictions_from_read_set": 0,
}
CHANGED = {"factor": "sessions", "level": "100", "workload": "100 sessions"}


def script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(name, rows, table=tables.EDGE_RUNS):
    found = script(name).number(table.check(pl.DataFrame(rows, infer_schema_length=None)))
    assert len({number.key for number in found}) == len(found)
    assert {(number.label, number.status) for number in found} == {(Label.SIMULATED, Status.PROVISIONAL)}
    return {number.key: number for number in found}


def rows(policy, title, rates, **changed):
    return [{**ROW, "policy": policy, "title": title, "seed": seed, "hit_rate": rate, **changed} for seed, rate in enumerate(rates, 1)]


FAMILY = [*rows("lru", "LRU", [40, 44]), *rows("arc", "ARC", [45, 46]), *rows("lru2", "LRU-2", [42, 43]), *rows("min", "Optimum", [50, 48])]


def test_margin_and_regret_of_the_family():
    """ARC: 5 and 2 above LRU; of the way from the optimum to LRU 5/10 and 2/4. LRU-2: +2 and -1; 8/10 and 5/4."""
    found = numbers("sweep_revision3_policies", FAMILY)
    value = {key.removeprefix("sim.rev3.family."): number.value for key, number in found.items()}
    assert value["32.lru.hit"] == 42
    assert (value["32.arc.hit"], value["32.arc.margin"], value["32.arc.regret"]) == (45.5, 3.5, 0.5)
    assert (value["32.lru2.margin"], value["32.lru2.regret"]) == (0.5, (0.8 + 1.25) / 2)
    assert (value["32.min.hit"], value["32.min.margin"]) == (49, 7)
    assert value["32.over_budget"] == 10
    assert value["seeds"] == 2
    assert {key for key in value if key.startswith(("32.lru.", "32.min."))} == {"32.lru.hit", "32.min.hit", "32.min.margin"}
    assert found["sim.rev3.family.32.arc.regret"].uncertainty == {"lowest_seed": 0.5, "highest_seed": 0.5}


def test_p_values_are_adjusted_over_the_family_of_a_budget():
    """Two seeds: both signs agree in 2 of 4 flips; the mean of +2 and -1 is reached by all. Holm: 2 * 0.5, then at least that."""
    found = numbers("sweep_revision3_policies", [*FAMILY, *({**row, "hbm_gib": 64.0} for row in FAMILY)])
    assert [found[f"sim.rev3.family.{gib}.{slug}.p"].value for gib in (32, 64) for slug in ("arc", "lru2")] == [1, 1, 1, 1]
    assert "over the family's 2 policies at 64 GiB" in found["sim.rev3.family.64.arc.p"].definition
    six = [row for policy, title, above in (("lru", "LRU", 0), ("arc", "ARC", 1)) for row in rows(policy, title, [40 + above] * 6)]
    found = numbers("sweep_revision3_policies", [*six, *rows("min", "Optimum", [50] * 6)])
    assert found["sim.rev3.family.32.arc.p"].value == 2**-5
    assert found["sim.rev3.family.32.arc.p"].display == "0.0312"


def test_definitions_say_where_state_is_kept():
    found = numbers("sweep_revision3_policies", FAMILY)
    of_session = "state kept for each session's blocks together (not for each block, as in e1)"
    assert all(of_session in found[f"sim.rev3.family.32.arc.{field}"].definition for field in ("hit", "margin", "regret", "p"))
    assert "the optimum, which knows all turns" in found["sim.rev3.family.32.min.hit"].definition
    assert "turns 1,250 to 2,499" in found["sim.rev3.family.32.arc.hit"].definition


def test_no_regret_without_room_for_one_and_no_test_of_one_seed():
    found = numbers("sweep_revision3_policies", [*rows("lru", "LRU", [50]), *rows("arc", "ARC", [50]), *rows("min", "Optimum", [50])])
    assert {key.rsplit(".", 1)[1] for key in found} == {"hit", "margin", "over_budget", "seeds"}


def test_options_are_held_against_the_plain_run():
    """One block in 20 of what is read or generated is streamed; a tenth of the turns streams; in flight 3 and 5 points are lost."""
    found = numbers(
        "compare_revision3_options",
        [
            *rows("lru", "LRU", [40, 44]),
            *rows("lru", "LRU", [40, 44], suffix_first=False, prefix_hit_rate=10),
            *rows("lru", "LRU", [37, 39], in_flight=4, prefix_hit_rate=38),
            *rows("lru", "LRU", [41, 46], floor_blocks=64, streamed=0, over_budget_turns=0),
        ],
    )
    value = {key.removeprefix("sim.rev3.options."): number.value for key, number in found.items()}
    assert (value["plain.lru.hit"], value["plain.lru.streamed"], value["plain.lru.over_budget"]) == (42, 5, 10)
    assert (value["prefix_first.lru.hit"], value["prefix_first.lru.prefix_hit"]) == (42, 10)
    assert (value["prefix_first.lru.hit_change"], value["prefix_first.lru.prefix_hit_change"]) == (0, -30)
    assert (value["in_flight4.lru.hit"], value["in_flight4.lru.hit_change"]) == (38, -4)
    assert (value["floor64.lru.hit_change"], value["floor64.lru.streamed"]) == (1.5, 0)
    assert len(found) == 4 + 3 * 6
    assert "sessions of the last 4 turns pinned" in found["sim.rev3.options.in_flight4.lru.hit"].definition


def test_other_workloads_have_the_margin_over_lru():
    table = [
        *rows("lru", "LRU", [40, 44]),
        *rows("ema001_persistent", "EMA a=0.01, persistent", [43, 49]),
        *rows("min", "Optimum", [50, 50]),
    ]
    found = numbers("sweep_revision3_sensitivity", [{**CHANGED, **row} for row in table], tables.SENSITIVITY)
    value = {key.removeprefix("sim.rev3.sensitivity.sessions.100."): number.value for key, number in found.items()}
    assert value == {
        "lru.hit": 42,
        "over_budget": 10,
        "ema001_persistent.hit": 46,
        "ema001_persistent.margin": 4,
        "min.hit": 50,
        "min.margin": 8,
    }
    assert "but for this: 100 sessions" in found["sim.rev3.sensitivity.sessions.100.min.hit"].definition


@pytest.mark.parametrize("found", [0, 1])
def test_audit_totals(found):
    audit = script("audit_revision3_policies")
    of_rule = [audit.Finding("lossless", "x", 9, 0), audit.Finding("lossless", "y", 5, found), audit.Finding("optimum", "x", 1, 0)]
    totals = {number.key.removeprefix("audit."): number.value for number in audit.number(of_rule)}
    assert totals == {
        "lossless.rev3_policies.failed": found,
        "lossless.rev3_policies.checked": 14,
        "optimum.rev3_policies.failed": 0,
        "optimum.rev3_policies.checked": 1,
    }
