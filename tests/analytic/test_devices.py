"""What fits a device: arithmetic by hand, and what is refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier.analytic import devices
from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.footprint import Footprint
from kvtier.analytic.kv_formats import FORMATS
from kvtier.errors import InputError
from kvtier.units import GB, GIB

CATALOGUE = Catalogue()
BF16 = FORMATS["bf16"]
LLAMA = Footprint(CATALOGUE.find("Llama-3.1-8B"), BF16)


def test_devices_by_name_and_by_size():
    assert devices.device("h100").memory_bytes == 80 * GIB
    assert devices.device("RTX 4090").memory_bytes == 24 * GIB
    assert devices.device("80 GB").memory_bytes == 80 * GB
    assert devices.device("80 GiB").source == "as given"


@pytest.mark.parametrize("text", ["80", "H1000", "", "-1 GiB", "0 GiB"])
def test_unknown_devices_are_refused(text):
    with pytest.raises(InputError, match=r"--device: memory: found .*, expected a size such as 80 GiB, or "):
        devices.device(text)


def test_published_node_as_one_device():
    """320 GiB less 130.4 GiB of weights and 20 GiB of workspace holds 67 contexts of 8K and 4 of 128K (SPEC §2)."""
    node = {"memory_bytes": 320 * GIB, "weight_bytes": 140 * GB, "utilization": Fraction(1), "workspace_bytes": 20 * GIB}
    llama = Footprint(CATALOGUE.find("Llama-3-70B"), BF16)
    assert devices.fit(llama, context_tokens=8192, **node).sequences == 67
    assert devices.fit(llama, context_tokens=131_072, **node).sequences_paged == 4


def test_parts_of_the_memory():
    found = devices.fit(LLAMA, 24 * GIB, 16 * GB, 8192, workspace_bytes=GIB)
    assert found.usable_bytes == int(Fraction(9, 10) * 24 * GIB)
    assert found.kv_bytes == found.usable_bytes - 16 * GB - GIB
    assert found.blocks == found.kv_bytes // (16 * 131_072)
    assert found.tokens == 16 * found.blocks


def test_a_started_block_is_a_block():
    exactly = devices.fit(LLAMA, 4 * GIB, 0, 16_384, utilization=Fraction(1))
    one_more = devices.fit(LLAMA, 4 * GIB, 0, 16_385, utilization=Fraction(1))
    assert (exactly.sequences_paged, one_more.sequences_paged) == (2, 1)


def test_windows_and_states_count():
    mistral = devices.fit(Footprint(CATALOGUE.find("Mistral-7B-v0.1"), BF16), 16 * GIB, 0, 32_768, utilization=Fraction(1))
    assert (mistral.sequences, mistral.sequences_paged) == (32, 4)
    jamba = Footprint(CATALOGUE.find("Jamba-v0.1"), BF16)
    memory = 10 * jamba.paged_bytes(16) - 1
    assert devices.fit(jamba, memory, 0, 16, utilization=Fraction(1)).sequences_paged == 9


def test_weights_are_shared_by_the_ranks():
    dealt = Footprint(CATALOGUE.find("Llama-3-70B"), BF16, 4)
    assert devices.fit(dealt, 80 * GIB, 140 * GB, 8192).weight_bytes == 35 * GB


@given(st.integers(1, 2**40), st.integers(1, 10**6), st.integers(1, 512))
def test_what_fits_fits_and_one_more_does_not(memory, context, block):
    found = devices.fit(LLAMA, memory, 0, context, block_tokens=block, utilization=Fraction(1))
    assert found.blocks * LLAMA.block_bytes(block) <= memory < (found.blocks + 1) * LLAMA.block_bytes(block)
    assert found.sequences * LLAMA.sequence_bytes(context) <= memory < (found.sequences + 1) * LLAMA.sequence_bytes(context)
    assert found.sequences_paged <= found.sequences


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"device: found weights of .* GiB a rank and .* of workspace, expected at most ≈ 21\.6 GiB"):
        devices.fit(LLAMA, 24 * GIB, 140 * GB, 8192)


@pytest.mark.parametrize("share", [Fraction(0), Fraction(-1, 2), Fraction(11, 10)])
def test_shares_out_of_range_are_refused(share):
    with pytest.raises(InputError, match="utilization"):
        devices.fit(LLAMA, 24 * GIB, 0, 8192, utilization=share)
