"""Paths that a block can take between regions of memory, files and devices.

A path has a source whose content is known and a target; :meth:`Path.ready` prepares a move of pieces outside any clock, and what it returns
is the move alone.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path as FilePath
from typing import Any, Protocol

import numpy as np
from numba import njit

from kvtier.errors import InputError
from kvtier.kit.memory import Unavailable, fresh
from kvtier.units import MIB

IO_BYTES = 4096
"""Direct input and output moves whole multiples of a device's logical block, from memory that starts at one: 4,096 B serves all [B]."""


@dataclass(frozen=True)
class Places:
    """Where pieces lie and where they go, in the order in which they are moved.

    Parameters
    ----------
    piece_bytes : int
        Size of a piece [B].
    sources, targets : array of int64, shape (pieces,)
        Offsets of the pieces in either region [B].
    """

    piece_bytes: int
    sources: np.ndarray
    targets: np.ndarray


def places(random: np.random.Generator, region_bytes: int, piece_bytes: int, pieces: int) -> Places:
    """Choose places for pieces: every other place of the region at most, in random order.

    Parameters
    ----------
    random : numpy.random.Generator
    region_bytes, piece_bytes : int
        Sizes of either region and of a piece [B].
    pieces : int
        Pieces to move; the region has room for twice as many.

    Returns
    -------
    Places
        No place twice, and no two that touch.

    Raises
    ------
    InputError
        If the region is too small.
    """
    room = region_bytes // piece_bytes // 2
    if not 1 <= pieces <= room:
        raise InputError(
            "movement", "pieces", f"{pieces} of {piece_bytes} B", f"1 to {room}, half of what a region of {region_bytes} B holds"
        )

    def chosen() -> np.ndarray:
        odd = int(random.integers(2))
        return (2 * random.permutation(room)[:pieces] + odd).astype(np.int64) * piece_bytes

    return Places(piece_bytes, chosen(), chosen())


class Path(Protocol):
    """From where to where.

    Parameters
    ----------
    name : str
        As :data:`kvtier.measure.kept.MOVEMENT` lists them.
    buses : tuple of (str, int)
        Buses that the bytes cross, ``host`` or ``device``, and how often: a move inside one memory reads and writes it.
    cores : frozenset of int or None
        Cores that must do the move; None where any may.
    most_pieces : int or None
        Most pieces of a timing, where a piece costs so much that a volume of small ones would take minutes.
    """

    name: str
    buses: tuple[tuple[str, int], ...]
    cores: frozenset[int] | None
    most_pieces: int | None

    def ready(self, moves: Places) -> Callable[[], None]:
        """Prepare a move; the result is called under the clock, once."""
        ...

    def source(self, offset: int, size_bytes: int) -> np.ndarray:
        """What should be there to be moved, uint8."""
        ...

    def target(self, offset: int, size_bytes: int) -> np.ndarray:
        """What has arrived, uint8."""
        ...

    def spoil(self) -> None:
        """Overwrite the whole target, so that nothing right is left there from another move."""
        ...

    def close(self) -> None:
        """Give files back."""
        ...


def wrong_pieces(path: Path, moves: Places) -> int:
    """Pieces whose content did not arrive, after a move."""
    size = moves.piece_bytes
    pairs = zip(moves.sources.tolist(), moves.targets.tolist(), strict=True)
    return sum(not np.array_equal(path.source(source, size), path.target(target, size)) for source, target in pairs)


@cache
def _mover() -> Callable:
    """A compiled loop over the C library's memcpy, so that no interpreter stands between two pieces."""
    memcpy = ctypes.CDLL(None).memcpy
    memcpy.argtypes, memcpy.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_void_p

    @njit(nogil=True)
    def move(target: int, source: int, targets: np.ndarray, sources: np.ndarray, piece_bytes: int) -> None:
        for index in range(targets.size):
            memcpy(target + targets[index], source + sources[index], piece_bytes)

    nothing = np.zeros(0, dtype=np.int64)
    move(0, 0, nothing, nothing, 0)
    return move


class IntoMemory:
    """What paths share that end in memory: `origin` is what should arrive, `landing` where it does."""

    origin: np.ndarray
    landing: np.ndarray

    def source(self, offset: int, size_bytes: int) -> np.ndarray:
        """What should be there."""
        return self.origin[offset : offset + size_bytes]

    def target(self, offset: int, size_bytes: int) -> np.ndarray:
        """What has arrived."""
        return self.landing[offset : offset + size_bytes]

    def spoil(self) -> None:
        """Overwrite the whole target."""
        self.landing[:] = 0


@dataclass
class MemoryPath(IntoMemory):
    """Between two regions that the processor can address."""

    name: str
    origin: np.ndarray
    landing: np.ndarray
    cores: frozenset[int] | None = None
    buses: tuple[tuple[str, int], ...] = (("host", 2),)
    most_pieces: int | None = None

    def ready(self, moves: Places) -> Callable[[], None]:
        """Prepare a move."""
        addresses = self.landing.ctypes.data, self.origin.ctypes.data
        return partial(_mover(), *addresses, moves.targets, moves.sources, moves.piece_bytes)

    def close(self) -> None:
        """Nothing."""


def shared(size_bytes: int) -> np.ndarray:
    """Shared memory without a name, which no killed process leaves behind; uint8, zeros.

    Raises
    ------
    Unavailable
        If the system has none.
    """
    if not hasattr(os, "memfd_create"):
        raise Unavailable("the system has no memory files")
    descriptor = os.memfd_create("kvtier")
    try:
        os.ftruncate(descriptor, size_bytes)
        return np.frombuffer(mmap.mmap(descriptor, size_bytes, mmap.MAP_SHARED), dtype=np.uint8)
    finally:
        os.close(descriptor)


class DirectFile:
    """A file without a name whose bytes go between device and memory, with no page cache between.

    Parameters
    ----------
    folder : str or Path
        On the device that is measured.
    content : numpy.ndarray
        uint8, whole multiples of 4,096 B from memory on a page boundary: written at once, so that every byte has its place on the device.

    Raises
    ------
    Unavailable
        If the file system does not do direct input and output, or what it reads comes from no device.
    InputError
        If no file can be made in the folder, or it has no room.
    """

    def __init__(self, folder: str | FilePath, content: np.ndarray) -> None:
        self._descriptor = open_direct(folder)
        try:
            self.write_all(content)
            self._probe(content)
        except OSError as error:
            self.close()
            raise InputError(folder, "file", error.strerror, f"room for {content.nbytes / MIB:,.0f} MiB") from None
        except Unavailable:
            self.close()
            raise

    def write_all(self, content: np.ndarray) -> None:
        """Write the whole file, and wait until it will last."""
        step = 64 * MIB
        for start in range(0, content.nbytes, step):
            self.write(memoryview(content[start : start + step]), start)
        self.flush()

    def _probe(self, content: np.ndarray) -> None:
        before, size = device_read_bytes(), min(MIB, content.nbytes)
        self.read(memoryview(mmap.mmap(-1, size)), 0)
        if device_read_bytes() - before < size:
            raise Unavailable("no device is behind the folder: what was read there with O_DIRECT came from memory")

    def read(self, into: memoryview, offset: int) -> None:
        """Read one piece, whole."""
        got = os.preadv(self._descriptor, [into], offset)
        if got != into.nbytes:
            raise InputError("movement", f"read at {offset} B", f"{got} B", f"{into.nbytes} B")

    def write(self, piece: memoryview, offset: int) -> None:
        """Write one piece, whole."""
        put = os.pwritev(self._descriptor, [piece], offset)
        if put != piece.nbytes:
            raise InputError("movement", f"write at {offset} B", f"{put} B", f"{piece.nbytes} B")

    def flush(self) -> None:
        """Wait until the device says that what was written will last."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close; the file is gone."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def open_direct(folder: str | FilePath) -> int:
    """Open a new file for direct input and output, and take its name away at once: a killed process leaves no file.

    Raises
    ------
    Unavailable
        If the system or the file system does not do it.
    InputError
        If no file can be made in the folder.
    """
    if not hasattr(os, "O_DIRECT"):
        raise Unavailable("the system has no O_DIRECT")
    try:
        descriptor, name = tempfile.mkstemp(prefix=".kvtier-", dir=folder)
    except OSError as error:
        raise InputError(folder, "folder", error.strerror, "a folder in which files can be made") from None
    os.close(descriptor)
    try:
        direct = os.open(name, os.O_RDWR | os.O_DIRECT)
    except OSError as error:
        raise Unavailable(f"the file system refuses O_DIRECT: {error.strerror}") from None
    finally:
        FilePath(name).unlink()
    if not fcntl.fcntl(direct, fcntl.F_GETFL) & os.O_DIRECT:
        os.close(direct)
        raise Unavailable("the file system drops O_DIRECT")
    return direct


def device_read_bytes() -> int:
    """Bytes that this process had the block layer read so far [B].

    Raises
    ------
    Unavailable
        If the kernel does not count them.
    """
    try:
        lines = FilePath("/proc/self/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["read_bytes"])
    except (OSError, KeyError, ValueError):
        raise Unavailable("the kernel does not count what the device read") from None


def file_system(folder: str | FilePath) -> str:
    """Type of the file system of a folder, as mounted; ``unknown`` where the system does not say."""
    device = FilePath(folder).stat().st_dev
    try:
        mounts = FilePath("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        mounts = []
    for mount in mounts:
        fields = mount.split(" ")
        if fields[2] == f"{os.major(device)}:{os.minor(device)}":
            return fields[fields.index("-") + 1]
    return "unknown"


@dataclass
class FileToMemory(IntoMemory):
    """Direct reads of a file that holds `origin`, one system call a piece."""

    file: DirectFile
    origin: np.ndarray
    landing: np.ndarray
    name: str = "file to memory"
    buses: tuple[tuple[str, int], ...] = (("host", 1),)
    cores: frozenset[int] | None = None
    most_pieces: int | None = None

    def ready(self, moves: Places) -> Callable[[], None]:
        """Prepare a move."""
        whole, read = memoryview(self.landing), self.file.read
        pieces = [(whole[to : to + moves.piece_bytes], at) for at, to in zip(moves.sources.tolist(), moves.targets.tolist(), strict=True)]

        def move() -> None:
            for into, offset in pieces:
                read(into, offset)

        return move

    def close(self) -> None:
        """Remove the file."""
        self.file.close()


@dataclass
class MemoryToFile:
    """Direct writes, one system call a piece, and one wait at the end until all will last."""

    file: DirectFile
    origin: np.ndarray
    name: str = "memory to file"
    buses: tuple[tuple[str, int], ...] = (("host", 1),)
    cores: frozenset[int] | None = None
    most_pieces: int | None = None

    def ready(self, moves: Places) -> Callable[[], None]:
        """Prepare a move."""
        whole, write, flush = memoryview(self.origin), self.file.write, self.file.flush
        pieces = [(whole[at : at + moves.piece_bytes], to) for at, to in zip(moves.sources.tolist(), moves.targets.tolist(), strict=True)]

        def move() -> None:
            for piece, offset in pieces:
                write(piece, offset)
            flush()

        return move

    def source(self, offset: int, size_bytes: int) -> np.ndarray:
        """What should be there."""
        return self.origin[offset : offset + size_bytes]

    def target(self, offset: int, size_bytes: int) -> np.ndarray:
        """What has arrived, read from the device."""
        back = mmap.mmap(-1, size_bytes)
        self.file.read(memoryview(back), offset)
        return np.frombuffer(back, dtype=np.uint8)

    def spoil(self) -> None:
        """Overwrite the whole target."""
        self.file.write_all(fresh(self.origin.nbytes))

    def close(self) -> None:
        """Remove the file."""
        self.file.close()


@dataclass
class TensorPath:
    """Between host memory, pinned where the device is a GPU, and a device of PyTorch: pieces queued one after the other, one wait."""

    name: str
    origin: Any
    landing: Any
    unified: bool
    cores: frozenset[int] | None = None
    most_pieces: int | None = None

    @property
    def buses(self) -> tuple[tuple[str, int], ...]:
        """Both ends' memory, or twice the one that they share."""
        return (("device", 2),) if self.unified else (("host", 1), ("device", 1))

    def ready(self, moves: Places) -> Callable[[], None]:
        """Prepare a move."""
        size = moves.piece_bytes
        pieces = [
            (self.landing[to : to + size], self.origin[at : at + size])
            for at, to in zip(moves.sources.tolist(), moves.targets.tolist(), strict=True)
        ]
        wait = self._wait()
        wait()

        def move() -> None:
            for into, piece in pieces:
                into.copy_(piece, non_blocking=True)
            wait()

        return move

    def _wait(self) -> Callable[[], None]:
        device = next((each.device for each in (self.origin, self.landing) if each.device.type == "cuda"), None)
        if device is None:
            return lambda: None
        import torch

        return partial(torch.cuda.synchronize, device)

    def source(self, offset: int, size_bytes: int) -> np.ndarray:
        """What should be there."""
        return self.origin[offset : offset + size_bytes].cpu().numpy()

    def target(self, offset: int, size_bytes: int) -> np.ndarray:
        """What has arrived."""
        return self.landing[offset : offset + size_bytes].cpu().numpy()

    def spoil(self) -> None:
        """Overwrite the whole target."""
        self.landing.zero_()

    def close(self) -> None:
        """Nothing."""


def tensor_paths(device: str, origin: np.ndarray, unified: bool) -> list[TensorPath]:
    """Paths from host to device and back, over tensors as large as `origin`, which both sources hold.

    Raises
    ------
    Unavailable
        If torch is missing or has no such device.
    """
    try:
        import torch
    except ImportError:
        raise Unavailable("torch is not installed") from None
    size = origin.nbytes
    try:
        pinned = [torch.empty(size, dtype=torch.uint8, pin_memory=device.startswith("cuda")) for _ in range(2)]
        held = [torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2)]
    except (RuntimeError, AssertionError) as error:
        raise Unavailable(f"{device}: {str(error).splitlines()[0]}") from None
    pinned[0].numpy()[:] = origin
    held[1].copy_(pinned[0])
    return [TensorPath("host to device", pinned[0], held[0], unified), TensorPath("device to host", held[1], pinned[1], unified)]
