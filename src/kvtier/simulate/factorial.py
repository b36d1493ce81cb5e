"""A full two-level factorial: what each factor adds, what two add together, and whether gains add up.

A response is given for every set of factors that are on, 2^n of them. Values enter as exact fractions, so what is equal in algebra is
equal here: Shapley shares sum to the total gain, and a response that is a sum over its factors has no interactions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

On = frozenset[str]
"""The factors that are on."""


def cells(factors: Sequence[str]) -> Iterator[On]:
    """Every set of factors, none first, all last."""
    for size in range(len(factors) + 1):
        yield from map(frozenset, combinations(factors, size))


class Factorial:
    """The effects in one response.

    Parameters
    ----------
    factors : sequence of str
    response : mapping of frozenset to number
        Value of every set in :func:`cells`.

    Raises
    ------
    ValueError
        If a cell is missing, unknown or not a finite number.
    """

    def __init__(self, factors: Sequence[str], response: Mapping[On, float | Fraction]) -> None:
        self.factors = tuple(factors)
        wanted = set(cells(self.factors))
        if odd := wanted ^ response.keys():
            cell = min(odd, key=lambda on: (len(on), sorted(on)))
            raise ValueError(f"cell {sorted(cell)}: {'missing' if cell in wanted else 'unknown'}; expected {len(wanted)} cells")
        for on, value in response.items():
            if not math.isfinite(value):
                raise ValueError(f"cell {sorted(on)}: found {value}, expected a finite number")
        self._value = {on: Fraction(value) for on, value in response.items()}

    def _without(self, *factors: str) -> Iterator[On]:
        return cells([factor for factor in self.factors if factor not in factors])

    def gain(self, factors: Collection[str]) -> Fraction:
        """What these factors add to none, all at once."""
        return self._value[frozenset(factors)] - self._value[frozenset()]

    @property
    def total(self) -> Fraction:
        """What all factors add to none."""
        return self.gain(self.factors)

    def last(self, factor: str) -> Fraction:
        """What a factor adds to all the others."""
        return self.total - self.gain(set(self.factors) - {factor})

    def main(self, factor: str) -> Fraction:
        """Main effect: what a factor adds, mean over all 2^(n - 1) settings of the others."""
        steps = [self._value[on | {factor}] - self._value[on] for on in self._without(factor)]
        return sum(steps) / len(steps)

    def interaction(self, one: str, other: str) -> Fraction:
        """What one factor adds with another on, less what it adds with it off; mean over all settings of the rest.

        Twice the contrast that some texts call the interaction. Symmetric; 0 if the two act apart.

        Raises
        ------
        ValueError
            If the two are one.
        """
        if one == other:
            raise ValueError(f"interaction of {one} with itself: expected two factors")
        value, pair = self._value, {one, other}
        steps = [value[on | pair] - value[on | {one}] - value[on | {other}] + value[on] for on in self._without(one, other)]
        return sum(steps) / len(steps)

    def shapley(self, factor: str) -> Fraction:
        """Shapley share: what a factor adds when it comes, mean over all n! orders in which the factors may come.

        Exact, over all sets. The shares of all factors sum to :attr:`total` (Shapley, A value for n-person games, 1953).
        """
        n = len(self.factors)
        share = Fraction(0)
        for on in self._without(factor):
            orders = math.factorial(len(on)) * math.factorial(n - 1 - len(on))
            share += orders * (self._value[on | {factor}] - self._value[on])
        return share / math.factorial(n)

    def gap(self, factors: Collection[str]) -> Fraction:
        """Sum of what these factors add to none one by one, less what they add all at once: 0 if gains add up."""
        return sum((self.gain({factor}) for factor in factors), Fraction(0)) - self.gain(factors)
