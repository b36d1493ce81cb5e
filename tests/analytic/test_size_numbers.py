"""The table of the catalogue and its numbers, with what documents rely on."""

import pytest

from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.numbers.size import numbers
from kvtier.analytic.tables.size import SIZE, build
from kvtier.evidence.labels import Label, Status

CONTEXTS = [8192, 32_768, 131_072]


@pytest.fixture(scope="module")
def catalogue():
    return Catalogue()


@pytest.fixture(scope="module")
def tables(catalogue):
    return build(catalogue, CONTEXTS, 8)


@pytest.fixture(scope="module")
def ledger(catalogue, tables):
    found = list(numbers(catalogue, tables))
    assert len({number.key for number in found}) == len(found)
    return {number.key: number for number in found}


def test_table_is_the_declared_one(catalogue, tables):
    frame = tables["size"]
    assert dict(frame.schema) == SIZE.columns
    assert frame.height == len(catalogue) * len(CONTEXTS)
    assert (frame["sequence_bytes"] <= frame["paged_bytes"]).all()


@pytest.mark.parametrize(
    ("key", "display"),
    [
        ("llama3_1_8b.bytes_per_token", "131,072"),
        ("llama3_1_8b.128k.gib", "16.00"),
        ("llama3_1_8b.tp8_bytes_per_token", "16,384"),
        ("deepseek_v3.tp8_bytes_per_token", "70,272"),
        ("deepseek_v3.tp8_all_bytes_per_token", "562,176"),
        ("gemma2_27b.8k.gib", "2.16"),
        ("gemma2_27b.8k.paged_gib", "2.88"),
        ("mistral_7b_v0_1.32k.gib", "0.50"),
        ("mistral_7b_v0_1.32k.paged_gib", "4.00"),
        ("mistral_7b_v0_1.beyond_windows_bytes_per_token", "0"),
        ("gpt_oss_120b.beyond_windows_bytes_per_token", "36,864"),
    ],
)
def test_number_as_printed(ledger, key, display):
    assert ledger[f"analytic.size.{key}"].display == display


@pytest.mark.parametrize(
    "key",
    [
        "llama3_1_8b.8k.paged_gib",  # no layer has a window
        "llama3_1_8b.beyond_windows_bytes_per_token",
        "llama2_7b.8k.gib",  # above its context
        "qwen2_5_7b.tp8_bytes_per_token",  # 28 query heads on 8 ranks
    ],
)
def test_what_does_not_exist_has_no_number(ledger, key):
    assert f"analytic.size.{key.split('.')[0]}.bytes_per_token" in ledger
    assert f"analytic.size.{key}" not in ledger


def test_definitions_begin_with_the_name_of_the_model(catalogue, ledger):
    for key, number in ledger.items():
        assert number.definition.startswith(f"{catalogue[key.split('.')[2]].model}: ")
        assert (number.label, number.status) == (Label.ANALYTICAL, Status.STANDS)
    assert not any(":" in layout.model for layout in catalogue.values())
