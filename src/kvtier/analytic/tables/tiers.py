"""Tiers as stated, and moving a block against computing it again."""

from __future__ import annotations

import polars as pl

from kvtier.analytic import tiers
from kvtier.analytic.geometry import ModelGeometry
from kvtier.analytic.inputs import StatedInputs
from kvtier.frames import Table

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


def tier_list(platform: StatedInputs) -> pl.DataFrame:
    """``TIERS``, nearest first."""
    value = platform.value
    hbm = {
        "medium": "HBM",
        "latency_ns": value("hbm_latency"),
        "latency_status": platform["hbm_latency"].status,
        "bandwidth_low_gbps": value("hbm_bandwidth"),
        "bandwidth_high_gbps": value("hbm_bandwidth"),
        "bandwidth_status": platform["hbm_bandwidth"].status,
    }
    rows = [
        {"tier": "T0", "capacity_gb": value("hbm_pinned"), **hbm},
        {"tier": "T1", "capacity_gb": value("hbm_evictable"), **hbm},
        {
            "tier": "T2",
            "capacity_gb": value("cxl_endpoints") * value("cxl_endpoint_capacity"),
            "medium": "CXL DRAM",
            "latency_ns": value("cxl_latency"),
            "latency_status": platform["cxl_latency"].status,
            "bandwidth_low_gbps": value("cxl_bandwidth_low"),
            "bandwidth_high_gbps": value("cxl_bandwidth_high"),
            "bandwidth_status": platform["cxl_bandwidth_low"].status,
        },
        {
            "tier": "T3",
            "capacity_gb": value("nvme_endpoints") * value("nvme_endpoint_capacity"),
            "medium": "NVMe",
            "latency_ns": value("nvme_latency"),
            "latency_status": platform["nvme_latency"].status,
            "bandwidth_low_gbps": None,
            "bandwidth_high_gbps": None,
            "bandwidth_status": None,
        },
    ]
    return TIERS.check(pl.DataFrame([{column: row[column] for column in TIERS.columns} for row in rows], strict=False))


def bandwidths(platform: StatedInputs) -> list[float]:
    """Low end, link and high end of the assumed range, ascending [GB/s]."""
    return sorted({platform.value(name) for name in ("cxl_bandwidth_low", "cxl_link_bandwidth", "cxl_bandwidth_high")})


def transfer(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    """``TRANSFER`` at each of the :func:`bandwidths`."""
    block_bytes = model.kv_bytes(platform.value("block_tokens"))
    rows = [
        {"bandwidth_gbps": float(gbps), "block_bytes": block_bytes, "transfer_us": tiers.block_transfer_us(block_bytes, gbps)}
        for gbps in bandwidths(platform)
    ]
    return TRANSFER.check(pl.DataFrame(rows))


def regeneration(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    """``REGENERATION``: each MFU against each of the :func:`bandwidths`."""
    block_tokens, peak = platform.value("block_tokens"), platform.value("peak_compute")
    parameters = model.stated("parameters")
    rows = []
    for mfu in platform.value("mfu"):
        regenerate_ms = tiers.regeneration_ms(parameters, block_tokens, peak, mfu)
        for move in transfer(model, platform).iter_rows(named=True):
            rows.append(
                {
                    "mfu": mfu,
                    "block_tokens": block_tokens,
                    "flop": tiers.linear_flop(parameters, block_tokens),
                    "peak_tflops": float(peak),
                    "regenerate_ms": regenerate_ms,
                    "bandwidth_gbps": move["bandwidth_gbps"],
                    "transfer_us": move["transfer_us"],
                    "regenerate_over_move": tiers.regenerate_over_move(regenerate_ms, move["transfer_us"]),
                }
            )
    return REGENERATION.check(pl.DataFrame(rows))


def prefetch_window(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    """``PREFETCH_WINDOW`` at each of the :func:`bandwidths`: the decode budget less the compute of a token."""
    window_ms = platform.value("decode_budget") - platform.value("decode_compute")
    rows = []
    for gbps in bandwidths(platform):
        positions = tiers.window_positions(window_ms, gbps, model.kv_bytes_per_token)
        rows.append(
            {
                "bandwidth_gbps": float(gbps),
                "window_ms": float(window_ms),
                "window_bytes": tiers.window_bytes(window_ms, gbps),
                "positions": positions,
                "whole_positions": int(positions),
                "whole_blocks": int(positions / platform.value("block_tokens")),
            }
        )
    return PREFETCH_WINDOW.check(pl.DataFrame(rows))


def build(model: ModelGeometry, platform: StatedInputs) -> dict[str, pl.DataFrame]:
    """All tables of the topic by name."""
    return {
        "tiers": tier_list(platform),
        "transfer": transfer(model, platform),
        "regeneration": regeneration(model, platform),
        "prefetch_window": prefetch_window(model, platform),
    }
