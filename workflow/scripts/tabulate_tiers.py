"""Tiers as stated, and moving a block against computing it again."""

from kvtier.analytic.geometry import load_models, reference_model
from kvtier.analytic.inputs import load_platform
from kvtier.analytic.numbers.tiers import numbers
from kvtier.analytic.tables.tiers import build
from kvtier.evidence.numbers import write
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        platform = load_platform(snakemake.input.platform)
        model = reference_model(load_models(snakemake.input.models), snakemake.input.models)
        tables = build(model, platform)
        for name, table in tables.items():
            write_atomically(snakemake.output[name], table.write_csv())
        write(snakemake.output.numbers, numbers(model, platform, tables), snakemake)
