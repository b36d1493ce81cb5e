"""Achieved bandwidth of memory by buffer size and threads: the kernels of STREAM.

J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", IEEE TCCA Newsletter, December 1995: copy and
triad, and here read and write as well. Arrays are float64 and hold small whole numbers, so that sums are exact in any order and every
result can be held against numpy's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil
from statistics import median
from threading import Barrier
from time import perf_counter_ns
from typing import Any, Protocol

import numpy as np
import polars as pl

from kvtier.audit.physical_bound import Bandwidth, Checked, physical_bound
from kvtier.audit.timing import relative_times, resolved, steady
from kvtier.errors import InputError
from kvtier.kit.machine import Bus, Machine
from kvtier.kit.memory import fresh, said
from kvtier.kit.parts import Outcome, Progress, Step
from kvtier.kit.timing import tick_s, time_points, timed
from kvtier.measure import kept
from kvtier.simulate.compiled import compiled
from kvtier.units import GB

ARRAYS_MOVED = {"read": 1, "write": 1, "copy": 2, "triad": 3}
"""Arrays that a pass of each kernel reads or writes: ``Σ x``, ``y = c``, ``y = x``, ``y = x + 3 z``."""

ELEMENT_BYTES = 8
LINE_ELEMENTS = 8
SCALE = 3.0

SIZES_OF_CACHE = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
"""Sizes of one array, as multiples of the last-level cache."""

BEYOND_CACHE = 4
"""From this multiple of the last-level cache on, a buffer is held against the bus."""

HEADROOM = 1.25
"""Passes are chosen for so much more than the least time, since a machine can be faster than when they were chosen."""

PERIOD_X, PERIOD_Z = 1021, 509
"""Primes: no power of two returns the same values, so a part that was copied to a wrong place shows."""


class WrongResult(InputError):
    """A kernel that did not compute what it should have: its time means nothing."""


def _read(x: np.ndarray, passes: int) -> float:
    total = 0.0
    for _ in range(passes):
        for i in range(x.size):
            total += x[i]
    return total


def _write(y: np.ndarray, first: float, passes: int) -> None:
    for p in range(passes):
        value = first + p
        for i in range(y.size):
            y[i] = value


def _copy(y: np.ndarray, x: np.ndarray, passes: int) -> None:
    for _ in range(passes):
        for i in range(y.size):
            y[i] = x[i]


def _triad(y: np.ndarray, x: np.ndarray, z: np.ndarray, scale: float, passes: int) -> None:
    for _ in range(passes):
        for i in range(y.size):
            y[i] = x[i] + scale * z[i]


# Sums may be taken in any order: without that, one addition would wait for the last, and the processor would be timed, not the memory.
_READ = compiled(_read, nogil=True, fastmath={"reassoc"})
_WRITE, _COPY, _TRIAD = (compiled(kernel, nogil=True) for kernel in (_write, _copy, _triad))


class Arrays(Protocol):
    """Three arrays somewhere, and the kernels over them."""

    def time(self, kernel: str, buffer_bytes: int, passes: int) -> float:
        """Time of so many passes over the first `buffer_bytes` of each array [s]; the result is checked outside the clock.

        Raises
        ------
        WrongResult
            If it is not the right one.
        """
        ...


@dataclass(frozen=True)
class Part:
    """What one thread works on: its part of the arrays ``x``, ``y`` and ``z``, first touched by it."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray

    @classmethod
    def touched(cls, elements: int) -> Part:
        """Allocate and fill; whoever calls has the pages near."""
        x, y, z = (fresh(elements * ELEMENT_BYTES).view(np.float64) for _ in range(3))
        x[:] = np.resize(np.arange(1, PERIOD_X + 1, dtype=np.float64), elements)
        z[:] = np.resize(np.arange(1, PERIOD_Z + 1, dtype=np.float64), elements)
        y[:] = -1
        return cls(x, y, z)

    def run(self, kernel: str, elements: int, passes: int) -> float:
        """Run a kernel over the first elements; the sum of ``read``, else 0."""
        x, y, z = self.x[:elements], self.y[:elements], self.z[:elements]
        if kernel == "read":
            return _READ(x, passes)
        if kernel == "write":
            _WRITE(y, 1.0, passes)
        elif kernel == "copy":
            _COPY(y, x, passes)
        else:
            _TRIAD(y, x, z, SCALE, passes)
        return 0.0

    def is_right(self, kernel: str, elements: int, passes: int, total: float) -> bool:
        """Whether the last :meth:`run` did what numpy does."""
        x, y, z = self.x[:elements], self.y[:elements], self.z[:elements]
        if kernel == "read":
            return total == passes * float(x.sum())
        if kernel == "write":
            return bool((y == passes).all())
        return bool(np.array_equal(y, x if kernel == "copy" else x + SCALE * z))


class Team:
    """Threads that stay: one a core, each on its own core where the system lets them be bound."""

    def __init__(self, threads: int) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else [None] * threads
        spread = [cores[index * len(cores) // threads] for index in range(threads)]
        self._workers = [ThreadPoolExecutor(1, initializer=_stay_on, initargs=(core,)) for core in spread]

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """Call `work` in every thread with its index, at the same time; the results by index."""
        running = [worker.submit(work, index) for index, worker in enumerate(self._workers)]
        return [each.result() for each in running]

    def close(self) -> None:
        """End the threads."""
        for worker in self._workers:
            worker.shutdown()


def _stay_on(core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})


class Host:
    """Arrays in memory, in parts by thread.

    Parameters
    ----------
    threads : int
    largest_bytes : int
        Size of each array, a multiple of a line of 64 B [B].
    """

    def __init__(self, threads: int, largest_bytes: int) -> None:
        self.threads = threads
        self._team = Team(threads)
        largest = [self._elements(largest_bytes, index) for index in range(threads)]
        self._parts: list[Part] = self._team.each(lambda index: Part.touched(max(largest[index], LINE_ELEMENTS)))

    def _elements(self, buffer_bytes: int, index: int) -> int:
        lines = buffer_bytes // (ELEMENT_BYTES * LINE_ELEMENTS)
        return LINE_ELEMENTS * ((index + 1) * lines // self.threads - index * lines // self.threads)

    def time(self, kernel: str, buffer_bytes: int, passes: int) -> float:
        """As :meth:`Arrays.time`: from the first thread's start to the last one's end."""
        elements = [self._elements(buffer_bytes, index) for index in range(self.threads)]
        ready = Barrier(self.threads)

        def clocked(index: int) -> tuple[int, int, float]:
            run = partial(self._parts[index].run, kernel, elements[index], passes)
            ready.wait()
            start = perf_counter_ns()
            total = run()
            return start, perf_counter_ns(), total

        self._team.each(lambda index: self._parts[index].run(kernel, elements[index], 1))
        starts, ends, totals = zip(*self._team.each(clocked), strict=True)
        right = self._team.each(lambda index: self._parts[index].is_right(kernel, elements[index], passes, totals[index]))
        if not all(right):
            raise WrongResult("stream", f"{kernel}, {said(buffer_bytes)}, thread {right.index(False)}", "a wrong result", "numpy's")
        return (max(ends) - min(starts)) * 1e-9

    def close(self) -> None:
        """End the threads; the memory goes with the object."""
        self._team.close()


class Device:
    """Arrays of PyTorch, on an accelerator or, to try the same code without one, on the CPU.

    Parameters
    ----------
    device : str
        As torch names it, ``cuda`` or ``cuda:1``; ``torch:cpu`` is the CPU.
    largest_bytes : int
        Size of each array [B].
    """

    def __init__(self, device: str, largest_bytes: int) -> None:
        import torch

        self._torch, self._device = torch, torch.device(device.removeprefix("torch:"))
        elements = largest_bytes // ELEMENT_BYTES
        count = torch.arange(elements, dtype=torch.float64, device=self._device)
        self._x, self._z = count % PERIOD_X + 1, count % PERIOD_Z + 1
        self._y = torch.full_like(count, -1)

    def time(self, kernel: str, buffer_bytes: int, passes: int) -> float:
        """As :meth:`Arrays.time`: from an idle device to an idle device."""
        elements = buffer_bytes // ELEMENT_BYTES
        x, y, z = self._x[:elements], self._y[:elements], self._z[:elements]
        run: dict[str, Callable[[int], Any]] = {
            "read": lambda p: x.sum(),
            "write": lambda p: y.fill_(p + 1),
            "copy": lambda p: y.copy_(x),
            "triad": lambda p: self._torch.add(x, z, alpha=SCALE, out=y),
        }
        one, last = run[kernel], None

        def all_passes() -> None:
            nonlocal last
            for p in range(passes):
                last = one(p)
            self.synchronise()

        one(0)
        self.synchronise()
        seconds = timed(all_passes)
        # On the device, since a transfer would take longer than the timing; but the sum by arithmetic, not by another sum of torch's.
        right = {
            "read": lambda: float(last) == float(sum_of_cycles(elements, PERIOD_X)),
            "write": lambda: bool((y == passes).all()),
            "copy": lambda: self._torch.equal(y, x),
            "triad": lambda: self._torch.equal(y, x + SCALE * z),
        }
        if not right[kernel]():
            raise WrongResult("stream", f"{kernel}, {said(buffer_bytes)} on {self._device}", "a wrong result", "what the kernel says")
        return seconds

    def synchronise(self) -> None:
        """Wait until the device is idle."""
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)

    def close(self) -> None:
        """Nothing: the memory goes with the object."""


def sum_of_cycles(elements: int, period: int) -> int:
    """Sum of the first `elements` numbers of 1, 2, …, `period`, 1, 2, … and so on."""
    cycles, rest = divmod(elements, period)
    return cycles * (period * (period + 1) // 2) + rest * (rest + 1) // 2


@dataclass
class Stream:
    """Bandwidth of memory by kernel, buffer size and threads.

    Parameters
    ----------
    buffers_bytes : tuple of int, optional
        Sizes of one array [B]; by default from a sixteenth of the last-level cache to eight times it.
    threads : tuple of int, optional
        By default powers of two and the number of cores; on an accelerator always 1, its one queue.
    repetitions : int
        Timings a point; memory is allocated anew for each, since bandwidth depends on which pages one gets.
    shortest_s : float
        What passes are chosen for: a timing lasts about a quarter longer [s].
    device : str, optional
        ``cpu``, by compiled loops, or a device of torch; by default ``cuda`` where the machine has an accelerator, else ``cpu``.
        ``torch:cpu`` runs torch's code for devices on the CPU, to try it.
    """

    buffers_bytes: tuple[int, ...] | None = None
    threads: tuple[int, ...] | None = None
    repetitions: int = 10
    shortest_s: float = 0.02
    device: str | None = None
    name: str = "stream"

    @classmethod
    def quick(cls) -> Stream:
        """A try of some seconds."""
        return cls(repetitions=3, shortest_s=0.005)

    def plan(self, machine: Machine) -> list[Step]:
        """As :meth:`kvtier.kit.parts.Part.plan`.

        Raises
        ------
        InputError
            If a setting is out of range, or there is no cache size to choose buffers by.
        """
        device, buffers, threads = self._settings(machine)
        arrays = 3 * max(buffers)
        # A timing, its check against numpy and the filling of arrays, measured on 2 cores at 10 GB/s; choosing passes is some timings more.
        seconds = (self.repetitions + 5) * (len(buffers) * len(ARRAYS_MOVED) * self.shortest_s * 1.5 + arrays / 1.5e9)
        where = "" if device == "cpu" else f" on {device}"
        return [
            Step(
                f"{', '.join(ARRAYS_MOVED)}{where}: {said(min(buffers))} to {said(max(buffers))}, {count} thread{'s' * (count > 1)}",
                seconds,
                memory_bytes=2 * arrays,
                device_bytes=0 if device.endswith("cpu") else 2 * arrays,
            )
            for count in threads
        ]

    def run(self, machine: Machine, progress: Progress) -> Outcome:
        """As :meth:`kvtier.kit.parts.Part.run`.

        Raises
        ------
        AboveTheBus
            If a buffer that no cache holds is moved faster than the bus.
        WrongResult
            If a kernel computes something else.
        InputError
            If passes do not add time, or timings drift.
        """
        device, buffers, threads = self._settings(machine)
        source = f"stream of {machine.name}"
        tick = tick_s()
        bench = _Bench(device, max(buffers), self.shortest_s)
        points = [(count, size, kernel) for count in threads for size in buffers for kernel in ARRAYS_MOVED]
        try:
            timings = time_points(
                points,
                self.repetitions,
                bench.time,
                lambda point, share: progress(_named(*reversed(point)), share),
            )
        finally:
            bench.close()
        rows = kept.STREAM.check(
            pl.DataFrame(
                [
                    {
                        "kernel": kernel,
                        "buffer_bytes": size,
                        "threads": count,
                        "repetition": timing.repetition,
                        "passes": bench.passes[timing.point],
                        "moved_bytes": ARRAYS_MOVED[kernel] * size * bench.passes[timing.point],
                        "seconds": timing.seconds,
                    }
                    for timing in timings
                    for count, size, kernel in [timing.point]
                ]
            )
        )
        bus, cache_bytes = _bus(machine, device), _cache_bytes(machine, device)
        checked = [
            resolved(rows["seconds"].min(), tick, source),
            steady(relative_times(rows, ("kernel", "buffer_bytes", "threads"), source=source), source),
            *below_the_bus(rows, BEYOND_CACHE * cache_bytes, bus, source),
        ]
        return Outcome({"stream": rows}, self._about(device, cache_bytes, tick, bus), checked)

    def _about(self, device: str, cache_bytes: int, tick: float, bus: Bus | None) -> dict[str, Any]:
        left_out = {} if bus else {"physical bound": "the bandwidth of the memory bus is not known"}
        return {
            "device": device,
            "last_level_cache_bytes": cache_bytes,
            "element": "float64",
            "counted": "bytes that a kernel reads and writes by its own count; that a store first reads its line is not counted",
            "kernels": "compiled loops, one thread a core, each on its own part"
            if device == "cpu"
            else "torch, from an idle device to an idle device: small buffers time its queue",
            "memory": "anew for each repetition and number of threads; each part first touched by its thread; huge pages asked for",
            "repetitions": self.repetitions,
            "shortest_s": self.shortest_s,
            "tick_s": tick,
            "left_out": left_out,
        }

    def _settings(self, machine: Machine) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        if self.repetitions < 3:
            raise InputError("stream", "repetitions", self.repetitions, "3 or more: drift shows in no fewer")
        if not self.shortest_s > 0:
            raise InputError("stream", "shortest_s", self.shortest_s, "a time above 0 s")
        device = self.device or ("cuda" if machine.accelerator else "cpu")
        threads = self.threads or _powers_of_two(machine.cores)
        threads = threads if device == "cpu" else (1,)
        for count in threads:
            if not 1 <= count <= machine.cores:
                raise InputError("stream", "threads", count, f"1 to {machine.cores}, the cores that this process may use")
        line = ELEMENT_BYTES * LINE_ELEMENTS
        buffers = self.buffers_bytes or tuple(line * int(share * _cache_bytes(machine, device) / line) for share in SIZES_OF_CACHE)
        for size in buffers:
            if size < line * max(threads) or size % line:
                raise InputError("stream", "buffers_bytes", f"{size} B", f"a multiple of {line} B, and a line of {line} B a thread")
        return device, buffers, threads


class _Bench:
    """Arrays of the number of threads at hand, and the passes of each point."""

    def __init__(self, device: str, largest_bytes: int, shortest_s: float) -> None:
        self._device, self._largest_bytes, self._shortest_s = device, largest_bytes, shortest_s
        self.passes: dict[tuple[int, int, str], int] = {}
        self._arrays: Arrays | None = None
        self._timed: set[tuple[int, int, str]] = set()
        self._threads = 0

    def time(self, point: tuple[int, int, str]) -> float:
        threads, size, kernel = point
        # A point that comes again is of another repetition.
        if threads != self._threads or point in self._timed:
            self.close()
            self._arrays = Host(threads, self._largest_bytes) if self._device == "cpu" else Device(self._device, self._largest_bytes)
            self._threads = threads
        self._timed.add(point)
        time = partial(self._arrays.time, kernel, size)
        if point not in self.passes:
            self.passes[point] = passes_for(self._shortest_s, time, _named(kernel, size, threads))
        return time(self.passes[point])

    def close(self) -> None:
        if self._arrays:
            self._arrays.close()
        self._arrays, self._threads, self._timed = None, 0, set()


def passes_for(shortest_s: float, time: Callable[[int], float], point: str, most: int = 2**24) -> int:
    """Passes that take `shortest_s` or longer, by about a quarter.

    Parameters
    ----------
    shortest_s : float
        Least time of a timing [s].
    time : callable
        Time of so many passes [s].
    point : str
        For errors.
    most : int
        More passes than any buffer needs.

    Raises
    ------
    InputError
        If even `most` passes are shorter: a compiler has taken the loop away.
    """
    passes = 1
    while passes <= most:
        # The faster of two: what is slower was disturbed, and would ask for too few passes.
        seconds = min(time(passes), time(passes))
        if seconds >= shortest_s:
            return passes
        passes = ceil(passes * min(4.0, HEADROOM * shortest_s / seconds))
    raise InputError("stream", point, f"{seconds:.2g} s for more than {most // 4:,} passes", f"{shortest_s:g} s: passes that add time")


def below_the_bus(rows: pl.DataFrame, least_bytes: int, bus: Bus | None, source: str) -> list[Checked]:
    """Hold the median and the fastest timing of every buffer that no cache holds against the bus.

    Parameters
    ----------
    rows : polars.DataFrame
        As :data:`kvtier.measure.kept.STREAM`.
    least_bytes : int
        Smallest buffer that is looked at [B].
    bus : Bus or None
        Nothing is checked where it is not known.
    source : str
        Named in errors.

    Returns
    -------
    list of Checked
        The fastest of each kernel; all were held against the bus.

    Raises
    ------
    AboveTheBus
        If one is above it.
    """
    if bus is None:
        return []
    beyond = rows.filter(pl.col("buffer_bytes") >= least_bytes).with_columns((pl.col("moved_bytes") / pl.col("seconds") / GB).alias("gbps"))
    checked = []
    for (kernel,), of_kernel in beyond.group_by("kernel", maintain_order=True):
        found = []
        for (size, threads), each in of_kernel.group_by("buffer_bytes", "threads", maintain_order=True):
            for which, gbps in (("median", median(each["gbps"])), ("fastest", each["gbps"].max())):
                found.append(Bandwidth(source, f"{_named(kernel, size, threads)}, {which}", gbps))
        checked.append(max(physical_bound(found, bus.gbps), key=lambda one: one.value))
    return checked


def _named(kernel: str, size_bytes: int, threads: int) -> str:
    return f"{kernel}, {said(size_bytes)}, {threads} thread{'s' * (threads > 1)}"


def _bus(machine: Machine, device: str) -> Bus | None:
    if device.endswith("cpu"):
        return machine.bus
    return machine.accelerator.bus if machine.accelerator else None


def _cache_bytes(machine: Machine, device: str) -> int:
    if device.endswith("cpu"):
        size = machine.last_level_cache_bytes
    else:
        import torch

        size = getattr(torch.cuda.get_device_properties(torch.device(device)), "L2_cache_size", 0)
    if size < 1:
        raise InputError("stream", "last-level cache", f"{size} B", "a size to choose buffers by")
    return size


def _powers_of_two(cores: int) -> tuple[int, ...]:
    return tuple(sorted({2**power for power in range(cores.bit_length()) if 2**power <= cores} | {cores}))
