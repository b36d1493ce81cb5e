"""Tiers below a replay as it goes on, prefill, and the queue before it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.analytic.breakeven import prefill_flop
from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.layouts import Kind, LayerGroup, Layout
from kvtier.errors import InputError
from kvtier.simulate import paths, queueing, serving
from kvtier.simulate.eviction import NAMES
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.queueing import Decode, Link, Work
from kvtier.workload.paths import Builder


def trace_of(requests, block_tokens=4, partly=0):
    """A trace of (time, identities); the last block of each request lacks `partly` tokens."""
    builder = Builder("test", block_tokens)
    for number, (time_us, identities) in enumerate(requests):
        builder.add(f"{number}", time_us, len(identities) * block_tokens - partly, 1, [(block, 1) for block in identities])
    return builder.trace()


# A block is known by its whole path, so that a prefix tree comes of any list of small numbers.
requests_of_paths = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=25)


def chained(paths_of_words):
    known = {}
    return [(0, [known.setdefault(tuple(word[: stop + 1]), len(known)) for stop in range(len(word))]) for word in paths_of_words]


@given(
    words=requests_of_paths,
    slug=st.sampled_from(["lru", "fifo", "lfu", "ema005", "s3fifo", "priority015_demotes"]),
    capacity=st.integers(1, 10),
    tiers=st.lists(st.integers(0, 12), min_size=1, max_size=3),
    suffix_first=st.booleans(),
    partly=st.integers(0, 3),
)
def test_the_end_of_a_path_is_fetched_only_if_it_was_missing_and_no_event_is_left(words, slug, capacity, tiers, suffix_first, partly):
    trace = trace_of(chained(words), partly=partly)
    tiers = [Tier(str(index), blocks) for index, blocks in enumerate(tiers)]
    cache_events, below = paths.Events(), serving.Below(trace, tiers)
    eviction = paths.build(NAMES[slug], trace, capacity)
    cache = paths.Cache(trace, eviction, capacity, suffix_first=suffix_first, events=cache_events)
    for request, path in enumerate(paths.paths_of(trace)):
        _, _, last_hit, _, _ = cache.serve(request, path)
        missing = cache_events.missing[-1]
        below.serve(request, path, cache_events)
        missed_end = bool(missing) and missing[-1][0] == path[-1] and missing[-1][2] == trace.blocks[path[-1]]
        assert missed_end == (not last_hit)
        if below.last_fetched[request]:
            assert missed_end
    assert (cache_events.missing, cache_events.evicted, cache_events.streamed) == ([], [], [])


def test_a_partly_filled_block_that_comes_from_a_tier_is_told():
    # Room for two blocks: the second path pushes out the first, whose end is fetched by the third request.
    trace = trace_of([(0, [0, 1]), (0, [2, 3]), (0, [0, 1])], partly=3)
    below, events = serving.Below(trace, [Tier("tier", 10)]), paths.Events()
    cache = paths.Cache(trace, paths.build(NAMES["lru"], trace, 2), 2, events=events)
    for request, path in enumerate(paths.paths_of(trace)):
        cache.serve(request, path)
        below.serve(request, path, events)
    assert below.fetched.tolist() == [[0, 0, 2]]
    assert below.last_fetched.tolist() == [False, False, True]


@given(
    jobs=st.lists(
        st.tuples(st.floats(0, 5), st.integers(0, 20), st.integers(0, 3), st.integers(0, 3)),
        min_size=1,
        max_size=30,
    ),
    servers=st.integers(1, 4),
)
def test_one_tier_queues_as_in_the_queueing_model(jobs, servers):
    gaps, fetched, recomputed, demoted = (np.array(column) for column in zip(*jobs, strict=True))
    arrivals, link = np.cumsum(gaps), Link(0.01, 7.0)
    block_bytes, compute_s = 4_000_000, recomputed * 0.3
    zeros = np.zeros_like(fetched)
    work = Work(zeros, zeros, fetched, recomputed, demoted, zeros, compute_s)
    expected = queueing.replay(work, arrivals, link, Decode(0.0, 0.0, block_bytes), servers=servers)
    transfers = np.array([[link.transfer_s(int(blocks), block_bytes) for blocks in fetched]])
    found = serving.serve(arrivals, transfers, compute_s, servers)
    assert found.start == pytest.approx(expected.start)
    assert found.ready == pytest.approx(expected.first_token)
    assert found.stall == pytest.approx(expected.stall)


def test_tiers_are_read_side_by_side_and_each_link_is_shared():
    transfers = np.array([[2.0, 2.0], [3.0, 0.0]])
    found = serving.serve(np.array([0.0, 1.0]), transfers, np.array([0.5, 0.5]), servers=2)
    # The second request waits for the first one's transfer from the first tier, which ends at 2.
    assert found.ready.tolist() == [3.5, 4.5]
    assert found.stall.tolist() == [3.5, 3.5]
    assert serving.stall_s(transfers, np.array([0.5, 0.5])).tolist() == [3.5, 2.5]


def test_without_tiers_a_stall_is_computing():
    assert serving.stall_s(np.zeros((0, 2)), np.array([0.5, 0.25])).tolist() == [0.5, 0.25]
    assert serving.fetch_s(np.zeros((0, 2), dtype=np.int64), [], 5).shape == (0, 2)


def test_transfer_times():
    found = serving.fetch_s(np.array([[2, 0], [1, 3]]), [Link(1.0, 100.0), Link(2.0)], 10**6)
    assert found.tolist() == [[2 * 1.1e-3, 0.0], [pytest.approx(0.5003e-3), pytest.approx(1.5009e-3)]]


@pytest.mark.parametrize(("arrivals", "servers"), [([1.0, 0.0], 1), ([0.0, np.inf], 1), ([0.0], 1), ([0.0, 1.0], 0)])
def test_queues_that_cannot_be(arrivals, servers):
    with pytest.raises(ValueError, match="expected"):
        serving.serve(np.array(arrivals), np.zeros((0, 2)), np.zeros(2), servers)


def test_offered_load():
    assert serving.offered_load(np.array([0.0, 10.0]), np.array([3.0, 4.0]), 2) == 0.35
    assert serving.offered_load(np.array([5.0, 5.0]), np.array([3.0, 4.0]), 2) == np.inf


@pytest.mark.parametrize("name", ["llama3_70b", "gpt-oss-20b", "llama-4-scout", "deepseek-v3", "qwen3-next-80b-a3b"])
def test_prefill_of_a_whole_prompt_is_the_flop_of_breakeven(name):
    layout = Catalogue().find(name)
    lengths = np.array([1, 100, 8_192, 8_193, 100_000])
    exact = [prefill_flop(layout, int(tokens)) for tokens in lengths]
    prefill = serving.ByCompute(layout, 1e12)
    assert prefill.flop(lengths) == pytest.approx(exact, rel=1e-12)
    assert prefill.seconds(lengths, lengths) == pytest.approx(np.array(exact, dtype=float) / 1e12)


def test_computing_the_end_of_a_prompt_costs_what_is_left():
    layout = Layout("toy", (LayerGroup(Kind.FULL, 2, 1, 8),), query_heads=4, parameters=100)
    # 2 · 100 a token, and 2 · 2 layers · 4 heads · 16 elements a pair: 256. Tokens 3 and 4 of 4 attend to 3 + 4.
    assert serving.ByCompute(layout, 1.0).seconds(np.array([4]), np.array([2])).tolist() == [400 + 256 * 7]


def test_prefill_needs_what_it_is_made_of():
    with pytest.raises(InputError, match="parameters"):
        serving.ByCompute(Layout("toy", (LayerGroup(Kind.FULL, 2, 1, 8),), query_heads=4), 1.0)


def test_a_rate_knows_no_position():
    assert serving.AtRate(50.0).seconds(np.array([1_000]), np.array([100])).tolist() == [2.0]
