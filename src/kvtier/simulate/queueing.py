"""What a hit rate costs in time, under load: turns arrive, wait, fetch over a link that others use too, recompute, and decode.

The serving model, in full.

- **Turns** are started in the order in which they arrive, by `servers` GPUs that serve one turn each and share one link to the tier.
  What each turn hits, fetches, recomputes and demotes is given: it comes from a cache simulator that served the turns in the same order.
  With more than one server those counts are what a serial cache would have seen.
- **Link**: one queue a direction, first come first served, never interrupted. A transfer of n blocks takes n · setup + bytes / bandwidth.
- **Start**: the turn's fetch joins the downward queue, behind whatever is there; its demotions join the upward queue. Demotions hold no
  turn up: frames of blocks that are on their way out are assumed to be spare.
- **Prefill**: the fetch, then recomputation on the GPU, one after the other. With `overlap` they run side by side and prefill ends with
  the later one: the most that loading layer by layer could hide, since a block's regeneration needs what stands before it
  (:mod:`kvtier.simulate.regeneration`). The prompt's own tokens are not in the workload and cost nothing.
- **Decode**: as many steps as tokens, step j costing fixed + slope · KV_GiB with the j tokens before it added to the context. The first
  token comes with the end of the first step. A decode step reads the whole context (dense attention), so the turn's own fetch cannot
  hide behind its own decoding; Revision 2's overlap assumes that it can.
- **Prefetch**, if asked for: once a turn decodes, blocks for the turn that will start next may join the downward queue. Their deadline is
  that turn's start. They land in a buffer beside the policy's HBM and leave it unused once that turn has started; so prefetching moves a
  fetch in time and changes no hit. What is still missing at the start is fetched then, behind the prefetch.

Link directions are named from HBM: *in* brings blocks up, *out* takes them down.

Evidence: simulated; bandwidth, setup and compute rate are assumptions. Times are seconds inside and milliseconds in summaries.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np

from kvtier.simulate.lossless import LosslessCounts
from kvtier.simulate.metrics import DECODE_S, RECOMPUTE_S, TurnCounts
from kvtier.simulate.regeneration import Compute, choose
from kvtier.simulate.traffic import prefetch_accuracy
from kvtier.units import GB, GIB
from kvtier.workload.turns import BLOCK_BYTES, BLOCK_TOKENS, Turns

BANDWIDTHS_GBPS = (32.0, 64.0, 121.0)
"""Range of the tier's bandwidth, low end, link rate, high end: assumed (SPEC §2) [GB/s]."""

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Link:
    """One direction of a link.

    Parameters
    ----------
    bandwidth_gbps : float
        Effective one-way bandwidth; infinity is allowed [GB/s].
    setup_us : float
        Fixed cost of a block; 0.3 is assumed (SPEC §4) [µs].

    Raises
    ------
    ValueError
        If the bandwidth is not positive or the setup is negative.
    """

    bandwidth_gbps: float
    setup_us: float = 0.3

    def __post_init__(self) -> None:
        if not self.bandwidth_gbps > 0:
            raise ValueError(f"bandwidth_gbps {self.bandwidth_gbps}: expected a positive number")
        if not 0 <= self.setup_us < math.inf:
            raise ValueError(f"setup_us {self.setup_us}: expected 0 or more")

    def transfer_s(self, blocks: int, block_bytes: int = BLOCK_BYTES) -> float:
        """Time of a transfer on an idle link: n · setup + bytes / bandwidth [s]. One block at 64 GB/s: 82.22 µs.

        Raises
        ------
        ValueError
            If there are fewer than 0 blocks or bytes.
        """
        if blocks < 0 or block_bytes < 0:
            raise ValueError(f"{blocks} blocks of {block_bytes} B: expected 0 or more")
        return blocks * self.setup_us * 1e-6 + blocks * block_bytes / (self.bandwidth_gbps * GB)


FREE = Link(math.inf, 0.0)
"""A link that costs nothing."""


@dataclass(frozen=True)
class Decode:
    """Two-term decode model: a step costs fixed + slope · KV_GiB (SPEC §7 has measured ones, of another model and machine).

    Parameters
    ----------
    fixed_s : float
        Cost of a step whatever the context [s]; 10.45 ms is assumed (SPEC §4).
    per_gib_s : float
        Cost of reading 1 GiB of KV [s]; none in SPEC §4.
    block_bytes : int
        KV of 16 tokens [B].

    Raises
    ------
    ValueError
        If one is negative.
    """

    fixed_s: float = DECODE_S
    per_gib_s: float = 0.0
    block_bytes: int = BLOCK_BYTES

    def __post_init__(self) -> None:
        if not (self.fixed_s >= 0 and self.per_gib_s >= 0 and self.block_bytes >= 0):
            raise ValueError(f"{self}: expected 0 or more")

    def steps_s(self, steps: int, context_blocks: int) -> float:
        """Time of the first `steps` steps after a context: each adds one token to what the next one reads [s]."""
        kv_tokens = steps * context_blocks * BLOCK_TOKENS + steps * (steps - 1) // 2
        return steps * self.fixed_s + self.per_gib_s * (kv_tokens * self.block_bytes / BLOCK_TOKENS / GIB)


@dataclass(frozen=True)
class Work:
    """What each turn needs; arrays of shape (turns,).

    Parameters
    ----------
    session : ndarray of int
        Whose turn it is; only a name here.
    hits, fetched, recomputed : ndarray of int
        Blocks of the context that HBM has, that come over the link, that the GPU makes.
    demoted : ndarray of int
        Blocks that go down. Under write-once, those without a copy below (:func:`kvtier.simulate.traffic.first_demotions`).
    tokens : ndarray of int
        Tokens generated.
    recompute_s : ndarray of float
        GPU time of what is recomputed [s].

    Raises
    ------
    ValueError
        If lengths differ or a value is negative.
    """

    session: np.ndarray
    hits: np.ndarray
    fetched: np.ndarray
    recomputed: np.ndarray
    demoted: np.ndarray
    tokens: np.ndarray
    recompute_s: np.ndarray

    def __post_init__(self) -> None:
        for name, values in vars(self).items():
            if len(values) != len(self.session):
                raise ValueError(f"{name}: expected {len(self.session)} turns, found {len(values)}")
            if not np.all(np.asarray(values) >= 0):
                raise ValueError(f"{name}: expected 0 or more in each turn")

    @classmethod
    def of(cls, turns: Turns, counts: TurnCounts, demoted: np.ndarray | None = None, recompute_s: np.ndarray | None = None) -> Work:
        """Work of a workload as a cache simulator served it.

        Parameters
        ----------
        turns : Turns
        counts : TurnCounts
        demoted : ndarray of int, optional
            By default all evictions, as if each moved its block: an upper bound under write-once.
        recompute_s : ndarray of float, optional
            By default 17.92 ms a block, the linear term (SPEC §4).
        """
        demoted = counts.evictions if demoted is None else demoted
        recompute_s = counts.recomputed * RECOMPUTE_S if recompute_s is None else recompute_s
        return cls(turns.session, counts.hits, counts.fetched, counts.recomputed, demoted, turns.decode_tokens, recompute_s)

    @classmethod
    def lossless(cls, turns: Turns, counts: LosslessCounts, demoted: np.ndarray | None = None) -> Work:
        """Work under lossless residency over a tier that never drops a block: only what was never made is computed, the rest is fetched."""
        first = turns.compulsory_blocks
        with_tier = TurnCounts(counts.hits, counts.misses - first, first, counts.evictions, np.zeros_like(counts.hits))
        return cls.of(turns, with_tier, demoted)

    def positioned(self, compute: Compute, fetch_s: float | None = None) -> Work:
        """The same work with regeneration priced by position and, given the time of a fetch, fetched only where that is faster.

        Parameters
        ----------
        compute : Compute
        fetch_s : float, optional
            Time to fetch a block [s]. Without it the choice stays as it is.

        Returns
        -------
        Work
            The context is taken to be, in order, what is resident, what is fetched, what is computed: so it is under lossless residency
            over a tier that drops nothing. What is computed instead of fetched comes first and needs only the resident blocks before it.
        """
        fetched, recomputed = self.fetched.tolist(), self.recomputed.tolist()
        recompute_s = []
        for turn, first in enumerate(self.hits.tolist()):
            stop = first + fetched[turn]
            cut = first if fetch_s is None else choose(first, stop, fetch_s, compute)
            flop = compute.run_flop(first, cut) + compute.run_flop(stop, stop + recomputed[turn])
            fetched[turn], recomputed[turn] = stop - cut, recomputed[turn] + cut - first
            recompute_s.append(compute.seconds(flop))
        counts = (np.array(blocks, dtype=np.int64) for blocks in (fetched, recomputed))
        return replace(self, **dict(zip(("fetched", "recomputed"), counts, strict=True)), recompute_s=np.array(recompute_s))


def evenly(turns: int, rate_per_s: float) -> np.ndarray:
    """Arrivals at equal distances, the first at 0 [s], shape (turns,).

    Raises
    ------
    ValueError
        If the rate is not positive or there are fewer than 0 turns.
    """
    _require_rate(turns, rate_per_s)
    return np.array([turn / rate_per_s for turn in range(turns)])


def poisson(turns: int, rate_per_s: float, seed: int) -> np.ndarray:
    """Poisson arrivals: exponential gaps, drawn from ``numpy.random.default_rng(seed)`` [s], shape (turns,)."""
    return gamma(turns, rate_per_s, 1.0, seed)


def gamma(turns: int, rate_per_s: float, shape: float, seed: int) -> np.ndarray:
    """Arrivals with Gamma gaps: bursty for a shape below 1; the squared coefficient of variation of a gap is 1 / shape [s].

    Parameters
    ----------
    turns : int
    rate_per_s : float
        Mean rate [1/s].
    shape : float
        1 is Poisson.
    seed : int

    Raises
    ------
    ValueError
        If the rate or the shape is not positive, or there are fewer than 0 turns.
    """
    _require_rate(turns, rate_per_s)
    if not 0 < shape < math.inf:
        raise ValueError(f"shape {shape}: expected a positive number")
    rng = np.random.default_rng(seed)
    # One scalar function of the C library a draw: no vectorised exp or pow, whose last digit depends on the processor.
    gaps = rng.standard_exponential(turns) if shape == 1 else rng.standard_gamma(shape, turns)
    return np.array(list(accumulate(float(gap) / (shape * rate_per_s) for gap in gaps)))


def _require_rate(turns: int, rate_per_s: float) -> None:
    if turns < 0 or not 0 < rate_per_s < math.inf:
        raise ValueError(f"{turns} turns at rate {rate_per_s}: expected 0 or more turns and a positive rate")


@dataclass(frozen=True)
class Prefetch:
    """What may be fetched for the turn that starts next, while another decodes.

    Parameters
    ----------
    candidates : sequence of ndarray of bool, one a turn, optional
        For each turn, in the order of the rule, whether each block it would prefetch is one that the turn fetches
        (:mod:`kvtier.simulate.prefetch`). Without it: all that the turn fetches, an oracle of one turn.
    known : {'always', 'arrived'}
        Whether the next turn is known before it arrives. Rules that do not look ahead ask nothing of it: leave 'always'.
    within_window : bool
        Prefetch only what will have landed when the first server will be free: it takes the decode lengths to be known. Otherwise
        all candidates join the queue, and may be late.
    """

    candidates: Sequence[np.ndarray] | None = None
    known: Literal["always", "arrived"] = "always"
    within_window: bool = True

    def __post_init__(self) -> None:
        if self.known not in ("always", "arrived"):
            raise ValueError(f"known {self.known!r}: expected 'always' or 'arrived'")


@dataclass(frozen=True)
class Transfers:
    """Transfers over one direction, in order of submission; arrays of shape (transfers,), times in s.

    Parameters
    ----------
    turn, blocks : ndarray of int64
        The turn that needs it (in) or causes it (out), and its size.
    prefetched : ndarray of bool
        Submitted before the turn's start.
    submitted, started, finished : ndarray of float64
    deadline : ndarray of float64
        In: the turn's start, which a fetch on demand cannot meet unless it takes no time. Out: the turn's completion, by when the
        spare frames are wanted back.
    """

    turn: np.ndarray
    blocks: np.ndarray
    prefetched: np.ndarray
    submitted: np.ndarray
    started: np.ndarray
    finished: np.ndarray
    deadline: np.ndarray

    @property
    def busy_s(self) -> float:
        """Time that the direction works [s]."""
        return math.fsum((self.finished - self.started).tolist())

    @property
    def late(self) -> np.ndarray:
        """Whether each one ends after its deadline."""
        return self.finished > self.deadline


@dataclass(frozen=True)
class Run:
    """One replay; arrays of shape (turns,), times in s.

    Parameters
    ----------
    work : Work
    arrival, start, ready, first_token, completion : ndarray of float64
        When the turn came, was taken up, had its whole context in HBM, gave its first token and its last.
    stall : ndarray of float64
        Exposed: from start to ready, waiting for the link and recomputing.
    fetch_wait : ndarray of float64
        From start until the last fetched block has landed.
    prefetched, prefetched_used : ndarray of int64
        Blocks prefetched for the turn, and those it fetches.
    inward, outward : Transfers
    bandwidth_gbps : tuple of (float, float)
        In, out.
    block_bytes : int
    servers : int
    """

    work: Work
    arrival: np.ndarray
    start: np.ndarray
    ready: np.ndarray
    first_token: np.ndarray
    completion: np.ndarray
    stall: np.ndarray
    fetch_wait: np.ndarray
    prefetched: np.ndarray
    prefetched_used: np.ndarray
    inward: Transfers
    outward: Transfers
    bandwidth_gbps: tuple[float, float]
    block_bytes: int
    servers: int

    @property
    def horizon_s(self) -> float:
        """From the first arrival to the end of the last turn or transfer [s]."""
        ends = [float(ends.max()) for ends in (self.completion, self.inward.finished, self.outward.finished) if len(ends)]
        return max(ends) - float(self.arrival[0]) if ends else 0.0

    @property
    def decoding_s(self) -> float:
        """Time in which at least one turn decodes [s]."""
        return _time_occupied(self.ready, self.completion)

    def demanded_gbps(self, transfers: Transfers) -> float:
        """Bytes of a direction over the time in which turns decode [GB/s]: the mean rate that would hide all of them behind decoding."""
        demanded = int(transfers.blocks.sum()) * self.block_bytes
        if not demanded:
            return 0.0
        return demanded / self.decoding_s / GB if self.decoding_s else math.inf

    @property
    def sustainable(self) -> bool:
        """SPEC §8: in each direction the mean rate over the decoding set is within the bandwidth. Says nothing of any single transfer."""
        directions = zip((self.inward, self.outward), self.bandwidth_gbps, strict=True)
        return all(self.demanded_gbps(transfers) <= bandwidth for transfers, bandwidth in directions)

    @property
    def hidden(self) -> bool:
        """SPEC §8: each transfer ends by its deadline. Says nothing of the mean rate: idle time can carry what decoding cannot."""
        return not (self.inward.late.any() or self.outward.late.any())

    def little(self) -> tuple[float, float]:
        """Σ sojourn times, and ∫ turns in the system dt, computed apart [s]: Little's law holds exactly over a busy horizon."""
        sojourns = math.fsum((self.completion - self.arrival).tolist())
        return sojourns, integral(self.arrival, self.completion)

    def summary(self, counted_from: int = 0) -> dict[str, int | float | bool | None]:
        """Figures of the run.

        Parameters
        ----------
        counted_from : int
            First counted turn of times and of prefetches. Load, queues and checks are of the whole run.

        Returns
        -------
        dict
            ``turns`` and ``tokens`` counted; ``stall_ms_per_token``; ``ttft_ms_*`` and ``stall_ms_*`` with mean, p50, p95, p99;
            ``wait_ms_mean``, arrival to start; ``utilisation_in``, ``utilisation_out``, share of the horizon; ``queue_mean``,
            ``queue_max``, turns waiting for a server; ``link_in_mean``, ``link_in_max``, ``link_out_mean``, ``link_out_max``,
            transfers in each direction, the one in service included; ``demanded_in_gbps``, ``demanded_out_gbps``;
            ``sustainable``, ``hidden``; ``late_in``, ``late_out``, transfers that miss their deadline; ``prefetched_blocks``;
            ``prefetch_accuracy``, None without prefetch. Percentiles are nearest ranks.

        Raises
        ------
        ValueError
            If no turn is counted.
        """
        turns = len(self.arrival)
        if not 0 <= counted_from < turns:
            raise ValueError(f"counted_from {counted_from}: expected one of {turns} turns")
        counted = slice(counted_from, None)
        tokens, horizon_s = int(self.work.tokens[counted].sum()), self.horizon_s
        stall = self.stall[counted].tolist()
        load: dict[str, int | float | bool | None] = {}
        for name, transfers in (("in", self.inward), ("out", self.outward)):
            load[f"utilisation_{name}"] = transfers.busy_s / horizon_s if horizon_s else 0.0
            load[f"link_{name}_mean"] = integral(transfers.submitted, transfers.finished) / horizon_s if horizon_s else 0.0
            load[f"link_{name}_max"] = most_at_once(transfers.submitted, transfers.finished)
            load[f"demanded_{name}_gbps"] = self.demanded_gbps(transfers)
            load[f"late_{name}"] = int(transfers.late.sum())
        prefetched = int(self.prefetched[counted].sum())
        return {
            "turns": turns - counted_from,
            "tokens": tokens,
            "stall_ms_per_token": 1e3 * math.fsum(stall) / tokens if tokens else None,
            **_spread("ttft_ms", (self.first_token - self.arrival)[counted].tolist()),
            **_spread("stall_ms", stall),
            "wait_ms_mean": 1e3 * math.fsum((self.start - self.arrival)[counted].tolist()) / len(stall),
            "queue_mean": integral(self.arrival, self.start) / horizon_s if horizon_s else 0.0,
            "queue_max": most_at_once(self.arrival, self.start),
            **load,
            "sustainable": self.sustainable,
            "hidden": self.hidden,
            "prefetched_blocks": prefetched,
            "prefetch_accuracy": prefetch_accuracy(int(self.prefetched_used[counted].sum()), prefetched),
        }


def percentile(values: Sequence[float], percent: int) -> float:
    """Nearest rank: the smallest value that at least `percent` per cent of the values do not exceed. Always one of the values.

    Raises
    ------
    ValueError
        If there are none, or the percentage is not a whole number from 1 to 100.
    """
    if not len(values) or percent not in range(1, 101):
        raise ValueError(f"percentile {percent} of {len(values)} values: expected 1 to 100, and a value")
    return sorted(values)[-(-percent * len(values) // 100) - 1]


def _spread(name: str, seconds: list[float]) -> dict[str, float]:
    ranks = {f"{name}_p{percent}": 1e3 * percentile(seconds, percent) for percent in PERCENTILES}
    return {f"{name}_mean": 1e3 * math.fsum(seconds) / len(seconds), **ranks}


def _levels(entered: np.ndarray, left: np.ndarray) -> list[tuple[float, float, int]]:
    """(from, to, how many are in) between two moments at which something enters or leaves."""
    moments = sorted([(float(at), 1) for at in entered] + [(float(at), -1) for at in left])
    counts = accumulate(change for _, change in moments)
    return [(now, later, count) for ((now, _), (later, _)), count in zip(pairwise(moments), counts, strict=False)]


def integral(entered: np.ndarray, left: np.ndarray) -> float:
    """∫ how many are in dt, by sweeping over time."""
    return math.fsum(count * (later - now) for now, later, count in _levels(entered, left))


def most_at_once(entered: np.ndarray, left: np.ndarray) -> int:
    """The largest number in at any time; what leaves at a moment is gone for what enters then."""
    return max((count for _, _, count in _levels(entered, left)), default=0)


def _time_occupied(entered: np.ndarray, left: np.ndarray) -> float:
    return math.fsum(later - now for now, later, count in _levels(entered, left) if count)


class _Direction:
    """The queue of one direction: what is submitted starts once all before it is done."""

    def __init__(self, link: Link, block_bytes: int) -> None:
        self.link, self.block_bytes = link, block_bytes
        self.free_at = -math.inf
        self.log: list[tuple[int, int, bool, float, float, float]] = []

    def submit(self, turn: int, blocks: int, now: float, *, prefetched: bool = False) -> float:
        started = max(now, self.free_at)
        self.free_at = started + self.link.transfer_s(blocks, self.block_bytes)
        self.log.append((turn, blocks, prefetched, now, started, self.free_at))
        return self.free_at

    def fits(self, blocks: int, now: float, end: float) -> int:
        """Blocks, of so many, that would have landed by `end`."""
        room_s, one_s = end - max(now, self.free_at), self.link.transfer_s(1, self.block_bytes)
        if room_s <= 0:
            return 0
        most = blocks if one_s == 0 else min(blocks, int(room_s / one_s) + 1)
        while most and self.link.transfer_s(most, self.block_bytes) > room_s:
            most -= 1
        return most

    def transfers(self, deadline: np.ndarray) -> Transfers:
        columns = list(zip(*self.log, strict=True)) or [()] * 6
        kinds = (np.int64, np.int64, bool, float, float, float)
        arrays = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)]
        return Transfers(*arrays, deadline[arrays[0]])


# At one moment: a context is complete, then turns end, then turns arrive.
_READY, _COMPLETE, _ARRIVE = range(3)


def replay(
    work: Work,
    arrivals_s: np.ndarray,
    link: Link,
    decode: Decode | None = None,
    *,
    outward: Link | None = None,
    servers: int = 1,
    overlap: bool = False,
    prefetch: Prefetch | None = None,
) -> Run:
    """Serve the turns: the model is in the module's docstring.

    Parameters
    ----------
    work : Work
    arrivals_s : ndarray of float, shape (turns,)
        Ascending [s].
    link : Link
        Direction into HBM.
    decode : Decode, optional
    outward : Link, optional
        The other direction; by default alike.
    servers : int
    overlap : bool
        Fetch and recomputation side by side.
    prefetch : Prefetch, optional

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If there is no server, arrivals are not ascending, lengths differ, or a rule's useful blocks exceed what the turn fetches.
    """
    decode, turns = decode or Decode(), len(work.session)
    arrival = [float(at) for at in arrivals_s]
    if servers < 1:
        raise ValueError(f"servers {servers}: expected 1 or more")
    if len(arrival) != turns or not all(map(math.isfinite, arrival)) or any(now > later for now, later in pairwise(arrival)):
        raise ValueError(f"arrivals_s: expected {turns} ascending times")
    _require_candidates(work, prefetch)
    fetched, demoted, tokens = work.fetched.tolist(), work.demoted.tolist(), work.tokens.tolist()
    context = (work.hits + work.fetched + work.recomputed).tolist()
    recompute_s = [float(seconds) for seconds in work.recompute_s]
    inward, out = (_Direction(one, decode.block_bytes) for one in (link, outward or link))

    start, ready, first_token, completion, stall, fetch_wait = np.zeros((6, turns))
    prefetched, prefetched_used = np.zeros((2, turns), dtype=np.int64)
    landed = [-math.inf] * turns
    served: dict[int, float] = {}
    decoding: set[int] = set()
    waiting: deque[int] = deque()
    upcoming = 0
    looked_ahead = -1
    events = [(at, _ARRIVE, turn) for turn, at in enumerate(arrival)]

    def begin(turn: int, now: float) -> None:
        used, data_at = int(prefetched_used[turn]), now
        if used:
            data_at = max(data_at, landed[turn])
        if fetched[turn] > used:
            data_at = max(data_at, inward.submit(turn, fetched[turn] - used, now))
        if demoted[turn]:
            out.submit(turn, demoted[turn], now)
        wait_s = data_at - now
        stall_s = max(wait_s, recompute_s[turn]) if overlap else wait_s + recompute_s[turn]
        ready_at = now + stall_s
        start[turn], ready[turn], stall[turn], fetch_wait[turn] = now, ready_at, stall_s, wait_s
        first_token[turn] = ready_at + decode.steps_s(min(1, tokens[turn]), context[turn])
        completion[turn] = served[turn] = ready_at + decode.steps_s(tokens[turn], context[turn])
        heapq.heappush(events, (ready_at, _READY, turn))
        heapq.heappush(events, (served[turn], _COMPLETE, turn))

    def look_ahead(now: float) -> None:
        nonlocal looked_ahead
        turn = upcoming
        if turn >= turns or turn == looked_ahead or not decoding or (prefetch.known == "arrived" and arrival[turn] > now):
            return
        looked_ahead = turn
        useful = None if prefetch.candidates is None else prefetch.candidates[turn]
        blocks = fetched[turn] if useful is None else len(useful)
        if prefetch.within_window:
            blocks = inward.fits(blocks, now, min(served.values()))
        if blocks:
            prefetched[turn] = blocks
            prefetched_used[turn] = blocks if useful is None else int(np.count_nonzero(useful[:blocks]))
            landed[turn] = inward.submit(turn, blocks, now, prefetched=True)

    while events:
        now, kind, turn = heapq.heappop(events)
        if kind == _READY:
            decoding.add(turn)
        elif kind == _COMPLETE:
            decoding.discard(turn)
            del served[turn]
        else:
            waiting.append(turn)
        while waiting and len(served) < servers:
            upcoming += 1
            begin(waiting.popleft(), now)
        if prefetch:
            look_ahead(now)

    return Run(
        work,
        np.array(arrival),
        start,
        ready,
        first_token,
        completion,
        stall,
        fetch_wait,
        prefetched,
        prefetched_used,
        inward.transfers(start),
        out.transfers(completion),
        (link.bandwidth_gbps, (outward or link).bandwidth_gbps),
        decode.block_bytes,
        servers,
    )


def _require_candidates(work: Work, prefetch: Prefetch | None) -> None:
    if prefetch is None or prefetch.candidates is None:
        return
    if len(prefetch.candidates) != len(work.session):
        raise ValueError(f"candidates: expected {len(work.session)} turns, found {len(prefetch.candidates)}")
    for turn, (useful, fetched) in enumerate(zip(prefetch.candidates, work.fetched.tolist(), strict=True)):
        if np.count_nonzero(useful) > fetched:
            raise ValueError(f"candidates of turn {turn}: {np.count_nonzero(useful)} are useful, the turn fetches {fetched}")


def sweep(
    work: Work,
    arrivals_s: np.ndarray,
    bandwidths_gbps: Sequence[float] = BANDWIDTHS_GBPS,
    *,
    setup_us: float = 0.3,
    counted_from: int = 0,
    decode: Decode | None = None,
    servers: int = 1,
    overlap: bool = False,
    prefetch: Prefetch | None = None,
) -> list[dict[str, int | float | bool | None]]:
    """One summary a bandwidth, both directions alike. The tier's bandwidth is an assumption, so it is a range, never one number.

    Raises
    ------
    ValueError
        If there are fewer than two different bandwidths.
    """
    if len(set(bandwidths_gbps)) < 2:
        raise ValueError(f"bandwidths_gbps {list(bandwidths_gbps)}: expected a range of two or more")
    rows = []
    for bandwidth_gbps in bandwidths_gbps:
        link = Link(bandwidth_gbps, setup_us)
        run = replay(work, arrivals_s, link, decode, servers=servers, overlap=overlap, prefetch=prefetch)
        rows.append({"bandwidth_gbps": bandwidth_gbps, "setup_us": setup_us, **run.summary(counted_from)})
    return rows


def compare_prefetch(
    work: Work,
    arrivals_s: np.ndarray,
    rules: Mapping[str, Prefetch],
    bandwidths_gbps: Sequence[float] = BANDWIDTHS_GBPS,
    *,
    setup_us: float = 0.3,
    counted_from: int = 0,
    decode: Decode | None = None,
    servers: int = 1,
    overlap: bool = False,
) -> list[dict[str, int | float | str | bool | None]]:
    """Summaries of each rule at each bandwidth, ``none`` first, with ``stall_saved_ms`` [ms a turn] against it.

    Raises
    ------
    ValueError
        As :func:`sweep`.
    """
    asked = {"setup_us": setup_us, "counted_from": counted_from, "decode": decode, "servers": servers, "overlap": overlap}
    none = sweep(work, arrivals_s, bandwidths_gbps, **asked)
    rows = []
    for rule, prefetch in {"none": None, **rules}.items():
        swept = none if prefetch is None else sweep(work, arrivals_s, bandwidths_gbps, **asked, prefetch=prefetch)
        for without, row in zip(none, swept, strict=True):
            rows.append({"rule": rule, **row, "stall_saved_ms": without["stall_ms_mean"] - row["stall_ms_mean"]})
    return rows
