"""Tables as declared, and every published value as a number with label, status and definition."""

import pytest

from kvtier.analytic.numbers import attention, capacity, scoring, tiers
from kvtier.analytic.tables import attention as attention_tables
from kvtier.analytic.tables import capacity as capacity_tables
from kvtier.analytic.tables import scoring as scoring_tables
from kvtier.analytic.tables import tiers as tiers_tables
from kvtier.evidence.labels import Label, Status

CONTEXTS = [4096, 8192, 32_768, 131_072, 1_048_576]
USERS = [1, 2, 4, 8, 16]
DISTANCES = [0, 100, 10_000]
ALPHAS = [0.15, 0.01]


@pytest.fixture(scope="module")
def ledger(models, llama, platform):
    found = [
        *capacity.numbers(models, llama, platform, capacity_tables.build(models, llama, platform, CONTEXTS, USERS)),
        *tiers.numbers(llama, platform, tiers_tables.build(llama, platform)),
        *attention.numbers(llama, platform, attention_tables.build(models, llama, platform, DISTANCES)),
        *scoring.numbers(platform, scoring_tables.build(platform, ALPHAS)),
    ]
    assert len({number.key for number in found}) == len(found)
    return {number.key: number for number in found}


@pytest.mark.parametrize(
    ("key", "display"),
    [
        ("kv.llama3_70b.bytes_per_token", "327,680"),
        ("kv.llama3_70b.kib_per_token", "320"),
        ("kv.llama3_70b.block_mib", "5.00"),
        ("kv.qwen2_5_7b.kib_per_token", "56"),
        ("kv.llama1_65b.kib_per_token", "2,560"),
        ("kv.llama3_70b_fp8.kib_per_token", "160"),
        ("kv.llama3_8b.kib_per_token", "128"),
        ("kv.llama3_70b.8k.gib", "2.50"),
        ("kv.llama3_70b.128k.gib", "40.00"),
        ("kv.llama3_70b.4k.gb", "1.3"),
        ("kv.llama3_70b.1m.gb", "343.6"),
        ("weights.llama3_70b.gb", "140.0"),
        ("weights.qwen2_5_7b.gib", "14.16"),
        ("crossover.llama3_70b.tokens", "427,246"),
        ("hbm.kv_gb", "47"),
        ("users.1.free_gb", "4"),
        ("users.8.total_gb", "489"),
        ("users.8.over_hbm", "2.5"),
        ("users.16.kv_gb", "687"),
        ("users.16.cxl_percent", "67"),
        ("concurrency.as_weights.8k.whole", "52"),
        ("concurrency.node.8k.whole", "67"),
        ("concurrency.node.128k.whole", "4"),
        ("concurrency.hbm_and_cxl.128k.whole", "28"),
        ("concurrency.hbm_kv_region_and_cxl.128k.whole", "24"),
        ("node.kv_gib", "169.6"),
        ("expansion.ratio", "6.3"),
        ("tier.t2.capacity_gb", "1,024"),
        ("tier.t3.capacity_gb", "16,000"),
        ("tier.t2.links_for_high_bandwidth", "1.89"),
        ("transfer.32gbps.us", "164"),
        ("transfer.64gbps.us", "82"),
        ("transfer.121gbps.us", "43"),
        ("regeneration.mfu25.ms", "18"),
        ("regeneration.mfu40.ms", "11"),
        ("regeneration.mfu50.ms", "9"),
        ("regeneration.simulator_mfu", "25"),
        ("regenerate_over_move.from_printed_times", "218"),
        ("regenerate_over_move.mfu25.64gbps", "219"),
        ("regenerate_over_move.min", "55"),
        ("regenerate_over_move.max", "414"),
        ("decode.strawman_tbps", "3.66"),
        ("decode.hbm_ms", "22.9"),
        ("layer.query_width", "8,192"),
        ("layer.kv_width", "1,024"),
        ("layer.kv_kib_per_token", "4"),
        ("layer.attention_parameters", "151"),
        ("layer.ffn_parameters", "705"),
        ("layer.all_layers_parameters", "68.5"),
        ("phase.prefill.8k.tflop", "1,235"),
        ("phase.prefill.8k.moved_gb", "142.7"),
        ("phase.prefill.8k.flop_per_byte", "8,654"),
        ("phase.decode.8k.moved_gb", "142.7"),
        ("phase.decode.8k.flop_per_byte", "1.1"),
        ("phase.decode.128k.flop_per_byte", "2.6"),
        ("phase.weights.flop_per_byte", "1"),
        ("phase.kv.flop_per_byte", "8"),
        ("phase.balance.flop_per_byte", "62"),
        ("prefetch.32gbps.gb", "0.96"),
        ("prefetch.121gbps.gb", "3.63"),
        ("prefetch.32gbps.positions", "2,929.7"),
        ("prefetch.121gbps.whole_positions", "11,077"),
        ("gqa.score_streams", "640"),
        ("gqa.blocks", "8,192"),
        ("gqa.state_kib", "512"),
        ("gqa.state_percent", "0.0012"),
        ("gqa.reserved_bytes_per_block", "28"),
        ("gqa.retracted_state_mib", "640"),
        ("gqa.block_7993.last_position", "127,903"),
        ("rope.base10000.theta_32", "0.010"),
        ("rope.base500000.theta_0", "1.0"),
        ("rope.base.llama3_70b", "500,000"),
        ("rope.base10000.turn_0", "6.3"),
        ("rope.base10000.turn_63", "54,410"),
        ("rope.base500000.turn_63", "2,559,196"),
        ("rope.base10000.slow_pairs", "0"),
        ("rope.base500000.slow_pairs", "15"),
        ("attention.first.over_uniform", "0.50"),
        ("attention.middle.over_uniform", "0.19"),
        ("attention.last.over_uniform", "8.0"),
        ("softmax.capital.percent", "38"),
        ("softmax.capital.exponential", "2.39"),
        ("softmax.exponential_sum", "6.34"),
        ("softmax.score_sum", "1.67"),
        ("ema.alpha005.half_life_steps", "13.5"),
        ("ema.alpha005.half_life_s", "1.35"),
        ("ema.example.hot.alpha02.step1", "0.0124"),
        ("ema.example.cold.alpha005.step0", "0.000050"),
        ("ema.attention.hot.step2", "0.050"),
        ("priority.weight_ema", "0.55"),
        ("block.tokens", "16"),
        ("model.llama3_70b.layers", "80"),
        ("model.qwen2_5_7b.kv_heads", "4"),
        ("model.llama3_70b_fp8.bytes_per_element", "1"),
        ("model.llama3_70b.parameters", "70,000,000,000"),
        ("regeneration.mfu25.percent", "25"),
        ("decode.rate", "10"),
    ],
)
def test_number_as_printed(ledger, key, display):
    assert ledger[f"analytic.{key}"].display == display


def test_examples_and_constants_are_illustrative(ledger):
    shown = (
        "analytic.softmax.",
        "analytic.attention.",
        "analytic.ema.example.",
        "analytic.priority.",
        "analytic.gqa.block_",
        "analytic.gqa.retracted_",
    )
    assert {number.label for key, number in ledger.items() if key.startswith(shown)} == {Label.ILLUSTRATIVE}


def test_nothing_here_claims_to_be_measured_or_simulated(ledger):
    assert not {Label.MEASURED, Label.SIMULATED} & {number.label for number in ledger.values()}


def test_an_assumed_bandwidth_is_called_assumed(ledger):
    for key, number in ledger.items():
        if key.startswith(("analytic.transfer.", "analytic.tier.t2.bandwidth")):
            assert "assumed" in number.definition


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("hbm.capacity_gb", Label.VENDOR),
        ("hbm.weights_gb", Label.VENDOR),
        ("hbm.pinned_gb", Label.TARGET),
        ("hbm.kv_gb", Label.ANALYTICAL),
        ("weights.llama3_70b.gb", Label.VENDOR),
        ("weights.llama2_70b.gb", Label.LITERATURE),
        ("weights.llama3_70b.gib", Label.ANALYTICAL),
        ("kv.llama1_65b.bytes_per_token", Label.ANALYTICAL),
        ("tier.t0.capacity_gb", Label.TARGET),
        ("tier.t2.capacity_gb", Label.ANALYTICAL),
        ("tier.cxl_link_gbps", Label.VENDOR),
        ("decode.budget_ms", Label.TARGET),
        ("decode.strawman_tbps", Label.ANALYTICAL),
        ("rope.base10000.theta_32", Label.ANALYTICAL),
        ("rope.base.llama3_70b", Label.VENDOR),
    ],
)
def test_restated_keeps_its_label_and_computed_is_analytical(ledger, key, label):
    assert ledger[f"analytic.{key}"].label is label


def test_standing_follows_from_the_inputs(ledger):
    assumed = (
        "analytic.transfer.",
        "analytic.regenerat",
        "analytic.prefetch.",
        "analytic.attention.",
        "analytic.priority.",
        "analytic.phase.balance.",
        "analytic.tier.t2.bandwidth",
        "analytic.tier.t2.links",
        "analytic.tier.hbm_over_cxl",
    )
    for key, number in ledger.items():
        if "retracted" in key:
            expected = Status.RETRACTED
        elif key == "analytic.regeneration.block_tflop":
            expected = Status.STANDS
        else:
            expected = Status.ASSUMPTION if key.startswith(assumed) or key.endswith("latency_ns") else Status.STANDS
        assert number.status is expected, key


def test_whole_contexts_say_how_they_are_rounded(ledger):
    for key, number in ledger.items():
        if key.startswith("analytic.concurrency.") and key.endswith(".whole"):
            exact = ledger[key.removesuffix("whole") + "exact"]
            assert number.value == int(exact.value)
            assert f"= {exact.value:.6g}, rounded down" in number.definition


def test_half_lives_are_of_decode_steps_and_not_of_turns(ledger):
    for key, number in ledger.items():
        if ".half_life_" in key:
            assert "decode steps" in number.definition
            assert "does not apply to the simulators, whose step is a turn" in number.definition


def test_the_high_end_needs_more_links_than_one(ledger):
    number = ledger["analytic.tier.t2.links_for_high_bandwidth"]
    assert number.value == 121 / 64
    assert "no single link" in number.definition


def test_a_shorter_sweep_only_makes_fewer_numbers(models, llama, platform, ledger):
    short = capacity.numbers(models, llama, platform, capacity_tables.build(models, llama, platform, [8192], [1]))
    assert {number.key for number in short} < set(ledger)


def test_tables_are_the_declared_ones(models, llama, platform):
    built = {
        capacity_tables: capacity_tables.build(models, llama, platform, CONTEXTS, USERS),
        tiers_tables: tiers_tables.build(llama, platform),
        attention_tables: attention_tables.build(models, llama, platform, DISTANCES),
        scoring_tables: scoring_tables.build(platform, ALPHAS),
    }
    for module, frames in built.items():
        for name, frame in frames.items():
            assert dict(frame.schema) == getattr(module, name.upper()).columns


def test_shape_gives_the_kv_of_a_token(ledger, models):
    for key, model in models.items():
        layers, heads, elements, size = (
            ledger[f"analytic.model.{key}.{field}"].value for field in ("layers", "kv_heads", "head_dim", "bytes_per_element")
        )
        assert 2 * layers * heads * elements * size == ledger[f"analytic.kv.{key}.bytes_per_token"].value == model.kv_bytes_per_token


def test_what_a_model_does_not_state_has_no_number(ledger):
    assert "analytic.model.llama3_8b.layers" in ledger
    assert "analytic.model.llama3_8b.parameters" not in ledger


def test_models_without_weights_have_no_crossover(models):
    frame = capacity_tables.by_context(models, [8192], 16)
    assert frame.height == len(models)
    without = frame.filter(frame["crossover_tokens"].is_null())["model"].to_list()
    assert without == ["llama1_65b", "llama3_70b_fp8", "llama3_8b"]


@pytest.mark.parametrize(("tokens", "name"), [(8192, "8k"), (1_048_576, "1m"), (1_572_864, "1536k"), (10_000, "10000")])
def test_context_names(tokens, name):
    assert capacity.context_name(tokens) == name
