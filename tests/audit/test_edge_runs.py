"""Planted in tables by edges and by workload: an eviction from the read set, and a hit more than is possible."""

from functools import cache

import pytest

from kvtier.audit import edge_runs
from kvtier.audit.findings import AuditFailed, require
from kvtier.simulate import families, optimal, pinned_optimum, sensitivity
from kvtier.simulate.metrics import capacity_blocks
from kvtier.workload.synthetic import Shape, generate

SHAPE, COUNTED_FROM = Shape(sessions=60, turns=200), 100


@pytest.fixture(scope="module")
def turns_of():
    turns = cache(lambda seed: generate("zipf", seed, SHAPE))
    return lambda row: turns(row["seed"])


@pytest.fixture(scope="module")
def family():
    return families.replay(families.policy_runs([4], [8], [1, 2]), SHAPE, COUNTED_FROM)


@pytest.fixture(scope="module")
def options():
    return families.replay(families.option_runs([4], [64], [1]), SHAPE, COUNTED_FROM)


def test_honest_runs_pass(family, options, turns_of):
    for runs in (family, options):
        found = edge_runs.audit(runs, turns_of)
        assert sum(finding.audit == "optimum" for finding in found) == runs.height
        assert sum(finding.checked for finding in found if finding.audit == "lossless") == runs["evictions"].sum() > 0
        require(found)


def test_one_eviction_from_the_read_set_is_caught(family, turns_of, spoil):
    found = edge_runs.audit(spoil(family, 2, evictions_from_read_set=1), turns_of)
    with pytest.raises(AuditFailed, match=f"audit lossless: Revision 3 zipf, seed 1, LRU, 8 GiB: 1 of {family['evictions'][2]} failed"):
        require(found)


@pytest.mark.parametrize("row", [0, -1])
def test_one_hit_more_than_the_pinned_optimum_is_caught(family, turns_of, spoil, row):
    """FIFO with the optimum's hits passes; with one more it does not, nor does the optimum."""
    row %= family.height
    seed = family["seed"][row]
    most = int(pinned_optimum.turn_hits(turns_of({"seed": seed}), capacity_blocks(8), COUNTED_FROM)[COUNTED_FROM:].sum())
    assert most == family.filter(policy="min", seed=seed)["hits"].item()
    require(edge_runs.audit(spoil(family, row, hits=most), turns_of))
    found = edge_runs.audit(spoil(family, row, hits=most + 1), turns_of)
    assert [finding.subject for finding in found if finding.failed] == [edge_runs.name(family.row(row, named=True))]
    with pytest.raises(AuditFailed, match=f"audit optimum: .*: 1 of 1 failed: {most + 1} hits, at most {most} are possible"):
        require(found)


def test_what_pins_other_things_has_the_wider_bound(options, turns_of, spoil):
    most = int(optimal.turn_hits(turns_of({"seed": 1}), capacity_blocks(32), COUNTED_FROM)[COUNTED_FROM:].sum())
    at = [row for row, (sequences, floor) in enumerate(options.select("in_flight", "floor_blocks").rows()) if sequences > 1 or floor]
    assert len(at) == 6
    for row in at:
        require(edge_runs.audit(spoil(options, row, hits=most), turns_of))
        assert sum(finding.failed for finding in edge_runs.audit(spoil(options, row, hits=most + 1), turns_of)) == 1


def test_runs_of_other_workloads_are_held_to_their_own(spoil):
    runs = sensitivity.replay(SHAPE, [1], COUNTED_FROM)
    turns = cache(lambda seed, shape: generate("zipf", seed, shape))
    shapes = {(level.factor, level.level): level.shape for level in sensitivity.levels(SHAPE)}

    def replayed(row):
        return turns(row["seed"], shapes[row["factor"], row["level"]])

    require(edge_runs.audit(runs, replayed))
    found = edge_runs.audit(spoil(runs, 0, hits=runs["hits"][2] + 1), replayed)
    assert [finding.subject for finding in found if finding.failed] == ["Revision 3 zipf, Zipf exponent 0.8, seed 1, LRU, 32 GiB"]


def test_names_say_the_options(options):
    names = [edge_runs.name(row) for row in options.rows(named=True)[::3]]
    plain = "Revision 3 zipf, seed 1, LRU, 32 GiB"
    assert names == [plain, f"{plain}, prefix first", f"{plain}, 4 in flight", f"{plain}, floor of 64 blocks"]
