"""KV bytes by model and context, the memory plan of one device, and how many contexts fit."""

from kvtier.analytic.geometry import load_models, reference_model
from kvtier.analytic.inputs import load_platform
from kvtier.analytic.numbers.capacity import numbers
from kvtier.analytic.tables.capacity import build
from kvtier.evidence.numbers import write
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        models, platform = load_models(snakemake.input.models), load_platform(snakemake.input.platform)
        model = reference_model(models, snakemake.input.models)
        tables = build(models, model, platform, snakemake.params.context_tokens, snakemake.params.users)
        for name, table in tables.items():
            write_atomically(snakemake.output[name], table.write_csv())
        write(snakemake.output.numbers, numbers(models, model, platform, tables), snakemake)
