"""Score streams, block state, rotary frequencies and envelope, and the softmax example."""

from kvtier.analytic.geometry import load_models, reference_model
from kvtier.analytic.inputs import load_platform
from kvtier.analytic.numbers.attention import numbers
from kvtier.analytic.tables.attention import build
from kvtier.evidence.numbers import write
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        models, platform = load_models(snakemake.input.models), load_platform(snakemake.input.platform)
        model = reference_model(models, snakemake.input.models)
        tables = build(models, model, platform, snakemake.params.distance_tokens)
        for name, table in tables.items():
            write_atomically(snakemake.output[name], table.write_csv())
        write(snakemake.output.numbers, numbers(model, platform, tables), snakemake)
