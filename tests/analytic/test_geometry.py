import pytest

from kvtier.analytic.geometry import ModelGeometry, load_models, reference_model
from kvtier.errors import InputError
from kvtier.evidence.labels import Label
from kvtier.units import GIB, K_TOKENS, KIB, MIB, TB


@pytest.mark.parametrize(
    ("key", "kib_per_token"),
    [
        ("llama3_70b", 320),
        ("llama2_70b", 320),
        ("qwen2_5_7b", 56),
        ("llama1_65b", 2560),
        ("llama3_70b_fp8", 160),
        ("llama3_8b", 128),
    ],
)
def test_published_kv_bytes_per_token(models, key, kib_per_token):
    assert models[key].kv_bytes_per_token == kib_per_token * KIB


def test_published_block_is_five_mib(llama):
    assert llama.kv_bytes_per_token == 327_680
    assert llama.kv_bytes(16) == 5 * MIB
    assert isinstance(llama.kv_bytes(16), int)


# Shapes that people asked about in public trackers (layers, KV heads, head size), two bytes an element.
@pytest.mark.parametrize(
    ("name", "layers", "kv_heads", "head_dim", "bytes_per_token"),
    [
        ("Llama-3.1-8B", 32, 8, 128, 131_072),
        ("Qwen2.5-72B", 80, 8, 128, 327_680),
        ("Llama-2-7B, multi-head", 32, 32, 128, 524_288),
        ("Qwen2.5-7B", 28, 4, 128, 57_344),
        ("Qwen3-8B, head size not hidden over heads", 36, 8, 128, 147_456),
        ("Qwen3-14B", 40, 8, 128, 163_840),
        ("Qwen3-1.7B", 28, 8, 128, 114_688),
        ("Qwen3-30B-A3B", 48, 4, 128, 98_304),
        ("Qwen3-235B-A22B", 94, 4, 128, 192_512),
        ("Qwen3-Coder-480B", 62, 8, 128, 253_952),
        ("gpt-oss-120b, unified pages", 36, 8, 64, 73_728),
        ("Phi-3-mini", 32, 32, 96, 393_216),
        ("Phi-4", 40, 10, 128, 204_800),
        ("Falcon-7B, one KV head", 32, 1, 64, 8_192),
        ("Qwen2.5-0.5B", 24, 2, 64, 12_288),
    ],
)
def test_bytes_per_token_of_known_shapes(name, layers, kv_heads, head_dim, bytes_per_token):
    assert ModelGeometry(name, layers, kv_heads, head_dim).kv_bytes_per_token == bytes_per_token


@pytest.mark.parametrize(
    ("shape", "tokens", "gib", "digits"),
    [
        ((32, 8, 128), 128_000, 15.625, 3),
        ((32, 8, 128), 131_072, 16.0, 3),
        ((80, 8, 128), 131_072, 40.0, 3),
        ((32, 32, 128), 10_000, 4.88, 2),
        ((32, 32, 128), 32 * K_TOKENS, 16.0, 3),
        ((28, 4, 128), 3_072, 0.164, 3),
        ((28, 8, 128), 27_142, 2.90, 2),
        ((36, 8, 64), 78_350, 5.38, 2),
        ((24, 8, 64), 32 * 8_192, 12.0, 2),
        ((42, 8, 256), 8_192, 2.625, 3),
        ((46, 16, 128), 8_192, 2.875, 3),
        ((32, 8, 128), 2_588 * 16, 5.05, 2),
        ((32, 8, 128), 32_768, 4.0, 2),
    ],
)
def test_gib_of_known_contexts(shape, tokens, gib, digits):
    assert round(ModelGeometry("model", *shape).kv_bytes(tokens) / GIB, digits) == gib


def test_three_million_tokens_are_just_under_a_terabyte(llama):
    assert round(llama.kv_bytes(3_000_000) / TB, 3) == 0.983


@pytest.mark.parametrize(("gib", "tokens"), [(2, 21_845), (16, 174_762), (48, 524_288)])
def test_tokens_that_a_memory_holds(gib, tokens):
    assert gib * GIB // ModelGeometry("Qwen3-30B-A3B", 48, 4, 128).kv_bytes_per_token == tokens


def test_fp8_holds_twice_the_tokens():
    two, one = (ModelGeometry("model", 28, 8, 128, bytes_per_element=size).kv_bytes_per_token for size in (2, 1))
    assert 27_142 * two // one == 54_284


def test_streams_and_groups(llama, models):
    assert llama.score_streams == 640
    assert llama.queries_per_kv_head == 8
    assert models["llama1_65b"].queries_per_kv_head == 1


def test_shapes_carry_the_class_of_their_source(models):
    assert {key for key, model in models.items() if model.label is Label.LITERATURE} == {"llama2_70b", "llama1_65b"}
    assert {model.label for model in models.values()} == {Label.LITERATURE, Label.VENDOR}
    assert ModelGeometry("model", 80, 8, 128, label="Design target").label is Label.TARGET


def test_missing_query_heads_are_named(models):
    with pytest.raises(InputError, match=r"model Qwen2\.5-7B: query_heads: found no value, expected a stated value"):
        _ = models["qwen2_5_7b"].queries_per_kv_head


def test_negative_context_is_refused(llama):
    with pytest.raises(ValueError, match="-1"):
        llama.kv_bytes(-1)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"layers": 0}, "layers"),
        ({"kv_heads": -8}, "kv_heads"),
        ({"head_dim": True}, "head_dim"),
        ({"head_dim": 128.0}, "head_dim"),
        ({"bytes_per_element": 0}, "bytes_per_element"),
        ({"weight_bytes": -1}, "weight_bytes"),
        ({"parameters": True}, "parameters"),
        ({"query_heads": 12}, "query_heads"),
        ({"rope_base": float("inf")}, "rope_base"),
        ({"rope_base": float("nan")}, "rope_base"),
        ({"model": ""}, "model"),
        ({"label": "Rumour"}, "label"),
    ],
)
def test_impossible_shape_is_refused(changes, field):
    with pytest.raises(InputError) as caught:
        ModelGeometry(**({"model": "m", "layers": 80, "kv_heads": 8, "head_dim": 128} | changes))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("found", "planted", "message"),
    [
        ("Llama-3 70B,80,", "Llama-3 70B,-80,", r"model Llama-3 70B, layers: found -80, expected a positive whole number"),
        ("Llama-3 70B,80,", "Llama-3 70B,80.5,", r"column layers, row 1: found 80\.5, expected a "),
        ("Llama-3 70B,80,", "Llama-3 70B,true,", r"column layers, row 1: found true"),
        ("Llama-3 70B,80,", "Llama-3 70B,,", r"column layers, row 1: found None"),
        ("Llama-2 70B,", "Llama-3-70B,", r"model Llama-3-70B: found a second row for llama3_70b, expected one row a model"),
        ("140000000000,500000", "140000000000,nan", r"column rope_base, row 1: found nan"),
        ("140000000000,500000", "140000000000,inf", r"column rope_base, row 1: found inf"),
        ("ffn_size,", "ffn,", r"column ffn_size: found columns .*, expected the column to be present"),
        ("label,source", "label,source,colour", r"models\.csv"),
        ("label,source", "class,source", r"column label: found columns .*, expected the column to be present"),
        ("500000,Vendor specification", "500000,Rumour", r"model Llama-3 70B, label: found Rumour, expected one of Measured, "),
        ("500000,Vendor specification", "500000,", r"column label, row 1: found None"),
    ],
)
def test_bad_model_table_is_refused(tmp_path, models_text, found, planted, message):
    path = tmp_path / "models.csv"
    path.write_text(models_text.replace(found, planted, 1), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        load_models(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_model_table_without_rows_is_refused(tmp_path, models_text):
    header = next(line for line in models_text.splitlines() if line.startswith("model,"))
    path = tmp_path / "models.csv"
    path.write_text(header + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="at least one model"):
        load_models(path)


def test_absent_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.csv: file"):
        load_models(tmp_path / "nothing.csv")


def test_absent_reference_model_is_named(models):
    with pytest.raises(InputError, match="a row for llama3_70b"):
        reference_model({"llama3_8b": models["llama3_8b"]}, "models.csv")
