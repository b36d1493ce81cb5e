"""Every structural diagram as two files: the drawing for print, and the values in it."""

from pathlib import Path

from kvtier.jobs import reporting
from kvtier.publish.pages import write
from kvtier.publish.sources import Given

if __name__ == "__main__":
    with reporting(snakemake):
        write.diagrams(Path(snakemake.output.pictures[0]).parent, Given.of(snakemake.input))
