"""Policies asked request by request: traces worked out by hand, MIN against a search, and golden integers."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate import requests, revision2
from kvtier.simulate.policies import FIFO, LFU, LRU, MIN, S3FIFO, SIEVE, Policy, ema

PROPERTY = settings(max_examples=150, derandomize=True, deadline=None, database=None)

ONLINE = (LRU, FIFO, LFU, Policy("lfu", persistent=True), ema(0.3), ema(0.3, persistent=True), SIEVE, S3FIFO)

ABC = "abcdefghijkl"


@pytest.fixture
def ask(make_turns):
    """Hits (``+``) and victims (letters, ``.`` for none) of a trace of single-block requests."""

    def run(policy, capacity, trace):
        sessions = [ABC.index(letter) for letter in trace]
        victims = ["."] * len(trace)

        def note(turn, victim):
            victims[turn] = ABC[victim]

        hits = requests.replay(make_turns(sessions, [1] * len(ABC)), policy, capacity, note)
        return "".join("+" if hit else victim for hit, victim in zip(hits.tolist(), victims, strict=True))

    return run


def test_lru(ask):
    assert ask(LRU, 2, "abacba") == "..+bac"


def test_fifo(ask):
    """The hit on a does not save it."""
    assert ask(FIFO, 2, "abacba") == "..+a+b"


def test_lfu_ties_go_to_the_oldest_touch(ask):
    """Of b and a, both touched once, b, the older, goes for c although a has the lower number; then a, older than c, goes for d."""
    assert ask(LFU, 2, "bacd") == "..ba"
    assert ask(LFU, 2, "abaacbc") == "..++bcb"


def test_lfu_forgets_unless_persistent(ask):
    """With counts forgotten b and c push each other out for good; kept, the second visit of both reaches a's count, and a goes."""
    assert ask(LFU, 2, "aabcbcbd") == ".+.bcbcb"
    assert ask(Policy("lfu", persistent=True), 2, "aabcbcbd") == ".+.bca+c"


def test_a_new_block_is_never_its_own_victim(ask):
    """Revision 2 would send b away as it comes; here a goes, whatever its count."""
    assert ask(LFU, 1, "aaaab") == ".+++a"


def test_ema_score_decays(ask):
    """At alpha 0.9 two touches long ago count less than one of late, at alpha 0.01 more."""
    assert ask(ema(0.9), 2, "aabc") == ".+.a"
    assert ask(ema(0.01), 2, "aabc") == ".+.b"


def test_ema_scores_are_those_of_revision2(make_turns):
    """The same expressions in the same order: bit for bit."""
    turns = make_turns([0, 1, 0, 0, 1, 2, 1, 0], [2, 1, 3], prefix=1)
    asked, whole = requests.cache(ema(0.15), 99, turns.requests), revision2.Hbm(ema(0.15), 99)
    for turn, session in enumerate(turns.session.tolist()):
        for block in (0, *range(turns.first_block[session], turns.first_block[session + 1])):
            asked.request(block, turn)
            whole.touch(block, turn)
    assert asked.state == whole.score


def test_sieve(ask):
    """The hit saves a from the first sweep, which stops at b; the hand then meets c and d before the newer b and the older a."""
    assert ask(SIEVE, 3, "abcadbea") == "...+bcd+"


def test_sieve_wraps_around(ask):
    """All bits are set: the hand clears them, starts again at the oldest, and goes on from there."""
    assert ask(SIEVE, 3, "abcabcdea") == "...+++abc"


def test_s3fifo(ask):
    """Capacity 10, one block in small, nine in main: a stays in small, b to j fill main.

    For k, small gives a, whose name is kept. For a, known by name, k leaves small and main holds ten, one too many: for l, main gives
    its oldest without a touch, c, since b was touched. The name of c was not kept: it joins small, which gives l.
    """
    assert ask(S3FIFO, 10, "abcdefghijbkalc") == "..........+akcl"


def test_s3fifo_moves_what_was_touched_twice(ask):
    """Touched twice, a leaves small for main with its count cleared, and main gives its oldest; touched once, it goes."""
    assert ask(S3FIFO, 10, "abcdefghijaakl") == "..........++bk"
    assert ask(S3FIFO, 10, "abcdefghijak") == "..........+a"


def test_min(ask):
    """For c, a is asked again before b: b goes. For the second b, a is never asked again and c is."""
    assert ask(MIN, 2, "abcabc") == "..b+a+"


def test_min_breaks_ties_among_the_useless_alone(ask):
    """Nothing is asked again: the lowest goes, be it older or newer."""
    assert ask(MIN, 2, "cabd") == "..ab"


def test_no_capacity_serves_nothing(ask):
    for policy in (*ONLINE, MIN):
        assert ask(policy, 0, "aabba") == "....."


def test_appended_blocks_are_requests_that_miss(make_turns):
    """47 tokens are two blocks: turn 0 asks 0, 1, 2 of a cache of two, and leaves 1, 2; turn 1 finds none in time."""
    turns = make_turns([0, 0], [1], decode=[47, 0])
    victims = []
    assert requests.replay(turns, LRU, 2, lambda turn, victim: victims.append((turn, victim))).tolist() == [0, 0]
    assert victims == [(0, 0), (1, 1), (1, 2), (1, 0)]
    assert requests.replay(turns, LRU, 3).tolist() == [0, 3]


def test_hits_are_counted_in_their_turn(make_turns):
    """The prefix is shared: the first turn of session 1 hits it and nothing else."""
    assert requests.replay(make_turns([0, 1, 0], [2, 3], prefix=4), LRU, 9).tolist() == [0, 4, 6]


@pytest.mark.parametrize("wrong", [{0: 3}, {0: 5}, {2: 5}, {1: 2}], ids=["too late", "never", "never at the last", "of another block"])
def test_a_next_request_that_contradicts_the_trace_is_caught(ask, monkeypatch, wrong):
    right = requests.next_occurrence

    def planted(asked):
        following = right(asked)
        for request, claimed in wrong.items():
            following[request] = claimed
        return following

    assert ask(MIN, 2, "abaab") == "..+++"
    monkeypatch.setattr(requests, "next_occurrence", planted)
    with pytest.raises(requests.ContradictsTrace, match=r"request \d is for block \d; foreseen was"):
        ask(MIN, 2, "abaab")


def most_hits(asked, capacity):
    """Best of all sequences of victims, where every miss must be admitted."""

    @cache
    def best(i, resident):
        if i == len(asked):
            return 0
        if asked[i] in resident:
            return 1 + best(i + 1, resident)
        kept = [resident - {victim} for victim in resident] if len(resident) == capacity else [resident]
        return max(best(i + 1, rest | {asked[i]}) for rest in kept)

    return best(0, frozenset())


@PROPERTY
@given(st.data())
def test_min_is_optimal_among_policies_that_always_admit(workloads, data):
    turns = data.draw(workloads(most_turns=8, most_sessions=3))
    asked = tuple(turns.requests.tolist()[:24])
    capacity = data.draw(st.integers(1, 5))
    resident = requests.cache(MIN, capacity, np.array(asked, dtype=np.int64))
    assert sum(resident.request(block, 0)[0] for block in asked) == most_hits(asked, capacity)


@PROPERTY
@given(st.data())
def test_min_serves_at_least_as_many_as_any_other(workloads, data):
    turns = data.draw(workloads())
    capacity = data.draw(st.integers(0, int(turns.first_block[-1]) + 1))
    most = requests.replay(turns, MIN, capacity).sum()
    for policy in ONLINE:
        hits = requests.replay(turns, policy, capacity)
        assert (hits <= turns.read_blocks).all()
        assert hits.sum() <= most, policy


@PROPERTY
@given(st.data())
def test_a_cache_for_everything_misses_first_requests_alone(workloads, data):
    turns = data.draw(workloads())
    for policy in (*ONLINE, MIN):
        hits = requests.replay(turns, policy, int(turns.first_block[-1]) or 1)
        assert hits.tolist() == (turns.read_blocks - turns.compulsory_blocks).tolist()


def test_negative_capacities_are_refused(ask):
    for policy in (*ONLINE, MIN):
        with pytest.raises(ValueError, match="hbm_blocks -1: expected 0 or more"):
            ask(policy, -1, "ab")


@pytest.mark.parametrize("policy", [FIFO, SIEVE, S3FIFO, MIN])
def test_revision2_knows_none_of_the_new_policies(policy):
    with pytest.raises(ValueError, match=f"policy '{policy.name}': Revision 2 knows lru, lfu, ema"):
        revision2.Hbm(policy, 9)


@pytest.mark.parametrize("policy", [LRU, FIFO, LFU, SIEVE, S3FIFO, MIN])
def test_golden_hits(golden_requests, policy):
    assert requests.replay(golden_requests.turns, policy, golden_requests.hbm_blocks).sum() == golden_requests.hits[policy]
