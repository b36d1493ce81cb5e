"""The radix tree of a trace against a trie of single blocks; what is refused; requests in another order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.errors import InputError
from kvtier.simulate import path_blocks
from kvtier.workload.paths import Builder, runs_of

BLOCK_TOKENS = 4


def build(paths, **options):
    builder = Builder("a trace", BLOCK_TOKENS, **options)
    for number, path in enumerate(paths):
        builder.add(f"line {number + 1}", number, max(BLOCK_TOKENS * len(path), 1), 1, runs_of(path))
    return builder.trace()


def ids(trace, edge):
    return [first + i for first, length in trace.label(edge) for i in range(length)]


# Few identities, so that paths share prefixes and identities turn up under several parents.
PATHS = st.lists(st.lists(st.integers(0, 6), max_size=8), min_size=1, max_size=12)


@settings(max_examples=400, derandomize=True, database=None)
@given(PATHS)
def test_every_path_is_whole_edges_and_edges_are_the_longest_chains(paths):
    trace = build(paths)
    ends, following, readers = set(), {}, {}
    for number, path in enumerate(paths):
        ends.add(tuple(path))
        for depth in range(len(path)):
            following.setdefault(tuple(path[:depth]), set()).add(path[depth])
            readers.setdefault(tuple(path[: depth + 1]), []).append(number)
    seen = {}
    for number, path in enumerate(paths):
        assert [block for edge in trace.path(number) for block in ids(trace, edge)] == path
        assert trace.path_blocks[number] == len(path)
        at = 0
        for edge in trace.path(number):
            assert trace.first_block[edge] == at
            at += trace.blocks[edge]
            prefix = tuple(path[:at])
            # The edge ends where some request ends or two part, and nowhere before.
            assert prefix in ends or len(following[prefix]) > 1
            for inside in range(trace.first_block[edge] + 1, at):
                assert tuple(path[:inside]) not in ends
                assert len(following[tuple(path[:inside])]) == 1
            assert seen.setdefault(edge, prefix) == prefix
    assert len(seen) == trace.edges == len(set(seen.values()))
    assert trace.unique_blocks == len(readers)
    assert trace.new_blocks.tolist() == [sum(first[0] == number for first in readers.values()) for number in range(len(paths))]


@settings(max_examples=200, derandomize=True, database=None)
@given(PATHS)
def test_edges_and_blocks_are_numbered_as_they_are_first_read(paths):
    trace = build(paths)
    assert all(trace.parent < np.arange(trace.edges))
    edges = [edge for number in range(len(paths)) for edge in trace.path(number).tolist()]
    assert list(dict.fromkeys(edges)) == list(range(trace.edges))
    blocks = [block for number in range(len(paths)) for block in path_blocks.block_numbers(trace, number)]
    assert list(dict.fromkeys(blocks)) == list(range(trace.unique_blocks))


@settings(max_examples=100, derandomize=True, database=None)
@given(PATHS, st.randoms(use_true_random=False))
def test_how_runs_are_cut_does_not_matter(paths, random):
    def cut(run):
        first, length = run
        at = random.randint(1, length)
        return [(first, at), (first + at, length - at)] if at < length else [run]

    whole, pieces = build(paths), Builder("a trace", BLOCK_TOKENS)
    for number, path in enumerate(paths):
        pieces.add("line", number, max(BLOCK_TOKENS * len(path), 1), 1, [part for run in runs_of(path) for part in cut(run)])
    other = pieces.trace()
    assert other.parent.tolist() == whole.parent.tolist()
    assert other.blocks.tolist() == whole.blocks.tolist()
    assert other.last_edge.tolist() == whole.last_edge.tolist()
    assert [ids(other, edge) for edge in range(other.edges)] == [ids(whole, edge) for edge in range(whole.edges)]


def test_two_requests_that_part_inside_a_run():
    trace = build([[0, 1, 2, 3], [0, 1, 7], [0, 1]])
    assert trace.parent.tolist() == [-1, 0, 0]
    assert trace.blocks.tolist() == [2, 2, 1]
    assert [trace.path(request).tolist() for request in range(3)] == [[0, 1], [0, 2], [0]]
    assert [trace.label(edge) for edge in range(3)] == [[(0, 2)], [(2, 2)], [(7, 1)]]


def test_real_tokens_of_the_last_block():
    builder = Builder("a trace", BLOCK_TOKENS)
    builder.add("line 1", 0, 10, 1, [(0, 3)])
    builder.add("line 2", 0, 10, 1, [(0, 2)])
    trace = builder.trace()
    # With an identity the two tokens of the third block count, without it they do not.
    assert trace.path_tokens.tolist() == [10, 8]
    assert [int(trace.tokens_of(0, first, first + 1)) for first in range(3)] == [4, 4, 2]


def test_lengths_alone():
    builder = Builder("a trace", 0)
    builder.add("line 1", 5, 7, 1)
    trace = builder.trace()
    assert (trace.requests, trace.edges, trace.block_accesses, trace.unique_blocks) == (1, 0, 0, 0)
    assert trace.path(0).tolist() == []
    assert trace.path_tokens.tolist() == [0]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ((-1, 4, 1), r"line 2, time: found -1e-06 s, expected 0 or more"),
        ((1, 4, 1), r"line 2, time: found 1e-06 s, expected requests in order of time, the last was at 5e-06 s"),
        ((2**63, 4, 1), r"line 2, time: found .* expected 0 or more, less than 2\^63"),
        ((5, 0, 1), r"line 2, input length: found 0, expected at least 1 token"),
        ((5, 2**63, 1), r"line 2, input length: found 9223372036854775808"),
        ((5, 4, -1), r"line 2, output length: found -1, expected 0 or more"),
        ((5, 8, 1, [(0, 3)]), r"line 2, blocks: found 3 blocks for 8 tokens, expected at most 2 blocks of 4 tokens"),
        ((5, 8, 1, [(0, 0)]), r"line 2, blocks: found 0 identities from 0"),
        ((5, 8, 1, [(-1, 1)]), r"line 2, blocks: found 1 identities from -1"),
        ((5, 8, 1, [(2**63 - 1, 1)]), r"line 2, blocks: found 1 identities from 9223372036854775807"),
    ],
)
def test_what_a_request_cannot_be(request_, message):
    builder = Builder("a trace", BLOCK_TOKENS)
    builder.add("line 1", 5, 4, 0, [(0, 1)])
    with pytest.raises(InputError, match="^a trace: " + message):
        builder.add("line 2", *request_)


def test_a_trace_without_requests_is_refused():
    with pytest.raises(InputError, match=r"^a trace: file: found no request, expected at least one$"):
        Builder("a trace", 4).trace()


def test_times_start_anew_in_each_session_where_they_are_its_own():
    builder = Builder("a trace", 4, by_session=True)
    builder.add("line 1", 5, 4, 0, session=0)
    builder.add("line 2", 0, 4, 0, session=1)
    with pytest.raises(InputError, match="in order of time"):
        builder.add("line 2", -0, 4, 0, session=1) or builder.add("line 2", 3, 4, 0, session=1) or builder.add("l", 2, 4, 0, session=1)
    assert builder.trace().time_us.tolist() == [5, 0, 0, 3]


def test_selection_keeps_the_tree():
    trace = build([[0, 1], [0, 2], [3]])
    some = trace.select(np.array([2, 0]), np.array([0, 9]))
    assert [some.path(request).tolist() for request in range(2)] == [trace.path(2).tolist(), trace.path(0).tolist()]
    assert some.edges == trace.edges
    assert some.unique_blocks == 3
    assert some.new_blocks.tolist() == [1, 2]
    with pytest.raises(ValueError, match="in order"):
        trace.select(np.array([0, 1]), np.array([9, 0]))


def test_runs():
    assert runs_of([4, 5, 6, 9, 8]) == [(4, 3), (9, 1), (8, 1)]
    assert runs_of([]) == []
