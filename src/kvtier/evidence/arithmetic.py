"""Expressions over numbers and claims: enough for a derivation, and nothing else.

``num("key")`` is a value of the ledger, ``low("key")`` and ``high("key")`` the ends of its interval; ``printed("claim.id")`` is the first
printed value of a claim (``printed("claim.id", 1)`` the second);
literals, ``+ - * / // % **``, comparisons, ``and or not``, parentheses, ``round abs min max log exp``.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from kvtier.errors import InputError

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "round": round,
    "abs": abs,
    "min": min,
    "max": max,
    "log": math.log,
    "exp": math.exp,
    "floor": math.floor,
}


@dataclass(frozen=True)
class Values:
    """What an expression may refer to: numbers by key, printed values by claim, and intervals of numbers by key."""

    numbers: Mapping[str, float]
    claims: Mapping[str, tuple[Decimal, ...]]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def end(self, key: str, which: int, source: str) -> float:
        """Low (0) or high (1) end of a number's interval.

        Raises
        ------
        InputError
            If the ledger lacks the key or the number has no interval.
        """
        self.num(key, source)
        if key not in self.intervals:
            raise InputError(source, f"interval of {key!r}", "none", "a number that has one")
        return self.intervals[key][which]

    def num(self, key: str, source: str) -> float:
        """Value of a number.

        Raises
        ------
        InputError
            If the ledger lacks the key.
        """
        if key not in self.numbers:
            raise InputError(source, f"num({key!r})", "no such key", "a key of the ledger")
        return self.numbers[key]

    def printed(self, claim: str, position: int, source: str) -> float:
        """One printed value of a claim.

        Raises
        ------
        InputError
            If there is no such claim, or it prints fewer numbers.
        """
        if claim not in self.claims or not 0 <= position < len(self.claims[claim]):
            raise InputError(source, f"printed({claim!r}, {position})", "no such claim or value", "a claim that prints it")
        return float(self.claims[claim][position])


def evaluate(expression: str, values: Values, source: str) -> Any:
    """Value of an expression.

    Parameters
    ----------
    expression : str
    values : Values
    source : str
        Who asks, for messages.

    Raises
    ------
    InputError
        If the expression does not parse, uses anything but what this module's text lists, refers to what does not exist, or fails.
    """
    try:
        return _value(ast.parse(expression, mode="eval").body, values, source)
    except InputError:
        raise
    except (SyntaxError, ArithmeticError, TypeError, ValueError, OverflowError) as error:
        raise InputError(source, f"expression {expression!r}", error, "arithmetic over numbers and claims") from None


def _value(node: ast.AST, values: Values, source: str) -> Any:
    def of(child: ast.AST) -> Any:
        return _value(child, values, source)

    match node:
        case ast.Constant(value=int() | float() | str() as constant):
            return constant
        case ast.BinOp(left, operation, right) if type(operation) in BINARY:
            return BINARY[type(operation)](of(left), of(right))
        case ast.UnaryOp(operation, operand) if type(operation) in UNARY:
            return UNARY[type(operation)](of(operand))
        case ast.BoolOp(operation, operands):
            return (all if isinstance(operation, ast.And) else any)(of(operand) for operand in operands)
        case ast.Compare(left, operations, others) if all(type(operation) in COMPARE for operation in operations):
            terms = [of(left), *map(of, others)]
            return all(COMPARE[type(operation)](terms[i], terms[i + 1]) for i, operation in enumerate(operations))
        case ast.Call(ast.Name("num"), [key], []):
            return values.num(of(key), source)
        case ast.Call(ast.Name("low"), [key], []):
            return values.end(of(key), 0, source)
        case ast.Call(ast.Name("high"), [key], []):
            return values.end(of(key), 1, source)
        case ast.Call(ast.Name("printed"), [claim], []):
            return values.printed(of(claim), 0, source)
        case ast.Call(ast.Name("printed"), [claim, position], []):
            return values.printed(of(claim), of(position), source)
        case ast.Call(ast.Name(name), arguments, []) if name in FUNCTIONS:
            return FUNCTIONS[name](*map(of, arguments))
    raise InputError(source, "expression", ast.unparse(node), "arithmetic over numbers and claims")


INSERTED = re.compile(r"\{\{(.+?)\|\s*(-?\d+)\s*\}\}")


def fill(text: str, values: Values, source: str) -> str:
    """A sentence with its values: ``{{ expression | decimals }}`` becomes the value of the expression, so rounded.

    Parameters
    ----------
    text : str
        Such as ``without it the slope is {{ num("fit.slope") | 1 }} ms``.
    values : Values
    source : str
        Who asks, for messages.

    Raises
    ------
    InputError
        If an expression cannot be evaluated, or the text has braces of another form.
    """
    filled = INSERTED.sub(lambda match: f"{evaluate(match[1].strip(), values, source):,.{int(match[2])}f}".replace("-", "−"), text)
    if "{{" in filled or "}}" in filled:
        raise InputError(source, "text", filled, "insertions of the form {{ expression | decimals }}")
    return filled


def references(expression: str) -> list[str]:
    """Keys of the numbers that an expression refers to."""
    return [
        node.args[0].value
        for node in ast.walk(ast.parse(expression, mode="eval"))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("num", "low", "high")
        and isinstance(node.args[0], ast.Constant)
    ]
