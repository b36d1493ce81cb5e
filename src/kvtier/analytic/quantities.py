"""Sizes and counts as people write them, read and printed without taking GiB for GB."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from kvtier.analytic.layouts import LARGEST
from kvtier.errors import InputError
from kvtier.units import GB, GIB, K_TOKENS, KIB, MB, MIB, TB

BINARY = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 2**40}
DECIMAL = {"kB": 1000, "MB": MB, "GB": GB, "TB": TB}
LARGEST_BYTES = 2**60
COUNTS = {"": 1, "k": 1_000, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12, "p": 10**15}
NUMBER = r"([0-9]{1,30}(?:,[0-9]{3})*(?:\.[0-9]{1,30})?)"


def shortened(text: str) -> str:
    """What was given, cut where it is too long for one line."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def tokens(text: str, option: str = "--context") -> int:
    """A number of tokens: ``131072``, ``131,072``, ``128K`` (K is 1,024) or ``1M`` (1,048,576).

    Raises
    ------
    InputError
        If it is none, zero, no whole number, or above 2^40.
    """
    match = re.fullmatch(rf"{NUMBER}\s*([kKmM]?)", text.strip())
    scale = {"": 1, "k": K_TOKENS, "m": K_TOKENS**2}
    value = Fraction(match[1].replace(",", "")) * scale[match[2].lower()] if match else Fraction(0)
    if value.denominator != 1 or not 0 < value <= LARGEST:
        raise InputError(option, "tokens", shortened(text), f"a whole number from 1 to {LARGEST:,}, or such as 128K")
    return int(value)


def size_bytes(text: str, option: str) -> int:
    """A size with its unit: ``80 GiB`` is 80 · 2^30 B, ``80 GB`` is 80 · 10^9 B. A part of a byte is dropped.

    Raises
    ------
    InputError
        If it has no unit, one whose case is wrong, or is zero or above 2^60 B.
    """
    units = BINARY | DECIMAL
    match = re.fullmatch(rf"{NUMBER}\s*({'|'.join(units)})", text.strip())
    value = int(Fraction(match[1].replace(",", "")) * units[match[2]]) if match else 0
    if not 0 < value <= LARGEST_BYTES:
        raise InputError(option, "size", shortened(text), "a size with its unit, such as 80 GiB (2^30 B) or 80 GB (10^9 B)")
    return value


def amount(text: str, option: str, expected: str) -> Fraction:
    """A positive quantity with an optional decimal prefix: ``8.03B``, ``989T``, ``989e12``.

    Raises
    ------
    InputError
        If it is none, or zero, or above 10^21.
    """
    match = re.fullmatch(rf"{NUMBER}(?:[eE]\+?([0-9]{{1,2}}))?\s*([kKmMbBgGtTpP]?)", text.strip())
    value = Fraction(match[1].replace(",", "")) * 10 ** int(match[2] or 0) * COUNTS[match[3].lower()] if match else Fraction(0)
    if not 0 < value <= 10**21:
        raise InputError(option, "value", shortened(text), expected)
    return value


def amount_or_zero(text: str, option: str, expected: str) -> Fraction:
    """As :func:`amount`, or zero: ``0``, ``0.0``.

    Raises
    ------
    InputError
        If it is neither.
    """
    return Fraction(0) if re.fullmatch(r"0+(\.0*)?", text.strip()) else amount(text, option, expected)


def rounded(value: Fraction | float, digits: int = 4) -> tuple[str, bool]:
    """A value at `digits` significant digits or all of its whole ones, and whether that is exact."""
    exact = Fraction(value)
    whole = len(str(abs(int(exact)))) if abs(exact) >= 1 else 0
    places = max(0, digits - whole) if whole else digits
    shown = round(exact, places)
    text = f"{Decimal(shown.numerator) / Decimal(shown.denominator):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text, shown == exact


def in_unit(size: int, unit: str, digits: int = 4) -> str:
    """A size in one unit; ``≈`` before what is rounded."""
    text, exact = rounded(Fraction(size, (BINARY | DECIMAL)[unit]), digits)
    return f"{'' if exact else '≈ '}{text} {unit}"


def said(size: int) -> str:
    """A size in bytes, in the largest binary unit that it fills, and from 1 GB on in GB or TB: ``17,179,869,184 B = 16 GiB ≈ 17.18 GB``."""
    parts = [f"{size:,} B"]
    unit = next((name for name, scale in reversed(BINARY.items()) if size >= scale), "B")
    decimal = ["TB"] if size >= TB else ["GB"] if size >= GB else []
    for name in [*([unit] if unit != "B" else []), *decimal]:
        text = in_unit(size, name)
        parts.append(text if text.startswith("≈") else f"= {text}")
    return " ".join(parts)
