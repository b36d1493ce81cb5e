"""Counts and times as guards take them: what is not one is refused before it is compared, since NaN compares false with any bound."""

from __future__ import annotations

import operator
from math import isfinite
from pathlib import Path
from typing import Any

from kvtier.errors import InputError


def count(value: Any, source: str | Path, field: str, least: int = 0) -> int:
    """A whole number, as a Python integer: of bytes, tokens or queries.

    Parameters
    ----------
    value : object
        An integer of any library. A float is not one, even where it has no fraction: bytes are counted.
    source : str or Path
        Named in errors.
    field : str
        What the number is of, for errors.
    least : int
        Smallest value that is accepted.

    Raises
    ------
    InputError
        If it is not an integer, or below `least`.
    """
    try:
        found = operator.index(value)
    except TypeError:
        found = None
    if found is None or isinstance(value, bool) or found < least:
        raise InputError(source, field, value, f"a whole number of {least:,} or more")
    return found


def positive(value: Any, source: str | Path, field: str, unit: str) -> float:
    """A finite number above 0.

    Parameters
    ----------
    value : float
    source : str or Path
        Named in errors.
    field, unit : str
        What it is, for errors.

    Raises
    ------
    InputError
        If it is not a number, not finite or not above 0.
    """
    try:
        good = isfinite(value) and value > 0
    except TypeError:
        good = False
    if not good:
        raise InputError(source, field, value, f"a finite number above 0 {unit}".rstrip())
    return value
