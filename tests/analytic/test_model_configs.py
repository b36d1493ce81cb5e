"""Configurations as published, of each model type: read to the layout that the catalogue has; and what is refused."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.analytic import model_configs
from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.footprint import Footprint
from kvtier.analytic.kv_formats import FORMATS
from kvtier.analytic.layouts import Kind
from kvtier.errors import InputError

CATALOGUE = Catalogue()
GQA = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}


def shape(layers, heads, kv_heads, hidden, **more):
    return {"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "hidden_size": hidden} | more


SLIDES = ["sliding_attention", "full_attention"]
READ = [
    ("Llama-3.1-8B", {"model_type": "llama", **GQA}),
    ("Llama-2-7B", {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}),
    ("Llama-3.2-3B", {"model_type": "llama", **shape(28, 24, 8, 3072, head_dim=128)}),
    ("Mistral-7B-v0.1", {"model_type": "mistral", **GQA, "sliding_window": 4096}),
    ("Mistral-7B-v0.2", {"model_type": "mistral", **GQA, "sliding_window": None}),
    ("Mistral-Nemo-12B", {"model_type": "mistral", **shape(40, 32, 8, 5120, head_dim=128, sliding_window=None)}),
    (
        "Mistral-Small-24B",
        {"model_type": "mistral3", "text_config": {"model_type": "mistral", **shape(40, 32, 8, 5120, head_dim=128, sliding_window=None)}},
    ),
    ("Mixtral-8x7B", {"model_type": "mixtral", **GQA, "sliding_window": None}),
    (
        "Qwen2.5-7B",
        {"model_type": "qwen2", **shape(28, 28, 4, 3584, sliding_window=131072, use_sliding_window=False, max_window_layers=28)},
    ),
    ("Qwen2.5-7B", {"model_type": "qwen2", **shape(28, 28, 4, 3584, sliding_window=131072, use_sliding_window=True, max_window_layers=28)}),
    ("Qwen3-4B", {"model_type": "qwen3", **shape(36, 32, 8, 2560, head_dim=128)}),
    ("Qwen3-30B-A3B", {"model_type": "qwen3_moe", **shape(48, 32, 4, 2048, head_dim=128)}),
    (
        "Qwen3-Next-80B-A3B",
        {
            "model_type": "qwen3_next",
            **shape(48, 16, 2, 2048, head_dim=256, full_attention_interval=4),
            **{"linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128},
            "linear_conv_kernel_dim": 4,
        },
    ),
    (
        "Jamba-v0.1",
        {
            "model_type": "jamba",
            **shape(32, 32, 8, 4096, attn_layer_period=8, attn_layer_offset=4, mamba_expand=2, mamba_d_state=16, mamba_d_conv=4),
        },
    ),
    (
        "DeepSeek-V3",
        {
            "model_type": "deepseek_v3",
            **shape(61, 128, 128, 7168, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128),
        },
    ),
    (
        "DeepSeek-V2-Lite",
        {
            "model_type": "deepseek_v2",
            **shape(27, 16, 16, 2048, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128),
        },
    ),
    ("gpt-oss-20b", {"model_type": "gpt_oss", **shape(24, 64, 8, 2880, head_dim=64, sliding_window=128, layer_types=SLIDES * 12)}),
    ("gpt-oss-20b", {"model_type": "gpt_oss", **shape(24, 64, 8, 2880, head_dim=64, sliding_window=128)}),
    ("Gemma-7B", {"model_type": "gemma", **shape(28, 16, 16, 3072, head_dim=256)}),
    ("Gemma-2-9B", {"model_type": "gemma2", **shape(42, 16, 8, 3584, head_dim=256, sliding_window=4096)}),
    ("Gemma-3-4B", {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024}}),
    ("Gemma-3-1B", {"model_type": "gemma3_text", **shape(26, 4, 1, 1152, head_dim=256, sliding_window=512, sliding_window_pattern=6)}),
    ("Phi-2", {"model_type": "phi", **shape(32, 32, None, 2560)}),
    ("Phi-4", {"model_type": "phi3", **shape(40, 40, 10, 5120, sliding_window=None)}),
    ("Falcon-7B", {"model_type": "falcon", **shape(32, 71, None, 4544, multi_query=True, new_decoder_architecture=False)}),
    ("Falcon-40B", {"model_type": "falcon", **shape(60, 128, None, 8192, num_kv_heads=8, multi_query=True, new_decoder_architecture=True)}),
    ("StarCoder", {"model_type": "gpt_bigcode", "n_layer": 40, "n_head": 48, "n_embd": 6144, "multi_query": True}),
    ("StarCoder2-15B", {"model_type": "starcoder2", **shape(40, 48, 4, 6144, sliding_window=4096)}),
    ("Command-R7B", {"model_type": "cohere2", **shape(32, 32, 8, 4096, sliding_window=4096, sliding_window_pattern=4)}),
    ("Command-R", {"model_type": "cohere", **shape(40, 64, 64, 8192)}),
    ("GPT-2", {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768}),
    (
        "GLM-4-9B",
        {
            "model_type": "chatglm",
            "num_layers": 40,
            "num_attention_heads": 32,
            "kv_channels": 128,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
        },
    ),
    ("DBRX", {"model_type": "dbrx", "n_layers": 40, "n_heads": 48, "d_model": 6144, "attn_config": {"kv_n_heads": 8}}),
    (
        "Llama-4-Scout",
        {
            "model_type": "llama4",
            "text_config": {
                "model_type": "llama4_text",
                **shape(48, 40, 8, 5120, head_dim=128, attention_chunk_size=8192, no_rope_layers=[1, 1, 1, 0] * 12),
            },
        },
    ),
    ("Llama-4-Scout", {"model_type": "llama4_text", **shape(48, 40, 8, 5120, head_dim=128, attention_chunk_size=8192, no_rope_layers=[])}),
    (
        "Llama-3.2-11B-Vision",
        {
            "model_type": "mllama",
            "text_config": {
                "model_type": "mllama_text_model",
                **shape(40, 32, 8, 4096, cross_attention_layers=[3, 8, 13, 18, 23, 28, 33, 38]),
            },
        },
    ),
    ("Llama-3.1-8B", {"model_type": "brand_new", **shape(32, 32, 8, 9999, head_dim=128, sliding_window=None)}),
    ("gpt-oss-20b", {"model_type": "brand_new", **shape(24, 64, 8, 1, head_dim=64, sliding_window=128, layer_types=SLIDES * 12)}),
]


@pytest.mark.parametrize(("model", "fields"), READ, ids=[f"{model}-{fields['model_type']}" for model, fields in READ])
def test_read_as_the_catalogue_has_it(model, fields):
    found, listed = model_configs.of_fields(fields), CATALOGUE.find(model)
    assert sorted(found.groups, key=str) == sorted(listed.groups, key=str)
    assert found.query_heads == listed.query_heads


def test_a_window_that_is_used_counts_from_its_layer_on():
    fields = {"model_type": "qwen2", **shape(28, 28, 4, 3584, sliding_window=1024, use_sliding_window=True, max_window_layers=20)}
    assert [(group.kind, group.layers) for group in model_configs.of_fields(fields).groups] == [(Kind.FULL, 20), (Kind.SLIDING, 8)]


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({"model_type": "mixtral", **GQA}, [Kind.FULL]),
        ({"model_type": "mixtral", **GQA, "sliding_window": 4096}, [Kind.SLIDING]),
        ({"model_type": "phi3", **GQA, "sliding_window": 2047}, [Kind.SLIDING]),
        ({"model_type": "qwen3_moe", **GQA, "head_dim": 128, "use_sliding_window": True, "sliding_window": 4096}, [Kind.SLIDING]),
        ({"model_type": "qwen2_moe", **GQA, "use_sliding_window": False, "sliding_window": 4096}, [Kind.FULL]),
        ({"model_type": "qwen2", **GQA, "use_sliding_window": True, "sliding_window": 9, "layer_types": SLIDES * 16}, [*Kind][1::-1]),
        ({"model_type": "cohere2", **GQA, "sliding_window": 9, "layer_types": ["full_attention"] * 32}, [Kind.FULL]),
    ],
)
def test_a_window_counts_as_its_type_has_it(fields, kinds):
    assert [group.kind for group in model_configs.of_fields(fields).groups] == kinds


def test_a_window_that_the_type_does_not_have_is_ignored_aloud():
    assert model_configs.of_fields(LLAMA | {"sliding_window": 4096}).notes == (
        "sliding_window is ignored: layers of model type llama have none",
    )


def test_quantised_weights_are_not_guessed():
    found = model_configs.of_fields(LLAMA | {"quantization_config": {"quant_method": "awq", "bits": 4}})
    assert found.notes == ("weights are quantised (awq): state how with --weights-dtype",)
    assert found.parameters is None


def test_defaults_that_were_taken_are_named():
    found = model_configs.of_fields({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 34}})
    assert "num_key_value_heads 4" in found.notes[-1]
    assert "not counted" in found.notes[0]


def test_states_that_are_not_given_are_not_counted():
    found = model_configs.of_fields({"model_type": "jamba", **shape(32, 32, 8, 4096, attn_layer_period=8, attn_layer_offset=4)})
    assert found.not_counted


def without(fields, name):
    return {key: value for key, value in fields.items() if key != name}


LLAMA = {"model_type": "llama", **GQA}
DEEPSEEK = {"model_type": "deepseek_v3", **shape(61, 128, 128, 7168, kv_lora_rank=512, qk_rope_head_dim=64)}
OTHER = {"model_type": "brand_new", **GQA}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "file: found a list, expected a mapping"),
        ({}, "model_type: found nothing"),
        ({"model_type": 7}, "model_type: found 7"),
        (without(LLAMA, "num_hidden_layers"), "num_hidden_layers: found nothing"),
        (without(LLAMA, "hidden_size"), "hidden_size: found nothing"),
        (LLAMA | {"num_hidden_layers": 0}, "num_hidden_layers: found 0"),
        (LLAMA | {"num_hidden_layers": -1}, "num_hidden_layers: found -1"),
        (LLAMA | {"num_hidden_layers": 32.0}, r"num_hidden_layers: found 32\.0"),
        (LLAMA | {"num_hidden_layers": True}, "num_hidden_layers: found True"),
        (LLAMA | {"num_hidden_layers": "32"}, "num_hidden_layers: found '32'"),
        (LLAMA | {"num_key_value_heads": 10**40}, "num_key_value_heads: found 1000"),
        (LLAMA | {"num_key_value_heads": 5}, "query_heads: found 32, expected a multiple of the 5 KV heads"),
        (LLAMA | {"hidden_size": 4097}, "hidden_size: found 4097, expected a multiple of the 32 heads"),
        (LLAMA | {"is_encoder_decoder": True}, "is_encoder_decoder: found true"),
        ({"model_type": "mistral", **GQA}, "sliding_window: found nothing, expected a number of tokens, or null"),
        ({"model_type": "mistral", **GQA, "sliding_window": 0}, "sliding_window: found 0"),
        ({"model_type": "qwen3", **GQA}, "head_dim: found nothing"),
        ({"model_type": "qwen2", **GQA, "use_sliding_window": "no"}, "use_sliding_window: found 'no', expected true or false"),
        ({"model_type": "qwen2", **GQA, "use_sliding_window": True, "sliding_window": 9}, "max_window_layers: found nothing"),
        ({"model_type": "qwen2", **GQA, "sliding_window": 9, "layer_types": SLIDES * 16}, "layer_types: found sliding_attention"),
        ({"model_type": "gpt_oss", **GQA, "head_dim": 64, "sliding_window": 9, "layer_types": SLIDES}, "layer_types: found 2 entries"),
        ({"model_type": "gpt_oss", **GQA, "head_dim": 64, "sliding_window": 9, "layer_types": 3}, "layer_types: found 3"),
        ({"model_type": "gpt_oss", **GQA, "head_dim": 64, "sliding_window": 9, "layer_types": ["wide"] * 32}, "layer_types: found 'wide'"),
        ({"model_type": "gpt_oss", **GQA, "head_dim": 64, "sliding_window": None}, "sliding_window: found nothing, expected a number"),
        ({"model_type": "gpt_oss", **GQA, "head_dim": 64, "sliding_window": 9, "num_hidden_layers": 10**9}, "expected at most 65,536"),
        ({"model_type": "qwen2_moe", **GQA, "use_sliding_window": True, "sliding_window": 9}, "use_sliding_window: found true"),
        (without(DEEPSEEK, "kv_lora_rank"), "kv_lora_rank: found nothing"),
        (without(DEEPSEEK, "qk_rope_head_dim"), "qk_rope_head_dim: found nothing"),
        ({"model_type": "jamba", **GQA, "attn_layer_period": 8, "attn_layer_offset": 8}, "attn_layer_offset: found 8"),
        ({"model_type": "jamba", **GQA, "attn_layer_period": 8}, "attn_layer_offset: found None"),
        ({"model_type": "llama4_text", **GQA, "head_dim": 128}, "attention_chunk_size: found nothing"),
        ({"model_type": "llama4_text", **GQA, "head_dim": 128, "no_rope_layers": [1, 2]}, "no_rope_layers"),
        ({"model_type": "mllama_text_model", **GQA}, "cross_attention_layers: found None"),
        ({"model_type": "dbrx", **GQA}, "attn_config: found None"),
        (OTHER, r"model_type: found 'brand_new' without head_dim, sliding_window, expected a known model type, or all of"),
        (OTHER | {"head_dim": 128, "sliding_window": None, "kv_lora_rank": 512}, "found 'brand_new' with kv_lora_rank"),
        ({"model_type": "t5", "num_layers": 12}, "found 't5' without"),
        ({"model_type": "llava", "text_config": GQA}, "found 'llava_text' without"),
    ],
)
def test_what_a_type_needs_and_lacks_is_named(fields, message):
    with pytest.raises(InputError, match=message) as caught:
        model_configs.of_fields(fields, "some/config.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def folder(tmp_path, fields=LLAMA, index=None):
    (tmp_path / "some-8b").mkdir()
    (tmp_path / "some-8b/config.json").write_text(json.dumps(fields), encoding="utf-8")
    if index is not None:
        (tmp_path / "some-8b/model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return tmp_path / "some-8b"


def test_a_folder_is_read_with_the_weights_of_its_index(tmp_path):
    path = folder(tmp_path, index={"metadata": {"total_size": 16_060_522_496}})
    found = model_configs.load(path)
    assert (found.model, found.weight_bytes) == ("some-8b", 16_060_522_496)
    assert Footprint(found, FORMATS["bf16"]).bytes_per_token == 131_072
    assert model_configs.load(path / "config.json") == found
    assert str(path / "config.json") in found.source


@pytest.mark.parametrize("index", [[], {}, {"metadata": []}, {"metadata": {"total_size": "16"}}, {"metadata": {"total_size": 0}}])
def test_an_index_without_a_sum_is_refused(tmp_path, index):
    with pytest.raises(InputError, match=r"index\.json: metadata\.total_size"):
        model_configs.load(folder(tmp_path, index=index))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps(LLAMA)[:60], "line 1"),
        ("", "line 1"),
        ("null", "a NoneType"),
        ('{"model_type": "llama", "num_hidden_layers": ' + "9" * 5000 + "}", "each field once, with numbers of ordinary size"),
        ("[" * 100_000, "complete JSON"),
        (
            '{"model_type": "llama", "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 1, "num_hidden_layers": 1e400}',
            "num_hidden_layers: found inf",
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        model_configs.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_binary_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"config\.json: file"):
        model_configs.load(tmp_path)
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(InputError, match="UTF-8"):
        model_configs.load(tmp_path / "config.json")


NAMES = sorted(
    {
        *model_configs.EXPLICIT,
        *model_configs.OTHER_CACHES,
        *(name for _, fields in READ for name in fields | fields.get("text_config", {}) if name != "text_config"),
        "no_rope_layer_interval",
        "is_encoder_decoder",
        "_name_or_path",
        "max_position_embeddings",
        "quantization_config",
    }
)
values = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 80), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(-1, 3), max_size=4)
)


@given(st.sampled_from([*model_configs.READERS, "brand_new"]), st.dictionaries(st.sampled_from(NAMES), values), st.booleans())
def test_whatever_the_fields_hold_it_is_a_layout_or_one_line(model_type, fields, nested):
    fields["model_type"] = model_type
    try:
        found = model_configs.of_fields({"model_type": "outer", "text_config": fields} if nested else fields, "some/config.json")
    except InputError as error:
        line = str(error)
        assert line.startswith("some/config.json: ")
        assert "\n" not in line
    else:
        assert Footprint(found, FORMATS["bf16"]).bytes_per_token > 0


@given(st.sampled_from(READ), st.sampled_from(NAMES), values)
def test_a_published_configuration_with_one_field_changed_is_read_or_refused(known, name, value):
    fields = json.loads(json.dumps(known[1]))
    fields.get("text_config", fields)[name] = value
    try:
        found = model_configs.of_fields(fields, "some/config.json")
    except InputError as error:
        assert str(error).startswith("some/config.json: ")  # noqa: PT017
    else:
        assert Footprint(found, FORMATS["bf16"]).bytes_per_token > 0


def test_a_field_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "num_hidden_layers": 2, "num_hidden_layers": 3}')
    with pytest.raises(InputError, match="'num_hidden_layers' twice"):
        model_configs.load(path)


def test_a_pipe_or_folder_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "config.json").mkdir()
    with pytest.raises(InputError, match="found a pipe or device"):
        model_configs.load(tmp_path / "pipe.json")
    with pytest.raises(InputError, match="found a directory"):
        model_configs.load(tmp_path)
