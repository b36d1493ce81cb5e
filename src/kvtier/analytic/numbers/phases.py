"""What a layer is made of, and what prefill and decode compute for each byte that they move."""

from __future__ import annotations

from collections.abc import Iterator

from kvtier.analytic import phases
from kvtier.analytic.geometry import ModelGeometry
from kvtier.analytic.inputs import StatedInputs
from kvtier.analytic.labelling import derived
from kvtier.analytic.numbers.capacity import context_name
from kvtier.analytic.tables.capacity import LONG_TOKENS, SHORT_TOKENS
from kvtier.analytic.tiers import linear_flop
from kvtier.evidence.numbers import Number
from kvtier.units import GB, KIB

TERA, BILLION, MILLION = 10**12, 10**9, 10**6

INTENSITY = "FLOP/B"


def of_layer(model: ModelGeometry) -> Iterator[Number]:
    """Widths of the projections, parameters of a layer and what it stores of a token."""
    query_width, kv_width = model.stated("query_heads") * model.head_dim, model.kv_heads * model.head_dim
    yield derived("analytic.layer.query_width", query_width, "", 0, [model], "query heads x elements of a head")
    yield derived(
        "analytic.layer.kv_width", kv_width, "", 0, [model], "KV heads x elements of a head: width of the keys, and of the values"
    )
    kv = model.kv_bytes_per_token / model.layers / KIB
    yield derived("analytic.layer.kv_kib_per_token", kv, "KiB", 0, [model], "keys and values that one layer stores of one token")
    attention, ffn = phases.attention_parameters(model), phases.ffn_parameters(model)
    words = "parameters of the query, key, value and output projections of one layer"
    yield derived("analytic.layer.attention_parameters", attention / MILLION, "million", 0, [model], words)
    words = f"parameters of one feed-forward layer, gated: {phases.FFN_MATRICES} matrices of hidden size x FFN width"
    yield derived("analytic.layer.ffn_parameters", ffn / MILLION, "million", 0, [model], words)
    words = "parameters of attention and feed-forward in all layers; embeddings and norms left out"
    yield derived("analytic.layer.all_layers_parameters", model.layers * (attention + ffn) / BILLION, "billion", 1, [model], words)


def of_phases(model: ModelGeometry, platform: StatedInputs) -> Iterator[Number]:
    """Compute, bytes and compute a byte of a prompt, and of one decode step behind it and behind a long one."""
    short, long = context_name(SHORT_TOKENS), context_name(LONG_TOKENS)
    least = "least bytes: each moved once, activations left out"
    flop, size = phases.prefill_flop(model, SHORT_TOKENS), phases.pass_bytes(model, SHORT_TOKENS)
    name, words = f"analytic.phase.prefill.{short}", f"2 x parameters x {SHORT_TOKENS:,} tokens + causal attention"
    yield derived(f"{name}.tflop", flop / TERA, "TFLOP", 0, [model], f"forward compute of a prompt: {words}")
    yield derived(f"{name}.moved_gb", size / GB, "GB", 1, [model], f"weights read and KV of {SHORT_TOKENS:,} tokens written; {least}")
    yield derived(f"{name}.flop_per_byte", flop / size, INTENSITY, 0, [model], f"compute of a prompt ({words}) / bytes moved; {least}")
    for context, tokens in ((short, SHORT_TOKENS), (long, LONG_TOKENS)):
        flop, size = phases.decode_flop(model, tokens), phases.pass_bytes(model, tokens)
        name, words = f"analytic.phase.decode.{context}", f"2 x parameters + attention over {tokens:,} cached tokens"
        yield derived(f"{name}.tflop", flop / TERA, "TFLOP", 2, [model], f"forward compute of one token: {words}")
        yield derived(f"{name}.moved_gb", size / GB, "GB", 1, [model], f"weights and KV of {tokens:,} tokens read; {least}")
        yield derived(f"{name}.flop_per_byte", flop / size, INTENSITY, 1, [model], f"compute of one token ({words}) / bytes moved; {least}")
    of_weights = linear_flop(model.stated("parameters"), 1) / model.stated("weight_bytes")
    words = "2 x parameters / bytes of the weights: one sequence, one token"
    yield derived("analytic.phase.weights.flop_per_byte", of_weights, INTENSITY, 0, [model], words)
    of_kv = phases.attention_flop(model, 1) / model.kv_bytes_per_token
    words = "attention to one cached token / its KV bytes: query heads a KV head, at two bytes an element; the same at any batch size"
    yield derived("analytic.phase.kv.flop_per_byte", of_kv, INTENSITY, 0, [model], words)
    peak, bandwidth = platform["peak_compute"], platform["hbm_bandwidth"]
    words = "assumed peak compute / HBM bandwidth of one device: below it the memory sets the time, above it the arithmetic"
    balance = peak.value * TERA / (bandwidth.value * GB)
    yield derived("analytic.phase.balance.flop_per_byte", balance, INTENSITY, 0, [peak, bandwidth], words)
    floor = phases.pass_bytes(model, LONG_TOKENS) / (bandwidth.value * GB) * 1e3
    words = f"weights + KV of {LONG_TOKENS:,} tokens / specified HBM bandwidth: the least time of one token"
    yield derived("analytic.decode.hbm_ms", floor, "ms", 1, [model, bandwidth], words)


def numbers(model: ModelGeometry, platform: StatedInputs) -> Iterator[Number]:
    """All numbers of the topic."""
    yield from of_layer(model)
    yield from of_phases(model, platform)
