"""Compilation of the simulators' inner loops.

Functions that call one another must stand in one module: the machine code kept on disk is renewed when the file of the function that was
called changes, and not when a file does from which that function imports others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable, **options: Any) -> Callable:
    """Compile a function at its first call, and keep the machine code on disk where some folder can be written."""
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither beside the module nor in the user's folder: every process then compiles for itself.
        return njit(**options)(function)


def compiled_inner(function: Callable) -> Callable:
    """Compile a function that makes no array, string or list of its own; its caller keeps alive what it is given.

    Without reference counts: they are atomic, one pair for each element of a record array that is looked at. ``_nrt`` is a private option
    of numba, whose releases ``pyproject.toml`` bounds for it. A function that allocates, or calls one that does, is refused with it when
    it is compiled ("No implementation of function"): allocate in the caller.
    """
    return compiled(function, _nrt=False)


def compiled_inline(function: Callable) -> Callable:
    """Compile like :func:`compiled_inner`, into the callers: an array is passed as seven numbers, which for a few steps costs more."""
    return compiled(function, _nrt=False, forceinline=True)
