"""Decode fits of the retained GB10 rows: tables, numbers, how far single rows carry them, and the audit against the memory bus."""

import json
from itertools import chain

from kvtier.audit.physical_bound import bandwidths_of, physical_bound, report
from kvtier.evidence.numbers import write
from kvtier.files import write_atomically
from kvtier.jobs import reporting
from kvtier.measure import sensitivity_numbers, sensitivity_tables
from kvtier.measure.numbers import numbers
from kvtier.measure.platform import read_platform
from kvtier.measure.retained import read_streaming_copy
from kvtier.measure.runs import fit_run
from kvtier.measure.sensitivity import sensitivity
from kvtier.measure.tables import build

if __name__ == "__main__":
    with reporting(snakemake):
        platform, copy = read_platform(snakemake.input.platform), read_streaming_copy(snakemake.input.streaming)
        runs = {key: fit_run(key, snakemake.input[key], platform, copy.gbps) for key in ("hf", "vllm")}
        checked = physical_bound(bandwidths_of(runs.values(), platform, copy.gbps), platform.bus_gbps)
        weighed = {key: sensitivity(run, platform.model.stated("weight_bytes")) for key, run in runs.items()}
        for name, table in (build(runs.values()) | sensitivity_tables.build(weighed.values())).items():
            write_atomically(snakemake.output[name], table.write_csv())
        write_atomically(snakemake.output.audit, json.dumps(report(checked), indent=1, ensure_ascii=False) + "\n")
        write(snakemake.output.numbers, chain(numbers(runs, platform, copy), sensitivity_numbers.numbers(weighed)), snakemake)
