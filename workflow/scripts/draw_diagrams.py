"""Every structural diagram as two files: the drawing for print, and the values in it."""

from pathlib import Path

from kvtier.jobs import reporting
from kvtier.publish.pages import appendix

if __name__ == "__main__":
    with reporting(snakemake):
        appendix.draw(Path(snakemake.output.pictures[0]).parent, appendix.given(snakemake.input))
