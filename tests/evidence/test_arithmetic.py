from decimal import Decimal

import pytest

from kvtier.errors import InputError
from kvtier.evidence.arithmetic import Values, evaluate, fill, references

VALUES = Values({"kv.bytes": 327680, "hit": 44.18}, {"doc.split": (Decimal("97"), Decimal("2.7")), "doc.usd": (Decimal("160000"),)})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0.97 * 100 + 0.027 * 200 + 0.003 * 25000", 177.4),
        ("num('kv.bytes') // 1024", 320),
        ("printed('doc.split') + printed('doc.split', 1)", 99.7),
        ("-(2 ** 3) % 5", 2),
        ("round(log(exp(1)), 3) == 1 and not abs(-1) != 1", True),
        ("1 < num('hit') <= 44.18", True),
        ("max(1, min(3, 2)) + floor(1.9)", 3),
    ],
)
def test_arithmetic(expression, value):
    assert evaluate(expression, VALUES, "claim x") == pytest.approx(value)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "num('hit').real",
        "[1, 2]",
        "lambda: 1",
        "num(key='hit')",
        "open('x')",
        "1 +",
        "1 / 0",
        "log(-1)",
        "'a' - 1",
        "num('nothing')",
        "printed('doc.split', 2)",
        "printed('doc.none')",
        "hit",
    ],
)
def test_anything_else_is_refused_and_named(expression):
    with pytest.raises(InputError, match="claim x: "):
        evaluate(expression, VALUES, "claim x")


def test_references_are_the_keys_an_expression_reads():
    assert references("num('a.b') + max(num('c.d'), printed('x'))") == ["a.b", "c.d"]


def test_a_sentence_takes_its_values_from_the_ledger():
    text = 'It is {{ num("hit") | 1 }} %, of {{ num("kv.bytes") | 0 }} B, {{ -num("hit") | 2 }} below.'
    assert fill(text, VALUES, "claim x") == "It is 44.2 %, of 327,680 B, −44.18 below."
    assert fill("no values", VALUES, "claim x") == "no values"


@pytest.mark.parametrize("text", ['{{ num("hit") }}', '{{ num("nothing") | 1 }}', "{{ open('x') | 1 }}", "}} 1"])
def test_a_sentence_that_cannot_be_filled_is_refused(text):
    with pytest.raises(InputError, match="claim x: "):
        fill(text, VALUES, "claim x")
