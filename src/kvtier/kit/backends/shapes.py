"""Shapes of models that are made with random weights, so that nothing need be downloaded: what a step costs depends on shape alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kvtier.audit.physical_bound import BYTES_PER_PARAMETER
from kvtier.errors import InputError
from kvtier.model.config import ModelConfig

SMALL = ModelConfig(
    layers=8, hidden=256, query_heads=8, kv_heads=4, head_dim=64, ffn=768, vocab=32_768, rope_base=1e6, tied=True, qkv_bias=True
)
"""For a few cores: 62 MiB of weights in float32, which no cache holds, and four times as much KV at 16,384 tokens of 16 KiB. Embedding and
unembedding are one matrix, so that a step reads every weight."""

QWEN25_0_5B = ModelConfig(
    layers=24, hidden=896, query_heads=14, kv_heads=2, head_dim=64, ffn=4864, vocab=151_936, rope_base=1e6, tied=True, qkv_bias=True
)
"""Shape of Qwen2.5-0.5B, after its published configuration."""

QWEN25_1_5B = ModelConfig(
    layers=28, hidden=1536, query_heads=12, kv_heads=2, head_dim=128, ffn=8960, vocab=151_936, rope_base=1e6, tied=True, qkv_bias=True
)
"""Shape of Qwen2.5-1.5B, after its published configuration."""

QWEN25_7B = ModelConfig(
    layers=28, hidden=3584, query_heads=28, kv_heads=4, head_dim=128, ffn=18_944, vocab=152_064, rope_base=1e6, tied=False, qkv_bias=True
)
"""Shape of Qwen2.5-7B, after its published configuration: the model of the GB10 runs (SPEC §7)."""

SHAPES = {"small": SMALL, "qwen2.5-0.5b": QWEN25_0_5B, "qwen2.5-1.5b": QWEN25_1_5B, "qwen2.5-7b": QWEN25_7B}
"""By the name under which they can be asked for; any other name is a folder's or a hub's model."""


def layer_parameters(shape: ModelConfig) -> int:
    """Parameters of all layers, biases and norms included."""
    queries, keys = shape.query_heads * shape.head_dim, shape.kv_heads * shape.head_dim
    biases = queries + 2 * keys if shape.qkv_bias else 0
    attention = 2 * shape.hidden * queries + 2 * shape.hidden * keys + biases
    return shape.layers * (attention + 3 * shape.hidden * shape.ffn + 2 * shape.hidden)


def parameters(shape: ModelConfig) -> int:
    """Parameters of the model, a tied matrix counted once."""
    return layer_parameters(shape) + shape.hidden + (1 if shape.tied else 2) * shape.vocab * shape.hidden


def element_bytes(dtype: str) -> int:
    """Bytes of one element.

    Raises
    ------
    InputError
        If the type is not known.
    """
    if dtype not in BYTES_PER_PARAMETER:
        raise InputError("model", "dtype", dtype, f"one of {', '.join(BYTES_PER_PARAMETER)}")
    return BYTES_PER_PARAMETER[dtype]


def kv_bytes_per_token(shape: ModelConfig, dtype: str) -> int:
    """Keys and values of one token in all layers [B]: 2 · layers · KV heads · head dimension · bytes (SPEC §2)."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * element_bytes(dtype)


def kv_of(config: Any) -> tuple[int, int]:
    """KV heads and head dimension of a Hugging Face configuration; where it does not state them, transformers' defaults."""
    heads = config.num_attention_heads
    return getattr(config, "num_key_value_heads", None) or heads, getattr(config, "head_dim", None) or config.hidden_size // heads


def prefill_flop(shape: ModelConfig, tokens: int) -> float:
    """Floating-point operations of a prompt: its matrices and its causal attention, without logits [FLOP]."""
    attention = 2 * tokens * shape.query_heads * shape.head_dim * shape.layers
    return float(tokens) * (2 * layer_parameters(shape) + attention)


def described(shape: ModelConfig) -> dict[str, Any]:
    """Fields of a shape, for the record."""
    return asdict(shape)


def in_words(shape: ModelConfig) -> str:
    """One line: ``random weights, 8 layers, hidden 256, ...``."""
    named = next((name for name, known in SHAPES.items() if known == shape), "")
    return (
        f"random weights{f' in the shape {named}' if named else ''}: {shape.layers} layers, hidden {shape.hidden}, {shape.query_heads} "
        f"query and {shape.kv_heads} KV heads of {shape.head_dim}, feed-forward {shape.ffn}, {shape.vocab} tokens"
    )
