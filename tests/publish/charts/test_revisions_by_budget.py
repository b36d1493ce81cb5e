import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.publish import render
from kvtier.publish.charts import revisions_by_budget
from kvtier.publish.ledger import Ledger


def draw(revisions):
    old, new, records = revisions
    return revisions_by_budget.draw(old, new, Ledger("numbers.json", records))


def test_one_panel_a_policy_each_with_the_optimum(revisions):
    figure = draw(revisions)
    spec = render.spec(figure)
    assert [panel for panel in spec["concat"] if "Optimum: 91.00 %" in str(panel)] == spec["concat"]
    assert render.svg(figure, spec).count(">Optimum: 91.00 %<") == len(spec["concat"]) == 4
    assert figure.badge == "Simulated (provisional) · Revision 2 and Revision 3"


def test_draws_intervals_for_revision_3_and_ranges_for_revision_2(revisions):
    drawn = draw(revisions).drawn
    columns = ["percent", "lower_percent", "upper_percent"]
    for key, values in (("sim.rev3.e1.32.lfu.hit", (28.0, 27.5, 28.5)), ("sim.rev2.e1.32.lfu.hit", (27.5, 27.0, 28.0))):
        assert drawn.filter(pl.col("key") == key).select(columns).row(0) == values


def test_kept_state_is_not_drawn(revisions):
    assert 99.0 not in draw(revisions).drawn["percent"].to_list()


def test_says_rates_intervals_shares_and_what_is_left_out(revisions):
    figure = draw(revisions)
    assert "LFU, Revision 3: 16.00 [15.50, 16.50] %" in figure.alt
    assert "LFU, Revision 2: 15.50 %" in figure.alt
    assert "Reads in turns larger than HBM: 80.00 %; 0.00 %; 0.00 %" in figure.alt
    assert "95 % interval of the mean over 3 seeds; Revision 2, range of seeds 1 and 2" in figure.caption
    assert "Revision 1, withdrawn, is left out" in figure.caption
    assert all(f">{words}<" in render.svg(figure, render.spec(figure)) for words in ("80.00 %", "28.00 [27.50, 28.50] %"))


def test_one_seed_claims_no_interval(revisions):
    old, _, records = revisions
    table = pl.read_parquet(old).filter(pl.col("seed") == 1)
    table.write_parquet(old)
    for row in table.iter_rows(named=True):
        slug = row["policy"] if row["alpha"] is None else f"ema{row['alpha']:g}".replace(".", "")
        records[f"sim.rev2.e1.{row['hbm_gib']:g}.{slug}.hit"] |= {"value": row["hit_rate"], "uncertainty": {}}
    assert "Revision 2, none, seed 1 alone" in draw(revisions).caption


def test_a_table_that_is_not_the_ledgers_is_refused(revisions):
    pl.read_parquet(revisions[1]).with_columns(pl.col("hit_rate") + 1).write_parquet(revisions[1])
    with pytest.raises(InputError, match=r"sim\.rev3\.e1\."):
        draw(revisions)


def test_revisions_that_count_different_turns_are_refused(revisions):
    pl.read_parquet(revisions[1]).with_columns(counted_from=pl.lit(0, pl.Int64)).write_parquet(revisions[1])
    with pytest.raises(InputError, match=r"counted_from: found 0, 1250"):
        draw(revisions)
