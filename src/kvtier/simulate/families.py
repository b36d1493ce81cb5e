"""The policies of :mod:`kvtier.simulate.eviction` side by side under Revision 3, and the options of its simulator side by side.

All runs are of zipf, warm. State belongs to the edge, that is to the session's blocks together, and not to each block as in e1: a
policy that is in both may rank differently here. Nothing below HBM is replayed, for it serves no hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import polars as pl

from kvtier.simulate import eviction, revision3, tables
from kvtier.simulate.eviction import Eviction, LookAhead, Named
from kvtier.simulate.metrics import capacity_blocks
from kvtier.simulate.policies import MIN
from kvtier.simulate.revision3 import Residency
from kvtier.simulate.sweeps import SIMULATED_HBM_GIB
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape
from kvtier.workload.turns import Turns

OPTIMUM = Named(Eviction, "Optimum", MIN.slug)
"""The pinned optimum, which is no policy by edges: it knows which turns are counted."""

COMPARED = tuple(eviction.NAMES[slug] for slug in ("lru", "ema005", "farthest"))
"""Policies under which the options are compared: one without frequency, one with, one with foresight."""


@dataclass(frozen=True)
class Options:
    """Options of :func:`kvtier.simulate.revision3.replay_edges`; the defaults are what every other table of Revision 3 has."""

    suffix_first: bool = True
    in_flight: int = 1
    floor_blocks: int | None = None

    @property
    def pins_path(self) -> bool:
        """Whether the path of the turn, and no other, is pinned whole: what the pinned optimum assumes."""
        return self.in_flight == 1 and self.floor_blocks is None


@dataclass(frozen=True)
class EdgeRun:
    """One simulation on zipf."""

    policy: Named
    seed: int
    hbm_gib: float = SIMULATED_HBM_GIB
    options: Options = Options()


def policies(windows_turns: Sequence[int]) -> list[Named]:
    """The family, with look-ahead by the given windows, and the optimum last."""
    named = [policy for policy in eviction.NAMES.values() if policy.kind is not LookAhead]
    farthest = named.index(eviction.NAMES["farthest"])
    return [*named[:farthest], *map(eviction.look_ahead, windows_turns), *named[farthest:], OPTIMUM]


def policy_runs(windows_turns: Sequence[int], budgets_gib: Sequence[float], seeds: Sequence[int]) -> list[EdgeRun]:
    """Every policy at every budget."""
    return [EdgeRun(policy, seed, gib) for gib in budgets_gib for policy in policies(windows_turns) for seed in seeds]


def option_runs(in_flight: Sequence[int], floors_blocks: Sequence[int], seeds: Sequence[int]) -> list[EdgeRun]:
    """One option changed at a time, after the run with none changed."""
    changed = [
        Options(),
        Options(suffix_first=False),
        *(Options(in_flight=sequences) for sequences in in_flight),
        *(Options(floor_blocks=blocks) for blocks in floors_blocks),
    ]
    return [EdgeRun(policy, seed, options=options) for options in changed for policy in COMPARED for seed in seeds]


def replay(runs: Iterable[EdgeRun], shape: Shape, counted_from: int) -> pl.DataFrame:
    """Simulate runs.

    Parameters
    ----------
    runs : iterable of EdgeRun
    shape : Shape
        Sizes of the workload.
    counted_from : int
        First counted turn.

    Returns
    -------
    polars.DataFrame
        Columns of ``tables.EDGE_RUNS``, one row a run, in the order given.
    """

    @cache
    def known(seed: int) -> tuple[Turns, dict[str, Any]]:
        turns = synthetic.generate("zipf", seed, shape)
        return turns, revision3.trace_knowledge(turns)

    rows = []
    for run in runs:
        turns, knowledge = known(run.seed)
        hbm_blocks, options = capacity_blocks(run.hbm_gib), asdict(run.options)
        if run.policy is OPTIMUM:
            residency = revision3.replay(turns, MIN, hbm_blocks, counted_from)
        else:
            residency = revision3.replay_edges(turns, run.policy.build(hbm_blocks, **knowledge), hbm_blocks, **options)
        named = {"policy": run.policy.slug, "title": run.policy.title, "hbm_gib": run.hbm_gib, "seed": run.seed}
        rows.append(named | options | counts(turns, residency, counted_from, run.options.in_flight))
    return tables.EDGE_RUNS.check(pl.DataFrame(rows, infer_schema_length=None))


def counts(turns: Turns, residency: Residency, counted_from: int, in_flight: int = 1) -> dict[str, int | float]:
    """What a row of ``tables.EDGE_RUNS`` counts: reads, hits and what was streamed in the counted turns, evictions of all turns."""
    reads, hits, prefix_hits, streamed, generated = (
        int(blocks[counted_from:].sum())
        for blocks in (turns.read_blocks, residency.hits, residency.prefix_hits, residency.streamed, turns.growth_blocks)
    )
    every, own = residency.evictions(turns, in_flight)
    return {
        "counted_from": counted_from,
        "turns": len(turns.session) - counted_from,
        "reads": reads,
        "generated": generated,
        "hits": hits,
        "prefix_hits": prefix_hits,
        "hit_rate": 100 * hits / reads,
        "prefix_hit_rate": 100 * prefix_hits / reads,
        "over_budget_turns": int((residency.streamed[counted_from:] > 0).sum()),
        "streamed": streamed,
        "evictions": int(every.sum()),
        "evictions_from_read_set": int(own.sum()),
    }
