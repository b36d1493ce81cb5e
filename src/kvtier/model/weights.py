"""Weights of the small transformer, random from a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kvtier.model.config import ModelConfig


@dataclass(frozen=True)
class LayerWeights:
    """One decoder layer. A matrix has a row an input and a column an output: activations stand to its left.

    Parameters
    ----------
    attention_norm, ffn_norm : ndarray, shape (hidden,)
        Gains of the norm before each half of the layer.
    query : ndarray, shape (hidden, query_heads * head_dim)
    key, value : ndarray, shape (hidden, kv_heads * head_dim)
    query_bias, key_bias, value_bias : ndarray, shape of the columns above
        Zeros in a model without.
    output : ndarray, shape (query_heads * head_dim, hidden)
    gate, up : ndarray, shape (hidden, ffn)
    down : ndarray, shape (ffn, hidden)
    """

    attention_norm: NDArray
    query: NDArray
    query_bias: NDArray
    key: NDArray
    key_bias: NDArray
    value: NDArray
    value_bias: NDArray
    output: NDArray
    ffn_norm: NDArray
    gate: NDArray
    up: NDArray
    down: NDArray


@dataclass(frozen=True)
class Weights:
    """A whole model.

    Parameters
    ----------
    config : ModelConfig
    embedding : ndarray, shape (vocab, hidden)
    layers : tuple of LayerWeights
    final_norm : ndarray, shape (hidden,)
    unembedding : ndarray, shape (hidden, vocab)
        The embedding transposed where the two are tied.
    """

    config: ModelConfig
    embedding: NDArray
    layers: tuple[LayerWeights, ...]
    final_norm: NDArray
    unembedding: NDArray

    @property
    def dtype(self) -> np.dtype:
        """Type of all weights, so of all activations and of the KV."""
        return self.embedding.dtype


def random_weights(config: ModelConfig, seed: int, dtype: DTypeLike = np.float32) -> Weights:
    """Weights that keep activations of order 1 through every matrix.

    Parameters
    ----------
    config : ModelConfig
    seed : int
        Of ``numpy.random.default_rng``.
    dtype : data type
        The float32 weights of a seed are its float64 weights, rounded.

    Returns
    -------
    Weights
        Uniform with variance 1 / inputs in matrices, 1/4 in biases; gains of the norms from 0.5 to 1.5.

    Notes
    -----
    Uniform and not normal: the generator's uniform doubles are exact, its normal ones pass through the C library's logarithm.
    """
    rng = np.random.default_rng(seed)

    def uniform(half_width: float, *shape: int) -> NDArray:
        return ((2.0 * rng.random(shape) - 1.0) * half_width).astype(dtype)

    def matrix(inputs: int, outputs: int) -> NDArray:
        return uniform(math.sqrt(3.0 / inputs), inputs, outputs)

    def bias(outputs: int) -> NDArray:
        return uniform(math.sqrt(0.75) if config.qkv_bias else 0.0, outputs)

    def gain() -> NDArray:
        return (0.5 + rng.random(config.hidden)).astype(dtype)

    def layer() -> LayerWeights:
        query_width, kv_width = config.query_heads * config.head_dim, config.kv_heads * config.head_dim
        return LayerWeights(
            attention_norm=gain(),
            query=matrix(config.hidden, query_width),
            query_bias=bias(query_width),
            key=matrix(config.hidden, kv_width),
            key_bias=bias(kv_width),
            value=matrix(config.hidden, kv_width),
            value_bias=bias(kv_width),
            output=matrix(query_width, config.hidden),
            ffn_norm=gain(),
            gate=matrix(config.hidden, config.ffn),
            up=matrix(config.hidden, config.ffn),
            down=matrix(config.ffn, config.hidden),
        )

    embedding = np.ascontiguousarray(matrix(config.hidden, config.vocab).T)
    layers = tuple(layer() for _ in range(config.layers))
    unembedding = np.ascontiguousarray(embedding.T) if config.tied else matrix(config.hidden, config.vocab)
    return Weights(config, embedding, layers, gain(), unembedding)
