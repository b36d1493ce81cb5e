"""Revision 3 in time and in bytes moved: stall, time to first token, link load, prefetch rules, traffic of the tiers."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import timing
from kvtier.simulate.metrics import RECOMPUTE_S
from kvtier.simulate.timing import Frames
from kvtier.workload.synthetic import Shape

SERVING = (
    f"one server; a turn fetches (bandwidth and 0.3 us a block, assumed), then recomputes ({1e3 * RECOMPUTE_S:.2f} ms a block, assumed), "
    f"then decodes ({1e3 * timing.DECODE.fixed_s:.2f} ms and {1e3 * timing.DECODE.per_gib_s:.3f} ms a GiB of KV a step, assumed)"
)
ARRIVALS = {"deterministic": "even arrivals", "poisson": "Poisson arrivals", "gamma": f"Gamma arrivals of shape {timing.GAMMA_SHAPE:g}"}
MODES = {
    "inclusive": f"HBM {timing.HBM_GIB:g} GiB, CXL {timing.CXL_GIB:g} GiB, which keeps what is fetched",
    "exclusive": f"HBM {timing.HBM_GIB:g} GiB, CXL {timing.CXL_GIB:g} GiB, which gives up what is fetched",
    "four_tiers": "HBM 10 + 37 GB, pinned and evictable as one, CXL 1,024 GB and NVMe 16 TB, both of which keep what is fetched",
    "no_tier": "no tier below",
}
NAMES = {name: policy.title for name, policy in timing.POLICIES.items()} | {
    "min": "the optimum (most hits of the counted turns)",
    "unbounded": "HBM that holds everything",
}

# Name in the key: column or expression, unit, decimals, definition.
TIMES = {
    "stall_per_token": (pl.col("stall_ms_per_token"), "ms", 3, "time that turns wait for their context / tokens generated"),
    **{
        f"ttft_p{percent}": (pl.col(f"ttft_ms_p{percent}") / 1e3, "s", 2, f"p{percent} over turns of arrival to first token")
        for percent in (50, 95, 99)
    },
    **{
        f"stall_p{percent}": (
            pl.col(f"stall_ms_p{percent}"),
            "ms",
            1,
            f"p{percent} over turns of the wait for the context",
        )
        for percent in (50, 95, 99)
    },
    "link_in": (100 * pl.col("utilisation_in"), "%", 2, "time that the link into HBM is busy / time"),
    "link_out": (100 * pl.col("utilisation_out"), "%", 3, "time that the link out of HBM is busy / time"),
    "late": (pl.col("late").cast(pl.Float64), "", 1, "transfers that end after their deadline, a run; that of a fetch is the turn's start"),
}
SHARES = {
    "sustainability": ("sustainable", "bytes each way / time in which a turn decodes is within the bandwidth"),
    "hiding": ("hidden", "every transfer ends by its deadline, that of a fetch being the turn's start"),
}
PREFETCHES = {
    "accuracy": (pl.col("accuracy"), "", 4, "prefetched blocks that the next turn reads / prefetched blocks"),
    "saved": (pl.col("saved_ms"), "ms", 2, "stall a turn without prefetch minus with it"),
    "blocks": (pl.col("prefetched_blocks") / pl.col("turns"), "blocks", 1, "prefetched blocks / turns"),
    "late": TIMES["late"],
}
TRAFFIC = {
    "a_read": (pl.col("a_read"), "", 2, "blocks moved into HBM / distinct blocks that turns read"),
    "a_traffic": (pl.col("a_traffic"), "", 2, "blocks moved into and out of HBM, each written down once / distinct blocks that turns read"),
    "reuse": (pl.col("reuse_ratio"), "", 3, "reads of blocks in HBM / blocks moved into and out of it"),
    "bytes_per_token": (pl.col("bytes_per_token") / 1e6, "MB", 2, "bytes moved into and out of HBM / tokens generated"),
    "nvme_blocks": (pl.col("lowest_tier_blocks").cast(pl.Float64), "blocks", 0, "blocks that ever reach NVMe"),
}


def cells(frame: pl.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Rows that differ by seed alone, with the first of them."""
    return [(part.row(0, named=True), part) for part in frame.partition_by(by, maintain_order=True)]


def turns_of(row: Mapping[str, Any]) -> str:
    return f"turns {row['counted_from']:,} to {row['counted_from'] + row['turns'] - 1:,}"


def means(cell: pl.DataFrame, key: str, fields: Mapping[str, tuple[pl.Expr, str, int, str]], about: str) -> list[Number]:
    """Mean over seeds of each field that every seed has."""
    made = []
    for name, (expression, unit, digits, definition) in fields.items():
        values = dict(zip(cell["seed"], cell.select(expression).to_series(), strict=True))
        if None not in values.values():
            made.append(simulated.mean(f"{key}.{name}", values, unit, digits, f"{definition}; {about}"))
    return made


def shares(cell: pl.DataFrame, key: str, about: str) -> list[Number]:
    """Share of the runs in which each check holds; no interval, for a share of a few runs that is 0 or 1 has none to show."""
    return [
        Number(
            f"{key}.{name}",
            100 * cell[column].sum() / len(cell),
            "%",
            0,
            Label.SIMULATED,
            f"runs of {len(cell)} in which {definition}; {about}, {simulated.named(dict.fromkeys(cell['seed']))}",
            status=Status.PROVISIONAL,
        )
        for name, (column, definition) in SHARES.items()
    ]


def timed(frame: pl.DataFrame) -> list[Number]:
    middle = timing.middle(frame["gbps"].unique().to_list())
    made = []
    for row, cell in cells(frame, ["arrivals", "gbps", "policy"]):
        key = f"sim.rev3.time.{row['arrivals']}.{row['gbps']:g}.{row['policy']}"
        tier = MODES["no_tier"] if row["policy"] == timing.UNBOUNDED else MODES["inclusive"]
        load = f"{ARRIVALS[row['arrivals']]} at {row['load']:g} of what LRU serves at {middle:g} GB/s"
        about = f"Revision 3, zipf, {NAMES[row['policy']]}, {tier}, {row['gbps']:g} GB/s each way, {turns_of(row)}, {load}; {SERVING}"
        made += [*means(cell, key, TIMES, about), *shares(cell, key, about)]
        if row["policy"] != "min":
            optimum = frame.filter(arrivals=row["arrivals"], gbps=row["gbps"], policy="min").select("seed", optimum="stall_ms_per_token")
            over = (pl.col("stall_ms_per_token") - pl.col("optimum"), "ms", 3, "stall a token minus that of the optimum, seed by seed")
            made += means(cell.join(optimum, on="seed", maintain_order="left"), key, {"stall_over_optimum": over}, about)
    (row, cell), *_ = cells(frame, ["arrivals", "gbps", "policy"])
    rate = {"rate": (60 * pl.col("rate_per_s"), "turns/min", 2, f"{row['load']:g} of what LRU serves at {middle:g} GB/s")}
    return [*made, *means(cell, "sim.rev3.time", rate, f"Revision 3, zipf, {MODES['inclusive']}, {turns_of(row)}; {SERVING}")]


def prefetched(frame: pl.DataFrame) -> list[Number]:
    made = []
    for row, cell in cells(frame, ["gbps", "rule"]):
        key = f"sim.rev3.prefetch.{row['gbps']:g}.{row['rule']}"
        about = (
            f"Revision 3, zipf, LRU, HBM {timing.HBM_GIB:g} GiB and a buffer of {timing.PREFETCH_GIB:g} GiB beside it, a tier that drops "
            f"nothing, {row['gbps']:g} GB/s each way, Poisson arrivals, {turns_of(row)}; {SERVING}"
        )
        if row["rule"] == "none":
            stall = {"stall": (pl.col("stall_ms"), "ms", 1, "stall a turn without prefetch")}
            made += means(cell, key, stall, about)
        else:
            made += means(cell, key, PREFETCHES, f"rule {row['rule']}, {about}")
    return made


def moved(frame: pl.DataFrame, residence: pl.DataFrame) -> list[Number]:
    made = []
    for row, cell in cells(frame, ["mode", "policy"]):
        key = f"sim.rev3.traffic.{row['mode']}.{row['policy']}"
        about = f"Revision 3, zipf, {NAMES[row['policy']]}, {MODES[row['mode']]}, {turns_of(row)}"
        made += means(cell, key, TRAFFIC, about)
        if row["policy"] not in ("min", timing.UNBOUNDED):
            optimum = frame.filter(mode=row["mode"], policy="min").select("seed", optimum="a_traffic")
            over = {
                "over_optimum": (100 * (pl.col("a_traffic") / pl.col("optimum") - 1), "%", 1, "A_traffic / that of the optimum, less 1")
            }
            made += means(cell.join(optimum, on="seed", maintain_order="left"), key, over, f"seed by seed; {about}")
        for of, part in cells(residence.filter(mode=row["mode"], policy=row["policy"]), ["gbps"]):
            byte_time = (pl.col("hbm_gib_s_per_token"), "GiB s", 3, "sum over blocks in HBM of size x time, turns back to back / tokens")
            field = {f"byte_time_{of['gbps']:g}": byte_time}
            made += means(part, key, field, f"{about}, {of['gbps']:g} GB/s; {SERVING}")
    return made


def positioned(residence: pl.DataFrame) -> list[Number]:
    """Stall of LRU with recomputation priced alike at every position, and with the attention to what stands before a block."""
    fields = {
        "linear": (pl.col("stall_ms"), "ms", 1, "stall a turn, every recomputed block at the same price"),
        "attention": (
            pl.col("stall_by_position_ms"),
            "ms",
            1,
            "stall a turn, a recomputed block priced with the attention to all before it, and fetched only where that is faster",
        ),
    }
    made = []
    for row, cell in cells(residence.filter(mode="inclusive", policy="lru"), ["gbps"]):
        about = f"Revision 3, zipf, LRU, {MODES['inclusive']}, {row['gbps']:g} GB/s, {turns_of(row)}; {SERVING}"
        made += means(cell, f"sim.rev3.position.{row['gbps']:g}", fields, about)
    return made


def number(frames: Frames) -> list[Number]:
    return [
        *timed(frames.times),
        *prefetched(frames.prefetches),
        *moved(frames.traffic, frames.residence),
        *positioned(frames.residence),
        simulated.seed_count("sim.rev3.time.seeds", frames.times, "Revision 3 in time"),
    ]


if __name__ == "__main__":
    with reporting(snakemake):
        asked = snakemake.params
        frames = timing.measure(asked.seeds, asked.bandwidths_gbps, asked.load, Shape(asked.sessions, asked.turns), asked.counted_from)
        for table, frame, path in (
            (timing.TIMES, frames.times, snakemake.output.times),
            (timing.PREFETCHES, frames.prefetches, snakemake.output.prefetches),
            (timing.TRAFFIC, frames.traffic, snakemake.output.traffic),
            (timing.RESIDENCE, frames.residence, snakemake.output.residence),
        ):
            table.write(frame, path)
        numbers.write(snakemake.output.numbers, number(frames), snakemake)
