"""Numbers of Revision 3 in time, from tables made by hand and from a small workload."""

import importlib.util
from pathlib import Path

import polars as pl
import pytest

from kvtier.evidence.labels import Label, Status
from kvtier.simulate import timing
from kvtier.workload.synthetic import Shape

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("time_revision3", ROOT / "workflow/scripts/time_revision3.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def frames():
    return timing.measure([1, 2], [32.0, 64.0, 121.0], 0.8, Shape(sessions=40, turns=300), 150)


@pytest.fixture(scope="module")
def made(script, frames):
    numbers = script.number(frames)
    assert len({number.key for number in numbers}) == len(numbers)
    return {number.key: number for number in numbers}


def test_every_number_is_simulated_and_provisional(made):
    assert {(number.label, number.status) for number in made.values()} == {(Label.SIMULATED, Status.PROVISIONAL)}


@pytest.mark.parametrize("arrivals", timing.ARRIVALS)
@pytest.mark.parametrize("gbps", [32, 64, 121])
@pytest.mark.parametrize("policy", [*timing.POLICIES, timing.UNBOUNDED])
def test_every_cell_has_every_figure(made, arrivals, gbps, policy):
    key = f"sim.rev3.time.{arrivals}.{gbps}.{policy}"
    waits = [f"{what}_p{percent}" for what in ("ttft", "stall") for percent in (50, 95, 99)]
    fields = {"stall_per_token", *waits, "link_in", "link_out", "late", "sustainability", "hiding"}
    fields |= {"stall_over_optimum"} if policy != "min" else set()
    assert {name.rpartition(".")[2] for name in made if name.startswith(f"{key}.")} == fields


def test_stall_is_compared_with_the_optimum_seed_by_seed(made, frames):
    cells = [frames.times.filter(arrivals="gamma", gbps=32.0, policy=policy)["stall_ms_per_token"] for policy in ("lfu", "min")]
    over = made["sim.rev3.time.gamma.32.lfu.stall_over_optimum"]
    assert over.value == pytest.approx((cells[0] - cells[1]).mean())
    assert over.uncertainty["lowest_seed"] == (cells[0] - cells[1]).min()


def test_means_are_over_seeds(made, frames):
    cell = frames.times.filter(arrivals="poisson", gbps=64.0, policy="lru")
    number = made["sim.rev3.time.poisson.64.lru.ttft_p95"]
    assert number.value == pytest.approx(cell["ttft_ms_p95"].mean() / 1e3)
    assert (number.unit, number.uncertainty.keys()) == ("s", {"lowest_seed", "highest_seed"})


def test_definitions_say_what_is_assumed(made):
    about = made["sim.rev3.time.gamma.121.ema001.stall_p99"].definition
    for words in ("EMA a=0.01", "121 GB/s", "17.92 ms a block, assumed", "10.45 ms and 0.080 ms a GiB", "shape 0.25", "at 0.8 of what LRU"):
        assert words in about
    assert "no tier below" in made["sim.rev3.time.gamma.121.unbounded.stall_p99"].definition


def test_the_mean_rate_can_be_sustained_while_no_run_hides(made):
    """SPEC §8: a fetch that is asked for when the turn starts is late, however little it asks of the link."""
    assert made["sim.rev3.time.poisson.64.lru.sustainability"].value == 100
    assert made["sim.rev3.time.poisson.64.lru.hiding"].value == 0
    assert made["sim.rev3.time.poisson.64.unbounded.hiding"].value == 100


def test_a_share_counts_runs(script, frames):
    cell = frames.times.filter(arrivals="poisson", gbps=64.0, policy="lru").with_columns(hidden=pl.Series([True, False]))
    share = {number.key: number for number in script.shares(cell, "sim.key", "a run")}["sim.key.hiding"]
    assert (share.value, share.unit, share.uncertainty) == (50.0, "%", {})
    assert share.definition.startswith("runs of 2 in which every transfer ends by its deadline")


def test_a_rule_that_moves_nothing_has_no_accuracy(made):
    assert made["sim.rev3.prefetch.64.anchor.blocks"].value == 0
    assert "sim.rev3.prefetch.64.anchor.accuracy" not in made
    assert made["sim.rev3.prefetch.64.next.accuracy"].value == 1


def test_traffic_stands_beside_the_optimum(made, frames):
    for mode in (*timing.MODES, timing.FOUR_TIERS):
        assert f"sim.rev3.traffic.{mode}.min.a_traffic" in made
        assert f"sim.rev3.traffic.{mode}.min.over_optimum" not in made
    own, optimum = (frames.traffic.filter(mode="inclusive", policy=policy)["a_traffic"] for policy in ("lru", "min"))
    assert made["sim.rev3.traffic.inclusive.lru.over_optimum"].value == pytest.approx((100 * (own / optimum - 1)).mean())


def test_nothing_that_moves_makes_no_reuse_ratio(made):
    assert made["sim.rev3.traffic.no_tier.unbounded.a_traffic"].value == 0
    assert "sim.rev3.traffic.no_tier.unbounded.reuse" not in made


def test_position_is_a_pair_at_each_bandwidth(made):
    for gbps in (32, 64, 121):
        linear, attention = (made[f"sim.rev3.position.{gbps}.{name}"].value for name in ("linear", "attention"))
        assert attention > linear
