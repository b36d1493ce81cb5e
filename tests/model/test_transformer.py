"""The forward pass against itself written out in plain loops, and the properties that a causal decoder has."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kvtier.analytic.attention import rope_rotate, softmax
from kvtier.model.arithmetic import BLAS, ORDERED
from kvtier.model.attention import streamed
from kvtier.model.cache import KVCache
from kvtier.model.transformer import forward, forward_in_pieces, greedy, rms_norm, rotate, rotations, swiglu
from kvtier.model.weights import random_weights

TOKENS = [5, 3, 17, 0, 11, 5, 23, 8, 2, 9, 14, 1, 20, 7, 6, 3, 4, 19, 10]


def run(weights, tokens, arithmetic=BLAS, **options):
    return forward(weights, tokens, KVCache(weights.config, weights.dtype), arithmetic, **options)


def norm(vector, gain, eps):
    return vector / math.sqrt(math.fsum(vector**2) / len(vector) + eps) * gain


def turned(vector, position, base):
    """Rotate-half, a pair at a time."""
    half, out = len(vector) // 2, vector.copy()
    for pair in range(half):
        angle = position * base ** (-2 * pair / len(vector))
        a, b = vector[pair], vector[pair + half]
        out[pair], out[pair + half] = a * math.cos(angle) - b * math.sin(angle), b * math.cos(angle) + a * math.sin(angle)
    return out


def columns_of(rows, matrix, bias, columns):
    return [row @ matrix[:, columns] + bias[columns] for row in rows]


def written_out(weights, tokens):
    """Logits of the last token: no batch, no cache, a head at a time."""
    config, d = weights.config, weights.config.head_dim
    rows = [weights.embedding[token] for token in tokens]
    for layer in weights.layers:
        normed = [norm(row, layer.attention_norm, config.norm_eps) for row in rows]
        attended = [np.zeros(config.query_heads * d) for _ in rows]
        for head in range(config.query_heads):
            own = slice(head * d, (head + 1) * d)
            shared = slice(head // config.group * d, (head // config.group + 1) * d)
            base = config.rope_base
            queries = [turned(q, at, base) for at, q in enumerate(columns_of(normed, layer.query, layer.query_bias, own))]
            keys = [turned(k, at, base) for at, k in enumerate(columns_of(normed, layer.key, layer.key_bias, shared))]
            values = columns_of(normed, layer.value, layer.value_bias, shared)
            for position, query in enumerate(queries):
                shares = softmax([query @ key / math.sqrt(d) for key in keys[: position + 1]])
                attended[position][own] = sum(share * value for share, value in zip(shares, values, strict=False))
        rows = [row + heads @ layer.output for row, heads in zip(rows, attended, strict=True)]
        for position, row in enumerate(rows):
            gate, up = (norm(row, layer.ffn_norm, config.norm_eps) @ matrix for matrix in (layer.gate, layer.up))
            rows[position] = row + (gate / (1 + np.exp(-gate)) * up) @ layer.down
    return norm(rows[-1], weights.final_norm, config.norm_eps) @ weights.unembedding


@pytest.mark.parametrize("arithmetic", [BLAS, ORDERED], ids=lambda arithmetic: arithmetic.name)
def test_equals_the_pass_written_out(tiny_weights, arithmetic):
    # 1e-6 and not 1e-12: the model keeps cosines and sines in float32, the loops do not.
    np.testing.assert_allclose(run(tiny_weights, TOKENS, arithmetic)[-1], written_out(tiny_weights, TOKENS), atol=1e-6, rtol=0)


def test_float32_follows_float64(tiny, tiny_weights):
    single = random_weights(tiny, seed=3, dtype=np.float32)
    assert single.dtype == np.float32
    assert run(single, TOKENS).dtype == np.float32
    np.testing.assert_array_equal(single.layers[0].query, tiny_weights.layers[0].query.astype(np.float32))
    np.testing.assert_allclose(run(single, TOKENS), run(tiny_weights, TOKENS), atol=1e-5, rtol=0)


@pytest.mark.parametrize("arithmetic", [BLAS, ORDERED], ids=lambda arithmetic: arithmetic.name)
def test_a_later_token_changes_nothing_before_it(tiny_weights, arithmetic):
    changed = [*TOKENS[:10], TOKENS[10] + 1, *TOKENS[11:]]
    one, other = run(tiny_weights, TOKENS, arithmetic), run(tiny_weights, changed, arithmetic)
    assert one[:10].tobytes() == other[:10].tobytes()
    assert (np.abs(one[10:] - other[10:]).max(axis=1) > 1e-3).all()


def test_grouped_heads_are_heads_that_share_keys_and_values(tiny, tiny_weights):
    """A model with each KV head written out once for each query head of its group."""

    def repeated(matrix):
        heads = matrix.reshape(*matrix.shape[:-1], tiny.kv_heads, tiny.head_dim)
        return np.repeat(heads, tiny.group, axis=-2).reshape(*matrix.shape[:-1], -1)

    names = ("key", "key_bias", "value", "value_bias")
    layers = tuple(replace(layer, **{name: repeated(getattr(layer, name)) for name in names}) for layer in tiny_weights.layers)
    multi = replace(tiny_weights, config=replace(tiny, kv_heads=tiny.query_heads), layers=layers)
    assert run(multi, TOKENS, ORDERED).tobytes() == run(tiny_weights, TOKENS, ORDERED).tobytes()


def test_heads_grouped_otherwise_are_another_model(tiny, tiny_weights):
    """The opposite: query head 1 on KV head 1 and not on head 0, as if heads were dealt out in turn."""
    order = np.arange(tiny.query_heads).reshape(tiny.group, tiny.kv_heads).T.ravel()

    def dealt(matrix):
        heads = matrix.reshape(*matrix.shape[:-1], tiny.query_heads, tiny.head_dim)
        return heads[..., order, :].reshape(matrix.shape)

    layers = tuple(replace(own, query=dealt(own.query), query_bias=dealt(own.query_bias)) for own in tiny_weights.layers)
    assert np.abs(run(replace(tiny_weights, layers=layers), TOKENS) - run(tiny_weights, TOKENS)).max() > 0.01


def test_rotation_is_the_papers_with_a_heads_elements_in_another_order():
    rng = np.random.default_rng(1)
    heads, positions, base = rng.standard_normal((2, 5, 8)), [0, 1, 7, 40, 1000], 500.0
    found = rotate(heads, *rotations(positions, 8, base))
    for head in range(2):
        for row, position in enumerate(positions):
            neighbours = heads[head, row].reshape(2, 4).T.ravel()
            expected = rope_rotate(neighbours, position, base)
            np.testing.assert_allclose(found[head, row], [*expected.real, *expected.imag], atol=1e-6)


def test_scores_depend_on_distance_alone():
    rng = np.random.default_rng(2)
    query, key = rng.standard_normal((2, 1, 16))

    def score(at, distance):
        turn_query, turn_key = rotations([at + distance], 16, 10_000.0), rotations([at], 16, 10_000.0)
        return (rotate(query, *turn_query) @ rotate(key, *turn_key).T).item()

    assert score(900, 13) == pytest.approx(score(0, 13), abs=1e-5)
    assert abs(score(0, 14) - score(0, 13)) > 1e-3


def test_norm_leaves_rows_of_root_mean_square_one():
    rows = np.array([[3.0, -3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 4.0]])
    np.testing.assert_allclose(rms_norm(rows, np.ones(4), 0.0), [[1, -1, 1, 1], [0, 0, 0, 2]])
    np.testing.assert_allclose(rms_norm(rows[:1], np.full(4, 2.0), 27.0), rows[:1] / 3)
    assert not rms_norm(np.zeros((1, 4)), np.ones(4), 1e-6).any()


def test_swiglu_of_a_gate_shut_and_open(tiny_weights):
    layer = tiny_weights.layers[0]
    one, up = np.ones((1, 12)), np.ones((1, 12)) @ layer.up
    shut = replace(layer, gate=np.full_like(layer.gate, -1e3))
    wide = replace(layer, gate=np.full_like(layer.gate, 1e3))
    for arithmetic in (BLAS, ORDERED):
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(swiglu(one, shut, arithmetic), 0, atol=1e-12)
        np.testing.assert_allclose(swiglu(one, wide, arithmetic), 12_000 * up @ layer.down)


def test_tied_logits_use_the_embedding(tiny):
    weights = random_weights(replace(tiny, tied=True), seed=3)
    np.testing.assert_array_equal(weights.unembedding, weights.embedding.T)
    assert not np.array_equal(random_weights(tiny, seed=3).unembedding, weights.unembedding)


def test_a_model_without_bias_differs_in_its_biases_alone(tiny, tiny_weights):
    llama = random_weights(replace(tiny, qkv_bias=False), seed=3, dtype=np.float64)
    for name in ("query_bias", "key_bias", "value_bias"):
        assert not getattr(llama.layers[1], name).any()
        assert getattr(tiny_weights.layers[1], name).any()
    np.testing.assert_array_equal(llama.layers[1].down, tiny_weights.layers[1].down)


def test_weights_are_those_of_their_seed(tiny):
    assert random_weights(tiny, seed=3).final_norm.tobytes() == random_weights(tiny, seed=3).final_norm.tobytes()
    assert random_weights(tiny, seed=3).final_norm.tobytes() != random_weights(tiny, seed=4).final_norm.tobytes()


def test_greedy_decode_is_prefill_of_what_it_decoded(tiny_weights):
    cache = KVCache(tiny_weights.config, np.float64)
    forward(tiny_weights, TOKENS[:-1], cache)
    decoded = greedy(tiny_weights, TOKENS[-1], 12, cache)
    logits = run(tiny_weights, [*TOKENS, *decoded[:-1]])
    assert logits[len(TOKENS) - 1 :].argmax(axis=1).tolist() == decoded


@pytest.mark.parametrize("pieces", [1, 5, 16])
def test_pieces_streamed_and_in_any_arithmetic_are_the_same_model(tiny_weights, pieces):
    expected = run(tiny_weights, TOKENS)
    for arithmetic in (BLAS, ORDERED):
        found = forward_in_pieces(tiny_weights, TOKENS, KVCache(tiny_weights.config, np.float64), pieces, arithmetic, streamed([3, 7]))
        np.testing.assert_allclose(found, expected, atol=1e-12, rtol=0)
