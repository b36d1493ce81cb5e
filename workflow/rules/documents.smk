"""Documents from templates, and the published copy: what is tracked, whether it is what the build makes, and its renewal."""

# Published file and where the build makes it, in the order of the DAG.
PUBLISHED = {
    "data/sweep_rev1_superseded.json": rules.retain_revision1_records.output.sweep,
    "data/cxl_sweep.json": rules.retain_revision1_records.output.cxl_sweep,
    "data/results_v2.json": rules.retain_revision2_records.output.records,
    "data/alpha_grid.json": rules.retain_revision2_records.output.alpha_grid,
    "data/numbers.json": rules.collect_numbers.output.ledger,
}
