"""Cost of folding many score streams into one score a block, as a scheduler with one priority a block has to at each decode step.

An attention of L layers and H KV heads yields L·H streams: 80 × 8 = 640. With one score a stream and block, the folds are ``max`` and
``sum``; with one a stream and token, which reads 16 times as much, ``max of tokens`` and ``sum of tokens``. The loops are compiled. Each
thread has columns of its own, so that no two write one block, and reads each score once.

Scores are small whole numbers, so that sums are exact in any order and every result can be held against numpy's. They are float32, or
bfloat16, which reads half as much and becomes float32 by a shift; float16 is left out, as numba has no such type on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numba
import numpy as np
import polars as pl
from numba import prange

from kvtier.audit.physical_bound import Bandwidth, Checked, physical_bound
from kvtier.audit.timing import relative_times, resolved, steady
from kvtier.errors import InputError
from kvtier.kit.machine import Machine
from kvtier.kit.parts import Outcome, Progress, Step
from kvtier.kit.timing import tick_s, time_points, timed
from kvtier.measure import kept
from kvtier.simulate.compiled import compiled
from kvtier.units import GB
from kvtier.workload.turns import BLOCK_TOKENS

FOLDS = ("max", "sum", "max of tokens", "sum of tokens")

ELEMENT_BYTES = {"float32": 4, "bfloat16": 2}

LARGEST_SCORE = 255
"""bfloat16 holds all whole numbers up to 256."""

MOST_STREAMS = 2**24 // (BLOCK_TOKENS * LARGEST_SCORE)
"""float32 holds all whole numbers up to 2^24: no sum over so many streams of a block's tokens exceeds that."""

MOST_COLUMNS, LEAST_COLUMNS = 1024, 64
"""Scores of a stream that are folded before the next one's: what they are folded into stays in the first-level cache; lines are whole."""

BEYOND_CACHE = 4
"""From this multiple of the last-level cache on, what a fold reads is held against the bus."""


class WrongFold(InputError):
    """A fold that did not compute what numpy does: its time means nothing."""


def _fold_max(bits: np.ndarray, group: int, columns: int, folded: np.ndarray) -> None:
    width = bits.shape[1]
    for chunk in prange((width + columns - 1) // columns):
        first, stop = chunk * columns, min(chunk * columns + columns, width)
        largest = np.zeros(stop - first, dtype=bits.dtype)
        for stream in range(bits.shape[0]):
            # A slice of its own: with two indices the loop would not be vectorised.
            of_stream = bits[stream, first:stop]
            for i in range(stop - first):
                largest[i] = max(largest[i], of_stream[i])
        for block in range((stop - first) // group):
            folded[first // group + block] = largest[block * group : (block + 1) * group].max()


def _fold_sum(scores: np.ndarray, group: int, columns: int, folded: np.ndarray) -> None:
    width = scores.shape[1]
    for chunk in prange((width + columns - 1) // columns):
        first, stop = chunk * columns, min(chunk * columns + columns, width)
        total = np.zeros(stop - first, dtype=np.float32)
        for stream in range(scores.shape[0]):
            of_stream = scores[stream, first:stop]
            for i in range(stop - first):
                total[i] += of_stream[i]
        for block in range((stop - first) // group):
            folded[first // group + block] = total[block * group : (block + 1) * group].sum()


def _fold_sum_of_bfloat16(scores: np.ndarray, group: int, columns: int, folded: np.ndarray) -> None:
    width = scores.shape[1]
    for chunk in prange((width + columns - 1) // columns):
        first, stop = chunk * columns, min(chunk * columns + columns, width)
        total, bits = np.zeros(stop - first, dtype=np.float32), np.empty(stop - first, dtype=np.uint32)
        widened = bits.view(np.float32)
        for stream in range(scores.shape[0]):
            of_stream = scores[stream, first:stop]
            for i in range(stop - first):
                bits[i] = np.uint32(of_stream[i]) << np.uint32(16)
            for i in range(stop - first):
                total[i] += widened[i]
        for block in range((stop - first) // group):
            folded[first // group + block] = total[block * group : (block + 1) * group].sum()


_MAX, _SUM, _SUM_OF_BFLOAT16 = (compiled(kernel, parallel=True) for kernel in (_fold_max, _fold_sum, _fold_sum_of_bfloat16))


def bfloat16_bits(scores: np.ndarray) -> np.ndarray:
    """The upper half of each float32, uint16: exact for what bfloat16 holds."""
    return (scores.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def fold(scores: np.ndarray, how: str, threads: int = 1) -> np.ndarray:
    """Fold score streams into one score a block.

    Parameters
    ----------
    scores : ndarray of float32, or of uint16 (bits of bfloat16), shape (streams, blocks) or (streams, tokens)
        C-contiguous; neither negative nor NaN. Tokens are those of whole blocks of 16.
    how : str
        One of :data:`FOLDS`.
    threads : int
        At most what numba was started with, which is the number of cores unless the environment says otherwise.

    Returns
    -------
    ndarray of float32, shape (blocks,)
        The maximum is exact; the sum is in float32, stream after stream.

    Raises
    ------
    InputError
        If the fold is not known, the threads are out of range, or tokens do not fill blocks.
    """
    if how not in FOLDS:
        raise InputError("folding", "fold", repr(how), f"one of {', '.join(FOLDS)}")
    if not 1 <= threads <= numba.config.NUMBA_NUM_THREADS:
        raise InputError("folding", "threads", threads, f"1 to {numba.config.NUMBA_NUM_THREADS}")
    group = BLOCK_TOKENS if how.endswith("of tokens") else 1
    width = scores.shape[1]
    if width % group:
        raise InputError("folding", "tokens", width, f"a multiple of {group}, a block")
    # As many chunks as there are threads, if there are so many scores.
    columns = min(MOST_COLUMNS, max(LEAST_COLUMNS, -(-width // (threads * LEAST_COLUMNS)) * LEAST_COLUMNS))
    narrow = scores.dtype == np.uint16
    if how.startswith("max"):
        # Bits of numbers that are not negative order as the numbers do.
        kernel, scores = _MAX, scores if narrow else scores.view(np.int32)
    else:
        kernel = _SUM_OF_BFLOAT16 if narrow else _SUM
    folded = np.empty(width // group, dtype=scores.dtype if kernel is _MAX else np.float32)
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        kernel(scores, group, columns, folded)
    finally:
        numba.set_num_threads(before)
    if folded.dtype == np.uint16:
        folded = folded.astype(np.uint32) << np.uint32(16)
    return folded.view(np.float32)


class Point(NamedTuple):
    """What one timing is of."""

    fold: str
    dtype: str
    threads: int


class Scores:
    """Streams of scores for every fold and type, and what each fold has to yield.

    Parameters
    ----------
    streams, blocks : int
    seed : int
    """

    def __init__(self, streams: int, blocks: int, seed: int) -> None:
        self.expected: dict[str, np.ndarray] = {}
        self._scores: dict[tuple[int, str], np.ndarray] = {}
        rng = np.random.default_rng(seed)
        for group, folds in ((1, FOLDS[:2]), (BLOCK_TOKENS, FOLDS[2:])):
            wide = np.empty((streams, blocks * group), dtype=np.float32)
            narrow = np.empty(wide.shape, dtype=np.uint16)
            for stream in range(streams):
                wide[stream] = rng.integers(0, LARGEST_SCORE + 1, blocks * group)
                narrow[stream] = bfloat16_bits(wide[stream])
            self._scores[group, "float32"], self._scores[group, "bfloat16"] = wide, narrow
            for how, over in zip(folds, (np.max, np.sum), strict=True):
                self.expected[how] = over(over(wide, axis=0).reshape(blocks, group), axis=1)

    def of(self, how: str, dtype: str) -> np.ndarray:
        """Scores that a fold reads."""
        return self._scores[BLOCK_TOKENS if how.endswith("of tokens") else 1, dtype]

    def time(self, point: Point, folded_by: Callable[[np.ndarray, str, int], np.ndarray] = fold) -> float:
        """Time of one fold [s]; its result is checked outside the clock.

        Raises
        ------
        WrongFold
            If it is not numpy's.
        """
        results: list[np.ndarray] = []
        scores = self.of(point.fold, point.dtype)
        seconds = timed(lambda: results.append(folded_by(scores, point.fold, point.threads)))
        wrong = np.flatnonzero(results[0] != self.expected[point.fold])
        if len(wrong):
            found, expected = results[0][wrong[0]], self.expected[point.fold][wrong[0]]
            where = f"{point.fold}, {point.dtype}, {point.threads} threads, block {wrong[0]}"
            raise WrongFold("folding", where, f"{found:g}", f"{expected:g}, as numpy computes")
        return seconds


@dataclass
class Folding:
    """Cost of folding score streams into one score a block.

    Parameters
    ----------
    streams : int
        640: 80 layers of 8 KV heads.
    blocks : int
        8,192: a context of 128K tokens.
    threads : tuple of int, optional
        By default powers of two and the number of cores.
    repetitions : int
    seed : int
    """

    streams: int = 640
    blocks: int = 8_192
    threads: tuple[int, ...] | None = None
    repetitions: int = 15
    seed: int = 1
    name: str = "folding"

    @classmethod
    def quick(cls) -> Folding:
        """A try of some seconds."""
        return cls(repetitions=3)

    def plan(self, machine: Machine) -> list[Step]:
        """As :meth:`kvtier.kit.parts.Part.plan`.

        Raises
        ------
        InputError
            If a setting is out of range.
        """
        threads = self._threads(machine)
        scores = self.streams * self.blocks * (1 + BLOCK_TOKENS)
        # Both types are read by two folds, and written once; measured on 2 cores at 5 GB/s, compilation included.
        seconds = 20 + scores * 2e-8 + (self.repetitions + 1) * len(threads) * 2 * scores * sum(ELEMENT_BYTES.values()) / 5e9
        says = f"{', '.join(FOLDS)}: {self.streams:,} streams, {self.blocks:,} blocks, {', '.join(map(str, threads))} threads"
        return [Step(says, seconds, scores * sum(ELEMENT_BYTES.values()))]

    def run(self, machine: Machine, progress: Progress) -> Outcome:
        """As :meth:`kvtier.kit.parts.Part.run`.

        Raises
        ------
        WrongFold
            If a fold computes something else.
        AboveTheBus
            If scores that no cache holds are read faster than the bus.
        InputError
            If timings are short against the clock, or drift.
        """
        threads = self._threads(machine)
        source = f"folding of {machine.name}"
        progress("scores", 0.0)
        scores = Scores(self.streams, self.blocks, self.seed)
        points = [Point(how, dtype, count) for how in FOLDS for dtype in ELEMENT_BYTES for count in threads]
        timings = time_points(
            points,
            self.repetitions,
            scores.time,
            lambda point, share: progress(f"{point.fold}, {point.dtype}, {point.threads} threads", 0.1 + 0.9 * share),
        )
        rows = kept.FOLDING.check(
            pl.DataFrame(
                [
                    {
                        **timing.point._asdict(),
                        "streams": self.streams,
                        "blocks": self.blocks,
                        "repetition": timing.repetition,
                        "seconds": timing.seconds,
                    }
                    for timing in timings
                ]
            )
        )
        read_bytes = {(how, dtype): scores.of(how, dtype).nbytes for how in FOLDS for dtype in ELEMENT_BYTES}
        checked = [
            resolved(rows["seconds"].min(), tick_s(), source),
            steady(relative_times(rows, Point._fields, source=source), source),
            *below_the_bus(rows, read_bytes, machine, source),
        ]
        about: dict[str, Any] = {
            "read_bytes": {f"{how}, {dtype}": size for (how, dtype), size in read_bytes.items()},
            "scores": f"whole numbers from 0 to {LARGEST_SCORE}; every result equal to numpy's",
            "repetitions": self.repetitions,
            "seed": self.seed,
            "threads_of": numba.threading_layer(),
            "left_out": {"float16": "numba has no such type on a CPU"}
            | ({} if machine.bus else {"physical bound": "the bandwidth of the memory bus is not known"}),
        }
        return Outcome({"folding": rows}, about, checked)

    def _threads(self, machine: Machine) -> tuple[int, ...]:
        if self.streams < 1 or self.blocks < 1:
            raise InputError("folding", "streams × blocks", f"{self.streams} × {self.blocks}", "1 or more of each")
        if self.streams > MOST_STREAMS:
            raise InputError("folding", "streams", self.streams, f"at most {MOST_STREAMS:,}: sums of more are not exact")
        if self.repetitions < 3:
            raise InputError("folding", "repetitions", self.repetitions, "3 or more: drift shows in no fewer")
        most = min(machine.cores, numba.config.NUMBA_NUM_THREADS)
        threads = self.threads or tuple(sorted({2**power for power in range(most.bit_length()) if 2**power <= most} | {most}))
        for count in threads:
            if not 1 <= count <= most:
                raise InputError("folding", "threads", count, f"1 to {most}")
        return threads


def below_the_bus(rows: pl.DataFrame, read_bytes: dict[tuple[str, str], int], machine: Machine, source: str) -> list[Checked]:
    """Hold the median and the fastest reading of scores that no cache holds against the bus.

    Parameters
    ----------
    rows : polars.DataFrame
        As :data:`kvtier.measure.kept.FOLDING`.
    read_bytes : dict
        What a fold of a type reads [B].
    machine : Machine
        Nothing is checked where its bus is not known.
    source : str
        Named in errors.

    Raises
    ------
    AboveTheBus
        If one is above it.
    """
    if machine.bus is None:
        return []
    found = []
    for (how, dtype, threads), each in rows.group_by(*Point._fields, maintain_order=True):
        size = read_bytes[how, dtype]
        if size >= BEYOND_CACHE * machine.last_level_cache_bytes:
            for which, seconds in (("median", median(each["seconds"])), ("fastest", each["seconds"].min())):
                found.append(Bandwidth(source, f"{how}, {dtype}, {threads} threads, {which}", size / seconds / GB))
    return physical_bound(found, machine.bus.gbps) if found else []
