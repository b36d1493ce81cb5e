"""The passage on public models, rendered from the numbers of the catalogue alone: one table, a row a model."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from kvtier.analytic.catalogue import Catalogue
from kvtier.analytic.numbers.size import numbers
from kvtier.analytic.tables.size import build
from kvtier.publish import documents
from kvtier.publish.ledger import Ledger

TEMPLATE = Path(documents.__file__).with_name("templates") / "CANONICAL-NUMBERS.md.j2"


@pytest.fixture(scope="module")
def passage(tmp_path_factory):
    catalogue = Catalogue()
    found = numbers(catalogue, build(catalogue, [8192, 32_768, 131_072], 8))
    records = {number.key: asdict(number) | {"display": number.display, "rule": "tabulate_models", "params": {}} for number in found}
    text = re.search(r"### KV size of public models\n.*?(?=\n### )", TEMPLATE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path_factory.mktemp("templates") / "passage.j2"
    path.write_text(text[0], encoding="utf-8")
    return documents.render(path, Ledger("numbers.json", records))


def test_one_table_with_a_row_a_model(passage):
    (table,) = re.findall(r"(?:^\|.*\n)+", passage, re.MULTILINE)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert {len(row) for row in rows} == {10}
    assert sorted(row[0] for row in rows[2:]) == sorted(layout.model for layout in Catalogue().values())


@pytest.mark.parametrize(
    "row",
    [
        "| DeepSeek-V3 | 70,272 B | 0.54 GiB | 2.14 GiB | 8.58 GiB |  |  |  | 70,272 B | 562,176 B |",
        "| Mistral-7B-v0.1 | 131,072 B | 0.50 GiB | 0.50 GiB |  | 1.00 GiB | 4.00 GiB |  | 16,384 B | 131,072 B |",
        "| Falcon-7B | 8,192 B |  |  |  |  |  |  |  |  |",
    ],
)
def test_rows(passage, row):
    assert row in passage.splitlines()
