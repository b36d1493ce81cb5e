"""Compare the build with the published copy; print the table, keep it in the log, and fail on any difference."""

import sys

from kvtier.evidence.published_copy import Published, compare
from kvtier.files import write_atomically
from kvtier.jobs import reporting

if __name__ == "__main__":
    params, read = snakemake.params, snakemake.input
    files = [Published(*file) for file in zip(params.published, read.built, params.made_by, strict=True)]
    files += [Published(*file, "collect_traces") for file in zip(params.replayed, read.replayed, strict=True)]
    with reporting(snakemake):
        report, identical = compare(files, params.rules, "data/numbers.json")
    print(report, flush=True)
    write_atomically(snakemake.log[0], report)
    if not identical:
        sys.exit(1)
    write_atomically(snakemake.output.report, report)
