"""Layouts and their footprints: closed forms, what is refused, and what holds for every layout."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.footprint import Footprint, kinds
from kvtier.analytic.kv_formats import FORMATS, WEIGHTS, Format, named
from kvtier.analytic.layouts import Kind, LayerGroup, Layout
from kvtier.errors import InputError

BF16 = FORMATS["bf16"]
CATALOGUE = Catalogue()

counts = st.integers(1, 200)
dims = st.integers(1, 512)
windowed = st.builds(
    LayerGroup, st.sampled_from([Kind.SLIDING, Kind.CHUNKED]), counts, st.just(8), dims, window_tokens=st.integers(1, 9000)
)
groups = st.one_of(
    st.builds(LayerGroup, st.just(Kind.FULL), counts, st.just(8), dims, st.none() | dims),
    windowed,
    st.builds(LayerGroup, st.just(Kind.LATENT), counts, latent_dim=dims, rope_dim=dims),
)
states = st.builds(LayerGroup, st.just(Kind.STATE), counts, state_bytes=st.none() | st.integers(1, 10**6))
layouts = st.builds(
    lambda some, more: Layout("any", (*some, *more)), st.lists(groups, min_size=1, max_size=3), st.lists(states, max_size=1)
)
formats = st.sampled_from(list(FORMATS.values()))
contexts = st.integers(1, 100_000)


@given(layouts, formats, contexts)
def test_window_aware_is_at_most_paged_and_equal_without_windows(layout, stored, tokens):
    found = Footprint(layout, stored)
    assert found.sequence_bytes(tokens) <= found.paged_bytes(tokens)
    if not layout.windowed:
        assert found.sequence_bytes(tokens) == found.paged_bytes(tokens)


@given(layouts, formats, contexts, st.integers(1, 1000))
def test_paged_is_linear_in_tokens(layout, stored, tokens, times):
    found = Footprint(layout, stored)
    grown = found.paged_bytes(times * tokens) - found.state_bytes
    assert grown == times * (found.paged_bytes(tokens) - found.state_bytes) == times * found.block_bytes(tokens)


@given(layouts, formats, contexts, st.integers(0, 1000))
def test_a_longer_context_never_needs_less(layout, stored, tokens, more):
    found = Footprint(layout, stored)
    assert found.sequence_bytes(tokens) <= found.sequence_bytes(tokens + more)


@given(layouts, formats, st.integers(0, 1000))
def test_fixed_part_and_slope_beyond_every_window(layout, stored, more):
    found = Footprint(layout, stored)
    tokens = 9000 + more
    assert found.sequence_bytes(tokens) == found.fixed_bytes + found.slope_bytes * tokens


@given(layouts, formats, st.sampled_from([1, 2, 4, 8]))
def test_ranks_sum_to_the_whole_where_heads_are_split(layout, stored, tp):
    dealt, alone = Footprint(layout, stored, tp), Footprint(layout, stored)
    latent = sum(layout.token_bytes(group, stored) for group in layout.groups if group.kind is Kind.LATENT)
    assert dealt.bytes_per_token_in_all == alone.bytes_per_token + (tp - 1) * latent


@given(layouts, formats, st.sampled_from([8, 16, 32, 64]))
def test_more_ranks_than_heads_replicate(layout, stored, tp):
    assert Footprint(layout, stored, tp).bytes_per_token == Footprint(layout, stored, 8).bytes_per_token


@given(layouts, formats, st.integers(0, 10**13))
def test_crossover_is_where_the_sequence_is_as_large_as_the_weights(layout, stored, weight_bytes):
    found = Footprint(layout, stored)
    crossing = found.crossover(weight_bytes)
    if crossing is None:
        assert found.slope_bytes == 0
        assert found.fixed_bytes < weight_bytes
        return
    below, above = int(crossing), int(crossing) + 1
    if below >= 1 and weight_bytes > found.state_bytes:
        assert found.sequence_bytes(below) <= weight_bytes
    assert found.sequence_bytes(above) >= weight_bytes
    assert found.crossover_paged(weight_bytes) <= crossing


@given(layouts)
def test_pairs_are_those_counted_one_by_one(layout):
    for group in layout.cached:
        for tokens in (1, 2, 17, 50):
            if group.kind is Kind.CHUNKED:
                seen = sum((token - 1) % group.window_tokens + 1 for token in range(1, tokens + 1))
            else:
                seen = sum(group.held_tokens(token) for token in range(1, tokens + 1))
            assert group.attended_pairs(tokens) == seen


@pytest.mark.parametrize("tp", [1, 2, 3, 4, 6, 8, 16])
def test_catalogue_is_dealt_out_or_refused(tp):
    """A rank needs whole query heads and, of the KV heads, whole ones or a whole number of replicas."""
    for layout in CATALOGUE.values():
        kv_heads = {group.kv_heads for group in layout.cached if group.kv_heads}
        if layout.query_heads % tp or any(heads % tp and tp % heads for heads in kv_heads):
            with pytest.raises(InputError, match=r"tp: found \d+, expected a divisor"):
                Footprint(layout, BF16, tp)
        else:
            assert Footprint(layout, BF16, tp).bytes_per_token_in_all >= Footprint(layout, BF16).bytes_per_token


@pytest.mark.parametrize(
    ("model", "tp", "rank", "in_all"),
    [("Llama-3.1-8B", 8, 16_384, 131_072), ("Llama-3.1-8B", 16, 16_384, 262_144), ("Qwen2.5-3B", 8, 18_432, 147_456)],
)
def test_heads_are_split_then_replicated(model, tp, rank, in_all):
    found = Footprint(CATALOGUE.find(model), BF16, tp)
    assert (found.bytes_per_token, found.bytes_per_token_in_all) == (rank, in_all)


@pytest.mark.parametrize(
    ("model", "tp", "message"),
    [
        ("Llama-3.1-8B", 3, r"model Llama-3\.1-8B: tp: found 3, expected a divisor or a multiple of its 8 KV heads"),
        ("Llama-3.1-8B", 12, "found 12, expected a divisor or a multiple of its 8 KV heads"),
        ("Qwen2.5-7B", 8, "found 8, expected a divisor of its 28 query heads"),
        ("Falcon-7B", 2, "a divisor of its 71 query heads"),
        ("DeepSeek-V3", 3, "a divisor of its 128 query heads"),
        ("Llama-3.1-8B", 0, "a whole number from 1"),
        ("Llama-3.1-8B", -8, "a whole number from 1"),
        ("Llama-3.1-8B", 2.0, "a whole number from 1"),
        ("Llama-3.1-8B", 10**30, "a whole number from 1 to 65,536"),
    ],
)
def test_ranks_that_do_not_fit_are_refused(model, tp, message):
    with pytest.raises(InputError, match=message):
        Footprint(CATALOGUE.find(model), BF16, tp)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "wide", "layers": 1}, "kind: found wide, expected one of full, sliding"),
        ({"kind": "full", "layers": 0, "kv_heads": 8, "head_dim": 64}, "full layers: layers: found 0"),
        ({"kind": "full", "layers": 2, "kv_heads": 8}, "head_dim: found nothing"),
        ({"kind": "full", "layers": 2, "kv_heads": True, "head_dim": 64}, "kv_heads: found True"),
        ({"kind": "full", "layers": 2, "kv_heads": 8.0, "head_dim": 64}, r"kv_heads: found 8\.0"),
        ({"kind": "full", "layers": 2, "kv_heads": 8, "head_dim": 2**41}, "head_dim: found 2199023255552"),
        ({"kind": "full", "layers": 2, "kv_heads": 8, "head_dim": 64, "window_tokens": 9}, "window_tokens: found 9, expected nothing"),
        ({"kind": "sliding", "layers": 2, "kv_heads": 8, "head_dim": 64}, "window_tokens: found nothing"),
        ({"kind": "latent", "layers": 2, "latent_dim": 512}, "rope_dim: found nothing"),
        ({"kind": "state", "layers": 2, "kv_heads": 2}, "kv_heads: found 2, expected nothing"),
    ],
)
def test_bad_groups_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        LayerGroup(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"groups": (LayerGroup(Kind.STATE, 3),)}, "layers: found none that caches KV"),
        ({"groups": ()}, "layers: found none that caches KV"),
        ({"query_heads": 12}, "query_heads: found 12, expected a multiple of the 8 KV heads"),
        ({"parameters": 0}, "parameters: found 0"),
        ({"parameters": 10, "active_parameters": 11}, "active_parameters: found 11, expected at most the 10"),
        ({"active_parameters": 11}, "active_parameters: found 11"),
    ],
)
def test_bad_layouts_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        Layout("some", **{"groups": (LayerGroup(Kind.FULL, 2, 8, 64),)} | fields)


@pytest.mark.parametrize("tokens", [0, -1, 1.5, True, 2**41])
def test_contexts_out_of_range_are_refused(tokens):
    found = Footprint(CATALOGUE.find("Llama-3.1-8B"), BF16)
    for ask in (found.sequence_bytes, found.paged_bytes, found.block_bytes, found.pieces):
        with pytest.raises(InputError, match="expected a whole number from 1"):
            ask(tokens)


def test_scales_are_counted():
    assert FORMATS["fp8"].vector_bytes(128) == 128
    assert FORMATS["int8"].vector_bytes(128) == 128 + 2 * 4
    assert FORMATS["int4"].vector_bytes(96) == 48 + 2 * 4
    assert FORMATS["q8_0"].vector_bytes(32) == 34
    assert FORMATS["q4_0"].vector_bytes(32) == 18
    assert WEIGHTS["mxfp4"].vector_bytes(32) == 17
    assert Format("odd", 4).vector_bytes(3) == 2
    llama = CATALOGUE.find("Llama-3.1-8B")
    assert Footprint(llama, FORMATS["int4"]).bytes_per_token == 2 * 32 * 8 * (64 + 8)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bits": 0}, "bits: found 0"),
        ({"bits": 4, "group": 0}, "group: found 0"),
        ({"bits": 4, "group": 32, "scale_bytes": -1}, "scale_bytes: found -1"),
        ({"bits": 4, "scale_bytes": 2}, "scale_bytes: found 2, expected 0, or a group"),
    ],
)
def test_bad_formats_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        Format("some", **fields)


def test_unknown_format_is_told_the_known_ones():
    assert named("FP8", FORMATS, "--dtype") is FORMATS["fp8"]
    with pytest.raises(InputError, match="--dtype: format: found fp7, expected one of fp32, bf16"):
        named("fp7", FORMATS, "--dtype")


def test_pieces_of_a_block():
    (heads,) = Footprint(CATALOGUE.find("Llama-3.1-8B"), BF16).pieces(16)
    assert (heads.layers, heads.part_bytes, heads.copies, heads.layer_bytes) == (32, (32_768, 32_768), 2, 65_536)
    (latent,) = Footprint(CATALOGUE.find("DeepSeek-V3"), BF16).pieces(16)
    assert (latent.part_bytes, latent.copies, latent.layer_bytes) == ((16_384, 2_048), 1, 18_432)


@given(layouts, formats, st.integers(1, 512))
def test_pieces_sum_to_the_block(layout, stored, tokens):
    found = Footprint(layout, stored)
    assert sum(piece.layers * piece.layer_bytes for piece in found.pieces(tokens)) == found.block_bytes(tokens)


def test_hybrids_and_cross_attention_say_what_they_keep():
    jamba = Footprint(CATALOGUE.find("Jamba-v0.1"), BF16)
    assert jamba.bytes_per_token == 16_384
    assert jamba.state_bytes == 28 * 573_440
    assert Footprint(jamba.layout, BF16, 8).state_bytes == 28 * 71_680
    vision = CATALOGUE.find("Llama-3.2-11B-Vision")
    assert vision.not_counted == ("KV of the other input in 8 cross-attention layers",)
    unknown = Layout("hybrid", (LayerGroup(Kind.FULL, 1, 1, 64), LayerGroup(Kind.STATE, 3)))
    assert unknown.not_counted == ("state of 3 layers without KV, which the source does not give",)


def test_a_window_bounds_the_cache_for_good():
    mistral = Footprint(CATALOGUE.find("Mistral-7B-v0.1"), BF16)
    assert mistral.crossover(14 * 10**9) is None
    assert mistral.crossover(mistral.window_bytes) == 4096
    assert mistral.crossover_paged(131_072 * 10) == Fraction(10)


def test_layers_in_words():
    assert kinds(CATALOGUE.find("gpt-oss-20b")) == ("24 layers: 12 sliding, 8 KV heads of 64, window 128; 12 full, 8 KV heads of 64")
    assert kinds(CATALOGUE.find("DeepSeek-V2")) == "60 layers: 60 latent, 512 + 64"
