"""Edge policies: traces worked out by hand, equality with the object caches at edges of one block, and rules that all obey."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import eviction, policies, requests

PROPERTY = settings(max_examples=400, derandomize=True, deadline=None, database=None)

ABC = "abcdefghijklmnopqrstuvwxyz"

EXACT = {
    "fifo": policies.FIFO,
    "lru": policies.LRU,
    "lfu": policies.LFU,
    "lfu_persistent": policies.Policy("lfu", persistent=True),
    **{
        named.slug: policies.ema(named.parameters["alpha"], persistent=named.parameters["persistent"])
        for named in eviction.NAMES.values()
        if named.kind is eviction.Ema
    },
}
"""Policies whose victims are those of an object cache of the project, block for block."""

traces = st.integers(1, 12).flatmap(lambda edges: st.lists(st.integers(0, edges - 1), max_size=120))


def known(trace):
    """What the policies may need of a trace of single edges."""
    edges = max(trace, default=0) + 1
    return {"reads": eviction.reads_of([[edge] for edge in trace], edges), "first_block": [0] * edges, "anchors": ()}


def replay(policy, capacity, trace):
    """An object cache: edges of one block, nothing pinned. Yields hit and victim of each request."""
    resident = set()
    for turn, edge in enumerate(trace):
        hit, victim = edge in resident, None
        policy.asked(edge, turn, int(hit))
        if not hit:
            if len(resident) >= capacity:
                victim = policy.victim(())
                resident.remove(victim)
                policy.lost(victim, 0)
            resident.add(edge)
        policy.read(edge, turn, 1)
        yield hit, victim


@pytest.fixture
def ask():
    """Hits (``+``) and victims (letters, ``.`` for none) of a trace of edges of one block."""

    def run(slug, capacity, text):
        trace = [ABC.index(letter) for letter in text]
        policy = eviction.NAMES[slug].build(capacity, **known(trace))
        return "".join("+" if hit else "." if victim is None else ABC[victim] for hit, victim in replay(policy, capacity, trace))

    return run


@pytest.mark.parametrize("slug", EXACT)
@PROPERTY
@given(trace=traces, capacity=st.integers(1, 8))
def test_victims_are_those_of_the_object_cache(slug, trace, capacity):
    cache = requests.cache(EXACT[slug], capacity, trace)
    ours = replay(eviction.NAMES[slug].build(capacity, **known(trace)), capacity, trace)
    assert list(ours) == [cache.request(edge, turn) for turn, edge in enumerate(trace)]


@PROPERTY
@given(trace=traces, capacity=st.integers(1, 8))
def test_farthest_has_the_hits_of_min(trace, capacity):
    """Ties among what is never read again differ, and cost nothing."""
    cache = requests.cache(policies.MIN, capacity, requests.np.array(trace, dtype=int))
    ours = replay(eviction.NAMES["farthest"].build(capacity, **known(trace)), capacity, trace)
    assert [hit for hit, _ in ours] == [cache.request(edge, turn)[0] for turn, edge in enumerate(trace)]


@PROPERTY
@given(trace=traces, capacity=st.integers(1, 8))
def test_look_ahead_lies_between_lru_and_farthest(trace, capacity):
    """No window: LRU; a window without end: the farthest."""
    for window, slug in ((0, "lru"), (eviction.NEVER, "farthest")):
        ours = replay(eviction.LookAhead(capacity, window, known(trace)["reads"]), capacity, trace)
        assert list(ours) == list(replay(eviction.NAMES[slug].build(capacity, **known(trace)), capacity, trace))
