"""Public traces: taken from a folder or fetched, checked, audited. Where they are absent the stage is skipped, with one line that says so."""

from kvtier.workload import retrieve

try:
    TRACE_SOURCES = {
        source.file: source
        for source in retrieve.read_sources("data/inputs/traces.yaml").values()
    }
    TRACE_FOLDER = retrieve.folder(SETTINGS["results"]["traces"]["folder"])
except InputError as error:
    sys.exit("error: {}".format(error))

TRACES_HAD, TRACES_SKIPPED = retrieve.available(
    TRACE_SOURCES.values(),
    TRACE_FOLDER,
    SETTINGS["results"]["traces"]["download"],
)


def found_trace(wildcards):
    """The file of a trace in the folder, if it is there; else nothing, and it is fetched."""
    found = retrieve.find(TRACE_SOURCES[wildcards.file], TRACE_FOLDER)
    return [str(found)] if found else []


def trace_files(*formats):
    """Files of the traces that can be had, of some formats."""
    return [
        "results/traces/{}".format(source.file)
        for source in TRACES_HAD
        if source.format in formats
    ]


rule retrieve_traces:
    """A public trace, from a folder or its address, checked by the sha256 of its content. Evidence: External literature, not ours."""
    input:
        found=found_trace,
        sources="data/inputs/traces.yaml",
        code=code_of("retrieve_traces"),
    output:
        trace="results/traces/{file}",
    log:
        "results/logs/retrieve_traces/{file}.log",
    wildcard_constraints:
        file="|".join(TRACE_SOURCES),
    message:
        "Trace {wildcards.file}"
    script:
        "../scripts/retrieve_traces.py"


rule audit_traces:
    """Parents, sessions, clock, ceilings and the commonest block of each trace with blocks. Evidence: Simulated (provisional)."""
    input:
        traces=trace_files("mooncake", "agentic"),
        sources="data/inputs/traces.yaml",
        code=code_of("audit_traces"),
    output:
        findings="results/audit/traces.csv",
        rates="results/traces/rates.csv",
    log:
        "results/logs/audit_traces.log",
    message:
        "Audit: parents, sessions, clock and ceilings of the public traces"
    script:
        "../scripts/audit_traces.py"


TRACE_STAGE = [*rules.audit_traces.output] if trace_files("mooncake", "agentic") else []
"""What `all` makes of the public traces: nothing where there are none."""
