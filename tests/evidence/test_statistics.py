"""Intervals, tests and powers against worked examples, enumeration and known distributions; what cannot be answered is refused."""

import itertools
import json
import math
import random
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier.evidence import numbers, simulated, statistics
from kvtier.evidence.labels import Label, Status
from kvtier.evidence.numbers import Number
from kvtier.evidence.statistics import (
    Interval,
    bootstrap_interval,
    detectable,
    holm,
    paired,
    seeds_needed,
    sign_flip_p,
    standard_deviation,
    student_interval,
    student_quantile,
)

# Efron and Tibshirani (1993), table 2.1: survival of mice [days]. Davison and Hinkley (1997), example 1.1: hours between failures of
# air conditioning. Fisher, The Design of Experiments (1935), 17: Darwin's maize, crossed minus self-fertilised [1/8 inch].
MICE = [94, 197, 16, 38, 99, 141, 23]
OTHER_MICE = [52, 104, 146, 10, 51, 30, 40, 27, 46]
FAILURES = [3, 5, 7, 18, 43, 85, 91, 98, 100, 130, 230, 487]
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]

finite = st.floats(-1e6, 1e6)


def by_seed(values):
    return dict(enumerate(values, 1))


def binomial_band(n, p, odds=4.0):
    """Counts within so many standard deviations."""
    return n * p - odds * math.sqrt(n * p * (1 - p)), n * p + odds * math.sqrt(n * p * (1 - p))


# Paired differences


def test_differences_are_paired_by_seed_and_not_by_position():
    assert paired({2: 5.0, 1: 1.0}, {1: 0.5, 2: 1.0}) == {1: 0.5, 2: 4.0}


def test_mismatched_seeds_are_named():
    with pytest.raises(ValueError, match="found seeds of one side alone, 3, 7, expected the same seeds"):
        paired({1: 1.0, 3: 1.0}, {1: 1.0, 7: 1.0})


@given(st.dictionaries(st.integers(1, 99), finite, min_size=1))
def test_mean_is_that_of_the_simulated_numbers(values):
    zero = dict.fromkeys(values, 0.0)
    assert statistics.mean(values) == simulated.difference("a.b", values, zero, "hit", "").value


# Bootstrap


def test_acceleration_of_the_failures():
    """Davison and Hinkley (1997), example 5.8: a = 0.0938."""
    assert statistics._acceleration(FAILURES) == pytest.approx(0.0938, abs=5e-5)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [(MICE, 46.29, 138.29), (OTHER_MICE, 36.11, 91.78), (FAILURES, 56.92, 226.0), (MAIZE, -1.67, 36.33)],
)
def test_equals_another_implementation(values, low, high):
    """Ends by scipy 1.17.1, ``stats.bootstrap(method="BCa")``, 2,000,000 resamples; ours have 9,999 and the noise of 250 in a tail."""
    found = bootstrap_interval(by_seed(values))
    assert found.estimate == math.fsum(values) / len(values)
    spread = standard_deviation(by_seed(values)) / math.sqrt(len(values))
    assert found.low == pytest.approx(low, abs=0.1 * spread)
    assert found.high == pytest.approx(high, abs=0.15 * spread)


def test_interval_is_the_same_everywhere():
    """To the last bit, on every Python and machine: these are the ends as first computed."""
    found = bootstrap_interval(by_seed([44.184, 44.03, 44.33, 43.9, 44.551, 44.27, 43.72]))
    assert (found.low, found.high) == (43.94714285714286, 44.329)


def test_order_of_the_seeds_does_not_show():
    values = by_seed(FAILURES)
    assert bootstrap_interval(dict(reversed(values.items()))) == bootstrap_interval(values)


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 99), finite, min_size=2, max_size=9), st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_lies_in_the_range_of_the_values(values, level):
    found = bootstrap_interval(values, level, resamples=499)
    ulp = math.ulp(max(map(abs, values.values())))
    assert min(values.values()) - ulp <= found.low <= found.high <= max(values.values()) + ulp


@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-300, 5e-324])
def test_no_scale_overflows(scale):
    values = by_seed([1.0, 2.0, 3.0, 5.0, 8.0, 13.0])
    plain, found = bootstrap_interval(values), bootstrap_interval({seed: value * scale for seed, value in values.items()})
    # The smallest float has no fractions: its means are whole multiples.
    tolerance = {"abs": 0.5} if scale == 5e-324 else {"rel": 1e-12}
    assert (found.low / scale, found.high / scale) == pytest.approx((plain.low, plain.high), **tolerance)


def test_one_seed_has_no_interval():
    assert bootstrap_interval({1: 44.0}) is None
    assert student_interval({1: 44.0}) is None


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7])
def test_equal_values_have_an_interval_of_no_width(value):
    found = bootstrap_interval(dict.fromkeys(range(3), value))
    assert found.low == found.high == found.estimate == pytest.approx(value, rel=1e-15)
    assert found.method == "all seeds equal"
    assert student_interval(dict.fromkeys(range(3), value)).high == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("values", [[1.0, 4.0], [1.0, 2.0, 3.0]])
def test_two_or_three_seeds_give_their_range(values):
    found = bootstrap_interval(by_seed(values))
    assert (found.low, found.high) == (min(values), max(values))
    assert found.words.endswith(f"which can cover at most {50 if len(values) == 2 else 75} % of the time")


def test_the_level_is_within_reach_from_six_seeds_on():
    normal = random.Random(1).gauss
    assert [bootstrap_interval(by_seed([normal() for _ in range(n)])).reach >= 0.95 for n in (2, 3, 4, 5, 6, 30)] == 4 * [False] + 2 * [
        True
    ]


def test_three_seeds_give_less_than_their_range_if_one_is_far_off():
    found = bootstrap_interval({1: 1.0, 2: 2.0, 3: 9.0})
    assert (found.low, found.high) == (pytest.approx(4 / 3), 9.0)


@pytest.mark.parametrize(("n", "least", "most"), [(2, 0.5, 0.5), (3, 0.7, 0.75), (5, 0.8, 0.9375)])
def test_coverage_of_few_seeds_is_no_more_than_that_of_the_range(n, least, most):
    normal = random.Random(7).gauss
    intervals = [bootstrap_interval(by_seed([normal() for _ in range(n)]), resamples=999) for _ in range(2000)]
    assert binomial_band(2000, least)[0] <= sum(found.low <= 0 <= found.high for found in intervals) <= binomial_band(2000, most)[1]


@pytest.mark.parametrize("draw", [random.Random.gauss, lambda source: source.expovariate(1.0) - 1], ids=["normal", "exponential"])
def test_coverage_of_thirty_seeds(draw):
    """Near 95 %: no more, and no less than the 91 % that the bootstrap of a skewed mean is known for."""
    source = random.Random(7)
    intervals = [bootstrap_interval(by_seed([draw(source) for _ in range(30)]), resamples=999) for _ in range(400)]
    covered = sum(found.low <= 0 <= found.high for found in intervals)
    assert binomial_band(400, 0.91, 3)[0] <= covered <= binomial_band(400, 0.95, 3)[1]


@pytest.mark.parametrize("n", [2, 5])
def test_students_interval_covers_what_it_says(n):
    normal = random.Random(3).gauss
    intervals = [student_interval(by_seed([normal() for _ in range(n)])) for _ in range(4000)]
    low, high = binomial_band(4000, 0.95)
    assert low <= sum(found.low <= 0 <= found.high for found in intervals) <= high


def test_students_interval_by_hand():
    found = student_interval({1: 44.03, 2: 44.33})
    assert (found.low, found.high) == pytest.approx((44.18 - 12.706 * 0.15, 44.18 + 12.706 * 0.15), abs=1e-3)


@pytest.mark.parametrize("interval", [bootstrap_interval, student_interval, sign_flip_p, standard_deviation, statistics.mean])
@pytest.mark.parametrize(
    ("values", "found"),
    [({}, "found none"), ({1: 1.0, 9: math.nan}, "seed 9: found nan"), ({1: math.inf, 2: 1.0}, "seed 1: found inf"), ({4: None}, "seed 4")],
)
def test_what_is_no_value_is_refused(interval, values, found):
    with pytest.raises(ValueError, match=found):
        interval(values)


def test_a_pair_with_a_hole_is_refused():
    with pytest.raises(ValueError, match="seed 1: found nan"):
        paired({1: 1.0}, {1: math.nan})


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -1, math.nan])
def test_a_level_is_between_0_and_1(level):
    for interval in (bootstrap_interval, student_interval):
        with pytest.raises(ValueError, match="level"):
            interval({1: 1.0, 2: 2.0}, level)


def test_a_tail_needs_a_resample():
    with pytest.raises(ValueError, match=r"level 0\.999 with 999 resamples"):
        bootstrap_interval({1: 1.0, 2: 2.0}, 0.999, 999)


def test_one_seed_has_no_standard_deviation():
    with pytest.raises(ValueError, match="seed 3 alone"):
        standard_deviation({3: 1.0})


def test_standard_deviation_of_mice():
    """Efron and Tibshirani (1993), table 2.1: standard error 25.24 of 7 mice."""
    assert standard_deviation(by_seed(MICE)) / math.sqrt(7) == pytest.approx(25.24, abs=0.005)


# An interval in the ledger


@dataclass
class Job:
    rule: str = "sweep"
    params: dict = field(default_factory=dict)
    input: list = field(default_factory=list)


def test_a_number_carries_an_interval(tmp_path):
    found = bootstrap_interval(by_seed([44.184, 44.03, 44.33, 43.9, 44.551, 44.27, 43.72]))
    number = Number(
        "sim.hit", found.estimate, "%", 2, Label.SIMULATED, f"hits / reads; {found.words}", found.uncertainty, Status.PROVISIONAL
    )
    numbers.write(tmp_path / "n.json", [number], Job())
    record = json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))["sim.hit"]
    assert record["uncertainty"] == {"interval_low": 43.94714285714286, "interval_high": 44.329, "interval_level": 0.95}
    assert record["definition"] == "hits / reads; 95 % interval of 7 seeds: BCa bootstrap, 9,999 resamples"


@pytest.mark.parametrize(("low", "high"), [(math.nan, 1.0), (0.0, math.inf), (2.0, 1.0)])
def test_an_interval_has_ends_in_order(low, high):
    with pytest.raises(ValueError, match="finite ends in order"):
        Interval(1.0, low, high, (1, 2), "by hand")


# Sign flips


def test_maize_as_fisher_counted_it():
    """The Design of Experiments (1935), 21: 863 of 32,768 flips reach 314 inches/8 on each side."""
    assert sum(MAIZE) == 314
    assert sign_flip_p(by_seed(MAIZE)) == 2 * 863 / 32_768


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=9))
def test_equals_enumeration(differences):
    observed = abs(sum(differences))
    flipped = [
        abs(sum(map(math.prod, zip(signs, differences, strict=True)))) for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    assert sign_flip_p(by_seed(differences)) == sum(one >= observed for one in flipped) / len(flipped)


def test_the_last_bit_of_a_difference_breaks_no_tie():
    """0.3 - 0.2, 0.2 - 0.1 and 0.4 - 0.3 are three floats and all are 0.1: the six flips of 16 that add up to nothing are less far off."""
    differences = paired({1: 0.3, 2: 0.2, 3: 0.4, 4: 0.6}, {1: 0.2, 2: 0.1, 3: 0.3, 4: 0.7})
    assert len({abs(value) for value in differences.values()}) == 3
    assert sign_flip_p(differences) == sign_flip_p({1: 1, 2: 1, 3: 1, 4: -1}) == 10 / 16


@pytest.mark.parametrize(("n", "p"), [(1, 1.0), (2, 0.5), (5, 0.0625), (6, 0.03125), (30, 2**-29), (32, 2**-31)])
def test_smallest_p_of_so_many_seeds(n, p):
    assert sign_flip_p(by_seed([1.0 + 0.1 * seed for seed in range(n)])) == p


def test_differences_of_zero_tell_nothing():
    assert sign_flip_p(dict.fromkeys(range(8), 0.0)) == 1.0


def test_many_seeds_are_sampled_and_counted_in():
    assert sign_flip_p(dict.fromkeys(range(40), 1.0)) == 1 / 10_000
    source = random.Random(5)
    differences = by_seed([source.gauss(0.3) for _ in range(40)])
    assert sign_flip_p(differences) == sign_flip_p(dict(reversed(differences.items())))
    two_sided = math.erfc(abs(statistics.mean(differences)) * math.sqrt(40 / 2) / math.sqrt(sum(x * x for x in differences.values()) / 40))
    assert sign_flip_p(differences) == pytest.approx(two_sided, abs=0.01)


def test_no_flips_are_refused():
    with pytest.raises(ValueError, match="found 0 flips"):
        sign_flip_p({1: 1.0}, flips=0)


# Holm


def test_holm_by_hand():
    """Four times the lowest, three times the next, twice the third but not less than before, and the last raised to it."""
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=9))
def test_holm_keeps_order_and_bounds(p_values):
    adjusted = holm(p_values)
    assert list(adjusted) == list(p_values)
    ranked = sorted(p_values, key=p_values.get)
    assert [adjusted[name] for name in ranked] == sorted(adjusted.values())
    for name, p in p_values.items():
        assert p <= adjusted[name] <= min(1.0, len(p_values) * p)


@pytest.mark.parametrize("p_values", [{}, {"a": -0.1}, {"a": 1.1}, {"a": math.nan}])
def test_holm_refuses_what_is_no_family(p_values):
    with pytest.raises(ValueError, match="Holm"):
        holm(p_values)


# Power


@pytest.mark.parametrize(
    ("probability", "freedom", "t"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 4, 2.776),
        (0.975, 29, 2.045),
        (0.995, 3, 5.841),
        (0.90, 7, 1.415),
        (0.975, 120, 1.980),
        (0.975, 500, 1.965),
        (0.5, 3, 0.0),
    ],
)
def test_quantiles_of_the_tables(probability, freedom, t):
    assert student_quantile(probability, freedom) == pytest.approx(t, abs=5e-4)
    assert student_quantile(1 - probability, freedom) == pytest.approx(-t, abs=5e-4)


@pytest.mark.parametrize("probability", [0.6, 0.8, 0.975, 0.9995])
def test_sum_and_series_of_the_quantile_meet(probability):
    """Where one takes over from the other, second differences stay as small as they were."""
    at = [student_quantile(probability, freedom) for freedom in range(198, 204)]
    steps = [b - a for a, b in itertools.pairwise(at)]
    assert all(a < 0 and abs(b - a) < 0.02 * abs(a) for a, b in itertools.pairwise(steps))


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 3), (1.0, 3), (math.nan, 3), (0.9, 0)])
def test_quantiles_that_are_none(probability, freedom):
    with pytest.raises(ValueError, match="expected"):
        student_quantile(probability, freedom)


def test_power_of_the_manual():
    """R, ``power.t.test(n = 20, delta = 1, sd = 1)``: 0.8689528 at 38 degrees of freedom, without the far tail's 2e-7."""
    assert statistics._power(math.sqrt(10), student_quantile(0.975, 38), 38) == pytest.approx(0.8689530, abs=1e-7)


@pytest.mark.parametrize(("difference", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)])
def test_pairs_of_the_power_tables(difference, pairs):
    """Paired t-test, two-sided 0.05, power 0.8: Cohen's small, medium and large effect as G*Power gives them, and R's n = 9.94."""
    assert seeds_needed(difference, 1.0) == pairs
    assert detectable(1.0, pairs) <= difference < detectable(1.0, pairs - 1)


def test_what_the_published_two_seeds_could_have_seen():
    """By simulation: the t of two differences is beyond 12.706 in 80 % of draws around the difference."""
    difference = detectable(1.0, 2)
    assert difference == pytest.approx(11.55, abs=0.005)
    normal = random.Random(11).gauss
    seen = 0
    for _ in range(20_000):
        a, b = normal(difference), normal(difference)
        seen += abs(a + b) > 12.706 * abs(a - b)
    low, high = binomial_band(20_000, 0.8)
    assert low <= seen <= high


@settings(max_examples=8, deadline=None)
@given(st.floats(0.3, 30), st.floats(0.1, 10))
def test_needed_is_the_inverse_of_detectable(difference, sd):
    seeds = seeds_needed(difference, sd)
    assert seeds_needed(-difference, sd) == seeds
    assert detectable(sd, seeds) <= difference * (1 + 1e-5)
    assert seeds == 2 or detectable(sd, seeds - 1) >= difference * (1 - 1e-5)


def test_without_spread_all_is_seen():
    assert detectable(0.0, 2) == 0.0
    assert seeds_needed(0.1, 0.0) == 2


@pytest.mark.parametrize(
    "arguments",
    [{"sd_of_differences": -1.0}, {"sd_of_differences": math.nan}, {"seeds": 1}, {"power": 0.04}, {"power": 1.0}, {"level": 0.0}],
)
def test_powers_that_are_refused(arguments):
    with pytest.raises(ValueError, match="expected"):
        detectable(**{"sd_of_differences": 1.0, "seeds": 5} | arguments)


@pytest.mark.parametrize(("difference", "sd"), [(0.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (1.0, -1.0)])
def test_differences_that_no_seeds_see(difference, sd):
    with pytest.raises(ValueError, match="expected"):
        seeds_needed(difference, sd)


def test_costs_no_library():
    """The stages that import it stay quick."""
    code = "import sys, kvtier.evidence.statistics; print({'numpy', 'polars', 'scipy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
