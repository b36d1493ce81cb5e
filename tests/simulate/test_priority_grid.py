"""The compiled priority against the policy of the reference, and the points of the simplex that are one."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import revision3
from kvtier.simulate.eviction import Lru, Priority
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.priority_grid import PUBLISHED, Replay, distinct, simplex, weights
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape


def by_policy(turns, hbm_blocks, alpha, point, cut, persistent):
    anchors = revision3.trace_knowledge(turns)["anchors"]
    policy = Priority(hbm_blocks, anchors, alpha, weights(point), cut, persistent)
    return revision3.replay_edges(turns, policy, hbm_blocks).hits


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_equals_the_policy_on_random_workloads(workloads, data):
    turns = data.draw(workloads())
    hbm_blocks = data.draw(st.integers(turns.prefix_blocks, 45))
    point = data.draw(st.sampled_from(simplex()))
    alpha, cut = data.draw(st.sampled_from((0.5, 0.15, 0.05, 0.01))), data.draw(st.sampled_from((0.0, 0.3, 0.6)))
    persistent = data.draw(st.booleans())
    recency, ema, _ = weights(point)
    found = Replay(turns, hbm_blocks).hits(alpha, recency, ema, cut=cut, persistent=persistent)
    assert found.tolist() == by_policy(turns, hbm_blocks, alpha, point, cut, persistent).tolist()


@pytest.mark.parametrize("cut", [0.0, 0.3])
@pytest.mark.parametrize("persistent", [False, True])
def test_equals_the_policy_on_the_published_workload(cut, persistent):
    turns, hbm_blocks = synthetic.generate("zipf", 1), capacity_blocks(32)
    recency, ema, _ = weights(PUBLISHED)
    found = Replay(turns, hbm_blocks).hits(0.05, recency, ema, cut=cut, persistent=persistent)
    assert found.tolist() == by_policy(turns, hbm_blocks, 0.05, PUBLISHED, cut, persistent).tolist()


def test_points_and_ratios():
    points = simplex()
    assert len(points) == 231
    assert len(distinct(points)) == 129
    assert len(distinct(points)) == len({Fraction(one, whole) for whole in range(1, 21) for one in range(whole + 1)})
    below = {cut: max(len(same) for same in distinct(points, cut).values()) for cut in (0.3, 0.6)}
    assert below == {0.3: 21, 0.6: 78}
    for cut in (0.0, 0.3, 0.6):
        assert sorted(point for same in distinct(points, cut).values() for point in same) == sorted(points)


@pytest.mark.parametrize(("gib", "persistent"), [(8, False), (32, False), (32, True)])
@pytest.mark.parametrize("cut", [0.0, 0.3])
def test_points_that_are_one_by_algebra_have_equal_hits(gib, persistent, cut):
    """All 231 points, turn by turn, on a workload of two fifths of the published sessions."""
    turns = synthetic.generate("zipf", 2, Shape(80, 800))
    replay = Replay(turns, capacity_blocks(gib))

    def hits(point):
        recency, ema, _ = weights(point)
        return replay.hits(0.05, recency, ema, cut=cut, persistent=persistent).tolist()

    groups = distinct(simplex(), cut)
    for one, same in groups.items():
        expected = hits(one)
        assert all(hits(point) == expected for point in same)
    # And the points are not all one: ratios and scales do decide.
    assert len({tuple(hits(point)) for point in groups}) > 20


def test_recency_alone_and_ties_alone_are_lru():
    turns, hbm_blocks = synthetic.generate("zipf", 3, Shape(80, 800)), capacity_blocks(8)
    lru = revision3.replay_edges(turns, Lru(hbm_blocks), hbm_blocks).hits
    replay = Replay(turns, hbm_blocks)
    assert replay.hits(0.05, 1.0, 0.0).tolist() == lru.tolist()
    assert replay.hits(0.05, 0.0, 0.0).tolist() == lru.tolist()


def test_nothing_stays_where_no_priority_reaches_the_cut(make_turns):
    turns = make_turns([0, 1, 0, 0], [3, 3], prefix=1)
    replay = Replay(turns, 100)
    # A session stays for the turn after its own if that is its own as well.
    assert replay.hits(0.5, 0.1, 0.1, cut=0.3).tolist() == [0, 1, 1, 4]
    assert replay.hits(0.5, 0.5, 0.5, cut=0.3).tolist() == [0, 1, 4, 4]


def test_refuses_less_than_the_prefix(make_turns):
    with pytest.raises(ValueError, match="expected at least the prefix"):
        Replay(make_turns([0], [3], prefix=4), 3)


def test_no_turns_no_hits(make_turns):
    assert Replay(make_turns([], [3]), 3).hits(0.5, 0.5, 0.5).tolist() == np.zeros(0).tolist()
