"""Break-even of loading and recomputing: closed forms, agreement with the published arithmetic, and refusals with both times."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.analytic import breakeven, phases
from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.footprint import Footprint
from kvtier.analytic.kv_formats import FORMATS
from kvtier.analytic.layouts import Kind, LayerGroup, Layout
from kvtier.errors import InputError
from kvtier.units import GB

CATALOGUE = Catalogue()
LLAMA = CATALOGUE.find("Llama-3.1-8B")


def kv(layout, tokens):
    return Footprint(layout, FORMATS["bf16"]).sequence_bytes(tokens)


def test_at_a_measured_rate_the_context_cancels():
    """131,072 B a token at 8,000 tokens/s: 1.048576 GB/s."""
    for tokens in (1, 8192, 131_072):
        assert breakeven.from_rate(kv(LLAMA, tokens), tokens, Fraction(8_000)).bandwidth_gbps == Fraction(1_048_576, 10**6)


def test_compute_agrees_with_the_published_model(llama):
    layout = Layout("as published", (LayerGroup(Kind.FULL, 80, 8, 128),), query_heads=64, parameters=llama.parameters)
    for tokens in (1, 8192, 131_072):
        assert breakeven.prefill_flop(layout, tokens) == phases.prefill_flop(llama, tokens)


def test_attention_of_latent_layers_uses_the_sizes_that_it_computes_with():
    deepseek = CATALOGUE.find("DeepSeek-V3")
    assert breakeven.attention_flop(deepseek, 2) == 2 * 61 * 128 * (192 + 128) * 3
    assert breakeven.prefill_flop(deepseek, 1) == 2 * 37 * 10**9 + 2 * 61 * 128 * 320


def test_attention_of_windows_stops_growing_with_the_square():
    mistral = CATALOGUE.find("Mistral-7B-v0.1")
    step = breakeven.attention_flop(mistral, 20_001) - breakeven.attention_flop(mistral, 20_000)
    assert step == 4 * 32 * 32 * 128 * 4096


def test_both_take_as_long_at_the_answer():
    found = breakeven.from_compute(LLAMA, kv(LLAMA, 32_768), 32_768, Fraction(989 * 10**12), Fraction(2, 5), Fraction(1, 1000))
    assert found.load_s(found.bandwidth_gbps) == found.recompute_s
    assert found.within(found.bandwidth_gbps) == found.bandwidth_gbps


rates = st.fractions(min_value=1, max_value=10**6)


@given(st.integers(1, 2**40), st.integers(1, 10**6), rates, st.fractions(min_value=0, max_value=1))
def test_answers_are_positive_and_grow_with_the_setup(size, tokens, rate, share):
    bare = breakeven.from_rate(size, tokens, rate)
    slowed = breakeven.Breakeven(size, bare.recompute_s, share * bare.recompute_s)
    assert bare.bandwidth_gbps > 0
    if share < 1:
        assert slowed.bandwidth_gbps >= bare.bandwidth_gbps
    else:
        with pytest.raises(InputError, match="setup"):
            _ = slowed.bandwidth_gbps


@given(st.integers(1, 2**40), st.integers(1, 10**6), rates, rates)
def test_a_link_is_enough_exactly_where_it_is_faster(size, tokens, rate, link):
    found = breakeven.from_rate(size, tokens, rate)
    if found.load_s(link) <= found.recompute_s:
        assert found.within(link) <= link
    else:
        with pytest.raises(InputError, match="at most the link's"):
            found.within(link)


def test_a_longer_context_needs_less_bandwidth_when_computed():
    """KV grows with the context, attention with its square."""
    needed = [
        breakeven.from_compute(LLAMA, kv(LLAMA, tokens), tokens, Fraction(10**15), Fraction(1, 2)).bandwidth_gbps
        for tokens in (1024, 8192, 65_536)
    ]
    assert needed == sorted(needed, reverse=True)


def test_an_answer_above_the_link_says_both_times():
    found = breakeven.Breakeven(10 * GB, Fraction(1, 10))
    with pytest.raises(
        InputError, match=r"found 100 GB/s needed \(loading 156\.2 ms, recomputing 100 ms\), expected at most the link's 64"
    ) as caught:
        found.within(Fraction(64))
    assert "\n" not in str(caught.value)


def test_a_negative_answer_says_both_times():
    with pytest.raises(InputError, match=r"a setup of 200 ms, expected less than the 100 ms that recomputing takes"):
        _ = breakeven.Breakeven(GB, Fraction(1, 10), Fraction(1, 5)).bandwidth_gbps


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: breakeven.from_rate(GB, 10, Fraction(0)), "prefill rate: found 0"),
        (lambda: breakeven.from_rate(GB, 10, Fraction(-5)), "prefill rate: found -5"),
        (lambda: breakeven.from_rate(GB, 0, Fraction(5)), "context: found 0"),
        (lambda: breakeven.from_compute(LLAMA, GB, 10, Fraction(0), Fraction(1)), "peak: found 0"),
        (lambda: breakeven.from_compute(LLAMA, GB, 10, Fraction(1), Fraction(3, 2)), r"mfu: found 1\.5"),
        (lambda: breakeven.from_compute(LLAMA, GB, 10, Fraction(1), Fraction(0)), "mfu: found 0"),
        (lambda: breakeven.prefill_flop(Layout("bare", (LayerGroup(Kind.FULL, 1, 1, 1),)), 1), "parameters: found nothing"),
        (lambda: breakeven.attention_flop(Layout("bare", (LayerGroup(Kind.FULL, 1, 1, 1),)), 1), "query_heads: found nothing"),
        (
            lambda: breakeven.attention_flop(Layout("bare", (LayerGroup(Kind.LATENT, 1, latent_dim=1, rope_dim=1),), query_heads=1), 1),
            "head_dim, value_dim: found nothing",
        ),
    ],
)
def test_what_cannot_be_computed_is_refused(ask, message):
    with pytest.raises(InputError, match=message):
        ask()
