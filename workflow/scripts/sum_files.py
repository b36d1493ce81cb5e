"""SHA256SUMS of the published copy and of the data that is kept."""

from kvtier.certification import sums
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    with reporting(snakemake):
        files = dict(zip(snakemake.params.names, snakemake.input.files, strict=True))
        write_atomically(snakemake.output.sums, sums.lines(files))
