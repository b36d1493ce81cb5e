"""Shape of the small transformer: what a Qwen2 or Llama checkpoint states in its configuration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from kvtier.analytic.geometry import ModelGeometry
from kvtier.errors import InputError
from kvtier.evidence.labels import Label


@dataclass(frozen=True)
class ModelConfig:
    """Shape and constants of a decoder with grouped-query attention.

    Parameters
    ----------
    layers, hidden, query_heads, kv_heads, head_dim, ffn, vocab : int
        `head_dim` is stated, never derived from `hidden`; it is even, for rotation takes its elements in pairs.
    rope_base : float
        Base of the rotary frequencies.
    norm_eps : float
        Added to the mean square before its root.
    tied : bool
        Whether the logits use the embedding, transposed, and no matrix of their own.
    qkv_bias : bool
        Whether queries, keys and values have a bias: as Qwen2, not as Llama.

    Raises
    ------
    InputError
        If a size is not a positive whole number, `head_dim` is odd, the query heads do not divide into groups, or a constant is out
        of its range.
    """

    layers: int = 3
    hidden: int = 64
    query_heads: int = 8
    kv_heads: int = 2
    head_dim: int = 16
    ffn: int = 128
    vocab: int = 256
    rope_base: float = 10_000.0
    norm_eps: float = 1e-6
    tied: bool = False
    qkv_bias: bool = True

    def __post_init__(self) -> None:
        for field in ("layers", "hidden", "query_heads", "kv_heads", "head_dim", "ffn", "vocab"):
            value = getattr(self, field)
            if type(value) is not int or value <= 0:
                raise InputError("model configuration", field, value, "a positive whole number")
        if self.head_dim % 2:
            raise InputError("model configuration", "head_dim", self.head_dim, "an even number")
        if self.query_heads % self.kv_heads:
            raise InputError("model configuration", "query_heads", self.query_heads, f"a multiple of the {self.kv_heads} KV heads")
        if not 1 < self.rope_base < float("inf"):
            raise InputError("model configuration", "rope_base", self.rope_base, "a finite number above 1")
        if not 0 <= self.norm_eps < 1:
            raise InputError("model configuration", "norm_eps", self.norm_eps, "a number from 0 to 1")

    @property
    def group(self) -> int:
        """Query heads that share one KV head."""
        return self.query_heads // self.kv_heads

    def geometry(self, dtype: DTypeLike) -> ModelGeometry:
        """What the capacity arithmetic makes of this shape, its KV kept in `dtype`."""
        return ModelGeometry(
            "small transformer",
            self.layers,
            self.kv_heads,
            self.head_dim,
            bytes_per_element=np.dtype(dtype).itemsize,
            query_heads=self.query_heads,
            hidden_size=self.hidden,
            ffn_size=self.ffn,
            rope_base=self.rope_base,
            label=Label.ILLUSTRATIVE,
            source="kvtier.model",
        )
