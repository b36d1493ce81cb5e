"""Streamed attention is dense attention, however the keys are cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.model.arithmetic import BLAS, ORDERED
from kvtier.model.attention import Partial, chunk_bounds, dense, finish, join, partial, streamed

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


def heads(seed, dtype, queries, keys, head_dim, spread=1.0, kv_heads=2, group=3):
    """Queries, keys and values of order 1, scores of the order of `spread`, causal."""
    rng = np.random.default_rng(seed)
    drawn = [rng.standard_normal(shape) for shape in ((kv_heads, group, queries, head_dim), *[(kv_heads, keys, head_dim)] * 2)]
    visible = np.arange(keys) <= np.arange(keys - queries, keys)[:, None]
    scaled = (drawn[0] * spread, *drawn[1:])
    return (*(array.astype(dtype) for array in scaled), np.broadcast_to(visible, (kv_heads, queries, keys)))


def in_float64(queries, keys, values, visible):
    """Softmax as it is written, a query at a time."""
    outputs = np.zeros(queries.shape)
    for head, member, query in np.ndindex(*queries.shape[:3]):
        seen = visible[head, query]
        scores = keys[head, seen].astype(np.float64) @ queries[head, member, query] / np.sqrt(queries.shape[-1])
        weights = np.exp(scores - scores.max(initial=-np.inf))
        outputs[head, member, query] = weights @ values[head, seen] / max(weights.sum(), 1e-300)
    return outputs


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("arithmetic", [BLAS, ORDERED], ids=lambda arithmetic: arithmetic.name)
def test_dense_is_the_softmax_as_it_is_written(dtype, arithmetic):
    case = heads(1, dtype, queries=5, keys=37, head_dim=8)
    np.testing.assert_allclose(dense(*case, arithmetic), in_float64(*case), atol=TOLERANCE[dtype], rtol=0)


@pytest.mark.parametrize("dtype", TOLERANCE)
@given(
    seed=st.integers(0, 2**32),
    keys=st.integers(1, 80),
    decoded=st.integers(1, 8),
    head_dim=st.sampled_from([2, 4, 16]),
    spread=st.floats(0, 4),
    chunks=st.lists(st.integers(1, 90), min_size=1, max_size=12),
)
def test_streamed_equals_dense_for_any_chunks(dtype, seed, keys, decoded, head_dim, spread, chunks):
    case = heads(seed, dtype, min(keys, decoded), keys, head_dim, spread)
    np.testing.assert_allclose(streamed(chunks)(*case, BLAS), dense(*case, BLAS), atol=TOLERANCE[dtype], rtol=0)


def test_one_chunk_is_dense_bit_by_bit():
    case = heads(2, np.float32, queries=3, keys=40, head_dim=16)
    assert streamed([40])(*case, BLAS).tobytes() == dense(*case, BLAS).tobytes()


def test_without_rescaling_to_the_common_peak_it_is_wrong():
    """The opposite: masses and weighted sums of chunks added as they are, each relative to its own peak."""
    queries, keys, values, visible = heads(3, np.float64, queries=1, keys=48, head_dim=16)
    parts = [
        partial(queries, keys[:, first:stop], values[:, first:stop], visible[:, :, first:stop], BLAS)
        for first, stop in chunk_bounds(48, [16])
    ]
    unscaled = Partial(parts[0].peak, sum(part.mass for part in parts), sum(part.weighted for part in parts))
    expected = dense(queries, keys, values, visible, BLAS)
    assert np.abs(finish(unscaled) - expected).max() > 0.01
    joined = join(join(parts[0], parts[1], BLAS), parts[2], BLAS)
    np.testing.assert_allclose(finish(joined), expected, atol=1e-12, rtol=0)


def test_chunks_of_which_nothing_is_visible_count_nothing():
    queries, keys, values, visible = heads(4, np.float64, queries=2, keys=32, head_dim=4)
    visible = visible.copy()
    visible[:, :, :16] = False
    hidden_first = streamed([8])(queries, keys, values, visible, BLAS)
    np.testing.assert_allclose(hidden_first, in_float64(queries, keys, values, visible), atol=1e-12, rtol=0)
    visible[:] = False
    assert not streamed([8])(queries, keys, values, visible, BLAS).any()
    assert not dense(queries, keys, values, visible, ORDERED).any()


def test_scores_too_large_to_exponentiate():
    queries, keys, values, visible = heads(5, np.float32, queries=1, keys=32, head_dim=4)
    outputs = streamed([5])(queries * 1000, keys, values, visible, BLAS)
    assert np.isfinite(outputs).all()
    np.testing.assert_allclose(outputs, dense(queries * 1000, keys, values, visible, BLAS), atol=1e-3)


def test_chunk_bounds_repeat_the_last_size():
    assert chunk_bounds(10, [1, 4]) == [(0, 1), (1, 5), (5, 9), (9, 10)]
    assert chunk_bounds(0, [3]) == []
    for wrong in ([], [3, 0]):
        with pytest.raises(ValueError, match="positive sizes"):
            chunk_bounds(10, wrong)
