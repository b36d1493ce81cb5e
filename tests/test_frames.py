"""A table that does not match its declaration is refused with the column and row at fault."""

import math

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.frames import Table

TABLE = Table(
    "steps", {"batch": pl.Int64, "ms": pl.Float64, "name": pl.String, "paged": pl.Boolean, "note": pl.String}, frozenset({"note"})
)
GOOD = {"batch": [1, 2], "ms": [0.5, 1.5], "name": ["a", "b"], "paged": [True, False], "note": [None, "x"]}
PLAIN = Table("steps", {"batch": pl.Int64, "ms": pl.Float64, "name": pl.String, "error": pl.Float64}, frozenset({"error"}))


def frame(**columns):
    return pl.DataFrame({**GOOD, **columns}, strict=False)


def test_columns_come_back_in_order_and_typed():
    checked = TABLE.check(frame(batch=[1.0, 2.0], ms=[1, 2]).select(reversed(GOOD)))
    assert dict(checked.schema) == TABLE.columns
    assert checked.row(0) == (1, 1.0, "a", True, None)


def test_missing_column():
    with pytest.raises(InputError, match=r"^steps: column ms: found columns batch, name, paged, note, expected the column to be present$"):
        TABLE.check(frame().drop("ms"))


def test_extra_column():
    with pytest.raises(InputError, match=r"^steps: column extra: found an unknown column, expected only batch, ms, name, paged, note$"):
        TABLE.check(frame(extra=[1, 2]))


@pytest.mark.parametrize(
    ("column", "values", "found"),
    [
        ("ms", [0.5, math.nan], "found nan, expected a finite Float64"),
        ("ms", [0.5, math.inf], "found inf, expected a finite Float64"),
        ("ms", [0.5, -math.inf], "found -inf, expected a finite Float64"),
        ("ms", [0.5, None], "found None, expected a finite Float64"),
        ("ms", ["0.5", "fast"], "found fast, expected a finite Float64"),
        ("batch", ["1", "two"], "found two, expected a value that is Int64"),
        ("batch", ["1", "2.5"], "found 2.5, expected a value that is Int64"),
        ("batch", [1, 2**63], f"found {2**63}, expected a value that is Int64"),
        ("name", ["a", None], "found None, expected a value that is String"),
        ("paged", [True, None], "found None, expected a value that is Boolean"),
    ],
)
def test_bad_value_names_column_and_row(column, values, found):
    with pytest.raises(InputError) as refused:
        TABLE.check(frame(**{column: values}), "rows.csv")
    assert str(refused.value) == f"rows.csv: column {column}, row 2: {found}"


def test_fraction_is_no_integer():
    with pytest.raises(InputError, match=r"column batch, row 2: found 2\.5, expected a value that is Int64"):
        TABLE.check(frame(batch=[1.0, 2.5]))


def test_null_is_allowed_where_it_has_a_meaning_and_nan_is_not():
    table = Table("rates", {"rate": pl.Float64}, frozenset({"rate"}))
    assert table.check(pl.DataFrame({"rate": [None, 1.0]})).height == 2
    with pytest.raises(InputError, match="row 2: found nan"):
        table.check(pl.DataFrame({"rate": [None, math.nan]}))
    with pytest.raises(InputError, match="row 1: found much"):
        table.check(pl.DataFrame({"rate": ["much", None]}))


@pytest.fixture
def read(tmp_path):
    def of(text, table=PLAIN):
        path = tmp_path / "steps.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return table.read_csv(path)

    return of


def test_csv_with_comments_and_a_missing_value(read):
    assert read("# GB10\nbatch,ms,name,error\n1,0.5,a,\n# repeated below\n2,1e3,b,0.1\n").rows() == [
        (1, 0.5, "a", None),
        (2, 1000.0, "b", 0.1),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file: found empty CSV"),
        ("# nothing but words\n", "file: found empty CSV"),
        ("batch,ms,name\n1,1,a\n", "column error: found columns batch, ms, name"),
        ("batch,ms,name,error,error\n1,1,a,1,1\n", "column error_duplicated_0: found an unknown column"),
        ("batch,ms,name,error\n1,1,a,1,9\n", "file: found found more fields"),
        ("batch,ms,name,error\n1,1\n", "column name, row 1: found None"),
        ("batch,ms,name,error\n1,nan,a,1\n", "column ms, row 1: found nan"),
        ("batch,ms,name,error\n1,inf,a,1\n", "column ms, row 1: found inf"),
        ("batch,ms,name,error\n1,,a,1\n", "column ms, row 1: found None"),
        ("batch,ms,name,error\n1, 2,a,1\n", "column ms, row 1: found  2"),
        ("batch,ms,name,error\n1.0,2,a,1\n", "column batch, row 1: found 1.0"),
        (b"batch,ms,name,error\n1,2,\xff,1\n", "file: found invalid utf-8"),
    ],
)
def test_bad_csv_names_the_file(read, tmp_path, text, message):
    with pytest.raises(InputError) as refused:
        read(text)
    assert str(refused.value).startswith(f"{tmp_path}/steps.csv: {message}")
    assert "\n" not in str(refused.value)


def test_missing_csv_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: file: found No such file or directory"):
        PLAIN.read_csv(tmp_path / "none.csv")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_table_is_written_whole_or_not_at_all(tmp_path, suffix):
    path = tmp_path / f"deep/steps{suffix}"
    rows = pl.DataFrame({"batch": [1.0], "ms": [2], "name": ["a"], "error": [None]})
    PLAIN.write(rows, path)
    written = PLAIN.read_csv(path) if suffix == ".csv" else pl.read_parquet(path)
    assert (written.schema, written.rows()) == (pl.Schema(PLAIN.columns), [(1, 2.0, "a", None)])
    before = path.read_bytes()
    with pytest.raises(InputError, match=rf"steps\{suffix}: column batch, row 1: found 1\.5"):
        PLAIN.write(rows.with_columns(batch=1.5), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_written_table_reads_back(read):
    table = Table("flags", {"name": pl.String, "holds": pl.Boolean})
    written = pl.DataFrame({"name": ["a", "b"], "holds": [True, False]})
    assert read(written.write_csv(), table).equals(written)
    with pytest.raises(InputError, match="column holds, row 1: found maybe, expected a value that is Boolean"):
        read("name,holds\na,maybe\n", table)
