"""Score streams and block state, rotary frequencies and envelope, the assumed distribution of attention, the softmax example."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import polars as pl

from kvtier.analytic.geometry import ModelGeometry
from kvtier.analytic.inputs import StatedInputs
from kvtier.analytic.labelling import derived, restated
from kvtier.evidence.numbers import Number
from kvtier.units import KIB, MIB

STATE_FIELDS = ("state_identity", "state_score", "state_timestamp", "state_count")


def two_digits(value: float) -> int:
    """Decimals that show two significant digits."""
    return max(0, 1 - math.floor(math.log10(value)))


def of_gqa_state(model: ModelGeometry, platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """State of all blocks of one context, and the retracted derivation that it replaces."""
    state = table.row(by_predicate=pl.col("model") == model.key, named=True)
    context = f"{state['context_tokens']:,} tokens of {model.model}"
    size, block, retracted = platform["state_size"], platform["block_tokens"], platform["state_per_head_position"]
    blocks = [*platform.entries("state_context"), block]
    kept = [size, *blocks]
    yield derived("analytic.gqa.score_streams", state["score_streams"], "", 0, [model], f"layers x KV heads of {model.model}")
    words = f"query heads / KV heads of {model.model}"
    yield derived("analytic.gqa.queries_per_kv_head", model.queries_per_kv_head, "", 0, [model], words)
    words = f"{context} / {block.value} tokens a block"
    yield derived("analytic.gqa.blocks", state["blocks"], "blocks", 0, blocks, words)
    words = "identity key, score, timestamp, count and reserved space"
    yield restated("analytic.gqa.state_bytes_per_block", size.value, "B", 0, size, words)
    sources, words = [size, *platform.entries(*STATE_FIELDS)], "block state less its four fields"
    yield derived("analytic.gqa.reserved_bytes_per_block", state["reserved_bytes_per_block"], "B", 0, sources, words)
    words = f"state of all blocks of {context}"
    yield derived("analytic.gqa.state_bytes", state["state_bytes"], "B", 0, kept, words)
    yield derived("analytic.gqa.state_kib", state["state_bytes"] / KIB, "KiB", 0, kept, words)
    words = f"state of all blocks / KV of {context}; payload only"
    yield derived("analytic.gqa.state_percent", state["state_percent"], "%", 4, [model, *kept], words)
    per_head_bytes = retracted.value * state["context_tokens"] * state["score_streams"]
    sources = [model, retracted, *platform.entries("state_context")]
    words = f"retracted derivation: {retracted.value} B for each position and score stream of {context}"
    yield derived("analytic.gqa.retracted_state_mib", per_head_bytes / MIB, "MiB", 0, sources, words)
    percent, words = (
        100 * per_head_bytes / state["kv_bytes"],
        f"retracted derivation: state of each position and score stream / KV of {context}",
    )
    yield derived("analytic.gqa.retracted_state_percent", percent, "%", 1, sources, words)


def of_gqa_blocks(platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Positions of the example's blocks."""
    sources = platform.entries("example_blocks", "example_scores", "block_tokens")
    for row in table.iter_rows(named=True):
        name, words = f"analytic.gqa.block_{row['block']}", f"position of block {row['block']}, rank {row['rank']} by example score"
        yield derived(f"{name}.first_position", row["first_position"], "", 0, sources, f"first {words}")
        yield derived(f"{name}.last_position", row["last_position"], "", 0, sources, f"last {words}")


def of_rope(model: ModelGeometry, platform: StatedInputs, frequencies: pl.DataFrame, envelope: pl.DataFrame) -> Iterator[Number]:
    """The model's own base; at each base first, middle and last frequency with its full turn, slow pairs, the envelope by distance."""
    sources, pairs = [model, *platform.entries("rope_base")], model.head_dim // 2
    words = f"base of the rotary frequencies of {model.model}"
    yield restated(f"analytic.rope.base.{model.key}", model.stated("rope_base"), "", 0, model, words)
    for row in frequencies.filter(pl.col("pair").is_in([0, pairs // 2, pairs - 1])).iter_rows(named=True):
        name = f"analytic.rope.base{row['base']:.0f}.theta_{row['pair']}"
        words = f"base^(-2i/d), i = {row['pair']}, d = {model.head_dim}, base {row['base']:,.0f}"
        yield derived(name, row["theta"], "rad/position", two_digits(row["theta"]), sources, words)
        name, words = f"analytic.rope.base{row['base']:.0f}.turn_{row['pair']}", f"2 pi / theta_{row['pair']}, base {row['base']:,.0f}"
        yield derived(name, row["wavelength_tokens"], "positions", two_digits(row["wavelength_tokens"]), sources, words)
    context = platform.value("state_context")
    for (base,), of_base in frequencies.group_by("base", maintain_order=True):
        slow = of_base.filter(pl.col("wavelength_tokens") > context).height
        words = f"rotary pairs of {pairs} that turn less than once in {context:,} positions, base {base:,.0f}"
        yield derived(f"analytic.rope.base{base:.0f}.slow_pairs", slow, "", 0, [*sources, *platform.entries("state_context")], words)
    for row in envelope.iter_rows(named=True):
        name, distance = f"analytic.rope.base{row['base']:.0f}.envelope.{row['distance_tokens']}", f"{row['distance_tokens']:,}"
        words = f"mean |S_j| of the rotary phases at distance {distance} / at distance 0, d = {model.head_dim}, base {row['base']:,.0f}"
        yield derived(name, row["envelope"], "", 3, sources, words)


def of_density(platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Attention on a position of each part of a context, over uniform attention."""
    sources = platform.entries("attention_positions", "attention_mass")
    for row in table.iter_rows(named=True):
        words = f"share of the attention on the {row['part']} part of a context / its share of the positions; 1 if uniform; assumed"
        digits = two_digits(row["over_uniform"])
        yield derived(f"analytic.attention.{row['part']}.over_uniform", row["over_uniform"], "", digits, sources, words)


def of_softmax(platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Softmax of the example's scores, and the shares that were printed for it."""
    scores = platform.entries("softmax_scores")
    for row in table.iter_rows(named=True):
        name, score = f"analytic.softmax.{row['token']}", f"{row['score']:g}"
        yield derived(f"{name}.exponential", row["exponential"], "", 2, scores, f"exp({score})")
        words = f"exp({score}) / sum of the exponentials of the example's scores"
        yield derived(f"{name}.percent", row["softmax_percent"], "%", 0, scores, words)
        words = f"{score} / sum of the example's scores; not a softmax"
        yield derived(f"{name}.share_percent", row["share_percent"], "%", 0, scores, words)
    words = "sum of the exponentials of the example's scores"
    yield derived("analytic.softmax.exponential_sum", math.fsum(table["exponential"]), "", 2, scores, words)
    yield derived("analytic.softmax.score_sum", math.fsum(table["score"]), "", 2, scores, "sum of the example's scores")


def numbers(model: ModelGeometry, platform: StatedInputs, tables: Mapping[str, pl.DataFrame]) -> Iterator[Number]:
    """All numbers of the topic; `tables` as :func:`kvtier.analytic.tables.attention.build` makes them."""
    yield from of_gqa_state(model, platform, tables["gqa_state"])
    yield from of_gqa_blocks(platform, tables["gqa_blocks"])
    yield from of_rope(model, platform, tables["rope_frequencies"], tables["rope"])
    yield from of_density(platform, tables["attention_density"])
    yield from of_softmax(platform, tables["softmax"])
