"""Tiers as stated, and moving a block against computing it again."""

import polars as pl

from kvtier.analytic import tables, tiers
from kvtier.analytic.geometry import ModelGeometry, load_models, reference_model
from kvtier.analytic.inputs import StatedInputs, load_platform
from kvtier.evidence import numbers
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.files import write_atomically
from kvtier.jobs import reporting
from kvtier.units import GB, K_TOKENS

LONG_TOKENS = 128 * K_TOKENS


def tier_list(platform: StatedInputs) -> pl.DataFrame:
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
    return tables.TIERS.check(pl.DataFrame([{column: row[column] for column in tables.TIERS.columns} for row in rows], strict=False))


def bandwidths(platform: StatedInputs) -> list[float]:
    """Low end, link and high end of the assumed range, ascending [GB/s]."""
    return sorted({platform.value(name) for name in ("cxl_bandwidth_low", "cxl_link_bandwidth", "cxl_bandwidth_high")})


def transfer(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
    block_bytes = model.kv_bytes(platform.value("block_tokens"))
    rows = [
        {"bandwidth_gbps": float(gbps), "block_bytes": block_bytes, "transfer_us": tiers.block_transfer_us(block_bytes, gbps)}
        for gbps in bandwidths(platform)
    ]
    return tables.TRANSFER.check(pl.DataFrame(rows))


def regeneration(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
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
    return tables.REGENERATION.check(pl.DataFrame(rows))


def prefetch_window(model: ModelGeometry, platform: StatedInputs) -> pl.DataFrame:
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
    return tables.PREFETCH_WINDOW.check(pl.DataFrame(rows))


def build(model: ModelGeometry, platform: StatedInputs) -> dict[str, pl.DataFrame]:
    return {
        "tiers": tier_list(platform),
        "transfer": transfer(model, platform),
        "regeneration": regeneration(model, platform),
        "prefetch_window": prefetch_window(model, platform),
    }


def key_of(value: float) -> str:
    """A number as part of a key: 64 is 64, 0.25 is 0_25."""
    return f"{value:g}".replace(".", "_")


def ledger(model: ModelGeometry, platform: StatedInputs, frames: dict[str, pl.DataFrame]) -> list[Number]:
    analytical = Label.ANALYTICAL
    value = platform.value
    block_tokens, block_bytes = value("block_tokens"), model.kv_bytes(value("block_tokens"))
    found = []
    for row in frames["tiers"].iter_rows(named=True):
        name = f"analytic.tier.{row['tier'].lower()}"
        source = {"T0": "hbm_pinned", "T1": "hbm_evictable", "T2": "cxl_endpoint_capacity", "T3": "nvme_endpoint_capacity"}[row["tier"]]
        latency = {"HBM": "hbm_latency", "CXL DRAM": "cxl_latency", "NVMe": "nvme_latency"}[row["medium"]]
        found += [
            Number(
                f"{name}.capacity_gb", row["capacity_gb"], "GB", 0, platform[source].label, f"{row['tier']}, {row['medium']}, as stated"
            ),
            Number(
                f"{name}.latency_ns",
                row["latency_ns"],
                "ns",
                0,
                platform[latency].label,
                f"access to {row['tier']}, {row['medium']}; status {row['latency_status']}, not measured",
            ),
        ]
    for end, word in (("low", "low end"), ("high", "high end")):
        source = platform[f"cxl_bandwidth_{end}"]
        found.append(
            Number(
                f"analytic.tier.t2.bandwidth_{end}_gbps",
                source.value,
                "GB/s",
                0,
                source.label,
                f"{word} of the assumed CXL range, not measured",
            )
        )
        found.append(
            Number(
                f"analytic.tier.hbm_over_cxl_bandwidth.{end}",
                value("hbm_bandwidth") / source.value,
                "",
                0,
                analytical,
                f"HBM bandwidth / {word} of the assumed CXL range",
            )
        )
    link = platform["cxl_link_bandwidth"]
    found.append(Number("analytic.tier.cxl_link_gbps", link.value, "GB/s", 0, link.label, "CXL.mem, x16 link, one way"))

    for row in frames["transfer"].iter_rows(named=True):
        found.append(
            Number(
                f"analytic.transfer.{key_of(row['bandwidth_gbps'])}gbps.us",
                row["transfer_us"],
                "µs",
                0,
                analytical,
                f"one block of {block_bytes:,} B / {row['bandwidth_gbps']:g} GB/s (assumed), unloaded link",
            )
        )
    found.append(
        Number(
            "analytic.regeneration.block_tflop",
            tiers.linear_flop(model.stated("parameters"), block_tokens) / 1e12,
            "TFLOP",
            2,
            analytical,
            f"2 x parameters x {block_tokens} tokens, linear term of the forward pass",
        )
    )
    peak = platform["peak_compute"]
    found.append(
        Number(
            "analytic.regeneration.peak_tflops",
            peak.value,
            "TFLOP/s",
            0,
            peak.label,
            "assumed peak compute; not printed, implied by 18, 11 and 9 ms",
        )
    )
    for (mfu,), rows in frames["regeneration"].group_by("mfu", maintain_order=True):
        percent = key_of(100 * mfu)
        found.append(
            Number(
                f"analytic.regeneration.mfu{percent}.ms",
                rows["regenerate_ms"][0],
                "ms",
                0,
                analytical,
                f"2 x parameters x {block_tokens} tokens / ({100 * mfu:g}% of the assumed peak)",
            )
        )
        for row in rows.iter_rows(named=True):
            found.append(
                Number(
                    f"analytic.regenerate_over_move.mfu{percent}.{key_of(row['bandwidth_gbps'])}gbps",
                    row["regenerate_over_move"],
                    "",
                    0,
                    analytical,
                    f"forward compute of a block at {100 * mfu:g}% MFU / its transfer at {row['bandwidth_gbps']:g} GB/s, unrounded times",
                )
            )
    # Slowest compute against the link: the point that the package quotes, from the times as it prints them.
    slow = frames["regeneration"].filter(pl.col("bandwidth_gbps") == link.value).sort("mfu").row(0, named=True)
    ratios = frames["regeneration"]["regenerate_over_move"]
    found += [
        Number(
            "analytic.regenerate_over_move.from_printed_times",
            tiers.regenerate_over_move(round(slow["regenerate_ms"], 1), round(slow["transfer_us"])),
            "",
            0,
            analytical,
            "forward compute at the lowest MFU, rounded to 0.1 ms / transfer over the link, rounded to 1 µs",
        ),
        Number("analytic.regenerate_over_move.min", ratios.min(), "", 0, analytical, "least ratio over the stated MFU and bandwidths"),
        Number("analytic.regenerate_over_move.max", ratios.max(), "", 0, analytical, "largest ratio over the stated MFU and bandwidths"),
        Number(
            "analytic.regeneration.simulator_mfu",
            100 * value("simulator_compute") / value("peak_compute"),
            "%",
            0,
            analytical,
            "effective compute of the published simulators / the peak that the published times imply",
        ),
    ]

    read_bytes = model.stated("weight_bytes") + model.kv_bytes(LONG_TOKENS)
    budget = platform["decode_budget"]
    found += [
        Number("analytic.decode.budget_ms", budget.value, "ms", 0, budget.label, "time for one token"),
        Number("analytic.decode.read_gb", read_bytes / GB, "GB", 0, analytical, f"weights + KV of {LONG_TOKENS:,} tokens"),
        Number(
            "analytic.decode.strawman_tbps",
            tiers.decode_read_tbps(read_bytes, budget.value),
            "TB/s",
            2,
            analytical,
            f"(weights + KV of {LONG_TOKENS:,} tokens) / decode budget, as if all crossed one link: a strawman",
        ),
        Number(
            "analytic.prefetch.window_ms",
            float(frames["prefetch_window"]["window_ms"][0]),
            "ms",
            0,
            analytical,
            "decode budget - compute of one token",
        ),
    ]
    for row in frames["prefetch_window"].iter_rows(named=True):
        name = f"analytic.prefetch.{key_of(row['bandwidth_gbps'])}gbps"
        words = f"{row['window_ms']:g} ms x {row['bandwidth_gbps']:g} GB/s (assumed)"
        found += [
            Number(f"{name}.gb", row["window_bytes"] / GB, "GB", 2, analytical, words),
            Number(f"{name}.positions", row["positions"], "positions", 1, analytical, f"{words} / KV bytes a token, exact"),
            Number(
                f"{name}.whole_positions", row["whole_positions"], "positions", 0, analytical, f"{words} / KV bytes a token, rounded down"
            ),
            Number(f"{name}.whole_blocks", row["whole_blocks"], "blocks", 0, analytical, f"{words} / block bytes, rounded down"),
        ]
    return found


if __name__ == "__main__":
    with reporting(snakemake):
        platform = load_platform(snakemake.input.platform)
        model = reference_model(load_models(snakemake.input.models), snakemake.input.models)
        frames = build(model, platform)
        for name, frame in frames.items():
            write_atomically(snakemake.output[name], frame.write_csv())
        numbers.write(snakemake.output.numbers, ledger(model, platform, frames), snakemake)
