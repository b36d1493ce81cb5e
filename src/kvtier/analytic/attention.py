"""Attention as far as tiering needs it: softmax, rotary phases, and the state kept for a block."""

from __future__ import annotations

import cmath
import math
from functools import cache
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray


def exponentials(scores: ArrayLike) -> NDArray[np.float64]:
    """Exponential of each score, unshifted: what a softmax divides by their sum.

    Raises
    ------
    ValueError
        If an exponential is too large for a float.
    """
    try:
        return np.array([math.exp(score) for score in np.asarray(scores, dtype=np.float64)])
    except OverflowError:
        raise ValueError(f"scores must have a finite exponential, got {scores!r}") from None


def softmax(scores: ArrayLike) -> NDArray[np.float64]:
    """Normalised exponentials of the scores.

    Parameters
    ----------
    scores : array_like, shape (n,)
        At least one, all finite.

    Returns
    -------
    ndarray, shape (n,)
        Positive weights that sum to 1.

    Raises
    ------
    ValueError
        If `scores` is empty, not one-dimensional or not finite.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"softmax needs a non-empty row of finite scores, got {scores!r}")
    # Shifting by the maximum changes nothing but keeps exp from overflowing.
    # The C library's exp, here and below: numpy's differs in the last bit between processors.
    shifted = exponentials(values - values.max())
    return shifted / math.fsum(shifted)


def block_positions(block: int, block_tokens: int) -> tuple[int, int]:
    """First and last token position of a block, both inside it.

    Raises
    ------
    ValueError
        If `block` is negative or `block_tokens` is not positive.
    """
    if block < 0 or block_tokens <= 0:
        raise ValueError(f"need block >= 0 and block_tokens > 0, got {block} and {block_tokens}")
    return block * block_tokens, (block + 1) * block_tokens - 1


def block_count(tokens: int, block_tokens: int) -> int:
    """Blocks that hold `tokens` positions, the last one perhaps part-filled.

    Raises
    ------
    ValueError
        If `tokens` is negative or `block_tokens` is not positive.
    """
    if tokens < 0 or block_tokens <= 0:
        raise ValueError(f"need tokens >= 0 and block_tokens > 0, got {tokens} and {block_tokens}")
    return -(-tokens // block_tokens)


@cache
def _frequencies(head_dim: int, base: float) -> tuple[float, ...]:
    return tuple(float(base) ** (-2.0 * pair / head_dim) for pair in range(head_dim // 2))


def rope_frequencies(head_dim: int, base: float) -> NDArray[np.float64]:
    """Rotation of each pair of elements per position [rad]: θ_i = base^(−2i/d).

    Parameters
    ----------
    head_dim : int
        Elements of a head, even.
    base : float
        10,000 in Su et al. 2021 and Llama-2; 500,000 in Llama-3.

    Returns
    -------
    ndarray, shape (head_dim / 2,)
        Falling from 1.

    Raises
    ------
    ValueError
        If `head_dim` is not a positive even number or `base` is not above 1.
    """
    if head_dim <= 0 or head_dim % 2 or not base > 1:
        raise ValueError(f"need an even head_dim > 0 and base > 1, got {head_dim} and {base}")
    return np.array(_frequencies(head_dim, base))


def rope_rotate(vector: ArrayLike, position: int, base: float) -> NDArray[np.complex128]:
    """A head's vector as complex pairs (2i, 2i + 1), rotated to a position.

    Parameters
    ----------
    vector : array_like, shape (head_dim,)
        Query or key before rotation.
    position : int
        Token position.
    base : float
        Base of the frequencies.

    Returns
    -------
    ndarray of complex, shape (head_dim / 2,)
        The inner product of query and key is the real part of ``sum(q * conj(k))``.
    """
    pairs = np.asarray(vector, dtype=np.float64).reshape(-1, 2)
    return (pairs[:, 0] + 1j * pairs[:, 1]) * np.exp(1j * position * rope_frequencies(pairs.size, base))


def rope_partial_sums(distance: int, head_dim: int, base: float) -> NDArray[np.complex128]:
    """S_j = Σ_{i<j} exp(√−1 · distance · θ_i) for j = 1 ... head_dim / 2.

    Returns
    -------
    ndarray of complex, shape (head_dim / 2,)
        The cosines and sines of the phases, accumulated from the fastest pair on.
    """
    return np.cumsum([cmath.rect(1.0, distance * frequency) for frequency in rope_frequencies(head_dim, base)])


def rope_envelope(distance: int, head_dim: int, base: float) -> float:
    """Shape of the distance bound: the mean of |S_j|, as a share of its value at distance 0.

    Parameters
    ----------
    distance : int
        Between query and key [tokens]; the sign does not matter.
    head_dim : int
        Elements of a head.
    base : float
        Base of the frequencies.

    Returns
    -------
    float
        1 at distance 0, never above 1.

    Notes
    -----
    Su et al. 2021 (RoFormer, section 3.4.3) plot (1 / (d/2)) Σ |S_j|; at distance 0 that is (d/2 + 1) / 2, by which it is divided
    here. It is neither monotone nor does it tend to zero: |S_1| is 1 at every distance, and phases that are almost periodic
    come back. It bounds what a score can be, given the content (:func:`rope_bound`), and says nothing about what it is.
    """
    # The sums of rope_partial_sums, without an array for each of many distances.
    lengths = [abs(partial) for partial in accumulate(cmath.rect(1.0, distance * theta) for theta in _frequencies(head_dim, base))]
    return math.fsum(lengths) / sum(range(1, len(lengths) + 1))


def rope_bound(query: ArrayLike, key: ArrayLike, distance: int, base: float) -> float:
    """B(distance) with |<q_m, k_n>| <= B(|m − n|) for vectors before rotation.

    Parameters
    ----------
    query, key : array_like, shape (head_dim,)
        Before rotation.
    distance : int
        m − n [tokens].
    base : float
        Base of the frequencies.

    Returns
    -------
    float
        The smaller of the Abel bound and of the norm of h in the sum norm.

    Notes
    -----
    With h_i = q_i · conj(k_i) over pairs and h_{d/2} = 0, summation by parts gives |Σ h_i e^{...}| <= max_i |h_{i+1} − h_i| · Σ |S_j|
    (Su et al. 2021, section 3.4.3). The triangle inequality gives Σ |h_i| at any distance; where the Abel bound is the larger,
    distance bounds nothing.
    """
    products = rope_rotate(query, 0, base) * np.conj(rope_rotate(key, 0, base))
    steps = np.abs(np.diff(np.append(products, 0.0)))
    abel = steps.max() * np.abs(rope_partial_sums(distance, 2 * products.size, base)).sum()
    return float(min(abel, np.abs(products).sum()))
