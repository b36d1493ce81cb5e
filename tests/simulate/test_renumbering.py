import numpy as np
import pytest

from kvtier.simulate import renumbering
from kvtier.workload.synthetic import Shape, generate

SMALL = generate("zipf", 1, Shape(sessions=40, turns=120))


def test_renumbering_keeps_who_reads_what():
    number = np.random.default_rng(3).permutation(40)
    other = SMALL.renumbered(number)
    assert other.read_blocks.tolist() == SMALL.read_blocks.tolist()
    assert other.growth_blocks.tolist() == SMALL.growth_blocks.tolist()
    assert other.compulsory_blocks.tolist() == SMALL.compulsory_blocks.tolist()
    assert [int(number[session]) for session in SMALL.session] == other.session.tolist()


@pytest.mark.parametrize("number", [[0] * 40, list(range(39)), list(range(1, 41))])
def test_only_permutations_are_taken(number):
    with pytest.raises(ValueError, match="not a permutation of 40 sessions"):
        SMALL.renumbered(np.array(number))


def test_ties_between_sessions_move_lfu_and_no_other_policy():
    rates = renumbering.hit_rates(generate("zipf", 1, Shape(sessions=60, turns=400)), 100, 4, seed=1)
    moved = {policy for (policy,), group in rates.group_by("policy") if group.filter(group["alpha"].is_null())["hit_rate"].n_unique() > 1}
    assert moved == {"lfu"}
    for _, group in rates.filter(rates["policy"] == "ema").group_by("alpha"):
        assert group["hit_rate"].n_unique() == 1
