"""Derived quantities of a workload against sets of (session, position) counted one by one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.workload.turns import BLOCK_TOKENS, Turns, next_occurrence


@st.composite
def workloads(draw):
    contexts = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    session = draw(st.lists(st.integers(0, len(contexts) - 1), min_size=1, max_size=20))
    decode = draw(st.lists(st.integers(0, 50), min_size=len(session), max_size=len(session)))
    return Turns(draw(st.integers(0, 4)), *(np.array(values, dtype=np.int64) for values in (contexts, session, decode)))


def replayed(turns):
    """Sets of blocks that each turn reads and generates; a block is ("prefix", i) or (session, i)."""
    context = [int(blocks) for blocks in turns.context_blocks]
    for session, tokens in zip(turns.session.tolist(), turns.decode_tokens.tolist(), strict=True):
        read = {("prefix", i) for i in range(turns.prefix_blocks)} | {(session, i) for i in range(context[session])}
        grown = {(session, context[session] + i) for i in range(tokens // BLOCK_TOKENS)}
        context[session] += len(grown)
        yield read, grown


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(workloads())
def test_counts_equal_those_of_sets(turns):
    known, read_blocks, compulsory = set(), [], []
    contexts = {("context", s, i) for s, blocks in enumerate(turns.context_blocks.tolist()) for i in range(blocks)}
    for read, grown in replayed(turns):
        read_blocks.append(len(read))
        compulsory.append(len(read - known))
        known |= read | grown
        contexts |= {("context", *block) for block in grown}
    assert turns.read_blocks.tolist() == read_blocks
    assert turns.compulsory_blocks.tolist() == compulsory
    assert turns.final_blocks.tolist() == [sum(owner == s for _, owner, _ in contexts) for s in range(len(turns.context_blocks))]


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(workloads())
def test_identities_keep_the_order_of_prefix_session_and_position(turns):
    """Dense: prefix first, then each session's blocks with room for what it will generate."""
    blocks = {block for read, grown in replayed(turns) for block in read | grown}
    blocks |= {(s, i) for s, size in enumerate(turns.context_blocks.tolist()) for i in range(size)}
    blocks |= {("prefix", i) for i in range(turns.prefix_blocks)}
    ordered = sorted(blocks, key=lambda block: (-1 if block[0] == "prefix" else block[0], block[1]))
    identities = [position if owner == "prefix" else int(turns.first_block[owner]) + position for owner, position in ordered]
    assert identities == list(range(len(blocks)))
    assert turns.first_block[-1] == len(blocks)


def test_generated_blocks_are_whole_and_belong_to_their_session():
    turns = Turns(2, np.array([3, 1]), np.array([1, 0, 1]), np.array([15, 47, 64]))
    assert turns.growth_blocks.tolist() == [0, 2, 4]
    assert turns.final_blocks.tolist() == [5, 5]
    assert turns.first_block.tolist() == [2, 7, 12]
    assert turns.read_blocks.tolist() == [3, 5, 3]
    assert turns.compulsory_blocks.tolist() == [3, 3, 0]


def test_next_occurrence():
    assert next_occurrence(np.array([7, 3, 7, 7, 9, 3])).tolist() == [2, 5, 3, 6, 6, 6]
    assert next_occurrence(np.array([], dtype=np.int64)).tolist() == []


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(workloads())
def test_first_and_next_turns_equal_those_looked_up(turns):
    session = turns.session.tolist()
    end = [len(session)]
    assert turns.first_turn.tolist() == [([i for i, s in enumerate(session) if s == n] + end)[0] for n in range(len(turns.context_blocks))]
    assert turns.next_turn.tolist() == [
        ([i for i in range(turn + 1, len(session)) if session[i] == s] + end)[0] for turn, s in enumerate(session)
    ]


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(workloads(), st.integers(0, 6))
def test_capped_contexts_and_requests_equal_those_of_lists(turns, cap):
    capped = turns.capped(cap)
    expected, sizes = [], [int(blocks) for blocks in turns.context_blocks]
    for session, growth in zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True):
        sizes[session] += min(growth, max(cap - sizes[session], 0))
        expected.append(sizes[session])
    seen, at = [], 0
    for session, blocks in zip(capped.session.tolist(), expected, strict=True):
        first = int(capped.first_block[session])
        asked = capped.requests[at : at + capped.prefix_blocks + blocks].tolist()
        assert asked == [*range(capped.prefix_blocks), *range(first, first + blocks)]
        at += len(asked)
        seen.append(blocks)
    assert at == len(capped.requests) == capped.read_blocks.sum() + capped.growth_blocks.sum()
    assert seen == expected
