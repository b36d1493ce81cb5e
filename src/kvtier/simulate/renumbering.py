"""What ties decide: Revision 2 breaks them by block identity, so by session number, which is arbitrary (SPEC §9 D16)."""

from __future__ import annotations

import numpy as np
import polars as pl

from kvtier.frames import Table
from kvtier.simulate import engine
from kvtier.simulate.metrics import capacity_blocks, summarise
from kvtier.simulate.policies import LFU, PUBLISHED
from kvtier.simulate.sweeps import SIMULATED_CXL_GIB, SIMULATED_HBM_GIB
from kvtier.workload.turns import Turns

HIT_RATES = Table(
    "hit rates by renumbering",
    {"renumbering": pl.Int64, "policy": pl.String, "alpha": pl.Float64, "hit_rate": pl.Float64},
    frozenset({"alpha"}),
)
"""One row a renumbering and policy; renumbering 0 is the published numbering. Hit rate in percent of blocks read in the counted turns."""


UNMOVED = 10
"""Renumberings tried with policies whose ties stay inside a session: renumbering cannot move them, and a few show that it does not."""


def hit_rates(turns: Turns, counted_from: int, renumberings: int, seed: int) -> pl.DataFrame:
    """Hit rate of the published policies at 32 GiB under random session numbers.

    Parameters
    ----------
    turns : Turns
    counted_from : int
        First counted turn.
    renumberings : int
        Permutations to draw, beside the published numbering.
    seed : int
        Of the permutations.

    Returns
    -------
    polars.DataFrame
        Columns of ``HIT_RATES``.
    """
    rng = np.random.default_rng(seed)
    sessions = len(turns.context_blocks)
    rows = []
    for renumbering in range(renumberings + 1):
        renumbered = turns if renumbering == 0 else turns.renumbered(rng.permutation(sessions))
        for policy in PUBLISHED if renumbering <= UNMOVED else (LFU,):
            counts = engine.simulate(renumbered, policy, capacity_blocks(SIMULATED_HBM_GIB), capacity_blocks(SIMULATED_CXL_GIB))
            rate = summarise(counts, renumbered, counted_from)["hit_rate"]
            rows.append({"renumbering": renumbering, "policy": policy.name, "alpha": policy.alpha, "hit_rate": rate})
    return HIT_RATES.check(pl.DataFrame(rows, infer_schema_length=None))
