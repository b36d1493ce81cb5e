"""The synthetic workloads, drawn as SPEC §3 says and by nothing of the package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

BLOCK_TOKENS = 16
PREFIX_BLOCKS = 2048 // BLOCK_TOKENS
SESSIONS, TURNS, WARM = 200, 2500, 1250


@dataclass(frozen=True)
class Workload:
    """Who reads what: session of each turn, tokens it generates, and blocks of each session before the first turn."""

    session: np.ndarray
    decode_tokens: np.ndarray
    context: np.ndarray

    @cached_property
    def growth(self) -> np.ndarray:
        """Blocks that each turn appends, shape (turns,)."""
        return self.decode_tokens // BLOCK_TOKENS

    @cached_property
    def before(self) -> np.ndarray:
        """Blocks of the turn's session, without the prefix, as the turn begins; shape (turns,)."""
        grown_earlier = np.zeros(len(self.session), dtype=np.int64)
        for session in np.unique(self.session):
            at = np.flatnonzero(self.session == session)
            grown_earlier[at[1:]] = np.cumsum(self.growth[at])[:-1]
        return self.context[self.session] + grown_earlier

    @cached_property
    def starts(self) -> np.ndarray:
        """First block of each session in the dense numbering, and one past the last of all; shape (sessions + 1,)."""
        final = self.context.copy()
        np.add.at(final, self.session, self.growth)
        return PREFIX_BLOCKS + np.concatenate([[0], np.cumsum(final)])


@cache
def draw(kind: str, seed: int, growing: bool = True, sessions: int = SESSIONS, turns: int = TURNS) -> Workload:
    """A workload; contexts that do not grow stop before the last draw, as Revision 1 did."""
    rng = np.random.default_rng(seed)
    context = rng.integers(1024, 12288, size=sessions) // BLOCK_TOKENS
    if kind == "zipf":
        ranks = rng.permutation(sessions)
        shares = 1.0 / np.arange(1, sessions + 1) ** 1.1
        session = ranks[rng.choice(sessions, size=turns, p=shares / shares.sum())]
    elif kind == "scan":
        session = np.array([rng.integers(5, 200) if turn % 2 else rng.integers(0, 5) for turn in range(turns)])
    else:
        session = np.arange(turns) % 40
    decode_tokens = rng.integers(32, 512, size=turns) if growing else np.zeros(turns, dtype=np.int64)
    return Workload(session.astype(np.int64), decode_tokens.astype(np.int64), context.astype(np.int64))


def renumbered(workload: Workload, number: np.ndarray) -> Workload:
    """The same turns with session s called ``number[s]``."""
    context = np.empty_like(workload.context)
    context[number] = workload.context
    return Workload(number[workload.session], workload.decode_tokens, context)


def capacity(gib: int) -> int:
    """Blocks of 5 MiB that fit."""
    return gib * 1024 // 5
