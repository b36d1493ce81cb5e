"""Tables of the analytic stage: each declared once, one topic a table."""

from __future__ import annotations

import polars as pl

from kvtier.frames import Table

CAPACITY = Table(
    "capacity",
    {
        "model": pl.String(),
        "context_tokens": pl.Int64(),
        "kv_bytes_per_token": pl.Int64(),
        "block_bytes": pl.Int64(),
        "kv_bytes": pl.Int64(),
        "kv_gib": pl.Float64(),
        "kv_gb": pl.Float64(),
        "weight_bytes": pl.Int64(),
        "crossover_tokens": pl.Float64(),
    },
    nullable=frozenset({"weight_bytes", "crossover_tokens"}),
)
"""KV of one sequence by model and context; weights and crossover are null where the weights are not stated."""

HBM_PARTITION = Table("HBM partition", {"part": pl.String(), "gb": pl.Float64(), "share_percent": pl.Float64(), "holds_kv": pl.Boolean()})
"""Plan of one device's memory; the parts sum to its capacity."""

USERS = Table(
    "users",
    {
        "users": pl.Int64(),
        "context_tokens": pl.Int64(),
        "weights_gb": pl.Float64(),
        "activations_gb": pl.Float64(),
        "kv_gb": pl.Float64(),
        "total_gb": pl.Float64(),
        "free_gb": pl.Float64(),
        "total_over_hbm": pl.Float64(),
        "kv_over_cxl_percent": pl.Float64(),
    },
)
"""Memory that a number of sequences needs; `free_gb` is negative where one device does not hold it."""

CONCURRENCY = Table(
    "concurrency",
    {
        "memory": pl.String(),
        "context_tokens": pl.Int64(),
        "available_bytes": pl.Int64(),
        "kv_bytes": pl.Int64(),
        "contexts": pl.Float64(),
        "whole_contexts": pl.Int64(),
    },
)
"""Contexts whose KV fits in a memory: capacity only, no bandwidth and no scheduling."""

TIERS = Table(
    "tiers",
    {
        "tier": pl.String(),
        "medium": pl.String(),
        "capacity_gb": pl.Float64(),
        "latency_ns": pl.Float64(),
        "latency_status": pl.String(),
        "bandwidth_low_gbps": pl.Float64(),
        "bandwidth_high_gbps": pl.Float64(),
        "bandwidth_status": pl.String(),
    },
    nullable=frozenset({"bandwidth_low_gbps", "bandwidth_high_gbps", "bandwidth_status"}),
)
"""Tiers as stated; a null bandwidth is not stated."""

TRANSFER = Table("transfer", {"bandwidth_gbps": pl.Float64(), "block_bytes": pl.Int64(), "transfer_us": pl.Float64()})
"""Time to move one block, unloaded link."""

REGENERATION = Table(
    "regeneration",
    {
        "mfu": pl.Float64(),
        "block_tokens": pl.Int64(),
        "flop": pl.Int64(),
        "peak_tflops": pl.Float64(),
        "regenerate_ms": pl.Float64(),
        "bandwidth_gbps": pl.Float64(),
        "transfer_us": pl.Float64(),
        "regenerate_over_move": pl.Float64(),
    },
)
"""Forward compute of a block's tokens by MFU, linear term only, against moving the block at each bandwidth."""

PREFETCH_WINDOW = Table(
    "prefetch window",
    {
        "bandwidth_gbps": pl.Float64(),
        "window_ms": pl.Float64(),
        "window_bytes": pl.Float64(),
        "positions": pl.Float64(),
        "whole_positions": pl.Int64(),
        "whole_blocks": pl.Int64(),
    },
)
"""What a link moves while a token is not being computed."""

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

SOFTMAX = Table(
    "softmax example",
    {"position": pl.Int64(), "token": pl.String(), "score": pl.Float64(), "softmax_percent": pl.Float64(), "share_percent": pl.Float64()},
)
"""Illustrative scores under softmax, and each score's plain share of their sum."""

EMA_HALF_LIFE = Table(
    "EMA half-life", {"alpha": pl.Float64(), "half_life_steps": pl.Float64(), "steps_per_s": pl.Float64(), "half_life_s": pl.Float64()}
)
"""Half-life of an untouched score by α."""

EMA_EXAMPLE = Table(
    "EMA example", {"alpha": pl.Float64(), "token": pl.String(), "step": pl.Int64(), "attention": pl.Float64(), "score": pl.Float64()}
)
"""Illustrative evolution of two scores, at the withdrawn α of the published example and at the present one."""

PLACEMENT = Table(
    "placement example",
    {"recency": pl.Float64(), "ema": pl.Float64(), "anchor": pl.Float64(), "priority": pl.Float64(), "tier": pl.String()},
)
"""Illustrative priority and tier where each signal is fully on or off."""
