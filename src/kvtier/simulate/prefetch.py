"""Which blocks to prefetch for the next turn: an oracle, and the rules of the published appendix (section 14), on our workloads.

The setting. Turn t has been served under lossless residency; below HBM is a tier that has every block that was ever made and never drops
one. Prefetching for turn t + 1 happens now. A *candidate* is a block of the tier that is not in HBM, of a session that had a turn. A rule
puts the candidates in an order; the first `most_blocks` of them are kept, a buffer's worth, and the replay takes as many of these as fit
in the window (:class:`kvtier.simulate.queueing.Prefetch`). A prefetched block is *used* if turn t + 1 reads it; then the buffer is emptied.

The rules. m is the length of the session's context in tokens, prefix included; a position is a token's place in it.

- ``next``: the blocks of turn t + 1's session, ascending. An oracle of one turn.
- ``anchor``: blocks that overlap positions 0 to 99, ascending, sessions by their last turn, the latest first. Where sessions share a
  prefix of 100 tokens or more, that is the prefix, which never leaves HBM: the rule then moves nothing.
- ``own_anchor``: the same, positions counted from the end of the shared prefix.
- ``recent``: blocks that overlap positions m − 200 to m − 1, ascending, sessions likewise.
- ``ema``: all candidates, ascending, sessions by the moving average of their turns: s ← (1 − α)·s + α·(the turn was the session's). Equal
  averages: the latest first.
- ``distance``: all candidates by 1 / (1 + d/100), the largest first, d being the distance from the next token, at position m, to the
  block's nearest: 1 for the last block. Equal distances: the session with the latest turn first.
- ``blend``: the same by 0.6 · 1/(1 + d/100) + 0.4 · s. The appendix names its first factor "rope" and does not define it in the part that
  we have; the distance priority stands for it here, which is a reading and no finding.

What a synthetic workload cannot express. The rules were written for positions *inside* the sequence that decodes, scored by their
attention. We have no attention scores: a turn reads all blocks of its context alike, so every block of a session has the session's
score, and nothing distinguishes a head, a retrieval token or a high-EMA position. And under lossless residency the context of the
sequence that decodes is in HBM whole, so inside it there is nothing left to prefetch. What is measured is hence whether these orders
find the *session* that comes next. Whether they would find the right positions, with part of a context in HBM, is a question for traces
with attention, and a lossy one (SPEC §8).
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from kvtier.simulate import lossless
from kvtier.simulate.policies import Policy
from kvtier.workload.turns import BLOCK_TOKENS, Turns

RULES = ("next", "anchor", "own_anchor", "recent", "ema", "distance", "blend")

ANCHOR_TOKENS = 100
"""Length of the anchor zone [tokens] (appendix, diagram 14.1, which draws 0 to 100 and says the first 100)."""

RECENT_TOKENS = 200
"""Length of the recent zone [tokens] (appendix, diagram 14.1)."""

SCALE_TOKENS = 100
"""Scale of the distance priority [tokens] (SPEC §2)."""

BLEND = (0.6, 0.4)
"""Weights of distance and moving average (SPEC §2)."""


def _blocks_over(tokens: int) -> int:
    return -(-tokens // BLOCK_TOKENS)


class _State:
    """HBM and tier after each turn: of a session, blocks ``resident`` to ``context - 1`` are in the tier alone."""

    def __init__(self, turns: Turns, alpha: float) -> None:
        self.prefix_blocks = turns.prefix_blocks
        self.context = turns.context_blocks.astype(np.int64).copy()
        self.resident = np.zeros_like(self.context)
        self.last_turn = np.full(len(self.context), -1, dtype=np.int64)
        self.average = np.zeros(len(self.context))
        self.alpha = alpha

    def serve(self, turn: int, session: int, growth: int, room: int) -> None:
        self.context[session] += growth
        self.resident[session] = min(int(self.context[session]), room)
        self.last_turn[session] = turn
        self.average *= 1 - self.alpha
        self.average[session] += self.alpha

    def candidates(self) -> np.ndarray:
        """Sessions with a candidate, the latest turn first."""
        sessions = np.flatnonzero((self.last_turn >= 0) & (self.resident < self.context))
        return sessions[np.argsort(-self.last_turn[sessions], kind="stable")]

    def runs(self, rule: str, wanted: int, most: int) -> list[tuple[int, int]]:
        """(session, blocks) in the order of a rule that takes one run a session, until there are enough."""
        if rule == "next":
            sessions = np.array([wanted]) if self.last_turn[wanted] >= 0 else np.array([], dtype=np.int64)
        else:
            sessions = self.candidates()
        if rule == "ema":
            sessions = sessions[np.argsort(-self.average[sessions], kind="stable")]
        found: list[tuple[int, int]] = []
        for session in sessions.tolist():
            low, high = int(self.resident[session]), int(self.context[session])
            if rule in ("anchor", "own_anchor"):
                high = min(high, max(_blocks_over(ANCHOR_TOKENS) - (self.prefix_blocks if rule == "anchor" else 0), 0))
            elif rule == "recent":
                low = max(low, high - _blocks_over(RECENT_TOKENS))
            blocks = min(max(high - low, 0), most)
            if blocks:
                found.append((session, blocks))
            most -= blocks
            if not most:
                break
        return found

    def by_distance(self, rule: str, most: int) -> np.ndarray:
        """Session of each of the first blocks in the order of a rule that ranks blocks."""
        sessions = self.candidates()
        missing = np.minimum(self.context[sessions] - self.resident[sessions], most)
        near, often = BLEND if rule == "blend" else (1.0, 0.0)
        offset = often * self.average[sessions]
        missing = np.minimum(missing, _deepest(missing, most, near, offset))
        owner = np.repeat(np.arange(len(sessions)), missing)
        # Blocks from the end of the context: 0, 1, 2, ... in each session.
        depth = np.arange(len(owner)) - np.repeat(np.cumsum(missing) - missing, missing)
        priority = near * (1 / (1 + (depth * BLOCK_TOKENS + 1) / SCALE_TOKENS)) + offset[owner]
        return sessions[owner[np.lexsort((owner, -priority))[:most]]]


def _deepest(missing: np.ndarray, most: int, near: float, offset: np.ndarray) -> np.ndarray:
    """How many blocks of each session can be among the first: so that not all need be sorted. An upper bound, shape (sessions,)."""
    depth = bisect_left(range(most + 1), min(most, int(missing.sum())), key=lambda one: int(np.minimum(missing, one).sum()))
    if not depth:
        return np.zeros(len(missing), dtype=np.int64)
    # As many as are wanted have at least this priority: those above `depth`. A block with less is not needed.
    least = near / (1 + ((depth - 1) * BLOCK_TOKENS + 1) / SCALE_TOKENS) + float(offset.min())
    gap = np.maximum(least - offset, 1e-9)
    # Two more blocks than the real number, against rounding.
    return np.minimum(((near / gap - 1) * SCALE_TOKENS - 1) / BLOCK_TOKENS + 3, most).astype(np.int64)


def candidates(turns: Turns, policy: Policy, hbm_blocks: int, rule: str, most_blocks: int, *, alpha: float = 0.15) -> list[np.ndarray]:
    """What a rule would prefetch for each turn, after the turn before it.

    Parameters
    ----------
    turns : Turns
    policy : Policy
        Of HBM, under lossless residency (:mod:`kvtier.simulate.lossless`).
    hbm_blocks : int
        Capacity of HBM, the buffer not included.
    rule : str
        One of ``RULES``.
    most_blocks : int
        Capacity of the buffer.
    alpha : float
        Weight of the newest turn in the moving average; ``ema`` and ``blend`` only.

    Returns
    -------
    list of ndarray of bool, one a turn
        In the rule's order, whether each block is read by the turn, and so used. Nothing for the first turn.

    Raises
    ------
    ValueError
        If the rule is unknown, a size is negative, α is outside (0, 1), or HBM does not hold the prefix.
    """
    if rule not in RULES:
        raise ValueError(f"rule {rule!r}: expected one of {', '.join(RULES)}")
    if most_blocks < 0 or hbm_blocks < turns.prefix_blocks or not 0 < alpha < 1:
        raise ValueError(f"most_blocks {most_blocks}, hbm_blocks {hbm_blocks}, alpha {alpha}: expected sizes that hold the prefix")
    leaving: list[tuple[int, int, int, int]] = []
    lossless.simulate(turns, policy, hbm_blocks, lambda *interval: leaving.append(interval))
    state, at, found = _State(turns, alpha), 0, []
    for turn, (session, growth) in enumerate(zip(turns.session.tolist(), turns.growth_blocks.tolist(), strict=True)):
        if rule in ("distance", "blend"):
            owner = state.by_distance(rule, most_blocks)
        else:
            owner = np.array([other for other, blocks in state.runs(rule, session, most_blocks) for _ in range(blocks)], dtype=np.int64)
        found.append(owner == session)
        while at < len(leaving) and leaving[at][0] == turn:
            _, other, first, _ = leaving[at]
            state.resident[other] = first
            at += 1
        state.serve(turn, session, growth, hbm_blocks - turns.prefix_blocks)
    return found
