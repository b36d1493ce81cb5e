"""Compilation of the simulators' inner loops."""

from __future__ import annotations

from collections.abc import Callable

from numba import njit


def compiled(function: Callable) -> Callable:
    """Compile a function at its first call, and keep the machine code on disk where some folder can be written.

    Functions that call one another must stand in one module: the copy on disk is renewed when the file of the function that was called
    changes, and not when a file does from which that function imports others.
    """
    try:
        return njit(cache=True)(function)
    except RuntimeError:
        # Neither beside the module nor in the user's folder: every process then compiles for itself.
        return njit(function)
