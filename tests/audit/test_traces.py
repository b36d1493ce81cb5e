"""Audits of traces: each with its failure planted, and what they say of the public ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.audit import findings, traces
from kvtier.simulate import paths
from kvtier.simulate.eviction import NAMES, Lru
from kvtier.workload.paths import Builder, runs_of

BLOCK_TOKENS = 4


def trace_of(requests, sessions=None, times=None, **options):
    builder = Builder("a trace", BLOCK_TOKENS, **options)
    for number, path in enumerate(requests):
        time = number if times is None else times[number]
        session = -1 if sessions is None else sessions[number]
        builder.add("line", time, max(BLOCK_TOKENS * len(path) - 1, 1), 1, runs_of(path), session)
    return builder.trace()


@settings(max_examples=300, derandomize=True, database=None)
@given(st.lists(st.lists(st.integers(0, 7), max_size=6), min_size=1, max_size=8))
def test_parents_equal_a_table_of_what_each_block_follows(requests):
    followed = {}
    for path in requests:
        for before, block in zip([-1, *path], path, strict=False):
            followed.setdefault(block, set()).add(before)
    found = traces.parents(trace_of(requests))
    assert found.checked == len(followed)
    assert found.failed == sum(len(before) > 1 for before in followed.values())


def test_a_block_under_two_parents_stops_the_build():
    found = traces.parents(trace_of([[1, 2, 3], [5, 3]]))
    assert found.note == "block 3 follows 2, 5 (-1: nothing)"
    with pytest.raises(findings.AuditFailed, match=r"audit one parent: a trace: 1 of 4 failed: block 3 follows 2, 5"):
        findings.require([found])
    findings.require([traces.parents(trace_of([[1, 2, 3], [1, 2, 4], [1]]))])


def test_a_session_counted_twice_stops_the_build():
    # By session, identities are local: the loader has made them different, and the second session is the first again.
    twice = trace_of([[0, 1], [0, 1, 2], [10, 11], [10, 11, 12], [20, 21]], [0, 0, 1, 1, 2], [0, 5, 0, 5, 0], by_session=True)
    found = traces.duplicate_sessions(twice)
    assert (found.checked, found.failed, found.note) == (3, 1, "session 1 is session 0 again")
    with pytest.raises(findings.AuditFailed, match="no session twice"):
        findings.require([found])
    shared = trace_of([[0, 1], [0, 1], [0, 2]], [4, 7, 9])
    assert traces.duplicate_sessions(shared).failed == 1


@pytest.mark.parametrize(
    ("requests", "times"),
    [
        ([[0, 1], [0, 1, 2], [10, 11], [10, 11, 12]], [0, 5, 0, 6]),
        ([[0, 1], [0, 1, 2], [10, 11], [10, 12, 13]], [0, 5, 0, 5]),
        ([[0, 1], [0, 1, 2], [10, 11], [10, 11]], [0, 5, 0, 5]),
    ],
)
def test_sessions_that_differ_in_times_or_blocks_are_two(requests, times):
    assert traces.duplicate_sessions(trace_of(requests, [0, 0, 1, 1], times, by_session=True)).failed == 0


def test_sessions_are_needed():
    with pytest.raises(ValueError, match="expected a session for each request"):
        traces.duplicate_sessions(trace_of([[0]]))


def test_coarse_clock_is_seen():
    found = traces.time_quantum(trace_of([[0]] * 5, times=[0, 0, 3_000_000, 3_000_000, 6_000_000]))
    assert (found.checked, found.failed, found.must_hold) == (5, 4, False)
    assert found.note == "3 different times for 5 requests, 3 s apart (median)"
    assert traces.time_quantum(trace_of([[0]] * 5)).failed == 0


def test_order_inside_a_tick_moves_what_lru_hits():
    trace = trace_of([[0, 1], [2, 3], [0, 1], [4, 5]] * 20, times=[0] * 80)
    rates = traces.orders_in_ticks(trace, 1000, 2, range(5))
    assert len({rate.numerator for rate in rates}) > 1
    assert {rate.denominator for rate in rates} == {160}


def test_ceilings_by_hand():
    # Blocks 0 1 | 0 1 2 | 0 7: found before 0, 2 and 1; the last block of each request holds 3 tokens.
    trace = trace_of([[0, 1], [0, 1, 2], [0, 7]])
    blocks, tokens = traces.ceiling(trace), traces.ceiling(trace, "tokens")
    assert (blocks.numerator, blocks.denominator) == (3, 7)
    assert (tokens.numerator, tokens.denominator) == (12, 7 + 11 + 7)
    warm = traces.ceiling(trace, "blocks", 2)
    assert (warm.numerator, warm.denominator, warm.requests) == (1, 2, 1)
    assert str(warm) == "ceiling of a trace: 50.00 % = 1 of 2 blocks in 1 requests after 2 warm-up requests"
    assert str(blocks) == "ceiling of a trace: 42.86 % = 3 of 7 blocks in 3 requests from a cold start"


def test_commonest_block_by_hand():
    block, rate = traces.commonest_block(trace_of([[0, 1], [0, 1, 2], [0, 7], [9]]))
    assert (block, rate.numerator, rate.denominator) == (0, 2, 8)
    _, rate = traces.commonest_block(trace_of([[0, 1], [0, 1, 2], [0, 7], [9]]), counted_from=2)
    assert (rate.numerator, rate.denominator) == (1, 3)


@pytest.mark.parametrize(("numerator", "denominator"), [(-1, 5), (6, 5), (0, 0)])
def test_a_rate_is_a_part_of_something(numerator, denominator):
    with pytest.raises(ValueError, match="expected a part of something"):
        traces.Rate("planted", numerator, denominator, "blocks", 0, 1)


@pytest.fixture
def replayed():
    trace = trace_of([[0, 1], [0, 1, 2], [5, 6], [0, 1, 2]])
    return trace, paths.replay(trace, Lru(4), 4)


def test_a_true_run_passes(replayed):
    trace, ran = replayed
    found = traces.run(trace, ran, "LRU", int(paths.optimum(trace, 4).hits.sum()))
    findings.require(found)
    assert [finding.audit for finding in found] == ["conservation", "ceiling", "optimum"]


def test_planted_counts_are_caught(replayed):
    trace, ran = replayed
    failed = {
        "prefix hits that are no hits": replace(ran, prefix_hits=ran.hits + 1),
        "more hits than the path has": replace(ran, hits=trace.path_blocks + 1),
        "more tokens than the path has": replace(ran, hit_tokens=trace.path_tokens + 1),
        "negative": replace(ran, prefix_hits=ran.prefix_hits - 5),
    }
    for planted in failed.values():
        assert traces.run(trace, planted, "planted")[0].failed > 0
    first = replace(ran, hits=np.array([1, *ran.hits[1:]]), hit_tokens=np.array([4, *ran.hit_tokens[1:]]))
    conservation, ceiling = traces.run(trace, first, "planted")
    assert conservation.failed == 0
    assert (ceiling.failed, ceiling.note) == (1, "request 0 has 1 hits")
    optimum = traces.run(trace, ran, "planted", int(ran.hits.sum()) - 1)[-1]
    with pytest.raises(findings.AuditFailed, match="optimum: planted"):
        findings.require([optimum])


# Public traces.


@pytest.mark.parametrize("name", ["conversation", "synthetic", "agentic"])
def test_blocks_of_public_traces_have_one_parent(public_trace, name):
    found = traces.parents(public_trace(name))
    assert (found.checked, found.failed) == (public_trace(name).unique_blocks, 0)


def test_no_session_of_the_public_set_is_there_twice(public_trace):
    found = traces.duplicate_sessions(public_trace("agentic"))
    assert (found.checked, found.failed) == (692, 0)


def test_conversation_has_ticks_of_three_seconds(public_trace):
    found = traces.time_quantum(public_trace("conversation"))
    assert found.failed == found.checked == 12_031
    assert "3 s apart" in found.note


def test_share_of_the_common_first_block(public_trace):
    block, rate = traces.commonest_block(public_trace("conversation"))
    assert (block, rate.numerator, rate.denominator) == (0, 12_030, 288_500)
    assert round(rate.percent, 2) == 4.17


@pytest.mark.parametrize(("name", "blocks", "tokens"), [("conversation", 36.64, 37.36), ("synthetic", 63.96, 65.12)])
def test_ceilings_of_public_traces(public_trace, name, blocks, tokens):
    trace = public_trace(name)
    assert round(traces.ceiling(trace).percent, 2) == blocks
    assert round(traces.ceiling(trace, "tokens").percent, 2) == tokens


def test_warm_up_moves_the_ceiling(public_trace):
    trace = public_trace("synthetic")
    last_half = traces.ceiling(trace, "tokens", -(-trace.requests // 2))
    assert last_half.requests == 1_996
    assert (round(traces.ceiling(trace, "tokens").percent, 1), round(last_half.percent, 1)) == (65.1, 86.4)


def test_runs_on_conversation_pass(public_trace):
    trace = public_trace("conversation")
    most = int(paths.optimum(trace, 2048).hits.sum())
    for slug in ("lru", "arc"):
        findings.require(traces.run(trace, paths.replay(trace, paths.build(NAMES[slug], trace, 2048), 2048), slug, most))
