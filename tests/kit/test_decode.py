"""Decode by differencing, with a backend that only counts: no torch here."""

import subprocess
import sys
from dataclasses import replace

import polars as pl
import pytest

from kvtier.audit.physical_bound import AboveTheBus, UnexpectedWeights
from kvtier.audit.residency import TiersExceedMemory, UnexpectedPool
from kvtier.audit.sequences import SharedSequences
from kvtier.audit.timing import BelowResolution, Drift
from kvtier.errors import InputError
from kvtier.kit import decode
from kvtier.kit.backends import Loaded, Pool, shapes
from kvtier.kit.decode import Decode
from kvtier.kit.machine import Accelerator, Bus, Machine
from kvtier.kit.timing import Timing
from kvtier.measure import kept
from kvtier.model.config import ModelConfig

MIB = 2**20
MACHINE = Machine("two cores", "two_cores", 2, 8 * MIB, 2**34, 2**33, (0,), Bus(100.0, "a data sheet"))
GPU = Accelerator("a GPU", 80 * 2**30, 78 * 2**30, Bus(1000.0, "its data sheet"), "CUDA 13", unified=False)
LOADED = Loaded("two layers", "float32", "float32", 10_000_000, 5_000_000, 40_000_000, 0, 2, 4, 64, 500, 4096)


class Counting:
    """A backend whose step takes 10 ms and 200 ms a GiB of KV, and whose generation costs 50 ms besides."""

    def __init__(self, loaded=LOADED, pool_factor=1.0, intercept_ms=10.0, slope=200.0, once_s=0.05, growth=1.0):
        self.loaded, self.pool_factor = loaded, pool_factor
        self.intercept_ms, self.slope, self.once_s, self.growth = intercept_ms, slope, once_s, growth
        self.described = dict.fromkeys(decode.ROW_NAMES, "counts")
        self.calls, self.closed, self.prompts, self.runs = [], False, [], 0

    def prompt_tokens(self, context_tokens, steps):
        return context_tokens - (steps + 3) // 2

    def prefill(self, prompts, progress):
        self.prompts = prompts
        progress(0.5)

    def decode_s(self, way, batch, prompt_tokens, tokens):
        self.calls.append((way, batch, prompt_tokens, tokens))
        self.runs += 1
        step_ms = self.intercept_ms + self.slope * batch * prompt_tokens * self.loaded.kv_bytes_per_token / 2**30
        return (self.once_s + tokens * step_ms / 1e3) * self.growth**self.runs

    def pool(self):
        tokens = sum(map(len, self.prompts))
        return Pool(int(self.pool_factor * tokens * self.loaded.kv_bytes_per_token), tokens)

    def checked(self, source):
        return [self.loaded.check_weights(source), self.pool().check(self.loaded, source)]

    def close(self):
        self.closed = True


@pytest.fixture
def fake(monkeypatch):
    def use(backend):
        monkeypatch.setattr(decode, "load", lambda *given: backend)
        return backend

    return use


def run(machine=MACHINE, **settings):
    heard = []
    outcome = Decode(**{"repetitions": 3, "steps": 10, **settings}).run(machine, lambda says, share: heard.append(share))
    assert heard == sorted(heard)
    assert 0 <= heard[0] < heard[-1] < 1
    return outcome


def test_the_difference_leaves_the_step_alone():
    point = ("sdpa", 2, 1024)
    timings = [Timing(0, (*point, 2), 0.7), Timing(0, (*point, 10), 1.5)]
    row = decode.differences(timings, 10, "cpu", "float32").row(0, named=True)
    assert row["step_ms"] == pytest.approx(100.0)
    assert (row["short_s"], row["long_s"], row["steps"], row["backend"]) == (0.7, 1.5, 10, "transformers sdpa")


def test_a_cost_that_a_generation_has_once_is_in_no_step(fake):
    fake(Counting(once_s=0.05))
    cheap = run().tables["decode"]["step_ms"]
    fake(Counting(once_s=5.0))
    assert run().tables["decode"]["step_ms"].to_list() == pytest.approx(cheap.to_list())


def test_rows_are_declared_and_repetitions_are_the_outer_loop(fake):
    backend = fake(Counting())
    outcome = run(backends=("sdpa",), batches=(1, 2), contexts=(64, 128))
    rows = kept.DECODE.check(outcome.tables["decode"])
    assert rows.height == 4 * 3
    assert rows["repetition"].to_list() == sorted(rows["repetition"].to_list())
    # 4 points, a short and a long run each, once untimed and three times timed.
    assert len(backend.calls) == 4 * 2 * 4
    assert backend.calls[:8] == backend.calls[8:16]
    assert backend.calls[:2] == [("sdpa", 1, 64 - 6, 2), ("sdpa", 1, 64 - 6, 10)]
    assert backend.closed


def test_every_sequence_is_prefilled_once_as_long_as_a_point_asks(fake):
    backend = fake(Counting())
    run(batches=(1, 3), contexts=(64, 128), backends=("eager",))
    assert [len(prompt) for prompt in backend.prompts] == [122, 122, 122]
    assert decode.prompt_lengths([("sdpa", 1, 100), ("sdpa", 3, 40)], lambda context: context) == [100, 40, 40]


def test_prompts_are_seeded_distinct_and_in_the_vocabulary():
    one, again, other = (decode.random_prompts([40, 20], 50, seed) for seed in (1, 1, 2))
    assert one == again != other
    assert one[0][:16] != one[1][:16]
    assert {token for prompt in one for token in prompt} <= set(range(50))


def test_the_default_sweep_has_all_ways_and_a_spread_of_kv():
    settings = Decode()._settings(MACHINE)
    assert (settings.device, settings.dtype, settings.model, settings.steps) == ("cpu", "float32", "small", 10)
    by_way = {way: [point[1:] for point in settings.points if point[0] == way] for way in ("sdpa", "sdpa-in-place", "eager")}
    assert len(by_way["sdpa"]) == 9
    assert by_way["eager"] == by_way["sdpa-in-place"] == [(1, 1024), (1, 4096), (4, 1024), (4, 4096)]
    weights = 4 * shapes.parameters(shapes.SMALL)
    kv = [batch * context * shapes.kv_bytes_per_token(shapes.SMALL, "float32") for batch, context in by_way["sdpa"]]
    assert max(kv) > 3 * weights
    assert max(kv) > 10 * min(kv)


def test_on_an_accelerator_the_largest_model_that_fits_is_taken():
    machine = replace(MACHINE, accelerator=GPU)
    settings = Decode()._settings(machine)
    assert (settings.device, settings.dtype, settings.model, settings.steps) == ("cuda", "float16", "qwen2.5-7b", 32)
    assert ("sdpa", 16, 32_768) not in settings.points
    assert Decode()._settings(replace(machine, accelerator=replace(GPU, available_bytes=40 * 2**30))).model == "qwen2.5-1.5b"
    assert Decode()._settings(replace(machine, accelerator=replace(GPU, available_bytes=24 * 2**30))).model == "qwen2.5-0.5b"
    assert Decode()._settings(replace(machine, accelerator=replace(GPU, available_bytes=8 * 2**30))).model == "small"


def test_the_plan_states_memory_without_torch():
    steps = Decode().plan(MACHINE)
    pool = 4 * 4096 * 16_384
    assert all(step.memory_bytes > 3 * pool for step in steps)
    assert all(step.device_bytes == 0 for step in steps)
    on_device = Decode().plan(replace(MACHINE, accelerator=GPU))
    assert all(15e9 < step.device_bytes < GPU.available_bytes for step in on_device)
    assert sum(step.seconds for step in Decode.quick().plan(MACHINE)) < sum(step.seconds for step in steps)


def test_the_kit_is_imported_without_torch():
    code = "import sys, kvtier.kit.decode, kvtier.kit.regeneration, kvtier.kit.backends.vllm, kvtier.kit.backends.transformers as t; "
    code += "sys.exit(bool({'torch', 'transformers', 'vllm'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "float64"}, r"dtype: found float64, expected one of float32"),
        ({"steps": 2}, r"steps: found 2, expected more than the 2"),
        ({"repetitions": 2}, r"repetitions: found 2"),
        ({"backends": ("flash",)}, r"backends: found flash"),
        ({"backends": ("vllm", "sdpa")}, r"vllm alone"),
        ({"backends": ("vllm",)}, r"vllm on a CPU, expected vllm on an accelerator"),
        ({"batches": (1, 1)}, r"batches: found 1, 1, expected one or more, each once"),
        ({"contexts": ()}, r"contexts: found none"),
        ({"batches": (0,)}, r"points: found batch 0"),
        ({"contexts": (20,)}, r"contexts of 26 or more"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Decode(**{"steps": 10, **settings}).plan(MACHINE)


def test_weights_of_another_type_than_asked_for_are_refused(fake):
    """The silent fp32 load: 28.4 GiB for 14.2 (SPEC §7)."""
    backend = fake(Counting(replace(LOADED, dtype="float16", kv_bytes_per_token=2048)))
    with pytest.raises(UnexpectedWeights, match=r"the size of float32, expected 0\.02 GiB as float16"):
        run()
    assert backend.closed
    assert backend.calls == []


def test_kv_of_another_type_than_asked_for_is_refused(fake):
    fake(Counting(pool_factor=0.5))
    with pytest.raises(UnexpectedPool, match="the size of float16"):
        run()


def test_identical_sequences_are_refused_before_anything_is_timed(fake, monkeypatch):
    backend = fake(Counting())
    monkeypatch.setattr(decode, "random_prompts", lambda lengths, vocabulary, seed: [[7] * length for length in lengths])
    with pytest.raises(SharedSequences, match="sequence 1"):
        run()
    assert backend.calls == []


def test_a_step_above_the_bus_is_refused(fake):
    fake(Counting(intercept_ms=0.1, slope=20.0))
    with pytest.raises(AboveTheBus, match=r"weights and KV of one step, transformers sdpa, 1 × 1,024"):
        run()


def test_a_slope_above_the_bus_is_refused_although_no_step_is(fake):
    fake(Counting(intercept_ms=500.0, slope=5.0))
    with pytest.raises(AboveTheBus, match=r"KV path"):
        run()


def test_a_slope_that_falls_is_refused(fake):
    fake(Counting(intercept_ms=500.0, slope=-5.0))
    with pytest.raises(InputError, match=r"slope"):
        run()


def test_an_intercept_that_is_not_clear_of_zero_is_left_out_with_the_reason():
    sizes = [1, 2, 4, 8, 16, 32]
    noise = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
    rows = pl.DataFrame(
        {
            "backend": ["b"] * 6,
            "batch": [1] * 6,
            "context_tokens": [1024 * size for size in sizes],
            "step_ms": [size + 0.2 + each for size, each in zip(sizes, noise, strict=True)],
        }
    )
    left_out = {}
    checked = decode.lines_below_the_bus(rows, 2**20, 2**15, 1000.0, "here", left_out)
    assert [subject.subject for subject in checked] == ["KV path of here, b"]
    assert "not clear of zero" in left_out["fixed path of b"]


def test_steps_that_a_cache_can_hold_are_not_held_against_the_bus():
    rows = pl.DataFrame({"backend": ["b"], "batch": [1], "context_tokens": [1024], "step_ms": [1e-6]})
    assert decode.steps_below_the_bus(rows, 1, 1, 4096, 1.0, "here") == []
    with pytest.raises(AboveTheBus):
        decode.steps_below_the_bus(rows, 1, 1, 1024, 1.0, "here")


def test_without_a_bus_nothing_is_claimed(fake):
    fake(Counting())
    outcome = run(replace(MACHINE, bus=None))
    assert outcome.about["left_out"]["physical bound"] == "the bandwidth of the memory bus is not known"
    assert all(subject.unit != "GB/s" for subject in outcome.checked)


def test_drift_is_refused(fake):
    fake(Counting(growth=1.01))
    with pytest.raises(Drift, match="slower"):
        run(repetitions=6)


def test_more_tokens_that_take_no_more_time_are_refused(fake):
    fake(Counting(intercept_ms=0.0, slope=0.0))
    with pytest.raises(InputError, match="more time for more tokens"):
        run()


def test_intervals_below_the_clock_are_refused(fake, monkeypatch):
    fake(Counting())
    monkeypatch.setattr(decode, "tick_s", lambda: 1.0)
    with pytest.raises(BelowResolution):
        run()


def test_tiers_of_a_unified_memory_are_summed(fake):
    fake(Counting())
    unified = replace(MACHINE, memory_bytes=41_000_000, accelerator=replace(GPU, unified=True))
    with pytest.raises(TiersExceedMemory, match=r"weights .* KV"):
        run(unified, model="small", dtype="float32", steps=10)


def test_the_record_says_what_was_resident(fake):
    fake(Counting())
    about = run().about
    assert (about["weight_bytes"], about["parameters"], about["kv_bytes_per_token"]) == (40_000_000, 10_000_000, 4096)
    assert about["kv_pool"]["bytes"] == about["kv_pool"]["tokens"] * 4096
    assert set(about["backends"]) == {"transformers sdpa", "transformers sdpa, cache in place", "transformers eager"}


def test_parameters_of_published_shapes_are_the_published_ones():
    """Qwen2.5's model cards (Vendor specification): 0.49 B, 1.54 B and 7.61 B, without embedding 0.36, 1.31 and 6.53."""
    assert shapes.parameters(shapes.QWEN25_0_5B) / 1e9 == pytest.approx(0.49, abs=0.005)
    assert shapes.layer_parameters(shapes.QWEN25_0_5B) / 1e9 == pytest.approx(0.36, abs=0.005)
    assert shapes.parameters(shapes.QWEN25_1_5B) / 1e9 == pytest.approx(1.54, abs=0.005)
    assert shapes.layer_parameters(shapes.QWEN25_1_5B) / 1e9 == pytest.approx(1.31, abs=0.005)
    assert shapes.parameters(shapes.QWEN25_7B) / 1e9 == pytest.approx(7.61, abs=0.01)
    assert shapes.layer_parameters(shapes.QWEN25_7B) / 1e9 == pytest.approx(6.53, abs=0.005)
    assert shapes.kv_bytes_per_token(shapes.QWEN25_7B, "float16") == 56 * 1024
    assert "qwen2.5-7b" in shapes.in_words(shapes.QWEN25_7B)
    assert shapes.in_words(ModelConfig()).startswith("random weights: 3 layers")
    with pytest.raises(InputError, match="dtype: found int4"):
        shapes.element_bytes("int4")
