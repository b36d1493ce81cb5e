"""Revision 2 workloads (e3): one row a workload, policy and seed."""

import polars as pl

from kvtier.evidence import numbers, simulated
from kvtier.evidence.labels import Label
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate import shards, tables
from kvtier.simulate.policies import slug
from kvtier.units import GIB
from kvtier.workload.synthetic import Shape, generate
from kvtier.workload.turns import BLOCK_BYTES


def number(runs: pl.DataFrame) -> list[Number]:
    return [
        simulated.seed_count("sim.rev2.e3.seeds", runs, "e3"),
        *simulated.means(runs, lambda row: f"sim.rev2.e3.{row['workload']}.{slug(row)}", ["hit", "cold"]),
    ]


def footprint(seed: int, shape: Shape) -> list[Number]:
    """KV of all sessions and the prefix, before the first turn and after the last."""
    turns = generate("zipf", seed, shape)
    sizes = {
        "first": (turns.context_blocks, "before the first turn"),
        "last": (turns.final_blocks, f"after the last of {shape.turns:,} turns"),
    }
    return [
        Number(
            f"workload.zipf.footprint.{name}",
            int(turns.prefix_blocks + blocks.sum()) * BLOCK_BYTES / GIB,
            "GiB",
            1,
            Label.ANALYTICAL,
            f"KV of the shared prefix and all {shape.sessions} sessions {when}, zipf, seed {seed}",
        )
        for name, (blocks, when) in sizes.items()
    ]


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        shape = Shape(params.sessions, params.turns)
        runs = shards.runs_of(snakemake.rule, snakemake.params, snakemake.input.shards)
        tables.RUNS.write(runs, snakemake.output.runs)
        numbers.write(snakemake.output.numbers, [*number(runs), *footprint(params.seeds[0], shape)], snakemake)
