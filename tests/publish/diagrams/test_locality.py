"""The formula behind the map of attention: what its drawing says of it."""

import math

import pytest

from kvtier.publish.diagrams.locality import POSITIONS, attention_map


def test_rows_are_distributions_over_what_came_before():
    rows = attention_map(POSITIONS)
    assert [len(row) for row in rows] == list(range(1, POSITIONS + 1))
    assert all(math.fsum(row) == pytest.approx(1) and min(row) > 0 for row in rows)


def test_newest_and_first_stand_out_of_the_last_row():
    last = attention_map(POSITIONS)[-1]
    middle = last[POSITIONS // 3 : POSITIONS // 2]
    assert max(last) == last[-1]
    assert last[0] > 10 * max(middle)


def test_it_is_the_same_every_time():
    assert attention_map(POSITIONS) == attention_map(POSITIONS)
