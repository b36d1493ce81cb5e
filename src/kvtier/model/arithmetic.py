"""Sums of products in two ways: numpy's fast one, and one whose every rounding is the same on any machine.

A BLAS picks the order of a sum by processor and by the shape of the matrices, so the last bits of a product depend on both: a row of a
large product is not the same row computed alone. In :data:`ORDERED` each element is summed in ascending order by separate IEEE
multiplications and additions, which leaves one possible result. It holds every product in memory, which a tiny model can afford.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Arithmetic:
    """The operations of a forward pass whose rounding is not settled by IEEE 754.

    Parameters
    ----------
    name : str
        As tables print it.
    matmul : callable
        ``(..., m, n), (..., n, p) -> (..., m, p)``, broadcasting before the last two axes.
    total : callable
        Sum along the last axis, which stays as length 1.
    exp : callable
        Exponential, element by element, in the type of its argument; 0 of minus infinity.
    """

    name: str
    matmul: Callable[[NDArray, NDArray], NDArray]
    total: Callable[[NDArray], NDArray]
    exp: Callable[[NDArray], NDArray]


def ordered_matmul(left: NDArray, right: NDArray) -> NDArray:
    """Matrix product, each element summed from the first product to the last, rounding after each operation.

    Parameters
    ----------
    left : ndarray, shape (..., m, n)
    right : ndarray, shape (..., n, p)

    Returns
    -------
    ndarray, shape (..., m, p)
        An element depends on its row and its column alone, not on how many others there are.
    """
    # accumulate adds one after the other by definition; reduce, sum and einsum may pair summands as they like.
    return np.add.accumulate(left[..., :, :, None] * right[..., None, :, :], axis=-2)[..., -1, :]


def ordered_total(values: NDArray) -> NDArray:
    """Sum along the last axis in ascending order: shape (..., n) to (..., 1)."""
    return np.add.accumulate(values, axis=-1)[..., -1:]


# ln 2 in two parts: the upper has zeros enough for its products with whole numbers to be exact.
_LN2_UPPER, _LN2_LOWER = float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45")
_TAYLOR = [1.0 / math.factorial(n) for n in range(14)]


def ordered_exp(exponent: NDArray) -> NDArray:
    """Exponential by IEEE operations alone: neither numpy's nor the C library's is the same on all processors.

    Parameters
    ----------
    exponent : ndarray, any shape
        Minus infinity gives 0, no number gives none.

    Returns
    -------
    ndarray, same shape and type
        Within 2 units in the last place in float64; infinite above 710.

    Notes
    -----
    e^x = 2^k e^r with k whole and |r| <= ln 2 / 2, where fourteen terms of the series are exact to less than 2^-56.
    """
    bounded = np.clip(exponent.astype(np.float64), -800.0, 710.0)
    power = np.rint(bounded / math.log(2))
    rest = bounded - power * _LN2_UPPER - power * _LN2_LOWER
    series = np.full_like(rest, _TAYLOR[-1])
    for coefficient in reversed(_TAYLOR[:-1]):
        series = series * rest + coefficient
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.ldexp(series, power.astype(np.int64)).astype(exponent.dtype)


BLAS = Arithmetic("BLAS", np.matmul, lambda values: values.sum(axis=-1, keepdims=True), np.exp)
"""numpy's own: fast, equal between machines and between shapes only to rounding."""

ORDERED = Arithmetic("ordered", ordered_matmul, ordered_total, ordered_exp)
"""The same bits on every machine with IEEE 754, whatever the shapes."""
