"""Effects in closed form: sums, products, either-or, and the axioms of the Shapley value."""

from fractions import Fraction
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.simulate.factorial import Factorial, cells

ABC = ("a", "b", "c")
SIX = tuple("abcdef")


def responses(factors):
    count = 2 ** len(factors)
    values = st.lists(st.floats(-1e6, 1e6), min_size=count, max_size=count)
    return values.map(lambda found: dict(zip(cells(factors), found, strict=True)))


def test_cells_are_all_sets_none_first():
    assert [sorted(on) for on in cells(("a", "b"))] == [[], ["a"], ["b"], ["a", "b"]]
    assert len(set(cells(SIX))) == 64


def test_a_sum_has_no_interactions():
    adds = dict(zip(SIX, (8, 7, 6, 4, 0, -3), strict=True))
    ladder = Factorial(SIX, {on: 72 + sum(adds[factor] for factor in on) for on in cells(SIX)})
    for factor, value in adds.items():
        assert ladder.main(factor) == ladder.shapley(factor) == ladder.last(factor) == ladder.gain({factor}) == value
    assert all(ladder.interaction(*pair) == 0 for pair in combinations(SIX, 2))
    assert ladder.gap(SIX) == 0
    assert ladder.total == 22


def test_either_or():
    xor = Factorial(("a", "b"), {on: len(on) % 2 for on in cells(("a", "b"))})
    assert xor.main("a") == xor.main("b") == 0
    assert xor.shapley("a") == xor.shapley("b") == 0
    assert xor.interaction("a", "b") == -2
    assert xor.gap(("a", "b")) == 2


def test_a_product_is_shared_by_its_factors():
    product = Factorial(ABC, {on: 12 * ({"a", "b"} <= on) for on in cells(ABC)})
    assert [product.shapley(factor) for factor in ABC] == [6, 6, 0]
    assert [product.main(factor) for factor in ABC] == [6, 6, 0]
    assert product.interaction("a", "b") == 12
    assert product.interaction("a", "c") == 0
    assert product.gap(ABC) == -12


def test_overlap_is_seen_by_the_sum_of_single_gains():
    best = Factorial(("a", "b"), {frozenset(): 72.0, frozenset("a"): 80.0, frozenset("b"): 79.0, frozenset("ab"): 80.0})
    assert best.gap(("a", "b")) == 7
    assert (best.shapley("a"), best.shapley("b")) == (Fraction(9, 2), Fraction(7, 2))


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(responses(SIX))
def test_shares_sum_to_the_total_exactly(response):
    found = Factorial(SIX, response)
    assert sum(found.shapley(factor) for factor in SIX) == found.total


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(responses(ABC))
def test_share_is_the_mean_over_orders(response):
    found = Factorial(ABC, response)
    for factor in ABC:
        steps = []
        for order in permutations(ABC):
            before = frozenset(order[: order.index(factor)])
            steps.append(Fraction(response[before | {factor}]) - Fraction(response[before]))
        assert found.shapley(factor) == sum(steps) / len(steps)
    assert found.interaction("a", "b") == found.interaction("b", "a")


@pytest.mark.parametrize("wrong", [{}, {frozenset(): 1.0, frozenset("b"): 1.0}, {frozenset(): 1.0, frozenset("a"): float("nan")}])
def test_refuses_what_is_no_factorial(wrong):
    with pytest.raises(ValueError, match="cell"):
        Factorial(("a",), wrong)


def test_refuses_an_interaction_with_itself():
    with pytest.raises(ValueError, match="two factors"):
        Factorial(("a",), {frozenset(): 1, frozenset("a"): 2}).interaction("a", "a")
