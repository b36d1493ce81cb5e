import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.publish.charts import hit_rate_by_budget
from kvtier.publish.ledger import Ledger


def test_draws_the_mean_of_the_ledger_and_the_range_of_the_table(budgets_table, ledger):
    row = hit_rate_by_budget.draw(budgets_table, ledger).drawn.row(by_predicate=pl.col("key") == "sim.rev2.e1.32.ema015.hit", named=True)
    assert (row["hit_rate_percent"], row["lowest_seed_percent"], row["highest_seed_percent"]) == (32.5, 32.0, 33.0)


def test_says_every_mean_as_displayed(budgets_table, ledger):
    figure = hit_rate_by_budget.draw(budgets_table, ledger)
    for key in (key for key in ledger if key.startswith("sim.rev2.e1.")):
        assert ledger[key].text in figure.alt
    assert "the optimum of Revision 3 is drawn in revisions_by_budget" in figure.caption
    assert "mean of seeds 1 and 2" in figure.caption


def test_one_seed_claims_no_interval(budgets_table, records):
    table = pl.read_parquet(budgets_table).filter(pl.col("seed") == 1)
    table.write_parquet(budgets_table)
    for row in table.iter_rows(named=True):
        slug = row["policy"] if row["alpha"] is None else f"ema{row['alpha']:g}".replace(".", "")
        records[f"sim.rev2.e1.{row['hbm_gib']:g}.{slug}.hit"]["value"] = row["hit_rate"]
    assert "Seed 1 alone: no interval" in hit_rate_by_budget.draw(budgets_table, Ledger("numbers.json", records)).caption


def test_a_table_that_is_not_the_ledgers_is_refused(budgets_table, ledger):
    pl.read_parquet(budgets_table).with_columns(pl.col("hit_rate") + 1).write_parquet(budgets_table)
    with pytest.raises(InputError, match=r"sim\.rev2\.e1\.8\.lru\.hit"):
        hit_rate_by_budget.draw(budgets_table, ledger)
