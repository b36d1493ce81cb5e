"""Charts that the ledger alone gives."""

from functools import partial

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.publish import dots, render, theme
from kvtier.publish.charts import ablation, alphas_by_revision, move_or_regenerate, policies_at_budget, rope_bound, workloads_by_revision
from kvtier.publish.ledger import Ledger


def record(value, unit, digits, label, uncertainty=None):
    shown = {"display": Number("a.b", value, unit, digits, label, "x / y").display, "definition": "x / y", "rule": "some_rule"}
    about = {"label": str(label), "status": str(Status.STANDS), "params": {}, "inputs": {}, "uncertainty": uncertainty or {}}
    return {"value": value, "unit": unit, **shown, **about}


def rate(value, *, spread=True):
    interval = {"interval_low": value - 1, "interval_high": value + 1, "interval_level": 0.95} if spread else {}
    return record(value, "%", 2, Label.SIMULATED, uncertainty=interval)


def gain(value):
    return {**rate(value), "unit": "points"}


def count(value):
    return record(value, "seeds", 0, Label.SIMULATED)


def of_alphas():
    found = {"sim.rev2.e2.seeds": count(1), "sim.rev3.e1.seeds": count(30)}
    for prefix, rates in (
        ("sim.rev2.e2", {"ema001": 31.5, "ema005": 56.0, "ema05": 37.2, "lru": 36.9, "lfu": 15.6}),
        ("sim.rev3.e2.32.reset", {"ema001": 44.3, "ema005": 44.2, "ema05": 37.1, "lru": 37.2, "lfu": 44.1, "min": 47.5}),
    ):
        found |= {f"{prefix}.{policy}.hit": rate(value, spread="rev3" in prefix) for policy, value in rates.items()}
        best = 0.01 if "rev3" in prefix else 0.05
        found |= {f"{prefix}.best_alpha": record(best, "", 3, Label.SIMULATED), f"{prefix}.best_margin": gain(7.1)}
    return found


def of_workloads():
    found = {"sim.rev2.e3.seeds": count(3), "sim.rev3.e3.seeds": count(30)}
    for workload, base in (("zipf", 40.0), ("loop", 9.0)):
        for step, policy in enumerate(("lru", "lfu", "ema015", "ema001")):
            ends = {"lowest_seed": base - 2, "highest_seed": base + 2}
            found[f"sim.rev2.e3.{workload}.{policy}.hit"] = record(base + step, "%", 2, Label.SIMULATED, uncertainty=ends)
            found[f"sim.rev3.e3.{workload}.{policy}.hit"] = rate(base - step)
        found[f"sim.rev3.e3.{workload}.min.hit"] = rate(base + 8)
    return found


def of_policies():
    rates = {"lru": 37.0, "lfu": 45.0, "lfu_persistent": 46.0, "arc": 39.0, "look4": 45.5, "farthest": 47.4, "min": 47.5}
    return {"sim.rev3.family.seeds": count(30)} | {f"sim.rev3.family.32.{policy}.hit": rate(value) for policy, value in rates.items()}


def of_ablation():
    found = {"sim.rev3.ablation.seeds": count(10)}
    for name, (alone, last) in {"prefetch": (41.6, 31.7), "ema": (8.2, 0.0), "anchors": (-7.1, -10.8)}.items():
        found |= {f"sim.rev3.ablation.{name}.alone": gain(alone), f"sim.rev3.ablation.{name}.last": gain(last)}
    return found | {
        f"sim.rev3.ablation.additivity.{name}": gain(value) for name, value in {"sum": 42.7, "joint": 20.9, "gap": 21.8}.items()
    }


def of_times():
    def stated(value, unit, digits=0):
        return record(value, unit, digits, Label.ANALYTICAL)

    return {
        "analytic.kv.llama3_70b.block_mib": stated(5, "MiB", 2),
        "analytic.transfer.32gbps.us": stated(160, "µs"),
        "analytic.transfer.128gbps.us": stated(40, "µs"),
        "analytic.regeneration.mfu25.ms": stated(16, "ms"),
        "analytic.regeneration.mfu50.ms": stated(8, "ms"),
        "analytic.regenerate_over_move.min": stated(50, ""),
        "analytic.regenerate_over_move.max": stated(400, ""),
    }


CHARTS = {
    "alphas_by_revision": (alphas_by_revision, of_alphas),
    "workloads_by_revision": (workloads_by_revision, of_workloads),
    "policies_at_budget": (policies_at_budget, of_policies),
    "ablation": (ablation, of_ablation),
    "move_or_regenerate": (move_or_regenerate, of_times),
}


def drawing(name, records=None, *before):
    chart, given = CHARTS[name]
    return partial(chart.draw, *before, Ledger("numbers.json", given() if records is None else records))


@pytest.fixture(params=CHARTS)
def name(request):
    return request.param


def test_is_drawn_for_print_and_for_both_widths_of_a_page(name):
    draw = drawing(name)
    figure = draw(theme.WIDE)
    assert figure.name == name
    assert figure.caveat in render.svg(figure, render.spec(figure))
    page = render.page_form(figure, draw(theme.NARROW))
    drawn = {row[page["columns"].index("key")] for row in page["rows"]}
    assert drawn <= set(page["keys"])
    for key in drawn:
        assert f'href="#n/{key}"' in page["wide"]
        assert f'href="#n/{key}"' in page["narrow"]


@pytest.mark.parametrize("name", ["alphas_by_revision", "workloads_by_revision", "policies_at_budget"])
def test_the_optimum_is_drawn_where_a_hit_rate_is(name):
    page = render.page_form(*map(drawing(name), (theme.WIDE, theme.NARROW)))
    for layout in ("wide", "narrow"):
        assert "Optimum" in page[layout]
        assert "var(--green)" in page[layout]


def test_intervals_are_those_of_the_ledger(name):
    if name == "move_or_regenerate":
        return
    records, figure = CHARTS[name][1](), drawing(name)(theme.WIDE)
    for row in figure.drawn.iter_rows(named=True):
        uncertainty = records[row["key"]]["uncertainty"]
        ends = [uncertainty.get(end) for end in ("interval_low", "interval_high")]
        if ends[0] is not None:
            assert [row["lower"], row["upper"]] == ends
            assert "95 % interval" in figure.caption


def test_a_missing_number_is_refused(name):
    records = CHARTS[name][1]()
    del records[next(key for key in records if key.endswith(("min.hit", "additivity.gap", "over_move.max", "best_margin")))]
    with pytest.raises(InputError, match="no such key"):
        drawing(name, records)(theme.WIDE)


def test_policies_are_sorted_and_those_that_know_turns_to_come_stand_apart():
    drawn = drawing("policies_at_budget")(theme.WIDE).drawn
    assert drawn["policy"].unique(maintain_order=True).to_list() == ["lfu", "arc", "lru", "farthest", "look4"]
    assert drawn.filter(pl.col("policy") == "lfu")["state"].to_list() == ["plain", "kept"]
    gaps = drawn["y_px"].unique().sort().diff().drop_nulls().to_list()
    assert gaps == [21, 21, 21 + dots.GAP, 21]


def test_the_joint_gain_is_set_against_the_sum():
    figure = drawing("ablation")(theme.WIDE)
    assert "All, summed and joint: +42.70 [41.70, 43.70], then +20.90 [19.90, 21.90]" in figure.alt
    assert "Missing from the sum: 21.80 [20.80, 22.80]" in render.svg(figure, render.spec(figure))


def test_times_are_in_seconds_and_ratios_those_of_the_ends():
    figure = drawing("move_or_regenerate")(theme.WIDE)
    assert figure.label is Label.ANALYTICAL
    assert figure.drawn["seconds"].to_list() == pytest.approx([160e-6, 40e-6, 16e-3, 8e-3])
    assert "Regenerating over moving: 50 to 400 times" in figure.alt
    with pytest.raises(InputError, match=r"analytic\.regenerate_over_move\.max"):
        drawing("move_or_regenerate", of_times() | {"analytic.regenerate_over_move.max": record(300, "", 0, Label.ANALYTICAL)})(theme.WIDE)


def test_words_on_the_best_alpha_have_room_over_the_highest_rate():
    records = of_alphas() | {"sim.rev3.e2.32.reset.min.hit": rate(91.0)}
    figure = drawing("alphas_by_revision", records)(theme.WIDE)
    assert alphas_by_revision.domain(figure.drawn) == (0.0, 100.0 + alphas_by_revision.ROOM)


def test_a_best_alpha_that_was_not_swept_is_refused():
    with pytest.raises(InputError, match="expected an alpha that was swept"):
        drawing("alphas_by_revision", of_alphas() | {"sim.rev2.e2.best_alpha": record(0.2, "", 3, Label.SIMULATED)})(theme.WIDE)


@pytest.fixture
def rotary(tmp_path):
    """A curve of two bases and the numbers on it."""
    rows, records = [], {}
    for base, level in ((10_000, 0.5), (500_000, 0.6)):
        for first, last in ((1, 1), (2, 9), (10, 100)):
            rows.append(
                {"base": float(base), "first_tokens": first, "last_tokens": last, "mean": level / last, "lowest": 0.0, "highest": 0.6}
            )
        for distance in (0, 1, 10, 100, 1000):
            records[f"analytic.rope.base{base}.envelope.{distance}"] = record(level / max(1, distance), "", 3, Label.ANALYTICAL)
    table = tmp_path / "rope_curve.csv"
    pl.DataFrame(rows).write_csv(table)
    return table, records


def test_rotary_points_are_those_of_the_ledger_on_the_curve(rotary):
    table, records = rotary
    figure = rope_bound.draw(table, Ledger("numbers.json", records))
    assert figure.label is Label.ANALYTICAL
    assert figure.drawn.filter(pl.col("mark") == "point")["distance_tokens"].to_list() == [1, 10, 100] * 2
    page = render.page_form(figure, rope_bound.draw(table, Ledger("numbers.json", records), theme.NARROW))
    assert set(page["keys"]) == {key for key in records if not key.endswith((".0", ".1000"))}
    assert "Base 500,000, 1: 0.600; 10: 0.060; 100: 0.006" in figure.alt


def test_a_rotary_number_off_the_curve_is_refused(rotary):
    table, records = rotary
    records["analytic.rope.base10000.envelope.10"] = record(0.9, "", 3, Label.ANALYTICAL)
    with pytest.raises(InputError, match=r"analytic\.rope\.base10000\.envelope\.10: found 0\.9, expected 0\.0 to 0\.6"):
        rope_bound.draw(table, Ledger("numbers.json", records))
