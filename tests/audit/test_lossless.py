"""Evictions from the read set: both simulators against sets, the audit against planted counts, D1 against the records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.audit import lossless
from kvtier.audit.findings import AuditFailed, require
from kvtier.simulate import engine, revision2, sweeps
from kvtier.simulate.policies import LFU, LRU, PUBLISHED, Policy, ema
from kvtier.simulate.sweeps import Run
from kvtier.workload import synthetic
from kvtier.workload.turns import Turns


def counted_by_sets(turns, policy, hbm_blocks, cxl_blocks):
    """Victims of each turn that belong to what it reads or generates, from the trail of victims and sets of blocks."""
    victims = [[] for _ in turns.session]
    revision2.simulate(turns, policy, hbm_blocks, cxl_blocks, lambda turn, victim: victims[turn].append(victim))
    blocks, counts = turns.context_blocks.tolist(), []
    for session, growth, gone in zip(turns.session.tolist(), turns.growth_blocks.tolist(), victims, strict=True):
        blocks[session] += growth
        first = int(turns.first_block[session])
        working_set = {*range(turns.prefix_blocks), *range(first, first + blocks[session])}
        counts.append(sum(victim in working_set for victim in gone))
    return counts


def test_a_session_larger_than_hbm_evicts_itself():
    """Prefix of one, contexts of two, HBM of three. Turn 0 fills it and its generated block pushes out the prefix; turn 1 reads it back."""
    turns = Turns(1, np.array([2, 2]), np.array([0, 1, 1]), np.array([16, 0, 0]))
    for simulate in (revision2.simulate, engine.simulate):
        counts = simulate(turns, LRU, 3, 9)
        assert counts.evictions.tolist() == [1, 3, 0]
        assert counts.evictions_from_read_set.tolist() == [1, 0, 0]
    assert engine.victims(turns, LRU, 3, 9).tolist() == [[0, 0], [1, 1], [1, 2], [1, 3]]


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_simulators_count_as_sets_do(data):
    contexts = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    session = data.draw(st.lists(st.integers(0, len(contexts) - 1), min_size=1, max_size=20))
    decode = [data.draw(st.integers(0, 40)) for _ in session]
    turns = Turns(data.draw(st.integers(0, 3)), np.array(contexts), np.array(session), np.array(decode))
    policy = data.draw(st.sampled_from((*PUBLISHED, Policy("lfu", persistent=True))))
    hbm_blocks, cxl_blocks = data.draw(st.integers(0, 12)), data.draw(st.integers(0, 12))
    expected = counted_by_sets(turns, policy, hbm_blocks, cxl_blocks)
    for simulate in (revision2.simulate, engine.simulate):
        assert simulate(turns, policy, hbm_blocks, cxl_blocks).evictions_from_read_set.tolist() == expected


def test_one_eviction_from_the_read_set_is_caught(runs, spoil):
    clean = runs.with_columns(evictions_from_read_set=0 * runs["evictions"])
    require(lossless.audit(clean, must_hold=True))
    found = lossless.audit(spoil(clean, 2, evictions_from_read_set=1), must_hold=True)
    with pytest.raises(AuditFailed, match=f"audit lossless: .*, LRU, 4 \\+ 16 GiB: 1 of {runs['evictions'][2]} failed"):
        require(found)
    require(lossless.audit(spoil(clean, 2, evictions_from_read_set=1), must_hold=False))


def test_runs_without_evictions_are_left_out(runs, spoil):
    """Revision 1 does not report them, and a run that evicts nothing has nothing to judge."""
    assert len(lossless.audit(runs, must_hold=False)) == runs.height
    assert len(lossless.audit(spoil(runs, 0, evictions=0, evictions_from_read_set=0), must_hold=False)) == runs.height - 1
    revision1 = sweeps.replay([Run("x", LRU, hbm_gib=1, warm=False)], 1, synthetic.Shape(sessions=40, turns=9), 0)
    assert lossless.audit(revision1, must_hold=False) == []


def test_catches_revision2_reading_what_it_evicts():
    """D1: at 32 GiB most victims of LFU and EMA 0.01 belong to the sequence that is read."""
    table = sweeps.replay([Run("e1", policy) for policy in (LFU, ema(0.01))], 2, synthetic.PUBLISHED, counted_from=1250)
    found = lossless.audit(table, must_hold=True)
    assert all(finding.failed > 0.9 * finding.checked for finding in found)
    with pytest.raises(AuditFailed, match="3851514 of 3861618 failed"):
        require(found)
