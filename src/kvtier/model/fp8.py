"""Rounding to eight-bit floats, e4m3 without infinities, as KV caches in fp8 store their elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LARGEST = 448.0
"""Greatest finite value: exponent 8, significand 1.75. The code above it is no number (Micikevicius et al. 2022)."""

_BIAS, _FRACTION_BITS, _LOWEST_EXPONENT = 7, 3, -6


def decode_e4m3(codes: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Values of codes: a sign, four bits of exponent, three of fraction.

    Parameters
    ----------
    codes : ndarray of uint8, any shape

    Returns
    -------
    ndarray of float64, same shape
        Not a number for 0x7F and 0xFF.
    """
    magnitude = (codes & 0x7F).astype(np.int64)
    exponent, fraction = magnitude >> _FRACTION_BITS, magnitude & 0b111
    # Exponent field 0 is subnormal: no leading one, and the exponent of field 1.
    significand = np.where(exponent > 0, 8 + fraction, fraction).astype(np.float64)
    values = np.ldexp(significand, np.maximum(exponent, 1) - _BIAS - _FRACTION_BITS)
    values = np.where(magnitude == 0x7F, np.nan, values)
    return np.where(codes & 0x80, -values, values)


def round_to_e4m3(values: NDArray) -> NDArray:
    """The nearest value that e4m3 has; of two, that with the even fraction; beyond the largest, the largest.

    Parameters
    ----------
    values : ndarray of float32 or float64, any shape
        No number stays none.

    Returns
    -------
    ndarray, same shape and type
        Off by 1/16 at most of values from 2^-6 to 448, by 2^-10 at most below.

    Notes
    -----
    Conversions differ in what they do beyond the largest: this one saturates, infinities included, as kernels of KV caches do.
    """
    bounded = np.clip(values, -LARGEST, LARGEST)
    _, exponent = np.frexp(bounded)
    # frexp's significand is below 1, so a value of [2^e, 2^(e+1)) has exponent e + 1 and a step of 2^(e − 3).
    step = np.ldexp(values.dtype.type(1), np.maximum(exponent - 1, _LOWEST_EXPONENT) - _FRACTION_BITS)
    return np.rint(bounded / step) * step


def encode_e4m3(values: NDArray) -> NDArray[np.uint8]:
    """Codes of the rounded values, one byte each: what an fp8 tier would hold.

    Parameters
    ----------
    values : ndarray of float32 or float64, any shape

    Returns
    -------
    ndarray of uint8, same shape
        ``decode_e4m3`` of them is ``round_to_e4m3`` of the values.
    """
    rounded = round_to_e4m3(values)
    table = decode_e4m3(np.arange(0x7F, dtype=np.uint8))
    codes = np.searchsorted(table, np.abs(rounded)).astype(np.uint8)
    codes = np.where(np.isnan(rounded), np.uint8(0x7F), codes)
    return codes | np.where(np.signbit(rounded), np.uint8(0x80), np.uint8(0))
