"""Edge policies: traces worked out by hand, equality with the object caches at edges of one block, and rules that all obey."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import eviction, policies, requests

PROPERTY = settings(max_examples=200, derandomize=True, deadline=None, database=None)

ABC = "abcdefghijklmnopqrstuvwxyz"

EXACT = {
    "sieve": policies.SIEVE,
    "s3fifo": policies.S3FIFO,
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

GOLDEN = {
    "fifo": (4797, 7758, 10610, 13960),
    "lru": (5578, 8854, 11710, 14935),
    "lfu": (8478, 10522, 12888, 15649),
    "lru2": (8369, 10888, 13279, 15697),
    "2q": (7566, 10362, 12534, 15087),
    "arc": (7708, 10408, 12629, 15216),
    "mq": (7710, 10017, 12004, 14994),
    "sieve": (8116, 11030, 13291, 15720),
    "s3fifo": (8181, 10895, 13045, 15429),
    "gdsf": (7408, 10448, 12917, 15622),
    "farthest": (10350, 13322, 15550, 17628),
}
"""Hits of libCacheSim 0.3.5 with 20, 50, 100 and 200 blocks; benchmarks/policies_against_peer.py makes them anew."""

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


@pytest.mark.parametrize(
    ("slug", "capacity", "text", "expected"),
    [
        ("fifo", 2, "abacba", "..+a+b"),
        ("lru", 2, "abacba", "..+bac"),
        # Of b and a, both read once, b is the older; counts are forgotten, or b's second visit outweighs the older a.
        ("lfu", 2, "bacd", "..ba"),
        ("lfu", 2, "aabcbcbd", ".+.bcbcb"),
        ("lfu_persistent", 2, "aabcbcbd", ".+.bca+c"),
        # The same for the second last read: b has one at 2, after a's at 0, if its first read is remembered.
        ("lru2", 2, "aabcbd", ".+.bcb"),
        ("lru2_persistent", 2, "aabcbd", ".+.bca"),
        # One block in `in`, two names in `out`: a comes back to main and stays; b comes back too late.
        ("2q", 4, "abcdeafgba", "....abcde+"),
        # b, known to B1, raises the share of T1 to one, so T2 gives a; a, known to B2, takes it back, and T1 gives c.
        ("arc", 2, "aabcba", ".+.bac"),
        # Two reads stand above one; b comes back with its count, and of two equals a is the older.
        ("mq", 2, "aabcbd", ".+.bca"),
        # The hit saves a from the first sweep, which stops at b; the hand goes on from there.
        ("sieve", 3, "abcadbea", "...+bcd+"),
        ("s3fifo", 10, "abcdefghijbkalc", "..........+akcl"),
        # b and c rank 1, then b starts from a floor of 1 and ranks 2, as a does, which is older.
        ("gdsf", 2, "aabcbd", ".+.bca"),
        ("farthest", 2, "abcabc", "..b+a+"),
        ("farthest", 2, "cabd", "..ca"),
        # At alpha 0.01 two early reads weigh more than a late one.
        ("ema001", 2, "aabc", ".+.b"),
        # P of b, 0.3325, is above what is left of a's two reads, 0.403 · 0.85 ** 3.
        ("priority015", 2, "aabbbc", ".+.++a"),
    ],
)
def test_by_hand(ask, slug, capacity, text, expected):
    assert ask(slug, capacity, text) == expected


def test_mq_sinks():
    """Read four times, a stands above b, read twice, unless a lifetime of one turn lets it sink to where b arrives after it."""
    for life_turns, expected in ((16, 1), (1, 0)):
        *_, (_, victim) = replay(eviction.MultiQueue(2, life_turns=life_turns), 2, [0, 0, 0, 0, 1, 1, 2])
        assert victim == expected


def test_look_ahead_sees_its_window():
    """As d comes, c returns next, then a, then b: with one turn known the older of a and b goes, with two b, as a is known to return."""
    for window, expected in ((0, 0), (1, 0), (2, 1), (3, 1)):
        trace = [0, 1, 2, 3, 2, 0, 1]
        victims = [victim for _, victim in replay(eviction.LookAhead(3, window, known(trace)["reads"]), 3, trace)]
        assert victims[3] == expected


def test_gdsf_keeps_what_is_dear():
    """Block 1,000 costs 1.3 times block 0: the cheaper goes although it was read later; at equal cost, the older."""
    for cost, expected in ((eviction.recompute_s, 1), (lambda position_block: 1.0, 0)):
        policy = eviction.Gdsf(10, [1000, 0], cost)
        for turn in (0, 1):
            policy.asked(turn, turn, 0)
            policy.read(turn, turn, 5)
        assert policy.victim(()) == expected
    assert eviction.recompute_s(0) == pytest.approx(17.92e-3)
    assert eviction.recompute_s(512) == pytest.approx((2.24e12 + 4 * 80 * 8192 * 16 * 8192) / 125e12)


def test_half_life():
    assert eviction.half_life_turns(0.05) == pytest.approx(13.51, abs=0.01)
    assert eviction.Ema(1, 0.5).half_life_turns == 1


def test_priority_weighs_anchors():
    """Five turns on, an anchor's P is 0.3325 · 0.85 ** 5 + 0.2 = 0.348, above the 0.3325 of what was just read; six turns on, below."""
    for turn, expected in ((5, 1), (6, 0)):
        policy = eviction.Priority(10, anchors=[0], alpha=0.15)
        for edge, at in ((0, 0), (1, turn)):
            policy.asked(edge, at, 0)
            policy.read(edge, at, 5)
        assert policy.victim(()) == expected


def test_priority_demotes():
    """One read: 0.3325, one turn later 0.2826, below the cut; an anchor reaches it after eight turns."""
    policy = eviction.NAMES["priority015_demotes"].build(10, anchors=[0])
    for edge in (0, 1):
        policy.asked(edge, 0, 0)
        policy.read(edge, 0, 5)
    assert policy.priority(1, 1) == pytest.approx(0.3325 * 0.85)
    assert [policy.demotes(turn) for turn in (0, 1, 7, 8)] == [[], [1], [1], [1, 0]]
    policy.lost(1, 0)
    assert policy.demotes(8) == [0]


def test_priority_at_the_published_optimum_demotes_what_is_new():
    """At alpha 0.05 a first read has P = 0.2775: it leaves at once."""
    policy = eviction.NAMES["priority005_demotes"].build(10, anchors=())
    policy.read(0, 0, 5)
    assert policy.demotes(0) == [0]
    assert eviction.NAMES["priority005"].build(10, anchors=()).demotes(0) == []


@PROPERTY
@given(trace=traces, anchors=st.sets(st.integers(0, 11)), alpha=st.sampled_from((0.5, 0.15, 0.01)), capacity=st.integers(1, 8))
def test_priority_evicts_the_smallest(trace, anchors, alpha, capacity):
    policy = eviction.Priority(capacity, anchors, alpha)
    for turn, edge in enumerate(trace):
        policy.asked(edge, turn, int(edge in policy.blocks))
        if edge not in policy.blocks and len(policy.blocks) >= capacity:
            victim = policy.victim(())
            assert policy.priority(victim, turn) <= min(policy.priority(other, turn) for other in policy.blocks) + 1e-12
            policy.lost(victim, 0)
        policy.read(edge, turn, 1)


def test_a_turn_that_was_not_foreseen():
    policy = eviction.Farthest(4, [[0, 2], [1]])
    policy.read(0, 0, 1)
    with pytest.raises(eviction.ContradictsTrace, match="turn 1 reads edge 0; expected 2"):
        policy.read(0, 1, 1)
    with pytest.raises(eviction.ContradictsTrace, match="turn 3 reads edge 1; expected 1"):
        policy.read(1, 3, 1)


def test_what_a_policy_needs_must_be_given():
    with pytest.raises(ValueError, match="policy gdsf: needs first_block, given were reads"):
        eviction.NAMES["gdsf"].build(4, reads=[])


def test_alpha_must_be_a_share():
    with pytest.raises(ValueError, match=r"alpha 1\.0: expected"):
        eviction.Ema(4, 1.0)


@pytest.fixture(scope="module")
def golden_trace():
    """20,000 requests for 500 blocks, zipf with exponent 0.9."""
    rng = np.random.default_rng(1)
    share = 1 / np.arange(1, 501) ** 0.9
    return rng.permutation(500)[rng.choice(500, size=20_000, p=share / share.sum())].tolist()


@pytest.mark.parametrize("slug", [slug for slug in GOLDEN if slug != "gdsf"])
def test_hits_are_those_of_libcachesim(slug, golden_trace):
    for capacity, hits in zip((20, 50, 100, 200), GOLDEN[slug], strict=True):
        policy = eviction.NAMES[slug].build(capacity, **known(golden_trace))
        assert sum(hit for hit, _ in replay(policy, capacity, golden_trace)) == hits


def test_gdsf_hits_are_those_of_libcachesim(golden_trace):
    """At equal cost, and asked in the peer's order: it admits first, and may evict what it has just admitted."""
    for capacity, hits in zip((20, 50, 100, 200), GOLDEN["gdsf"], strict=True):
        policy, found = eviction.Gdsf(capacity, [0] * 500, cost=lambda position_block: 1.0), 0
        for turn, edge in enumerate(golden_trace):
            found += edge in policy.blocks
            policy.asked(edge, turn, int(edge in policy.blocks))
            policy.read(edge, turn, 1)
            if len(policy.blocks) > capacity:
                policy.lost(policy.victim(()), 0)
        assert found == hits


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
    cache = requests.cache(policies.MIN, capacity, np.array(trace, dtype=int))
    ours = replay(eviction.NAMES["farthest"].build(capacity, **known(trace)), capacity, trace)
    assert [hit for hit, _ in ours] == [cache.request(edge, turn)[0] for turn, edge in enumerate(trace)]


@PROPERTY
@given(trace=traces, capacity=st.integers(1, 8))
def test_look_ahead_lies_between_lru_and_farthest(trace, capacity):
    """No window: LRU; a window without end: the farthest."""
    for window, slug in ((0, "lru"), (eviction.NEVER, "farthest")):
        ours = replay(eviction.LookAhead(capacity, window, known(trace)["reads"]), capacity, trace)
        assert list(ours) == list(replay(eviction.NAMES[slug].build(capacity, **known(trace)), capacity, trace))


@st.composite
def trees(draw):
    """A prefix tree (parent of each edge), blocks of each edge, the deepest edge that each turn reads, and a capacity."""
    edges = draw(st.integers(1, 9))
    parent = [None, *(draw(st.one_of(st.none(), st.integers(0, edge - 1))) for edge in range(1, edges))]
    size = draw(st.lists(st.integers(1, 6), min_size=edges, max_size=edges))
    turns = draw(st.lists(st.integers(0, edges - 1), min_size=1, max_size=50))
    return parent, size, turns, draw(st.integers(1, sum(size)))


def lossless(named, parent, size, turns, capacity):
    """Replay paths of a tree with all that a turn reads pinned; what does not fit is streamed from the deep end. Yields (victim, left)."""

    def path_to(edge):
        return [] if edge is None else [*path_to(parent[edge]), edge]

    paths = [path_to(edge) for edge in turns]
    first_block = [sum(size[above] for above in path_to(edge)[:-1]) for edge in range(len(size))]
    roots = [edge for edge, above in enumerate(parent) if above is None]
    policy = named.build(capacity, reads=eviction.reads_of(paths, len(size)), first_block=first_block, anchors=roots)
    resident = {}

    def leave(edge, left):
        resident[edge] = left
        if not left:
            del resident[edge]
        policy.lost(edge, left)

    for turn, path in enumerate(paths):
        for edge in path:
            policy.asked(edge, turn, resident.get(edge, 0))
        keeps, room = {}, capacity
        for edge in path:
            keeps[edge] = min(size[edge], room)
            room -= keeps[edge]
        others = sum(blocks for edge, blocks in resident.items() if edge not in keeps)
        while others > room:
            victim = policy.victim(keeps)
            assert victim in resident
            assert victim not in keeps
            leaving = min(resident[victim], others - room)
            others -= leaving
            leave(victim, resident[victim] - leaving)
            yield victim, resident.get(victim, 0)
        for edge in path:
            resident[edge] = keeps[edge]
            if not keeps[edge]:
                del resident[edge]
            policy.read(edge, turn, keeps[edge])
        for edge in policy.demotes(turn):
            leave(edge, 0)
            yield edge, 0
        assert policy.blocks == resident
        assert_queues_weigh_what_is_resident(policy)


def assert_queues_weigh_what_is_resident(policy):
    if isinstance(policy, eviction.Queued):
        queues = set(policy._at.values())
        assert sum(queue.total for queue in queues) == sum(policy.blocks.values())
        assert sum(map(len, queues)) == len(policy.blocks)


@pytest.mark.parametrize("slug", eviction.NAMES)
@settings(PROPERTY, max_examples=60)
@given(tree=trees(), data=st.data())
def test_victims_are_resident_unpinned_and_independent_of_numbers(slug, tree, data):
    parent, size, turns, capacity = tree
    named = eviction.NAMES[slug]
    number = data.draw(st.permutations(range(len(size))))
    old = sorted(range(len(size)), key=number.__getitem__)
    renumbered = (
        [None if parent[edge] is None else number[parent[edge]] for edge in old],
        [size[edge] for edge in old],
        [number[edge] for edge in turns],
    )
    victims = list(lossless(named, parent, size, turns, capacity))
    assert list(lossless(named, *renumbered, capacity)) == [(number[edge], left) for edge, left in victims]


@pytest.mark.parametrize("slug", ["fifo", "lru", "lfu", "ema015", "lru2", "2q", "arc", "mq", "sieve", "s3fifo"])
def test_of_one_path_the_deepest_goes_first(slug):
    """Edges 0 to 2 are one path, read in one turn: what is deeper is of no use without what precedes it."""
    policy = eviction.NAMES[slug].build(30)
    for edge in (0, 1, 2):
        policy.asked(edge, 0, 0)
    for edge in (0, 1, 2):
        policy.read(edge, 0, 1)
    assert [policy.victim(pinned) for pinned in ((), (2,), (2, 1))] == [2, 1, 0]
