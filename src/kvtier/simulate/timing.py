"""Revision 3 in time and in bytes moved: the same workload under several policies, at each bandwidth of the assumed range.

HBM and the tiers below are replayed first (:mod:`kvtier.simulate.revision3`, :mod:`kvtier.simulate.lower_tiers`); what they count is
then served in time (:mod:`kvtier.simulate.queueing`) and added up as traffic (:mod:`kvtier.simulate.traffic`). All figures are of the
counted turns; turns before them are served too, so that queue and tiers are as they would be. Every block that a turn reads is a hit, a
fetch or a recomputation, or the build stops (:class:`Served`).

What is assumed:

- One GPU server, which serves one turn at a time: then what HBM pins is what the cache simulator pinned. A turn's fetch finds the link
  into HBM idle, so without prefetch its stall depends on no arrival; arrivals make turns wait for the server.
- A decode step costs 10.45 ms, a quarter of 140 GB of weights at 3.35 TB/s, and 0.0801 ms a GiB of KV, a quarter of it at the same
  bandwidth (``DECODE``). No run of this model was timed; the measured coefficients (SPEC §7) are of another model and machine.
- The rate of arrivals is the same for all policies and bandwidths: a share (the *load*) of what LRU at the middle bandwidth serves.
- The optimum has the most hits of the counted turns, which bounds no stall: which blocks the tier drops, to be computed again, is decided
  by the order in which they leave HBM, and a recomputation costs more than a hundred fetches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import fsum
from typing import Any

import numpy as np
import polars as pl

from kvtier.frames import Table
from kvtier.simulate import prefetch, queueing, revision3, traffic
from kvtier.simulate.lower_tiers import Tier
from kvtier.simulate.metrics import DECODE_S, TurnCounts, capacity_blocks
from kvtier.simulate.policies import LFU, LRU, MIN, Policy, ema
from kvtier.simulate.queueing import PERCENTILES, Decode, Link, Prefetch, Run, Transfers, Work, percentile
from kvtier.simulate.regeneration import Compute
from kvtier.units import GB, GIB, TB
from kvtier.workload import synthetic
from kvtier.workload.synthetic import Shape
from kvtier.workload.turns import BLOCK_BYTES, Turns

HBM_GIB, CXL_GIB = 32.0, 512.0
"""Capacities of the published experiments [GiB] (SPEC §4)."""

APPENDIX_BLOCKS = {"hbm": 47 * GB // BLOCK_BYTES, "CXL": 4 * 256 * GB // BLOCK_BYTES, "NVMe": 4 * 4 * TB // BLOCK_BYTES}
"""The appendix's four tiers (SPEC §2): pinned and evictable HBM, 10 + 37 GB, are one, since what a turn reads is pinned [blocks]."""

POLICIES = {policy.slug: policy for policy in (LRU, LFU, ema(0.15), ema(0.01), MIN)}
"""State dropped at eviction; the optimum beside them."""

UNBOUNDED = "unbounded"
"""An HBM that holds everything, and no tier: what is left is what is computed for the first time."""

MODES = ("inclusive", "exclusive")
"""Whether the CXL tier keeps its copy of what is fetched."""

FOUR_TIERS, NO_TIER = "four_tiers", "no_tier"

DECODE = Decode(DECODE_S, GIB / 4 / 3.35e12)
"""Assumed: weights and KV of four GPUs, each read at 3.35 TB/s."""

ARRIVALS = ("deterministic", "poisson", "gamma")

GAMMA_SHAPE = 0.25
"""Bursty arrivals: gaps vary twice as much as Poisson's, by their coefficient of variation."""

ARRIVAL_SEEDS = 1_000_000
"""Added to a workload's seed: arrivals are draws of their own."""

PREFETCH_GIB = 8.0
"""Buffer for what is prefetched, beside HBM and not charged to it [GiB]."""

PREFETCH_ARRIVALS = "poisson"

_COUNTED = {"seed": pl.Int64, "counted_from": pl.Int64, "turns": pl.Int64}

TIMES = Table(
    "Revision 3 in time",
    {
        "arrivals": pl.String,
        "gbps": pl.Float64,
        "policy": pl.String,
        **_COUNTED,
        "load": pl.Float64,
        "rate_per_s": pl.Float64,
        "stall_ms_per_token": pl.Float64,
        **{f"ttft_ms_p{percent}": pl.Float64 for percent in PERCENTILES},
        **{f"stall_ms_p{percent}": pl.Float64 for percent in PERCENTILES},
        "utilisation_in": pl.Float64,
        "utilisation_out": pl.Float64,
        "sustainable": pl.Boolean,
        "hidden": pl.Boolean,
        "late": pl.Int64,
    },
)
"""One row an arrival process, bandwidth, policy and seed. ``policy`` is a name as in number keys, or ``unbounded``."""

PREFETCHES = Table(
    "prefetch rules",
    {
        "gbps": pl.Float64,
        "rule": pl.String,
        **_COUNTED,
        "load": pl.Float64,
        "prefetched_blocks": pl.Int64,
        "accuracy": pl.Float64,
        "stall_ms": pl.Float64,
        "saved_ms": pl.Float64,
        "sustainable": pl.Boolean,
        "hidden": pl.Boolean,
        "late": pl.Int64,
    },
    nullable=frozenset({"accuracy"}),
)
"""One row a bandwidth, rule (``none`` first) and seed; ms a turn. A rule that moves nothing has no accuracy."""

TRAFFIC = Table(
    "traffic of the tiers",
    {
        "mode": pl.String,
        "policy": pl.String,
        **_COUNTED,
        "promotions": pl.Int64,
        "demotions": pl.Int64,
        "discards": pl.Int64,
        "recomputed": pl.Int64,
        "unique": pl.Int64,
        "resident_reads": pl.Int64,
        "tokens": pl.Int64,
        "a_read": pl.Float64,
        "a_traffic": pl.Float64,
        "reuse_ratio": pl.Float64,
        "bytes_per_token": pl.Float64,
        "lowest_tier_blocks": pl.Int64,
    },
    nullable=frozenset({"reuse_ratio", "lowest_tier_blocks"}),
)
"""One row a tier mode, policy and seed [blocks]. ``discards`` left HBM and moved nothing; ``lowest_tier_blocks`` reached NVMe."""

RESIDENCE = Table(
    "HBM byte-time and stall",
    {
        "mode": pl.String,
        "gbps": pl.Float64,
        "policy": pl.String,
        **_COUNTED,
        "hbm_gib_s_per_token": pl.Float64,
        "stall_ms": pl.Float64,
        "stall_by_position_ms": pl.Float64,
    },
)
"""One row a tier mode, bandwidth, policy and seed, turns back to back; ms a turn."""


@dataclass(frozen=True)
class Served:
    """A workload as HBM and the tiers below served it; arrays of int64, of shape (turns,) unless said otherwise.

    Parameters
    ----------
    turns : Turns
    counts : TurnCounts
    promoted, demoted, written : ndarray, shape (tiers, turns)
        Blocks that each tier gave to HBM, was passed from above, and did not have yet: the last alone moves bytes.
    resident : ndarray
        Blocks in HBM while each turn decodes.

    Raises
    ------
    ValueError
        If the blocks that a turn reads are not its hits, fetches and recomputations.
    """

    turns: Turns
    counts: TurnCounts
    promoted: np.ndarray
    demoted: np.ndarray
    written: np.ndarray
    resident: np.ndarray

    def __post_init__(self) -> None:
        counted = self.counts.hits + self.counts.fetched + self.counts.recomputed
        broken = np.flatnonzero((counted != self.turns.read_blocks) | (self.promoted.sum(axis=0) != self.counts.fetched))
        if len(broken):
            turn = int(broken[0])
            raise ValueError(
                f"turn {turn}: found {counted[turn]} blocks counted, expected {self.turns.read_blocks[turn]}, all that it reads"
            )

    @property
    def moved_down(self) -> np.ndarray:
        """Blocks that leave HBM and move, shape (turns,)."""
        return self.written[0] if len(self.written) else np.zeros_like(self.counts.hits)

    @property
    def work(self) -> Work:
        """What each turn needs of link and GPU."""
        return Work.of(self.turns, self.counts, self.moved_down)


def serve(turns: Turns, policy: Policy, hbm_blocks: int, tiers: Sequence[Tier], counted_from: int = 0) -> Served:
    """Replay HBM under a policy, then the tiers below.

    Parameters
    ----------
    turns : Turns
    policy : Policy
        One that :func:`kvtier.simulate.revision3.replay` takes.
    hbm_blocks : int
        Capacity of HBM; it holds the prefix, which the tiers below never see.
    tiers : sequence of Tier
        From the top down; none for an HBM that holds everything.
    counted_from : int
        First turn whose hits the optimum is to maximise.

    Returns
    -------
    Served

    Raises
    ------
    ValueError
        If HBM does not hold the prefix.
    """
    if hbm_blocks < turns.prefix_blocks:
        raise ValueError(f"hbm_blocks {hbm_blocks}: expected room for the prefix, {turns.prefix_blocks}")
    residency = revision3.replay(turns, policy, hbm_blocks, counted_from)
    counts, below = revision3.with_tiers(turns, residency, tiers)
    missing = np.array([sum(stop - first for first, stop in parts) for parts in residency.missing], dtype=np.int64)
    admitted = residency.kept - (turns.read_blocks - turns.prefix_blocks - missing)
    resident = turns.prefix_blocks + np.cumsum(admitted - counts.evictions)
    return Served(turns, counts, below.fetched, below.demoted, below.written, resident)


def unbounded(turns: Turns) -> Served:
    """The same with an HBM that holds everything."""
    return serve(turns, LRU, int(turns.first_block[-1]), [])


def stall_s(work: Work, link: Link) -> np.ndarray:
    """Stall of each turn on one server without prefetch: its fetch, over an idle link, then its recomputation [s], shape (turns,)."""
    return np.array([link.transfer_s(blocks) for blocks in work.fetched.tolist()]) + work.recompute_s


def service_s(work: Work, link: Link) -> np.ndarray:
    """Time for which each turn holds the server: stall and decode [s], shape (turns,)."""
    context = (work.hits + work.fetched + work.recomputed).tolist()
    return stall_s(work, link) + [DECODE.steps_s(tokens, blocks) for tokens, blocks in zip(work.tokens.tolist(), context, strict=True)]


def by_position(work: Work, link: Link) -> Work:
    """The work with recomputation priced by position, attention included, and chosen instead of a fetch where it is faster.

    A context is, in order, what HBM has, what the tier has, what neither has: HBM loses the deepest blocks of a session first, so they
    are the oldest in the tier, and the first that it drops.
    """
    return work.positioned(Compute(), link.transfer_s(1))


def arrivals(kind: str, turns: int, rate_per_s: float, seed: int) -> np.ndarray:
    """Arrivals of a process of ``ARRIVALS`` [s], shape (turns,).

    Raises
    ------
    ValueError
        If there is no such process.
    """
    if kind == "deterministic":
        return queueing.evenly(turns, rate_per_s)
    if kind in ARRIVALS:
        return queueing.gamma(turns, rate_per_s, {"poisson": 1.0, "gamma": GAMMA_SHAPE}[kind], ARRIVAL_SEEDS + seed)
    raise ValueError(f"arrivals {kind!r}: expected one of {', '.join(ARRIVALS)}")


def since(run: Run, first: int) -> Run:
    """The turns of a run from `first` on, with their transfers, as a run that starts with the first of them."""

    def of(transfers: Transfers) -> Transfers:
        later = transfers.turn >= first
        return Transfers(*(values[later] for values in vars(transfers).values()))

    by_turn = ("arrival", "start", "ready", "first_token", "completion", "stall", "fetch_wait", "prefetched", "prefetched_used")
    return replace(
        run,
        work=Work(*(values[first:] for values in vars(run.work).values())),
        inward=of(run.inward),
        outward=of(run.outward),
        **{name: getattr(run, name)[first:] for name in by_turn},
    )


def checks(run: Run) -> dict[str, Any]:
    """SUSTAINABILITY and HIDING of SPEC §8, and the transfers that miss their deadline."""
    late = int(run.inward.late.sum()) + int(run.outward.late.sum())
    return {"sustainable": run.sustainable, "hidden": run.hidden, "late": late}


def times(run: Run) -> dict[str, Any]:
    """Columns of ``TIMES`` that come from a run."""
    ttft_ms, stall_ms = ([1e3 * seconds for seconds in values.tolist()] for values in (run.first_token - run.arrival, run.stall))
    return {
        "stall_ms_per_token": fsum(stall_ms) / int(run.work.tokens.sum()),
        **{f"ttft_ms_p{percent}": percentile(ttft_ms, percent) for percent in PERCENTILES},
        **{f"stall_ms_p{percent}": percentile(stall_ms, percent) for percent in PERCENTILES},
        "utilisation_in": run.inward.busy_s / run.horizon_s,
        "utilisation_out": run.outward.busy_s / run.horizon_s,
        **checks(run),
    }


@dataclass(frozen=True)
class Frames:
    """The four tables: columns of ``TIMES``, ``PREFETCHES``, ``TRAFFIC``, ``RESIDENCE``."""

    times: pl.DataFrame
    prefetches: pl.DataFrame
    traffic: pl.DataFrame
    residence: pl.DataFrame


def middle(bandwidths_gbps: Sequence[float]) -> float:
    """The middle one of the bandwidths, by size; the upper of two."""
    return sorted(bandwidths_gbps)[len(bandwidths_gbps) // 2]


def measure(seeds: Sequence[int], bandwidths_gbps: Sequence[float], load: float, shape: Shape, counted_from: int) -> Frames:
    """Make the four tables.

    Parameters
    ----------
    seeds : sequence of int
        Of the zipf workload.
    bandwidths_gbps : sequence of float
        A range, two or more [GB/s].
    load : float
        Arrivals over what LRU serves at the middle bandwidth, below 1.
    shape : Shape
        Size of the workload.
    counted_from : int
        First counted turn.

    Returns
    -------
    Frames

    Raises
    ------
    ValueError
        If there are fewer than two different bandwidths: the tier's bandwidth is an assumption, never one number.
    """
    if len(set(bandwidths_gbps)) < 2:
        raise ValueError(f"bandwidths_gbps {list(bandwidths_gbps)}: expected a range of two or more")
    rows: dict[str, list[dict[str, Any]]] = {"times": [], "prefetches": [], "traffic": [], "residence": []}
    for seed in seeds:
        turns = synthetic.generate("zipf", seed, shape)
        counted = {"seed": seed, "counted_from": counted_from, "turns": len(turns.session) - counted_from}
        served = {
            (mode, name): serve(turns, policy, capacity_blocks(HBM_GIB), [_cxl(mode)], counted_from)
            for mode in MODES
            for name, policy in POLICIES.items()
        }
        everything = unbounded(turns)
        of_lru = service_s(served["inclusive", LRU.slug].work, Link(middle(bandwidths_gbps)))[counted_from:]
        rate_per_s = load * len(of_lru) / fsum(of_lru)
        at = {kind: arrivals(kind, len(turns.session), rate_per_s, seed) for kind in ARRIVALS}
        counted_load = {**counted, "load": load}
        inclusive = {name: served["inclusive", name] for name in POLICIES} | {UNBOUNDED: everything}
        for kind in ARRIVALS:
            for gbps in bandwidths_gbps:
                for name, one in inclusive.items():
                    run = since(queueing.replay(one.work, at[kind], Link(gbps), DECODE), counted_from)
                    cell = {"arrivals": kind, "gbps": gbps, "policy": name, **counted_load, "rate_per_s": rate_per_s}
                    rows["times"].append({**cell, **times(run)})
        for row in _prefetches(turns, at[PREFETCH_ARRIVALS], bandwidths_gbps, counted_from):
            rows["prefetches"].append({**counted_load, **row})
        four = [Tier(name, APPENDIX_BLOCKS[name]) for name in ("CXL", "NVMe")]
        served |= {
            (FOUR_TIERS, name): serve(turns, policy, APPENDIX_BLOCKS["hbm"], four, counted_from) for name, policy in POLICIES.items()
        }
        served[NO_TIER, UNBOUNDED] = everything
        for (mode, name), one in served.items():
            rows["traffic"].append({"mode": mode, "policy": name, **counted, **_traffic(one, counted_from)})
        for (mode, name), one in served.items():
            # The appendix states no bandwidth for NVMe.
            if mode != FOUR_TIERS:
                for gbps in bandwidths_gbps:
                    cell = {"mode": mode, "gbps": gbps, "policy": name, **counted}
                    rows["residence"].append({**cell, **_residence(one, Link(gbps), counted_from)})
    declared = {"times": TIMES, "prefetches": PREFETCHES, "traffic": TRAFFIC, "residence": RESIDENCE}
    # Seeds last, as the rows of a sweep stand.
    by = {"times": ["arrivals", "gbps", "policy"], "prefetches": ["gbps", "rule"], "traffic": ["mode", "policy"]}
    frames = {}
    for name, table in declared.items():
        frame = table.check(pl.DataFrame(rows[name], infer_schema_length=None).select(list(table.columns)))
        cell = by.get(name, ["mode", "gbps", "policy"])
        frames[name] = pl.concat(frame.partition_by(cell, maintain_order=True))
    return Frames(**frames)


def _cxl(mode: str) -> Tier:
    return Tier("CXL", capacity_blocks(CXL_GIB), exclusive=mode == "exclusive")


def _prefetches(
    turns: Turns, at_s: np.ndarray, bandwidths_gbps: Sequence[float], counted_from: int
) -> Iterator[dict[str, str | int | float | bool | None]]:
    """Each rule at each bandwidth, LRU over a tier that drops nothing, as the rules take it to be."""
    hbm_blocks = capacity_blocks(HBM_GIB)
    work = serve(turns, LRU, hbm_blocks, [Tier("everything", int(turns.first_block[-1]))]).work
    most = capacity_blocks(PREFETCH_GIB)
    rules = {rule: Prefetch(prefetch.candidates(turns, LRU, hbm_blocks, rule, most)) for rule in prefetch.RULES}
    for gbps in bandwidths_gbps:
        without = None
        for rule, asked in {"none": None, **rules}.items():
            run = since(queueing.replay(work, at_s, Link(gbps), DECODE, prefetch=asked), counted_from)
            stall_ms = 1e3 * fsum(run.stall.tolist()) / len(run.stall)
            without = stall_ms if without is None else without
            moved, used = int(run.prefetched.sum()), int(run.prefetched_used.sum())
            yield {
                "gbps": gbps,
                "rule": rule,
                "prefetched_blocks": moved,
                "accuracy": traffic.prefetch_accuracy(used, moved),
                "stall_ms": stall_ms,
                "saved_ms": without - stall_ms,
                **checks(run),
            }


def _traffic(served: Served, counted_from: int) -> dict[str, int | float | None]:
    promoted, moved, counted = served.promoted.sum(axis=0), served.moved_down, slice(counted_from, None)
    total = traffic.from_counts(served.turns, served.counts.hits, promoted, moved, counted_from)
    passed = served.demoted[0] if len(served.demoted) else moved
    return {
        "promotions": total.promotions,
        "demotions": total.demotions,
        "discards": int((passed - moved)[counted].sum()),
        "recomputed": int(served.counts.recomputed[counted].sum()),
        "unique": total.unique,
        "resident_reads": total.resident_reads,
        "tokens": total.tokens,
        "a_read": total.a_read,
        "a_traffic": total.a_traffic,
        "reuse_ratio": total.reuse_ratio,
        "bytes_per_token": total.tier_bytes_per_token,
        "lowest_tier_blocks": int(served.written[-1].sum()) if len(served.written) > 1 else None,
    }


def _residence(served: Served, link: Link, counted_from: int) -> dict[str, float]:
    work, counted = served.work, slice(counted_from, None)
    stall, positioned = (stall_s(one, link)[counted].tolist() for one in (work, by_position(work, link)))
    ends = list(accumulate(service_s(work, link)[counted].tolist(), initial=0.0))
    byte_s = traffic.hbm_byte_seconds(served.resident[counted].tolist(), ends)
    return {
        "hbm_gib_s_per_token": byte_s / GIB / int(work.tokens[counted].sum()),
        "stall_ms": 1e3 * fsum(stall) / len(stall),
        "stall_by_position_ms": 1e3 * fsum(positioned) / len(positioned),
    }
