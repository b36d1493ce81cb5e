"""Capacity: arithmetic over stated inputs, from the bytes of a token to what fits into HBM and the tiers below."""


rule tabulate_capacity:
    """KV bytes by model and context, HBM plan, users and contexts that fit.

    Evidence: Analytical model; an input that is repeated keeps its own class.
    """
    input:
        code=code_of("tabulate_capacity"),
        models="data/inputs/models.csv",
        platform="data/inputs/platform.yaml",
    output:
        capacity="{results}/analytic/capacity.csv",
        hbm_partition="{results}/analytic/hbm_partition.csv",
        users="{results}/analytic/users.csv",
        concurrency="{results}/analytic/concurrency.csv",
        numbers="{results}/numbers/tabulate_capacity.json",
    log:
        "{results}/logs/tabulate_capacity.log",
    params:
        context_tokens=setting("analytic", "context_tokens"),
        users=setting("analytic", "users"),
    message:
        "Capacity: contexts {params.context_tokens}, users {params.users}"
    script:
        "../scripts/tabulate_capacity.py"


rule tabulate_tiers:
    """Tiers, block transfer, regeneration and prefetch window.

    Evidence: Analytical model over assumed bandwidths; an input that is repeated keeps its own class.
    """
    input:
        code=code_of("tabulate_tiers"),
        models="data/inputs/models.csv",
        platform="data/inputs/platform.yaml",
    output:
        tiers="{results}/analytic/tiers.csv",
        transfer="{results}/analytic/transfer.csv",
        regeneration="{results}/analytic/regeneration.csv",
        prefetch_window="{results}/analytic/prefetch_window.csv",
        numbers="{results}/numbers/tabulate_tiers.json",
    log:
        "{results}/logs/tabulate_tiers.log",
    message:
        "Tiers: moving a block against computing it again"
    script:
        "../scripts/tabulate_tiers.py"


rule tabulate_attention:
    """Score streams, block state, rotary phases. Evidence: Analytical model; example scores and attention shares Illustrative."""
    input:
        code=code_of("tabulate_attention"),
        models="data/inputs/models.csv",
        platform="data/inputs/platform.yaml",
    output:
        gqa_state="{results}/analytic/gqa_state.csv",
        gqa_blocks="{results}/analytic/gqa_blocks.csv",
        rope_frequencies="{results}/analytic/rope_frequencies.csv",
        rope="{results}/analytic/rope.csv",
        rope_curve="{results}/analytic/rope_curve.csv",
        attention_density="{results}/analytic/attention_density.csv",
        softmax="{results}/analytic/softmax.csv",
        numbers="{results}/numbers/tabulate_attention.json",
    log:
        "{results}/logs/tabulate_attention.log",
    params:
        distance_tokens=setting("analytic", "distance_tokens"),
    message:
        "Attention: score streams, block state, rotary envelope at {params.distance_tokens} tokens"
    script:
        "../scripts/tabulate_attention.py"


rule tabulate_scoring:
    """Half-life by alpha, example scores, placement. Evidence: half-life Analytical model, all else Illustrative."""
    input:
        code=code_of("tabulate_scoring"),
        platform="data/inputs/platform.yaml",
    output:
        ema_half_life="{results}/analytic/ema_half_life.csv",
        ema_example="{results}/analytic/ema_example.csv",
        placement="{results}/analytic/placement.csv",
        numbers="{results}/numbers/tabulate_scoring.json",
    log:
        "{results}/logs/tabulate_scoring.log",
    params:
        ema_alpha=setting("analytic", "ema_alpha"),
    message:
        "Scoring: half-life at alpha {params.ema_alpha}"
    script:
        "../scripts/tabulate_scoring.py"


rule tabulate_models:
    """KV of the models in the catalogue, window-aware and paged, and on the ranks of tensor parallelism. Evidence: Analytical model."""
    input:
        code=code_of("tabulate_models"),
        catalogue="data/inputs/catalogue.yaml",
    output:
        size="{results}/analytic/size.csv",
        numbers="{results}/numbers/tabulate_models.json",
    log:
        "{results}/logs/tabulate_models.log",
    params:
        context_tokens=[8192, 32768, 131072],
        ranks=8,
    message:
        "Models: KV at {params.context_tokens} tokens"
    script:
        "../scripts/tabulate_models.py"
