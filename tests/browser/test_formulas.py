"""What a reader can move: its formulas against the Python ones, its controls, and its answers against the ledger."""

import itertools
import math
import random
import re

import checks
import ledgers
import pytest

from kvtier.analytic import capacity, scoring, tiers
from kvtier.analytic.geometry import load_models
from kvtier.analytic.inputs import load_platform
from kvtier.analytic.numbers.attention import two_digits
from kvtier.publish.ledger import Ledger
from kvtier.units import GB, GIB, K_TOKENS, KIB, MIB

pytestmark = pytest.mark.browser

WIDGETS = ("capacity", "transfer", "alpha", "priority", "policies")
SAME = {"rel": 1e-12, "abs": 0}


@pytest.fixture(scope="module")
def models():
    return load_models(ledgers.MODELS)


@pytest.fixture(scope="module")
def platform():
    return load_platform(ledgers.PLATFORM)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Path of a page of all widgets, and what it was made with."""
    return ledgers.page(tmp_path_factory.mktemp("try"), WIDGETS)


@pytest.fixture(scope="module")
def ledger(made) -> Ledger:
    return made[1].facts.ledger


@pytest.fixture
def page(opened, made):
    shown = opened(made[0])
    assert shown.uncaught() == []
    return shown


@pytest.fixture
def formula(page):
    """Values of a formula over a grid, computed in the page."""
    return lambda name, grid: page.run(
        "return arguments[1].map((row) => formulas[arguments[0]](...row))", name, [list(row) for row in grid]
    )


MOVED = """
const [name, places] = arguments;
const control = (of) => document.getElementById(`try-${name}-${of}`);
return places.map((place) => {
  // The driver sorts what it is given, so all stand at their place before the first of them says so.
  for (const [of, value] of Object.entries(place)) control(of).value = value;
  for (const of of Object.keys(place)) control(of).dispatchEvent(new Event("input", { bubbles: true }));
  const root = document.getElementById(`try-${name}`);
  return Object.fromEntries([...root.querySelectorAll("output, [aria-valuetext]")].map((one) =>
    [one.id.replace(`try-${name}-`, ""), one.getAttribute("aria-valuetext") ?? one.textContent.trim().replace(/\\s+/g, " ")]));
});
"""


@pytest.fixture
def moved(page):
    """Answers, and words of the sliders, after each of some places of a widget's controls."""
    return lambda name, places: page.run(MOVED, name, places)


# Formulas


def test_capacity_formulas(formula, models):
    grid = [(model.layers, model.kv_heads, model.head_dim, size) for model in models.values() for size in (1, 2)]
    assert formula("kvBytesPerToken", grid) == [2 * a * b * c * d for a, b, c, d in grid]
    for model in models.values():
        tokens = [2**exponent * K_TOKENS for exponent in range(11)]
        assert formula("kvBytes", [(model.kv_bytes_per_token, count) for count in tokens]) == [model.kv_bytes(count) for count in tokens]
        if model.weight_bytes is not None:
            expected = pytest.approx(capacity.crossover_tokens(model), **SAME)
            assert formula("crossoverTokens", [(model.weight_bytes, model.kv_bytes_per_token)]) == [expected]


def test_whole_contexts_where_a_quotient_would_round_up(formula):
    chance = random.Random(1)
    grid = [(chance.randrange(10**12), chance.randrange(1, 10**9)) for _ in range(500)]
    grid += [(count * size - 1, size) for count, size in ((10**6, 8_000_000_001), (3, 2**50), (999_999, 9_007_199))]
    grid += [(size * 7, size) for _, size in grid[:50]]
    assert formula("wholeContexts", grid) == [capacity.whole_contexts(*row) for row in grid]


def test_tier_formulas(formula, models):
    chance = random.Random(2)
    speeds = [chance.uniform(32, 121) for _ in range(200)] + [32, 64, 121]
    blocks = [model.kv_bytes(16) for model in models.values()]
    grid = [(block, speed) for block in blocks for speed in speeds]
    assert formula("blockTransferUs", grid) == pytest.approx([tiers.block_transfer_us(*row) for row in grid], **SAME)
    grid = [
        (parameters, 16, peak, mfu) for parameters in (7_600_000_000, 70_000_000_000) for peak in (487, 500) for mfu in (0.25, 0.4, 0.5, 1)
    ]
    assert formula("regenerationMs", grid) == pytest.approx([tiers.regeneration_ms(*row) for row in grid], **SAME)
    grid = [(chance.uniform(1, 40), chance.uniform(40, 170)) for _ in range(200)]
    assert formula("regenerateOverMove", grid) == pytest.approx([tiers.regenerate_over_move(*row) for row in grid], **SAME)
    grid = [(window, speed) for window in (0.5, 30, 50) for speed in speeds]
    assert formula("windowBytes", grid) == pytest.approx([tiers.window_bytes(*row) for row in grid], **SAME)
    grid = [(*row, 327_680) for row in grid]
    assert formula("windowPositions", grid) == pytest.approx([tiers.window_positions(*row) for row in grid], **SAME)


def test_scoring_formulas(formula):
    alphas = [0.001 * 500 ** (place / 200) for place in range(201)]
    assert formula("halfLifeSteps", [(alpha,) for alpha in alphas]) == pytest.approx(
        [scoring.half_life_steps(alpha) for alpha in alphas], **SAME
    )
    assert formula("halfLifeS", [(alpha, 10) for alpha in alphas]) == pytest.approx(
        [scoring.half_life_s(alpha, 10) for alpha in alphas], **SAME
    )
    series = ([0.04, 0.03, 0.05], [0.001, 0.0, 0.002], [1, 0, 0, 0, 1])
    for found, (alpha, attention) in zip(
        formula("emaScores", [(alpha, attention) for alpha in alphas for attention in series]),
        [(alpha, attention) for alpha in alphas for attention in series],
        strict=True,
    ):
        assert found == pytest.approx(scoring.ema_scores(alpha, attention), **SAME)


def test_priority_to_the_last_bit_and_on_the_cuts(formula, platform):
    chance = random.Random(3)
    grid = []
    for _ in range(3000):
        first, second = sorted((chance.randrange(101), chance.randrange(101)))
        weights = [first / 100, (second - first) / 100, (100 - second) / 100]
        grid.append(([chance.randrange(101) / 100 for _ in range(3)], weights))
    published = platform.value("priority_weights")
    # Sums that are 0.3 or 0.6 to the eye: here the last bit decides the tier.
    signals = itertools.product([index / 100 for index in range(0, 101, 5)], repeat=3)
    grid += [(list(each), published) for each in signals if round(scoring.priority(*each, published), 9) in (0.3, 0.6)]
    assert len(grid) > 3000
    found, cuts = formula("priority", grid), platform.value("priority_cuts")
    assert found == [scoring.priority(*signals, weights) for signals, weights in grid]
    assert formula("tierOf", [(value, cuts) for value in found]) == [scoring.tier_of(value, cuts) for value in found]


def test_exact_sum(formula):
    chance = random.Random(4)
    rows = [[chance.uniform(-1, 1) * 10 ** chance.randrange(-20, 20) for _ in range(chance.randrange(9))] for _ in range(500)]
    rows += [[0.1] * 10, [1e16, 1, 1e-16], [1e16, 1, -1e-16], [1e308, -1e308, 1], []]
    assert formula("exactSum", [(row,) for row in rows]) == [math.fsum(row) for row in rows]


def test_weights_sum_to_one_after_any_move(formula):
    chance = random.Random(5)
    weights, moves = [0.25, 0.55, 0.2], []
    for _ in range(300):
        index, value = chance.randrange(3), chance.choice([0, 1, chance.randrange(101) / 100])
        (after,) = formula("rescaled", [(weights, index, value)])
        others = [other for other in range(3) if other != index]
        assert after[index] == value
        assert sum(after) == pytest.approx(1, abs=1e-12)
        if sum(weights[other] for other in others) > 0:
            assert after[others[0]] * weights[others[1]] == pytest.approx(after[others[1]] * weights[others[0]], abs=1e-12)
        else:
            assert after[others[0]] == after[others[1]]
        moves.append((after, index, value))
        weights = after
    for (after, index, value), whole in zip(moves, formula("hundredths", [(after,) for after, _, _ in moves]), strict=True):
        parts = [round(100 * part) for part in whole]
        assert [part / 100 for part in parts] == whole
        assert sum(parts) == 100
        assert min(parts) >= 0
        assert whole[index] == value
        assert max(abs(one - other) for one, other in zip(whole, after, strict=True)) < 0.01


def test_scale_of_alpha(formula):
    places = [place / 500 for place in range(501)]
    found = formula("at", [(0.001, 0.5, place) for place in places])
    assert found == [float(f"{0.001 * (0.5 / 0.001) ** place:.3g}") for place in places]
    assert (found[0], found[-1]) == (0.001, 0.5)
    grid = [(0.001, 0.5, value) for value in (0.001, 0.003, 0.01, 0.05, 0.15, 0.3, 0.5)]
    assert formula("at", [(0.001, 0.5, place) for place in formula("placeOf", grid)]) == [value for _, _, value in grid]


def test_prints_as_python_does(formula):
    chance = random.Random(6)
    values = [chance.uniform(-1, 1) * 10 ** chance.randrange(-7, 13) for _ in range(3000)]
    # Ties, which round to the even digit, and what is nearly one.
    values += [sign * odd / 2**power for odd in range(1, 400, 2) for power in range(1, 8) for sign in (1, -1)]
    values += [0.0, -0.0, 0.005, 1.005, 2.675, 0.285, 999.5, 999_999.5, 1_234_567.5, 1e15 + 0.5, 1000, -1000, 0.3, 1e-9]
    grid = [(value, digits) for value in values for digits in range(7)]
    found = formula("fixed", grid)
    assert [(row, text) for row, text in zip(grid, found, strict=True) if text != f"{row[0]:,.{row[1]}f}"] == []
    positive = [(abs(value), least) for value in values if value for least in (0, 2, 4)]
    powers = [(10.0**power, 0) for power in range(-9, 10)]
    assert formula("decimals", positive + powers) == [max(least, two_digits(value)) for value, least in positive + powers]


# Widgets


def test_starts_at_the_values_of_the_ledger(page, made):
    source = made[0].read_text(encoding="utf-8")
    answers = re.findall(r"<output[^>]*>(.*?)</output>", source, re.DOTALL)
    shown = page.run("return [...document.querySelectorAll('.try output')].map((one) => one.innerHTML)")
    written = [answer.strip() for answer in answers if answer.strip()]
    assert len(written) > 25
    assert [one.strip() for one in shown if one.strip() in written] == written
    # What the formulas say there is what stood there: an answer that differs would have been replaced.
    assert all('class="num number"' in one or one.strip().startswith(("α = 0.05", "EMA 0.05", "experiment e1")) for one in written)


def test_without_script_the_ledger_speaks(browser, made):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.chrome.get(made[0].as_uri())
        snapshot = browser.cdp("DOMSnapshot.captureSnapshot", computedStyles=[])
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
    strings = snapshot["strings"]
    words = " ".join(strings[index] for index in snapshot["documents"][0]["layout"]["text"] if index >= 0)
    assert words.count("needs script") == len(WIDGETS)
    for value in ("40.00 GiB", "82 µs", "13.5 steps", "40.61 %", "0.55"):
        assert value in words
    for control in ("Element of the cache", "Bandwidth of the link", "Weight of recency", "State at eviction"):
        assert control not in words


def test_capacity(moved, models, platform):
    region = platform.value("hbm_pinned") + platform.value("hbm_evictable")
    places, expected = [], []
    for key, model in models.items():
        fp8 = key.endswith("_fp8")
        for exponent in range(11):
            places.append({"model": key.removesuffix("_fp8"), "format": "fp8" if fp8 else "fp16", "context": exponent})
            tokens = 2**exponent * K_TOKENS
            size = model.kv_bytes(tokens)
            gib, gb = size / GIB, size / GB
            expected.append(
                {
                    "context": "1M tokens" if exponent == 10 else f"{2**exponent}K tokens",
                    "token": f"{model.kv_bytes_per_token / KIB:,.0f} KiB",
                    "block": f"{model.kv_bytes(16) / MIB:,.2f} MiB",
                    "gib": f"{gib:,.{max(2, two_digits(gib))}f} GiB",
                    "gb": f"{gb:,.{max(1, two_digits(gb))}f} GB",
                    "sequences": f"{capacity.whole_contexts(round(region * GB), size):,}",
                    "crossover": "weights not stated" if model.weight_bytes is None else f"{capacity.crossover_tokens(model):,.0f} tokens",
                }
            )
    assert moved("capacity", places) == expected


def test_capacity_offers_each_model_and_the_formats_it_has(page, moved, models):
    offered = page.run("return [...document.getElementById('try-capacity-model').options].map((one) => [one.value, one.text])")
    assert dict(offered) == {key: model.model for key, model in models.items() if not key.endswith("_fp8")}
    moved("capacity", [{"model": "llama3_70b", "format": "fp8"}, {"model": "qwen2_5_7b"}])
    state = "const one = document.getElementById('try-capacity-format'); return [one.value, one.querySelector('[value=fp8]').disabled];"
    assert page.run(state) == ["fp16", True]
    moved("capacity", [{"model": "llama3_70b"}])
    assert page.run(state) == ["fp16", False]


def test_transfer(moved, models, platform):
    model = models["llama3_70b"]
    window = platform.value("decode_budget") - platform.value("decode_compute")
    places, expected = [], []
    for mfu in (25, 40, 50):
        for step in range(2 * (121 - 32) + 1):
            speed = 32 + step / 2
            places.append({"mfu": mfu, "bandwidth": speed})
            move = tiers.block_transfer_us(model.kv_bytes(16), speed)
            compute = tiers.regeneration_ms(model.parameters, 16, platform.value("peak_compute"), mfu / 100)
            expected.append(
                {
                    "bandwidth": f"{speed:.1f} GB/s",
                    "move": f"{move:,.0f} µs",
                    "regenerate": f"{compute:,.0f} ms",
                    "ratio": f"{tiers.regenerate_over_move(compute, move):,.0f}",
                    "window": f"{tiers.window_bytes(window, speed) / GB:,.2f} GB",
                    "positions": f"{int(tiers.window_positions(window, speed, model.kv_bytes_per_token)):,} positions",
                }
            )
    assert moved("transfer", places) == expected


def test_transfer_stands_between_the_ends_of_the_assumed_range(page, platform):
    ends = page.run("const one = document.getElementById('try-transfer-bandwidth'); return [one.min, one.max].map(Number);")
    assert ends == [platform.value("cxl_bandwidth_low"), platform.value("cxl_bandwidth_high")]


def test_alpha(moved, platform, ledger):
    simulated = {0.5: "05", 0.3: "03", 0.15: "015", 0.05: "005", 0.01: "001", 0.003: "0003", 0.001: "0001"}
    attention = {token: platform.value(f"ema_example_{token}") for token in ("hot", "cold")}
    places = [{"alpha": place / 100} for place in range(101)]
    for place, found in zip(places, moved("alpha", places), strict=True):
        alpha = float(f"{0.001 * 500 ** place['alpha']:.3g}")
        assert found["alpha"] == found["last"] == f"α = {alpha:g}"
        assert found["steps"] == f"{scoring.half_life_steps(alpha):,.1f} steps"
        assert found["seconds"] == f"{scoring.half_life_s(alpha, platform.value('decode_rate')):,.2f} s"
        for token, values in attention.items():
            for step, score in enumerate(scoring.ema_scores(alpha, values)):
                assert found[f"{token}{step}"] == f"{score:.{max(4, two_digits(score))}f}"
        nearest = min(simulated, key=lambda one: max(one / alpha, alpha / one))
        assert found["nearest"] == f"EMA {nearest:g}"
        assert found["revision2"] == ledger[f"sim.rev2.e2.ema{simulated[nearest]}.hit"].text
        quote = ledger[f"sim.rev3.e2.32.reset.ema{simulated[nearest]}.hit"]
        assert found["revision3"] == f"{quote.text} {quote.interval}"


def test_priority(page, moved, platform):
    cuts = platform.value("priority_cuts")
    places = [{f"signal-{one}": value / 20 for one in ("recency", "ema", "anchor")} for value in range(21)]
    for place, found in zip(places, moved("priority", places), strict=True):
        signals, weights = list(place.values()), platform.value("priority_weights")
        value = scoring.priority(*signals, weights)
        assert found["priority"] == f"{value:.4f}"
        assert found["tier"].startswith(scoring.tier_of(value, cuts))
        parts = [f"{weight * signal:.4f}" for weight, signal in zip(weights, signals, strict=True)]
        assert [found[one] for one in ("recency", "ema", "anchor")] == parts
    widths = page.run("return [...document.querySelectorAll('.stack-parts span')].map((one) => parseFloat(one.style.width))")
    assert widths == pytest.approx([25, 55, 20])


def test_a_weight_that_moves_moves_the_others(moved):
    after = moved("priority", [{"weight-ema": 0.1}, {"weight-ema": 1}, {"weight-ema": 0.4}])
    weights = [[found[f"weight-{one}"] for one in ("recency", "ema", "anchor")] for found in after]
    assert weights == [["0.50", "0.10", "0.40"], ["0.00", "1.00", "0.00"], ["0.30", "0.40", "0.30"]]


def test_policies_are_looked_up(page, moved, ledger):
    runs = page.run("return JSON.parse(document.querySelector('#try-policies .runs').textContent)")
    assert len(runs) > 100
    by = ("revision", "budget", "policy", "state")
    for run, found in zip(runs, moved("policies", [{one: run[one] for one in by} for run in runs]), strict=True):
        for field in ("hit", "margin", "regret", "lru", "optimum"):
            if field in run:
                quote = ledger[run[field]]
                text = quote.signed if field == "margin" else quote.text
                assert found[field] == f"{text} {quote.interval or ''}".strip()
            else:
                assert not re.search(r"\d", found[field])
        assert f".{run['budget']}." in run["hit"] or run["experiment"] == "e5"
        assert run["hit"].startswith(f"sim.rev{run['revision']}.")


def test_what_was_not_run_cannot_be_chosen(page, moved):
    def disabled(of):
        return page.run(
            "return [...document.getElementById(arguments[0]).options].filter((one) => one.disabled).map((one) => one.value)",
            f"try-policies-{of}",
        )

    moved("policies", [{"revision": "3", "budget": "8", "policy": "lru", "state": "dropped"}])
    assert {"arc", "sieve"} <= set(disabled("policy"))
    assert disabled("state") == ["kept"]
    moved("policies", [{"budget": "32", "policy": "arc"}])
    assert disabled("revision") == ["2"]
    assert disabled("budget") == ["8", "128"]
    moved("policies", [{"policy": "ema015", "revision": "2", "state": "kept"}])
    assert disabled("budget") == ["8", "128"]


def test_numbers_of_answers_open_their_cards(page, moved):
    moved("policies", [{"policy": "lfu"}])
    page.run("document.querySelector('#try-policies-hit a').click()")
    assert page.run("return document.getElementById('card').open")
    assert page.run("return document.querySelector('#card .name').textContent") == "sim.rev3.e1.32.lfu.hit"


def test_back_at_the_start_the_links_are_back(page, moved):
    links = "return document.querySelectorAll('#try-transfer output a').length"
    before = page.run(links)
    moved("transfer", [{"bandwidth": 100, "mfu": 50}])
    assert page.run(links) < before == 5
    moved("transfer", [{"bandwidth": 64, "mfu": 25}])
    assert page.run(links) == before


@pytest.mark.parametrize(
    ("slider", "answer", "text"),
    [
        ("capacity-context", "capacity-gib", "80.00 GiB"),
        ("transfer-bandwidth", "transfer-move", "81 µs"),
        ("priority-signal-ema", "priority-ema", "0.2805"),
    ],
)
def test_keyboard_moves_a_slider(page, slider, answer, text):
    page.run("document.getElementById(arguments[0]).focus()", f"try-{slider}")
    page.press("ArrowRight", 39)
    assert page.run("return document.getElementById(arguments[0]).textContent.trim()", f"try-{answer}") == text


def test_a_screen_reader_hears_the_answers_once_the_reader_rests(page):
    page.run("document.getElementById('try-transfer-bandwidth').focus()")
    for _ in range(3):
        page.press("ArrowRight", 39)
    heard = "return document.querySelector('#try-transfer .said').textContent"
    assert page.run(heard) == ""
    assert page.run("return document.querySelector('#try-transfer .said').getAttribute('role')") == "status"
    assert page.run("return [...document.querySelectorAll('.try output')].every((one) => one.getAttribute('aria-live') === 'off')")
    page.wait("setTimeout(arguments[0], 900)")
    assert page.run(heard).startswith("80 µs to move one block of 16 tokens")


def test_every_control_and_answer_is_named(page):
    controls, outputs = "[...document.querySelectorAll('.try input, .try select')]", "[...document.querySelectorAll('.try output')]"
    assert page.run(f"return {controls}.filter((one) => !one.labels.length).map((one) => one.id)") == []
    assert page.run(f"return {outputs}.flatMap((one) => [...one.htmlFor]).filter((id) => !document.getElementById(id))") == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_accessible_and_in_its_place(opened, made, width, dark):
    shown = opened(made[0], width=width, dark=dark)
    found = [*checks.accessibility(shown), *checks.sideways(shown), *checks.overlapping_text(shown), *checks.small_text(shown)]
    assert [line for line in found if ".try" in line or "#try" in line] == []
