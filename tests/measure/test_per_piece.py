import numpy as np
import pytest

from kvtier.errors import InputError
from kvtier.measure import per_piece
from kvtier.measure.uncertainty import student

SIZES = [2.0**k for k in range(12, 27, 2)]


def test_setup_and_bandwidth_of_an_exact_line():
    line = per_piece.fit(SIZES, [3 + size / 5e3 for size in SIZES])
    assert line.setup_us.value == pytest.approx(3, rel=1e-12)
    assert line.gbps.value == pytest.approx(5, rel=1e-12)
    assert line.at(2**20).value == pytest.approx(3 + 2**20 / 5e3, rel=1e-12)
    assert line.largest_deviation < 1e-12


def test_equals_weighted_least_squares_by_another_route():
    noise = np.array([1.04, 0.97, 1.01, 0.95, 1.02, 1.03, 0.98, 1.01])
    us = noise * (3 + np.array(SIZES) / 5e3)
    line = per_piece.fit(SIZES, us.tolist())
    design = np.stack([1 / us, np.array(SIZES) / us], axis=1)
    found, squares, *_ = np.linalg.lstsq(design, np.ones(len(us)))
    covariance = np.linalg.inv(design.T @ design) * squares[0] / (len(us) - 2)
    assert [line.setup_us.value, line.us_per_byte.value] == pytest.approx(found, rel=1e-6)
    assert [line.setup_us.standard_error, line.us_per_byte.standard_error] == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-6)
    assert line.covariance == pytest.approx(covariance[0, 1], rel=1e-6)
    at = np.array([1, 2**19])
    assert line.at(2**19).standard_error == pytest.approx(np.sqrt(at @ covariance @ at), rel=1e-6)


def test_the_setup_is_seen_beside_times_ten_thousand_times_its_size():
    """Plain least squares would drown it: a percent of the largest time is fifty times the setup."""
    us = [3 + size / 5e3 for size in SIZES]
    us[-1] *= 1.01
    line = per_piece.fit(SIZES, us)
    assert line.setup_us.value == pytest.approx(3, rel=0.02)
    assert np.polyfit(SIZES, us, 1)[1] < 0


def test_the_interval_of_the_bandwidth_is_that_of_the_slope_turned_over():
    us = [(3 + size / 5e3) * wobble for size, wobble in zip(SIZES, [1.04, 0.97, 1.01, 0.95, 1.02, 1.03, 0.98, 1.01], strict=True)]
    line = per_piece.fit(SIZES, us)
    ends = student(line.us_per_byte, line.freedom)
    assert line.gbps.low == pytest.approx(1e-3 / ends.high)
    assert line.gbps.high == pytest.approx(1e-3 / ends.low)


def test_no_bandwidth_where_time_does_not_grow_with_size():
    line = per_piece.fit([1e3, 2e3, 4e3, 8e3], [10.0, 9.0, 11.0, 10.0], "a path")
    with pytest.raises(InputError, match="a path: interval of a time"):
        _ = line.gbps


@pytest.mark.parametrize(
    ("sizes", "us", "said"),
    [
        ([1.0, 2.0], [1.0, 2.0], "a path: sizes: found 2, expected at least 3"),
        ([1.0, 2.0, 2.0], [1.0, 2.0, 3.0], "expected each size once"),
        ([1.0, 2.0, 3.0], [1.0, 0.0, 3.0], "a path: time, row 2: found 0.0, expected a finite value above 0"),
        ([1.0, 2.0, 3.0], [1.0, 2.0], "3 sizes and 2 times"),
    ],
)
def test_rows_that_give_no_line_are_refused(sizes, us, said):
    with pytest.raises(InputError, match=said):
        per_piece.fit(sizes, us, "a path")
