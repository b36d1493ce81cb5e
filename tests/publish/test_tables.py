import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.publish import tables


def test_extra_columns_are_left_out(budgets_table):
    pl.read_parquet(budgets_table).with_columns(evictions=pl.lit(3)).write_parquet(budgets_table)
    assert tables.read(budgets_table, tables.HIT_RATES).columns == list(tables.HIT_RATES.columns)


def test_a_missing_column_is_named(budgets_table):
    pl.read_parquet(budgets_table).drop("hit_rate").write_parquet(budgets_table)
    with pytest.raises(InputError, match=r"e1\.parquet: column hit_rate"):
        tables.read(budgets_table, tables.HIT_RATES)


def test_a_truncated_table_is_named(budgets_table):
    budgets_table.write_bytes(budgets_table.read_bytes()[:100])
    with pytest.raises(InputError, match=r"e1\.parquet: file"):
        tables.read(budgets_table, tables.HIT_RATES)


def test_an_empty_table_is_refused(budgets_table):
    pl.read_parquet(budgets_table).clear().write_parquet(budgets_table)
    with pytest.raises(InputError, match="found no rows"):
        tables.read(budgets_table, tables.HIT_RATES)


def test_a_column_that_must_not_vary(budgets_table):
    runs = tables.read(budgets_table, tables.HIT_RATES)
    assert tables.only(runs, "turns", budgets_table) == 1250
    with pytest.raises(InputError, match=r"column seed: found 1, 2"):
        tables.only(runs, "seed", budgets_table)
