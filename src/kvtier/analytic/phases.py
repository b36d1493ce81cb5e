"""Compute and memory traffic of prefill and decode: least bytes, no kernel, no overlap."""

from __future__ import annotations

from kvtier.analytic.geometry import ModelGeometry
from kvtier.analytic.tiers import linear_flop

FFN_MATRICES = 3
"""Gate, up and down projection of the gated feed-forward layer (Shazeer 2020), which all Llama models use."""


def attention_parameters(model: ModelGeometry) -> int:
    """Parameters of the query, key, value and output projections of one layer.

    Raises
    ------
    InputError
        If the model states no hidden size or query heads.
    """
    query_width, kv_width = model.stated("query_heads") * model.head_dim, model.kv_heads * model.head_dim
    return 2 * model.stated("hidden_size") * (query_width + kv_width)


def ffn_parameters(model: ModelGeometry) -> int:
    """Parameters of the feed-forward part of one layer.

    Raises
    ------
    InputError
        If the model states no hidden or feed-forward size.
    """
    return FFN_MATRICES * model.stated("hidden_size") * model.stated("ffn_size")


def attention_flop(model: ModelGeometry, pairs: int) -> int:
    """Compute of attention over pairs of a query token and a cached token, in all layers [FLOP].

    Returns
    -------
    int
        4 · layers · query_heads · head_dim · pairs: a multiply and an add an element, for the score and for the weighted sum.

    Raises
    ------
    InputError
        If the model states no query heads.

    Notes
    -----
    The softmax itself is left out: it grows with heads, these products with heads times head size.
    """
    return 4 * model.layers * model.stated("query_heads") * model.head_dim * pairs


def prefill_flop(model: ModelGeometry, tokens: int) -> int:
    """Forward compute of a prompt [FLOP]: the term linear in the parameters, and causal attention, each token to itself and all before."""
    return linear_flop(model.stated("parameters"), tokens) + attention_flop(model, tokens * (tokens + 1) // 2)


def decode_flop(model: ModelGeometry, tokens: int) -> int:
    """Forward compute of one token that attends to `tokens` cached ones [FLOP]."""
    return linear_flop(model.stated("parameters"), 1) + attention_flop(model, tokens)


def pass_bytes(model: ModelGeometry, tokens: int) -> int:
    """Weights and the KV of `tokens`, each moved once [B]: what a decode step reads, or what prefill reads and writes.

    Notes
    -----
    The least that either phase moves: activations are left out, and nothing is read twice.
    """
    return model.stated("weight_bytes") + model.kv_bytes(tokens)
