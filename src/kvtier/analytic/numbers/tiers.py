"""Tiers as stated, the transfer of a block against its regeneration, both phases, the decode budget and the prefetch window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from kvtier.analytic import tiers
from kvtier.analytic.geometry import ModelGeometry
from kvtier.analytic.inputs import StatedInputs
from kvtier.analytic.labelling import derived, restated
from kvtier.analytic.numbers import phases
from kvtier.analytic.tables.capacity import LONG_TOKENS
from kvtier.evidence.numbers import Number
from kvtier.units import GB

CAPACITIES = {
    "T0": ("hbm_pinned",),
    "T1": ("hbm_evictable",),
    "T2": ("cxl_endpoints", "cxl_endpoint_capacity"),
    "T3": ("nvme_endpoints", "nvme_endpoint_capacity"),
}
LATENCIES = {"HBM": "hbm_latency", "CXL DRAM": "cxl_latency", "NVMe": "nvme_latency"}

CXL_RANGE = ("cxl_bandwidth_low", "cxl_bandwidth_high")
"""What any transfer rests on: also at the rate of the link, for that a block moves at that rate is assumed too."""

COMPUTE = ("block_tokens", "peak_compute", "mfu")


def key_of(value: float) -> str:
    """A number as part of a key: 64 is 64, 0.25 is 0_25."""
    return f"{value:g}".replace(".", "_")


def of_tiers(platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Capacity and latency of each tier."""
    for row in table.iter_rows(named=True):
        tier, medium = row["tier"], row["medium"]
        sources = platform.entries(*CAPACITIES[tier])
        key, size = f"analytic.tier.{tier.lower()}.capacity_gb", row["capacity_gb"]
        if len(sources) == 1:
            yield restated(key, size, "GB", 0, sources[0], f"{tier}, {medium}, as stated")
        else:
            yield derived(key, size, "GB", 0, sources, f"{tier}, {medium}: endpoints x capacity of each, as stated")
        latency = platform[LATENCIES[medium]]
        words = f"access to {tier}, {medium}; status {row['latency_status']}, not measured"
        yield restated(f"analytic.tier.{tier.lower()}.latency_ns", row["latency_ns"], "ns", 0, latency, words)


def of_cxl_range(platform: StatedInputs) -> Iterator[Number]:
    """The assumed CXL range against HBM and against its own link."""
    hbm, link, high = platform["hbm_bandwidth"], platform["cxl_link_bandwidth"], platform["cxl_bandwidth_high"]
    for end in ("low", "high"):
        cxl, words = platform[f"cxl_bandwidth_{end}"], f"{end} end of the assumed CXL range"
        yield restated(f"analytic.tier.t2.bandwidth_{end}_gbps", cxl.value, "GB/s", 0, cxl, f"{words}, not measured")
        ratio = hbm.value / cxl.value
        yield derived(f"analytic.tier.hbm_over_cxl_bandwidth.{end}", ratio, "", 0, [hbm, cxl], f"HBM bandwidth / {words}")
    yield restated("analytic.tier.cxl_link_gbps", link.value, "GB/s", 0, link, "CXL.mem, x16 link, one way")
    words = (
        "high end of the assumed CXL range / one CXL.mem x16 link, one way: above 1, no single link carries the high end, "
        "and reads must be spread over more links than the one of the stated topology"
    )
    yield derived("analytic.tier.t2.links_for_high_bandwidth", high.value / link.value, "links", 2, [high, link], words)


def of_transfer(model: ModelGeometry, platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Time to move one block, by bandwidth."""
    sources = [model, *platform.entries("block_tokens", *CXL_RANGE)]
    for row in table.iter_rows(named=True):
        words = f"one block of {row['block_bytes']:,} B / {row['bandwidth_gbps']:g} GB/s (assumed), unloaded link"
        yield derived(f"analytic.transfer.{key_of(row['bandwidth_gbps'])}gbps.us", row["transfer_us"], "µs", 0, sources, words)


def of_regeneration(model: ModelGeometry, platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Forward compute of a block's tokens, by MFU."""
    block_tokens, peak = platform["block_tokens"], platform["peak_compute"]
    work = f"2 x parameters x {block_tokens.value} tokens"
    tflop = tiers.linear_flop(model.stated("parameters"), block_tokens.value) / 1e12
    words = f"{work}, linear term of the forward pass"
    yield derived("analytic.regeneration.block_tflop", tflop, "TFLOP", 2, [model, block_tokens], words)
    words = f"peak compute that the regeneration times assume. {peak.source}"
    yield restated("analytic.regeneration.peak_tflops", peak.value, "TFLOP/s", 0, peak, words)
    sources = [model, *platform.entries(*COMPUTE)]
    for (mfu,), rows in table.group_by("mfu", maintain_order=True):
        name, words = f"analytic.regeneration.mfu{key_of(100 * mfu)}", "utilisation that the regeneration times assume"
        yield restated(f"{name}.percent", 100 * mfu, "%", 0, platform["mfu"], f"{words}, of the assumed peak")
        words = f"{work} / ({100 * mfu:g}% of the assumed peak)"
        yield derived(f"{name}.ms", rows["regenerate_ms"][0], "ms", 0, sources, words)
    effective = platform["simulator_compute"]
    words = "effective compute of the published simulators / the assumed peak"
    share = 100 * effective.value / peak.value
    yield derived("analytic.regeneration.simulator_mfu", share, "%", 0, [effective, peak], words)


def of_regenerate_over_move(model: ModelGeometry, platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """Computing a block again over moving it: each point, the ends of the range, and the point that the package quotes."""
    sources = [model, *platform.entries(*COMPUTE, *CXL_RANGE)]
    name = "analytic.regenerate_over_move"
    for row in table.iter_rows(named=True):
        percent, gbps = 100 * row["mfu"], row["bandwidth_gbps"]
        words = f"forward compute of a block at {percent:g}% MFU / its transfer at {gbps:g} GB/s (assumed), unrounded times"
        yield derived(f"{name}.mfu{key_of(percent)}.{key_of(gbps)}gbps", row["regenerate_over_move"], "", 0, sources, words)
    # Slowest compute against the link: the point that the package quotes, from the times as it prints them.
    slow = table.filter(pl.col("bandwidth_gbps") == platform.value("cxl_link_bandwidth")).sort("mfu").row(0, named=True)
    printed = tiers.regenerate_over_move(round(slow["regenerate_ms"], 1), round(slow["transfer_us"]))
    words = "forward compute at the lowest MFU, rounded to 0.1 ms / transfer over the link, rounded to 1 µs"
    yield derived(f"{name}.from_printed_times", printed, "", 0, sources, words)
    ratios = table["regenerate_over_move"]
    yield derived(f"{name}.min", ratios.min(), "", 0, sources, "least ratio over the stated MFU and bandwidths")
    yield derived(f"{name}.max", ratios.max(), "", 0, sources, "largest ratio over the stated MFU and bandwidths")


def of_decode(model: ModelGeometry, platform: StatedInputs) -> Iterator[Number]:
    """The decode budget and the bandwidth that a single link would need."""
    budget = platform["decode_budget"]
    read_bytes = model.stated("weight_bytes") + model.kv_bytes(LONG_TOKENS)
    read = f"weights + KV of {LONG_TOKENS:,} tokens"
    yield restated("analytic.decode.budget_ms", budget.value, "ms", 0, budget, "time for one token")
    rate = platform["decode_rate"]
    yield restated("analytic.decode.rate", rate.value, "tokens/s", 0, rate, "decode rate of one user, a target")
    yield derived("analytic.decode.read_gb", read_bytes / GB, "GB", 0, [model], read)
    strawman, words = tiers.decode_read_tbps(read_bytes, budget.value), f"({read}) / decode budget, as if all crossed one link: a strawman"
    yield derived("analytic.decode.strawman_tbps", strawman, "TB/s", 2, [model, budget], words)


def of_prefetch(model: ModelGeometry, platform: StatedInputs, table: pl.DataFrame) -> Iterator[Number]:
    """The prefetch window and what it moves, by bandwidth."""
    window = platform.entries("decode_budget", "decode_compute")
    words = "decode budget - compute of one token"
    yield derived("analytic.prefetch.window_ms", float(table["window_ms"][0]), "ms", 0, window, words)
    moved = [*window, *platform.entries(*CXL_RANGE)]
    blocks = platform["block_tokens"]
    for row in table.iter_rows(named=True):
        name = f"analytic.prefetch.{key_of(row['bandwidth_gbps'])}gbps"
        words = f"{row['window_ms']:g} ms x {row['bandwidth_gbps']:g} GB/s (assumed)"
        token = f"{words} / KV bytes a token"
        yield derived(f"{name}.gb", row["window_bytes"] / GB, "GB", 2, moved, words)
        yield derived(f"{name}.positions", row["positions"], "positions", 1, [model, *moved], f"{token}, exact")
        yield derived(f"{name}.whole_positions", row["whole_positions"], "positions", 0, [model, *moved], f"{token}, rounded down")
        words = f"{words} / block bytes, rounded down"
        yield derived(f"{name}.whole_blocks", row["whole_blocks"], "blocks", 0, [model, blocks, *moved], words)


def numbers(model: ModelGeometry, platform: StatedInputs, tables: Mapping[str, pl.DataFrame]) -> Iterator[Number]:
    """All numbers of the topic; `tables` as :func:`kvtier.analytic.tables.tiers.build` makes them."""
    yield from of_tiers(platform, tables["tiers"])
    yield from of_cxl_range(platform)
    yield from of_transfer(model, platform, tables["transfer"])
    yield from of_regeneration(model, platform, tables["regeneration"])
    yield from of_regenerate_over_move(model, platform, tables["regeneration"])
    yield from of_decode(model, platform)
    yield from of_prefetch(model, platform, tables["prefetch_window"])
    yield from phases.numbers(model, platform)
