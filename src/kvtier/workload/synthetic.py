"""The study's synthetic workloads (SPEC §3). The order of the draws is part of the definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvtier.workload.turns import BLOCK_TOKENS, Turns

KINDS = ("zipf", "scan", "loop")


@dataclass(frozen=True)
class Shape:
    """Sizes of a synthetic workload; the defaults are the published ones (SPEC §3).

    Parameters
    ----------
    sessions, turns : int
        How many sessions there are, and how many turns are drawn.
    prefix_tokens : int
        Shared prefix [tokens].
    context_tokens : (int, int)
        Range of initial contexts, half-open [tokens].
    decode_tokens : (int, int)
        Range of tokens generated a turn, half-open [tokens].
    zipf_exponent : float
        Exponent of the return frequency in ``zipf``.
    hot_sessions : int
        Sessions that every even turn of ``scan`` draws from.
    loop_sessions : int
        Sessions that ``loop`` visits in turn.
    """

    sessions: int = 200
    turns: int = 2500
    prefix_tokens: int = 2048
    context_tokens: tuple[int, int] = (1024, 12288)
    decode_tokens: tuple[int, int] = (32, 512)
    zipf_exponent: float = 1.1
    hot_sessions: int = 5
    loop_sessions: int = 40


PUBLISHED = Shape()


def generate(kind: str, seed: int, shape: Shape = PUBLISHED, *, growing: bool = True) -> Turns:
    """Draw a workload.

    Parameters
    ----------
    kind : {'zipf', 'scan', 'loop'}
        Zipf-distributed returns; a hot set interleaved with one-shot visits; a cyclic sweep.
    seed : int
        Seed of ``numpy.random.default_rng``.
    shape : Shape
        Sizes.
    growing : bool
        Draw generated tokens (Revision 2). Revision 1 stops before that draw and its contexts stay as they are.

    Returns
    -------
    Turns

    Raises
    ------
    ValueError
        If `kind` is unknown.
    """
    rng = np.random.default_rng(seed)
    context_tokens = rng.integers(*shape.context_tokens, size=shape.sessions)
    if kind == "zipf":
        weight = 1.0 / np.arange(1, shape.sessions + 1) ** shape.zipf_exponent
        permutation = rng.permutation(shape.sessions)
        session = permutation[rng.choice(shape.sessions, size=shape.turns, p=weight / weight.sum())]
    elif kind == "scan":
        # One scalar a turn: drawing an array would consume the generator differently.
        hot, every = (0, shape.hot_sessions), (shape.hot_sessions, shape.sessions)
        session = np.array([rng.integers(*(every if turn % 2 else hot)) for turn in range(shape.turns)])
    elif kind == "loop":
        session = np.arange(shape.turns) % shape.loop_sessions
    else:
        raise ValueError(f"workload kind {kind!r}: expected one of {', '.join(KINDS)}")
    decode_tokens = rng.integers(*shape.decode_tokens, size=shape.turns) if growing else np.zeros(shape.turns, dtype=np.int64)
    return Turns(
        prefix_blocks=shape.prefix_tokens // BLOCK_TOKENS,
        context_blocks=(context_tokens // BLOCK_TOKENS).astype(np.int64),
        session=session.astype(np.int64),
        decode_tokens=decode_tokens.astype(np.int64),
    )
