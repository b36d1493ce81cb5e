"""KV sizes that people asked about, with the right values: by the catalogue or by a shape that the case states."""

from fractions import Fraction

import pytest

from kvtier.analytic import devices, model_configs
from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.footprint import Footprint
from kvtier.analytic.kv_formats import FORMATS, Format
from kvtier.analytic.layouts import Kind, LayerGroup, Layout
from kvtier.units import GIB, MIB, TB

BF16, FP8 = FORMATS["bf16"], FORMATS["fp8"]


@pytest.fixture(scope="module")
def of():
    catalogue = Catalogue()
    return lambda name, stored=BF16, tp=1: Footprint(catalogue.find(name), stored, tp)


TOKENS = [
    ("K1", "Llama-3.1-8B", 131_072),
    ("K1", "Mistral-7B-v0.2", 131_072),
    ("K1", "Mistral-7B-v0.3", 131_072),
    ("K1", "Mixtral-8x7B", 131_072),
    ("K2", "Llama-3-70B", 327_680),
    ("K2", "Qwen2.5-72B", 327_680),
    ("K4", "Llama-2-7B", 524_288),
    ("K5", "Qwen2.5-7B", 57_344),
    ("K7", "Qwen3-4B", 147_456),
    ("K7", "Qwen3-8B", 147_456),
    ("K8", "Qwen3-14B", 163_840),
    ("K8", "Qwen3-0.6B", 114_688),
    ("K8", "Qwen3-1.7B", 114_688),
    ("K9", "Qwen3-30B-A3B", 98_304),
    ("K10", "Qwen3-235B-A22B", 192_512),
    ("K10", "Qwen3-Coder-480B", 253_952),
    ("K11", "DeepSeek-V3", 70_272),
    ("K11", "DeepSeek-R1", 70_272),
    ("K12", "DeepSeek-V2", 69_120),
    ("K12", "DeepSeek-V2-Lite", 31_104),
    ("K17", "gpt-oss-120b", 73_728),
    ("K24", "Phi-3-mini", 393_216),
    ("K24", "Phi-3-medium", 204_800),
    ("K24", "Phi-4", 204_800),
    ("K25", "Falcon-7B", 8_192),
    ("K25", "Qwen2.5-0.5B", 12_288),
]


@pytest.mark.parametrize(("case", "model", "expected"), TOKENS)
def test_bytes_of_a_token(of, case, model, expected):
    assert of(model).bytes_per_token == expected


def gib(size):
    return size / GIB


def test_k1_contexts_of_128000_and_128k(of):
    llama = of("Llama-3.1-8B")
    assert gib(llama.sequence_bytes(128_000)) == 15.625
    assert gib(llama.sequence_bytes(131_072)) == 16


def test_k2_long_context_and_three_million_tokens(of):
    llama = of("Llama-3-70B")
    assert gib(llama.sequence_bytes(131_072)) == 40
    assert round(llama.sequence_bytes(3_000_000) / TB, 3) == 0.983


def test_k4_multi_head(of):
    llama = of("Llama-2-7B")
    assert llama.bytes_per_token == 512 * 1024
    assert round(gib(llama.sequence_bytes(10_000)), 2) == 4.88
    assert gib(llama.sequence_bytes(32_768)) == 16
    assert llama.sequence_bytes(32_768) == 32 * 512 * MIB


def test_k5_as_a_user_measured(of):
    assert round(gib(of("Qwen2.5-7B").sequence_bytes(3_072)), 3) == 0.164


def test_k7_hidden_over_heads_is_wrong(of):
    """Qwen3-4B: 2,560 / 32 = 80."""
    (group,) = of("Qwen3-4B").layout.groups
    assert group.head_dim == 128
    wrong = Layout("wrong", (LayerGroup(Kind.FULL, 36, 8, 80),))
    assert Footprint(wrong, BF16).bytes_per_token == 92_160


def test_k8_fp8_doubles_the_tokens(of):
    bf16, fp8 = of("Qwen3-0.6B"), of("Qwen3-0.6B", FP8)
    memory = bf16.sequence_bytes(27_142)
    assert round(gib(memory), 2) == 2.90
    assert memory // fp8.bytes_per_token == 54_284


@pytest.mark.parametrize(("memory_gib", "tokens"), [(2, 21_845), (16, 174_762), (48, 524_288)])
def test_k9_tokens_that_a_memory_holds(of, memory_gib, tokens):
    assert memory_gib * GIB // of("Qwen3-30B-A3B").bytes_per_token == tokens


def test_k11_latent_is_stored_once_and_with_its_rotary_key(of):
    (group,) = of("DeepSeek-V3").layout.groups
    assert 2 * 61 * 512 * 2 == 124_928 != of("DeepSeek-V3").bytes_per_token
    heads = Layout("naive", (LayerGroup(Kind.FULL, 61, 128, group.head_dim, group.value_dim),))
    assert Footprint(heads, BF16).bytes_per_token == 4_997_120


def test_k12_one_layer_at_four_bits():
    layer = Layout("one layer", (LayerGroup(Kind.LATENT, 1, latent_dim=512, rope_dim=64),))
    assert Footprint(layer, Format("4 bits", 4)).sequence_bytes(65_536) == 18 * MIB


def test_k14_latent_is_replicated(of):
    dealt = of("DeepSeek-V3", tp=8)
    assert (dealt.bytes_per_token, dealt.bytes_per_token_in_all) == (70_272, 562_176)


def test_k16_four_ranks_hold_four_times_the_blocks(of):
    alone, dealt = of("Qwen3-32B"), of("Qwen3-32B", tp=4)
    assert dealt.bytes_per_token * 4 == alone.bytes_per_token
    memory = 20 * GIB
    blocks = [devices.fit(each, memory, 0, 8192, utilization=Fraction(1)).blocks for each in (alone, dealt)]
    assert blocks == [5_120, 20_480]


def test_k17_sliding_layers_stay_in_unified_pages(of):
    paged = of("gpt-oss-120b")
    assert paged.slope_bytes == 36_864
    assert round(5.38 * GIB / paged.bytes_per_token, -1) == 78_350
    assert abs(gib(paged.paged_bytes(78_350)) - 5.38) < 0.001


def test_k18_both_figures(of):
    found = of("gpt-oss-20b")
    assert round(gib(32 * found.sequence_bytes(8_192)), 2) == 6.09
    assert gib(32 * found.paged_bytes(8_192)) == 12


@pytest.mark.parametrize(("model", "full", "aware"), [("Gemma-2-9B", 2.625, 1.969), ("Gemma-2-27B", 2.875, 2.156)])
def test_k20_half_the_layers_slide(of, model, full, aware):
    found = of(model)
    assert gib(found.paged_bytes(8_192)) == full
    assert round(gib(found.sequence_bytes(8_192)), 3) == aware


def test_k21_all_layers_slide(of):
    found = of("Mistral-7B-v0.1")
    assert gib(found.paged_bytes(32_768)) == 4
    assert gib(found.sequence_bytes(32_768)) == 0.5
    assert not of("Mistral-7B-v0.2").layout.windowed
    assert not of("Mistral-7B-v0.3").layout.windowed


def test_k22_a_window_that_is_not_used_is_ignored(of):
    fields = {
        "model_type": "qwen2",
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "sliding_window": 131072,
        "use_sliding_window": False,
        "max_window_layers": 28,
    }
    read = model_configs.of_fields(fields)
    assert not read.windowed
    assert Footprint(read, BF16).bytes_per_token == of("Qwen2.5-7B").bytes_per_token
    assert read.notes == ("sliding_window is ignored: use_sliding_window is false",)


def test_k29_blocks_of_a_log(of):
    found = of("Llama-3.1-8B")
    assert 2_588 * 16 == 41_408
    assert round(gib(2_588 * found.block_bytes(16)), 2) == 5.05
    assert 2_588 * found.block_bytes(16) == found.sequence_bytes(41_408)
