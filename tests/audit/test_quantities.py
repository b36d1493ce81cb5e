"""What is no count and no positive number never reaches a comparison."""

import numpy as np
import pytest

from kvtier.audit.quantities import count, positive
from kvtier.errors import InputError


def test_integers_of_other_libraries_become_exact():
    """A sum of 64-bit integers would overflow; Python's does not."""
    found = count(np.int64(2**62), "tiers", "HBM")
    assert 4 * found == 2**64


@pytest.mark.parametrize("bad", [-1, 1.0, float("nan"), float("inf"), None, "1", True, np.float64(1)])
def test_refuses_what_is_no_count(bad):
    with pytest.raises(InputError, match=r"^tiers: HBM: found .*, expected a whole number of 0 or more$"):
        count(bad, "tiers", "HBM")


@pytest.mark.parametrize("bad", [-1.0, 0.0, float("nan"), float("inf"), None, "1"])
def test_refuses_what_is_not_positive(bad):
    with pytest.raises(InputError, match=r"^stream: time: found .*, expected a finite number above 0 s$"):
        positive(bad, "stream", "time", "s")


def test_a_positive_number_is_handed_back():
    assert positive(2.5, "stream", "time", "s") == 2.5
