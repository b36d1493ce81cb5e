"""e4m3, all of it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.model.fp8 import LARGEST, decode_e4m3, encode_e4m3, round_to_e4m3

CODES = np.arange(256, dtype=np.uint8)
NO_NUMBER = (CODES & 0x7F) == 0x7F
NUMBERS = decode_e4m3(CODES[~NO_NUMBER])


def by_the_format(code):
    """Sign, exponent and fraction of a code, put together in whole numbers."""
    sign, exponent, fraction = code >> 7, code >> 3 & 0b1111, code & 0b111
    magnitude = Fraction(8 + fraction, 8) * Fraction(2) ** (exponent - 7) if exponent else Fraction(fraction, 8) * Fraction(2) ** -6
    return -magnitude if sign else magnitude


def nearest(value):
    """The nearest of all 127 magnitudes; of two, the even code; beyond the largest, the largest."""
    exact = Fraction(value)
    best = min(range(0x7F), key=lambda code: (abs(by_the_format(code) - abs(exact)), code & 1))
    return float(by_the_format(best)) * (-1 if exact < 0 else 1)


def test_all_codes():
    assert decode_e4m3(CODES)[~NO_NUMBER].tolist() == [float(by_the_format(int(code))) for code in CODES[~NO_NUMBER]]
    assert np.isnan(decode_e4m3(CODES)[NO_NUMBER]).all()
    assert NO_NUMBER.sum() == 2
    assert np.nanmax(decode_e4m3(CODES)) == LARGEST == 448.0
    assert np.unique(NUMBERS[NUMBERS > 0])[0] == 2.0**-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_code_keeps_its_value_and_its_bits(dtype):
    """Rounding what the format holds exactly changes nothing: zero keeps its sign."""
    values = decode_e4m3(CODES).astype(dtype)
    assert round_to_e4m3(values).dtype == dtype
    np.testing.assert_array_equal(round_to_e4m3(values), values)
    assert encode_e4m3(values)[~NO_NUMBER].tolist() == CODES[~NO_NUMBER].tolist()
    assert decode_e4m3(encode_e4m3(values[NO_NUMBER])).tolist() == pytest.approx([np.nan, np.nan], nan_ok=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_between_all_neighbours(dtype):
    """Halfway goes to the even code, a unit in the last place off halfway to the nearer."""
    magnitudes = NUMBERS[:0x7F]
    halfway = ((magnitudes[1:] + magnitudes[:-1]) / 2).astype(dtype)
    even = np.where(CODES[:0x7E] % 2 == 0, magnitudes[:-1], magnitudes[1:])
    for sign in (dtype(1), dtype(-1)):
        assert round_to_e4m3(sign * halfway).tolist() == (sign * even).tolist()
        assert round_to_e4m3(sign * np.nextafter(halfway, dtype(0))).tolist() == (sign * magnitudes[:-1]).tolist()
        assert round_to_e4m3(sign * np.nextafter(halfway, dtype(np.inf))).tolist() == (sign * magnitudes[1:]).tolist()


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(-500, 500) | st.floats(-0.02, 0.02))
def test_nearest_of_all_values(value):
    assert round_to_e4m3(np.array([value])).tolist() == [nearest(value)]


def test_saturates():
    beyond = np.array([448.1, 464.0, 480.0, 1e30, np.inf, -np.inf])
    assert round_to_e4m3(beyond).tolist() == [448.0] * 5 + [-448.0]
    assert encode_e4m3(beyond).tolist() == [0x7E] * 5 + [0xFE]


@given(st.floats(2.0**-6, 448), st.sampled_from([1, -1]))
def test_error_is_a_sixteenth_at_most(value, sign):
    assert abs(round_to_e4m3(np.array([sign * value]))[0] - sign * value) <= value / 16


def test_cutting_off_is_not_rounding():
    """The opposite: bits dropped off the fraction give the lower neighbour, and errors of up to an eighth, all to one side."""
    values = np.linspace(1, 2, 1000, endpoint=False)
    cut = np.floor(values * 8) / 8
    assert (np.abs(cut - values) > values / 16).any()
    assert abs((cut - values).mean()) > 10 * abs((round_to_e4m3(values) - values).mean())
