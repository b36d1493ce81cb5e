"""Simulations: Revision 1 with its defect, retained; Revision 2, corrected; Revision 3, which keeps what it reads. Both provisional."""


rule replay_shard:
    """Some of a sweep's runs, where the setting sweeps.shards deals a sweep out to several jobs. Evidence: as of the sweep."""
    input:
        code=code_of("replay_shard"),
    output:
        runs="{results}/simulate/shards/{sweep}/{shard}-of-{shards}.parquet",
    log:
        "{results}/logs/shards/{sweep}/{shard}-of-{shards}.log",
    wildcard_constraints:
        sweep="[a-z0-9_]+",
        shard="[0-9]+",
        shards="[0-9]+",
    params:
        settings=settings_of_sweep,
    message:
        "Shard {wildcards.shard} of {wildcards.shards}: {wildcards.sweep}"
    script:
        "../scripts/replay_shard.py"


rule sweep_revision1_budgets:
    """Revision 1: hit rate against HBM budget. Evidence: Simulated, superseded; retained for audit."""
    input:
        code=code_of("sweep_revision1_budgets"),
        shards=shards_of("sweep_revision1_budgets"),
    output:
        runs="{results}/simulate/revision1/budgets.parquet",
        numbers="{results}/numbers/sweep_revision1_budgets.json",
    log:
        "{results}/logs/sweep_revision1_budgets.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        budgets_gib=setting("revision1", "budgets_gib"),
        seeds=setting("revision1", "seeds"),
    message:
        "Revision 1: {params.budgets_gib} GiB, seeds {params.seeds}"
    script:
        "../scripts/sweep_revision1_budgets.py"


rule sweep_revision1_cxl:
    """Revision 1: where reads are served against the size of CXL. Evidence: Simulated, superseded; retained for audit."""
    input:
        code=code_of("sweep_revision1_cxl"),
        shards=shards_of("sweep_revision1_cxl"),
    output:
        runs="{results}/simulate/revision1/cxl.parquet",
        numbers="{results}/numbers/sweep_revision1_cxl.json",
    log:
        "{results}/logs/sweep_revision1_cxl.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        cxl_gib=setting("revision1", "cxl_gib"),
    message:
        "Revision 1: CXL {params.cxl_gib} GiB"
    script:
        "../scripts/sweep_revision1_cxl.py"


rule sweep_revision1_workloads:
    """Revision 1: scan and loop workloads. Evidence: Simulated, superseded; retained for audit."""
    input:
        code=code_of("sweep_revision1_workloads"),
        shards=shards_of("sweep_revision1_workloads"),
    output:
        runs="{results}/simulate/revision1/workloads.parquet",
        numbers="{results}/numbers/sweep_revision1_workloads.json",
    log:
        "{results}/logs/sweep_revision1_workloads.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        seeds=setting("revision1", "workload_seeds"),
    message:
        "Revision 1: scan and loop, seeds {params.seeds}"
    script:
        "../scripts/sweep_revision1_workloads.py"


rule sweep_revision1_alphas:
    """Revision 1: hit rate against alpha. Evidence: Simulated, superseded; retained for audit."""
    input:
        code=code_of("sweep_revision1_alphas"),
        shards=shards_of("sweep_revision1_alphas"),
    output:
        runs="{results}/simulate/revision1/alphas.parquet",
        numbers="{results}/numbers/sweep_revision1_alphas.json",
    log:
        "{results}/logs/sweep_revision1_alphas.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        alphas=setting("revision1", "alphas"),
    message:
        "Revision 1: alpha {params.alphas}"
    script:
        "../scripts/sweep_revision1_alphas.py"


rule write_revision1_records:
    """Revision 1 outputs in the published schemas. Evidence: Simulated, superseded; retained for audit."""
    input:
        code=code_of("write_revision1_records"),
        budgets=rules.sweep_revision1_budgets.output.runs,
        cxl=rules.sweep_revision1_cxl.output.runs,
    output:
        sweep="{results}/data/sweep_rev1_superseded.json",
        cxl_sweep="{results}/data/cxl_sweep.json",
    log:
        "{results}/logs/write_revision1_records.log",
    message:
        "Revision 1: records as published"
    script:
        "../scripts/write_revision1_records.py"


rule sweep_revision2_budgets:
    """Revision 2, e1: hit rate against HBM budget, four policies. Evidence: Simulated (provisional)."""
    input:
        code=code_of("sweep_revision2_budgets"),
        shards=shards_of("sweep_revision2_budgets"),
    output:
        runs="{results}/simulate/revision2/e1.parquet",
        numbers="{results}/numbers/sweep_revision2_budgets.json",
    log:
        "{results}/logs/sweep_revision2_budgets.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        budgets_gib=setting("revision2", "budgets_gib"),
        seeds=setting("revision2", "seeds"),
    message:
        "Revision 2, e1: {params.budgets_gib} GiB, seeds {params.seeds}"
    script:
        "../scripts/sweep_revision2_budgets.py"


rule sweep_revision2_alphas:
    """Revision 2, e2: hit rate against alpha, with LRU and LFU. Evidence: Simulated (provisional)."""
    input:
        code=code_of("sweep_revision2_alphas"),
        shards=shards_of("sweep_revision2_alphas"),
    output:
        runs="{results}/simulate/revision2/e2.parquet",
        numbers="{results}/numbers/sweep_revision2_alphas.json",
    log:
        "{results}/logs/sweep_revision2_alphas.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        alphas=setting("revision2", "alphas"),
    message:
        "Revision 2, e2: alpha {params.alphas}"
    script:
        "../scripts/sweep_revision2_alphas.py"


rule sweep_revision2_workloads:
    """Revision 2, e3: zipf, scan and loop. Evidence: Simulated (provisional)."""
    input:
        code=code_of("sweep_revision2_workloads"),
        shards=shards_of("sweep_revision2_workloads"),
    output:
        runs="{results}/simulate/revision2/e3.parquet",
        numbers="{results}/numbers/sweep_revision2_workloads.json",
    log:
        "{results}/logs/sweep_revision2_workloads.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        seeds=setting("revision2", "workload_seeds"),
    message:
        "Revision 2, e3: three workloads, seeds {params.seeds}"
    script:
        "../scripts/sweep_revision2_workloads.py"


rule compare_revision2_variants:
    """Revision 2, e4 to e6: warm-up, persistent state, overlap with decode. Evidence: Simulated (provisional)."""
    input:
        code=code_of("compare_revision2_variants"),
        shards=shards_of("compare_revision2_variants"),
    output:
        runs="{results}/simulate/revision2/e4_e5_e6.parquet",
        numbers="{results}/numbers/compare_revision2_variants.json",
    log:
        "{results}/logs/compare_revision2_variants.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
    message:
        "Revision 2, e4 to e6: warm-up, persistence, overlap"
    script:
        "../scripts/compare_revision2_variants.py"


rule sweep_revision2_alpha_grid:
    """Revision 2: alpha against budget, seed and persistence. Evidence: Simulated (provisional)."""
    input:
        code=code_of("sweep_revision2_alpha_grid"),
        shards=shards_of("sweep_revision2_alpha_grid"),
    output:
        runs="{results}/simulate/revision2/alpha_grid.parquet",
        numbers="{results}/numbers/sweep_revision2_alpha_grid.json",
    log:
        "{results}/logs/sweep_revision2_alpha_grid.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        alphas=setting("revision2", "grid_alphas"),
        budgets_gib=setting("revision2", "grid_budgets_gib"),
        seeds=setting("revision2", "grid_seeds"),
    message:
        "Revision 2, alpha grid: {params.alphas} at {params.budgets_gib} GiB, seeds {params.seeds}"
    script:
        "../scripts/sweep_revision2_alpha_grid.py"


rule renumber_revision2_sessions:
    """Revision 2: the same turns under other session numbers, which decide ties (D16). Evidence: Simulated (provisional)."""
    input:
        code=code_of("renumber_revision2_sessions"),
    output:
        hits="{results}/simulate/revision2/renumbered.csv",
        numbers="{results}/numbers/renumber_revision2_sessions.json",
    log:
        "{results}/logs/renumber_revision2_sessions.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        renumberings=setting("revision2", "renumberings"),
    message:
        "Revision 2: {params.renumberings} renumberings of the sessions"
    script:
        "../scripts/renumber_revision2_sessions.py"


rule write_revision2_records:
    """Revision 2 outputs in the published schemas. Evidence: Simulated (provisional)."""
    input:
        code=code_of("write_revision2_records"),
        runs=[
            rules.sweep_revision2_budgets.output.runs,
            rules.sweep_revision2_alphas.output.runs,
            rules.sweep_revision2_workloads.output.runs,
            rules.compare_revision2_variants.output.runs,
        ],
        alpha_grid=rules.sweep_revision2_alpha_grid.output.runs,
    output:
        records="{results}/data/results_v2.json",
        alpha_grid="{results}/data/alpha_grid.json",
    log:
        "{results}/logs/write_revision2_records.log",
    message:
        "Revision 2: records as published"
    script:
        "../scripts/write_revision2_records.py"


rule sweep_revision3_budgets:
    """Revision 3, e1: hit rate against HBM budget, with kept state and the optimum. Evidence: Simulated (provisional)."""
    input:
        code=code_of("sweep_revision3_budgets"),
        shards=shards_of("sweep_revision3_budgets"),
    output:
        runs="{results}/simulate/revision3/e1.parquet",
        numbers="{results}/numbers/sweep_revision3_budgets.json",
    log:
        "{results}/logs/sweep_revision3_budgets.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        budgets_gib=setting("revision3", "budgets_gib"),
        seeds=setting("revision3", "seeds"),
    message:
        "Revision 3, e1: {params.budgets_gib} GiB, {params.seeds}"
    script:
        "../scripts/sweep_revision3_budgets.py"


rule sweep_revision3_alphas:
    """Revision 3, e2: hit rate against alpha, budget and persistence. Evidence: Simulated (provisional)."""
    input:
        code=code_of("sweep_revision3_alphas"),
        shards=shards_of("sweep_revision3_alphas"),
    output:
        runs="{results}/simulate/revision3/e2.parquet",
        numbers="{results}/numbers/sweep_revision3_alphas.json",
    log:
        "{results}/logs/sweep_revision3_alphas.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        alphas=setting("revision3", "alphas"),
        budgets_gib=setting("revision3", "budgets_gib"),
        seeds=setting("revision3", "seeds"),
    message:
        "Revision 3, e2: alpha {params.alphas} at {params.budgets_gib} GiB"
    script:
        "../scripts/sweep_revision3_alphas.py"


rule sweep_revision3_workloads:
    """Revision 3, e3: zipf, scan and loop. Evidence: Simulated (provisional)."""
    input:
        code=code_of("sweep_revision3_workloads"),
        shards=shards_of("sweep_revision3_workloads"),
    output:
        runs="{results}/simulate/revision3/e3.parquet",
        numbers="{results}/numbers/sweep_revision3_workloads.json",
    log:
        "{results}/logs/sweep_revision3_workloads.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        seeds=setting("revision3", "seeds"),
    message:
        "Revision 3, e3: three workloads"
    script:
        "../scripts/sweep_revision3_workloads.py"


rule compare_revision3_variants:
    """Revision 3, e4 to e6: warm-up, persistent state, overlap with decode. Evidence: Simulated (provisional)."""
    input:
        code=code_of("compare_revision3_variants"),
        shards=shards_of("compare_revision3_variants"),
    output:
        runs="{results}/simulate/revision3/e4_e5_e6.parquet",
        numbers="{results}/numbers/compare_revision3_variants.json",
    log:
        "{results}/logs/compare_revision3_variants.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        seeds=setting("revision3", "seeds"),
    message:
        "Revision 3, e4 to e6: warm-up, persistence, overlap"
    script:
        "../scripts/compare_revision3_variants.py"


rule time_revision3:
    """Revision 3 in time: stall, first token, link load, prefetch rules, traffic of the tiers. Evidence: Simulated (provisional)."""
    input:
        code=code_of("time_revision3"),
    output:
        times="{results}/simulate/revision3/time.parquet",
        prefetches="{results}/simulate/revision3/prefetch.parquet",
        traffic="{results}/simulate/revision3/traffic.parquet",
        residence="{results}/simulate/revision3/residence.parquet",
        numbers="{results}/numbers/time_revision3.json",
    log:
        "{results}/logs/time_revision3.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        seeds=setting("revision3", "timed_seeds"),
        bandwidths_gbps=setting("revision3", "bandwidths_gbps"),
        load=setting("revision3", "load"),
    message:
        "Revision 3 in time: {params.bandwidths_gbps} GB/s, load {params.load}, seeds {params.seeds}"
    script:
        "../scripts/time_revision3.py"


rule ablate_revision3:
    """Revision 3: six mechanisms on and off, effects, Shapley shares, additivity. Evidence: Simulated (provisional)."""
    input:
        code=code_of("ablate_revision3"),
    output:
        cells="{results}/simulate/revision3/ablation.parquet",
        numbers="{results}/numbers/ablate_revision3.json",
    log:
        "{results}/logs/ablate_revision3.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        seeds=setting("revision3", "ablation_seeds"),
        alphas=setting("revision3", "ablation_alphas"),
    message:
        "Revision 3, ablation: 64 cells, seeds {params.seeds}"
    script:
        "../scripts/ablate_revision3.py"


rule calibrate_revision3:
    """Revision 3: weights of the published priority, fitted and tested apart. Evidence: Simulated (provisional)."""
    input:
        code=code_of("calibrate_revision3"),
    output:
        fit="{results}/simulate/revision3/calibration_fit.parquet",
        chosen="{results}/simulate/revision3/calibration.parquet",
        numbers="{results}/numbers/calibrate_revision3.json",
    log:
        "{results}/logs/calibrate_revision3.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        budgets_gib=setting("revision3", "calibration_budgets_gib"),
        alphas=setting("revision3", "calibration_alphas"),
        cuts=setting("revision3", "calibration_cuts"),
        fit_seeds=setting("revision3", "calibration_fit_seeds"),
        test_seeds=setting("revision3", "calibration_test_seeds"),
    message:
        "Revision 3, calibration: {params.budgets_gib} GiB, fitted on seeds {params.fit_seeds}"
    script:
        "../scripts/calibrate_revision3.py"


rule sweep_revision3_policies:
    """Revision 3: the policy family, with look-ahead and the optimum, state by session. Evidence: Simulated (provisional)."""
    input:
        # No shards: its table has other columns than those that shards are made of.
        code=code_of("sweep_revision3_policies"),
    output:
        runs="{results}/simulate/revision3/policies.parquet",
        numbers="{results}/numbers/sweep_revision3_policies.json",
    log:
        "{results}/logs/sweep_revision3_policies.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        windows_turns=setting("revision3", "windows_turns"),
        budgets_gib=setting("revision3", "family_budgets_gib"),
        seeds=setting("revision3", "seeds"),
    message:
        "Revision 3, policy family: {params.budgets_gib} GiB"
    script:
        "../scripts/sweep_revision3_policies.py"


rule compare_revision3_options:
    """Revision 3: order inside a session, sequences in flight, chunked reading. Evidence: Simulated (provisional)."""
    input:
        code=code_of("compare_revision3_options"),
    output:
        runs="{results}/simulate/revision3/options.parquet",
        numbers="{results}/numbers/compare_revision3_options.json",
    log:
        "{results}/logs/compare_revision3_options.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        in_flight=setting("revision3", "option_in_flight"),
        floors_blocks=setting("revision3", "option_floors_blocks"),
        seeds=setting("revision3", "seeds"),
    message:
        "Revision 3, options: {params.in_flight} in flight, floors of {params.floors_blocks} blocks"
    script:
        "../scripts/compare_revision3_options.py"


rule sweep_revision3_sensitivity:
    """Revision 3: other workloads, one size changed at a time. Evidence: Simulated (provisional)."""
    input:
        code=code_of("sweep_revision3_sensitivity"),
    output:
        runs="{results}/simulate/revision3/sensitivity.parquet",
        numbers="{results}/numbers/sweep_revision3_sensitivity.json",
    log:
        "{results}/logs/sweep_revision3_sensitivity.log",
    params:
        sessions=setting("workload", "sessions"),
        turns=setting("workload", "turns"),
        counted_from=setting("workload", "counted_from"),
        seeds=setting("revision3", "seeds"),
    message:
        "Revision 3, sensitivity to the workload"
    script:
        "../scripts/sweep_revision3_sensitivity.py"
