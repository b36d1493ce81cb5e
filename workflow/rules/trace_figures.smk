"""Figures of the public traces."""


rule draw_traces_by_capacity:
    """Hit rate on public traces against capacity, with the optimum. Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_traces_by_capacity"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("traces_by_capacity"),
    log:
        "{results}/logs/draw_traces_by_capacity.log",
    message:
        "Figure: traces, hit rate against capacity"
    script:
        "../scripts/draw_traces_by_capacity.py"


rule draw_traces_alpha:
    """Best half-life of EMA by trace and capacity. Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_traces_alpha"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("traces_alpha"),
    log:
        "{results}/logs/draw_traces_alpha.log",
    message:
        "Figure: traces, best half-life"
    script:
        "../scripts/draw_traces_alpha.py"


rule draw_traces_closed:
    """Share of the way from LRU to the optimum on public traces. Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_traces_closed"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("traces_closed"),
    log:
        "{results}/logs/draw_traces_closed.log",
    message:
        "Figure: traces, share of the way to the optimum"
    script:
        "../scripts/draw_traces_closed.py"
