"""The loop over transformers on CPU tensors, with a tiny model (extra ``measure``)."""

from dataclasses import replace

import pytest

WHY = "the backends need torch and transformers: make measure, then make test-measure"
torch = pytest.importorskip("torch", reason=WHY)
transformers = pytest.importorskip("transformers", reason=WHY)

from kvtier.audit.physical_bound import UnexpectedWeights  # noqa: E402
from kvtier.audit.residency import UnexpectedPool  # noqa: E402
from kvtier.errors import InputError  # noqa: E402
from kvtier.kit import decode, regeneration  # noqa: E402
from kvtier.kit.backends import shapes  # noqa: E402
from kvtier.kit.backends import transformers as ours  # noqa: E402
from kvtier.kit.backends.transformers import WAYS, Transformers  # noqa: E402
from kvtier.kit.decode import Decode  # noqa: E402
from kvtier.kit.machine import Bus, Machine  # noqa: E402
from kvtier.kit.regeneration import Regeneration  # noqa: E402
from kvtier.model.config import ModelConfig  # noqa: E402

TINY = ModelConfig(layers=2, hidden=32, query_heads=4, kv_heads=2, head_dim=8, ffn=48, vocab=97, tied=True)
MACHINE = Machine("two cores", "two_cores", 2, 2**23, 2**34, 2**33, (0,), Bus(100.0, "a data sheet"))
PROMPTS = decode.random_prompts([40, 40, 24], TINY.vocab, seed=1)


def tiny(dtype="float32", shape=TINY):
    return Transformers(shape, dtype, "cpu", seed=3, positions=128)


@pytest.fixture(scope="module")
def model():
    found = tiny()
    found.prefill(PROMPTS)
    return found


def generated(model, way, batch, context, tokens):
    attention, in_place, _ = WAYS[way]
    with torch.inference_mode():
        model._set_attention(attention)
        own = model.cache(batch, context, in_place, tokens)
        ids, found = model.first_tokens(batch), []
        for _ in range(tokens):
            ids = model.generate(ids, own, 1)
            found.append(ids)
        return torch.cat(found, dim=1).tolist()


def greedy_without_cache(model, batch, context, tokens):
    with torch.inference_mode():
        ids = torch.cat([torch.tensor([prompt[:context] for prompt in PROMPTS[:batch]]), model.first_tokens(batch)], dim=1)
        for _ in range(tokens):
            ids = torch.cat([ids, model.model(ids, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)], dim=1)
        return ids[:, context + 1 :].tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("batch", "context"), [(1, 40), (2, 40), (3, 24), (2, 17)])
def test_every_way_generates_what_a_model_without_cache_does(model, way, batch, context):
    assert generated(model, way, batch, context, 6) == greedy_without_cache(model, batch, context, 6)


@pytest.mark.parametrize("way", WAYS)
def test_each_timing_starts_at_the_same_context(model, way):
    before = [[each.clone() for pair in layers for each in pair] for layers in model._sequences]
    first, again = (generated(model, way, 3, 20, 9) for _ in range(2))
    assert first == again
    assert model.decode_s(way, 3, 20, 9) > 0
    after = [[each for pair in layers for each in pair] for layers in model._sequences]
    assert all(torch.equal(one, other) for old, new in zip(before, after, strict=True) for one, other in zip(old, new, strict=True))


def test_a_cache_has_memory_of_its_own(model):
    own = model.cache(2, 24)
    assert own.layers[0].keys.shape == (2, TINY.kv_heads, 24, TINY.head_dim)
    assert own.layers[0].keys.data_ptr() != model._sequences[0][0][0].data_ptr()
    with pytest.raises(InputError, match="3 of 40 tokens"):
        model.cache(3, 40)


def test_in_place_keeps_its_memory_and_its_bounds(model):
    with torch.inference_mode():
        own = model.cache(1, 20, in_place=True, room=2)
        place = own.layers[0].keys.data_ptr()
        model.generate(model.first_tokens(1), own, 2)
        assert own.layers[0].keys.data_ptr() == place
        assert own.get_seq_length() == 22
        with pytest.raises(InputError, match="at most 22"):
            model.generate(model.first_tokens(1), own, 1)


def test_context_is_the_mean_of_what_the_remaining_steps_read(model):
    for steps in (5, 10, 32):
        prompt = model.prompt_tokens(100, steps)
        read = [prompt + step for step in range(3, steps + 1)]
        assert abs(sum(read) / len(read) - 100) <= 0.5


@pytest.mark.parametrize("shape", [TINY, replace(TINY, tied=False), replace(TINY, qkv_bias=False)], ids=["tied", "untied", "no bias"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_resident_is_counted_from_the_tensors(shape, dtype):
    loaded = tiny(dtype, shape).loaded
    assert (loaded.parameters, loaded.layer_parameters) == (shapes.parameters(shape), shapes.layer_parameters(shape))
    assert loaded.resident_dtype == dtype
    assert loaded.weight_bytes >= loaded.parameters * shapes.element_bytes(dtype)
    assert loaded.unread_bytes == (0 if shape.tied else shape.vocab * shape.hidden * shapes.element_bytes(dtype))
    assert loaded.kv_bytes_per_token == shapes.kv_bytes_per_token(shape, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_that_were_silently_loaded_as_fp32_are_refused(monkeypatch, dtype):
    """As on the GB10: a deprecated argument was ignored, and 28.4 GiB of float32 lay where float16 was claimed (SPEC §7)."""
    own = ours._random
    monkeypatch.setattr(ours, "_random", lambda shape, dtype, device, positions: own(shape, torch.float32, device, positions))
    monkeypatch.setitem(shapes.SHAPES, "small", TINY)
    with pytest.raises(UnexpectedWeights, match="the size of float32"):
        Decode(batches=(1,), contexts=(64,), dtype=dtype).run(MACHINE, lambda says, share: None)
    with pytest.raises(UnexpectedWeights, match="the size of float32"):
        Regeneration(backend="transformers", contexts=(0,), dtype=dtype).run(MACHINE, lambda says, share: None)


def test_kv_that_is_allocated_wider_than_claimed_is_refused():
    model = tiny("float16")
    model.prefill(PROMPTS)
    assert len(model.checked("here")) == 2
    model._sequences = [[(keys.float(), values.float()) for keys, values in layers] for layers in model._sequences]
    with pytest.raises(UnexpectedPool, match="the size of float32"):
        model.checked("here")


@pytest.mark.parametrize("way", WAYS)
def test_the_cache_of_the_last_timing_is_held_against_the_geometry(model, way):
    model.decode_s(way, 2, 20, 4)
    assert (model._pool.tokens, model._pool.pool_bytes) == (48, 48 * model.loaded.kv_bytes_per_token)
    assert len(model.checked("here")) == 3


def test_a_run_from_end_to_end(monkeypatch):
    monkeypatch.setitem(shapes.SHAPES, "small", TINY)
    # Speed and steadiness of a tiny model on a shared machine say nothing: what is left are rows and guards of what is resident.
    monkeypatch.setattr(decode, "steady", lambda times, source: decode.resolved(1.0, 1e-9, source))
    monkeypatch.setattr(decode, "relative_times", lambda *given: [])
    monkeypatch.setattr(decode, "tick_s", lambda: 1e-12)
    monkeypatch.setattr(decode, "lines_below_the_bus", lambda *given: [])
    monkeypatch.setattr(Transformers, "_clocked", lambda self, run: run() is None or 1e-3 * ticking(self))
    outcome = Decode(batches=(1, 2), contexts=(48, 64), repetitions=3, steps=6).run(MACHINE, lambda says, share: None)
    rows = outcome.tables["decode"]
    assert rows.height == 12 * 3
    assert set(rows["backend"]) == {"transformers sdpa", "transformers sdpa, cache in place", "transformers eager"}
    assert outcome.about["kv_pool"]["bytes"] == outcome.about["kv_pool"]["tokens"] * outcome.about["kv_bytes_per_token"]
    assert outcome.about["resident_dtype"] == "float32"
    assert sum(subject.unit == "sequences" for subject in outcome.checked) == 1


def ticking(model, count=[0]):  # noqa: B006
    count[0] += 1
    return count[0]


def test_a_block_is_made_again_bit_for_bit_or_nearly(monkeypatch):
    monkeypatch.setitem(shapes.SHAPES, "small", TINY)
    monkeypatch.setattr(regeneration, "steady", lambda times, source: regeneration.resolved(1.0, 1e-9, source))
    outcome = Regeneration(backend="transformers", contexts=(0, 32), repetitions=3).run(MACHINE, lambda says, share: None)
    assert outcome.tables["regeneration"]["backend"].unique().to_list() == ["transformers sdpa"]
    assert max(outcome.about["largest_deviation"].values()) < 1e-5


def test_a_local_model_is_loaded_by_its_folder(tmp_path):
    transformers.Qwen2ForCausalLM(ours.qwen2_config(TINY, 128)).to(torch.bfloat16).save_pretrained(tmp_path)
    assert ours.shape_of(str(tmp_path)) == replace(TINY, qkv_bias=True)
    model = Transformers(str(tmp_path), "bfloat16", "cpu", seed=1, positions=128)
    assert model.loaded.parameters == shapes.parameters(TINY)
    model.prefill(PROMPTS)
    assert len(model.checked("here")) == 2


def test_a_model_that_is_nowhere_is_an_input_error(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"decode: model: found .*, expected a folder or a name on the hub"):
        ours.shape_of(str(tmp_path / "none"))
    with pytest.raises(InputError, match="a folder or a name on the hub"):
        Transformers(str(tmp_path / "none"), "float32", "cpu", seed=1, positions=128)


def test_a_device_that_torch_does_not_see_is_refused():
    if torch.cuda.is_available():
        pytest.skip("torch sees a GPU here")
    with pytest.raises(InputError, match="device: found cuda"):
        Transformers(TINY, "float32", "cuda", seed=1, positions=128)
