"""Revision 2 under other session numbers: one row a renumbering and policy, and how far the hit rate moves."""

import polars as pl

from kvtier.evidence import numbers
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.jobs import reporting
from kvtier.simulate.policies import slug
from kvtier.simulate.renumbering import HIT_RATES, hit_rates
from kvtier.workload.synthetic import Shape, generate

SEED = 1


def number(rates: pl.DataFrame) -> list[Number]:
    made = []
    for _, of_policy in rates.filter(pl.col("renumbering") > 0).group_by("policy", "alpha", maintain_order=True):
        name, renumberings = slug(of_policy.row(0, named=True)), of_policy["renumbering"].max()
        for word, value in (("lowest", of_policy["hit_rate"].min()), ("highest", of_policy["hit_rate"].max())):
            definition = f"{word} hit rate over {renumberings} random renumberings of the sessions; Revision 2, zipf, seed 1, HBM 32 GiB"
            made.append(Number(f"sim.rev2.renumbered.{name}.{word}", value, "%", 2, Label.SIMULATED, definition, status=Status.PROVISIONAL))
    return made


if __name__ == "__main__":
    with reporting(snakemake):
        params = snakemake.params
        rates = hit_rates(generate("zipf", SEED, Shape(params.sessions, params.turns)), params.counted_from, params.renumberings, SEED)
        HIT_RATES.write(rates, snakemake.output.hits)
        numbers.write(snakemake.output.numbers, number(rates), snakemake)
