"""What it costs to keep the state of blocks: lookup, touch, evict and readmit on the 64-byte records, by policy and size of the table.

What is timed is :class:`kvtier.blocks.managed.Managed`: many blocks a call, compiled, with the policy's order structure. An operation
begins at a block's identity and ends with its record, its slot and the order renewed; payloads do not move. ``python`` is the path of one
block a call, :class:`kvtier.blocks.store.Store`, which has no order of its own: lookup and touch alone.

No cache is flattered: blocks are drawn at random among those in HBM, with replacement and anew for each timing, their identities are
computed and not read from the table, and what is readmitted was evicted a while before. A table that fits in a cache is in it after the
first few of a timing's operations, though, so small tables show what a step costs when the last one was not long ago.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log10
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numba import njit

from kvtier.audit.physical_bound import Checked
from kvtier.audit.timing import relative_times, resolved, steady
from kvtier.blocks import managed
from kvtier.blocks.arena import Slots
from kvtier.blocks.managed import POLICIES, Managed
from kvtier.blocks.record import NO_SLOT, RECORD, Tier, identity_of
from kvtier.blocks.store import Store, open_store
from kvtier.blocks.table import STATE_BYTES, Table
from kvtier.errors import InputError
from kvtier.kit.machine import Machine
from kvtier.kit.parts import Outcome, Progress, Step
from kvtier.kit.timing import tick_s, time_points, timed
from kvtier.measure import kept

BLOCKS = (1_000, 8_192, 10_000, 100_000, 1_000_000, 10_000_000)
"""8,192 blocks are one context of 128K tokens."""

OPERATIONS = ("lookup", "touch", "evict", "readmit")
PYTHON = "python"
PYTHON_OPERATIONS = ("lookup", "touch")

ALPHA = 0.05
"""Weight of EMA's newest touch; what it is does not change the work."""

TURNS_BEFORE = 4096
"""Turns over which the last touches of a new table's blocks lie."""

ORDER_BYTES = {"lru": 8, "lfu": 24, "ema": 24}
SLOT_BYTES = 4

PAYLOAD_BYTES = 64

MIX = 0x9E3779B97F4A7C15
"""Odd, so that no two numbers share a first word: 2^64 over the golden ratio."""

CHUNK = 1 << 18
"""Blocks that are entered at a time."""


def identities_of(numbers: np.ndarray) -> np.ndarray:
    """Identities of numbered blocks.

    Parameters
    ----------
    numbers : ndarray of int64, shape (blocks,)

    Returns
    -------
    ndarray of int64, shape (blocks, 2)
        Computed, so that no record is read for them; the second word is the number.
    """
    words = np.empty((len(numbers), 2), dtype=np.int64)
    words[:, 0] = (numbers.astype(np.uint64) * np.uint64(MIX)).view(np.int64)
    words[:, 1] = numbers
    return words


def made_table(blocks: int, seed: int) -> Table:
    """A full table of blocks that are in HBM, with states such as a while of use leaves.

    Parameters
    ----------
    blocks : int
    seed : int
    """
    rng = np.random.default_rng([seed, blocks])
    table = Table(blocks)
    for first in range(0, blocks, CHUNK):
        numbers = np.arange(first, min(first + CHUNK, blocks))
        records = np.zeros(len(numbers), dtype=RECORD)
        records.view(np.int64).reshape(-1, RECORD.itemsize // 8)[:, :2] = identities_of(numbers)
        records["touched"] = rng.integers(0, TURNS_BEFORE, len(numbers))
        records["count"] = rng.geometric(0.2, len(numbers))
        records["score"] = rng.uniform(ALPHA, 1, len(numbers))
        records["slot"] = NO_SLOT
        records["slot"][:, Tier.HBM] = numbers
        table.extend(records)
    return table


def made(blocks: int, policy: managed.PolicyName, seed: int) -> Managed:
    """A managed table, HBM full."""
    slots = Slots("HBM", blocks, PAYLOAD_BYTES)
    slots.vacate(np.empty(0, dtype=np.int32))
    return Managed(made_table(blocks, seed), slots, policy, ALPHA)


# The clock is read inside compiled loops: an interval may be far shorter than a call from Python.

_clock_gettime = ctypes.CDLL(None).clock_gettime
_clock_gettime.argtypes, _clock_gettime.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_int
_MONOTONIC = time.CLOCK_MONOTONIC

# Not kept on disk: these call functions of other modules, and one of the C library.
_compiled = njit(_nrt=False)


class Clock(NamedTuple):
    """Where the system writes seconds and nanoseconds, and the address of that."""

    reading: np.ndarray
    address: int

    @classmethod
    def made(cls) -> Clock:
        """A clock for compiled functions."""
        reading = np.zeros(2, dtype=np.int64)
        return cls(reading, reading.ctypes.data)


@_compiled
def _now_ns(clock):
    _clock_gettime(_MONOTONIC, clock.address)
    return clock.reading[0] * 1_000_000_000 + clock.reading[1]


@_compiled
def _read_clock(clock, readings_ns):
    for position in range(len(readings_ns)):
        readings_ns[position] = _now_ns(clock)


@_compiled
def _lookup_ns(parts, identities, tiers, clock):
    start = _now_ns(clock)
    managed.lookup(parts, identities, tiers)
    return _now_ns(clock) - start


@_compiled
def _touch_ns(kind, alpha, parts, identities, now, clock):
    start = _now_ns(clock)
    left = managed.touch(kind, alpha, parts, identities, now)
    return -1 if left else _now_ns(clock) - start


@_compiled
def _replace_ns(kind, alpha, parts, reserve, victims, untimed, timed, now, clock, sums_ns):
    """Pass after pass, evict as many as the reserve holds, readmit the reserve, and let the victims be it; whether all went well.

    Free slots are those of the reserve: an eviction doubles them, a readmission takes the upper half.
    """
    sums_ns[:] = 0
    blocks = len(reserve)
    for number in range(untimed + timed):
        start = _now_ns(clock)
        evicted = managed.evict(kind, parts, blocks, victims)
        middle = _now_ns(clock)
        left = managed.readmit(kind, alpha, parts, 2 * blocks, reserve, now)
        stop = _now_ns(clock)
        if evicted != blocks or left:
            return False
        for position in range(blocks):
            reserve[position, 0], reserve[position, 1] = victims[position, 0], victims[position, 1]
        if number >= untimed:
            sums_ns[0] += middle - start
            sums_ns[1] += stop - middle
    return True


class Readings(NamedTuple):
    """What the compiled clock resolves, and what a reading costs [s]."""

    tick_s: float
    reading_s: float


def readings(clock: Clock, count: int = 20_001) -> Readings:
    """Smallest and median step between readings that follow one another."""
    readings_ns = np.empty(count, dtype=np.int64)
    _read_clock(clock, readings_ns)
    return Readings(tick_s(count, iter(readings_ns.tolist()).__next__), float(np.median(np.diff(readings_ns))) * 1e-9)


class Point(NamedTuple):
    """What one timing is of."""

    operation: str
    policy: str
    blocks: int


class WentWrong(InputError):
    """A timed operation that did not do what it should: its time means nothing."""


class Bench:
    """A managed table of one size and policy, and what its timings need.

    Parameters
    ----------
    blocks : int
    policy : {'lru', 'lfu', 'ema'}
    operations : int
        Of each kind in a timing; evictions and readmissions come in passes over a quarter of a small table, four times as many in all.
    seed : int
    clock : Clock
    reading_s : float
        Cost of a reading of the clock, which is taken off each interval [s].
    """

    def __init__(self, blocks: int, policy: managed.PolicyName, operations: int, seed: int, clock: Clock, reading_s: float) -> None:
        self.table = made(blocks, policy, seed)
        self.blocks, self.operations, self._clock, self._reading_s = blocks, operations, clock, reading_s
        self._rng = np.random.default_rng([seed, blocks, self.table.kind])
        self._now = TURNS_BEFORE
        self._reserve = self.table.evict(min(blocks // 4, operations))
        self._victims = np.empty_like(self._reserve)
        self._resident = np.ones(blocks, dtype=bool)
        self._resident[self._reserve[:, 1]] = False
        self.passes = 1 if len(self._reserve) == operations else ceil(4 * operations / len(self._reserve))
        """Passes over the reserve that a timing of evictions and readmissions is the sum of."""
        self._readmit_s = 0.0

    @property
    def replaced(self) -> int:
        """Evictions, and readmissions, in a timing."""
        return self.passes * len(self._reserve)

    def time(self, operation: str) -> float:
        """Time of a timing's operations [s]. A readmission is timed with the eviction before it.

        Raises
        ------
        WentWrong
            If an operation failed.
        """
        self._now += 1
        if operation == "lookup":
            return self._warm(self._lookup)
        if operation == "touch":
            return self._warm(self._touch)
        if operation == "evict":
            evict_s, self._readmit_s = self._replace()
            return evict_s
        return self._readmit_s

    def _warm(self, run: Callable[[np.ndarray], float]) -> float:
        # What a small table's first operations find depends on what was timed before it.
        if self.blocks <= self.operations:
            run(self._drawn())
        return run(self._drawn())

    def _drawn(self) -> np.ndarray:
        numbers = self._rng.integers(0, self.blocks, self.operations)
        while len(absent := np.flatnonzero(~self._resident[numbers])):
            numbers[absent] = self._rng.integers(0, self.blocks, len(absent))
        return identities_of(numbers)

    def _lookup(self, identities: np.ndarray) -> float:
        tiers = np.empty(len(identities), dtype=np.int8)
        elapsed_ns = _lookup_ns(self.table.parts, identities, tiers, self._clock)
        if tiers.any():
            raise WentWrong("metadata", f"lookup in {self.blocks} blocks", f"tier {tiers.max()}", "HBM, where all of them are")
        return elapsed_ns * 1e-9 - self._reading_s

    def _touch(self, identities: np.ndarray) -> float:
        elapsed_ns = _touch_ns(self.table.kind, ALPHA, self.table.parts, identities, self._now, self._clock)
        if elapsed_ns < 0:
            raise WentWrong("metadata", f"touch in {self.blocks} blocks", "an unknown block", "known ones")
        return elapsed_ns * 1e-9 - self._reading_s

    def _replace(self) -> tuple[float, float]:
        sums_ns = np.empty(2, dtype=np.int64)
        self._resident[self._reserve[:, 1]] = True
        arguments = (self.table.kind, ALPHA, self.table.parts, self._reserve, self._victims)
        if not _replace_ns(*arguments, int(self.passes > 1), self.passes, self._now, self._clock, sums_ns):
            raise WentWrong("metadata", f"evictions from {self.blocks} blocks", "fewer victims or slots", f"{len(self._reserve)} a pass")
        self._resident[self._reserve[:, 1]] = False
        evict_s, readmit_s = (sums_ns * 1e-9 - self.passes * self._reading_s).tolist()
        return evict_s, readmit_s


class PythonBench:
    """A store whose blocks are all in HBM, asked from Python one block a call.

    Parameters
    ----------
    blocks : int
    operations : int
        Calls in a timing.
    seed : int
    folder : str or Path
        For the store's files, which stay empty.
    """

    def __init__(self, blocks: int, operations: int, seed: int, folder: str | Path) -> None:
        self.store: Store = open_store(folder, PAYLOAD_BYTES, blocks, 0, 0)
        self._identities = [identity_of(*words) for words in identities_of(np.arange(blocks)).tolist()]
        for identity in self._identities:
            self.store.put(identity, bytes(PAYLOAD_BYTES))
        self.blocks, self.operations = blocks, operations
        self._rng = np.random.default_rng([seed, blocks])
        self._now = 0

    def time(self, operation: str) -> float:
        """Time of a timing's calls, the loop around them included [s]."""
        drawn = [self._identities[number] for number in self._rng.integers(0, self.blocks, self.operations).tolist()]
        self._now += 1
        return timed(lambda: self._lookups(drawn) if operation == "lookup" else self._touches(drawn))

    def _lookups(self, identities: list[bytes]) -> None:
        for identity in identities:
            self.store.lookup(identity)

    def _touches(self, identities: list[bytes]) -> None:
        for identity in identities:
            self.store.touch(identity, self._now, 0.5)

    def close(self) -> None:
        """Close the store's files."""
        self.store.close()


# Bytes of a table, as allocated and as a fresh process grows by them.

LARGEST_ORDER: managed.PolicyName = "ema"


def resident_bytes() -> int:
    """Memory of this process that is there [B]: ``Rss`` of ``/proc/self/smaps_rollup``, which is exact where ``statm`` is not.

    Raises
    ------
    InputError
        If the system does not say.
    """
    source = Path("/proc/self/smaps_rollup")
    try:
        lines = source.read_text().splitlines()
    except OSError as error:
        raise InputError(source, "file", error.strerror, "a Linux that says what of a process is in memory") from None
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


def print_growth(sizes: list[int], seed: int) -> None:
    """For a process of its own: print JSON of (blocks, bytes allocated, growth of the process [B]) for each size."""
    made(CHUNK // 1024, LARGEST_ORDER, seed)
    rows = []
    for blocks in sizes:
        before = resident_bytes()
        table = made(blocks, LARGEST_ORDER, seed)
        rows.append((blocks, table.nbytes, resident_bytes() - before))
        del table
    print(json.dumps(rows))


def table_sizes(sizes: list[int], seed: int) -> pl.DataFrame:
    """Bytes of tables with the largest order, each measured in a process that holds no other.

    Parameters
    ----------
    sizes : list of int
        Blocks.
    seed : int

    Returns
    -------
    polars.DataFrame
        As :data:`kvtier.measure.kept.TABLE_SIZE`.

    Raises
    ------
    InputError
        If the process fails, with the last line of what it said.
    """
    code = f"from kvtier.kit.metadata import print_growth; print_growth({sizes!r}, {seed!r})"
    # Freed memory goes back to the system at once: else a table may lie in what the one before has left.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    if process.returncode:
        said = process.stderr.strip().splitlines()
        raise InputError("table size", "process", said[-1] if said else f"exit status {process.returncode}", "one that measures its growth")
    return kept.TABLE_SIZE.check(pl.DataFrame(json.loads(process.stdout), schema=list(kept.TABLE_SIZE.columns), orient="row"))


@dataclass
class Metadata:
    """Cost of keeping the state of blocks.

    Parameters
    ----------
    blocks : tuple of int
        Sizes of tables.
    python_blocks : int
        Size of the store that is asked from Python.
    operations : int
        Of each kind in a timing.
    python_operations : int
        Calls from Python in a timing.
    repetitions : int
    seed : int
    """

    blocks: tuple[int, ...] = BLOCKS
    python_blocks: int = 10_000
    operations: int = 32_768
    python_operations: int = 4_096
    repetitions: int = 15
    seed: int = 1
    name: str = "metadata"

    @classmethod
    def quick(cls) -> Metadata:
        """A try of some seconds: tables of a million blocks at most."""
        return cls(blocks=tuple(blocks for blocks in BLOCKS if blocks <= 10**6), repetitions=3)

    def plan(self, machine: Machine) -> list[Step]:
        """As :meth:`kvtier.kit.parts.Part.plan`.

        Raises
        ------
        InputError
            If a setting is out of range.
        """
        self._check()
        largest, whole = max(self.blocks), sum(self.blocks)
        in_full = whole * sum(STATE_BYTES + SLOT_BYTES + ORDER_BYTES[policy] + 1 for policy in POLICIES)
        sizes = f"{min(self.blocks):,} to {largest:,} blocks"
        nanoseconds = sum(_expected_ns(blocks) * self.operations * len(POLICIES) for blocks in self.blocks)
        return [
            Step(f"bytes of a table, {sizes}", 3 + 6e-7 * whole, int(largest * (IN_FULL_BYTES + MAKING_BYTES))),
            Step(f"tables of {sizes}, {len(POLICIES)} policies", 12 + 7e-7 * whole * len(POLICIES), int(in_full + largest * MAKING_BYTES)),
            Step(
                f"{', '.join(OPERATIONS)}: {self.operations:,} at a time, {self.repetitions} repetitions",
                (self.repetitions + 1) * (nanoseconds * 1e-9 + self.python_operations * 2e-5),
                int(in_full),
            ),
        ]

    def run(self, machine: Machine, progress: Progress) -> Outcome:
        """As :meth:`kvtier.kit.parts.Part.run`.

        Raises
        ------
        WentWrong
            If an operation failed.
        InputError
            If a timing is short against the clock, or timings drift.
        """
        self._check()
        source = f"metadata of {machine.name}"
        progress("bytes of a table", 0.0)
        sizes = table_sizes(sorted(set(self.blocks)), self.seed)
        clock = Clock.made()
        _read_clock(clock, np.empty(1, dtype=np.int64))
        resolution = readings(clock)
        benches: dict[tuple[str, int], Bench] = {}
        for blocks in self.blocks:
            for policy in POLICIES:
                progress(f"table of {blocks:,} blocks, {policy}", 0.1 + 0.15 * len(benches) / (len(self.blocks) * len(POLICIES)))
                benches[policy, blocks] = Bench(blocks, policy, self.operations, self.seed, clock, resolution.reading_s)
        with tempfile.TemporaryDirectory() as folder:
            python = PythonBench(self.python_blocks, self.python_operations, self.seed, folder)
            try:
                timings = time_points(
                    [Point(operation, policy, blocks) for policy, blocks in benches for operation in OPERATIONS]
                    + [Point(operation, PYTHON, self.python_blocks) for operation in PYTHON_OPERATIONS],
                    self.repetitions,
                    lambda point: (python if point.policy == PYTHON else benches[point.policy, point.blocks]).time(point.operation),
                    lambda point, share: progress(f"{point.operation}, {point.policy}, {point.blocks:,} blocks", 0.25 + 0.75 * share),
                )
            finally:
                python.close()

        def operations(point: Point) -> int:
            if point.policy == PYTHON:
                return self.python_operations
            return benches[point.policy, point.blocks].replaced if point.operation in ("evict", "readmit") else self.operations

        rows = kept.METADATA.check(
            pl.DataFrame(
                [
                    {
                        **timing.point._asdict(),
                        "repetition": timing.repetition,
                        "operations": operations(timing.point),
                        "seconds": timing.seconds,
                    }
                    for timing in timings
                ]
            )
        )
        passes = {blocks: benches[POLICIES[0], blocks].passes for blocks in self.blocks}
        checked = [
            *_resolved(rows, passes, resolution.tick_s, tick_s(), source),
            steady(relative_times(rows, Point._fields, source=source), source),
        ]
        about = {
            "alpha": ALPHA,
            "repetitions": self.repetitions,
            "seed": self.seed,
            "tick_s": resolution.tick_s,
            "reading_s": resolution.reading_s,
            "passes": {str(blocks): number for blocks, number in passes.items()},
            "drawn": "blocks in HBM, at random with replacement, anew for each timing; identities computed, not read from the table",
            "pages": "of the system's usual size",
            "bytes_per_block": {
                "record": RECORD.itemsize,
                "index": STATE_BYTES - RECORD.itemsize,
                "free slot": SLOT_BYTES,
                **{f"order of {policy}": size for policy, size in ORDER_BYTES.items()},
            },
            "table_size": f"records, index, free slots and the order of {LARGEST_ORDER}, the largest; in a process that holds no other; "
            "of a full HBM the list of free slots has not been touched",
            "python": "kvtier.blocks.store.Store, one block a call, which has no order: no evict, no readmit; the loop around it included",
        }
        return Outcome({"metadata": rows, "table_size": sizes}, about, checked)

    def _check(self) -> None:
        for blocks in (*self.blocks, self.python_blocks):
            if not 8 <= blocks < 2**30:
                raise InputError("metadata", "blocks", blocks, "8 to 2^30 - 1")
        if len(set(self.blocks)) != len(self.blocks) or not self.blocks:
            raise InputError("metadata", "blocks", self.blocks, "different sizes, at least one")
        for field in ("operations", "python_operations"):
            if getattr(self, field) < 1:
                raise InputError("metadata", field, getattr(self, field), "1 or more")
        if self.repetitions < 3:
            raise InputError("metadata", "repetitions", self.repetitions, "3 or more: drift shows in no fewer")


IN_FULL_BYTES = STATE_BYTES + SLOT_BYTES + max(ORDER_BYTES.values())

MAKING_BYTES = 48
"""What making an order takes beside it, a block [B]: rows, times, ranks, and what they are sorted by."""


def _expected_ns(blocks: int) -> float:
    """Time of a lookup, a touch, an eviction and a readmission, with what is not timed of them [ns]: measured on 2 cores at 10 GB/s."""
    return 1_100 + 1_400 * max(0.0, log10(blocks / 10_000))


def _resolved(rows: pl.DataFrame, passes: dict[int, int], clock_tick_s: float, python_tick_s: float, source: str) -> list[Checked]:
    """Hold the shortest timing of each kind against its clock.

    A timing of p passes is the sum of p intervals, from each of which the cost of a reading was taken. What is left of their errors is
    of either sign, at most a tick at each end, so that p of them add up to √p ticks.
    """
    of_python = pl.col("policy") == PYTHON
    summed = pl.col("operation").is_in(["evict", "readmit"])
    ticks_s = (
        pl.when(of_python).then(python_tick_s).when(summed).then(clock_tick_s * pl.col("blocks").replace_strict(passes, default=1).sqrt())
    )
    shortest = (
        rows.with_columns(ticks_s.otherwise(clock_tick_s).alias("tick_s"))
        .with_columns((pl.col("seconds") / pl.col("tick_s")).alias("ticks"))
        .sort("ticks")
        .group_by("operation", maintain_order=True)
        .first()
    )
    return [resolved(row["seconds"], row["tick_s"], f"{row['operation']}, {source}") for row in shortest.iter_rows(named=True)]
