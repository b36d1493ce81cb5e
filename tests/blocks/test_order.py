"""Both orders against a sorted dictionary."""

import random

import numpy as np
import pytest

from kvtier.blocks.order import ABSENT, CHILDREN, Ranking, Recency


def drained(order):
    """All rows, in the order in which they leave."""
    rows = []
    while (row := order.first()) != ABSENT:
        order.leave(row)
        rows.append(row)
    return rows


def assert_heap(ranking):
    size = int(ranking.size[0])
    keys = list(zip(ranking.ranks[:size].tolist(), ranking.stamps[:size].tolist(), strict=True))
    for place in range(1, size):
        assert keys[(place - 1) // CHILDREN] <= keys[place]
    assert [ranking.places[row] for row in ranking.rows[:size]] == list(range(size))
    assert np.count_nonzero(ranking.places != ABSENT) == size


@pytest.mark.parametrize("seed", range(20))
def test_ranking_equals_a_sorted_dictionary(seed):
    """Few ranks, so that stamps decide often; ranks rise and fall."""
    rng = random.Random(seed)
    rows = rng.randint(1, 60)
    ranking, expected = Ranking(rows), {}
    for step in range(600):
        row, action = rng.randrange(rows), rng.random()
        if action < 0.6:
            expected[row] = float(rng.randrange(5)), step
            ranking.touch(row, *expected[row])
        elif row in expected and action < 0.8:
            ranking.leave(row)
            del expected[row]
        elif expected:
            victim = ranking.first()
            assert victim == min(expected, key=expected.get)
            ranking.leave(victim)
            del expected[victim]
        assert_heap(ranking)
        assert ranking.first() == min(expected, key=expected.get, default=ABSENT)
    assert drained(ranking) == sorted(expected, key=expected.get)


@pytest.mark.parametrize("seed", range(20))
def test_recency_equals_an_ordered_dictionary(seed):
    rng = random.Random(seed)
    rows = rng.randint(1, 40)
    recency, expected = Recency(rows), {}
    for _ in range(600):
        row, action = rng.randrange(rows), rng.random()
        if action < 0.6:
            recency.touch(row)
            expected.pop(row, None)
            expected[row] = None
        elif row in expected and action < 0.8:
            recency.leave(row)
            del expected[row]
        elif expected:
            assert recency.first() == next(iter(expected))
            recency.leave(recency.first())
            del expected[next(iter(expected))]
    assert drained(recency) == list(expected)


def test_filled_at_once():
    ranks, stamps = np.array([3.0, 1.0, 2.0, 1.0]), np.array([0, 9, 1, 4])
    ranking, recency = Ranking(8), Recency(8)
    ranking.fill(np.array([5, 2, 7, 0]), ranks, stamps)
    recency.fill(np.array([5, 2, 7, 0]))
    assert_heap(ranking)
    assert drained(ranking) == [0, 2, 7, 5]
    assert drained(recency) == [5, 2, 7, 0]


def test_bytes_of_a_row():
    assert Recency(1000).nbytes == 8 * 1001
    assert Ranking(1000).nbytes == 24 * 1000 + 8
    assert Recency(0).first() == Ranking(0).first() == ABSENT
