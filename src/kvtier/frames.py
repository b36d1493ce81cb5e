"""Tables with declared columns: a frame that does not match its declaration never leaves a script."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import polars as pl

from kvtier.errors import InputError
from kvtier.files import write_atomically


@dataclass(frozen=True)
class Table:
    """A named set of typed columns.

    Parameters
    ----------
    name : str
        What the table holds, for messages.
    columns : dict of str to polars data type
        Columns in order.
    nullable : frozenset of str
        Columns in which a missing value has a meaning.
    """

    name: str
    columns: dict[str, pl.DataType]
    nullable: frozenset[str] = frozenset()

    def check(self, frame: pl.DataFrame, source: str | Path = "") -> pl.DataFrame:
        """Return the frame with exactly the declared columns, in order and typed.

        Raises
        ------
        InputError
            Naming `source` (else the table), the column, what was found and what was expected: a missing or extra
            column, a value that does not convert, a null or a non-finite number.
        """
        source = source or self.name
        for column in self.columns:
            if column not in frame.columns:
                raise InputError(source, f"column {column}", f"columns {', '.join(frame.columns)}", "the column to be present")
        for column in frame.columns:
            if column not in self.columns:
                raise InputError(source, f"column {column}", "an unknown column", f"only {', '.join(self.columns)}")
        checked = []
        for column, dtype in self.columns.items():
            values = found = frame[column]
            if dtype == pl.Boolean and values.dtype == pl.String:
                values = values.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
            cast = values.cast(dtype, strict=False)
            bad = (cast.is_null() & found.is_not_null()) if column in self.nullable else cast.is_null()
            if dtype.is_integer() and values.dtype.is_float():
                bad = bad | (cast.cast(values.dtype) != values).fill_null(False)
            if dtype.is_float():
                bad = bad | (cast.is_nan() | cast.is_infinite()).fill_null(False)
            if bad.any():
                row = int(bad.arg_true()[0])
                expected = f"a finite {dtype}" if dtype.is_float() else f"a value that is {dtype}"
                raise InputError(source, f"column {column}, row {row + 1}", found[row], expected)
            checked.append(cast.alias(column))
        return pl.DataFrame(checked)

    def write(self, frame: pl.DataFrame, path: str | Path) -> None:
        """Check a frame and write it as CSV or parquet, by the suffix of `path`, whole or not at all.

        Raises
        ------
        InputError
            If the frame does not match the declaration.
        """
        content = BytesIO()
        checked = self.check(frame, path)
        if Path(path).suffix == ".parquet":
            checked.write_parquet(content)
        else:
            checked.write_csv(content)
        write_atomically(path, content.getvalue())

    def read_parquet(self, path: str | Path) -> pl.DataFrame:
        """Read and check a parquet file.

        Raises
        ------
        InputError
            If the file is damaged or does not match the declaration.
        """
        try:
            frame = pl.read_parquet(path)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(path, "file", str(error).splitlines()[0], "a parquet table; delete it and build again") from None
        return self.check(frame, path)

    def read_csv(self, path: str | Path) -> pl.DataFrame:
        """Read and check a CSV file; lines that start with ``#`` are comments.

        Raises
        ------
        InputError
            If the file cannot be parsed or does not match the declaration.
        """
        try:
            frame = pl.read_csv(path, infer_schema=False, comment_prefix="#")
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(path, "file", str(error).splitlines()[0], f"a CSV table with columns {', '.join(self.columns)}") from None
        return self.check(frame, path)
