import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.publish.charts import alpha_curve
from kvtier.publish.ledger import Ledger


def test_marks_the_interior_optimum_with_the_ledgers_numbers(alphas_table, ledger):
    figure = alpha_curve.draw(alphas_table, ledger)
    assert "Interior optimum of the α swept: α 0.05, 55.96 %, +19.11 points over LRU" in figure.alt
    assert "the optimum of Revision 3 is drawn in revisions_by_budget" in figure.caption
    assert ledger["sim.rev2.e2.best_margin"] in figure.quotes


def test_an_optimum_at_the_edge_is_not_called_interior(alphas_table, records):
    records["sim.rev2.e2.best_alpha"]["value"] = 0.5
    assert "Highest at the edge of the swept range: α 0.5" in alpha_curve.draw(alphas_table, Ledger("numbers.json", records)).alt


def test_an_optimum_that_was_not_swept_is_refused(alphas_table, records):
    records["sim.rev2.e2.best_alpha"]["value"] = 0.07
    with pytest.raises(InputError, match=r"best_alpha: found 0\.07, expected an alpha of the table"):
        alpha_curve.draw(alphas_table, Ledger("numbers.json", records))


def test_alpha_rises_and_the_references_come_first(alphas_table, ledger):
    drawn = alpha_curve.draw(alphas_table, ledger).drawn
    assert drawn["policy"].to_list() == ["lfu", "lru", "ema0001", "ema005", "ema015", "ema05"]


def test_a_table_that_is_not_the_ledgers_is_refused(alphas_table, ledger):
    pl.read_parquet(alphas_table).with_columns(pl.col("hit_rate") - 1).write_parquet(alphas_table)
    with pytest.raises(InputError, match=r"sim\.rev2\.e2\."):
        alpha_curve.draw(alphas_table, ledger)
