"""KV made again by the numpy transformer, small; torch's side is in tests/kit/backends."""

from dataclasses import replace

import numpy as np
import pytest

from kvtier.audit.timing import BelowResolution
from kvtier.errors import InputError
from kvtier.kit import regeneration
from kvtier.kit.backends import numpy as numpy_backend
from kvtier.kit.backends import shapes
from kvtier.kit.backends.numpy import Numpy
from kvtier.kit.machine import Bus, Machine
from kvtier.kit.regeneration import Regeneration, WrongKV
from kvtier.measure import kept
from kvtier.model.cache import KVCache
from kvtier.model.config import ModelConfig
from kvtier.model.transformer import forward
from kvtier.model.weights import random_weights

MACHINE = Machine("two cores", "two_cores", 2, 2**23, 2**34, 2**33, (0,), Bus(100.0, "a data sheet"))
TINY = ModelConfig(layers=2, hidden=32, query_heads=4, kv_heads=2, head_dim=8, ffn=48, vocab=97, tied=True)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(shapes.SHAPES, "small", TINY)
    # Times of a tiny model on a shared machine are anything.
    monkeypatch.setattr(regeneration, "steady", lambda times, source: regeneration.resolved(1.0, 1e-9, source))


def run(**settings):
    return Regeneration(**{"backend": "numpy", "contexts": (0, 32), "repetitions": 3, **settings}).run(MACHINE, lambda says, share: None)


def test_rows_and_record():
    outcome = run()
    rows = kept.REGENERATION.check(outcome.tables["regeneration"])
    assert rows["context_tokens"].to_list() == [0, 32] * 3
    assert rows["tokens"].unique().to_list() == [16]
    about = outcome.about
    assert about["kv_bytes_per_token"] == 2 * 2 * 2 * 8 * 4
    assert about["block_bytes"] == 16 * about["kv_bytes_per_token"]
    assert about["linear_flop"] == 2 * shapes.parameters(TINY) * 16
    assert about["linear_flop_of_layers"] == 2 * shapes.layer_parameters(TINY) * 16
    assert about["parameters"] == shapes.parameters(TINY)
    assert max(about["largest_deviation"].values()) < 1e-4
    assert {subject.unit for subject in outcome.checked} >= {"GiB", "B/token", "ticks at least"}


@pytest.mark.parametrize("shape", [TINY, replace(TINY, tied=False), replace(TINY, qkv_bias=False)], ids=["tied", "untied", "no bias"])
def test_counted_parameters_are_those_in_memory(shape):
    assert Numpy(shape, 1).loaded.parameters == shapes.parameters(shape)
    assert Numpy(shape, 1).loaded.weight_bytes == 4 * shapes.parameters(shape)


def test_kv_without_logits_is_the_kv_of_the_whole_forward_pass():
    weights, ids = random_weights(TINY, 3), np.random.default_rng(1).integers(97, size=40)
    whole, alone = KVCache(TINY, np.float32), KVCache(TINY, np.float32)
    forward(weights, ids, whole)
    numpy_backend.through_layers(weights, ids, alone)
    for layer in range(TINY.layers):
        np.testing.assert_array_equal(whole.read(layer), alone.read(layer))


def test_prefill_in_pieces_keeps_the_context(monkeypatch):
    monkeypatch.setattr(numpy_backend, "PIECE_TOKENS", 16)
    assert max(run(contexts=(0, 16, 64)).about["largest_deviation"].values()) < 1e-4


def test_kv_of_other_tokens_is_refused(monkeypatch):
    own = Numpy.regenerate_s
    monkeypatch.setattr(Numpy, "regenerate_s", lambda self, ids, context: own(self, [(each + 1) % 97 for each in ids], context))
    with pytest.raises(WrongKV, match=r"KV on 0 tokens: found a deviation of"):
        run()


def test_kv_at_another_position_is_refused(monkeypatch):
    own = Numpy.regenerate_s

    def elsewhere(self, ids, context):
        seconds, deviation = own(self, ids, context)
        return (seconds, deviation) if context == 0 else own(self, ids, context - 16)

    monkeypatch.setattr(Numpy, "regenerate_s", elsewhere)
    with pytest.raises(WrongKV, match=r"KV on 32 tokens"):
        run()


def test_intervals_below_the_clock_are_refused(monkeypatch):
    monkeypatch.setattr(regeneration, "tick_s", lambda: 1.0)
    with pytest.raises(BelowResolution):
        run()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backend": "jax"}, "backend: found jax"),
        ({"backend": "numpy", "dtype": "float16"}, "dtype: found float16, expected float32"),
        ({"backend": "numpy", "model": "someone/model"}, "with numpy, one of small"),
        ({"contexts": (8,)}, "whole blocks of 16 tokens"),
        ({"contexts": ()}, "contexts: found none"),
        ({"repetitions": 2}, "repetitions: found 2"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Regeneration(**settings).plan(MACHINE)


def test_without_torch_numpy_is_taken(monkeypatch):
    monkeypatch.setattr(regeneration, "find_spec", lambda name: None)
    (step,) = Regeneration().plan(MACHINE)
    assert "numpy on cpu" in step.says
