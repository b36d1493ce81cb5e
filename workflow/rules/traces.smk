"""Public traces: taken from a folder or fetched, checked, audited. Where they are absent the stage is skipped, with one line that says so."""


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
        traces=lambda _: trace_files("mooncake", "agentic"),
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
