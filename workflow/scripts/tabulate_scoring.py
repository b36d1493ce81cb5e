"""Half-life of the decayed score, its published example, and placement where each signal is on or off."""

from kvtier.analytic.inputs import load_platform
from kvtier.analytic.numbers.scoring import numbers
from kvtier.analytic.tables.scoring import build
from kvtier.evidence.numbers import write
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        platform = load_platform(snakemake.input.platform)
        tables = build(platform, snakemake.params.ema_alpha)
        for name, table in tables.items():
            write_atomically(snakemake.output[name], table.write_csv())
        write(snakemake.output.numbers, numbers(platform, tables), snakemake)
