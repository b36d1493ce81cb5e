"""Experiments on the public traces. Their tables are part of the published copy, and all that follows reads them there: the documents are
the same where the traces are absent. Renewed by `snakemake publish_traces`, then `snakemake publish`.
"""

REPLAYED = {
    name: source.file
    for name, source in retrieve.read_sources("data/inputs/traces.yaml").items()
    if source.format in ("mooncake", "agentic")
}
REPLAYS = [
    "streams",
    "policies",
    "alphas",
    "orders",
    "weights",
    "times",
    "block_sizes",
]
TRACE_TABLES = {
    "data/traces/{}.csv".format(table): "results/traces/tables/{}.csv".format(table)
    for table in REPLAYS
}
# All of them or none: the tables hold all traces.
TRACES_REPLAYED = set(REPLAYED.values()) <= {source.file for source in TRACES_HAD}


rule replay_trace:
    """One public trace: policies by capacity, half-lives, state, ends of an edge. Evidence: Simulated (provisional)."""
    input:
        code=code_of("replay_trace"),
        trace=lambda wildcards: "results/traces/{}".format(REPLAYED[wildcards.trace]),
    output:
        **{
            table: "results/traces/replays/{{trace}}/{}.csv".format(table)
            for table in REPLAYS
        },
    log:
        "results/logs/replay_trace/{trace}.log",
    wildcard_constraints:
        trace="|".join(REPLAYED),
    message:
        "Replay: trace {wildcards.trace}"
    script:
        "../scripts/replay_trace.py"


rule collect_traces:
    """The tables of all traces, one below the other. Evidence: Simulated (provisional)."""
    input:
        **{
            table: expand(
                "results/traces/replays/{trace}/{table}.csv",
                trace=REPLAYED,
                table=table,
            )
            for table in REPLAYS
        },
        code=code_of("collect_traces"),
    output:
        **{table: "results/traces/tables/{}.csv".format(table) for table in REPLAYS},
    log:
        "results/logs/collect_traces.log",
    message:
        "Replay: tables of all traces"
    script:
        "../scripts/collect_traces.py"


rule tabulate_traces:
    """What policies do on public traces, from the retained tables. Evidence: Simulated (provisional)."""
    input:
        **{table: "data/traces/{}.csv".format(table) for table in REPLAYS},
        code=code_of("tabulate_traces"),
    output:
        numbers="{results}/numbers/tabulate_traces.json",
    log:
        "{results}/logs/tabulate_traces.log",
    message:
        "Traces: numbers of the retained tables"
    script:
        "../scripts/tabulate_traces.py"


rule publish_traces:
    """Renew the retained tables from the traces of this build."""
    input:
        code=code_of("renew_published_copy"),
        built=list(TRACE_TABLES.values()),
    log:
        "results/logs/publish_traces.log",
    params:
        published=list(TRACE_TABLES),
        made_by=["collect_traces"] * len(TRACE_TABLES),
    message:
        "Publish: tables of the traces"
    script:
        "../scripts/renew_published_copy.py"
