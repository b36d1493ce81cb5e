"""Score streams, block state, rotary frequencies and envelope, the assumed distribution of attention, and the softmax example."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl

from kvtier.analytic import attention
from kvtier.analytic.geometry import ModelGeometry
from kvtier.analytic.inputs import StatedInputs
from kvtier.frames import Table

GQA_STATE = Table(
    "GQA state",
    {
        "model": pl.String(),
        "score_streams": pl.Int64(),
        "queries_per_kv_head": pl.Int64(),
        "context_tokens": pl.Int64(),
        "blocks": pl.Int64(),
        "state_bytes_per_block": pl.Int64(),
        "reserved_bytes_per_block": pl.Int64(),
        "state_bytes": pl.Int64(),
        "kv_bytes": pl.Int64(),
        "state_percent": pl.Float64(),
    },
    nullable=frozenset({"queries_per_kv_head"}),
)
"""Score streams and block state by model; query heads a KV head are null where the query heads are not stated."""

GQA_BLOCKS = Table(
    "GQA example blocks",
    {
        "rank": pl.Int64(),
        "block": pl.Int64(),
        "first_position": pl.Int64(),
        "last_position": pl.Int64(),
        "touches": pl.Int64(),
        "score": pl.Float64(),
        "eviction_candidate": pl.Boolean(),
    },
)
"""Illustrative block scores, hot to cold."""

ROPE_FREQUENCIES = Table(
    "RoPE frequencies", {"base": pl.Float64(), "pair": pl.Int64(), "theta": pl.Float64(), "wavelength_tokens": pl.Float64()}
)
"""Rotation of each pair a position [rad], and the distance of a full turn [tokens]."""

ROPE = Table("RoPE envelope", {"base": pl.Float64(), "distance_tokens": pl.Int64(), "envelope": pl.Float64()})
"""Shape of the distance bound, 1 at distance 0."""

ROPE_CURVE = Table(
    "RoPE curve",
    {
        "base": pl.Float64(),
        "first_tokens": pl.Int64(),
        "last_tokens": pl.Int64(),
        "mean": pl.Float64(),
        "lowest": pl.Float64(),
        "highest": pl.Float64(),
    },
)
"""The same envelope over runs of neighbouring distances, both ends inside: it jumps from one distance to the next."""

CURVE_TOKENS, CURVE_RUNS = 10_000, 16
"""Where the drawn curve ends [tokens], and its runs in a decade."""

ATTENTION_DENSITY = Table(
    "attention density",
    {"part": pl.String(), "positions": pl.Float64(), "mass": pl.Float64(), "over_uniform": pl.Float64()},
)
"""Assumed attention on parts of a context, and what a position of each gets, over what uniform attention would give it."""

SOFTMAX = Table(
    "softmax example",
    {
        "position": pl.Int64(),
        "token": pl.String(),
        "score": pl.Float64(),
        "exponential": pl.Float64(),
        "softmax_percent": pl.Float64(),
        "share_percent": pl.Float64(),
    },
)
"""Illustrative scores, their exponentials, their softmax, and each score's plain share of their sum."""


def gqa_state(models: dict[str, ModelGeometry], platform: StatedInputs) -> pl.DataFrame:
    """``GQA_STATE``, models in order, all at the stated context."""
    value = platform.value
    used = sum(value(f"state_{part}") for part in ("identity", "score", "timestamp", "count"))
    blocks = attention.block_count(value("state_context"), value("block_tokens"))
    rows = [
        {
            "model": model.key,
            "score_streams": model.score_streams,
            "queries_per_kv_head": None if model.query_heads is None else model.queries_per_kv_head,
            "context_tokens": value("state_context"),
            "blocks": blocks,
            "state_bytes_per_block": value("state_size"),
            "reserved_bytes_per_block": value("state_size") - used,
            "state_bytes": blocks * value("state_size"),
            "kv_bytes": model.kv_bytes(value("state_context")),
            "state_percent": 100 * blocks * value("state_size") / model.kv_bytes(value("state_context")),
        }
        for model in models.values()
    ]
    return GQA_STATE.check(pl.DataFrame(rows, infer_schema_length=None))


def gqa_blocks(platform: StatedInputs) -> pl.DataFrame:
    """``GQA_BLOCKS``: the coldest block is the eviction candidate."""
    rows = []
    examples = zip(platform.value("example_blocks"), platform.value("example_touches"), platform.value("example_scores"), strict=True)
    by_score = sorted(examples, key=lambda example: (-example[2], example[0]))
    for rank, (block, touches, score) in enumerate(by_score, start=1):
        first, last = attention.block_positions(block, platform.value("block_tokens"))
        rows.append(
            {
                "rank": rank,
                "block": block,
                "first_position": first,
                "last_position": last,
                "touches": touches,
                "score": float(score),
                "eviction_candidate": rank == len(by_score),
            }
        )
    return GQA_BLOCKS.check(pl.DataFrame(rows))


def rope_bases(model: ModelGeometry, platform: StatedInputs) -> list[float]:
    """The base that the package prints, then the model's own."""
    return list(dict.fromkeys([float(platform.value("rope_base")), float(model.stated("rope_base"))]))


def rope_frequencies(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    """``ROPE_FREQUENCIES`` at each of the :func:`rope_bases`."""
    rows = [
        {"base": base, "pair": pair, "theta": float(theta), "wavelength_tokens": 2 * math.pi / float(theta)}
        for base in rope_bases(model, platform)
        for pair, theta in enumerate(attention.rope_frequencies(model.head_dim, base))
    ]
    return ROPE_FREQUENCIES.check(pl.DataFrame(rows))


def rope(model: ModelGeometry, platform: StatedInputs, distances_tokens: list[int]) -> pl.DataFrame:
    """``ROPE`` at each of the :func:`rope_bases` and each distance."""
    rows = [
        {"base": base, "distance_tokens": distance, "envelope": attention.rope_envelope(distance, model.head_dim, base)}
        for base in rope_bases(model, platform)
        for distance in distances_tokens
    ]
    return ROPE.check(pl.DataFrame(rows))


def attention_density(platform: StatedInputs) -> pl.DataFrame:
    """``ATTENTION_DENSITY`` of the first, middle and last part of a context."""
    positions, mass = platform.value("attention_positions"), platform.value("attention_mass")
    rows = [
        {"part": part, "positions": float(share), "mass": float(weight), "over_uniform": weight / share}
        for part, share, weight in zip(("first", "middle", "last"), positions, mass, strict=True)
    ]
    return ATTENTION_DENSITY.check(pl.DataFrame(rows))


def rope_curve(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    """``ROPE_CURVE`` from 1 to `CURVE_TOKENS`, in runs that are even on a logarithmic axis: to be drawn, not to be quoted."""
    ends = range(round(CURVE_RUNS * math.log10(CURVE_TOKENS)) + 1)
    starts = [*sorted({math.ceil(10 ** ((end - 0.5) / CURVE_RUNS)) for end in ends}), CURVE_TOKENS + 1]
    rows = []
    for base in rope_bases(model, platform):
        for start, following in pairwise(starts):
            values = [attention.rope_envelope(distance, model.head_dim, base) for distance in range(start, following)]
            found = {"mean": math.fsum(values) / len(values), "lowest": min(values), "highest": max(values)}
            rows.append({"base": base, "first_tokens": start, "last_tokens": following - 1, **found})
    return ROPE_CURVE.check(pl.DataFrame(rows))


def softmax_example(platform: StatedInputs) -> pl.DataFrame:
    """``SOFTMAX`` of the example's scores."""
    scores = np.asarray(platform.value("softmax_scores"), dtype=np.float64)
    frame = pl.DataFrame(
        {
            "position": list(range(scores.size)),
            "token": platform.value("softmax_tokens"),
            "score": scores,
            "exponential": attention.exponentials(scores),
            "softmax_percent": 100 * attention.softmax(scores),
            "share_percent": 100 * scores / scores.sum(),
        }
    )
    return SOFTMAX.check(frame)


def build(
    models: dict[str, ModelGeometry], model: ModelGeometry, platform: StatedInputs, distances_tokens: list[int]
) -> dict[str, pl.DataFrame]:
    """All tables of the topic by name; `model` gives head size and RoPE base."""
    return {
        "gqa_state": gqa_state(models, platform),
        "gqa_blocks": gqa_blocks(platform),
        "rope_frequencies": rope_frequencies(model, platform),
        "rope": rope(model, platform, distances_tokens),
        "rope_curve": rope_curve(model, platform),
        "attention_density": attention_density(platform),
        "softmax": softmax_example(platform),
    }
