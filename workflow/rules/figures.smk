"""Figures: each as SVG, Vega-Lite spec and the CSV behind it, with its evidence label drawn in, and in the form that a page takes in."""


rule draw_hit_rate_by_budget:
    """Hit rate against HBM budget, four policies, seeds as bands (e1). Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_hit_rate_by_budget"),
        runs=rules.sweep_revision2_budgets.output.runs,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("hit_rate_by_budget"),
    log:
        "{results}/logs/draw_hit_rate_by_budget.log",
    message:
        "Figure: hit rate against HBM budget"
    script:
        "../scripts/draw_hit_rate_by_budget.py"


rule draw_alpha_curve:
    """Hit rate against EMA alpha, LRU and LFU as reference lines (e2). Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_alpha_curve"),
        runs=rules.sweep_revision2_alphas.output.runs,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("alpha_curve"),
    log:
        "{results}/logs/draw_alpha_curve.log",
    message:
        "Figure: hit rate against EMA alpha"
    script:
        "../scripts/draw_alpha_curve.py"


rule draw_revisions_by_budget:
    """Hit rate against HBM budget, Revision 2 beside Revision 3 and its optimum (e1). Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_revisions_by_budget"),
        old=rules.sweep_revision2_budgets.output.runs,
        new=rules.sweep_revision3_budgets.output.runs,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("revisions_by_budget"),
    log:
        "{results}/logs/draw_revisions_by_budget.log",
    message:
        "Figure: hit rate against HBM budget, two revisions"
    script:
        "../scripts/draw_revisions_by_budget.py"


rule draw_what_survives:
    """Effects that Revision 2 found, and their size in Revision 3. Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_what_survives"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("what_survives"),
    log:
        "{results}/logs/draw_what_survives.log",
    message:
        "Figure: effects in two revisions"
    script:
        "../scripts/draw_what_survives.py"


rule draw_decode_fit:
    """Decode step time against KV size, timed points and two-term fits of the GB10. Evidence: Measured."""
    input:
        code=code_of("draw_decode_fit"),
        rows=rules.fit_decode.output.rows,
        fits=rules.fit_decode.output.fits,
        platform=rules.fit_decode.input.platform,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("decode_fit"),
    log:
        "{results}/logs/draw_decode_fit.log",
    message:
        "Figure: decode step time against KV size"
    script:
        "../scripts/draw_decode_fit.py"


rule draw_influence:
    """Slope and ratio of the decode fits with each row left out, with intervals. Evidence: Analytical model."""
    input:
        code=code_of("draw_influence"),
        platform=rules.fit_decode.input.platform,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("influence"),
    log:
        "{results}/logs/draw_influence.log",
    message:
        "Figure: decode fits with each row left out"
    script:
        "../scripts/draw_influence.py"


rule draw_stream:
    """Streaming bandwidth by size of the arrays, by kernel and threads, against the stated bus. Evidence: Measured; shares of the bus Analytical model."""
    input:
        code=code_of("draw_stream"),
        runs=rules.fit_kept_runs.output.runs,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("stream"),
    log:
        "{results}/logs/draw_stream.log",
    message:
        "Figure: streaming bandwidth against the stated bus"
    script:
        "../scripts/draw_stream.py"


rule draw_movement:
    """Time to move a piece by size and path, and to compute a block again. Evidence: times Measured; lines and ratios Analytical model."""
    input:
        code=code_of("draw_movement"),
        runs=rules.fit_kept_runs.output.runs,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("movement"),
    log:
        "{results}/logs/draw_movement.log",
    message:
        "Figure: moving and computing again, as measured"
    script:
        "../scripts/draw_movement.py"


rule draw_metadata:
    """Time of one operation on a block's metadata, by policy and size of the table. Evidence: Measured; a step of them Analytical model."""
    input:
        code=code_of("draw_metadata"),
        runs=rules.fit_kept_runs.output.runs,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("metadata"),
    log:
        "{results}/logs/draw_metadata.log",
    message:
        "Figure: what a block's metadata costs"
    script:
        "../scripts/draw_metadata.py"


rule draw_throughput_by_context:
    """Block requests per CPU second against context length, two simulators. Evidence: Measured."""
    input:
        code=code_of("draw_throughput_by_context"),
        throughput=rules.tabulate_benchmarks.output.throughput,
        machine=rules.tabulate_benchmarks.input.peers_machine,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("throughput_by_context"),
    log:
        "{results}/logs/draw_throughput_by_context.log",
    message:
        "Figure: simulator throughput against context length"
    script:
        "../scripts/draw_throughput_by_context.py"


rule draw_alphas_by_revision:
    """Hit rate against EMA alpha, Revision 2 beside Revision 3 and its optimum (e2). Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_alphas_by_revision"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("alphas_by_revision"),
    log:
        "{results}/logs/draw_alphas_by_revision.log",
    message:
        "Figure: hit rate against EMA alpha, two revisions"
    script:
        "../scripts/draw_alphas_by_revision.py"


rule draw_workloads_by_revision:
    """Hit rate on three workloads, Revision 2 beside Revision 3 and its optimum (e3). Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_workloads_by_revision"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("workloads_by_revision"),
    log:
        "{results}/logs/draw_workloads_by_revision.log",
    message:
        "Figure: hit rate on three workloads, two revisions"
    script:
        "../scripts/draw_workloads_by_revision.py"


rule draw_policies_at_budget:
    """Hit rate of every policy at one budget of Revision 3, under the optimum. Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_policies_at_budget"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("policies_at_budget"),
    log:
        "{results}/logs/draw_policies_at_budget.log",
    message:
        "Figure: policies at one budget"
    script:
        "../scripts/draw_policies_at_budget.py"


rule draw_ablation:
    """Single and joint gains of six mechanisms in Revision 3. Evidence: Simulated (provisional)."""
    input:
        code=code_of("draw_ablation"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("ablation"),
    log:
        "{results}/logs/draw_ablation.log",
    message:
        "Figure: single and joint gains"
    script:
        "../scripts/draw_ablation.py"


rule draw_move_or_regenerate:
    """Moving a KV block against regenerating it, under stated bandwidths and MFU. Evidence: Analytical model."""
    input:
        code=code_of("draw_move_or_regenerate"),
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("move_or_regenerate"),
    log:
        "{results}/logs/draw_move_or_regenerate.log",
    message:
        "Figure: moving against regenerating"
    script:
        "../scripts/draw_move_or_regenerate.py"


rule draw_rope_bound:
    """Bound on a rotary inner product by distance, two bases. Evidence: Analytical model."""
    input:
        code=code_of("draw_rope_bound"),
        curve=rules.tabulate_attention.output.rope_curve,
        numbers=rules.collect_numbers.output.ledger,
    output:
        **figure_files("rope_bound"),
    log:
        "{results}/logs/draw_rope_bound.log",
    message:
        "Figure: rotary bound by distance"
    script:
        "../scripts/draw_rope_bound.py"


FIGURES = sorted(
    made.name.removeprefix("draw_")
    for made in workflow.rules
    if made.name.startswith("draw_")
)

# Figures of measurements, traces and shapes: no setting of the workload moves them, so `quick` leaves them out.
OF_NO_WORKLOAD = [
    "decode_fit",
    "influence",
    "metadata",
    "move_or_regenerate",
    "movement",
    "rope_bound",
    "stream",
    "throughput_by_context",
    "traces_alpha",
    "traces_by_capacity",
    "traces_closed",
]
