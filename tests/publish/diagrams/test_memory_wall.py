"""Contexts beside a limit: none is lost, and the one that the limit cuts keeps its size."""

import pytest

from kvtier.publish.diagrams.memory_wall import stretches


def test_pieces_on_both_sides_of_the_limit_add_up():
    found = stretches(8, 43.0, 145.0, 192.0)
    assert sum(high - low for low, high, _ in found) == pytest.approx(8 * 43)
    assert sum(high - low for low, high, beyond in found if not beyond) == pytest.approx(192 - 145)
    assert len(found) == 9, "one is cut in two"


def test_nothing_is_cut_where_the_limit_falls_between_two():
    assert stretches(2, 10.0, 0.0, 10.0) == [(0.0, 10.0, False), (10.0, 20.0, True)]


def test_all_fit_below_the_limit():
    assert not any(beyond for _, _, beyond in stretches(1, 43.0, 145.0, 192.0))
