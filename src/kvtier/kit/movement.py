"""Time to move blocks from one region to another, by the size of the pieces: memory, shared memory, a file, another node, a device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from kvtier.audit.physical_bound import Bandwidth, Checked, physical_bound
from kvtier.audit.residency import unified_tiers
from kvtier.audit.storage import read_from_device
from kvtier.audit.timing import relative_times, resolved, steady
from kvtier.errors import InputError
from kvtier.kit import regions
from kvtier.kit.machine import Machine
from kvtier.kit.memory import Unavailable, fresh, node_of, said
from kvtier.kit.parts import Outcome, Progress, Step
from kvtier.kit.regions import Path
from kvtier.kit.timing import tick_s, time_points, timed
from kvtier.measure import kept
from kvtier.units import GB, KIB, MIB

PIECES_BYTES = tuple(4 * KIB * 4**power for power in range(8))
"""4 KiB to 64 MiB."""

LEAST_VOLUME_BYTES = 64 * MIB


class WrongContent(InputError):
    """Pieces that did not arrive as they left."""


@dataclass
class Movement:
    """Time to move blocks between regions.

    Parameters
    ----------
    pieces_bytes : tuple of int
        Sizes of a piece, multiples of 4,096 B [B].
    volume_bytes : int, optional
        Bytes of a timing, a multiple of every piece; by default 64 MiB, or as many of them as four last-level caches need. Either region
        is twice as large.
    repetitions : int
        Timings of each path and size.
    most_file_pieces : int
        Most pieces of a timing of files: small ones cost so much there that the whole volume would take minutes.
    folder : str or Path
        Where the files are: on the disk that is measured. They have no name, so they are gone when the process is.
    device : str, optional
        A device of torch; by default ``cuda`` where the machine has an accelerator. ``cpu`` is none: its memory is the host's.
        ``torch:cpu`` takes CPU tensors for a device's, to try the code.
    seed : int
        Of contents and places.
    """

    pieces_bytes: tuple[int, ...] = PIECES_BYTES
    volume_bytes: int | None = None
    repetitions: int = 12
    most_file_pieces: int = 1024
    folder: str | FilePath = "."
    device: str | None = None
    seed: int = 1
    name: str = "movement"

    @classmethod
    def quick(cls) -> Movement:
        """A try of some seconds."""
        return cls(repetitions=3, most_file_pieces=128)

    def plan(self, machine: Machine) -> list[Step]:
        """As :meth:`kvtier.kit.parts.Part.plan`; what the system turns out not to offer is left out when it runs.

        Raises
        ------
        InputError
            If a setting cannot be used.
        """
        volume = self._volume(machine)
        runs, sizes = self.repetitions + 2, len(self.pieces_bytes)
        region = 2 * volume
        # Assumed: 3 GB/s in memory, and, of files, 0.3 ms a piece and 0.6 GB/s with what is waited for.
        in_memory = runs * sizes * (volume + self._sweep_bytes(machine)) / 3e9
        small = [min(volume // size, self.most_file_pieces) for size in self.pieces_bytes]
        file = runs * sum(pieces * 3e-4 + pieces * size / 0.6e9 for pieces, size in zip(small, self.pieces_bytes, strict=True))
        steps = [
            Step(f"memory and shared memory to memory, {sizes} sizes", 2 * in_memory, memory_bytes=3 * region + self._sweep_bytes(machine)),
            Step(f"file to memory and back, {sizes} sizes", 2 * file, memory_bytes=3 * region, disk_bytes=2 * region),
        ]
        others = len(machine.numa_nodes) - 1
        if others > 0:
            steps.append(Step(f"to {others} other NUMA nodes and back", 2 * others * in_memory, memory_bytes=(3 + 2 * others) * region))
        device = self._device(machine)
        if device:
            steps.append(Step(f"host to {device} and back", 2 * in_memory, memory_bytes=5 * region, device_bytes=2 * region))
        return steps

    def run(self, machine: Machine, progress: Progress) -> Outcome:
        """As :meth:`kvtier.kit.parts.Part.run`.

        Raises
        ------
        WrongContent
            If a piece does not arrive.
        ReadFromPageCache
            If a file was not read from its device.
        AboveTheBus
            If bytes moved faster than a memory can.
        InputError
            If the folder cannot be used, a timing is too short for the clock, or timings drift.
        """
        source = f"movement of {machine.name}"
        volume = self._volume(machine)
        tick = tick_s()
        found = _Paths(machine, 2 * volume, self.folder, self.most_file_pieces, self._device(machine), self.seed)
        bench = _Bench(found.paths, 2 * volume, volume, self._sweep_bytes(machine), self.seed)
        points = [(path, size) for path in found.paths for size in self.pieces_bytes]
        try:
            timings = time_points(
                points, self.repetitions, bench.time, lambda point, share: progress(f"{point[0]}, {said(point[1])}", share)
            )
        finally:
            found.close()
        rows = kept.MOVEMENT.check(
            pl.DataFrame(
                [
                    {
                        "path": timing.point[0],
                        "piece_bytes": timing.point[1],
                        "pieces": bench.pieces(*timing.point),
                        "repetition": timing.repetition,
                        "seconds": timing.seconds,
                    }
                    for timing in timings
                ]
            )
        )
        checked = [
            resolved(rows["seconds"].min(), tick, source),
            steady(relative_times(rows, ("path", "piece_bytes"), source=source), source),
            *from_device(bench.read, source),
            *below_the_bus(rows, found.buses(), _bus_gbps(machine), source),
            *found.checked,
        ]
        return Outcome({"movement": rows}, self._about(volume, machine, tick, found), checked)

    def _about(self, volume: int, machine: Machine, tick: float, found: _Paths) -> dict[str, Any]:
        left_out = dict(found.left_out)
        if machine.bus is None:
            left_out["physical bound"] = "the bandwidth of the memory bus is not known"
        return {
            "volume_bytes": volume,
            "region_bytes": 2 * volume,
            "most_file_pieces": self.most_file_pieces,
            "repetitions": self.repetitions,
            "seed": self.seed,
            "tick_s": tick,
            "places": "no two pieces of a timing touch; order is random; places are chosen anew for each timing",
            "caches": f"{said(self._sweep_bytes(machine))} of other memory are read before each timing, so that no cache holds a piece",
            "memory": "memcpy of the C library, called from a compiled loop by one thread; huge pages asked for, except in shared memory",
            "file": "O_DIRECT, one system call a piece from Python, queue depth 1; a write ends with one fdatasync, inside the clock",
            "file_system": regions.file_system(self.folder),
            "not_seen": "caches behind the block layer: the device's own, and a host's if this is a guest",
            "device": "copies queued on one stream from pinned memory, one synchronisation at the end, inside the clock",
            "verified": "all pieces of one move of each path and size, byte by byte",
            "left_out": left_out,
        }

    def _volume(self, machine: Machine) -> int:
        if self.repetitions < 3:
            raise InputError("movement", "repetitions", self.repetitions, "3 or more: drift shows in no fewer")
        if self.most_file_pieces < 1:
            raise InputError("movement", "most_file_pieces", self.most_file_pieces, "1 or more")
        caches = 4 * machine.last_level_cache_bytes
        volume = self.volume_bytes or -(-max(caches, 1) // LEAST_VOLUME_BYTES) * LEAST_VOLUME_BYTES
        for size in self.pieces_bytes:
            if size < regions.IO_BYTES or size % regions.IO_BYTES:
                raise InputError("movement", "pieces_bytes", size, f"multiples of {regions.IO_BYTES} B")
            if volume % size:
                raise InputError("movement", "volume_bytes", volume, f"a multiple of the piece of {size} B")
        return volume

    def _sweep_bytes(self, machine: Machine) -> int:
        return max(2 * machine.last_level_cache_bytes, MIB)

    def _device(self, machine: Machine) -> str | None:
        device = self.device or ("cuda" if machine.accelerator else "cpu")
        return None if device == "cpu" else device.removeprefix("torch:")


class _Paths:
    """The paths that this system offers, and why the others are left out."""

    def __init__(
        self, machine: Machine, region_bytes: int, folder: str | FilePath, most_file_pieces: int, device: str | None, seed: int
    ) -> None:
        self.paths: dict[str, Path] = {}
        self.left_out: dict[str, str] = {}
        self.checked: list[Checked] = []
        self._region_bytes = region_bytes
        home, cores = _home(machine)
        self._origin = fresh(region_bytes, home)
        self._origin.view(np.uint64)[:] = np.random.default_rng(seed).integers(0, 2**64, region_bytes // 8, dtype=np.uint64)
        landing = self._empty(home)
        try:
            self._add(regions.MemoryPath("memory to memory", self._origin, landing, cores))
            self._try("shared memory to memory", lambda: self._shared(landing, cores))
            self._try(
                "file to memory",
                lambda: self._add(regions.FileToMemory(self._file(folder), self._origin, landing, most_pieces=most_file_pieces)),
            )
            self._try(
                "memory to file",
                lambda: self._add(regions.MemoryToFile(self._file(folder, landing), self._origin, most_pieces=most_file_pieces)),
            )
            self._nodes(machine, home, cores)
            if device:
                self._try("host to device, device to host", lambda: self._tensors(machine, device))
            else:
                self.left_out["host to device, device to host"] = "no accelerator"
        except BaseException:
            self.close()
            raise

    def _empty(self, node: int | None) -> np.ndarray:
        region = fresh(self._region_bytes, node)
        region[:] = 0
        return region

    def _add(self, path: Path) -> None:
        self.paths[path.name] = path

    def _try(self, name: str, add: Callable[[], None]) -> None:
        try:
            add()
        except Unavailable as reason:
            self.left_out[name] = str(reason)

    def _file(self, folder: str | FilePath, content: np.ndarray | None = None) -> regions.DirectFile:
        return regions.DirectFile(folder, self._origin if content is None else content)

    def _shared(self, landing: np.ndarray, cores: frozenset[int] | None) -> None:
        memory = regions.shared(self._region_bytes)
        memory[:] = self._origin
        self._add(regions.MemoryPath("shared memory to memory", memory, landing, cores))

    def _nodes(self, machine: Machine, home: int | None, cores: frozenset[int] | None) -> None:
        if home is None:
            self.left_out["node to node"] = "there is one NUMA node, or none whose memory and cores this process may use"
            return
        for other in machine.numa_nodes:
            if other != home:
                self._try(f"node {home} to node {other}", lambda other=other: self._to_and_from(home, other, cores))

    def _to_and_from(self, home: int, other: int, cores: frozenset[int] | None) -> None:
        away = self._empty(other)
        back = self._empty(other)
        back[:] = self._origin
        for node, region in ((home, self._origin), (other, away), (other, back)):
            if node_of(region) != node:
                raise Unavailable(f"memory asked of node {node} came from node {node_of(region)}")
        self._add(regions.MemoryPath(f"node {home} to node {other}", self._origin, away, cores))
        self._add(regions.MemoryPath(f"node {other} to node {home}", back, self._empty(home), cores))

    def _tensors(self, machine: Machine, device: str) -> None:
        unified = machine.accelerator is not None and machine.accelerator.unified
        if unified:
            tiers = {"host regions": 5 * self._region_bytes, "device regions": 2 * self._region_bytes}
            self.checked.append(unified_tiers(tiers, machine.memory_bytes, f"movement of {machine.name}"))
        for path in regions.tensor_paths(device, self._origin, unified):
            self._add(path)

    def buses(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """By path, the buses that its bytes cross and how often."""
        return {name: path.buses for name, path in self.paths.items()}

    def close(self) -> None:
        for path in self.paths.values():
            path.close()


class _Bench:
    """One timing after the other: places outside the clock, caches swept, the first move of each path and size verified."""

    def __init__(self, paths: dict[str, Path], region_bytes: int, volume_bytes: int, sweep_bytes: int, seed: int) -> None:
        self._paths, self._region_bytes, self._volume_bytes = paths, region_bytes, volume_bytes
        self._random = np.random.default_rng(seed)
        self._other = fresh(sweep_bytes).view(np.uint64)
        self._other[:] = 1
        self._verified: set[tuple[str, int]] = set()
        self.read: dict[int, tuple[int, int]] = {}

    def pieces(self, path: str, piece_bytes: int) -> int:
        return min(self._volume_bytes // piece_bytes, self._paths[path].most_pieces or self._volume_bytes)

    def time(self, point: tuple[str, int]) -> float:
        path, size = self._paths[point[0]], point[1]
        first = point not in self._verified
        if first:
            path.spoil()
        moves = regions.places(self._random, self._region_bytes, size, self.pieces(*point))
        move = path.ready(moves)
        counted = isinstance(path, regions.FileToMemory)
        with _on(path.cores):
            if int(self._other.sum()) != self._other.size:
                raise WrongContent("movement", "memory that caches are swept with", "changed", "as it was written")
            before = regions.device_read_bytes() if counted else 0
            seconds = timed(move)
        if counted:
            asked, got = size * len(moves.sources), regions.device_read_bytes() - before
            self.read[size] = (asked, min(got, self.read.get(size, (asked, got))[1]))
        if first:
            wrong = regions.wrong_pieces(path, moves)
            if wrong:
                raise WrongContent("movement", f"{path.name}, {said(size)}", f"{wrong} of {len(moves.sources)} pieces wrong", "none")
            self._verified.add(point)
        return seconds


def below_the_bus(
    rows: pl.DataFrame, buses: dict[str, tuple[tuple[str, int], ...]], gbps: dict[str, float | None], source: str
) -> list[Checked]:
    """Hold the median and the fastest timing of every path and size against each bus that the bytes cross.

    Parameters
    ----------
    rows : polars.DataFrame
        As :data:`kvtier.measure.kept.MOVEMENT`.
    buses : dict
        By path, ``(bus, times)``: how often a byte crosses it.
    gbps : dict
        By bus, its bandwidth [GB/s, decimal]; None where it is not known, and then nothing is held against it.
    source : str
        Named in errors.

    Returns
    -------
    list of Checked
        The fastest of each path and bus; all were held against it.

    Raises
    ------
    AboveTheBus
        If one is above it.
    """
    checked = []
    for (path,), of_path in rows.group_by("path", maintain_order=True):
        for bus, times in buses[path]:
            found = []
            for (size,), each in of_path.group_by("piece_bytes", maintain_order=True):
                crossing = times * each["pieces"] * size / each["seconds"] / GB
                for which, at in (("median", median(crossing)), ("fastest", crossing.max())):
                    found.append(Bandwidth(source, f"{path}, {said(size)}, {times} × its bytes, {which}", at))
            if gbps[bus] is not None:
                checked.append(max(physical_bound(found, gbps[bus]), key=lambda one: one.value))
    return checked


def from_device(read: dict[int, tuple[int, int]], source: str) -> list[Checked]:
    """Refuse reads of a file that its device did not read.

    Parameters
    ----------
    read : dict
        By size of a piece, the bytes asked for in a timing and the fewest that the block layer read in one [B].
    source : str
        Named in errors.

    Returns
    -------
    list of Checked
        The smallest share of all; none where no file was read.

    Raises
    ------
    ReadFromPageCache
        If the block layer read less than was asked for.
    """
    checked = [read_from_device(asked, least, f"{source}, file to memory, {said(size)}") for size, (asked, least) in read.items()]
    return [min(checked, key=lambda one: one.value)] if checked else []


def _bus_gbps(machine: Machine) -> dict[str, float | None]:
    accelerator = machine.accelerator.bus if machine.accelerator else None
    return {"host": machine.bus.gbps if machine.bus else None, "device": accelerator.gbps if accelerator else None}


def _home(machine: Machine) -> tuple[int | None, frozenset[int] | None]:
    """First node with cores that this process may use, and those cores; None where there are no two nodes to tell apart."""
    if len(machine.numa_nodes) < 2 or not hasattr(os, "sched_getaffinity"):
        return None, None
    allowed = os.sched_getaffinity(0)
    for node in machine.numa_nodes:
        try:
            cores = frozenset(cores_in(FilePath(f"/sys/devices/system/node/node{node}/cpulist").read_text())) & allowed
        except OSError:
            cores = frozenset()
        if cores:
            return node, cores
    return None, None


def cores_in(ranges: str) -> set[int]:
    """Cores of a list as the kernel writes it: ``0-3,8`` is 0, 1, 2, 3 and 8."""
    cores: set[int] = set()
    for each in filter(None, ranges.strip().split(",")):
        first, _, last = each.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores


@contextmanager
def _on(cores: frozenset[int] | None) -> Iterator[None]:
    """Bind this thread for a while."""
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
