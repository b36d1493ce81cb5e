"""Grouped-query attention over cached keys and values: all at once, and streamed over chunks with an online softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtier.model.arithmetic import Arithmetic

Attention = Callable[[NDArray, NDArray, NDArray, NDArray, Arithmetic], NDArray]
"""``(queries, keys, values, visible, arithmetic) -> outputs``, as :func:`dense`."""


class Partial(NamedTuple):
    """Attention over some of the keys, in a form that can be joined with that over others.

    Parameters
    ----------
    peak : ndarray, shape (kv_heads, group, queries, 1)
        Greatest score; minus infinity where no key is visible.
    mass : ndarray, shape (kv_heads, group, queries, 1)
        Sum of exp(score − peak).
    weighted : ndarray, shape (kv_heads, group, queries, head_dim)
        Sum of exp(score − peak) · value.
    """

    peak: NDArray
    mass: NDArray
    weighted: NDArray


def partial(queries: NDArray, keys: NDArray, values: NDArray, visible: NDArray, arithmetic: Arithmetic) -> Partial:
    """Attention over one set of keys, before division by the sum.

    Parameters
    ----------
    queries : ndarray, shape (kv_heads, group, queries, head_dim)
        Query heads in groups, a group a KV head.
    keys, values : ndarray, shape (kv_heads, keys, head_dim)
    visible : ndarray of bool, shape (kv_heads, queries, keys)
    arithmetic : Arithmetic
    """
    scores = arithmetic.matmul(queries, keys.swapaxes(1, 2)[:, None]) / queries.dtype.type(math.sqrt(queries.shape[-1]))
    scores = np.where(visible[:, None], scores, queries.dtype.type(-np.inf))
    peak = scores.max(axis=-1, keepdims=True)
    exponentials = arithmetic.exp(scores - _finite(peak))
    return Partial(peak, arithmetic.total(exponentials), arithmetic.matmul(exponentials, values[:, None]))


def join(one: Partial, other: Partial, arithmetic: Arithmetic) -> Partial:
    """Attention over the keys of both: each is brought to the greater peak, then they add (Milakov and Gimelshein 2018)."""
    peak = np.maximum(one.peak, other.peak)
    scale_one, scale_other = (arithmetic.exp(part.peak - _finite(peak)) for part in (one, other))
    return Partial(peak, one.mass * scale_one + other.mass * scale_other, one.weighted * scale_one + other.weighted * scale_other)


def finish(part: Partial) -> NDArray:
    """Outputs, shape (kv_heads, group, queries, head_dim); zeros where no key is visible."""
    return np.divide(part.weighted, part.mass, out=np.zeros_like(part.weighted), where=part.mass > 0)


def _finite(peak: NDArray) -> NDArray:
    """The peak as a shift; 0 where nothing is visible, for infinity less infinity is no number."""
    return np.where(np.isfinite(peak), peak, peak.dtype.type(0))


def dense(queries: NDArray, keys: NDArray, values: NDArray, visible: NDArray, arithmetic: Arithmetic) -> NDArray:
    """Attention over all keys at once.

    Parameters
    ----------
    queries : ndarray, shape (kv_heads, group, queries, head_dim)
    keys, values : ndarray, shape (kv_heads, keys, head_dim)
    visible : ndarray of bool, shape (kv_heads, queries, keys)
        Which key each query may attend to.
    arithmetic : Arithmetic

    Returns
    -------
    ndarray, shape (kv_heads, group, queries, head_dim)
    """
    return finish(partial(queries, keys, values, visible, arithmetic))


def streamed(chunks: Sequence[int]) -> Attention:
    """Attention that sees the keys chunk by chunk and never holds more than one chunk of scores.

    Parameters
    ----------
    chunks : sequence of int
        Keys of each chunk, all positive; the last size repeats until the keys are used up.

    Returns
    -------
    Attention
        Equal to :func:`dense` to rounding, not bit by bit: each chunk's sum starts anew, so the order of the sum is another.
    """

    def attention(queries: NDArray, keys: NDArray, values: NDArray, visible: NDArray, arithmetic: Arithmetic) -> NDArray:
        parts = [
            partial(queries, keys[:, first:stop], values[:, first:stop], visible[:, :, first:stop], arithmetic)
            for first, stop in chunk_bounds(keys.shape[1], chunks)
        ]
        together = parts[0]
        for part in parts[1:]:
            together = join(together, part, arithmetic)
        return finish(together)

    return attention


def chunk_bounds(keys: int, chunks: Sequence[int]) -> list[tuple[int, int]]:
    """First key of each chunk and the one after its last.

    Raises
    ------
    ValueError
        If there is no chunk size, or one that is not positive.
    """
    if not chunks or min(chunks) < 1:
        raise ValueError(f"chunks must be positive sizes, got {list(chunks)}")
    bounds, first = [], 0
    while first < keys:
        stop = min(keys, first + chunks[min(len(bounds), len(chunks) - 1)])
        bounds.append((first, stop))
        first = stop
    return bounds
