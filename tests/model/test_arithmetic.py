"""One rounding on any machine: sums in ascending order, and an exponential of IEEE operations alone."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kvtier.model.arithmetic import BLAS, ORDERED, ordered_exp, ordered_matmul, ordered_total

DTYPES = (np.float32, np.float64)


def step_by_step(left, right):
    """The sum as it is written, a number at a time."""
    product = np.empty((left.shape[0], right.shape[1]), left.dtype)
    for i, j in np.ndindex(*product.shape):
        total = left[i, 0] * right[0, j]
        for k in range(1, left.shape[1]):
            total = total + left[i, k] * right[k, j]
        product[i, j] = total
    return product


@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_rounds_after_each_operation_in_ascending_order(dtype):
    rng = np.random.default_rng(1)
    left, right = rng.random((3, 200)).astype(dtype), rng.random((200, 4)).astype(dtype)
    assert ordered_matmul(left, right).tobytes() == step_by_step(left, right).tobytes()


def test_order_of_a_sum_decides_its_last_bits():
    """The opposite: the same products, summed from the last to the first, are another number, and neither is the exact one."""
    rng = np.random.default_rng(1)
    left, right = rng.random((1, 200)), rng.random((200, 1))
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(left[0].tolist(), right[:, 0].tolist(), strict=True))
    upwards, downwards = ordered_matmul(left, right)[0, 0], ordered_matmul(left[:, ::-1], right[::-1])[0, 0]
    assert upwards != downwards
    assert float(upwards) == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_does_not_depend_on_how_many_are_computed_with_it(dtype):
    rng = np.random.default_rng(2)
    left, right = rng.random((2, 1, 9, 33)).astype(dtype), rng.random((2, 3, 33, 5)).astype(dtype)
    together = ordered_matmul(left, right)
    assert together.shape == (2, 3, 9, 5)
    for row in range(9):
        assert ordered_matmul(left[:, :, row : row + 1], right).tobytes() == together[:, :, row : row + 1].tobytes()


def test_zeros_after_the_end_change_nothing():
    """What a causal mask adds to a sum: the weights of keys to come."""
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((4, 10)), rng.standard_normal((14, 3))
    padded = np.concatenate([left, np.zeros((4, 4))], axis=1)
    assert ordered_matmul(padded, right).tobytes() == ordered_matmul(left, right[:10]).tobytes()
    assert ordered_total(padded).tobytes() == ordered_total(left).tobytes()


@given(arrays(np.float64, 20, elements=st.floats(-745, 709)))
def test_exp_is_within_two_units_in_the_last_place(exponents):
    expected = np.array([math.exp(exponent) for exponent in exponents])
    assert (np.abs(ordered_exp(exponents) - expected) <= 2 * np.spacing(expected)).all()


def test_exp_at_the_ends():
    assert ordered_exp(np.array([-np.inf, -800.0, 0.0])).tolist() == [0.0, 0.0, 1.0]
    assert ordered_exp(np.array([800.0], dtype=np.float32)).tolist() == [np.inf]
    assert ordered_exp(np.array([1.5], dtype=np.float32)).dtype == np.float32
    assert np.isnan(ordered_exp(np.array([np.nan]))).all()


def test_both_arithmetics_agree_to_rounding():
    rng = np.random.default_rng(4)
    left, right = rng.standard_normal((2, 7, 50)), rng.standard_normal((2, 50, 6))
    np.testing.assert_allclose(ORDERED.matmul(left, right), BLAS.matmul(left, right), atol=1e-13)
    np.testing.assert_allclose(ORDERED.total(left), BLAS.total(left), atol=1e-13)
    np.testing.assert_allclose(ORDERED.exp(left), BLAS.exp(left), rtol=1e-15)
