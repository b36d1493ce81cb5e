"""The compiled replay of paths against the one in Python: hits, streamed blocks and evictions of each request."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import path_engine, paths
from kvtier.simulate.eviction import NAMES
from kvtier.simulate.path_engine import Replayer
from kvtier.workload.paths import Builder, runs_of

BLOCK_TOKENS = 4
BRANCHES = st.lists(st.lists(st.integers(0, 2), max_size=7), min_size=1, max_size=40)
HAS = [slug for slug, named in NAMES.items() if path_engine.replays(named)]


def trace_of(branches):
    """Requests as paths of a tree of three branches a block; inputs end inside their last block."""
    known, builder = {}, Builder("a trace", BLOCK_TOKENS)
    for number, path in enumerate(branches):
        blocks = [known.setdefault(tuple(path[: depth + 1]), len(known)) for depth in range(len(path))]
        builder.add(f"line {number + 1}", number, max(BLOCK_TOKENS * len(path) - number % BLOCK_TOKENS, 1), 1, runs_of(blocks))
    return builder.trace()


def same(one, other):
    for name in ("hits", "hit_tokens", "prefix_hits", "prefix_hit_tokens", "streamed", "evictions"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def test_it_has_all_policies_but_those_with_a_window_and_those_that_demote():
    assert set(NAMES) - set(HAS) == {"look8", "look32", "look128", "priority015_demotes", "priority005_demotes"}


@pytest.mark.parametrize("slug", HAS)
@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(branches=BRANCHES, capacity=st.integers(0, 20), suffix_first=st.booleans(), leaves_only=st.booleans())
def test_equals_the_replay_in_python(slug, branches, capacity, suffix_first, leaves_only):
    trace, options = trace_of(branches), {"suffix_first": suffix_first, "leaves_only": leaves_only}
    expected = paths.replay(trace, paths.build(NAMES[slug], trace, capacity), capacity, events=paths.Events(), **options)
    same(Replayer(trace).replay(NAMES[slug], capacity, **options), expected)


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(
    BRANCHES,
    st.integers(0, 20),
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)).filter(any),
    st.sampled_from([0.5, 0.05, 0.003]),
    st.booleans(),
)
def test_equals_it_under_other_weights(branches, capacity, parts, alpha, persistent):
    trace = trace_of(branches)
    named = path_engine.weighted(alpha, tuple(part / sum(parts) for part in parts), persistent)
    expected = paths.replay(trace, paths.build(named, trace, capacity), capacity)
    same(Replayer(trace).replay(named, capacity), expected)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(BRANCHES, st.integers(0, 20), st.integers(0, 45))
def test_equals_the_optimum(branches, capacity, counted_from):
    trace = trace_of(branches)
    same(Replayer(trace).optimum(capacity, counted_from), paths.optimum(trace, capacity, counted_from))


@pytest.mark.parametrize("slug", ["look8", "priority015_demotes"])
def test_what_it_does_not_have_is_refused(slug):
    with pytest.raises(ValueError, match=slug):
        Replayer(trace_of([[0]])).replay(NAMES[slug], 1)


def test_a_negative_capacity_is_refused():
    with pytest.raises(ValueError, match="capacity_blocks -1"):
        Replayer(trace_of([[0]])).replay(NAMES["lru"], -1)


@pytest.mark.parametrize("slug", HAS)
def test_equals_it_on_a_public_trace(slug, public_trace):
    trace = public_trace("synthetic")
    expected = paths.replay(trace, paths.build(NAMES[slug], trace, 1000), 1000)
    same(Replayer(trace).replay(NAMES[slug], 1000), expected)
