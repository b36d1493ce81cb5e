"""Runs of the measurement kit that were kept: tables, numbers, whether two runs of a machine agree, and the guards again, from raw rows."""

from pathlib import Path

from kvtier.audit import kept_run
from kvtier.audit.findings import FINDINGS, require, table
from kvtier.audit.kept_findings import findings
from kvtier.evidence.numbers import write
from kvtier.files import read_json
from kvtier.jobs import reporting
from kvtier.measure import kept_tables, repeatability
from kvtier.measure.kept_numbers import numbers
from kvtier.measure.kept_runs import RECORD, read_all

if __name__ == "__main__":
    with reporting(snakemake):
        runs = read_all({Path(path).parent for path in snakemake.input.kept})
        audited = [
            each for run in runs for each in findings(run.name, kept_run.check(read_json(run.folder / RECORD), run.tables, run.folder))
        ]
        require(audited)
        compared = repeatability.repeated(runs)
        for name, (declared, rows) in kept_tables.build(runs, compared).items():
            declared.write(rows, snakemake.output[name])
        FINDINGS.write(table(audited), snakemake.output.audit)
        write(snakemake.output.numbers, numbers(runs, compared), snakemake)
