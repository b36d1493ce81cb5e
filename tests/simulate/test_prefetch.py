"""The rules on a workload small enough to follow, and against blocks in a list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import lossless, prefetch
from kvtier.simulate.policies import LRU
from kvtier.workload import synthetic
from kvtier.workload.turns import BLOCK_TOKENS

SMALL = synthetic.Shape(sessions=8, turns=60, prefix_tokens=64, context_tokens=(64, 640))


@pytest.fixture
def four_turns(make_turns):
    """Prefix 1, sessions of 20 blocks; HBM holds the prefix and 20 more, so that each turn of another session evicts the last."""
    return make_turns([0, 1, 2, 0], [20, 20, 20], prefix=1)


def used(turns, rule, most_blocks=100, hbm_blocks=21):
    return [useful.tolist() for useful in prefetch.candidates(turns, LRU, hbm_blocks, rule, most_blocks)]


def test_next_is_right_and_knows_no_session_that_never_came(four_turns):
    assert used(four_turns, "next") == [[], [], [], [True] * 20]
    assert used(four_turns, "next", most_blocks=3) == [[], [], [], [True] * 3]


def test_anchor_of_each_session_latest_first(four_turns):
    """100 positions overlap seven blocks, of which the prefix is one; before turn 3, session 1 comes before session 0."""
    assert used(four_turns, "anchor")[3] == [False] * 6 + [True] * 6
    assert used(four_turns, "own_anchor")[3] == [False] * 7 + [True] * 7


def test_anchor_inside_the_prefix_moves_nothing():
    turns = synthetic.generate("zipf", 1, synthetic.Shape(sessions=8, turns=60, context_tokens=(64, 640)))
    assert turns.prefix_blocks * BLOCK_TOKENS >= prefetch.ANCHOR_TOKENS
    assert not any(len(useful) for useful in prefetch.candidates(turns, LRU, 160, "anchor", 1000))


def test_recent_is_thirteen_blocks_a_session(four_turns):
    assert used(four_turns, "recent")[3] == [False] * 13 + [True] * 13


def test_ema_prefers_the_session_that_came_more(make_turns):
    """Session 0 had two turns, session 1 one and later: with a long memory session 0 comes first, with a short one session 1."""
    turns = make_turns([0, 0, 1, 2, 0], [5, 5, 5], prefix=1)
    slow, fast = (prefetch.candidates(turns, LRU, 6, "ema", 100, alpha=alpha)[4].tolist() for alpha in (0.1, 0.9))
    assert slow == [True] * 5 + [False] * 5
    assert fast == [False] * 5 + [True] * 5


def test_distance_takes_the_last_block_of_each(four_turns):
    assert used(four_turns, "distance", most_blocks=4)[3] == [False, True, False, True]


def test_blend_weighs_the_session_too(make_turns):
    """Two turns against one: 0.4 · s outweighs one block of distance, 0.6 · (1/1.01 - 1/1.17) = 0.08."""
    turns = make_turns([0, 0, 0, 0, 1, 2, 0], [5, 5, 5], prefix=1)
    useful = prefetch.candidates(turns, LRU, 6, "blend", 2, alpha=0.2)[6].tolist()
    assert useful == [True, True]
    assert prefetch.candidates(turns, LRU, 6, "distance", 2, alpha=0.2)[6].tolist() == [False, True]


def by_blocks(turns, hbm_blocks, rule, most_blocks, alpha):
    """Candidates of each turn from a list of all blocks, each with the rule's key."""
    leaving, found = [], []
    lossless.simulate(turns, LRU, hbm_blocks, lambda *interval: leaving.append(interval))
    context, below, last, score = turns.context_blocks.tolist(), set(), {}, {}
    for turn, (session, growth) in enumerate(zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True)):
        ranked = []
        for owner, position in below:
            tokens = (turns.prefix_blocks + context[owner]) * BLOCK_TOKENS
            start = (turns.prefix_blocks + position) * BLOCK_TOKENS
            distance = 1 / (1 + (tokens - (start + BLOCK_TOKENS - 1)) / 100)
            by_recency = (-last[owner], position)
            member, key = {
                "next": (owner == session, (position,)),
                "anchor": (start < 100, by_recency),
                "own_anchor": (position * BLOCK_TOKENS < 100, by_recency),
                "recent": (start + BLOCK_TOKENS > tokens - 200, by_recency),
                "ema": (True, (-score[owner], *by_recency)),
                "distance": (True, (-distance, -last[owner])),
                "blend": (True, (-(0.6 * distance + 0.4 * score[owner]), -last[owner])),
            }[rule]
            if member:
                ranked.append((key, owner == session))
        found.append([useful for _, useful in sorted(ranked)][:most_blocks])
        context[session] += growth
        last[session] = turn
        for owner in last:
            score[owner] = score.get(owner, 0.0) * (1 - alpha)
        score[session] += alpha
        below = {(owner, position) for owner, position in below if owner != session}
        below |= {(session, position) for position in range(hbm_blocks - turns.prefix_blocks, context[session])}
        for _, owner, first, stop in (event for event in leaving if event[0] == turn):
            below |= {(owner, position) for position in range(first, stop)}
    return found


@pytest.mark.parametrize("rule", prefetch.RULES)
@given(seed=st.integers(0, 99), most_blocks=st.sampled_from([1, 7, 40, 10_000]), hbm_blocks=st.integers(4, 200))
@settings(max_examples=8, deadline=None)
def test_equals_a_list_of_all_blocks(rule, seed, most_blocks, hbm_blocks):
    turns = synthetic.generate("zipf", seed, SMALL)
    found = prefetch.candidates(turns, LRU, hbm_blocks, rule, most_blocks)
    assert [useful.tolist() for useful in found] == by_blocks(turns, hbm_blocks, rule, most_blocks, 0.15)


@pytest.mark.parametrize("rule", prefetch.RULES)
def test_renumbering_sessions_changes_nothing(rule):
    turns = synthetic.generate("zipf", 3, SMALL)
    again = turns.renumbered(np.random.default_rng(3).permutation(SMALL.sessions))
    assert used(turns, rule, 30, 60) == used(again, rule, 30, 60)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"rule": "rope"}, "rule"), ({"most_blocks": -1}, "most_blocks"), ({"hbm_blocks": 0}, "hbm_blocks"), ({"alpha": 1.0}, "alpha")],
)
def test_refuses(four_turns, change, words):
    asked = {"rule": "next", "hbm_blocks": 21, "most_blocks": 5, **change}
    with pytest.raises(ValueError, match=words):
        prefetch.candidates(four_turns, LRU, **asked)
