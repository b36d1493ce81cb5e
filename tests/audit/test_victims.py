"""The brute-force judge: published counts of both revisions, and caches that evict the wrong block."""

import numpy as np
import pytest

from kvtier.audit import victims
from kvtier.audit.findings import AuditFailed, require
from kvtier.simulate import revision1, revision2
from kvtier.simulate.policies import LFU, LRU, PUBLISHED, ema
from kvtier.workload.synthetic import Shape, generate
from kvtier.workload.turns import Turns

SMALL = generate("zipf", 1, Shape(sessions=20, turns=60, prefix_tokens=64, context_tokens=(16, 400)), growing=False)


@pytest.fixture(scope="module")
def published():
    """60 sessions, 250 turns, seed 1 (SPEC §5)."""
    return generate("zipf", 1, Shape(sessions=60, turns=250), growing=False)


@pytest.mark.parametrize(
    ("revision", "policy", "wrong", "evictions"),
    [
        (1, ema(0.15), 114_114, 114_528),
        (1, ema(0.01), 73_650, 74_987),
        (1, LFU, 0, 74_987),
        (2, ema(0.15), 0, 78_860),
    ],
    ids=lambda value: getattr(value, "slug", None),
)
def test_published_counts(published, revision, policy, wrong, evictions):
    finding, relative = victims.audit(revision, policy, published, hbm_gib=8)
    assert (finding.failed, finding.checked) == (wrong, evictions)
    assert (relative.failed, relative.checked) == (wrong, evictions)
    # The retained defect does not stop the build; Revision 2's victims must be right.
    require([finding, relative])
    assert finding.must_hold == relative.must_hold == (revision == 2)


class WrongOnce(revision2.Hbm):
    """Evicts the most valuable block instead of the least, at one eviction only."""

    evictions = 0

    def _evict(self):
        self.evictions += 1
        if self.evictions != 200:
            return super()._evict()
        victim = max(self.key, key=lambda block: (self.key[block], block))
        for state in (self.key, self.count, self.score):
            state.pop(victim, None)
        return victim


@pytest.mark.parametrize("policy", PUBLISHED, ids=lambda policy: policy.slug)
def test_revision2_evicts_the_least(policy):
    wrong, relatively_wrong, evictions = victims.count_wrong_victims(revision2.Hbm(policy, 100), policy, 100, SMALL)
    assert wrong == relatively_wrong == 0
    assert evictions > 250


@pytest.mark.parametrize("policy", PUBLISHED, ids=lambda policy: policy.slug)
def test_one_wrong_victim_among_hundreds_is_caught(policy):
    wrong, relatively_wrong, evictions = victims.count_wrong_victims(WrongOnce(policy, 100), policy, 100, SMALL)
    assert wrong == relatively_wrong == 1
    assert evictions > 250


def test_another_policy_than_the_one_claimed_is_caught():
    assert victims.count_wrong_victims(revision2.Hbm(LRU, 100), LFU, 100, SMALL)[0] > 0
    assert victims.count_wrong_victims(revision2.Hbm(LFU, 100), LRU, 100, SMALL)[0] > 0


def test_the_defect_stops_a_build_that_requires_its_absence(monkeypatch):
    """Revision 1's search in Revision 2's place: the finding must hold, and does not."""
    monkeypatch.setattr(revision2, "Hbm", lambda policy, capacity: revision1.Cache(policy.name, policy.alpha, capacity))
    absolute, relative = victims.audit(2, ema(0.15), SMALL, hbm_gib=0.5)
    with pytest.raises(AuditFailed, match=r"audit victims: Revision 2, EMA a=0\.15: \d+ of \d+ failed"):
        require([absolute])
    with pytest.raises(AuditFailed, match=r"audit victims, relative: Revision 2, EMA a=0\.15: \d+ of \d+ failed"):
        require([relative])


def test_scores_below_the_published_tolerance_are_told_apart_by_the_relative_one():
    """Session 0 grows rich, then session 1; 60 turns of session 2 later, both are worth less than 1e-12, and not the same."""
    sessions = np.array([0] * 9 + [1] * 9 + [2] * 60 + [3])
    turns = Turns(0, np.ones(4, dtype=np.int64), sessions, np.zeros(len(sessions), dtype=np.int64))

    class Richest(revision2.Hbm):
        def _evict(self):
            del self.key[1]
            return 1

    policy = ema(0.5)
    assert victims.count_wrong_victims(revision2.Hbm(policy, 3), policy, 3, turns) == (0, 0, 1)
    assert victims.count_wrong_victims(Richest(policy, 3), policy, 3, turns) == (0, 1, 1)


def test_scores_by_hand():
    """At alpha 1/2, touched at turns 0 and 2: 1/2 + 1/2 · 1/2 · 1/4 = 9/16; at turn 3 worth 9/32. Block 8, touched at 3: 1/2."""
    scores = victims.Scores(ema(0.5), 2)
    scores.touch(7, 0)
    scores.touch(7, 2)
    scores.touch(8, 3)
    assert scores.of_victim(7, 3) == (9 / 32, 9 / 32)
    assert scores.of_victim(8, 3) == (1 / 2, 9 / 32)
    scores.remove(7)
    assert scores.of_victim(8, 3) == (1 / 2, 1 / 2)
    scores.touch(7, 3)
    assert scores.of_victim(7, 3) == scores.of_victim(8, 3) == (1 / 2, 1 / 2)
