"""Two-term fits of a third party's times by context: table and numbers."""

from kvtier.evidence.numbers import write
from kvtier.jobs import reporting
from kvtier.measure import literature

if __name__ == "__main__":
    with reporting(snakemake):
        found = literature.read(snakemake.input.times)
        literature.FITS.write(literature.table(found), snakemake.output.fits)
        write(snakemake.output.numbers, literature.numbers(found), snakemake)
