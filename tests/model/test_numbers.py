"""Numbers of the experiments: one pair a row, and a row that surprises is refused."""

from __future__ import annotations

import polars as pl
import pytest

from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.model.experiments import experiments
from kvtier.model.numbers import CASES, numbers


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return experiments()


def test_each_row_has_its_difference_and_its_changed_tokens(table):
    found = {number.key: number for number in numbers(table)}
    assert len(found) == 2 * len(CASES) == 2 * table.height
    assert all(number.label is Label.ILLUSTRATIVE for number in found.values())


def test_what_is_lossless_is_zero_and_what_is_not_is_more(table):
    found = {number.key.removeprefix("model.lossless."): number.display for number in numbers(table)}
    assert [found[f"{case}.difference"] for case in ("round_trip.same_slots", "recomputed.with_context")] == ["0", "0"]
    assert found["dropped.one_head.difference"] == "29"
    assert found["round_trip.other_order.difference"] == "0.000064"


def test_a_surprise_is_refused(table):
    with pytest.raises(InputError, match="bit-identical"):
        list(numbers(table.with_columns(holds=pl.col("expected") != "bit-identical")))


def test_a_row_without_a_case_is_refused(table):
    with pytest.raises(InputError, match="without a case"):
        list(numbers(table.with_columns(done=pl.col("done") + ", twice")))


def test_a_missing_row_is_refused(table):
    with pytest.raises(InputError, match="without a row"):
        list(numbers(table.head(5)))
