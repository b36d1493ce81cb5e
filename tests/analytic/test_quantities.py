"""Sizes and counts: GiB is not GB, and nothing is guessed."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.analytic import quantities
from kvtier.errors import InputError


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("8192", 8192),
        ("131,072", 131_072),
        ("8K", 8192),
        ("128k", 131_072),
        ("1M", 1_048_576),
        (" 32 K ", 32_768),
        ("0.5K", 512),
        ("1.0", 1),
    ],
)
def test_tokens(text, tokens):
    assert quantities.tokens(text) == tokens


@pytest.mark.parametrize("text", ["", "0", "0K", "-1", "1.5", "K", "8KB", "8 G", "1e3", "nan", "inf", "٣", "1,00", "2000000M", "9" * 400])
def test_what_is_no_number_of_tokens(text):
    with pytest.raises(InputError, match="--context: tokens: found") as caught:
        quantities.tokens(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80 GiB", 80 * 2**30),
        ("80GiB", 80 * 2**30),
        ("80 GB", 80 * 10**9),
        ("24,564 MiB", 24_564 * 2**20),
        ("1.5 TB", 15 * 10**11),
        ("1 B", 1),
    ],
)
def test_sizes(text, size):
    assert quantities.size_bytes(text, "--device") == size


@pytest.mark.parametrize("text", ["80", "80 G", "80 gib", "80 Gb", "0 GB", "-80 GB", "1e2 GB", "GB", "99999999999 TiB", "0.1 B"])
def test_a_size_without_its_unit_is_no_size(text):
    with pytest.raises(InputError, match=r"--device: size: found .*, expected a size with its unit"):
        quantities.size_bytes(text, "--device")


@pytest.mark.parametrize(
    ("text", "value"), [("8.03B", 8_030_000_000), ("989T", 989 * 10**12), ("989e12", 989 * 10**12), ("0.4", Fraction(2, 5))]
)
def test_amounts(text, value):
    assert quantities.amount(text, "--flops", "a peak") == value


@pytest.mark.parametrize("text", ["", "0", "-1", "1e99", "x", "inf", "nan", "1e-3"])
def test_what_is_no_amount(text):
    with pytest.raises(InputError, match=r"--flops: value: found .*, expected a peak"):
        quantities.amount(text, "--flops", "a peak")


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (1, "1 B"),
        (1024, "1,024 B = 1 KiB"),
        (131_072, "131,072 B = 128 KiB"),
        (2**34, "17,179,869,184 B = 16 GiB ≈ 17.18 GB"),
        (10**9, "1,000,000,000 B ≈ 953.7 MiB = 1 GB"),
        (1_342 * 10**9, "1,342,000,000,000 B ≈ 1.221 TiB = 1.342 TB"),
        (5_239_963_648, "5,239,963,648 B ≈ 4.88 GiB ≈ 5.24 GB"),
    ],
)
def test_said(size, said):
    assert quantities.said(size) == said


@given(st.integers(1, 2**60))
def test_what_is_said_to_be_equal_is(size):
    for sign, value, unit in re.findall(r"([=≈]) ([\d,.]+) (\w+)", quantities.said(size)):
        again = Fraction(value.replace(",", "")) * (quantities.BINARY | quantities.DECIMAL)[unit]
        assert (again == size) == (sign == "=")
        assert abs(again - size) <= size / 1000


@given(st.fractions(min_value=0, max_value=10**12))
def test_rounding_is_within_half_a_place(value):
    text, exact = quantities.rounded(value)
    shown = Fraction(text.replace(",", ""))
    assert abs(shown - value) <= max(Fraction(1, 20_000), value / 2_000)
    assert exact == (shown == value)


@pytest.mark.parametrize("text", ["0", "0.0", " 00 "])
def test_zero_is_an_amount_where_it_may_be(text):
    assert quantities.amount_or_zero(text, "--setup-ms", "a time") == 0


@pytest.mark.parametrize("text", ["", ".", "..", "0x", "-0", "nan"])
def test_what_only_looks_like_zero_is_refused(text):
    with pytest.raises(InputError, match="--setup-ms: value"):
        quantities.amount_or_zero(text, "--setup-ms", "a time")
