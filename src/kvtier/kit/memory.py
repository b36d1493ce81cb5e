"""Memory that no one has touched yet, of a chosen NUMA node where there are several."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from contextlib import suppress

import numpy as np

from kvtier.units import KIB, MIB

# System calls have no wrapper in the C library, and libnuma is not everywhere: asm/unistd.h of either architecture.
_CALLS = {"x86_64": {"mbind": 237, "get_mempolicy": 239}, "aarch64": {"mbind": 235, "get_mempolicy": 236}}
_BIND = 2
_NODE_OF_ADDRESS = 3
_MASK_BITS = 1024


class Unavailable(Exception):
    """Something that this system does not offer: what needs it is left out, with this reason."""


def fresh(size_bytes: int, node: int | None = None) -> np.ndarray:
    """Anonymous memory of whole pages, not touched: the first to write a page decides where it lies.

    Parameters
    ----------
    size_bytes : int
        Size [B], above 0. Huge pages are asked for, as numpy does for large arrays.
    node : int, optional
        NUMA node that the pages must come from.

    Returns
    -------
    numpy.ndarray
        uint8, shape (size_bytes,), on a page boundary. The memory goes with the last view of it.

    Raises
    ------
    Unavailable
        If the memory cannot be bound to the node.
    """
    memory = mmap.mmap(-1, size_bytes)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # A kernel without huge pages refuses: small ones do.
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(memory, dtype=np.uint8)
    if node is not None:
        _bind(array, node)
    return array


def node_of(array: np.ndarray) -> int:
    """NUMA node of an array's first page, which is touched.

    Raises
    ------
    Unavailable
        If the system does not say.
    """
    array[:1] = array[:1]
    node = ctypes.c_int(-1)
    _call(
        "get_mempolicy", ctypes.byref(node), None, ctypes.c_ulong(0), ctypes.c_void_p(array.ctypes.data), ctypes.c_ulong(_NODE_OF_ADDRESS)
    )
    return node.value


def said(size_bytes: int) -> str:
    """A size as messages give it: ``64 MiB``, ``512 KiB``."""
    return f"{size_bytes / MIB:g} MiB" if size_bytes >= MIB else f"{size_bytes / KIB:g} KiB"


def _bind(array: np.ndarray, node: int) -> None:
    mask = (ctypes.c_ulong * (_MASK_BITS // 64))()
    mask[node // 64] = 1 << (node % 64)
    # The kernel reads one bit fewer than it is told.
    _call("mbind", ctypes.c_void_p(array.ctypes.data), ctypes.c_ulong(array.nbytes), _BIND, mask, ctypes.c_ulong(_MASK_BITS + 1), 0)


def _call(name: str, *arguments: object) -> None:
    numbers = _CALLS.get(platform.machine())
    if numbers is None or platform.system() != "Linux":
        raise Unavailable(f"{name} is not known on {platform.system()} {platform.machine()}")
    if ctypes.CDLL(None, use_errno=True).syscall(numbers[name], *arguments):
        raise Unavailable(f"{name}: {os.strerror(ctypes.get_errno())}")
