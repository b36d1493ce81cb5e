"""KV bytes by model and context, the memory plan of one device, and how many contexts fit."""

from __future__ import annotations

import polars as pl

from kvtier.analytic import capacity
from kvtier.analytic.geometry import ModelGeometry
from kvtier.analytic.inputs import StatedInputs
from kvtier.frames import Table
from kvtier.units import GB, GIB, K_TOKENS

SHORT_TOKENS, LONG_TOKENS = 8 * K_TOKENS, 128 * K_TOKENS
"""Contexts of the published concurrency figures."""

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


def whole_bytes(value: float, unit: int) -> int:
    """A stated size as whole bytes, the nearest."""
    return round(value * unit)


def by_context(models: dict[str, ModelGeometry], contexts_tokens: list[int], block_tokens: int) -> pl.DataFrame:
    """``CAPACITY``: models in order, contexts within each."""
    rows = [
        {
            "model": model.key,
            "context_tokens": tokens,
            "kv_bytes_per_token": model.kv_bytes_per_token,
            "block_bytes": model.kv_bytes(block_tokens),
            "kv_bytes": model.kv_bytes(tokens),
            "kv_gib": model.kv_bytes(tokens) / GIB,
            "kv_gb": model.kv_bytes(tokens) / GB,
            "weight_bytes": model.weight_bytes,
            "crossover_tokens": None if model.weight_bytes is None else capacity.crossover_tokens(model),
        }
        for model in models.values()
        for tokens in contexts_tokens
    ]
    return CAPACITY.check(pl.DataFrame(rows, infer_schema_length=None))


def hbm_partition(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    """``HBM_PARTITION`` of one device that holds the model's weights.

    Raises
    ------
    InputError
        If the parts do not sum to the device.
    """
    size = platform.value("hbm_capacity")
    parts = capacity.hbm_parts_gb(
        model.stated("weight_bytes") / GB,
        platform.value("hbm_activations"),
        platform.value("hbm_pinned"),
        platform.value("hbm_evictable"),
        size,
    )
    rows = [
        {"part": part, "gb": float(gb), "share_percent": 100 * gb / size, "holds_kv": part in ("pinned", "evictable")}
        for part, gb in parts.items()
    ]
    return HBM_PARTITION.check(pl.DataFrame(rows))


def cxl_bytes(platform: StatedInputs) -> int:
    """CXL DRAM of all endpoints [B]."""
    return platform.value("cxl_endpoints") * whole_bytes(platform.value("cxl_endpoint_capacity"), GB)


def by_users(model: ModelGeometry, platform: StatedInputs, users: list[int], context_tokens: int = LONG_TOKENS) -> pl.DataFrame:
    """``USERS``: sequences of one length over one copy of the weights."""
    hbm = whole_bytes(platform.value("hbm_capacity"), GB)
    activations = whole_bytes(platform.value("hbm_activations"), GB)
    cxl = cxl_bytes(platform)
    kv = model.kv_bytes(context_tokens)
    rows = []
    for count in users:
        total = capacity.footprint_bytes(model.stated("weight_bytes"), activations, kv, count)
        rows.append(
            {
                "users": count,
                "context_tokens": context_tokens,
                "weights_gb": model.stated("weight_bytes") / GB,
                "activations_gb": activations / GB,
                "kv_gb": count * kv / GB,
                "total_gb": total / GB,
                "free_gb": (hbm - total) / GB,
                "total_over_hbm": total / hbm,
                "kv_over_cxl_percent": 100 * count * kv / cxl,
            }
        )
    return USERS.check(pl.DataFrame(rows))


def memories(model: ModelGeometry, platform: StatedInputs) -> dict[str, int]:
    """Memories in which contexts are counted [B]."""
    hbm = whole_bytes(platform.value("hbm_capacity"), GB)
    kv_region = whole_bytes(platform.value("hbm_pinned") + platform.value("hbm_evictable"), GB)
    return {
        "as_weights": model.stated("weight_bytes"),
        "node": capacity.node_kv_bytes(
            platform.value("node_gpus"),
            whole_bytes(platform.value("node_gpu_capacity"), GIB),
            model.stated("weight_bytes"),
            whole_bytes(platform.value("node_workspace"), GIB),
        ),
        "hbm_kv_region": kv_region,
        "baseline_hbm": platform.value("baseline_gpus") * hbm,
        "hbm_and_cxl": hbm + cxl_bytes(platform),
        "hbm_kv_region_and_cxl": kv_region + cxl_bytes(platform),
    }


def concurrency(
    model: ModelGeometry, platform: StatedInputs, contexts_tokens: tuple[int, ...] = (SHORT_TOKENS, LONG_TOKENS)
) -> pl.DataFrame:
    """``CONCURRENCY``: each of the :func:`memories`, at each context."""
    rows = [
        {
            "memory": memory,
            "context_tokens": tokens,
            "available_bytes": available,
            "kv_bytes": model.kv_bytes(tokens),
            "contexts": capacity.contexts(available, model.kv_bytes(tokens)),
            "whole_contexts": capacity.whole_contexts(available, model.kv_bytes(tokens)),
        }
        for memory, available in memories(model, platform).items()
        for tokens in contexts_tokens
    ]
    return CONCURRENCY.check(pl.DataFrame(rows))


def build(
    models: dict[str, ModelGeometry], model: ModelGeometry, platform: StatedInputs, contexts_tokens: list[int], users: list[int]
) -> dict[str, pl.DataFrame]:
    """All tables of the topic by name; `model` is the one that capacity is planned for."""
    return {
        "capacity": by_context(models, contexts_tokens, platform.value("block_tokens")),
        "hbm_partition": hbm_partition(model, platform),
        "users": by_users(model, platform, users),
        "concurrency": concurrency(model, platform),
    }
