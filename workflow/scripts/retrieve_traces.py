"""One public trace, without compression."""

from pathlib import Path

from kvtier.jobs import reporting
from kvtier.workload import retrieve

if __name__ == "__main__":
    with reporting(snakemake):
        target = Path(snakemake.output.trace)
        sources = retrieve.read_sources(snakemake.input.sources)
        source = next(one for one in sources.values() if one.file == target.name)
        if snakemake.input.found:
            retrieve.take(source, str(snakemake.input.found), target)
        else:
            retrieve.download(source, target)
