"""Replay of paths against the reference block by block, keys of single blocks and exhaustive search; and the cases P1 to P9."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import path_blocks, paths, serving
from kvtier.simulate.eviction import NAMES, Fifo, Lfu, Lru, Sieve
from kvtier.simulate.lower_tiers import Tier
from kvtier.workload.paths import Builder, runs_of

BLOCK_TOKENS = 4


def trace_of(requests, tokens=None):
    builder = Builder("a trace", BLOCK_TOKENS)
    for number, path in enumerate(requests):
        some = BLOCK_TOKENS * len(path) if tokens is None else tokens[number]
        builder.add(f"line {number + 1}", number, max(some, 1), 1, runs_of(path))
    return builder.trace()


# Chained: an identity is its place in a tree of three branches a block, so that no identity has two parents.
BRANCHES = st.lists(st.lists(st.integers(0, 2), max_size=7), min_size=1, max_size=25)


def chained(branches):
    known = {}
    return [[known.setdefault(tuple(path[: depth + 1]), len(known)) for depth in range(len(path))] for path in branches]


def same(trace, slug, capacity, **options):
    """Edges and blocks say the same of hits, of what is missing and streamed, and of each victim, in order."""
    events = paths.Events()
    by_edge = paths.replay(trace, paths.build(NAMES[slug], trace, capacity), capacity, events=events, **options)
    by_block = path_blocks.replay(trace, paths.build(NAMES[slug], trace, capacity), capacity, **options)
    end = trace.path_blocks * BLOCK_TOKENS - trace.path_tokens
    for request, record in enumerate(by_block):
        edges = trace.path(request).tolist()
        read = [(edge, position) for edge in edges for position in range(trace.blocks[edge])]

        def tokens(found, read=read, request=request):
            return sum(BLOCK_TOKENS - (end[request] if block == read[-1] else 0) for block in found)

        assert by_edge.hits[request] == len(record.hits)
        assert by_edge.prefix_hits[request] == len(record.prefix_hits)
        assert by_edge.hit_tokens[request] == tokens(record.hits)
        assert by_edge.prefix_hit_tokens[request] == tokens(record.prefix_hits)
        assert by_edge.streamed[request] == len(record.streamed)
        assert by_edge.evictions[request] == len(record.evicted)
        assert blocks(events.missing[request]) == [block for block in read if block not in record.hits]
        assert sorted(blocks(events.streamed[request])) == sorted(record.streamed)
        gone = [
            block
            for edge, first, stop in events.evicted[request]
            for block in blocks([(edge, first, stop)])[:: -1 if options.get("suffix_first", True) else 1]
        ]
        assert gone == record.evicted
        assert not set(gone) & set(read)
    return by_edge, by_block


def blocks(intervals):
    return [(edge, position) for edge, first, stop in intervals for position in range(first, stop)]


@pytest.mark.parametrize("slug", NAMES)
@settings(max_examples=25, derandomize=True, database=None)
@given(branches=BRANCHES, capacity=st.integers(0, 20), suffix_first=st.booleans(), leaves_only=st.booleans())
def test_equals_the_reference_block_by_block(slug, branches, capacity, suffix_first, leaves_only):
    requests = chained(branches)
    partly = [max(BLOCK_TOKENS * len(path) - number % BLOCK_TOKENS, 1) for number, path in enumerate(requests)]
    trace = trace_of(requests, partly)
    same(trace, slug, capacity, suffix_first=suffix_first, leaves_only=leaves_only)


@settings(max_examples=150, derandomize=True, database=None)
@given(BRANCHES, st.integers(0, 20))
def test_fast_lru_equals_the_general_replay(branches, capacity):
    trace = trace_of(chained(branches))
    cache_, events, evicted = paths.Cache(trace, Lru(capacity), capacity, events=paths.Events()), None, []
    events = cache_.events
    counts = [cache_.serve(request, path) for request, path in enumerate(paths.paths_of(trace))]
    assert paths.replay_recency(trace, capacity, evicted).tolist() == [list(map(int, row)) for row in counts]
    assert evicted == [(request, *interval) for request, some in enumerate(events.evicted) for interval in some]


class BlockKeys:
    """Lossless residency with the state of each block in a table, and the victim by brute force over single blocks."""

    def __init__(self, key):
        self.key = key

    def hits(self, trace, capacity):
        resident, reads, found = set(), {}, []
        for request in range(trace.requests):
            read = path_blocks.block_numbers(trace, request)
            found.append(sum(block in resident for block in read))
            kept = read[:capacity]
            others = resident - set(read)
            while len(others) + len(kept) > capacity:
                # Smallest key, then the oldest read, then the deepest of its path.
                others.remove(min(others, key=lambda block: (self.key(reads[block], request), reads[block][-1][0], -reads[block][-1][1])))
            for place, block in enumerate(read):
                reads.setdefault(block, []).append((request, place))
            resident = others | set(kept)
        return found


def ema_score(turns, alpha=0.05):
    score, last = 0.0, turns[0]
    for turn in turns:
        score = alpha + (1 - alpha) * (score * (1 - alpha) ** (turn - last))
        last = turn
    return math.log(score) + last * -math.log(1 - alpha)


@pytest.mark.parametrize(
    ("slug", "key"),
    [
        ("lru", lambda reads, now: reads[-1][0]),
        ("lfu_persistent", lambda reads, now: len(reads)),
        ("ema005_persistent", lambda reads, now: ema_score([turn for turn, _ in reads])),
        ("lru2_persistent", lambda reads, now: reads[-2][0] if len(reads) > 1 else -1),
    ],
)
@settings(max_examples=150, derandomize=True, database=None)
@given(branches=BRANCHES, capacity=st.integers(0, 20))
def test_equals_state_of_single_blocks(slug, key, branches, capacity):
    trace = trace_of(chained(branches))
    expected = BlockKeys(key).hits(trace, capacity)
    assert paths.replay(trace, paths.build(NAMES[slug], trace, capacity), capacity).hits.tolist() == expected


LEAVES_OF_THEIR_OWN_ACCORD = ["lru", "lfu", "lfu_persistent", "ema015", "ema001_persistent", "lru2", "lru2_persistent", "farthest", "look8"]


@pytest.mark.parametrize("slug", LEAVES_OF_THEIR_OWN_ACCORD)
@settings(max_examples=25, derandomize=True, database=None)
@given(branches=BRANCHES, capacity=st.integers(0, 20))
def test_policies_that_name_leaves_of_their_own_accord(slug, branches, capacity):
    trace = trace_of(chained(branches))
    guarded, free = (
        paths.replay(trace, paths.build(NAMES[slug], trace, capacity), capacity, leaves_only=leaves_only, events=paths.Events())
        for leaves_only in (True, False)
    )
    assert guarded.hits.tolist() == free.hits.tolist()
    assert guarded.evictions.tolist() == free.evictions.tolist()


# The optimum.


def most_hits(trace, capacity, counted_from):
    """Exhaustive search over what may be kept after each request, beside the path, which is pinned."""

    @cache
    def best(request, resident):
        if request == trace.requests:
            return 0
        read = path_blocks.block_numbers(trace, request)
        found = len(resident & set(read)) if request >= counted_from else 0
        kept = frozenset(read[:capacity])
        others = sorted(resident - set(read))
        room = capacity - len(kept)
        choices = [frozenset(())]
        for block in others:
            choices += [choice | {block} for choice in choices if len(choice) < room]
        return found + max(best(request + 1, kept | choice) for choice in choices)

    return best(0, frozenset())


@settings(max_examples=250, derandomize=True, database=None)
@given(
    st.lists(st.lists(st.integers(0, 1), max_size=4), min_size=1, max_size=8),
    st.integers(0, 6),
    st.integers(0, 4),
)
def test_no_schedule_has_more_hits_than_the_optimum(branches, capacity, counted_from):
    trace = trace_of(chained(branches))
    found = paths.optimum(trace, capacity, counted_from)
    assert int(found.hits[counted_from:].sum()) == most_hits(trace, capacity, counted_from)
    assert found.hits[counted_from:].tolist() == found.prefix_hits[counted_from:].tolist()


@pytest.mark.parametrize("slug", NAMES)
@settings(max_examples=15, derandomize=True, database=None)
@given(branches=BRANCHES, capacity=st.integers(0, 20), counted_from=st.integers(0, 10), suffix_first=st.booleans())
def test_no_policy_has_more_hits_than_the_optimum(slug, branches, capacity, counted_from, suffix_first):
    trace = trace_of(chained(branches))
    most = paths.optimum(trace, capacity, counted_from).hits[counted_from:].sum()
    ran = paths.replay(trace, paths.build(NAMES[slug], trace, capacity), capacity, suffix_first=suffix_first, leaves_only=suffix_first)
    assert ran.prefix_hits[counted_from:].sum() <= ran.hits[counted_from:].sum() <= most
    assert most <= (trace.path_blocks - trace.new_blocks)[counted_from:].sum()


def test_farthest_is_the_optimum_where_all_requests_count():
    trace = trace_of(chained([[0, 1], [1], [0, 2], [1, 1], [0, 1], [2], [1, 1]]))
    for capacity in range(8):
        farthest = paths.replay(trace, paths.build(NAMES["farthest"], trace, capacity), capacity)
        assert farthest.hits.tolist() == paths.optimum(trace, capacity).hits.tolist()


# Why SIEVE and LFU agree where they do.


def stays(kind, trace, capacity):
    """(victim, how often it was read in its stay) in order, and the hits, of LFU or SIEVE."""
    reads, order = {}, []

    class Watched(kind):
        def insert(self, edge, turn):
            reads[edge] = 1
            super().insert(edge, turn)

        def hit(self, edge, turn):
            reads[edge] += 1
            super().hit(edge, turn)

        def victim(self, pinned):
            order.append((edge := super().victim(pinned), reads[edge]))
            return edge

    ran = paths.replay(trace, Watched(capacity), capacity)
    return order, ran.hits.tolist()


@settings(max_examples=300, derandomize=True, database=None)
@given(BRANCHES, st.integers(1, 20))
def test_sieve_is_lfu_until_something_must_leave_that_was_read_again(branches, capacity):
    """LFU takes the oldest of what was read once. All that the hand of SIEVE has passed was read again, so what it meets is the same."""
    trace = trace_of(chained(branches))
    lfu, _ = stays(Lfu, trace, capacity)
    sieve, _ = stays(Sieve, trace, capacity)
    once = list(itertools.takewhile(lambda stay: stay[1] == 1, lfu))
    assert sieve[: len(once)] == once


def test_sieve_is_not_lfu_where_something_must_leave_that_was_read_again():
    """Both were read again: LFU drops the one that was read less often, SIEVE the older one."""
    trace = trace_of([[1], [1], [1], [3], [3], [5]])
    assert stays(Lfu, trace, 2)[0] == [(1, 2)]
    assert stays(Sieve, trace, 2)[0] == [(0, 3)]


@pytest.mark.parametrize("tokens", [2**18, 2**22])
def test_sieve_is_lfu_on_conversation_because_of_that(public_trace, tokens):
    trace = public_trace("conversation")
    capacity = tokens // trace.block_tokens
    lfu, sieve = (stays(kind, trace, capacity) for kind in (Lfu, Sieve))
    assert lfu == sieve
    assert {reads for _, reads in lfu[0]} == {1}


# Cases of the shared list.


def survivors(slug):
    """64 blocks, each read ten times, then 1,984 that are read once, in a cache of 1,024; how many of the 64 are left."""
    requests = [[block] for _ in range(10) for block in range(0, 128, 2)] + [[block] for block in range(1000, 4968, 2)]
    trace = trace_of(requests)
    cache_ = paths.Cache(trace, paths.build(NAMES[slug], trace, 1024), 1024)
    for request, path in enumerate(paths.paths_of(trace)):
        cache_.serve(request, path)
    return sum(cache_.high[:64])


@pytest.mark.parametrize(
    ("slug", "left"),
    [("lru", 0), ("fifo", 0), ("ema005", 0), ("lfu", 64), ("lru2", 64), ("ema001", 0), ("2q", 0), ("arc", 64), ("sieve", 64), ("mq", 0)],
)
def test_p1_survivors_of_a_scan(slug, left):
    assert survivors(slug) == left


@pytest.mark.parametrize("slug", NAMES)
def test_p2_blocks_of_one_request_share_a_time(slug):
    trace = trace_of([[1, 2, 3], [9], [1, 2, 3]])
    assert paths.replay(trace, paths.build(NAMES[slug], trace, 3), 3).hits.tolist() == [0, 0, 2]
    prefix_first = paths.replay(trace, paths.build(NAMES[slug], trace, 3), 3, suffix_first=False, leaves_only=False)
    assert prefix_first.prefix_hits.tolist()[2] == 0


@pytest.mark.parametrize("slug", NAMES)
@settings(max_examples=15, derandomize=True, database=None)
@given(branches=BRANCHES, capacity=st.integers(0, 20))
def test_p4_no_orphans_from_leaves(slug, branches, capacity):
    trace = trace_of(chained(branches))
    by_edge, records = same(trace, slug, capacity)
    assert [path_blocks.orphans(trace, record.resident) for record in records] == [[]] * trace.requests
    assert by_edge.hits.tolist() == by_edge.prefix_hits.tolist()


def test_p4_fifo_makes_orphans_where_it_may():
    """The shared block came first, so FIFO takes it first, and what follows it is of no use to a cache without a tier below."""
    trace = trace_of([[0, 1], [0, 2], [5], [7], [0, 2]])
    records = path_blocks.replay(trace, Fifo(3), 3, leaves_only=False)
    assert any(path_blocks.orphans(trace, record.resident) for record in records)
    free = paths.replay(trace, Fifo(3), 3, leaves_only=False)
    assert free.hits.tolist()[4] == 1
    assert free.prefix_hits.tolist()[4] == 0
    guarded = paths.replay(trace, Fifo(3), 3)
    assert guarded.prefix_hits.tolist()[4] == 1


def test_p6_random_requests_in_tight_memory_hit_next_to_nothing():
    """500 contexts of four blocks, drawn at random: a cache without limit hits most, one of two contexts what chance leaves it."""
    drawn = np.random.default_rng(1).integers(0, 500, size=4_000).tolist()
    trace = trace_of([list(range(10 * context, 10 * context + 4)) for context in drawn])
    reachable = int((trace.path_blocks - trace.new_blocks).sum())
    assert reachable / trace.block_accesses > 0.85
    assert 0 < paths.replay(trace, Lru(8), 8).hits.sum() / trace.block_accesses < 0.01


def test_p6_what_had_to_leave_is_no_hit_when_it_comes_back():
    trace = trace_of([[1, 2], [5, 6], [1, 2]])
    assert paths.replay(trace, Lru(2), 2).hits.tolist() == [0, 0, 0]


@pytest.mark.parametrize("slug", ["lru", "fifo", "sieve", "arc", "lfu_persistent"])
@pytest.mark.parametrize("exclusive", [False, True])
@settings(max_examples=15, derandomize=True, database=None)
@given(branches=BRANCHES, capacity=st.integers(0, 12), below=st.integers(0, 12), suffix_first=st.booleans())
def test_p7_p9_hits_by_tier_add_up_and_a_tier_below_never_costs_a_hit(slug, exclusive, branches, capacity, below, suffix_first):
    trace = trace_of(chained(branches))
    options = {"suffix_first": suffix_first, "leaves_only": suffix_first}
    alone = paths.replay(trace, paths.build(NAMES[slug], trace, capacity), capacity, **options)
    tiers = [Tier("second", below, exclusive), Tier("third", 5, exclusive)]
    above, counts = serving.replay_with_tiers(trace, paths.build(NAMES[slug], trace, capacity), capacity, tiers, **options)
    assert above.hits.tolist() == alone.hits.tolist()
    assert (above.hits + counts.fetched.sum(axis=0) + counts.computed).tolist() == trace.path_blocks.tolist()
    assert np.all(counts.computed <= trace.path_blocks - alone.hits)
    assert np.all(counts.computed >= trace.new_blocks)
    assert np.all(counts.written[0] <= above.evictions + above.streamed)


def brute_tiers(trace, events, capacity, exclusive):
    """One tier as a list of blocks, oldest first."""
    tier, fetched = [], []
    for missing, evicted, streamed in zip(events.missing, events.evicted, events.streamed, strict=True):
        found = [block for block in blocks(missing) if block in tier]
        fetched.append(len(found))
        if exclusive:
            tier = [block for block in tier if block not in found]
        for interval in (*evicted, *streamed):
            for block in blocks([interval])[::-1]:
                if block in tier:
                    tier.remove(block)
                tier.append(block)
            del tier[: max(len(tier) - capacity, 0)]
    return fetched


@settings(max_examples=200, derandomize=True, database=None)
@given(BRANCHES, st.integers(0, 12), st.integers(0, 12), st.booleans(), st.booleans())
def test_a_tier_equals_a_list_of_blocks(branches, capacity, below, suffix_first, exclusive):
    trace, events = trace_of(chained(branches)), paths.Events()
    options = {"suffix_first": suffix_first, "leaves_only": False}
    paths.replay(trace, Fifo(capacity), capacity, events=events, **options)
    _, counts = serving.replay_with_tiers(trace, Fifo(capacity), capacity, [Tier("second", below, exclusive)], **options)
    assert counts.fetched[0].tolist() == brute_tiers(trace, events, below, exclusive)


def test_p9_a_second_tier_smaller_than_the_first_serves_what_the_first_cannot():
    trace = trace_of([[1, 2, 3], [9], [1, 2, 3]])
    above, counts = serving.replay_with_tiers(trace, Lru(3), 3, [Tier("second", 1)])
    assert above.hits.tolist() == [0, 0, 2]
    assert counts.fetched.tolist() == [[0, 0, 1]]
    assert counts.computed.tolist() == [3, 1, 0]


def test_cost_of_a_block_is_that_of_its_smaller_blocks():
    from kvtier.simulate.eviction import recompute_s

    for position in (0, 3):
        assert paths.recompute_s(16, position) == pytest.approx(recompute_s(position), rel=1e-12)
    tokens = 64
    assert paths.recompute_s(tokens, 2) == pytest.approx(4 * recompute_s(2 * tokens / 16), rel=1e-12)


def test_negative_capacity_is_refused():
    trace = trace_of([[1]])
    for refused in (lambda: paths.replay(trace, Fifo(1), -1), lambda: paths.replay_recency(trace, -1)):
        with pytest.raises(ValueError, match="capacity_blocks -1"):
            refused()


# Public traces.


@pytest.mark.parametrize(("tokens", "rate"), [(2**18, 4.30), (2**20, 5.60), (2**22, 18.51), (2**24, 34.15), (2**40, 37.36)])
def test_t1_lru_on_conversation(public_trace, tokens, rate):
    trace = public_trace("conversation")
    capacity = tokens // trace.block_tokens
    ran = paths.replay(trace, Lru(capacity), capacity)
    assert round(100 * ran.hit_tokens.sum() / trace.input_tokens.sum(), 2) == rate
    assert ran.hits.tolist() == ran.prefix_hits.tolist()


def test_an_unlimited_cache_reaches_the_ceiling(public_trace):
    for name in ("conversation", "synthetic"):
        trace = public_trace(name)
        ran = paths.replay(trace, Lru(trace.unique_blocks), trace.unique_blocks)
        assert ran.hits.tolist() == (trace.path_blocks - trace.new_blocks).tolist()
        assert ran.evictions.sum() == 0
