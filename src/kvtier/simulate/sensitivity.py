"""How far the order of policies rests on the workload: one of its sizes changed at a time, under Revision 3 with state for each block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from kvtier.simulate import revision3, tables
from kvtier.simulate.families import Options, counts
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import LRU, MIN, ema
from kvtier.simulate.sweeps import SIMULATED_HBM_GIB
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape

COMPARED = (LRU, ema(0.01, persistent=True), MIN)
"""Recency, long frequency with kept state, and the optimum."""


@dataclass(frozen=True)
class Level:
    """A workload with one size changed.

    Parameters
    ----------
    factor, level : str
        Inside a number key.
    words : str
        What was changed, to what.
    shape : Shape
    """

    factor: str
    level: str
    words: str
    shape: Shape


def levels(middle: Shape) -> list[Level]:
    """Each factor with its levels; the given workload is one level of each.

    Contexts are narrowed about the mean of the published range; that range starts so low that they can be widened upwards only, which
    raises the mean. Generated tokens are quartered and doubled.
    """
    shapes = [("exponent", f"{s:g}".replace(".", ""), f"Zipf exponent {s:g}", replace(middle, zipf_exponent=s)) for s in (0.8, 1.1, 1.4)]
    shapes += [
        ("sessions", f"{count}", f"{count:,} sessions", replace(middle, sessions=count))
        for count in (middle.sessions // 2, middle.sessions, 2 * middle.sessions)
    ]
    shapes += [
        ("contexts", name, f"contexts from {first:,} to {stop - 1:,} tokens", replace(middle, context_tokens=(first, stop)))
        for name, (first, stop) in (("narrow", (5_632, 7_680)), ("published", middle.context_tokens), ("wide", (1_024, 24_576)))
    ]
    shapes += [
        ("decode", name, f"{first:,} to {stop - 1:,} tokens generated a turn", replace(middle, decode_tokens=(first, stop)))
        for name, (first, stop) in (("short", (8, 128)), ("published", middle.decode_tokens), ("long", (64, 1_024)))
    ]
    shapes += [
        ("prefix", f"{tokens}", f"shared prefix of {tokens:,} tokens", replace(middle, prefix_tokens=tokens))
        for tokens in (0, 2_048, 8_192)
    ]
    return [Level(*level) for level in shapes]


def replay(middle: Shape, seeds: Sequence[int], counted_from: int) -> pl.DataFrame:
    """Simulate every policy of ``COMPARED`` at every level.

    Parameters
    ----------
    middle : Shape
        The workload whose sizes are changed.
    seeds : sequence of int
    counted_from : int
        First counted turn.

    Returns
    -------
    polars.DataFrame
        Columns of ``tables.SENSITIVITY``. The given workload is simulated once, and has a row a factor.
    """
    hbm_blocks, plain = capacity_blocks(SIMULATED_HBM_GIB), Options()
    counted: dict[Shape, list[dict]] = {}
    rows = []
    for level in levels(middle):
        if level.shape not in counted:
            counted[level.shape] = [
                {
                    "policy": policy.slug + "_persistent" * policy.persistent,
                    "title": policy.title + ", persistent" * policy.persistent if policy is not MIN else "Optimum",
                    "hbm_gib": SIMULATED_HBM_GIB,
                    "seed": seed,
                    "suffix_first": plain.suffix_first,
                    "in_flight": plain.in_flight,
                    "floor_blocks": plain.floor_blocks,
                    **counts(turns, revision3.replay(turns, policy, hbm_blocks, counted_from), counted_from),
                }
                for seed in seeds
                for turns in [synthetic.generate("zipf", seed, level.shape)]
                for policy in COMPARED
            ]
        rows += [{"factor": level.factor, "level": level.level, "workload": level.words, **row} for row in counted[level.shape]]
    return tables.SENSITIVITY.check(pl.DataFrame(rows, infer_schema_length=None))
