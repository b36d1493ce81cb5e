"""The forward pass of a Qwen2 or Llama decoder, with its KV in a cache."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvtier.analytic.attention import rope_frequencies
from kvtier.model.arithmetic import BLAS, Arithmetic
from kvtier.model.attention import Attention, dense
from kvtier.model.cache import KVCache
from kvtier.model.weights import LayerWeights, Weights


def rms_norm(activations: NDArray, gain: NDArray, eps: float, arithmetic: Arithmetic = BLAS) -> NDArray:
    """Each row over its root mean square, times the gains (Zhang and Sennrich 2019).

    Parameters
    ----------
    activations : ndarray, shape (tokens, hidden)
    gain : ndarray, shape (hidden,)
    eps : float
        Added to the mean square.
    arithmetic : Arithmetic

    Returns
    -------
    ndarray, shape (tokens, hidden)
    """
    number = activations.dtype.type
    mean_square = arithmetic.total(activations * activations) / number(activations.shape[-1])
    return activations / np.sqrt(mean_square + number(eps)) * gain


def rotations(positions: ArrayLike, head_dim: int, base: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosine and sine of each pair's angle at each position.

    Parameters
    ----------
    positions : array_like of int, shape (tokens,)
    head_dim : int
    base : float

    Returns
    -------
    cosines, sines : ndarray of float32, shape (tokens, head_dim / 2)
        Rounded to float32 in every model, as Qwen2 keeps them: so the last bits of the C library's float64 have no say.
    """
    angles = np.outer(positions, rope_frequencies(head_dim, base))
    cosines = np.array([math.cos(angle) for angle in angles.flat], dtype=np.float32)
    sines = np.array([math.sin(angle) for angle in angles.flat], dtype=np.float32)
    return cosines.reshape(angles.shape), sines.reshape(angles.shape)


def rotate(heads: NDArray, cosines: NDArray, sines: NDArray) -> NDArray:
    """Turn element i and element i + head_dim / 2 of each head by the angle of their pair (RoPE, rotate-half).

    Parameters
    ----------
    heads : ndarray, shape (..., tokens, head_dim)
    cosines, sines : ndarray, shape (tokens, head_dim / 2)

    Returns
    -------
    ndarray, shape (..., tokens, head_dim)

    Notes
    -----
    The paper pairs neighbours (Su et al. 2021; :func:`kvtier.analytic.attention.rope_rotate`); Llama's and Qwen2's code pairs halves.
    The two differ by a fixed order of a head's elements, which weights absorb.
    """
    half = heads.shape[-1] // 2
    lower, upper = heads[..., :half], heads[..., half:]
    cosines, sines = cosines.astype(heads.dtype), sines.astype(heads.dtype)
    return np.concatenate([lower * cosines - upper * sines, upper * cosines + lower * sines], axis=-1)


def split_heads(rows: NDArray, head_dim: int) -> NDArray:
    """Rows of all heads side by side to one matrix a head: (tokens, heads * head_dim) to (heads, tokens, head_dim)."""
    return rows.reshape(len(rows), -1, head_dim).swapaxes(0, 1)


def swiglu(activations: NDArray, layer: LayerWeights, arithmetic: Arithmetic = BLAS) -> NDArray:
    """down(silu(gate) · up) (Shazeer 2020): shape (tokens, hidden) to the same."""
    gate = arithmetic.matmul(activations, layer.gate)
    gated = gate / (gate.dtype.type(1) + arithmetic.exp(-gate)) * arithmetic.matmul(activations, layer.up)
    return arithmetic.matmul(gated, layer.down)


def attend(
    activations: NDArray, layer: int, weights: Weights, cache: KVCache, positions: NDArray, arithmetic: Arithmetic, attention: Attention
) -> NDArray:
    """Attention half of a layer: write the new tokens' keys and values, then read all that is cached.

    Parameters
    ----------
    activations : ndarray, shape (tokens, hidden)
        Normed.
    layer : int
    weights : Weights
    cache : KVCache
        With room for the tokens.
    positions : ndarray of int, shape (tokens,)
    arithmetic : Arithmetic
    attention : Attention

    Returns
    -------
    ndarray, shape (tokens, hidden)
    """
    config, own = weights.config, weights.layers[layer]
    turn = rotations(positions, config.head_dim, config.rope_base)

    def heads(matrix: NDArray, bias: NDArray) -> NDArray:
        return split_heads(arithmetic.matmul(activations, matrix) + bias, config.head_dim)

    queries, new_keys = rotate(heads(own.query, own.query_bias), *turn), rotate(heads(own.key, own.key_bias), *turn)
    cache.write(layer, new_keys, heads(own.value, own.value_bias))
    keys, values = cache.read(layer)

    causal = cache.first_position + np.arange(cache.tokens) <= positions[:, None]
    visible = causal & cache.kept(layer)[:, None]
    grouped = queries.reshape(config.kv_heads, config.group, len(positions), config.head_dim)
    attended = attention(grouped, keys, values, visible, arithmetic).reshape(queries.shape)
    return arithmetic.matmul(attended.swapaxes(0, 1).reshape(len(positions), -1), own.output)


def forward(weights: Weights, tokens: ArrayLike, cache: KVCache, arithmetic: Arithmetic = BLAS, attention: Attention = dense) -> NDArray:
    """Run tokens that follow the cached ones: a prefill, a part of one, or a step of decode.

    Parameters
    ----------
    weights : Weights
    tokens : array_like of int, shape (tokens,)
    cache : KVCache
        Grows by the keys and values of the tokens.
    arithmetic : Arithmetic
    attention : Attention
        :func:`~kvtier.model.attention.dense`, or a streamed one.

    Returns
    -------
    ndarray, shape (tokens, vocab)
        Logits of the token after each.

    Raises
    ------
    NotResident
        If a cached block is not there.
    """
    eps = weights.config.norm_eps
    activations = weights.embedding[np.asarray(tokens)]
    positions = cache.extend(len(activations))
    for layer, own in enumerate(weights.layers):
        normed = rms_norm(activations, own.attention_norm, eps, arithmetic)
        activations = activations + attend(normed, layer, weights, cache, positions, arithmetic, attention)
        activations = activations + swiglu(rms_norm(activations, own.ffn_norm, eps, arithmetic), own, arithmetic)
    return arithmetic.matmul(rms_norm(activations, weights.final_norm, eps, arithmetic), weights.unembedding)


def forward_in_pieces(
    weights: Weights,
    tokens: Sequence[int],
    cache: KVCache,
    piece_tokens: int,
    arithmetic: Arithmetic = BLAS,
    attention: Attention = dense,
) -> NDArray:
    """The same in several calls: prefill in blocks (`piece_tokens` 16), or decode of given tokens (1).

    Returns
    -------
    ndarray, shape (tokens, vocab)
    """
    pieces: Iterable[Sequence[int]] = (tokens[first : first + piece_tokens] for first in range(0, len(tokens), piece_tokens))
    return np.concatenate([forward(weights, piece, cache, arithmetic, attention) for piece in pieces])


def greedy(weights: Weights, token: int, steps: int, cache: KVCache, arithmetic: Arithmetic = BLAS) -> list[int]:
    """Decode `steps` tokens after `token`, each the likeliest; the lowest of equals."""
    decoded = []
    for _ in range(steps):
        token = int(forward(weights, [token], cache, arithmetic)[-1].argmax())
        decoded.append(token)
    return decoded
