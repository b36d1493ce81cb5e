"""A pool of another type, tiers that count one memory twice and sizes of the wrong scope are planted and refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvtier.audit.residency import RankSizesConfused, TiersExceedMemory, UnexpectedPool, kv_pool, per_rank, unified_tiers
from kvtier.errors import InputError
from kvtier.units import GIB

LLAMA3_70B_FP16, LLAMA3_70B_FP8 = 327_680, 163_840

SIZES = st.integers(1, 10**15)


def test_refuses_fp8_accepted_and_fp16_allocated():
    message = r"^serve: KV pool: found 327,680 B a token, the size of float16 or bfloat16, expected 163,840 B a token as float8$"
    with pytest.raises(UnexpectedPool, match=message):
        kv_pool(1000 * LLAMA3_70B_FP16, 1000, LLAMA3_70B_FP8, "float8", "serve")


def test_refuses_fp16_accepted_and_fp32_allocated():
    with pytest.raises(UnexpectedPool, match=r"found 655,360 B a token, the size of float32, expected 327,680 B a token as float16"):
        kv_pool(1000 * 2 * LLAMA3_70B_FP16, 1000, LLAMA3_70B_FP16, "float16")


def test_names_no_type_where_none_fits():
    with pytest.raises(UnexpectedPool, match=r"found 400,000 B a token, expected 327,680 B"):
        kv_pool(400_000_000, 1000, LLAMA3_70B_FP16, "bfloat16")


def test_a_pool_of_its_type_passes():
    checked = kv_pool(170 * GIB, 170 * GIB // LLAMA3_70B_FP8, LLAMA3_70B_FP8, "float8", "serve")
    assert checked.subject == "KV pool of serve"
    assert checked.value == pytest.approx(LLAMA3_70B_FP8)
    assert checked.value < checked.bound


@given(tokens=st.integers(1, 10**9), bytes_per_token=st.integers(50, 10**7))
@example(tokens=10**9, bytes_per_token=10**7)
def test_the_edge_of_the_pool_is_exact(tokens, bytes_per_token):
    """2 % of the pool rounded down passes above and below; one byte more does not."""
    exact = tokens * bytes_per_token
    room = exact // 50
    for pool_bytes in (exact - room, exact + room):
        assert kv_pool(pool_bytes, tokens, bytes_per_token, "float16").value == pool_bytes / tokens
    for pool_bytes in (exact - room - 1, exact + room + 1):
        with pytest.raises(UnexpectedPool):
            kv_pool(pool_bytes, tokens, bytes_per_token, "float16")


@pytest.mark.parametrize(
    ("pool_bytes", "tokens", "bytes_per_token", "dtype", "message"),
    [
        (float("nan"), 1, 100, "float16", "pool_bytes: found nan, expected a finite number above 0 B"),
        (float("inf"), 1, 100, "float16", "pool_bytes: found inf"),
        (-100, 1, 100, "float16", "pool_bytes: found -100"),
        (None, 1, 100, "float16", "pool_bytes: found None"),
        (100, 0, 100, "float16", "tokens: found 0, expected a whole number of 1 or more"),
        (100, 1.0, 100, "float16", "tokens: found 1.0"),
        (100, 1, float("nan"), "float16", "bytes_per_token: found nan"),
        (100, 1, 100, "fp8", "dtype: found fp8, expected one of float32, float16, bfloat16, float8"),
    ],
)
def test_refuses_what_is_no_pool(pool_bytes, tokens, bytes_per_token, dtype, message):
    with pytest.raises(InputError, match=message):
        kv_pool(pool_bytes, tokens, bytes_per_token, dtype)


def test_refuses_tiers_that_count_one_memory_twice():
    """The GB10 has 128 GiB for both processors: 100 for the GPU and 64 for the host do not fit."""
    message = (
        r"^GB10: tiers: found 164\.00 GiB \(GPU 100\.00 GiB, host 64\.00 GiB\), 38,654,705,664 B too many, "
        r"expected no more than the 128\.00 GiB that they share$"
    )
    with pytest.raises(TiersExceedMemory, match=message):
        unified_tiers({"GPU": 100 * GIB, "host": 64 * GIB}, 128 * GIB, "GB10")


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 10**18), min_size=1).filter(lambda tiers: sum(tiers.values()) > 0))
def test_tiers_may_fill_the_memory_to_the_byte(tiers):
    """Where a float would not see one byte in 10^18."""
    summed = sum(tiers.values())
    checked = unified_tiers(tiers, summed)
    assert checked.value == checked.bound
    if summed > 1:
        with pytest.raises(TiersExceedMemory, match="1 B too many"):
            unified_tiers(tiers, summed - 1)


@pytest.mark.parametrize(
    ("tiers", "memory_bytes", "message"),
    [
        ({}, 1, "tiers: found none"),
        ({"GPU": -1}, 1, "tier GPU: found -1"),
        ({"GPU": float("nan")}, 1, "tier GPU: found nan"),
        ({"GPU": 1}, 0, "memory_bytes: found 0"),
        ({"GPU": 1}, float("nan"), "memory_bytes: found nan"),
    ],
)
def test_refuses_what_are_no_tiers(tiers, memory_bytes, message):
    with pytest.raises(InputError, match=message):
        unified_tiers(tiers, memory_bytes)


def test_refuses_the_size_of_the_host_taken_for_that_of_each_rank():
    """40 GiB asked for a host of 4 ranks, of which each allocates 40."""
    message = r"^serve: rank sizes: found 160\.00 GiB over 4 ranks: the size of the host taken for that of each rank, expected 40\.00 GiB$"
    with pytest.raises(RankSizesConfused, match=message):
        per_rank([40 * GIB] * 4, 40 * GIB, 0, "serve")


def test_refuses_the_size_of_one_rank_taken_for_that_of_the_host():
    """40 GiB asked for each of 4 ranks, which divide them."""
    with pytest.raises(
        RankSizesConfused, match=r"found 40\.00 GiB over 4 ranks: the size of one rank taken for that of the host, expected 160\.00 GiB"
    ):
        per_rank([10 * GIB] * 4, 160 * GIB, 0)


def test_replicated_bytes_count_once_a_rank():
    """Weights of 14 GiB over 2 ranks, of which embeddings of 2 GiB lie on both."""
    checked = per_rank([8 * GIB, 8 * GIB], 14 * GIB, 2 * GIB, "weights")
    assert (checked.subject, checked.value) == ("ranks of weights", 16.0)
    with pytest.raises(RankSizesConfused, match=r"found 14\.00 GiB over 2 ranks, expected 16\.00 GiB"):
        per_rank([7 * GIB, 7 * GIB], 14 * GIB, 2 * GIB)


def test_refuses_a_rank_without_its_copy():
    with pytest.raises(RankSizesConfused, match=r"rank 1: found 1\.00 GiB, expected at least the 2\.00 GiB that each rank holds"):
        per_rank([15 * GIB, GIB], 14 * GIB, 2 * GIB)


@given(shares=st.lists(SIZES, min_size=1, max_size=16), replicated=st.integers(0, 10**15))
def test_any_sharding_passes_and_both_confusions_are_named(shares, replicated):
    ranks = len(shares)
    whole = sum(shares) + replicated
    assert per_rank([share + replicated for share in shares], whole, replicated).unit == "GiB"
    if ranks > 1:
        host = whole + (ranks - 1) * replicated
        with pytest.raises(RankSizesConfused, match="the size of the host taken for that of each rank"):
            per_rank([host] * ranks, whole, replicated)
        with pytest.raises(RankSizesConfused, match="the size of one rank taken for that of the host"):
            per_rank(shares, ranks * sum(shares), 0)


@given(whole=st.integers(50, 10**15), ranks=st.integers(1, 8))
def test_the_edge_of_the_ranks_is_exact(whole, ranks):
    def shared(summed):
        return [summed // ranks + (rank < summed % ranks) for rank in range(ranks)]

    room = whole // 50
    for summed in (whole - room, whole + room):
        assert per_rank(shared(summed), whole, 0).value == pytest.approx(summed / GIB)
    for summed in (whole - room - 1, whole + room + 1):
        with pytest.raises(RankSizesConfused):
            per_rank(shared(summed), whole, 0)


def test_one_rank_confuses_nothing():
    with pytest.raises(RankSizesConfused, match=r"found 2\.00 GiB over 1 ranks, expected 1\.00 GiB$"):
        per_rank([2 * GIB], GIB, 0)


@pytest.mark.parametrize(
    ("rank_bytes", "whole_bytes", "replicated_bytes", "message"),
    [
        ([], 1, 0, "ranks: found none"),
        ([-1], 1, 0, "rank 0: found -1"),
        ([1, float("nan")], 1, 0, "rank 1: found nan"),
        ([1], 0, 0, "whole_bytes: found 0"),
        ([1], 1, -1, "replicated_bytes: found -1"),
        ([1], 1, 2, "replicated_bytes: found 2 B, expected no more than the whole, 1 B"),
    ],
)
def test_refuses_what_are_no_ranks(rank_bytes, whole_bytes, replicated_bytes, message):
    with pytest.raises(InputError, match=message):
        per_rank(rank_bytes, whole_bytes, replicated_bytes)
