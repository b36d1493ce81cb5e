"""The forward pass of :mod:`kvtier.model` in float32 by numpy's BLAS: regeneration where torch is not installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from kvtier.kit.backends import Loaded, Pool, shapes
from kvtier.model.arithmetic import BLAS
from kvtier.model.attention import dense
from kvtier.model.cache import BLOCK_TOKENS, KVCache
from kvtier.model.config import ModelConfig
from kvtier.model.transformer import attend, rms_norm, swiglu
from kvtier.model.weights import Weights, random_weights

PIECE_TOKENS = 256
"""Tokens that are prefilled at a time: scores of a whole prompt at once would take more memory than the model."""


class Numpy:
    """A model with random weights.

    Parameters
    ----------
    shape : ModelConfig
    seed : int
    """

    def __init__(self, shape: ModelConfig, seed: int) -> None:
        self.weights = random_weights(shape, seed, np.float32)
        resident = _arrays(self.weights)
        self.loaded = Loaded(
            model=shapes.in_words(shape),
            dtype="float32",
            resident_dtype=", ".join(sorted({str(each.dtype) for each in resident})),
            parameters=sum(each.size for each in resident),
            layer_parameters=shapes.layer_parameters(shape),
            weight_bytes=sum(each.nbytes for each in resident),
            unread_bytes=0,
            layers=shape.layers,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            vocabulary=shape.vocab,
            kv_bytes_per_token=shapes.kv_bytes_per_token(shape, "float32"),
        )
        self.described = {"numpy": "float32 by numpy's BLAS, paged KV, no logits"}
        self._cached = KVCache(shape, np.float32)

    def prefill(self, prompts: Sequence[Sequence[int]], progress: Callable[[float], None] = lambda share: None) -> None:
        """Run the first prompt and keep its KV."""
        self._cached = KVCache(self.weights.config, np.float32)
        for first in range(0, len(prompts[0]), PIECE_TOKENS):
            progress(first / len(prompts[0]))
            through_layers(self.weights, prompts[0][first : first + PIECE_TOKENS], self._cached)

    def regenerate_s(self, ids: Sequence[int], context_tokens: int) -> tuple[float, float]:
        """As :meth:`kvtier.kit.backends.transformers.Transformers.regenerate_s`; the context is whole blocks."""
        own = self._cached.copy(context_tokens // BLOCK_TOKENS)
        start = perf_counter_ns()
        through_layers(self.weights, ids, own)
        seconds = (perf_counter_ns() - start) * 1e-9
        stop = context_tokens + len(ids)
        pairs = [
            (new[:, context_tokens:].astype(float), old[:, context_tokens:stop].astype(float))
            for layer in range(self.loaded.layers)
            for new, old in zip(own.read(layer), self._cached.read(layer), strict=True)
        ]
        return seconds, max(float(np.linalg.norm(new - old) / np.linalg.norm(old)) for new, old in pairs)

    def pool(self) -> Pool:
        """Blocks of the prompt."""
        return Pool(self._cached.resident_bytes, self._cached.blocks * self._cached.block_tokens)

    def close(self) -> None:
        """Nothing: the memory goes with the object."""


def through_layers(weights: Weights, ids: Sequence[int], cached: KVCache) -> None:
    """The forward pass without its logits: what it leaves is KV."""
    eps = weights.config.norm_eps
    activations = weights.embedding[np.asarray(ids)]
    positions = cached.extend(len(activations))
    for layer, own in enumerate(weights.layers):
        normed = rms_norm(activations, own.attention_norm, eps, BLAS)
        activations = activations + attend(normed, layer, weights, cached, positions, BLAS, dense)
        activations = activations + swiglu(rms_norm(activations, own.ffn_norm, eps, BLAS), own, BLAS)


def _arrays(weights: Weights) -> list[np.ndarray]:
    """Every array of the model, without biases that are zero and a transposed copy of the embedding: neither is a parameter."""
    of_layers = [
        value for layer in weights.layers for name, value in vars(layer).items() if weights.config.qkv_bias or not name.endswith("_bias")
    ]
    own = [] if weights.config.tied else [weights.unembedding]
    return [weights.embedding, weights.final_norm, *own, *of_layers]
