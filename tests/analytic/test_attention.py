import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.analytic import attention
from kvtier.units import GIB, K_TOKENS, KIB


def test_softmax_of_the_published_scores_is_not_what_was_printed():
    percent = 100 * attention.softmax([0.12, 0.87, 0.23, 0.45])
    assert percent.round().tolist() == [18, 38, 20, 25]
    assert percent.sum() == pytest.approx(100)


def test_softmax_ignores_a_shift_and_does_not_overflow():
    scores = np.array([0.12, 0.87, 0.23])
    assert attention.softmax(scores + 5000) == pytest.approx(attention.softmax(scores))


def test_exponentials_are_unshifted():
    assert attention.exponentials([0.0, 1.0]).tolist() == [1.0, pytest.approx(np.e)]
    with pytest.raises(ValueError, match="finite exponential"):
        attention.exponentials([5000.0])


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]], [1.0, float("nan")], [float("inf")]])
def test_softmax_refuses_what_has_none(scores):
    with pytest.raises(ValueError, match="finite scores"):
        attention.softmax(scores)


@pytest.mark.parametrize(
    ("block", "first", "last"),
    [(7993, 127_888, 127_903), (0, 0, 15), (64, 1_024, 1_039), (5563, 89_008, 89_023), (2854, 45_664, 45_679)],
)
def test_published_block_positions(block, first, last):
    assert attention.block_positions(block, 16) == (first, last)


def test_published_state(llama):
    blocks = attention.block_count(128 * K_TOKENS, 16)
    assert blocks == 8_192
    assert blocks * 64 == 512 * KIB
    assert llama.kv_bytes(128 * K_TOKENS) == 40 * GIB
    assert round(100 * blocks * 64 / llama.kv_bytes(128 * K_TOKENS), 4) == 0.0012


def test_part_filled_block_counts():
    assert [attention.block_count(tokens, 16) for tokens in (0, 1, 16, 17)] == [0, 1, 1, 2]


def test_published_rope_frequencies():
    theta = attention.rope_frequencies(128, 10_000)
    assert theta.shape == (64,)
    assert theta[0] == 1
    assert theta[32] == pytest.approx(0.01, rel=1e-14)
    assert round(theta[63], 4) == 0.0001


def test_llama3_base_turns_slower():
    assert (attention.rope_frequencies(128, 500_000)[1:] < attention.rope_frequencies(128, 10_000)[1:]).all()
    assert attention.rope_frequencies(128, 500_000)[63] == pytest.approx(2.4551e-6, rel=1e-4)


def test_envelope_by_hand_for_two_pairs():
    """For d = 4 and base 10,000: phases 1 and 0.01, so |S_1| = 1 and |S_2| = 2 |cos(0.99 n / 2)|; the sum at distance 0 is 3."""
    for distance in (0, 1, 7):
        assert attention.rope_envelope(distance, 4, 10_000) == pytest.approx((1 + 2 * abs(np.cos(0.99 * distance / 2))) / 3)


def test_envelope_does_not_tighten_toward_zero():
    """The published text says that it does. At base 10,000 it is looser at 100,000 tokens than at 10,000."""
    near, far = (attention.rope_envelope(distance, 128, 10_000) for distance in (10_000, 100_000))
    assert far > near > 0.1


vectors = st.lists(st.floats(-10, 10), min_size=8, max_size=8)


@given(
    query=vectors, key=vectors, position=st.integers(0, 131_071), distance=st.integers(0, 131_071), base=st.sampled_from([10_000, 500_000])
)
def test_bound_holds_for_any_content(query, key, position, distance, base):
    rotated_query = attention.rope_rotate(query, position + distance, base)
    rotated_key = attention.rope_rotate(key, position, base)
    inner = abs(np.sum(rotated_query * np.conj(rotated_key)).real)
    assert inner <= attention.rope_bound(query, key, distance, base) + 1e-6


def test_bound_by_hand_for_one_pair():
    """One pair turns as a whole: |h| = |q| |k| bounds it at any distance, and is reached where the phases meet."""
    for distance in (0, 1, 1000):
        assert attention.rope_bound([3.0, 4.0], [6.0, 8.0], distance, 10_000) == pytest.approx(50)


def test_bound_by_hand_for_two_equal_pairs():
    """With h = (1, 1) the steps are 0 and 1, so the Abel bound is |S_1| + |S_2|: more than Σ |h_i| = 2 where S_2 is long."""
    for distance in (0, 1, 3, 100):
        abel = 1 + 2 * abs(np.cos(0.99 * distance / 2))
        assert attention.rope_bound([1, 0, 1, 0], [1, 0, 1, 0], distance, 10_000) == pytest.approx(min(abel, 2))


@given(query=vectors, key=vectors)
def test_rotation_to_one_position_keeps_the_inner_product(query, key):
    inner = np.sum(attention.rope_rotate(query, 1234, 10_000) * np.conj(attention.rope_rotate(key, 1234, 10_000))).real
    assert inner == pytest.approx(np.dot(query, key), abs=1e-9)


@given(distance=st.integers(-200_000, 200_000))
def test_envelope_is_even_and_at_most_one(distance):
    envelope = attention.rope_envelope(distance, 16, 10_000)
    assert 0 < envelope <= 1
    assert envelope == pytest.approx(attention.rope_envelope(-distance, 16, 10_000))


@pytest.mark.parametrize(
    "call",
    [
        lambda: attention.block_positions(-1, 16),
        lambda: attention.block_positions(0, 0),
        lambda: attention.block_count(-1, 16),
        lambda: attention.rope_frequencies(127, 10_000),
        lambda: attention.rope_frequencies(0, 10_000),
        lambda: attention.rope_frequencies(128, 1.0),
    ],
)
def test_impossible_arguments_are_refused(call):
    with pytest.raises(ValueError, match="need"):
        call()
