"""Measurements: what retained rows say of a machine, whether its bus allows it, and what a simulator costs beside a peer."""


rule fit_decode:
    """Two-term decode fits of the GB10 rows, exact and published KV sizes, each row left out in turn; intervals, influence, a robust line, a term for
    the batch; bus audit.

    Evidence: rows, streaming bandwidth and coefficients of the fits of all rows Measured; what the fits imply, fits with a row
    left out, intervals and other estimators Analytical model.
    """
    input:
        code=code_of("fit_decode"),
        platform="data/measured/gb10-2026-08-19/platform.yaml",
        streaming="data/measured/gb10-2026-08-19/streaming.csv",
        hf="data/measured/gb10-2026-08-19/decode_hf_sdpa.csv",
        vllm="data/measured/gb10-2026-08-19/decode_vllm_fa2.csv",
    output:
        fits="{results}/measured/gb10/fits.csv",
        rows="{results}/measured/gb10/rows.csv",
        leave_one_out="{results}/measured/gb10/leave_one_out.csv",
        influence="{results}/measured/gb10/influence.csv",
        estimators="{results}/measured/gb10/estimators.csv",
        residuals_by_batch="{results}/measured/gb10/residuals_by_batch.csv",
        audit=reported("{results}/audit/physical_bound.json"),
        numbers="{results}/numbers/fit_decode.json",
    log:
        "{results}/logs/fit_decode.log",
    message:
        "Measured: decode fits of the GB10, checked against its memory bus"
    script:
        "../scripts/fit_decode.py"


rule fit_kept_runs:
    """Kept runs of the measurement kit: medians and intervals, lines and what they imply, whether two runs of a machine agree; guards again.

    Evidence: medians Measured; what lines imply, their coefficients among it, and ratios Analytical model; the bus Vendor specification.
    """
    input:
        code=code_of("fit_kept_runs"),
        kept=kept_runs(),
    output:
        runs="{results}/measured/kept/runs.csv",
        stream="{results}/measured/kept/stream.csv",
        decode="{results}/measured/kept/decode.csv",
        decode_fits="{results}/measured/kept/decode_fits.csv",
        movement="{results}/measured/kept/movement.csv",
        movement_fits="{results}/measured/kept/movement_fits.csv",
        regeneration="{results}/measured/kept/regeneration.csv",
        over_move="{results}/measured/kept/over_move.csv",
        metadata="{results}/measured/kept/metadata.csv",
        table_size="{results}/measured/kept/table_size.csv",
        folding="{results}/measured/kept/folding.csv",
        repeatability="{results}/measured/kept/repeatability.csv",
        audit=reported("{results}/audit/kept_runs.csv"),
        numbers="{results}/numbers/fit_kept_runs.json",
    log:
        "{results}/logs/fit_kept_runs.log",
    message:
        "Measured: kept runs of the kit"
    script:
        "../scripts/fit_kept_runs.py"


rule fit_literature:
    """Setup and bandwidth of KV on the host and on the device, from a third party's times. Evidence: times External literature, fits Analytical model."""
    input:
        code=code_of("fit_literature"),
        times="data/inputs/literature/llama_cpp_pr31.csv",
    output:
        fits="{results}/literature/llama_cpp_pr31.csv",
        numbers="{results}/numbers/fit_literature.json",
    log:
        "{results}/logs/fit_literature.log",
    message:
        "Literature: setup and bandwidth from cited times"
    script:
        "../scripts/fit_literature.py"


rule tabulate_benchmarks:
    """This engine beside libCacheSim, hits checked, and how the cost of a replay grows, from the rows that the benchmarks left behind.

    Evidence: Measured, on the machine that is described beside the rows.
    """
    input:
        code=code_of("tabulate_benchmarks"),
        peers="data/bench/peers.csv",
        peers_machine="data/bench/peers.json",
        growth="data/bench/growth.csv",
        growth_machine="data/bench/growth.json",
    output:
        throughput="{results}/measured/bench/throughput.csv",
        numbers="{results}/numbers/tabulate_benchmarks.json",
    log:
        "{results}/logs/tabulate_benchmarks.log",
    message:
        "Measured: simulators side by side, and growth"
    script:
        "../scripts/tabulate_benchmarks.py"


rule alter_cached_kv:
    """What a change of cached KV does to the logits of a small transformer: tiers, dropped heads, recomputed blocks, rounding.

    Evidence: Illustrative; which change is lossless holds for any model, the sizes are those of a tiny one with random weights.
    """
    input:
        code=code_of("alter_cached_kv"),
    output:
        experiments="{results}/model/experiments.csv",
        errors_by_layer="{results}/model/errors_by_layer.csv",
        numbers="{results}/numbers/alter_cached_kv.json",
    log:
        "{results}/logs/alter_cached_kv.log",
    message:
        "Lossless or not: a small transformer with its cached KV altered"
    script:
        "../scripts/alter_cached_kv.py"
